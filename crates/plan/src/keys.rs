//! Every key of a plan, declared once: messages, schema and reference are generated from these tables.

use std::collections::BTreeMap;

use linerate_config::{
    ConfigContent, ConfigEntry, ConfigTable, ConfigValue, Mistakes, SourcePosition, check_name, hint,
};

use crate::kind::{PlanValueKind, SettingValue};
use crate::method::METHODS;

/// One key of a table.
#[derive(Debug)]
pub struct PlanKey {
    /// Its name.
    pub(crate) name: &'static str,
    /// Kind of its value.
    pub(crate) kind: PlanValueKind,
    /// The default as written in a file, or a description of it.
    pub(crate) default: &'static str,
    /// Its meaning.
    pub(crate) help: &'static str,
}

/// A key: its name, the kind of its value, its default as written in a file or described, and its meaning.
#[must_use]
pub const fn key(
    name: &'static str,
    kind: PlanValueKind,
    default: &'static str,
    help: &'static str,
) -> PlanKey {
    PlanKey { name, kind, default, help }
}

/// Schema of a list of axis names, or of lists of them.
const LISTS: &str = r#"{"type":"array","items":{"type":"array","items":{"type":"string"},"minItems":2}}"#;
/// Schema of a list of tables of axes and values.
const PARTS: &str = r##"{"type":"array","items":{"$ref":"#/$defs/part"}}"##;
const PART: &str = r##"{"$ref":"#/$defs/part"}"##;
const ASSERTIONS: &str =
    r##"{"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/assertion"}]}}"##;
const KNOBS: &str = r##"{"$ref":"#/$defs/test"}"##;
const SERIES: &str = r##"{"$ref":"#/$defs/series"}"##;
const SCALARS: &str = r#"{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}"#;
const VALUE: &str = r#"{"type":["string","number","boolean"]}"#;
const VALUES: &str = r#"{"type":"array","items":{"type":["string","number","boolean"]},"minItems":1}"#;

/// Keys outside any table.
pub(crate) const HEAD: &[PlanKey] = &[
    key("name", PlanValueKind::Name, "the file's name", "Name of the plan."),
    key("about", PlanValueKind::Text, "nothing", "Purpose of the plan, in one line."),
    key(
        "method",
        PlanValueKind::Choice(METHODS),
        "none",
        "Measurement method that the plan follows; the results are also shown in the tables of that method.",
    ),
    key(
        "include",
        PlanValueKind::Texts,
        "none",
        "Other plan files in the same folder. Their keys apply where this file does not set them; later \
         files override earlier ones.",
    ),
    key("repeats", PlanValueKind::Whole(1, 1000), "1", "Number of trials at each point."),
    key(
        "until",
        PlanValueKind::Share,
        "`repeats` alone",
        "Repeat a point until the 95 % confidence interval of the median of each flow's goodput is no wider \
         than this share of the median; at least 6 trials.",
    ),
    key("max_repeats", PlanValueKind::Whole(6, 1000), "30", "Maximum number of trials with `until`."),
    key(
        "order",
        PlanValueKind::Choice(&["interleaved", "sequential", "shuffled"]),
        "\"interleaved\"",
        "Order of the trials. `interleaved`: rounds through all points, every second round backwards, so \
         that slow drift affects all points equally. `sequential`: all trials of a point before the next \
         point. `shuffled`: random.",
    ),
    key(
        "seed",
        PlanValueKind::Whole(0, u64::MAX),
        "1",
        "Seed of `shuffled`; the same seed gives the same order.",
    ),
    key("pause", PlanValueKind::Time, "\"1s\"", "Pause between two trials."),
    key(
        "distance",
        PlanValueKind::Whole(1, 1_000_000),
        "unknown",
        "Length of the path in kilometres. It gives the smallest possible round-trip time (speed of light) \
         and the land speed.",
    ),
    key(
        "max_time",
        PlanValueKind::Time,
        "no limit",
        "Longest permitted estimate; a plan with a longer estimate is \
                                             refused.",
    ),
    key(
        "zip",
        PlanValueKind::Special("list of lists of axes", LISTS),
        "none",
        "Axes that advance together instead of being combined; they need the same number of values.",
    ),
    key(
        "exclude",
        PlanValueKind::Special("list of tables of axes and values", PARTS),
        "none",
        "Points to exclude: all that match one of the tables.",
    ),
    key(
        "assert",
        PlanValueKind::Special("list of assertions", ASSERTIONS),
        "none",
        "Conditions that the results must meet: texts, or tables as described below.",
    ),
];

