//! Windows, applications, CPUs, and tests that cannot decide.

use std::time::Duration;

use linerate_model::Cause;

use super::super::situation::Means::{Loops, Neighbour, Pause, Qdisc, Quota, Route, SinglePackets, Sysctl};
use super::super::situation::PathHost::{A, B, East};
use super::super::situation::{PLAIN, Situation, rtt_ms};
use super::{CONTROL, SHAPED_20M};

const RECEIVER_WINDOW: Situation = Situation { right: &[Cause::ReceiverWindow], ..PLAIN };
const SENDER_WINDOW: Situation = Situation { right: &[Cause::SenderWindow], ..PLAIN };
const APPLICATION: Situation = Situation { right: &[Cause::Application], ..PLAIN };

pub(in super::super) const SITUATIONS: &[Situation] = &[
    Situation {
        name: "rmem-64k",
        means: &[rtt_ms(10), Sysctl(B, "net.ipv4.tcp_rmem=4096 65536 65536")],
        ..RECEIVER_WINDOW
    },
    Situation {
        name: "rmem-256k-rtt100",
        means: &[rtt_ms(100), Sysctl(B, "net.ipv4.tcp_rmem=4096 131072 262144")],
        args: &["-t", "5", "-C", "cubic"],
        ..RECEIVER_WINDOW
    },
    Situation {
        name: "rmem-256k-8-streams",
        means: &[rtt_ms(100), Sysctl(B, "net.ipv4.tcp_rmem=4096 131072 262144")],
        args: &["-t", "5", "-C", "cubic", "-P", "8"],
        ..RECEIVER_WINDOW
    },
    Situation {
        name: "unscaled-window",
        means: &[rtt_ms(10), Sysctl(B, "net.ipv4.tcp_window_scaling=0")],
        ..RECEIVER_WINDOW
    },
    // The limit is the route's window, not the buffer: larger buffers would change nothing.
    Situation {
        name: "route-window-at-receiver",
        means: &[rtt_ms(10), Route(B, "window 20000")],
        forbidden_text: &["raise net.ipv4.tcp_rmem", "tcp_rmem of"],
        ..RECEIVER_WINDOW
    },
    Situation {
        name: "wmem-64k",
        means: &[rtt_ms(10), Sysctl(A, "net.ipv4.tcp_wmem=4096 65536 65536")],
        ..SENDER_WINDOW
    },
    Situation {
        name: "wmem-256k-rtt100-bbr",
        means: &[rtt_ms(100), Sysctl(A, "net.ipv4.tcp_wmem=4096 65536 262144")],
        args: &["-t", "5", "-C", "bbr"],
        ..SENDER_WINDOW
    },
    Situation {
        name: "window-asked-64k-rtt100",
        means: &[rtt_ms(100)],
        args: &["-t", "5", "-C", "cubic", "-w", "64K"],
        right: &[Cause::ReceiverWindow, Cause::SenderWindow],
        ..PLAIN
    },
    // No kernel counter distinguishes a locked congestion window from one that does not grow.
    Situation {
        name: "route-cwnd-lock",
        means: &[rtt_ms(10), Route(A, "cwnd lock 10")],
        right: &[Cause::SenderWindow, Cause::Unknown],
        ..PLAIN
    },
    Situation { name: "offered-5m", means: &[rtt_ms(10)], args: &["-t", "3", "-b", "5M"], ..APPLICATION },
    Situation {
        name: "slow-reader-20m",
        means: &[rtt_ms(10)],
        args: &["-t", "3", "-C", "cubic", "--read-rate", "20M"],
        ..APPLICATION
    },
    Situation { name: "udp-10m", means: &[rtt_ms(10)], args: &["-t", "3", "-u", "-b", "10M"], ..APPLICATION },
    Situation {
        name: "paced-20m",
        means: &[rtt_ms(10)],
        args: &["-t", "3", "-C", "cubic", "--fq-rate", "20M"],
        right: &[Cause::Pacing],
        ..PLAIN
    },
    Situation {
        name: "client-stops",
        means: &[
            rtt_ms(10),
            SHAPED_20M,
            Pause(Duration::from_millis(2000), Duration::from_millis(600)),
            Pause(Duration::from_millis(3200), Duration::from_millis(600)),
        ],
        args: &["-t", "4", "-C", "cubic"],
        right: &[Cause::Invalid, Cause::Application, Cause::CpuSender, Cause::HostBusy],
        ..PLAIN
    },
    Situation {
        name: "quota-10-server",
        means: &[Quota(B, 10)],
        right: &[Cause::CpuReceiver],
        unconfirmed: &[Cause::HostBusy],
        alone: true,
        ..PLAIN
    },
    Situation {
        name: "quota-10-client",
        means: &[Quota(A, 10)],
        right: &[Cause::CpuSender],
        unconfirmed: &[Cause::HostBusy],
        alone: true,
        ..PLAIN
    },
    Situation {
        name: "small-segments",
        // The sender's core cuts each write into packets, and the receiver's kernel joins them before its program
        // reads. With tiny writes instead, both ends make as many calls.
        means: &[SinglePackets],
        args: &["-t", "3", "-C", "cubic", "-l", "1K", "-M", "256"],
        right: &[Cause::CpuSender],
        unconfirmed: &[Cause::HostBusy],
        alone: true,
        ..PLAIN
    },
    Situation {
        name: "loops-of-others",
        means: &[Loops(6, -5)],
        right: &[Cause::HostBusy],
        unconfirmed: &[Cause::CpuSender, Cause::CpuReceiver],
        alone: true,
        ..PLAIN
    },
    Situation {
        name: "tiny-writes",
        means: &[],
        args: &["-t", "3", "-C", "cubic", "-l", "16", "-N"],
        right: &[Cause::CpuSender],
        unconfirmed: &[Cause::HostBusy],
        alone: true,
        ..PLAIN
    },
    Situation {
        name: "stated-link-too-slow",
        means: &[rtt_ms(10), SHAPED_20M],
        args: &["-t", "3", "-C", "cubic", "--link", "10M"],
        right: &[Cause::Impossible],
        ..PLAIN
    },
    Situation {
        name: "three-round-trips",
        means: &[rtt_ms(100), SHAPED_20M],
        args: &["-t", "0.3", "-C", "cubic"],
        right: &[Cause::TooShort, Cause::SlowStart],
        ..PLAIN
    },
    Situation {
        name: "ends-in-slow-start",
        means: &[
            rtt_ms(100),
            Qdisc(East, "right", "root tbf rate 1gbit burst 128kb latency 50ms"),
            Sysctl(A, "net.ipv4.tcp_wmem=4096 65536 67108864"),
            Sysctl(B, "net.ipv4.tcp_rmem=4096 131072 67108864"),
        ],
        args: &["-t", "1", "-C", "reno"],
        right: &[Cause::SlowStart, Cause::TooShort],
        ..PLAIN
    },
];

