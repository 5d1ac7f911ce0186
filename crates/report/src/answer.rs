//! The answer of a run in one sentence: rates, latency, and what holds the rate back.

use linerate_model::{
    Cause, Confidence, EvidenceKey, Finding, FlowOutcome, FlowRecord, Limit, Rule, RunRecord,
};
use linerate_units::{Bitrate, Span};

use crate::figure::FlowFigure;
use crate::quantity::{from_to, known_to, nominal, range};

/// More flows than this are summarized by their lowest and highest rate.
const MAX_NAMED_FLOWS: usize = 3;

/// The result of a run as one sentence, such as `download 955.2 Mb/s (953.1 to 957.3), latency 0.03 -> 3.40 ms under
/// load; held by a 1 Gb/s shaper (confirmed)`; absent if the run has no flows or is a series over message sizes.
#[must_use]
pub fn answer(record: &RunRecord) -> Option<String> {
    if record.flows.is_empty() || crate::sizes::is_series(record) {
        return None;
    }
    if crate::transactions::are_made(record) {
        return Some(record.flows.iter().map(crate::transactions::answer).collect::<Vec<_>>().join("; "));
    }
    let mut parts = rates(&record.flows);
    parts.extend(latency(record));
    parts.extend(crate::responsiveness::answers(record));
    Some(format!("{}; {}", parts.join(", "), limits(&FlowOutcome::all(record))))
}

/// The results of a finished test in one line, such as `download 955.2 Mb/s, upload 953.1 Mb/s; held by a 1 Gb/s shaper
/// (confirmed)`; absent without flows.
#[must_use]
pub fn outcome(flows: &[FlowOutcome]) -> Option<String> {
    if flows.is_empty() {
        return None;
    }
    let rates: Vec<String> = flows
        .iter()
        .map(|flow| match flow.bitrate {
            _ if let Some(rate) = flow.transactions_per_second => {
                format!("{} {}", flow.name, crate::transactions::per_second(rate))
            }
            Some(rate) if flow.verdict.as_ref().is_some_and(|verdict| verdict.cause == Cause::Impossible) => {
                format!("{} impossible: {rate}", flow.name)
            }
            Some(rate) => format!("{} {rate}", flow.name),
            None => format!("{} not measured", flow.name),
        })
        .collect();
    if flows.iter().all(|flow| flow.transactions_per_second.is_some()) {
        return Some(rates.join(", "));
    }
    Some(format!("{}; {}", rates.join(", "), limits(flows)))
}

fn rates(flows: &[FlowRecord]) -> Vec<String> {
    if flows.len() <= MAX_NAMED_FLOWS {
        return flows.iter().map(rate).collect();
    }
    let measured: Vec<Bitrate> =
        flows.iter().filter_map(|flow| FlowFigure::of(flow).filter(|f| !f.impossible)?.bitrate).collect();
    let low = measured.iter().map(|rate| rate.bps()).reduce(f64::min);
    let high = measured.iter().map(|rate| rate.bps()).reduce(f64::max);
    vec![match low.zip(high) {
        Some((low, high)) => format!("{} flows, each {}", flows.len(), range(Some("bit/s"), low, high)),
        None => format!("{} flows, not measured", flows.len()),
    }]
}

fn rate(flow: &FlowRecord) -> String {
    let name = &flow.plan.name;
    let Some(figure) = FlowFigure::of(flow) else { return format!("{name} not measured") };
    let Some(rate) = figure.bitrate else { return format!("{name} not measured") };
    if figure.impossible {
        return format!("{name} impossible: {rate}");
    }
    let lost = flow.datagrams().and_then(|(_, ratio)| ratio).filter(|ratio| ratio.get() > 0.0);
    let lost = lost.map_or_else(String::new, |ratio| format!(", {ratio} lost"));
    format!("{name} {}{lost}", known_to(flow, rate))
}

/// Median latency when idle, and the highest median of the flows.
fn latency(record: &RunRecord) -> Option<String> {
    let idle = record.idle.as_ref().filter(|idle| idle.rtt.count > 0).map(|idle| idle.rtt.p50_ns);
    let loaded = record.flows.iter().filter_map(|flow| flow.loaded.as_ref());
    let loaded = loaded.filter(|report| report.rtt.count > 0).map(|report| report.rtt.p50_ns).max();
    Some(match (idle, loaded) {
        (Some(idle), Some(loaded)) => {
            format!("latency {} under load", from_to(Some("ns"), idle as f64, loaded as f64))
        }
        (None, Some(loaded)) => format!("latency {} under load", Span::from_ns(loaded)),
        (Some(idle), None) => format!("idle latency {}", Span::from_ns(idle)),
        (None, None) => return None,
    })
}

fn limits(flows: &[FlowOutcome]) -> String {
    let limits: Vec<String> = flows.iter().map(limit).collect();
    let same = limits.windows(2).all(|pair| pair[0] == pair[1]);
    match limits.first() {
        Some(first) if same => first.clone(),
        _ if flows.len() > MAX_NAMED_FLOWS => "the verdicts differ: see above".to_owned(),
        _ => {
            let named = flows.iter().zip(&limits).map(|(flow, limits)| format!("{} {limits}", flow.name));
            named.collect::<Vec<_>>().join(", ")
        }
    }
}

fn limit(flow: &FlowOutcome) -> String {
    let Some(verdict) = &flow.verdict else { return "not judged".to_owned() };
    let confidence = match verdict.confidence {
        Confidence::Confirmed => " (confirmed)",
        Confidence::Probable => " (probable)",
        Confidence::Unexplained => "",
    };
    format!("{}{confidence}", phrase(verdict))
}