/// Keys of `[host.NAME]` for its address.
pub(crate) const HOST: &[PlanKey] = &[
    key(
        "address",
        PlanValueKind::Text,
        "taken from the lab",
        "Name or address of the host on which `linerate serve` \
                                                      runs.",
    ),
    key("port", PlanValueKind::Whole(1, 65_535), "5201", "Port of `linerate serve` on that host."),
    key(
        "interface",
        PlanValueKind::Text,
        "the interface of the route to the other hosts",
        "Interface to which the settings apply.",
    ),
];

/// Keys of `[host.NAME]` that change the host, and so can be swept.
pub(crate) const SETTINGS: &[PlanKey] = &[
    key("mtu", PlanValueKind::Whole(68, 65_535), "as found", "MTU of the interface, in bytes."),
    key("tso", PlanValueKind::Flag, "as found", "Segmentation by the NIC (TCP segmentation offload)."),
    key(
        "gso",
        PlanValueKind::Flag,
        "as found",
        "Segmentation as late as possible in the kernel (generic \
                                        segmentation offload).",
    ),
    key(
        "gro",
        PlanValueKind::Flag,
        "as found",
        "Merging of received segments by the kernel (generic receive \
                                        offload).",
    ),
    key(
        "lro",
        PlanValueKind::Flag,
        "as found",
        "Merging of received segments by the NIC (large receive offload).",
    ),
    key("congestion", PlanValueKind::Name, "as found", "Default TCP congestion control."),
    key("tcp_rmem", PlanValueKind::ThreeSizes, "as found", "TCP receive buffer sizes: `net.ipv4.tcp_rmem`."),
    key("tcp_wmem", PlanValueKind::ThreeSizes, "as found", "TCP send buffer sizes: `net.ipv4.tcp_wmem`."),
    key(
        "qdisc",
        PlanValueKind::Text,
        "as found",
        "Queueing discipline of the interface, for example `fq` or `fq_codel limit 1000`.",
    ),
    key(
        "netem_delay",
        PlanValueKind::Time,
        "none",
        "Delay that netem adds to packets sent by the interface.",
    ),
    key(
        "netem_loss",
        PlanValueKind::Share,
        "none",
        "Share of the packets sent by the interface that netem drops.",
    ),
];

/// Keys of `[lab]`.
pub(crate) const LAB: &[PlanKey] = &[
    key(
        "topology",
        PlanValueKind::Text,
        "must be given",
        "A bundled topology, or a topology file in the folder of the plan. Its hosts are hosts of the plan.",
    ),
    key(
        "set",
        PlanValueKind::Special("table of keys and values", SCALARS),
        "none",
        "Parameters and keys of the topology, as for `linerate lab up --set`.",
    ),
];

