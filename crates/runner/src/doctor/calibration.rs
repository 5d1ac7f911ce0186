//! The limits of this host, from its own calibration.

use linerate_control::host_info;
use linerate_model::{Calibration, CheckSection, CheckStatus, HostCheck, LoopbackRate};

/// The command that creates or renews a calibration.
const REMEDY: &str = "linerate doctor --calibrate";

/// The results of the calibration, and whether it is still valid.
pub(super) fn section(found: Option<&Calibration>) -> CheckSection {
    CheckSection { title: "Limits of this host".to_owned(), checks: checks(found) }
}

fn checks(found: Option<&Calibration>) -> Vec<HostCheck> {
    const REASON: &str = "results then state their uncertainty and whether the host was the limit";
    let Some(found) = found else {
        let check = HostCheck::good("calibration", "none", REASON);
        return vec![
            check.judged(CheckStatus::Note, format!("not measured yet; {REASON}")).with_remedy(REMEDY),
        ];
    };
    let when = format!("{} by linerate {}", found.measured_at, found.linerate);
    let check = HostCheck::good("calibration", when, REASON);
    let changes = found.outdated_by(&host_info(None));
    if !changes.is_empty() {
        let text = format!(
            "this host has changed since the calibration ({}): its limits are not used",
            changes.join(", ")
        );
        return vec![check.judged(CheckStatus::Note, text).with_remedy(REMEDY)];
    }
    let mut checks = vec![check];
    checks.extend(found.loopback.iter().map(loopback));
    checks.extend(grain(found));
    checks.extend(found.pacing.map(|pacing| {
        let value = format!("{} off {}", pacing.error, pacing.asked_bps);
        HostCheck::good("calibration.pacing", value, "deviation of the offered rate from the requested rate")
    }));
    checks.extend(found.memory_copy.iter().map(|copy| {
        let id = format!("calibration.copy.{}", copy.block_bytes.get());
        let text = "upper limit on one core for transfers that copy blocks of this size";
        HostCheck::good(id, copy.bitrate_bps.to_string(), text)
    }));
    checks
}

fn loopback(mode: &LoopbackRate) -> HostCheck {
    let way = mode.method.as_ref().map(|way| format!("_{way}")).unwrap_or_default();
    let id = format!("calibration.{}{way}.{}", mode.transport.name(), mode.streams);
    let value = format!("{} in blocks of {}", mode.bitrate_bps, mode.length_bytes);
    HostCheck::good(id, value, "rate over loopback, with both ends on this host")
}

fn grain(found: &Calibration) -> Vec<HostCheck> {
    let wake_up = found.wake_up.map(|late| {
        let value = format!("median {}, 99 % within {}", late.p50_ns, late.p99_ns);
        HostCheck::good("calibration.wake_up", value, "wake-up latency of a thread: the error of every time")
    });
    let calls = [
        ("calibration.syscall", found.syscall, "cost of an empty system call"),
        ("calibration.clock_read", found.clock_read, "cost of reading the clock"),
    ];
    let calls =
        calls.into_iter().filter_map(|(id, time, text)| Some(HostCheck::good(id, time?.to_string(), text)));
    wake_up.into_iter().chain(calls).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_that_is_missing_or_outdated_is_noted_with_its_remedy() {
        let missing = &checks(None)[0];
        assert_eq!((missing.status, missing.remedy.as_deref()), (CheckStatus::Note, Some(REMEDY)));
        let elsewhere = Calibration { kernel: "another".into(), ..Calibration::default() };
        let outdated = checks(Some(&elsewhere));
        assert_eq!((outdated.len(), outdated[0].status), (1, CheckStatus::Note));
        assert!(outdated[0].text.contains("kernel"), "{outdated:?}");
        let here = host_info(None);
        let holds = Calibration { kernel: here.kernel, cpu: here.cpu, cores: here.cores, ..elsewhere };
        assert_eq!(checks(Some(&holds))[0].status, CheckStatus::Good);
    }
}