/// What holds a flow back, as the end of a sentence about it.
pub(crate) fn phrase(verdict: &Finding) -> String {
    let with_rate = |key: EvidenceKey, noun: &str| {
        let rate = verdict.evidence.get(&key).and_then(|bps| Bitrate::from_bps(*bps));
        rate.map_or_else(|| format!("held by a {noun}"), |rate| format!("held by a {} {noun}", nominal(rate)))
    };
    match &verdict.rule {
        Rule::Shaper if !verdict.evidence.contains_key(&EvidenceKey::ShaperBps) => {
            "held by a shaper or a slower link"
        }
        Rule::LinkFull if !verdict.evidence.contains_key(&EvidenceKey::LinkBps) => "held by the link",
        Rule::LinkFull => return with_rate(EvidenceKey::LinkBps, "link"),
        Rule::Shaper => return with_rate(EvidenceKey::ShaperBps, "shaper"),
        Rule::Policer => "held by a policer",
        Rule::Impossible => "the figure is impossible",
        Rule::TooShort => "too short to say what holds it back",
        Rule::SlowSource => "held by the sending application",
        Rule::SlowReader => "held by the receiving application",
        Rule::ReceiverWindow => return format!("held by the {}", Limit::ReceiverWindow.words()),
        Rule::SendBuffer => "held by the send buffer",
        Rule::CpuSender => "held by the sender's processor",
        Rule::CpuReceiver => "held by the receiver's processor",
        Rule::Pacing => "held by the pacing rate",
        Rule::SlowStartUnfinished => "held by slow start, which had not finished",
        Rule::WindowRegrowth => "held by the recovery from a loss",
        Rule::PrematureSlowStartExit => "held by slow start, which ended early",
        Rule::MtuBlackHole => "held by a path that drops large packets",
        Rule::DamagedLink => "held by damaged frames on a link",
        Rule::LagImbalance => "held by an uneven share of a LAG",
        Rule::Congestion => "held by congestion on the path",
        Rule::Bufferbloat => "held by a queue that adds much latency",
        Rule::ShallowBuffer => "held by a shallow buffer",
        Rule::RandomLoss => "held by random loss",
        Rule::Reordering => "held by reordering",
        Rule::Timeouts => "held by retransmission timeouts",
        Rule::EcnMarks => "held by ECN marks",
        Rule::LocalDrops => "held by drops on the sending host",
        Rule::Disturbed => "the measurement was disturbed",
        Rule::HostBusy => "held by other programs on a host",
        Rule::ReturnPath => "held by acknowledgements that are late or lost",
        Rule::Browser => "held by the browser",
        Rule::Unexplained | Rule::Other(_) => "what holds it back is not known",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;

    fn of(log: &[linerate_model::Event]) -> RunRecord {
        RunRecord::fold(log)
    }

    #[test]
    fn both_directions_the_latency_and_each_limit_are_one_sentence() {
        let mut record = of(&runs::tcp_run());
        assert_eq!(
            answer(&record).unwrap(),
            "download 941.4 Mb/s, upload 600.0 Mb/s, latency 210 -> 900 us under load; download held by the link \
             (confirmed), upload held by the send buffer (probable)"
        );
        record.flows[0].uncertainty = Some(runs::uncertainty());
        let mut shaper = runs::finding(Rule::Shaper, "");
        shaper.evidence.insert(EvidenceKey::ShaperBps, 1e9);
        for flow in &mut record.flows {
            flow.verdict = Some(shaper.clone());
        }
        assert_eq!(
            answer(&record).unwrap(),
            "download 941.4 Mb/s (941.0 to 941.8), upload 600.0 Mb/s, latency 210 -> 900 us under load; held by a \
             1 Gb/s shaper (confirmed)"
        );
    }

    #[test]
    fn what_was_not_measured_is_not_a_figure() {
        assert_eq!(
            answer(&of(&runs::killed_run())).unwrap(),
            "download 800.0 Mb/s, upload not measured; not judged"
        );
        assert_eq!(
            answer(&of(&runs::impossible_run())).unwrap(),
            "download impossible: 1.200 Gb/s; not judged"
        );
        assert_eq!(answer(&of(&[])), None);
        assert_eq!(answer(&of(&runs::sweep_run())), None);
    }

    #[test]
    fn lost_datagrams_are_next_to_the_rate() {
        let answer = answer(&of(&runs::udp_run())).unwrap();
        assert!(answer.starts_with("upload 1.000 Mb/s, 0.2 % lost; "), "{answer}");
    }

    #[test]
    fn a_finished_test_is_one_line_for_its_server() {
        let mut record = of(&runs::tcp_run());
        let summary = |record: &RunRecord| outcome(&FlowOutcome::all(record)).unwrap();
        assert_eq!(
            summary(&record),
            "download 941.4 Mb/s, upload 600.0 Mb/s; download held by the link (confirmed), upload held by the send \
             buffer (probable)"
        );
        record.flows[0].verdict = Some(runs::finding(Rule::Impossible, ""));
        assert!(summary(&record).starts_with("download impossible: 941.4 Mb/s, "), "{}", summary(&record));
        assert_eq!(outcome(&[]), None);
    }

    #[test]
    fn many_flows_are_a_range() {
        let mut record = of(&runs::tcp_run());
        record.flows.extend(record.flows.clone());
        let text = answer(&record).unwrap();
        assert!(text.starts_with("4 flows, each 600.0 to 941.4 Mb/s, latency"), "{text}");
    }
}
