//! Queues and the like: policers, shapers, marks, cross traffic.

use super::super::case::{FindingPlace, PAIR, PLAIN, PlantedAction, PlantedCase};
use super::{LARGE_RECEIVE, LARGE_SEND};
use linerate_model::Rule;

pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        rule: Rule::Policer,
        name: "a policer of 100 Mb/s",
        topology: "policed",
        set: &["link.b.rate=400M"],
        // A single TCP run that saws below a policer cannot distinguish it from a short queue; datagrams can.
        args: &["-t", "3", "-C", "cubic", "--investigate"],
        planted: PLAIN.right(&[Rule::Policer]),
        control: PLAIN.set(&["link.b.police_rate=none"]).right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Policer,
        name: "a policer of 50 Mb/s with a deep bucket",
        topology: "policed",
        set: &["link.b.rate=400M"],
        // A single TCP run that saws below a policer cannot distinguish it from a short queue; datagrams can.
        args: &["-t", "3", "-C", "cubic", "--investigate"],
        planted: PLAIN.set(&["rate=50M", "burst=2MB"]).right(&[Rule::Policer]),
        control: PLAIN.set(&["link.b.police_rate=none"]).right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::ShallowBuffer,
        name: "a queue of thirteen packets before 100 Mb/s, investigated",
        topology: "lag-2x1g",
        to: "c",
        set: &["link.a.rate=1G", "link.lag.members=1", "link.lag.rate=100M", "link.lag.delay=10ms"],
        args: &["-t", "4", "-C", "cubic", "--investigate"],
        planted: PLAIN.set(&["link.lag.buffer=20kB"]).right(&[Rule::ShallowBuffer]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Shaper,
        name: "a shaper of 100 Mb/s",
        set: &["link.b.rate=300M", "link.b.delay=2ms"],
        planted: PLAIN.set(&["link.b.from.s.shape_rate=100M"]).right(&[Rule::Shaper]),
        control: PLAIN.right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Shaper,
        name: "a shaper of 37 Mb/s",
        set: &["link.b.delay=10ms"],
        args: &["-t", "5", "-C", "cubic"],
        planted: PLAIN
            .set(&["link.b.from.s.shape_rate=37M", "link.b.from.s.shape_burst=16kB"])
            .right(&[Rule::Shaper]),
        control: PLAIN.set(&["link.b.rate=100M"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::EcnMarks,
        name: "CoDel that marks",
        set: &["link.b.rate=100M", "link.b.delay=15ms", "link.b.discipline=codel"],
        args: &["-t", "5", "-O", "2", "-C", "reno"],
        planted: PLAIN
            .set(&["link.b.ecn=true", "host.a.sysctl.ipv4.tcp_ecn=1", "host.b.sysctl.ipv4.tcp_ecn=1"])
            .right(&[Rule::EcnMarks]),
        // CoDel with drops: the rate is below the link rate and the queue is short.
        control: PLAIN.right(&[Rule::RandomLoss, Rule::Congestion, Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Congestion,
        name: "a neighbour at the same port",
        topology: "gigabit-switch-4",
        to: "c",
        set: &["link.c.rate=100M", "link.c.delay=5ms"],
        args: &["-t", "5", "-O", "1", "-C", "cubic"],
        planted: PLAIN
            .actions(&[PlantedAction::Concurrent {
                from: "b",
                to: "c",
                args: &["-t", "14", "-C", "cubic", "-P", "3", "--no-latency"],
            }])
            .right(&[Rule::Congestion]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Bufferbloat,
        name: "a queue of a second and a half",
        topology: "bufferbloat",
        args: &["-t", "5", "-O", "1", "-C", "cubic"],
        set: &[LARGE_SEND, LARGE_RECEIVE],
        planted: PLAIN.right(&[Rule::Bufferbloat]),
        control: PLAIN.set(&["link.b.buffer=50kB"]).right(&[
            Rule::LinkFull,
            Rule::Shaper,
            Rule::Congestion,
            Rule::RandomLoss,
        ]),
        look: FindingPlace::Also,
        ..PAIR
    },
];
