//! The list of archived runs, as a table and as a document.
//!
//! ```
//! use linerate_model::{Outcome, RunHead};
//! use linerate_report::{HistoryDocument, RunRow, TextLayout, history_table};
//!
//! let run = RunHead {
//!     id: "7f3a0c55d2b41e98".into(),
//!     target: Some("server".into()),
//!     outcome: Some(Outcome::Completed),
//!     ..RunHead::default()
//! };
//! let json = serde_json::to_string(&HistoryDocument::new(std::slice::from_ref(&run)))?;
//! assert!(json.contains(r#""id":"7f3a0c55d2b41e98""#));
//! let rows = RunRow::of(&run, "7f3a", "2026-11-21 10:00:00");
//! assert!(history_table(&rows, &TextLayout::default()).contains("7f3a"));
//! # Ok::<(), serde_json::Error>(())
//! ```

use linerate_model::{FlowHead, ForeignText, Outcome, RunHead};
use linerate_units::Bitrate;
use serde::Serialize;

use crate::layout::{TextLayout, TextRole};
use crate::quantity::or_absent;
use crate::table::{Cell, Column, Table};

/// One flow of one archived run, as in the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRow {
    /// Name of the run, or its shortest unique prefix.
    pub run: ForeignText,
    /// Wall-clock time of its start.
    pub started_at: ForeignText,
    /// The server as typed.
    pub target: ForeignText,
    /// Name of the flow; empty if the run has none.
    pub flow: ForeignText,
    /// Goodput at the receiver; absent if not measured.
    pub bitrate: Option<Bitrate>,
    /// Cause of the verdict; absent without a verdict.
    pub cause: Option<ForeignText>,
    /// How the run ended; absent while it runs and if it was killed.
    pub outcome: Option<ForeignText>,
}

impl RunRow {
    /// The rows of a run: one for each flow, or one without a flow. `name` is the run's name for the reader, and
    /// `started_at` its start in the reader's time zone.
    #[must_use]
    pub fn of(run: &RunHead, name: &str, started_at: &str) -> Vec<Self> {
        let target = run.target.as_deref().unwrap_or_default();
        let row = Self {
            run: name.into(),
            started_at: started_at.into(),
            target: if run.is_plan { format!("plan {target}").into() } else { target.into() },
            outcome: run.outcome.map(|outcome| outcome.name().into()),
            ..Self::default()
        };
        if run.flows.is_empty() {
            return vec![row];
        }
        let of_flow = |flow: &FlowHead| Self {
            flow: flow.name.clone(),
            bitrate: flow.bitrate,
            cause: flow.cause.clone(),
            ..row.clone()
        };
        run.flows.iter().map(of_flow).collect()
    }
}

/// Version of the document.
const SCHEMA: &str = "linerate.history/1";

/// A list of archived runs. What is not known of a run is null.
#[derive(Debug, Serialize)]
pub struct HistoryDocument<'r> {
    runs: Vec<RunEntry<'r>>,
    schema: &'static str,
}

// Keys in alphabetical order, as in earlier versions.
#[derive(Debug, Serialize)]
struct RunEntry<'r> {
    events: u64,
    flows: Vec<FlowEntry<'r>>,
    id: &'r str,
    kind: &'static str,
    linerate: Option<&'r str>,
    outcome: Option<Outcome>,
    part_of: Option<&'r str>,
    started_at: Option<&'r str>,
    target: Option<&'r str>,
    world: Option<&'r str>,
}

#[derive(Debug, Serialize)]
struct FlowEntry<'r> {
    bitrate_bps: Option<f64>,
    cause: Option<&'r str>,
    direction: &'r str,
    name: &'r str,
    transport: &'r str,
}

impl<'r> HistoryDocument<'r> {
    /// The runs in the given order.
    #[must_use]
    pub fn new(runs: &'r [RunHead]) -> Self {
        Self { runs: runs.iter().map(RunEntry::of).collect(), schema: SCHEMA }
    }
}

impl<'r> RunEntry<'r> {
    fn of(run: &'r RunHead) -> Self {
        let flow = |flow: &'r FlowHead| FlowEntry {
            bitrate_bps: flow.bitrate.map(Bitrate::bps),
            cause: flow.cause.as_deref(),
            direction: &flow.direction,
            name: &flow.name,
            transport: &flow.transport,
        };
        Self {
            events: run.event_count,
            flows: run.flows.iter().map(flow).collect(),
            id: &run.id,
            kind: if run.is_plan { "plan" } else { "test" },
            linerate: run.linerate.as_deref(),
            outcome: run.outcome,
            part_of: run.part_of.as_deref(),
            started_at: run.started_at.as_deref(),
            target: run.target.as_deref(),
            world: run.world.as_deref(),
        }
    }
}

