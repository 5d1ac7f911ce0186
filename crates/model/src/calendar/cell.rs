//! Who sees whom how well.

use linerate_units::{Bitrate, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::{Alarm, CalendarRunState, UnixTime};
use crate::{Cause, ForeignText, RunRecord};

/// What a run measured, as far as grids and alarms need it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellResult {
    /// The lowest goodput of its flows.
    #[serde(default, rename = "goodput_bps", skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Bitrate>,
    /// The longest median latency under load.
    #[serde(default, rename = "latency_ns", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// The largest share of lost datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Ratio>,
    /// The cause that limits the slowest flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The verdict on it in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ForeignText>,
}

impl CellResult {
    /// The worst values of the flows of a run. A run without a goodput has no result.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        let flows = record.flows.iter().filter_map(|flow| Some((flow, flow.bitrate()?)));
        let (slowest, goodput) = flows.min_by(|a, b| a.1.bps().total_cmp(&b.1.bps()))?;
        let loaded = record.flows.iter().filter_map(|flow| flow.loaded.as_ref());
        let verdict = slowest.verdict.as_ref();
        Some(Self {
            goodput: Some(goodput),
            latency: loaded
                .filter(|report| report.rtt.count > 0)
                .map(|report| Span::from_ns(report.rtt.p50_ns))
                .max(),
            loss: record
                .flows
                .iter()
                .filter_map(|flow| flow.datagrams()?.1)
                .max_by(|a, b| a.get().total_cmp(&b.get())),
            cause: verdict.map(|finding| finding.cause),
            verdict: verdict.map(|finding| finding.text.clone()),
        })
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

/// A mesh as a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshGrid {
    /// Its name.
    pub name: String,
    /// The hosts, in the order of the fleet's file.
    pub hosts: Vec<String>,
    /// Its pairs.
    pub cells: Vec<MeshCell>,
}
