//! Tables of a plan's method: numbers with their unit, followed by intervals.

use linerate_model::{MethodCell, MethodColumn, MethodTable};

use crate::markdown;
use crate::quantity::{ABSENT, in_unit, within};
use crate::table::{Cell, Column, Table};

/// The table for a page. Empty columns are left out.
pub(crate) fn table(method: &MethodTable) -> Table {
    let cells = |at: usize| method.rows.iter().map(move |row| row.cells.get(at));
    let is_filled = |cell: &MethodCell| cell.text.is_some() || cell.value.is_some();
    let columns = method.columns.iter().enumerate();
    let filled = columns.filter(|(at, _)| cells(*at).flatten().any(is_filled));
    let columns = filled.map(|(at, column)| {
        let shown = cells(at)
            .map(|cell| Cell::plain(cell.map_or_else(|| ABSENT.to_owned(), |cell| show(column, cell))));
        Column::named(column.name.to_string(), shown.collect(), column.unit.is_some())
    });
    Table::new(columns.collect())
}

/// A cell as text.
fn show(column: &MethodColumn, cell: &MethodCell) -> String {
    let unit = column.unit.as_deref();
    let ends = cell.low.zip(cell.high);
    let number = cell.value.map(|value| {
        let number = ends.map_or_else(|| in_unit(unit, value), |ends| within(unit, value, ends));
        if cell.at_least { format!("at least {number}") } else { number }
    });
    match (number, cell.text.as_deref().map(str::to_owned)) {
        (Some(number), Some(text)) => format!("{number}, {text}"),
        (number, text) => number.or(text).unwrap_or_else(|| ABSENT.to_owned()),
    }
}

/// The table for a ticket, as a section.
pub(super) fn section(method: &MethodTable) -> String {
    let mut out = format!("\n## {}\n", markdown::escaped(&method.title));
    if !method.about.is_empty() {
        out += &format!("\n{}\n", markdown::escaped(&method.about));
    }
    if !method.rows.is_empty() {
        out += &format!("\n{}", markdown::table(&table(method).texts()));
    }
    if !method.notes.is_empty() {
        out.push('\n');
    }
    for note in &method.notes {
        out += &format!("- {}\n", markdown::escaped(note));
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::expect;
    use linerate_model::{MethodRow, PlanRecord};

    use super::*;
    use crate::TextLayout;
    use crate::plan::{markdown as report, text};

    /// A table with every kind of cell.
    pub(crate) fn frames() -> MethodTable {
        let column =
            |name: &str, unit: Option<&str>| MethodColumn { name: name.into(), unit: unit.map(Into::into) };
        let row = |cells: Vec<MethodCell>| MethodRow { point: None, cells };
        let spread = MethodCell {
            value: Some(81_274.0),
            low: Some(81_000.0),
            high: Some(81_274.0),
            ..MethodCell::default()
        };
        let burst = MethodCell { at_least: true, ..MethodCell::number(65_536.0) };
        MethodTable {
            title: "Throughput (26.1)".into(),
            about: "The highest rate at which nothing is lost\u{1b}[2J, by frame size.".into(),
            columns: vec![
                column("frame", None),
                column("rate", Some("frames/s")),
                column("carries", Some("bit/s")),
                column("delay", Some("%")),
                column("burst", Some("bytes")),
                column("never measured", Some("ns")),
                column("limit", None),
            ],
            rows: vec![
                row(vec![
                    MethodCell::text("1518"),
                    spread,
                    MethodCell { text: Some("the line".into()), ..MethodCell::number(986.99e6) },
                    MethodCell::number(28.0),
                    burst,
                    MethodCell::default(),
                    MethodCell::text("link\u{7}"),
                ]),
                row(vec![MethodCell::text("128")]),
            ],
            notes: vec!["A host with software sends.".into()],
        }
    }

    fn record() -> PlanRecord {
        PlanRecord { run: "f00d".into(), tables: vec![frames()], ..PlanRecord::default() }
    }

    #[test]
    fn a_table_is_on_a_page_with_its_title_and_its_notes() {
        let page = text(&record(), &TextLayout { width: 120, ..TextLayout::default() });
        expect![[r#"
            plan f00d

            Throughput (26.1)
              The highest rate at which nothing is lost?[2J, by frame size.

            frame                              rate                carries     delay             burst   limit
            1518    81274 frames/s (81000 to 81274)   987.0 Mb/s, the line   28.00 %   at least 64 KiB   link?
            128                                   -                      -         -                 -   -

              A host with software sends.

            This plan is unfinished: it is still running, or was killed.
        "#]]
        .assert_eq(&page);
    }

    #[test]
    fn a_table_is_a_section_of_a_ticket() {
        let page = report(&record());
        let section = &page[page.find("## ").unwrap()..page.find("## Run").unwrap()];
        expect![[r#"
            ## Throughput (26.1)

            The highest rate at which nothing is lost?\[2J, by frame size.

            | frame | rate | carries | delay | burst | limit |
            | --- | --- | --- | --- | --- | --- |
            | 1518 | 81274 frames/s (81000 to 81274) | 987.0 Mb/s, the line | 28.00 % | at least 64 KiB | link? |
            | 128 | - | - | - | - | - |

            - A host with software sends.

            - This plan is unfinished: it is still running, or was killed.

        "#]].assert_eq(section);
    }
}
