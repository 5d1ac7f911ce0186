//! Caveats of a result that need the records of both ends.

use linerate_model::{
    Cause, Caveat, CaveatKind, Ceiling, FlowRecord, HostInfo, LatencyReport, Limit, RunRecord, Side,
};
use linerate_theory::evidence::Evidence;
use linerate_theory::{Diagnosis, host_limit};
use linerate_units::{Bitrate, Span};

/// A sender that reaches less than this share of the requested rate did not offer it.
const MIN_OFFERED_SHARE: f64 = 0.99;

/// Share of a host's CPU time, used by other programs, from which on the result is weakened.
const BUSY_HOST_SHARE: f64 = 0.3;

/// The caveats of a flow.
pub(super) fn caveats(
    record: &RunRecord,
    flow: &FlowRecord,
    evidence: &Evidence,
    diagnosis: &Diagnosis,
) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = diagnosis.disproved.iter().filter_map(exceeded).collect();
    caveats.extend(host_limit::disproved(record, flow).iter().filter_map(exceeded_by_flow));
    let found = [
        busy(record, flow, evidence),
        cpu(diagnosis),
        inferred(diagnosis),
        offered(record, flow),
        offset(flow.loaded.as_ref()),
        host_limit(record, flow),
    ];
    caveats.extend(found.into_iter().flatten());
    caveats
}

/// A ceiling that was measured on a host but was exceeded by the flow.
fn exceeded(ceiling: &Ceiling) -> Option<Caveat> {
    let measured = Bitrate::from_bps(ceiling.bitrate_bps)?;
    let why = match ceiling.limit {
        Limit::Disk => "memory took a part of the file, or the disk was busy when the limit was measured",
        _ => "the host was probably busy when the limit was measured",
    };
    let text = format!(
        "the measured rate exceeds {measured}, the measured limit of {}, so this ceiling was left out: {why}",
        ceiling.because
    );
    caveat(CaveatKind::CeilingDisproved, text)
}

/// A calibration that was exceeded by the flow.
fn exceeded_by_flow(found: &host_limit::Disproved) -> Option<Caveat> {
    let text = format!(
        "{} transferred more than the {} of its calibration, so that limit is not valid: the host was \
         probably busy during calibration; run linerate doctor --calibrate there",
        found.host, found.limit
    );
    caveat(CaveatKind::CeilingDisproved, text)
}

/// The flow is close to the limits of the hosts themselves.
fn host_limit(record: &RunRecord, flow: &FlowRecord) -> Option<Caveat> {
    let found = host_limit::limited(record, flow)?;
    let one_side = found.unknown.map(|host| format!(" ({host} is not calibrated)")).unwrap_or_default();
    let text = format!(
        "host-limited: the loopback rate of {} in this mode is {}, and the result is {} of it; the path may \
         be faster than its hosts{one_side}",
        found.host, found.limit, found.share
    );
    caveat(CaveatKind::HostLimited, text)
}

/// Hosts that have changed since their calibration.
pub(super) fn outdated(record: &RunRecord) -> Vec<Caveat> {
    let outdated = |host: &HostInfo| {
        let calibration = host.calibration.as_ref()?;
        let changes = calibration.outdated_by(host);
        let text = format!(
            "{} was calibrated at {} and has changed since ({}): its limits are not used; run linerate doctor --calibrate there",
            host.name,
            calibration.measured_at,
            changes.join(", ")
        );
        caveat(CaveatKind::CalibrationStale, text).filter(|_| !changes.is_empty())
    };
    record.hosts.iter().filter_map(outdated).collect()
}

fn caveat(kind: CaveatKind, text: String) -> Option<Caveat> {
    Some(Caveat { kind, text: text.into() })
}

