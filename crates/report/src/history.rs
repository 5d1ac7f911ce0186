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
//! let row = RunRow::of(&run, "7f3a", "2026-11-21 10:00:00");
//! assert!(history_table(&[row], &TextLayout::default()).contains("7f3a"));
//! # Ok::<(), serde_json::Error>(())
//! ```

use linerate_model::foreign_text::one_line;
use linerate_model::{Cause, Direction, FlowHead, ForeignText, Outcome, RunHead};
use linerate_units::Bitrate;
use serde::Serialize;

use crate::layout::{TextLayout, TextRole, wrap};
use crate::quantity::{ABSENT, in_unit, range};
use crate::table::{Cell, Column, Table};

/// One archived run, as in the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRow {
    /// Name of the run, or its shortest unique prefix.
    pub run: ForeignText,
    /// Name that the user gave it; empty without one.
    pub name: ForeignText,
    /// Wall-clock time of its start.
    pub started_at: ForeignText,
    /// The server as typed, or the plan.
    pub target: ForeignText,
    /// Its flows; empty for a plan.
    pub flows: Vec<FlowHead>,
    /// How the run ended; absent while it runs and if it was killed.
    pub outcome: Option<Outcome>,
    /// What users say about it afterwards.
    pub tags: Vec<ForeignText>,
}

impl RunRow {
    /// The row of a run. `name` is the run's name for the reader, and `started_at` its start in the reader's time
    /// zone.
    #[must_use]
    pub fn of(run: &RunHead, name: &str, started_at: &str) -> Self {
        let target = run.target.as_deref().unwrap_or_default();
        Self {
            run: name.into(),
            name: run.name.clone().unwrap_or_default(),
            started_at: started_at.into(),
            target: if run.is_plan { format!("plan {target}").into() } else { target.into() },
            flows: run.flows.clone(),
            outcome: run.outcome,
            tags: run.tags.clone(),
        }
    }

    /// The target, with the names of flows that say more than their direction.
    fn what(&self) -> String {
        let mut what = self.target.to_string();
        for flow in self.flows.iter().filter(|flow| flow.name != flow.direction) {
            what.push(' ');
            what.push_str(&flow.name);
        }
        what
    }

    /// The rates of one direction: the rate, or the lowest and the highest of several flows.
    fn rates(&self, direction: Direction) -> Cell {
        let flows: Vec<&FlowHead> =
            self.flows.iter().filter(|flow| flow.direction == *direction.name()).collect();
        // A figure that is not possible is not printed like one that is.
        if flows.iter().any(|flow| flow.cause.as_deref() == Some(Cause::Impossible.name())) {
            return Cell::new(TextRole::Struck, Cause::Impossible.name());
        }
        let rates = || flows.iter().filter_map(|flow| flow.bitrate.map(Bitrate::bps));
        let text = match rates().reduce(f64::min).zip(rates().reduce(f64::max)) {
            Some((low, high)) if low < high => range(Some("bit/s"), low, high),
            Some((rate, _)) => in_unit(Some("bit/s"), rate),
            None => ABSENT.to_owned(),
        };
        Cell::new(TextRole::Result, text)
    }

    /// How the run ended unless it was completed, and the causes of the verdicts, each once.
    fn verdict(&self) -> String {
        let mut causes: Vec<&str> = match self.outcome {
            Some(Outcome::Completed) => Vec::new(),
            Some(outcome) => vec![outcome.name()],
            None => vec!["unfinished"],
        };
        for cause in self.flows.iter().filter_map(|flow| flow.cause.as_deref()) {
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        if causes.is_empty() { ABSENT.to_owned() } else { causes.join(", ") }
    }
}

/// Version of the document.
const SCHEMA: &str = "linerate.history/1";

/// A list of archived runs. What is not known of a run is null.
#[derive(Debug, Serialize)]
pub struct HistoryDocument {
    runs: Vec<RunEntry>,
    schema: &'static str,
}

/// An archived run, as in a list.
// Keys in alphabetical order, as in earlier versions.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunEntry {
    /// Number of events in its log.
    events: u64,
    /// Its flows.
    flows: Vec<FlowEntry>,
    /// Its id.
    pub id: ForeignText,
    /// What it is.
    kind: RunKind,
    /// Version of linerate.
    linerate: Option<ForeignText>,
    /// The name that the user gave it.
    name: Option<ForeignText>,
    /// How it ended; null while it runs and if it was killed.
    pub outcome: Option<Outcome>,
    /// The plan's run that contains it.
    part_of: Option<ForeignText>,
    /// Wall-clock time of its start, RFC 3339.
    started_at: Option<ForeignText>,
    /// What users say about it afterwards.
    tags: Vec<ForeignText>,
    /// The server as typed; for a plan, its name.
    target: Option<ForeignText>,
    /// Where it ran.
    world: Option<ForeignText>,
}