/// The list as a table, rows in the given order; a sentence if it is empty.
///
/// Impossible results are marked, as in other formats.
#[must_use]
pub fn history_table(rows: &[RunRow], view: &TextLayout) -> String {
    if rows.is_empty() {
        return "no runs are archived yet\n".to_owned();
    }
    let words = |head, text: &dyn Fn(&RunRow) -> String| {
        Column::words(head, rows.iter().map(|row| Cell::plain(text(row))).collect())
    };
    let table = Table::new(vec![
        words("run", &|row| row.run.to_string()),
        words("started", &|row| row.started_at.to_string()),
        words("target", &|row| row.target.to_string()),
        words("flow", &|row| row.flow.to_string()),
        Column::numbers("bitrate", rows.iter().map(bitrate).collect()),
        words("cause", &|row| or_absent(row.cause.as_deref().map(str::to_owned))),
        words("outcome", &|row| row.outcome.as_deref().map_or("unfinished".to_owned(), str::to_owned)),
    ]);
    table.lines(view).join("\n") + "\n"
}

fn bitrate(row: &RunRow) -> Cell {
    match row.bitrate {
        Some(rate) if row.cause.as_deref() == Some("impossible") => {
            Cell::new(TextRole::Struck, format!("impossible: {rate}"))
        }
        rate => Cell::new(TextRole::Result, or_absent(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use linerate_model::flow::FlowId;

    #[test]
    fn runs_stand_one_below_the_other() {
        let row = RunRow {
            run: "7f3a".into(),
            started_at: "2026-11-21T10:00:00Z".into(),
            target: "server".into(),
            flow: "download".into(),
            bitrate: Bitrate::from_bps(941.4e6),
            cause: Some("link".into()),
            outcome: Some("completed".into()),
        };
        let impossible =
            RunRow { cause: Some("impossible".into()), bitrate: Bitrate::from_bps(1.2e9), ..row.clone() };
        let killed = RunRow { run: "90".into(), bitrate: None, cause: None, outcome: None, ..row.clone() };
        expect![[r#"
            run    started                target   flow                      bitrate   cause        outcome
            7f3a   2026-11-21T10:00:00Z   server   download               941.4 Mb/s   link         completed
            7f3a   2026-11-21T10:00:00Z   server   download   impossible: 1.200 Gb/s   impossible   completed
            90     2026-11-21T10:00:00Z   server   download                        -   -            unfinished
        "#]]
        .assert_eq(&history_table(&[row, impossible, killed], &TextLayout::default()));
        assert_eq!(history_table(&[], &TextLayout::default()), "no runs are archived yet\n");
    }

    /// A plan without flows, and one of its runs with a flow.
    fn heads() -> [RunHead; 2] {
        let plan = RunHead {
            id: "00000000000000aa".into(),
            target: Some("windows".into()),
            is_plan: true,
            event_count: 4,
            ..RunHead::default()
        };
        let flow = FlowHead {
            flow: FlowId(0),
            name: "ab".into(),
            direction: "upload".into(),
            transport: "tcp".into(),
            bitrate: Bitrate::from_bps(941.4e6),
            cause: Some("link".into()),
        };
        let run = RunHead {
            id: "00000000000000bb".into(),
            started_at: Some("2026-11-21T10:00:00Z".into()),
            target: Some("server".into()),
            part_of: Some("00000000000000aa".into()),
            world: Some("hosts".into()),
            linerate: Some("0.1.0".into()),
            outcome: Some(Outcome::Completed),
            event_count: 90,
            flows: vec![FlowHead { name: "ba".into(), bitrate: None, cause: None, ..flow.clone() }, flow],
            ..RunHead::default()
        };
        [plan, run]
    }

    #[test]
    fn a_run_has_a_row_for_each_flow_and_a_plan_one_with_its_name() {
        let [plan, run] = heads();
        let rows = RunRow::of(&plan, "aa", "");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].target.as_str(), &rows[0].outcome), ("plan windows", &None));
        let rows = RunRow::of(&run, "bb", "10:00");
        let seen: Vec<_> =
            rows.iter().map(|row| (row.run.as_str(), row.flow.as_str(), row.bitrate)).collect();
        assert_eq!(seen, [("bb", "ba", None), ("bb", "ab", Bitrate::from_bps(941.4e6))]);
        assert_eq!((rows[0].started_at.as_str(), rows[1].outcome.as_deref()), ("10:00", Some("completed")));
    }

    #[test]
    fn the_document_says_what_is_not_known() {
        let heads = heads();
        let json = serde_json::to_string(&HistoryDocument::new(&heads)).unwrap();
        let plan = r#"{"events":4,"flows":[],"id":"00000000000000aa","kind":"plan","linerate":null,"outcome":null,"part_of":null,"started_at":null,"target":"windows","world":null}"#;
        let ba = r#"{"bitrate_bps":null,"cause":null,"direction":"upload","name":"ba","transport":"tcp"}"#;
        let ab = r#"{"bitrate_bps":941400000.0,"cause":"link","direction":"upload","name":"ab","transport":"tcp"}"#;
        let run = format!(
            r#"{{"events":90,"flows":[{ba},{ab}],"id":"00000000000000bb","kind":"test","linerate":"0.1.0","outcome":"completed","part_of":"00000000000000aa","started_at":"2026-11-21T10:00:00Z","target":"server","world":"hosts"}}"#
        );
        assert_eq!(json, format!(r#"{{"runs":[{plan},{run}],"schema":"linerate.history/1"}}"#));
    }
}
