//! Causes on the path other than queues: links, black holes, losses, reordering.

use std::time::Duration;

use linerate_model::Rule;

use super::super::case::{PAIR, PLAIN, PlantedAction, PlantedCase};
use super::{LARGE_RECEIVE, LARGE_SEND};

/// 100 Mb/s and 20 ms, with buffers that are not the limit.
const LONG_PATH: &[&str] = &[LARGE_SEND, LARGE_RECEIVE, "link.b.rate=100M", "link.b.delay=10ms"];

pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        rule: Rule::LinkFull,
        name: "a port at 100 Mb/s",
        set: &["link.b.rate=100M"],
        planted: PLAIN.right(&[Rule::LinkFull]),
        control: PLAIN.args(&["-b", "20M"]).right(&[Rule::SlowSource]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::MtuBlackHole,
        name: "packets above 1400 bytes vanish",
        topology: "black-hole",
        set: &["link.tunnel.rate=200M"],
        planted: PLAIN.right(&[Rule::MtuBlackHole]),
        // 200 Mb/s is not a standard rate, and no interface reports it.
        control: PLAIN.set(&["link.tunnel.too_big=icmp"]).right(&[Rule::Shaper, Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::DamagedLink,
        name: "half duplex and loss",
        set: LONG_PATH,
        args: &["-t", "4", "-C", "reno"],
        planted: PLAIN
            .set(&["link.b.from.s.loss=0.003"])
            .actions(&[PlantedAction::Before(
                "a",
                &["ethtool", "-s", "eth0", "speed", "1000", "duplex", "half"],
            )])
            .right(&[Rule::DamagedLink]),
        control: PLAIN.set(&["link.b.from.s.loss=0.003"]).right(&[Rule::RandomLoss]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Timeouts,
        name: "a path that is dead for a second",
        set: LONG_PATH,
        args: &["-t", "5", "-C", "cubic"],
        planted: PLAIN
            .actions(&[
                PlantedAction::Set {
                    after: Duration::from_millis(3000),
                    link: "link.b",
                    changes: &["loss=1"],
                },
                PlantedAction::Set {
                    after: Duration::from_millis(4000),
                    link: "link.b",
                    changes: &["loss=0"],
                },
            ])
            .right(&[Rule::Timeouts]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::LagImbalance,
        name: "three connections on two members",
        topology: "lag-2x1g",
        to: "c",
        set: &["link.lag.rate=100M", "link.a.rate=1G"],
        // Source ports with which one connection has a member link of its own and two share the other.
        args: &["-t", "4", "-O", "1", "-C", "cubic", "-P", "3", "--cport", "41000"],
        planted: PLAIN.right(&[Rule::LagImbalance]),
        // A single link of that rate, which three connections share evenly enough.
        control: PLAIN.set(&["link.lag.members=1"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::LagImbalance,
        name: "one connection on one of two members, investigated",
        topology: "lag-2x1g",
        to: "c",
        set: &["link.lag.rate=100M", "link.a.rate=1G"],
        args: &["-t", "3", "-C", "cubic", "--investigate"],
        planted: PLAIN.right(&[Rule::LagImbalance]),
        control: PLAIN.set(&["link.lag.members=1"]).right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Reordering,
        name: "one packet in a hundred overtaken",
        set: &[
            LARGE_SEND,
            LARGE_RECEIVE,
            "link.a.rate=200M",
            "link.b.rate=200M",
            "link.b.delay=10ms",
            // Keeps RACK's reordering window at a quarter of the round-trip time.
            "host.a.sysctl.ipv4.tcp_recovery=3",
        ],
        args: &["-t", "4", "-C", "reno"],
        planted: PLAIN.set(&["link.b.reorder=0.01", "link.b.reorder_by=15ms"]).right(&[Rule::Reordering]),
        control: PLAIN.set(&["link.b.from.s.loss=0.0005"]).right(&[Rule::RandomLoss]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::RandomLoss,
        name: "one packet in a thousand lost, cubic",
        set: LONG_PATH,
        args: &["-t", "5", "-C", "cubic"],
        planted: PLAIN.set(&["link.b.from.s.loss=0.001"]).right(&[Rule::RandomLoss]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::RandomLoss,
        name: "three packets in a thousand lost, reno, 200 Mb/s",
        set: &[LARGE_SEND, LARGE_RECEIVE, "link.b.rate=200M", "link.b.delay=10ms"],
        args: &["-t", "5", "-C", "reno"],
        planted: PLAIN.set(&["link.b.from.s.loss=0.003"]).right(&[Rule::RandomLoss]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::RandomLoss,
        name: "one packet in thirty lost",
        set: LONG_PATH,
        args: &["-t", "5", "-C", "cubic"],
        // This much loss causes timeouts too.
        planted: PLAIN.set(&["link.b.from.s.loss=0.03"]).right(&[Rule::RandomLoss, Rule::Timeouts]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::PrematureSlowStartExit,
        name: "a slow start that jitter ends early",
        set: &[LARGE_SEND, LARGE_RECEIVE, "link.b.delay=20ms"],
        args: &["-C", "cubic"],
        planted: PLAIN
            .set(&["link.b.jitter=10ms"])
            .args(&["-t", "2.5"])
            .right(&[Rule::PrematureSlowStartExit]),
        control: PLAIN.args(&["-t", "3", "-O", "1"]).right(&[Rule::LinkFull]),
        random: true,
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::WindowRegrowth,
        name: "a window that grows again after early losses",
        // Reno adds one segment per round trip: ten per second.
        set: &[LARGE_SEND, LARGE_RECEIVE, "link.b.delay=50ms", "link.b.buffer=16MiB"],
        args: &["-t", "3", "-O", "3", "-C", "reno"],
        planted: PLAIN
            .set(&["link.b.from.s.loss=0.0003"])
            .actions(&[PlantedAction::Set {
                after: Duration::from_millis(3200),
                link: "link.b",
                changes: &["loss=0"],
            }])
            .right(&[Rule::WindowRegrowth]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::ReturnPath,
        name: "a way back of 500 kb/s for the acknowledgements of 100 Mb/s",
        set: &["link.b.rate=100M", "link.b.delay=5ms"],
        args: &["-t", "5", "-C", "cubic"],
        planted: PLAIN
            .set(&["link.a.from.s.rate=500k", "link.a.from.s.buffer=20kB"])
            .right(&[Rule::ReturnPath]),
        control: PLAIN.right(&[Rule::LinkFull]),
        ..PAIR
    },
];
