//! The list of archived runs.

use linerate_model::ForeignText;
use linerate_units::Bitrate;

use crate::layout::{Ink, View};
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

/// The list as a table, rows in the given order; a sentence if it is empty.
///
/// Impossible results are marked, as in other formats.
#[must_use]
pub fn history_table(rows: &[RunRow], view: &View) -> String {
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
            Cell::new(Ink::Struck, format!("impossible: {rate}"))
        }
        rate => Cell::new(Ink::Result, or_absent(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

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
        .assert_eq(&history_table(&[row, impossible, killed], &View::default()));
        assert_eq!(history_table(&[], &View::default()), "no runs are archived yet\n");
    }
}
