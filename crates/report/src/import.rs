//! The documents of `linerate import`: which runs files contained, and what could not be read.
//!
//! ```
//! use linerate_report::import::{ImportDocument, ImportRow};
//!
//! let row = ImportRow {
//!     run: "7f3a0c55d2b41e98".into(),
//!     tool: "iperf3".into(),
//!     file: "monday.json".to_owned(),
//!     ..ImportRow::default()
//! };
//! let json = serde_json::to_string(&ImportDocument::new(&[&row], &[]))?;
//! assert!(json.contains(r#""id":"7f3a0c55d2b41e98","new":true"#));
//! # Ok::<(), serde_json::Error>(())
//! ```

use linerate_model::foreign_text::one_line;
use linerate_model::import::Unread;
use linerate_model::{ForeignText, RunRecord};
use serde::Serialize;

/// Version of the document.
const SCHEMA: &str = "linerate.import/1";

/// An imported run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportRow {
    /// Its id.
    pub run: ForeignText,
    /// The program that made the measurement.
    pub tool: ForeignText,
    /// Its version, if the file contains it.
    pub version: Option<ForeignText>,
    /// The file, as the user named it.
    pub file: String,
    /// Whether the archive already contained it.
    pub known: bool,
}

impl ImportRow {
    /// The run as one line of text. `name` is its name in the archive for the reader.
    #[must_use]
    pub fn line(&self, name: &str, record: &RunRecord) -> String {
        let how = if self.known { "was already archived as" } else { "imported as" };
        let version = self.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let line = format!("{}: {}{version} {how} {name}: {}", self.file, self.tool, figures(record));
        one_line(&line) + "\n"
    }
}

/// The rates of a run.
fn figures(record: &RunRecord) -> String {
    let flows: Vec<String> = record
        .flows
        .iter()
        .map(|flow| {
            let sent = flow.sender.as_ref().map(|tally| format!("{} sent", tally.bitrate));
            let rate = flow.bitrate().map(|rate| rate.to_string()).or(sent);
            format!("{} {}", flow.plan.name, rate.unwrap_or_else(|| "without a figure".to_owned()))
        })
        .collect();
    match (&record.reason, flows.is_empty()) {
        (Some(reason), true) => reason.to_string(),
        (None, true) => "no figure".to_owned(),
        (_, false) => flows.join(", "),
    }
}

/// A part of a file that could not be read, as one line of text.
#[must_use]
pub fn unread_line(file: &str, unread: &Unread) -> String {
    let column = unread.column.map(|column| format!(", column {column}")).unwrap_or_default();
    one_line(&format!("{file}: line {}{column}: {}", unread.line, unread.why))
}

/// The imported runs, and the parts of files that could not be read. What is not known is null.
#[derive(Debug, Serialize)]
pub struct ImportDocument<'r> {
    runs: Vec<ImportedRunEntry<'r>>,
    schema: &'static str,
    unread: Vec<UnreadEntry<'r>>,
}

// Keys in alphabetical order, as in earlier versions.
#[derive(Debug, Serialize)]
struct ImportedRunEntry<'r> {
    file: &'r str,
    id: &'r str,
    new: bool,
    tool: &'r str,
    version: Option<&'r str>,
}

#[derive(Debug, Serialize)]
struct UnreadEntry<'r> {
    column: Option<u32>,
    file: &'r str,
    line: u32,
    why: &'r str,
}

impl<'r> ImportDocument<'r> {
    /// The runs, and the unread parts with their files, in the given order.
    #[must_use]
    pub fn new(runs: &[&'r ImportRow], unread: &'r [(String, Unread)]) -> Self {
        let run = |row: &&'r ImportRow| ImportedRunEntry {
            file: &row.file,
            id: &row.run,
            new: !row.known,
            tool: &row.tool,
            version: row.version.as_deref(),
        };
        let part = |(file, unread): &'r (String, Unread)| UnreadEntry {
            column: unread.column,
            file,
            line: unread.line,
            why: &unread.why,
        };
        Self {
            runs: runs.iter().map(run).collect(),
            schema: SCHEMA,
            unread: unread.iter().map(part).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::flow::FlowId;
    use linerate_model::{Body, Direction, Outcome, Side, TestSpec, Transport};

    use super::*;
    use crate::samples_of_runs::{ended, log, opening, planned, tally};

    fn row() -> ImportRow {
        ImportRow {
            run: "00000000000000bb".into(),
            tool: "iperf3".into(),
            version: Some("3.12".into()),
            file: "a\u{1b}[2J.json".to_owned(),
            known: false,
        }
    }

    #[test]
    fn the_document_names_runs_and_unread_parts() {
        let known = ImportRow { version: None, known: true, file: "b".to_owned(), ..row() };
        let unread = Unread { line: 6, column: None, why: "no number".into() };
        let unread = [("a".to_owned(), unread)];
        let document = ImportDocument::new(&[&known], &unread);
        assert_eq!(
            serde_json::to_string(&document).unwrap(),
            r#"{"runs":[{"file":"b","id":"00000000000000bb","new":false,"tool":"iperf3","version":null}],"schema":"linerate.import/1","unread":[{"column":null,"file":"a","line":6,"why":"no number"}]}"#
        );
    }
    fn record(bodies: Vec<(u16, Body)>) -> RunRecord {
        RunRecord::fold(&log([opening(TestSpec::default()), bodies].concat()))
    }

    #[test]
    fn a_line_shows_the_count_of_each_flow_as_what_it_is_and_cannot_control_the_terminal() {
        let upload = planned(0, Direction::Upload, Transport::Tcp);
        let sent = record(vec![upload.clone(), ended(FlowId(0), Side::Sender, tally(780.3e6))]);
        let line = row().line("bb", &sent);
        assert_eq!(line, "a?[2J.json: iperf3 3.12 imported as bb: upload 780.3 Mb/s sent\n");
        let known = ImportRow { known: true, version: None, file: "b".to_owned(), ..row() };
        let line = known.line("bb", &record(vec![upload]));
        assert_eq!(line, "b: iperf3 was already archived as bb: upload without a figure\n");
    }

    #[test]
    fn a_run_without_a_flow_says_why() {
        let reason = Some("connection refused".into());
        let failed = record(vec![(0, Body::RunEnded { outcome: Outcome::Failed, reason })]);
        assert!(row().line("bb", &failed).ends_with(" imported as bb: connection refused\n"));
        assert!(row().line("bb", &record(Vec::new())).ends_with(": no figure\n"));
    }

    #[test]
    fn an_unread_part_is_one_line_with_its_place() {
        let unread = Unread { line: 6, column: Some(12), why: "no number".into() };
        assert_eq!(unread_line("a\nb", &unread), "a b: line 6, column 12: no number");
    }
}