/// Keys of `[flow.NAME]`.
pub(crate) const FLOW: &[PlanKey] = &[
    key("from", PlanValueKind::Name, "must be given", "Host of the client, which opens the connection."),
    key("to", PlanValueKind::Name, "must be given", "Host of the server."),
    key(
        "at",
        PlanValueKind::Time,
        "\"0s\"",
        "Start time of the flow, from the start of the trial or from the end of `after`.",
    ),
    key("after", PlanValueKind::Texts, "none", "Flows that must end before this one starts."),
    key(
        "cross_traffic",
        PlanValueKind::Flag,
        "false",
        "Run until the last other flow has ended, for at most an hour if that end depends on the network; \
         without a direction, in both at once. What ends the other flows (`duration`, `until`, `bytes`, \
         `blocks`, `requests`) does not apply to it. Assertions ignore the flow unless they name it.",
    ),
    key(
        "test",
        PlanValueKind::Special("table of knobs", KNOBS),
        "none",
        "Knobs of this flow only. They override those of `[test]`, swept or not.",
    ),
    key(
        "series",
        PlanValueKind::Special("table of the knobs of a series", SERIES),
        "none",
        "Measure a series over message sizes, as `linerate sweep` does. Of the other knobs, those of \
         sockets and hosts apply. `{}` has the sizes of NetPIPE.",
    ),
];

/// Keys of `[axis.NAME]`.
pub(crate) const AXIS: &[PlanKey] = &[
    key(
        "key",
        PlanValueKind::Texts,
        "`test.NAME`",
        "Key to sweep: `test.KNOB`, `flow.FLOW.KNOB`, `host.HOST.SETTING`, `host.*.SETTING`, `lab.KEY` or \
         `flows`. Several keys all get the same value. The values of `flows` are names of flows in one text, \
         as in `\"a b\"`: of the flows that the axis names, only those run.",
    ),
    key("values", PlanValueKind::Special("list of values", VALUES), "a range", "The values."),
    key(
        "from",
        PlanValueKind::Special("value", VALUE),
        "none",
        "First value of a range, or the lower limit of a search.",
    ),
    key(
        "to",
        PlanValueKind::Special("value", VALUE),
        "none",
        "Last value of a range, or the upper limit of a search.",
    ),
    key("step", PlanValueKind::Special("value", VALUE), "none", "Difference between consecutive values."),
    key(
        "factor",
        PlanValueKind::Special("number above 1", r#"{"type":"number","exclusiveMinimum":1}"#),
        "none",
        "Ratio of consecutive values.",
    ),
    key(
        "points",
        PlanValueKind::Whole(2, 1000),
        "none",
        "Number of values from the first to the last, in equal ratios; in equal steps if the first is 0.",
    ),
    key("labels", PlanValueKind::Texts, "the values", "Names of the values, one for each value."),
    key(
        "pass",
        PlanValueKind::Special("assertion", r#"{"type":"string"}"#),
        "none",
        "Search for the largest value for which this assertion holds, instead of sweeping.",
    ),
    key(
        "resolution",
        PlanValueKind::Share,
        "\"1%\"",
        "The search ends when the remaining range is no wider than this share of `to`.",
    ),
    key(
        "descend",
        PlanValueKind::Share,
        "none",
        "Before searching, lower the value in steps of this share of `to` until two in a row pass: the \
         frame loss rate test of RFC 2544 section 26.3.",
    ),
    key(
        "confirm",
        PlanValueKind::Time,
        "none",
        "Duration of a final trial at the value that the search found.",
    ),
];

/// Keys of `[[assert]]`.
pub(crate) const ASSERT: &[PlanKey] = &[
    key(
        "that",
        PlanValueKind::Text,
        "must be given",
        "The assertion, for example `goodput >= 0.98 ceiling`.",
    ),
    key("name", PlanValueKind::Text, "the assertion", "Name of the assertion in the report."),
    key(
        "at",
        PlanValueKind::Special("table of axes and values", PART),
        "every point",
        "Points to which the \
                                                                               assertion applies.",
    ),
    key(
        "flow",
        PlanValueKind::Name,
        "every flow except cross traffic",
        "Flow to which the assertion applies.",
    ),
    key(
        "direction",
        PlanValueKind::Choice(&["upload", "download"]),
        "each measured direction",
        "Direction to which the assertion applies.",
    ),
];

/// The tables of a plan.
pub(crate) const TABLES: &[&str] = &["notes", "host", "lab", "flow", "test", "axis"];

/// The values in a table.
#[derive(Debug)]
pub struct Fields<'t> {
    given: BTreeMap<&'static str, (&'t ConfigValue, Option<SettingValue>)>,
    /// False if one of them is wrong.
    pub sound: bool,
}

