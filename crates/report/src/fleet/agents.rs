//! Agents that carry out the calendar by themselves.

use linerate_model::calendar::FleetAgent;

use super::{LocalTimes, MIN_WORDS};
use crate::layout::{TextLayout, TextRole, wrap};
use crate::table::{Cell, Column, Table};

pub(super) fn table(agents: &[FleetAgent], times: LocalTimes<'_>) -> Table {
    let words = |head, text: &dyn Fn(&FleetAgent) -> String| {
        Column::words(head, agents.iter().map(|agent| Cell::plain(text(agent))).collect())
    };
    let state = agents.iter().map(|agent| match state(agent) {
        "ready" => Cell::new(TextRole::Good, "ready"),
        other => Cell::new(TextRole::Warning, other),
    });
    Table::new(vec![
        words("agent", &|agent| agent.name.clone()),
        Column::words("state", state.collect()),
        words("heard", &|agent| times.or_dash(agent.seen)),
        words("calendar until", &|agent| times.or_dash(Some(agent.until).filter(|_| agent.acked > 0))),
        words("results", &|agent| agent.waiting.to_string()).of_importance(1),
        words("linerate", &|agent| agent.program.to_string()).of_importance(1),
        words("note", &|agent| agent.note.to_string()).at_least(MIN_WORDS),
    ])
}

/// What an agent is, in a word.
pub(super) fn state(agent: &FleetAgent) -> &'static str {
    match (agent.revoked, agent.seen) {
        (Some(_), _) => "revoked",
        (None, None) => "never heard",
        (None, Some(_)) if !agent.note.is_empty() => "full",
        (None, Some(_)) if agent.acked < agent.version => "behind",
        (None, Some(_)) => "ready",
    }
}

pub(super) fn enrolled(host: &str, key: &str, written: &[String], view: &TextLayout) -> Vec<String> {
    let mut lines = vec![format!("{host} enrolled with the key {key}")];
    for file in written {
        lines.extend(wrap(&format!("wrote {file}"), view.columns()));
    }
    lines
}

pub(super) fn revoked(host: &str, written: &[String], view: &TextLayout) -> Vec<String> {
    let mut lines =
        wrap(&format!("{host} revoked; what it has in its calendar counts until that ends"), view.columns());
    for file in written {
        lines.extend(wrap(&format!("wrote {file}; reload nats-server"), view.columns()));
    }
    lines
}