/// What a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A test.
    Test,
    /// A plan, whose trials are runs too.
    Plan,
}

impl RunKind {
    /// Of a plan or a test.
    #[must_use]
    pub const fn of(is_plan: bool) -> Self {
        if is_plan { Self::Plan } else { Self::Test }
    }
}

/// A flow in a list of runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlowEntry {
    /// Goodput at the receiver.
    bitrate_bps: Option<f64>,
    /// Cause of the verdict.
    cause: Option<ForeignText>,
    /// Direction, seen from the client.
    direction: ForeignText,
    /// Its name.
    name: ForeignText,
    /// What carries it.
    transport: ForeignText,
}

impl HistoryDocument {
    /// The runs in the given order.
    #[must_use]
    pub fn new(runs: &[RunHead]) -> Self {
        Self { runs: runs.iter().map(RunEntry::of).collect(), schema: SCHEMA }
    }
}

impl RunEntry {
    /// The entry of a run.
    #[must_use]
    pub fn of(run: &RunHead) -> Self {
        let flow = |flow: &FlowHead| FlowEntry {
            bitrate_bps: flow.bitrate.map(Bitrate::bps),
            cause: flow.cause.clone(),
            direction: flow.direction.clone(),
            name: flow.name.clone(),
            transport: flow.transport.clone(),
        };
        Self {
            events: run.event_count,
            flows: run.flows.iter().map(flow).collect(),
            id: run.id.clone(),
            kind: RunKind::of(run.is_plan),
            linerate: run.linerate.clone(),
            name: run.name.clone(),
            outcome: run.outcome,
            part_of: run.part_of.clone(),
            started_at: run.started_at.clone(),
            tags: run.tags.clone(),
            target: run.target.clone(),
            world: run.world.clone(),
        }
    }
}

/// The list as a table, one line for each run.
///
/// Impossible results are marked, as in other formats.
#[must_use]
pub fn history_table(rows: &[RunRow], view: &TextLayout) -> String {
    let words = |head, text: &dyn Fn(&RunRow) -> String| {
        Column::words(head, rows.iter().map(|row| Cell::plain(text(row))).collect())
    };
    let rates =
        |head, direction| Column::numbers(head, rows.iter().map(|row| row.rates(direction)).collect());
    let named = rows.iter().any(|row| !row.name.is_empty());
    let name = || words("name", &|row| row.name.to_string()).at_least(MIN_TARGET_WIDTH);
    let mut columns = vec![words("run", &|row| row.run.to_string())];
    columns.extend(named.then(name));
    columns.extend([
        words("started", &|row| row.started_at.to_string()).of_importance(1),
        words("target", &RunRow::what).at_least(MIN_TARGET_WIDTH),
        rates("download", Direction::Download),
        rates("upload", Direction::Upload).of_importance(2),
        words("verdict", &RunRow::verdict).at_least(MIN_VERDICT_WIDTH),
    ]);
    let tagged = rows.iter().any(|row| !row.tags.is_empty());
    columns.extend(tagged.then(|| words("tags", &|row| joined(&row.tags)).of_importance(1)));
    Table::new(columns).one_line_rows(view).join("\n") + "\n"
}