impl<'t> Fields<'t> {
    /// Reads the keys of a table, whose names are those of `tables`, or in `also`. Wrong values are noted and left out.
    pub fn read(
        table: &'t ConfigTable,
        path: &str,
        tables: &[&[PlanKey]],
        also: &[&str],
        mistakes: &mut Mistakes,
    ) -> Self {
        let keys = || tables.iter().flat_map(|keys| keys.iter());
        let mut fields = Self { given: BTreeMap::new(), sound: true };
        for entry in &table.0 {
            let Some(key) = keys().find(|key| key.name == entry.key) else {
                if !also.contains(&entry.key.as_str()) {
                    let known = keys().map(|key| key.name).chain(also.iter().copied());
                    mistakes.add_with(&entry.at, || {
                        format!("unknown key {path}{}{}", entry.key, hint(&entry.key, known))
                    });
                    fields.sound = false;
                }
                continue;
            };
            let setting = match key.kind {
                PlanValueKind::Special(..) | PlanValueKind::Texts => Ok(None),
                ref kind => kind.read(&entry.value).map(Some),
            };
            match setting {
                Ok(setting) => {
                    fields.given.insert(key.name, (&entry.value, setting));
                }
                Err(text) => {
                    mistakes.add(place(entry), format!("{path}{}: {text}", entry.key));
                    fields.sound = false;
                }
            }
        }
        fields
    }

    /// The value with its position.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&'t ConfigValue> {
        self.given.get(key).map(|(value, _)| *value)
    }

    /// The value of a key whose kind is not special.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&SettingValue> {
        self.given.get(key)?.1.as_ref()
    }

    /// The text of a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        match self.setting(key)? {
            SettingValue::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// The whole number of a key.
    #[must_use]
    pub fn whole(&self, key: &str) -> Option<u64> {
        match self.setting(key)? {
            SettingValue::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// The time of a key.
    #[must_use]
    pub fn span(&self, key: &str) -> Option<linerate_units::Span> {
        match self.setting(key)? {
            SettingValue::Time(span) => Some(*span),
            _ => None,
        }
    }

    /// Whether a key is there and true.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.setting(key), Some(SettingValue::Flag(true)))
    }
}

/// Position of a mistake in an entry's value: for a table, that of its key.
pub(crate) fn place(entry: &ConfigEntry) -> &SourcePosition {
    if matches!(entry.value.content, ConfigContent::Table(_)) { &entry.at } else { &entry.value.at }
}

/// The tables `[kind.NAME]` in the table of a kind: at most as many as `limit` says, whose second part is what has them.
pub fn named_tables<'t>(
    entry: &'t ConfigEntry,
    tables: &'t ConfigTable,
    limit: (usize, &str),
    mistakes: &mut Mistakes,
) -> Vec<(&'t ConfigEntry, &'t ConfigTable)> {
    let kind = &entry.key;
    if tables.0.len() > limit.0 {
        let text = format!("{kind}: {} entries; {} has at most {}", tables.0.len(), limit.1, limit.0);
        mistakes.add(&entry.at, text);
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in &tables.0 {
        if let Err(error) = check_name(&entry.key) {
            mistakes.add(&entry.at, error.to_string());
        }
        match &entry.value.content {
            ConfigContent::Table(table) => found.push((entry, table)),
            other => {
                let what = other.describe();
                mistakes.add(&entry.at, format!("{kind}.{} is {what}; write [{kind}.NAME]", entry.key));
            }
        }
    }
    found
}
