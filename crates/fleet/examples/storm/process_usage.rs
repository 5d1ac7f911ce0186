//! What a process has used, by /proc.

use linerate_sock::clock::{self, Mono};

/// Ticks of the clock in which the kernel counts processor time, a second.
const TICKS: f64 = 100.0;

/// What a process has used by some moment.
pub(crate) struct StormUsage {
    at: Mono,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: u64,
}

impl StormUsage {
    pub(crate) fn of(process: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
        Self { at: clock::now(), cpu_seconds: ticks / TICKS, peak_bytes: kilobytes * 1024 }
    }

    /// The share of one processor since an earlier moment.
    pub(crate) fn since(&self, earlier: &Self) -> f64 {
        (self.cpu_seconds - earlier.cpu_seconds) / self.at.since(earlier.at).as_secs_f64()
    }
}
