//! Who sees whom how well.

use linerate_units::{Bitrate, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::{Alarm, CalendarRunState, UnixTime};
use crate::{Cause, ForeignText, RunRecord};

/// What a run measured, as far as grids and alarms need it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellResult {
    /// The lowest goodput of its flows; absent if one of them is impossible.
    #[serde(default, rename = "goodput_bps", skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Bitrate>,
    /// The longest median latency under load.
    #[serde(default, rename = "latency_ns", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// The largest share of lost datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Ratio>,
    /// The cause that limits the slowest flow, or the impossible one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The verdict on it in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ForeignText>,
}

impl CellResult {
    /// The worst values of the flows of a run. A run without a goodput has no result. With an impossible one, the result
    /// says so instead of a rate, which no limit may be compared with.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        let flows = || record.flows.iter().filter_map(|flow| Some((flow, flow.bitrate()?)));
        let (slowest, goodput) = flows().min_by(|a, b| a.1.bps().total_cmp(&b.1.bps()))?;
        let impossible = flows().map(|(flow, _)| flow).find(|flow| flow.is_impossible());
        let loaded = record.flows.iter().filter_map(|flow| flow.loaded.as_ref());
        let verdict = impossible.unwrap_or(slowest).verdict.as_ref();
        let judged = verdict.map(|finding| finding.cause);
        Some(Self {
            goodput: Some(goodput).filter(|_| impossible.is_none()),
            latency: loaded
                .filter(|report| report.rtt.count > 0)
                .map(|report| Span::from_ns(report.rtt.p50_ns))
                .max(),
            loss: record
                .flows
                .iter()
                .filter_map(|flow| flow.datagrams()?.1)
                .max_by(|a, b| a.get().total_cmp(&b.get())),
            cause: impossible.map_or(judged, |_| Some(Cause::Impossible)),
            verdict: verdict.map(|finding| finding.text.clone()),
        })
    }

    /// Whether more data arrived than possible. Results of earlier versions have the rate nevertheless.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        self.cause == Some(Cause::Impossible)
    }
}

/// The newest result from one host to another.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshCell {
    /// The host that is the client.
    pub from: String,
    /// The host that is the server.
    pub to: String,
    /// The newest run that has ended, and when.
    pub last: Option<(CalendarRunState, UnixTime)>,
    /// Why it has no result.
    pub reason: ForeignText,
    /// Its name.
    pub run: Option<String>,
    /// The newest result, and when it was measured. It may be older than the newest run.
    pub result: Option<(CellResult, UnixTime)>,
    /// When it is measured next.
    pub next: Option<UnixTime>,
    /// Alarms that are not cleared.
    pub alarms: Vec<Alarm>,
}

/// The newest result of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleResult {
    /// Its name.
    pub name: String,
    /// The host that is the client.
    pub from: String,
    /// The host that is the server.
    pub to: String,
    /// The newest run that has ended, and when.
    pub last: Option<(CalendarRunState, UnixTime)>,
    /// The newest result. It may be older than the newest run.
    pub result: Option<CellResult>,
}

/// A mesh as a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshGrid {
    /// Its name.
    pub name: String,
    /// The hosts, in the order of the fleet's file.
    pub hosts: Vec<String>,
    /// Its pairs.
    pub cells: Vec<MeshCell>,
    /// Pairs that are not among them, because they would be too many.
    pub left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Body, Confidence, Direction, Event, Finding, FlowPlan, Rule, Side, Tally, Transport, flow::FlowId,
    };
    use linerate_units::Timestamp;

    /// A run whose flows have these rates and verdicts.
    fn record(flows: &[(f64, Rule)]) -> RunRecord {
        let mut record = RunRecord::default();
        let mut apply = |body| {
            record.apply(&Event { run: "r".into(), host: 0, seq: 0, at: Timestamp::START, body });
        };
        for (number, (bps, rule)) in (0..).zip(flows) {
            let flow = FlowId(number);
            apply(Body::FlowPlanned(FlowPlan {
                flow,
                name: "upload".into(),
                from: "a".into(),
                to: "b".into(),
                transport: Transport::Tcp,
                direction: Direction::Upload,
                streams: 1,
            }));
            let tally = Tally { bitrate: Bitrate::from_bps(*bps).unwrap(), ..Tally::default() };
            apply(Body::FlowEnded { flow, side: Side::Receiver, tally });
            let verdict = Finding {
                cause: rule.cause(),
                rule: rule.clone(),
                confidence: Confidence::Confirmed,
                share_of_time: None,
                text: rule.cause().name().into(),
                evidence: [].into(),
                remedy: None,
            };
            apply(Body::Verdict { flow, verdict, also: Vec::new() });
        }
        record
    }

    #[test]
    fn an_impossible_rate_is_no_result_of_a_pair() {
        let good = CellResult::of(&record(&[(941e6, Rule::LinkFull), (930e6, Rule::LinkFull)])).unwrap();
        assert_eq!((good.goodput, good.cause), (Bitrate::from_bps(930e6), Some(Cause::Link)));
        // Also if it is not the slowest flow.
        let wrong = CellResult::of(&record(&[(1.2e9, Rule::Impossible), (930e6, Rule::LinkFull)])).unwrap();
        assert_eq!((wrong.goodput, wrong.cause), (None, Some(Cause::Impossible)));
        assert_eq!((wrong.verdict.as_deref(), wrong.is_impossible()), (Some("impossible"), true));
        assert_eq!(CellResult::of(&record(&[])), None);
    }
}