pub(in super::super) const CONTROLS: &[Situation] = &[
    Situation { name: "control-healthy", means: &[rtt_ms(10), SHAPED_20M], ..CONTROL },
    Situation {
        name: "control-ample-windows",
        means: &[
            rtt_ms(100),
            SHAPED_20M,
            Sysctl(A, "net.ipv4.tcp_wmem=4096 65536 8388608"),
            Sysctl(B, "net.ipv4.tcp_rmem=4096 131072 8388608"),
        ],
        args: &["-t", "8", "-C", "cubic"],
        ..CONTROL
    },
    Situation {
        name: "control-window-twice-the-path",
        means: &[rtt_ms(10), SHAPED_20M],
        args: &["-t", "3", "-C", "cubic", "-w", "128K"],
        ..CONTROL
    },
    Situation { name: "control-quota-80-server", means: &[rtt_ms(10), SHAPED_20M, Quota(B, 80)], ..CONTROL },
    Situation { name: "control-one-idle-loop", means: &[rtt_ms(10), SHAPED_20M, Loops(1, 19)], ..CONTROL },
    Situation {
        name: "control-own-fifo",
        means: &[rtt_ms(10), SHAPED_20M, Qdisc(A, "eth0", "root pfifo limit 1000")],
        forbidden_text: &["own pfifo"],
        ..CONTROL
    },
    Situation {
        name: "control-own-fast-tbf",
        means: &[rtt_ms(10), SHAPED_20M, Qdisc(A, "eth0", "root tbf rate 500mbit burst 64kb latency 20ms")],
        forbidden_text: &["own tbf"],
        ..CONTROL
    },
    Situation {
        name: "control-small-neighbour",
        means: &[rtt_ms(10), SHAPED_20M, Neighbour(&["-u", "-b", "500K", "-l", "1000"])],
        right: &[Cause::Shaper, Cause::Unknown, Cause::Congestion],
        ..CONTROL
    },
    Situation {
        name: "control-udp-below",
        means: &[rtt_ms(10), SHAPED_20M],
        args: &["-t", "3", "-u", "-b", "10M"],
        right: &[Cause::Application],
        forbidden_text: &["lost", "loss"],
        ..CONTROL
    },
    Situation {
        name: "control-bbr-8-streams",
        means: &[rtt_ms(10), SHAPED_20M],
        args: &["-t", "3", "-C", "bbr", "-P", "8"],
        ..CONTROL
    },
];