/// Other programs used much of a host's CPU time.
pub(super) fn busy(record: &RunRecord, flow: &FlowRecord, evidence: &Evidence) -> Option<Caveat> {
    let (sender, receiver) = record.ends(flow);
    let ends = [(sender, evidence.sender.others_share), (receiver, evidence.receiver.others_share)];
    let busy = ends.into_iter().filter_map(|(host, others)| Some((host?, others?)));
    let (host, others) =
        busy.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, others)| *others >= BUSY_HOST_SHARE)?;
    let text = format!(
        "other programs used {:.0} % of the CPU of {}: the host may have limited rates and caused delays; \
         measure again while it is idle",
        100.0 * others,
        host.name
    );
    caveat(CaveatKind::HostBusy, text)
}

fn cpu(diagnosis: &Diagnosis) -> Option<Caveat> {
    let mut found = std::iter::once(&diagnosis.primary).chain(&diagnosis.also);
    let full = found.find(|finding| matches!(finding.cause, Cause::CpuSender | Cause::CpuReceiver))?;
    let text = format!("{} A faster host may measure a higher rate.", full.text);
    caveat(CaveatKind::CpuSaturated, text)
}

fn inferred(diagnosis: &Diagnosis) -> Option<Caveat> {
    let ceiling = diagnosis.expected.as_ref().filter(|ceiling| ceiling.limit == Limit::LinkInferred)?;
    let text = format!(
        "no interface reports the rate of the slowest link: {}; give it with --link RATE",
        ceiling.because
    );
    caveat(CaveatKind::LinkInferred, text)
}

/// The sender did not offer the requested rate, and only the sender itself can have limited it.
fn offered(record: &RunRecord, flow: &FlowRecord) -> Option<Caveat> {
    // A sender of datagrams says so itself, with the remedy.
    if flow.caveats.iter().any(|caveat| caveat.kind == CaveatKind::PacingMissed) {
        return None;
    }
    let traffic = &record.start.as_ref()?.spec.traffic;
    let asked = Bitrate::from_bps(traffic.offered()?.bps() * f64::from(flow.plan.streams))?;
    let sent = flow.tally(Side::Sender)?.bitrate;
    if sent.bps() >= MIN_OFFERED_SHARE * asked.bps() {
        return None;
    }
    caveat(CaveatKind::SenderLimited, format!("the sender offered {sent} instead of the requested {asked}"))
}

/// One-way delays that are smaller than the error of the clock offset are meaningless.
fn offset(loaded: Option<&LatencyReport>) -> Option<Caveat> {
    let loaded = loaded?;
    let error = Span::from_ns(loaded.offset_error_ns?);
    let smaller = [loaded.upload?, loaded.download?].into_iter().map(|way| way.p50_ns).min()?;
    if error.as_ns() < smaller {
        return None;
    }
    let text = format!(
        "the clocks' offset is known to +/- {error}, more than the smaller one-way delay of {}; \
         round-trip times are not affected",
        Span::from_ns(smaller)
    );
    caveat(CaveatKind::OffsetUncertain, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Digest, ProbePhase, ProbeTransport};

    fn report(one_way_ns: u64, error_ns: u64) -> LatencyReport {
        let digest = Digest { count: 9, p50_ns: one_way_ns, ..Digest::default() };
        LatencyReport {
            phase: ProbePhase::Loaded,
            transport: ProbeTransport::Udp,
            sent: 9,
            lost: 0,
            rtt: digest,
            upload: Some(digest),
            download: Some(Digest { p50_ns: 2 * one_way_ns, ..digest }),
            offset_ns: Some(0),
            offset_error_ns: Some(error_ns),
            kernel_timestamps: true,
            intervals: Vec::new(),
            histogram: Vec::new(),
        }
    }

    #[test]
    fn one_way_delays_below_the_clocks_error_are_doubted() {
        assert_eq!(offset(Some(&report(5_000, 4_000))), None);
        let caveat = offset(Some(&report(5_000, 6_000))).unwrap();
        assert!(caveat.text.contains("6 us") && caveat.text.contains("5 us"), "{}", caveat.text);
        assert_eq!(offset(None), None);
    }
}
