//! Shapers: token buckets and classes on the path, at the server's ingress, and in the sender itself.

use super::super::situation::Means::{Class, Forwarder, Ingress, Neighbour, Qdisc, SinglePackets, Sysctl};
use super::super::situation::PathHost::{A, B, East};
use super::super::situation::{PLAIN, Situation, delay_ms, rtt_ms};
use super::SHAPER;
use linerate_model::Cause;

/// A bucket on the last link of the path.
macro_rules! tbf {
    ($words:literal) => {
        Qdisc(East, "right", concat!("root tbf ", $words))
    };
}

pub(in super::super) const SITUATIONS: &[Situation] = &[
    Situation {
        name: "shaper-2m",
        means: &[rtt_ms(10), tbf!("rate 2mbit burst 10kb latency 100ms")],
        ..SHAPER
    },
    Situation {
        name: "shaper-5m-rtt100",
        means: &[rtt_ms(100), tbf!("rate 5mbit burst 10kb latency 200ms")],
        args: &["-t", "5", "-C", "cubic"],
        ..SHAPER
    },
    Situation {
        name: "shaper-20m-8-streams",
        means: &[rtt_ms(10), tbf!("rate 20mbit burst 16kb latency 50ms")],
        args: &["-t", "3", "-C", "cubic", "-P", "8"],
        ..SHAPER
    },
    Situation {
        name: "shaper-20m-bbr",
        means: &[rtt_ms(10), tbf!("rate 20mbit burst 16kb latency 50ms")],
        args: &["-t", "3", "-C", "bbr"],
        ..SHAPER
    },
    Situation {
        name: "shaper-50m",
        means: &[rtt_ms(10), tbf!("rate 50mbit burst 32kb latency 40ms")],
        ..SHAPER
    },
    Situation {
        name: "shaper-50m-1s",
        means: &[rtt_ms(10), tbf!("rate 50mbit burst 32kb latency 40ms")],
        args: &["-t", "1", "-C", "cubic"],
        unconfirmed: &[Cause::Link, Cause::TooShort],
        ..SHAPER
    },
    Situation { name: "shaper-200m-rtt0", means: &[tbf!("rate 200mbit burst 64kb latency 40ms")], ..SHAPER },
    Situation {
        name: "shaper-200m-bbr-8-streams",
        means: &[rtt_ms(10), tbf!("rate 200mbit burst 64kb latency 20ms")],
        args: &["-t", "3", "-C", "bbr", "-P", "8"],
        ..SHAPER
    },
    Situation {
        name: "shaper-300m",
        means: &[rtt_ms(10), tbf!("rate 300mbit burst 64kb latency 20ms")],
        args: &["-t", "5", "-C", "cubic"],
        ..SHAPER
    },
    Situation {
        name: "shaper-2g",
        means: &[tbf!("rate 2gbit burst 256kb latency 5ms")],
        unconfirmed: &[Cause::Link, Cause::CpuSender, Cause::CpuReceiver],
        alone: true,
        ..SHAPER
    },
    // A standard rate: only framing distinguishes a shaper from a link.
    Situation {
        name: "shaper-10m-standard",
        means: &[rtt_ms(10), tbf!("rate 10mbit burst 10kb latency 50ms")],
        forbidden_text: &["cabl"],
        ..SHAPER
    },
    Situation {
        name: "shaper-100m-standard",
        means: &[rtt_ms(10), tbf!("rate 100mbit burst 32kb latency 40ms")],
        forbidden_text: &["cabl"],
        ..SHAPER
    },
    Situation {
        name: "shaper-1g-standard",
        means: &[tbf!("rate 1gbit burst 128kb latency 10ms")],
        unconfirmed: &[Cause::Link, Cause::CpuSender, Cause::CpuReceiver],
        forbidden_text: &["cabl"],
        alone: true,
        ..SHAPER
    },
    Situation {
        name: "htb-20m-bfifo",
        means: &[
            rtt_ms(10),
            Qdisc(East, "right", "root handle 1: htb default 10"),
            Class(East, "right", "parent 1: classid 1:10 htb rate 20mbit ceil 20mbit"),
            Qdisc(East, "right", "parent 1:10 bfifo limit 100000"),
        ],
        ..SHAPER
    },
    Situation {
        name: "shaper-20m-bloated",
        means: &[rtt_ms(10), tbf!("rate 20mbit burst 16kb limit 1000000")],
        args: &["-t", "5", "-C", "cubic"],
        ..SHAPER
    },
    // The window is smaller than the possible queue, and larger than the path: it limits the queue and not the
    // rate.
    Situation {
        name: "shaper-20m-window-bounds-queue",
        means: &[
            rtt_ms(10),
            tbf!("rate 20mbit burst 16kb limit 1000000"),
            Sysctl(B, "net.ipv4.tcp_rmem=4096 131072 524288"),
        ],
        ..SHAPER
    },
    Situation {
        name: "shaper-ingress-20m",
        means: &[rtt_ms(10), Ingress(B, "eth0", "root tbf rate 20mbit burst 16kb latency 50ms")],
        ..SHAPER
    },
    Situation {
        name: "own-tbf-50m",
        means: &[rtt_ms(10), Qdisc(A, "eth0", "root tbf rate 50mbit burst 32kb latency 50ms")],
        unconfirmed: &[],
        required_text: &["tbf"],
        ..SHAPER
    },
    Situation {
        name: "own-htb-20m",
        means: &[
            rtt_ms(10),
            Qdisc(A, "eth0", "root handle 1: htb default 10"),
            Class(A, "eth0", "parent 1: classid 1:10 htb rate 20mbit ceil 20mbit"),
            Qdisc(A, "eth0", "parent 1:10 bfifo limit 60000"),
        ],
        unconfirmed: &[],
        required_text: &["htb"],
        ..SHAPER
    },
    // Its own bucket drops: neither cables nor the path.
    Situation {
        name: "own-tbf-drops",
        means: &[rtt_ms(10), SinglePackets, Qdisc(A, "eth0", "root tbf rate 100mbit burst 16kb limit 12000")],
        args: &["-t", "3", "-C", "cubic", "-P", "4"],
        right: &[Cause::Shaper, Cause::LocalDrops],
        unconfirmed: &[],
        required_text: &["tbf", "own queue"],
        forbidden_text: &["cabl"],
        ..PLAIN
    },
    Situation {
        name: "udp-100m-into-50m",
        means: &[rtt_ms(10), SinglePackets, tbf!("rate 50mbit burst 32kb latency 40ms")],
        args: &["-t", "3", "-u", "-b", "100M"],
        right: &[Cause::Shaper],
        unconfirmed: &[Cause::Link, Cause::Congestion],
        ..PLAIN
    },
    // 20 Mb/s are less than the offered 30: the limit is the shaper, and not the application.
    Situation {
        name: "offered-30m-into-20m",
        means: &[rtt_ms(10), tbf!("rate 20mbit burst 16kb latency 50ms")],
        args: &["-t", "3", "-C", "cubic", "-b", "30M"],
        ..SHAPER
    },
    // A share next to steady traffic cannot be distinguished from a shaper; either name is correct.
    Situation {
        name: "share-beside-steady-udp",
        means: &[
            rtt_ms(10),
            tbf!("rate 100mbit burst 32kb latency 40ms"),
            Neighbour(&["-u", "-b", "60M", "-l", "1400"]),
        ],
        right: &[Cause::Congestion],
        unconfirmed: &[Cause::Shaper, Cause::Link],
        ..PLAIN
    },
    Situation {
        name: "share-beside-tcp",
        means: &[rtt_ms(10), tbf!("rate 50mbit burst 32kb latency 40ms"), Neighbour(&["-C", "cubic"])],
        args: &["-t", "5", "-C", "cubic"],
        right: &[Cause::Congestion],
        unconfirmed: &[Cause::Shaper, Cause::RandomLoss, Cause::TooShort],
        random: true,
        ..PLAIN
    },
    Situation {
        name: "shallow-buffer",
        means: &[Forwarder(delay_ms(100)), SinglePackets, tbf!("rate 50mbit burst 10kb limit 15000")],
        args: &["-t", "8", "-C", "cubic"],
        right: &[Cause::ShallowBuffer, Cause::Congestion],
        unconfirmed: &[Cause::RandomLoss, Cause::TooShort, Cause::Shaper, Cause::Policer],
        ..PLAIN
    },
];
