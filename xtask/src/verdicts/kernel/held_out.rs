//! Ten situations that are not used while tuning rules: selected from the middle of the grid before the first
//! rule was changed, with values that no other situation has.

use super::grid::SHAPER;
use super::situation::Means::{Filter, Qdisc, Quota, Route, SinglePackets, Sysctl};
use super::situation::PathHost::{A, B, East, West};
use super::situation::{PLAIN, Situation, rtt_ms};
use linerate_model::Cause;

pub(super) const SITUATIONS: &[Situation] = &[
    Situation {
        name: "aside-shaper-30m",
        means: &[rtt_ms(30), Qdisc(East, "right", "root tbf rate 30mbit burst 20kb latency 60ms")],
        args: &["-t", "4", "-C", "cubic"],
        ..SHAPER
    },
    Situation {
        name: "aside-shaper-150m-4-streams",
        means: &[rtt_ms(5), Qdisc(East, "right", "root tbf rate 150mbit burst 50kb latency 20ms")],
        args: &["-t", "3", "-C", "cubic", "-P", "4"],
        ..SHAPER
    },
    Situation {
        name: "aside-policer-12m",
        means: &[
            rtt_ms(20),
            SinglePackets,
            Filter("limit rate over 1500 kbytes/second burst 120 kbytes counter drop"),
        ],
        args: &["-t", "4", "-C", "cubic"],
        right: &[Cause::Policer],
        ..PLAIN
    },
    Situation {
        name: "aside-loss-3e-3",
        means: &[rtt_ms(30), SinglePackets, Filter("numgen random mod 330 == 0 counter drop")],
        args: &["-t", "6", "-C", "cubic"],
        right: &[Cause::RandomLoss],
        unconfirmed: &[Cause::Congestion],
        random: true,
        ..PLAIN
    },
    Situation {
        name: "aside-rmem-200k",
        means: &[rtt_ms(30), Sysctl(B, "net.ipv4.tcp_rmem=4096 131072 200000")],
        right: &[Cause::ReceiverWindow],
        ..PLAIN
    },
    Situation {
        name: "aside-route-window",
        means: &[rtt_ms(40), Route(B, "window 48000")],
        right: &[Cause::ReceiverWindow],
        forbidden_text: &["raise net.ipv4.tcp_rmem", "tcp_rmem of"],
        ..PLAIN
    },
    Situation {
        name: "aside-return-path-300k",
        means: &[
            rtt_ms(20),
            Qdisc(East, "right", "root tbf rate 100mbit burst 32kb latency 40ms"),
            Qdisc(West, "left", "root tbf rate 300kbit burst 5kb latency 200ms"),
        ],
        args: &["-t", "5", "-C", "cubic"],
        right: &[Cause::ReturnPath],
        ..PLAIN
    },
    Situation {
        name: "aside-own-tbf-35m",
        means: &[rtt_ms(20), Qdisc(A, "eth0", "root tbf rate 35mbit burst 20kb latency 40ms")],
        right: &[Cause::Shaper],
        required_text: &["tbf"],
        ..PLAIN
    },
    Situation {
        name: "aside-udp-60m-into-25m",
        means: &[
            rtt_ms(20),
            SinglePackets,
            Qdisc(East, "right", "root tbf rate 25mbit burst 20kb latency 30ms"),
        ],
        args: &["-t", "3", "-u", "-b", "60M"],
        right: &[Cause::Shaper],
        unconfirmed: &[Cause::Link, Cause::Congestion],
        ..PLAIN
    },
    Situation {
        name: "aside-quota-5-server",
        means: &[rtt_ms(10), Quota(B, 5)],
        args: &["-t", "4", "-C", "cubic"],
        right: &[Cause::CpuReceiver],
        unconfirmed: &[Cause::HostBusy],
        alone: true,
        ..PLAIN
    },
];