fn joined(tags: &[ForeignText]) -> String {
    tags.iter().map(ForeignText::as_str).collect::<Vec<_>>().join(", ")
}

/// Which runs a list was to have.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryConditions<'a> {
    /// The name of a run, or its server.
    pub target: Option<&'a str>,
    /// The first day or time.
    pub since: Option<&'a str>,
    /// The plan that they are parts of.
    pub plan: Option<&'a str>,
    /// A tag.
    pub tag: Option<&'a str>,
}

impl HistoryConditions<'_> {
    /// In words, such as `against 'server'`.
    fn words(self) -> String {
        let target = self.target.map(|target| format!("named or against '{}'", one_line(target)));
        let since = self.since.map(|since| format!("from {since} or later"));
        let plan = self.plan.map(|plan| format!("of plan {}", one_line(plan)));
        let tag = self.tag.map(|tag| format!("tagged '{}'", one_line(tag)));
        let words: Vec<String> = [target, since, plan, tag].into_iter().flatten().collect();
        if words.is_empty() { "shown".to_owned() } else { words.join(" and ") }
    }
}

/// The text for a list without any run: there are none, or none of `archived` is what was `wanted`. `hint` is what may
/// help, such as `; did you mean 'server'?`.
#[must_use]
pub fn empty_history(wanted: HistoryConditions<'_>, archived: u64, hint: &str, view: &TextLayout) -> String {
    let wanted = wanted.words();
    let hint = if hint.is_empty() { "; `linerate history` lists them" } else { hint };
    let sentence = match archived {
        0 => "no runs are archived yet".to_owned(),
        1 => format!("the only archived run is not {wanted}{hint}"),
        _ => format!("none of the {archived} archived runs is {wanted}{hint}"),
    };
    wrap(&sentence, view.columns()).join("\n") + "\n"
}

