//! Causes at the two ends: windows, buffers, applications, CPUs, pacing.

use super::super::case::{PAIR, PLAIN, PlantedAction, PlantedCase};
use linerate_model::Rule;

/// A path of 100 Mb/s and 20 ms: 250 kB.
const LONG_PATH: &[&str] = &["link.b.rate=100M", "link.b.delay=10ms"];

/// Lowest priority, including between sessions (autogroup).
const LOWEST_PRIORITY: &[&str] =
    &["sh", "-c", "echo 19 2>/dev/null > /proc/self/autogroup; exec nice -n 19 \"$@\"", "sh"];

pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        rule: Rule::SlowSource,
        name: "an application that offers a fifth",
        set: &["link.b.rate=100M"],
        planted: PLAIN.args(&["-b", "20M"]).right(&[Rule::SlowSource]),
        control: PLAIN.args(&["-b", "200M"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::SlowReader,
        name: "a slow reader",
        set: &["link.b.rate=100M"],
        planted: PLAIN.args(&["--read-rate", "20M"]).right(&[Rule::SlowReader]),
        control: PLAIN.args(&["--read-rate", "300M"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::ReceiverWindow,
        name: "a receive window of a quarter of the path, by the system",
        set: LONG_PATH,
        planted: PLAIN
            .set(&["host.b.sysctl.ipv4.tcp_rmem=4096 131072 131072"])
            .right(&[Rule::ReceiverWindow]),
        control: PLAIN.right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::ReceiverWindow,
        name: "a window of a quarter of the path, asked for",
        set: LONG_PATH,
        planted: PLAIN.args(&["-w", "32K"]).right(&[Rule::ReceiverWindow, Rule::SendBuffer]),
        control: PLAIN.args(&["-w", "4M"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::SendBuffer,
        name: "a send buffer of a quarter of the path",
        set: &["link.b.rate=100M", "link.b.delay=20ms"],
        planted: PLAIN.set(&["host.a.sysctl.ipv4.tcp_wmem=4096 131072 131072"]).right(&[Rule::SendBuffer]),
        control: PLAIN.right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::CpuReceiver,
        name: "a receiver that shares its processor with a loop of higher priority",
        // A small buffer, so that the sender cannot continue without the reader, and a rate for which the
        // remaining share of the CPU is not enough even on an idle machine.
        set: &["link.a.rate=2G", "link.b.rate=2G", "host.b.sysctl.ipv4.tcp_rmem=4096 131072 2097152"],
        args: &["-t", "4", "-C", "cubic", "--server-affinity", "1"],
        // The loop is another program, which V27 reports.
        planted: PLAIN
            .actions(&[PlantedAction::Spin { cpu: 1, loops: 1 }, PlantedAction::Serve(LOWEST_PRIORITY)])
            .right(&[Rule::CpuReceiver, Rule::HostBusy]),
        control: PLAIN.right(&[Rule::LinkFull]),
        random: true,
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::HostBusy,
        name: "loops of other programs on the first two processors",
        set: &["link.a.rate=none", "link.b.rate=none"],
        planted: PLAIN
            .actions(&[PlantedAction::Spin { cpu: 0, loops: 3 }, PlantedAction::Spin { cpu: 1, loops: 3 }])
            .right(&[Rule::HostBusy]),
        control: PLAIN.set(&["link.b.rate=100M"]).right(&[Rule::LinkFull]),
        random: true,
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::CpuSender,
        name: "a system call for each 16 bytes",
        set: &["link.a.rate=none", "link.b.rate=none"],
        // Nagle's algorithm stays on: with one packet per call, the emulator's switch would be the limit
        // instead of the sender.
        planted: PLAIN.args(&["-l", "16"]).right(&[Rule::CpuSender]),
        control: PLAIN.set(&["link.b.rate=100M"]).right(&[Rule::LinkFull]),
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Pacing,
        name: "a pace of a fifth",
        set: &["link.b.rate=100M"],
        planted: PLAIN.args(&["--fq-rate", "20M"]).right(&[Rule::Pacing]),
        control: PLAIN.args(&["--fq-rate", "500M"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::SlowStartUnfinished,
        name: "a test that ends in slow start",
        set: &[
            "host.a.sysctl.ipv4.tcp_wmem=4096 16384 134217728",
            "host.b.sysctl.ipv4.tcp_rmem=4096 131072 268435456",
            "link.a.rate=10G",
            "link.b.delay=100ms",
        ],
        args: &["-C", "reno"],
        // Ten segments double eleven times to reach 1.2 Gb/s.
        planted: PLAIN
            .set(&["link.b.rate=10G", "link.b.buffer=64MiB"])
            .args(&["-t", "2.3"])
            .right(&[Rule::SlowStartUnfinished]),
        control: PLAIN.set(&["link.b.rate=20M"]).args(&["-t", "4", "-O", "5"]).right(&[Rule::LinkFull]),
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::LocalDrops,
        name: "a sender whose interface holds two frames",
        // Fast enough that the drops limit the flows, and not the link.
        set: &["link.a.nic=false", "link.b.rate=400M", "link.b.delay=10ms"],
        args: &["-t", "4", "-C", "reno", "-P", "4"],
        planted: PLAIN
            .actions(&[PlantedAction::Before("a", &["ip", "link", "set", "eth0", "txqueuelen", "2"])])
            .right(&[Rule::LocalDrops]),
        control: PLAIN.set(&["link.b.rate=100M"]).right(&[Rule::LinkFull]),
        random: true,
        ..PAIR
    },
];
