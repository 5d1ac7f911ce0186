//! Costs of a switch while it carries a stream: read once a second from outside, with the counters of a port.

use std::fs;
use std::time::Duration;

use linerate_sock::proc::cpu::ThreadTimes;
use linerate_sock::{Mono, clock};
use serde_json::Value;

use super::super::figure::FigureReadings;
use super::super::spread::Spread;
use super::network::{LabNetwork, count, port};

/// Interval between two readings.
const READING_INTERVAL: Duration = Duration::from_secs(1);

/// Readings of a switch in the measured parts of its runs.
pub(super) struct SwitchMeter {
    /// The port whose bytes count, such as `s>b`.
    port: &'static str,
    next: Mono,
    end: Mono,
    before: Option<SwitchCounters>,
    /// Share of a core, as reported by the switch.
    pub(super) cores: Vec<f64>,
    /// CPU seconds of its thread per 10^9 bytes on the wire.
    costs: Vec<f64>,
    /// Sleeps of its thread per second.
    sleeps: Vec<f64>,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy)]
struct SwitchCounters {
    at: Mono,
    cpu: Duration,
    sleeps: u64,
    wire_bytes: u64,
}

impl SwitchMeter {
    /// A meter without readings, for this port.
    pub(super) const fn new(port: &'static str) -> Self {
        Self {
            port,
            next: Mono::FAR,
            end: Mono::FAR,
            before: None,
            cores: Vec::new(),
            costs: Vec::new(),
            sleeps: Vec::new(),
        }
    }

    /// Starts a run; the readings start after `omit` and last for `length`.
    pub(super) fn begin(&mut self, omit: Duration, length: Duration) {
        // The program needs a moment to send its first packets.
        self.next = clock::now() + omit + Duration::from_millis(500);
        self.end = self.next + length;
        self.before = None;
    }

    /// Reads if it is due. A failed reading reduces the number of readings.
    pub(super) fn read_if_due(&mut self, network: &LabNetwork) {
        if !self.next.has_passed() || self.end.has_passed() {
            return;
        }
        self.next += READING_INTERVAL;
        let (Ok(status), Some((cpu, sleeps))) = (network.status(), thread(network.switch)) else {
            return;
        };
        let Ok(wire_bytes) = port(&status, self.port).and_then(|port| count(port, "wire_bytes")) else {
            return;
        };
        self.add(SwitchCounters { at: clock::now(), cpu, sleeps, wire_bytes }, &status);
    }

    fn add(&mut self, now: SwitchCounters, status: &Value) {
        if let Some(before) = self.before.replace(now)
            && now.wire_bytes > before.wire_bytes
        {
            let seconds = now.at.since(before.at).as_secs_f64();
            let gigabytes = (now.wire_bytes - before.wire_bytes) as f64 / 1e9;
            self.costs.push(now.cpu.saturating_sub(before.cpu).as_secs_f64() / gigabytes);
            self.sleeps.push(now.sleeps.saturating_sub(before.sleeps) as f64 / seconds);
            self.cores.extend(status["keeping_up"]["cpu"].as_f64());
        }
    }

    /// CPU cost of a gigabyte.
    pub(super) fn cost(self) -> FigureReadings {
        let sleeps = Spread::of(self.sleeps).map_or(f64::NAN, |sleeps| sleeps.median());
        let note = format!(
            "of the switch's thread, per 10^9 bytes on the wire of {}; it slept {sleeps:.0} times a second",
            self.port
        );
        FigureReadings { all: self.costs, note: Some(note) }
    }
}

/// CPU time of the first thread of a process, and its number of voluntary context switches.
fn thread(process: u32) -> Option<(Duration, u64)> {
    let file = |name: &str| fs::read_to_string(format!("/proc/{process}/task/{process}/{name}")).ok();
    let status = file("status")?;
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    Some((ThreadTimes::parse(&file("stat")?)?.cpu_time(), sleeps.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_second_costs_what_was_added_in_it() {
        let mut meter = SwitchMeter::new("s>b");
        let reading = |second: u64, cpu_ms: u64, sleeps: u64, wire_bytes: u64| SwitchCounters {
            at: Mono(second * 1_000_000_000),
            cpu: Duration::from_millis(cpu_ms),
            sleeps,
            wire_bytes,
        };
        let status = json!({ "keeping_up": { "cpu": 0.25 } });
        meter.add(reading(1, 100, 50, 7), &status);
        assert!(meter.costs.is_empty(), "nothing to compare with");
        meter.add(reading(3, 600, 20_050, 2_000_000_007), &status);
        meter.add(reading(4, 900, 20_051, 2_000_000_007), &status);
        assert_eq!((&meter.costs[..], &meter.sleeps[..]), (&[0.25][..], &[10_000.0][..]));
        assert_eq!(meter.cores, [0.25], "a second in which nothing passed is none");
        meter.begin(Duration::ZERO, Duration::ZERO);
        meter.add(reading(5, 5000, 90_000, 3_000_000_007), &status);
        assert_eq!(meter.costs.len(), 1, "what was between two runs is in neither");
    }

    #[test]
    fn a_process_reports_the_time_and_sleeps_of_its_first_thread() {
        let (_, before) = thread(std::process::id()).unwrap();
        let (_, after) = thread(std::process::id()).unwrap();
        assert!(after >= before);
        assert!(thread(u32::MAX).is_none());
    }
}
