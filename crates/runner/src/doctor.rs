//! Checks what this host can do, and which of its settings limit results.
//!
//! ```
//! use linerate_runner::doctor::{CheckRequest, check_host};
//!
//! let found = check_host(CheckRequest { host: Some("127.0.0.1"), ..CheckRequest::default() });
//! for check in found.checkup.checks() {
//!     println!("{} {}: {}, {}", check.status.name(), check.id, check.value, check.text);
//! }
//! assert!(found.no_route.is_none());
//! ```
//!
//! The checks read this host's state and send nothing. `linerate_report::doctor` shows what they found.

mod backlog;
mod calibration;
mod facts;
mod interface;
mod leftovers;
mod machine;
mod slot;
mod sysctls;

use linerate_control::Leftovers;
use linerate_model::{Calibration, CheckSection, HostCheckup, JudgedPath, KernelFeature};
use linerate_sock::SockError;
use linerate_sock::features::{self, KernelCapability};
use linerate_units::{Bitrate, Span};

use facts::{Facts, Route};
use sysctls::TargetPath;

/// The rate to judge for if no interface reports its own.
const USUAL_RATE_BPS: u64 = 1_000_000_000;
/// The round-trip time to judge for unless the caller gives one.
const USUAL_RTT: Span = Span::from_ms(100);

/// What to check.
#[derive(Debug, Clone)]
pub struct CheckRequest<'r> {
    /// Also check the path to this host.
    pub host: Option<&'r str>,
    /// Rate that one flow should reach; absent for that of the fastest interface, or 1 Gb/s.
    pub rate: Option<Bitrate>,
    /// Round-trip time at which it should reach it.
    pub rtt: Span,
    /// Settings that an agent has changed (see [`linerate_control::leftovers`]).
    pub leftovers: Option<&'r Leftovers>,
    /// The host's calibration (see [`crate::calibration::stored`]).
    pub calibration: Option<Box<Calibration>>,
}

impl Default for CheckRequest<'_> {
    /// One flow at the rate of the fastest interface over 100 ms.
    fn default() -> Self {
        Self { host: None, rate: None, rtt: USUAL_RTT, leftovers: None, calibration: None }
    }
}

/// What was found.
#[derive(Debug)]
pub struct CheckedHost {
    /// The checks.
    pub checkup: HostCheckup,
    /// Why there are no checks of the path to the requested host.
    pub no_route: Option<SockError>,
}

/// Checks this host. Takes a few milliseconds; looking up the name of a host can take longer.
#[must_use]
pub fn check_host(request: CheckRequest<'_>) -> CheckedHost {
    let (route, no_route) = match request.host.map(Route::gather).transpose() {
        Ok(route) => (route, None),
        Err(error) => (None, Some(error)),
    };
    let facts = Facts::gather();
    let target = TargetPath { rate: request.rate.unwrap_or_else(|| usual_rate(&facts)), rtt: request.rtt };
    let mut sections = vec![leftovers::section(request.leftovers)];
    sections.extend(judge(&facts, route.as_ref(), target));
    sections.retain(|section| !section.checks.is_empty());
    sections.push(calibration::section(request.calibration.as_deref()));
    let checkup = HostCheckup {
        judged_for: JudgedPath { rate: target.rate, rtt: target.rtt, bdp: target.bdp() },
        sections,
        features: features::features().into_iter().map(feature).collect(),
        calibration: request.calibration,
    };
    CheckedHost { checkup, no_route }
}

fn feature(found: KernelCapability) -> KernelFeature {
    KernelFeature { name: found.name.to_owned(), available: found.available, detail: found.detail }
}

fn usual_rate(facts: &Facts) -> Bitrate {
    let running = facts.interfaces.iter().filter(|interface| interface.link.running);
    let fastest = running.filter_map(|interface| interface.link.speed_bps).max();
    Bitrate::from_bps(fastest.unwrap_or(USUAL_RATE_BPS) as f64).unwrap_or_default()
}

fn judge(facts: &Facts, route: Option<&Route>, target: TargetPath) -> Vec<CheckSection> {
    let mut sections: Vec<CheckSection> = route.map(interface::route).into_iter().collect();
    sections.push(sysctls::windows(facts, target));
    sections.push(sysctls::tcp(facts));
    sections.push(backlog::section(facts));
    sections.extend(facts.interfaces.iter().map(|found| interface::section(found, facts.machine.cores)));
    sections.push(machine::section(&facts.machine));
    sections
}

#[cfg(test)]
mod tests {
    use linerate_units::Bytes;

    use super::*;

    fn has(checkup: &HostCheckup, id: &str) -> bool {
        checkup.checks().any(|check| check.id == id)
    }

    #[test]
    fn a_host_that_cannot_be_found_leaves_the_other_checks() {
        // RFC 6761 §6.4: this name never resolves.
        let found = check_host(CheckRequest { host: Some("nowhere.invalid"), ..CheckRequest::default() });
        assert!(found.no_route.is_some() && has(&found.checkup, "cpu.cores"));
        assert!(!has(&found.checkup, "route.address"));
    }

    #[test]
    fn the_stated_path_is_judged_and_empty_sections_are_left_out() {
        let (rate, rtt) = (Bitrate::from_bps(1e9), Span::from_ms(21));
        let CheckedHost { checkup, .. } = check_host(CheckRequest { rate, rtt, ..CheckRequest::default() });
        // 1e9 * 0.021 / 8.
        assert_eq!(checkup.judged_for.bdp, Some(Bytes::new(2_625_000)));
        assert!(checkup.sections.iter().all(|section| !section.checks.is_empty()));
        assert!(has(&checkup, "calibration"), "its absence is reported");
        assert!(checkup.features.iter().any(|feature| feature.name == "TCP_INFO"));
    }

    #[test]
    fn without_a_rate_the_fastest_interface_or_a_gigabit_is_judged() {
        assert_eq!(usual_rate(&Facts::default()).bps(), 1e9);
    }
}
