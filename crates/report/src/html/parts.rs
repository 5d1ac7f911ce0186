//! Parts that several sections of the page use.

use linerate_model::{Caveat, ForeignText};
use maud::{Markup, html};

use super::chart::Chart;
use crate::layout::TextRole;
use crate::table::Table;

/// A table with more columns is printed in landscape format.
const MAX_PORTRAIT_COLUMNS: usize = 9;

/// The charts of a page in order. A figure refers to its chart by number.
#[derive(Debug, Default)]
pub(super) struct PageCharts(pub(super) Vec<Chart>);

impl PageCharts {
    /// A figure into which the script draws. Without the script it shows a description.
    pub(super) fn place(&mut self, chart: Option<Chart>) -> Markup {
        let Some(chart) = chart else { return html! {} };
        let number = self.0.len();
        let markup = html! {
            figure.chart data-chart=(number) {
                figcaption { (chart.title) }
                div.plot { noscript { "The script of the page draws this chart, but scripts are disabled." } }
                @if !chart.notes.is_empty() { p.faint { (chart.notes.join(" ")) } }
            }
        };
        self.0.push(chart);
        markup
    }
}

/// The first heading of a page. The description of the contents is below a heading that the user chose.
pub(super) fn heading(chosen: Option<&ForeignText>, contents: &str) -> Markup {
    html! {
        h1 { (chosen.map_or(contents, ForeignText::as_str)) }
        @if chosen.is_some() { p.about { (contents) } }
    }
}

/// A terminal table as HTML.
pub(super) fn table(table: &Table, caption: &str) -> Markup {
    let (heads, rows) = (table.heads(), table.marked());
    html! {
        div.wide.many[heads.len() > MAX_PORTRAIT_COLUMNS] { table {
            caption { (caption) }
            thead { tr { @for (head, number) in &heads { th.number[*number] scope="col" { (head) } } } }
            tbody { @for row in &rows { tr {
                @for ((ink, text), (_, number)) in row.iter().zip(&heads) {
                    td.number[*number] { (inked(*ink, text.trim())) }
                }
            } } }
        } }
    }
}

/// Heads and rows as an HTML table. The first column names the rows, the others are numbers.
pub(super) fn plain_table(rows: &[Vec<String>], caption: &str) -> Markup {
    let Some((heads, body)) = rows.split_first() else { return html! {} };
    html! {
        div.wide.many[heads.len() > MAX_PORTRAIT_COLUMNS] { table {
            caption { (caption) }
            thead { tr { @for (at, head) in heads.iter().enumerate() { th.number[at > 0] scope="col" { (head) } } } }
            tbody { @for row in body { tr {
                @for (at, cell) in row.iter().enumerate() {
                    @if at == 0 { th scope="row" { (cell) } } @else { td.number { (cell) } }
                }
            } } }
        } }
    }
}

/// A cell in the colour of its meaning.
pub(super) fn inked(ink: TextRole, text: &str) -> Markup {
    html! {
        @match ink {
            TextRole::Result => strong { (text) },
            TextRole::Struck => span.bad { s { (text) } },
            TextRole::Warning => span.warn { (text) },
            TextRole::Good => span.good { (text) },
            TextRole::Plain | TextRole::Faint => (text),
        }
    }
}

/// Labels and texts as a list.
pub(super) fn pairs(pairs: &[(String, String)]) -> Markup {
    html! {
        @if !pairs.is_empty() {
            dl { @for (label, text) in pairs { div { dt { (label) } dd { (text) } } } }
        }
    }
}

/// A list of caveats.
pub(super) fn caveat_list(caveats: &[Caveat]) -> Markup {
    html! {
        @if !caveats.is_empty() {
            ul.caveats { @for caveat in caveats { li { strong { "⚠ caveat: " } (caveat.text.to_string()) } } }
        }
    }
}

/// How a run ended, unless it was completed.
pub(super) fn ending(outcome: Option<linerate_model::Outcome>, reason: Option<&str>) -> Markup {
    use linerate_model::Outcome::{Completed, Failed, Interrupted};
    let word = match outcome {
        Some(Completed) => return html! {},
        Some(Interrupted) => "interrupted; the figures cover what was measured",
        Some(Failed) => "failed; the figures cover what was measured",
        None => "not finished: the log has no end; the run is still in progress or was killed",
    };
    html! { p.warn { "⚠ " (word) @if let Some(reason) = reason { ": " (reason.to_string()) } } }
}
