//! Every key of a fleet's file, declared once: messages, schema and reference are generated from these tables.

use linerate_plan::file_keys::{PlanKey, PlanValueKind, key};

use crate::inventory::MeshTemplate;

const PAIRS: &str =
    r#"{"type":"array","items":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":2}}"#;
const LIMITS: &str = r##"{"$ref":"#/$defs/alarm"}"##;
const KNOBS: &str = r##"{"$ref":"#/$defs/test"}"##;

/// Keys outside any table.
pub(super) const HEAD: &[PlanKey] = &[
    key("name", PlanValueKind::Name, "the file's name", "Name of the fleet."),
    key(
        "zone",
        PlanValueKind::Text,
        "\"UTC\"",
        "Time zone of crontab expressions and quiet hours, by its IANA name.",
    ),
    key(
        "topology",
        PlanValueKind::Text,
        "none",
        "A bundled topology, or a topology file in the folder of this file, whose hosts have the names of hosts of the \
         fleet. Tests between two hosts share the links on the path between them.",
    ),
    key(
        "set_up",
        PlanValueKind::Time,
        "\"3s\"",
        "Time that is reserved before the traffic of a test for connecting and preparing, 1 s to an hour.",
    ),
    key(
        "settle",
        PlanValueKind::Time,
        "\"2s\"",
        "Time that is reserved after the traffic of a test for what still arrives and for clocks that differ, up to an \
         hour. An agent whose clock may be more than a quarter of it off does not measure.",
    ),
    key(
        "ahead",
        PlanValueKind::Time,
        "\"12h\"",
        "How far ahead agents get their calendars, 1 min to 24 h. For that time they measure without coordinator and broker.",
    ),
    key(
        "keep_days",
        PlanValueKind::Whole(1, 36_500),
        "90",
        "Days after which runs that have ended are removed from the calendar. Their results stay in the archive.",
    ),
];

/// Keys of `[host.NAME]`.
pub(super) const HOST: &[PlanKey] = &[
    key(
        "address",
        PlanValueKind::Text,
        "must be given",
        "Name or address at which the coordinator reaches its agent, a `linerate serve --agent-token-file`.",
    ),
    key("port", PlanValueKind::Whole(1, 65_535), "5201", "Port of its agent."),
    key(
        "test_address",
        PlanValueKind::Text,
        "`address`",
        "Name or address to which the other hosts measure, if it differs: the network under test instead of the \
         management network.",
    ),
    key("labels", PlanValueKind::Texts, "none", "Labels, by which meshes choose their hosts."),
    key(
        "capacity",
        PlanValueKind::Whole(1, 1000),
        "1",
        "How many shared tests it may make at the same time.",
    ),
];

/// Keys of `[nic.NAME]`, `[link.NAME]`, `[lag.NAME]` and `[group.NAME]`.
pub(super) const SHARED: &[PlanKey] = &[
    key(
        "hosts",
        PlanValueKind::Texts,
        "none",
        "For a link or LAG, the hosts on one side of it: a test between one of them and any other host uses it. For a \
         NIC or group, its hosts: a test from or to one of them uses it.",
    ),
    key(
        "pairs",
        PlanValueKind::Special("list of pairs of hosts", PAIRS),
        "none",
        "Further pairs of hosts between which tests use it, in either direction.",
    ),
    key(
        "capacity",
        PlanValueKind::Whole(1, 1000),
        "1",
        "How many shared tests may use it at the same time; for a LAG, the number of its members; for a group, how \
         many of its tests run at the same time, shared or not.",
    ),
];

/// Keys of `[mesh.NAME]`.
pub(super) const MESH: &[PlanKey] = &[
    key(
        "template",
        PlanValueKind::Choice(MeshTemplate::NAMES),
        "\"full\"",
        "Which pairs it measures. `full`: every host to every other one. `star`: `center` to every other host, and \
         back. `pairs`: those in `pairs`. `between-labels`: every host to every host with another one of `labels`.",
    ),
    key("hosts", PlanValueKind::Texts, "those with one of `labels`, or all", "Its hosts."),
    key("labels", PlanValueKind::Texts, "none", "Labels of its hosts."),
    key("center", PlanValueKind::Name, "none", "The host in the center of a star."),
    key(
        "pairs",
        PlanValueKind::Special("list of pairs of hosts", PAIRS),
        "none",
        "Pairs, from the client to the server.",
    ),
    key(
        "every",
        PlanValueKind::Time,
        "`cron`",
        "Time between two tests of a pair, from 10 s on. The pairs are spread over it.",
    ),
    key(
        "jitter",
        PlanValueKind::Time,
        "\"0s\"",
        "Mean of an exponentially distributed delay of each test, which is cut at one period.",
    ),
    key(
        "cron",
        PlanValueKind::Text,
        "`every`",
        "When the pairs are due, as a crontab expression: minute, hour, day of month, month and day of week. `H` is a \
         value that differs from pair to pair.",
    ),
    key(
        "slip",
        PlanValueKind::Time,
        "the period, or \"1h\" with `cron`",
        "How much later than due a test may begin, at most a week.",
    ),
    key(
        "quiet",
        PlanValueKind::Texts,
        "none",
        "Hours in which nothing is measured, such as `\"Mon-Fri 08:00-18:00\"`.",
    ),
    key("priority", PlanValueKind::Whole(0, 9), "0", "Tests with a higher priority take the time of others."),
    key(
        "shared",
        PlanValueKind::Flag,
        "false",
        "Whether other shared tests may use the same hosts and links at the same time.",
    ),
    key(
        "test",
        PlanValueKind::Special("table of knobs", KNOBS),
        "`{ upload = true }`",
        "What is measured: the knobs of `linerate test`. Without a direction, from the client to the server.",
    ),
    key(
        "alarm",
        PlanValueKind::Special("table of limits", LIMITS),
        "none",
        "Limits of the results. One that is crossed is followed by a second test; if it crosses the limit too, there is an \
         alarm.",
    ),
];

/// Keys of `[mesh.NAME.alarm]`.
pub(super) const ALARM: &[PlanKey] = &[
    key("below", PlanValueKind::Rate, "none", "Alarm when the goodput is below this rate."),
    key(
        "latency",
        PlanValueKind::Time,
        "none",
        "Alarm when the median latency under load is above this time.",
    ),
    key("loss", PlanValueKind::Share, "none", "Alarm when more datagrams than this share are lost."),
    key(
        "change",
        PlanValueKind::Share,
        "none",
        "Alarm when the goodput has changed by at least this share of its earlier median and stays so.",
    ),
    key(
        "failure",
        PlanValueKind::Flag,
        "false",
        "Alarm when a test fails, or nobody makes it: no coordinator is there, or its agent is away or full.",
    ),
];

/// Keys of `[notify]`.
pub(super) const NOTIFY: &[PlanKey] = &[
    key(
        "command",
        PlanValueKind::Texts,
        "none",
        "A program and its arguments. It gets the alarm as JSON on its standard input.",
    ),
    key(
        "webhook",
        PlanValueKind::Text,
        "none",
        "An HTTP or HTTPS address that the alarm is posted to as JSON.",
    ),
    key("mail", PlanValueKind::Texts, "none", "Addresses that get a mail, by `/usr/sbin/sendmail`."),
];

/// The tables of the file.
pub(super) const TABLES: &[&str] = &["host", "nic", "link", "lag", "group", "mesh", "notify"];