/// Narrowest target, enough for most names and addresses.
const MIN_TARGET_WIDTH: usize = 12;
/// Narrowest verdict, enough for every outcome and most causes.
const MIN_VERDICT_WIDTH: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use linerate_model::flow::FlowId;

    fn flow(direction: Direction, bps: f64, cause: &str) -> FlowHead {
        FlowHead {
            flow: FlowId(0),
            name: direction.name().into(),
            direction: direction.name().into(),
            transport: "tcp".into(),
            bitrate: Bitrate::from_bps(bps),
            cause: Some(cause.into()),
        }
    }

    fn rows() -> [RunRow; 3] {
        let row = RunRow {
            run: "7f3a".into(),
            name: ForeignText::default(),
            started_at: "2026-11-21 10:00".into(),
            target: "a-server-with-a-long-name.example.org".into(),
            flows: vec![
                flow(Direction::Download, 941.4e6, "link"),
                flow(Direction::Upload, 620e6, "sender_window"),
            ],
            outcome: Some(Outcome::Completed),
            tags: Vec::new(),
        };
        let impossible = RunRow {
            flows: vec![
                flow(Direction::Download, 1.2e9, "impossible"),
                flow(Direction::Upload, 941.4e6, "link"),
            ],
            ..row.clone()
        };
        let killed = RunRow {
            run: "90".into(),
            target: "server".into(),
            flows: Vec::new(),
            outcome: None,
            ..row.clone()
        };
        [row, impossible, killed]
    }

    #[test]
    fn a_run_has_one_line_at_any_width() {
        let table = |width| history_table(&rows(), &TextLayout { width, ..TextLayout::default() });
        expect![[r#"
            run    started            target                                    download       upload   verdict
            7f3a   2026-11-21 10:00   a-server-with-a-long-name.example.org   941.4 Mb/s   620.0 Mb/s   link, sender_window
            7f3a   2026-11-21 10:00   a-server-with-a-long-name.example.org   impossible   941.4 Mb/s   impossible, link
            90     2026-11-21 10:00   server                                           -            -   unfinished
        "#]]
        .assert_eq(&table(130));
        expect![[r#"
            run   started           target          download      upload  verdict
            7f3a  2026-11-21 10:00  a-server-w..  941.4 Mb/s  620.0 Mb/s  link, sender_win..
            7f3a  2026-11-21 10:00  a-server-w..  impossible  941.4 Mb/s  impossible, link
            90    2026-11-21 10:00  server                 -           -  unfinished
        "#]]
        .assert_eq(&table(80));
        for width in 40..140 {
            let text = table(width);
            assert_eq!(text.lines().count(), 4, "{text}");
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
        }
    }

    #[test]
    fn names_have_a_column_where_a_run_has_one() {
        let [first, ..] = rows();
        let named = RunRow { name: "before".into(), ..first.clone() };
        let table = history_table(&[named, first], &TextLayout { width: 100, ..TextLayout::default() });
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..3], ["run", "name", "started"]);
        assert_eq!((lines[1][1], lines[2][1]), ("before", "2026-11-21"));
    }

    #[test]
    fn tags_have_a_column_where_a_run_has_one() {
        let [first, ..] = rows();
        let tagged = RunRow { tags: vec!["keep".into(), "rack-4".into()], ..first.clone() };
        let table = history_table(&[tagged, first], &TextLayout { width: 160, ..TextLayout::default() });
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].ends_with("tags") && lines[1].ends_with("   keep, rack-4"), "{table}");
    }

    #[test]
    fn a_list_without_a_match_says_how_many_runs_there_are() {
        let nowhere = HistoryConditions { target: Some("nowhere"), ..HistoryConditions::default() };
        let text = |archived, hint| empty_history(nowhere, archived, hint, &TextLayout::default());
        assert_eq!(text(0, ""), "no runs are archived yet\n");
        assert_eq!(
            text(12, ""),
            "none of the 12 archived runs is named or against 'nowhere'; `linerate history` lists them\n"
        );
        assert_eq!(
            text(1, "; known are server"),
            "the only archived run is not named or against 'nowhere'; known are server\n"
        );
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
    fn a_plan_has_its_name_and_a_flow_its_own_where_it_says_more() {
        let [plan, run] = heads();
        let row = RunRow::of(&plan, "aa", "");
        assert_eq!((row.target.as_str(), &row.outcome), ("plan windows", &None));
        let row = RunRow::of(&run, "bb", "10:00");
        assert_eq!(row.what(), "server ba ab");
        let listed = history_table(&[row], &TextLayout::default());
        assert!(listed.contains("941.4 Mb/s   link"), "{listed}");
    }

    #[test]
    fn several_flows_of_a_direction_are_a_range() {
        let row = RunRow {
            flows: vec![flow(Direction::Upload, 94e6, "link"), flow(Direction::Upload, 80e6, "link")],
            ..RunRow::default()
        };
        assert_eq!(history_table(&[row], &TextLayout::default()).matches("80.00 to 94.00 Mb/s").count(), 1);
    }

    #[test]
    fn the_document_says_what_is_not_known() {
        let heads = heads();
        let json = serde_json::to_string(&HistoryDocument::new(&heads)).unwrap();
        let plan = r#"{"events":4,"flows":[],"id":"00000000000000aa","kind":"plan","linerate":null,"name":null,"outcome":null,"part_of":null,"started_at":null,"tags":[],"target":"windows","world":null}"#;
        let ba = r#"{"bitrate_bps":null,"cause":null,"direction":"upload","name":"ba","transport":"tcp"}"#;
        let ab = r#"{"bitrate_bps":941400000.0,"cause":"link","direction":"upload","name":"ab","transport":"tcp"}"#;
        let run = format!(
            r#"{{"events":90,"flows":[{ba},{ab}],"id":"00000000000000bb","kind":"test","linerate":"0.1.0","name":null,"outcome":"completed","part_of":"00000000000000aa","started_at":"2026-11-21T10:00:00Z","tags":[],"target":"server","world":"hosts"}}"#
        );
        assert_eq!(json, format!(r#"{{"runs":[{plan},{run}],"schema":"linerate.history/1"}}"#));
    }
}
