//! The contents of a page, which stay in sight: links to its parts, and to its runs by their names.

use maud::{Markup, html};

/// Parts that a page may have, by the name of their element, in their order.
const PARTS: &[(&str, &str)] = &[
    ("verdict", "Verdict"),
    ("together", "Side by side"),
    ("repeats", "Repeats"),
    ("results", "Results"),
    ("method", "Method"),
    ("curves", "Curves"),
    ("time", "Over time"),
    ("latency", "Latency"),
    ("matrices", "Matrices"),
    ("processors", "Processors"),
    ("evidence", "Evidence"),
    ("intervals", "Intervals"),
    ("origin", "Origin"),
    ("trials", "Trials"),
    ("the-plan", "The plan"),
    ("runs", "Runs"),
];

/// Fewest parts for which contents are of use.
const MIN_PARTS: usize = 3;

/// Links to the parts that `body` has, and to the runs, by the names of their elements.
pub(super) fn markup(body: &str, runs: &[(String, String)]) -> Markup {
    let parts: Vec<_> = PARTS.iter().filter(|(id, _)| body.contains(&format!(" id=\"{id}\""))).collect();
    html! {
        @if parts.len() >= MIN_PARTS {
            nav.contents aria-label="Contents" {
                ul { @for (id, words) in &parts { li { a href=(format!("#{id}")) { (words) } } } }
                @if !runs.is_empty() {
                    details {
                        summary { "All runs" }
                        ol { @for (id, words) in runs { li { a href=(format!("#{id}")) { (words) } } } }
                    }
                }
            }
        }
    }
}
