//! Version 1 of the event format, and what its names are now.

use serde_json::Value;

use crate::upgrade::{Rename, key, text, upgrade};

/// For each kind of event of version 1, what has another name now.
const KINDS: &[(&str, &[Rename])] = &[
    ("ceilings", &[key("", "ladder", "ceilings")]),
    (
        "books_closed",
        &[text("", "kind", "books_closed", "bytes_accounted"), key("", "books", "byte_accounting")],
    ),
    (
        "reconciled",
        &[
            key("steps.*", "place", "point"),
            key("steps.*", "least_bytes", "min_bytes"),
            key("steps.*", "most_bytes", "max_bytes"),
            key("steps.*", "open", "unaccounted"),
        ],
    ),
    (
        "caveat",
        &[
            text("caveat", "kind", "books_open", "bytes_unaccounted"),
            text("caveat", "kind", "rig_limited", "host_limited"),
            text("caveat", "kind", "neighbour", "concurrent_run"),
        ],
    ),
    ("inquired", &[text("", "kind", "inquired", "follow_up"), key("", "inquiry", "follow_up")]),
    ("verdict", &[text("verdict", "cause", "trunk", "lag"), text("also.*", "cause", "trunk", "lag")]),
    // The words of a point are those of the quantity `verdict`.
    ("point_summed", &[text("", "words", "trunk", "lag")]),
    ("latency", &[key("report", "over", "transport"), key("report", "course", "intervals")]),
    (
        "flow_ended",
        &[
            key("tally", "trouble", "error"),
            key("tally.kernel", "dialogue", "control"),
            key("tally.kernel.socket", "resent_bytes", "retransmitted_bytes"),
            key("tally.kernel.control", "resent_bytes", "retransmitted_bytes"),
            key("tally.kernel.interface", "over_ns", "duration_ns"),
            key("tally.kernel.interface.idle", "over_ns", "duration_ns"),
            METHOD_KEY,
            METHOD_ASKED,
            METHOD_USED,
        ],
    ),
    ("flow_opened", &[METHOD_KEY, METHOD_ASKED, METHOD_USED]),
    ("started", &[key("", "late_ns", "start_error_ns")]),
    ("trial_ended", &[key("runs.*", "late_ns", "start_error_ns")]),
    (
        "uncertainty",
        &[
            text("uncertainty", "main", "beside", "overhead"),
            text("uncertainty.contributions.*", "source", "beside", "overhead"),
        ],
    ),
    ("queued", &[key("", "place", "position")]),
    ("run_started", &[SCHEMA, key("spec.host", "unwatched", "no_sampling")]),
    ("plan_started", &[SCHEMA, key("flows.*", "background", "cross_traffic")]),
    ("grouped", &[key("", "background", "cross_traffic")]),
];

const METHOD_KEY: Rename = key("settings", "zerocopy", "io");
const METHOD_ASKED: Rename = text("settings.io", "asked", "msg", "zerocopy");
const METHOD_USED: Rename = text("settings.io", "effective", "msg", "zerocopy");
const SCHEMA: Rename = text("", "schema", "linerate.event/1", super::EVENT_SCHEMA);

/// Brings the body of an event to this version. A log may have events of both: a plan that an older version began and this
/// one resumed. So each event is upgraded by itself.
pub(super) fn upgrade_body(body: &mut Value) {
    let kind = body.get("kind").and_then(Value::as_str);
    if let Some((_, renames)) = KINDS.iter().find(|(name, _)| Some(*name) == kind) {
        upgrade(body, renames);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::Event;

    /// Logs that version 1 wrote, and what it called in other words than this version.
    const LOGS: &[&str] = &[
        include_str!("../../../../fixtures/v1/tcp.jsonl"),
        include_str!("../../../../fixtures/v1/udp.jsonl"),
        include_str!("../../../../fixtures/v1/lag.jsonl"),
        include_str!("../../../../fixtures/v1/no-sampling.jsonl"),
        include_str!("../../../../fixtures/v1/queued.jsonl"),
        include_str!("../../../../fixtures/v1/calibrated.jsonl"),
        include_str!("../../../../fixtures/v1/shared-server.jsonl"),
        include_str!("../../../../fixtures/v1/part.jsonl"),
        include_str!("../../../../fixtures/v1/plan.jsonl"),
    ];
    const TEXTS: &[(&str, &str)] = &[
        ("linerate.event/1", "linerate.event/2"),
        ("books_closed", "bytes_accounted"),
        ("inquired", "follow_up"),
        ("rig_limited", "host_limited"),
        ("neighbour", "concurrent_run"),
        ("trunk", "lag"),
        ("books_open", "bytes_unaccounted"),
    ];

    fn read(log: &str) -> Vec<Event> {
        log.lines().map(|line| Event::read(line).unwrap()).collect()
    }

    /// Every number, text and truth value of a JSON value, without the keys that lead there.
    fn leaves(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.values().for_each(|field| leaves(field, found)),
            Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
            Value::String(text) => {
                let now = TEXTS.iter().find(|(old, _)| old == text);
                found.push(now.map_or(text.as_str(), |(_, new)| new).to_owned());
            }
            other => found.push(other.to_string()),
        }
    }

    fn sorted_leaves(line: &str) -> Vec<String> {
        let mut found = Vec::new();
        leaves(&serde_json::from_str(line).unwrap(), &mut found);
        found.sort();
        found
    }

    #[test]
    fn every_figure_of_a_log_of_version_1_is_read() {
        for log in LOGS {
            for (line, event) in log.lines().zip(read(log)) {
                let again = serde_json::to_string(&event).unwrap();
                assert_eq!(sorted_leaves(line), sorted_leaves(&again), "{line}\n{again}");
                assert_eq!(Event::read(&again).unwrap(), event);
            }
        }
    }
}
