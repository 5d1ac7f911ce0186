//! The machine that was measured, and whether it was idle.

use std::fs;

use linerate_sock::clock;
use linerate_sock::proc::host;
use serde_json::{Value, json};

/// Above this load average, other programs use the machine.
const MAX_QUIET_LOAD: f64 = 0.5;

/// The host and the time.
pub(super) struct Machine {
    cpu: Option<String>,
    cores: Option<usize>,
    kernel: String,
    load: Option<f64>,
    congestion_control: Option<String>,
    started_at: String,
}

impl Machine {
    pub(super) fn read() -> Self {
        let now = i128::from(clock::wall_ns());
        Self {
            cpu: host::cpu_model(),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            kernel: host::kernel().release,
            load: fs::read_to_string("/proc/loadavg").ok().and_then(|text| parse_load(&text)),
            congestion_control: fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
                .ok()
                .map(|name| name.trim().to_owned()),
            started_at: jiff::Timestamp::from_nanosecond(now - now % 1_000_000_000)
                .map(|time| time.to_string())
                .unwrap_or_default(),
        }
    }

    pub(super) fn started_at(&self) -> &str {
        &self.started_at
    }

    pub(super) fn describe(&self) -> String {
        let unknown = || "unknown".to_owned();
        format!(
            "{}, {} cores, Linux {}, load average {}",
            self.cpu.clone().unwrap_or_else(unknown),
            self.cores.map_or_else(unknown, |cores| cores.to_string()),
            self.kernel,
            self.load.map_or_else(unknown, |load| format!("{load:.2}")),
        )
    }

    /// A warning if the machine is not idle.
    pub(super) fn warning(&self) -> Option<String> {
        let load = self.load.filter(|load| *load > MAX_QUIET_LOAD)?;
        Some(format!(
            "warning: the load average is {load:.2}, above {MAX_QUIET_LOAD}: others work on this machine, and these figures are not to be quoted"
        ))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "cores": self.cores,
            "kernel": self.kernel,
            "load_average": self.load,
            "congestion_control": self.congestion_control,
        })
    }
}

/// The one-minute average in `/proc/loadavg`.
fn parse_load(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_average_counts_and_a_busy_host_is_reported() {
        assert_eq!(parse_load("0.51 0.40 0.30 1/99 4711\n"), Some(0.51));
        assert_eq!(parse_load(""), None);
        let machine = |load| Machine { load, ..Machine::read() };
        assert!(machine(Some(0.51)).warning().is_some());
        assert!(machine(Some(0.5)).warning().is_none());
    }
}
