//! Agents that carry out the calendar by themselves.

use linerate_model::calendar::{FleetAgent, UnixTime};

use super::{LocalTimes, MIN_WORDS};
use crate::layout::{TextLayout, TextRole, wrap};
use crate::table::{Cell, Column, Table};

pub(super) fn table(agents: &[FleetAgent], now: UnixTime, times: LocalTimes<'_>) -> Table {
    let words = |head, text: &dyn Fn(&FleetAgent) -> String| {
        Column::words(head, agents.iter().map(|agent| Cell::plain(text(agent))).collect())
    };
    let state = agents.iter().map(|agent| match state(agent, now) {
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

/// What an agent is at `now`, in a word.
pub(super) fn state(agent: &FleetAgent, now: UnixTime) -> &'static str {
    match (agent.revoked, agent.seen) {
        (Some(_), _) => "revoked",
        (None, None) => "never heard",
        (None, Some(_)) if agent.is_silent(now) => "silent",
        (None, Some(_)) if !agent.note.is_empty() => "full",
        (None, Some(_)) if agent.acked < agent.version => "behind",
        (None, Some(_)) => "ready",
    }
}

pub(super) fn enrolled(
    host: &str,
    key: &str,
    written: &[String],
    reload_broker: bool,
    view: &TextLayout,
) -> Vec<String> {
    let mut lines = vec![format!("{host} enrolled with the key {key}")];
    for file in written {
        lines.extend(wrap(&format!("wrote {file}"), view.columns()));
    }
    if reload_broker {
        lines.push("reload nats-server, so that it knows the agent".to_owned());
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

pub(super) fn removed(host: &str, view: &TextLayout) -> Vec<String> {
    wrap(
        &format!("the agent of {host} was removed; the coordinator measures from {host} itself"),
        view.columns(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Span;

    #[test]
    fn an_agent_that_is_not_heard_is_not_ready() {
        let now = UnixTime::from_ms(1_800_000_000_000);
        let agent = FleetAgent {
            name: "a".to_owned(),
            key: "UKEY".to_owned(),
            enrolled: now,
            revoked: None,
            session: String::new(),
            seen: None,
            program: "1".into(),
            note: "".into(),
            waiting: 0,
            version: 1,
            until: now,
            acked: 1,
            lease_until: now,
            lost: false,
        };
        let heard = |before, change: fn(&mut FleetAgent)| {
            let mut agent = FleetAgent { seen: Some(now.before(Span::from_secs(before))), ..agent.clone() };
            change(&mut agent);
            state(&agent, now)
        };
        assert_eq!(state(&agent, now), "never heard");
        assert_eq!(heard(119, |_| ()), "ready");
        assert_eq!(heard(120, |_| ()), "silent");
        assert_eq!(heard(30, |agent| agent.version = 2), "behind");
        assert_eq!(heard(30, |agent| agent.note = "disk".into()), "full");
        assert_eq!(heard(7200, |agent| agent.revoked = Some(agent.enrolled)), "revoked");
    }

    #[test]
    fn an_enrolment_says_that_the_broker_has_to_read_its_users() {
        let said = |reload| enrolled("a", "UKEY", &["users.conf".to_owned()], reload, &TextLayout::default());
        assert!(said(true).join(" ").contains("reload nats-server"));
        assert!(!said(false).join(" ").contains("reload"));
    }
}
