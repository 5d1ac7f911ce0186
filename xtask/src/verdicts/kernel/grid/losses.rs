//! Policers, losses, reordering, packet sizes, and the return path.

use std::time::Duration;

use linerate_model::Cause;

use super::super::situation::Means::{
    Blackout, Filter, FilterBack, Forwarder, Mtu, NeighbourBack, Qdisc, SinglePackets, Sysctl,
};
use super::super::situation::PathHost::{B, East, West};
use super::super::situation::{Forwarding, PLAIN, Situation, delay_ms, rtt_ms};

const POLICER: Situation = Situation { right: &[Cause::Policer], ..PLAIN };

const LOSS: Situation =
    Situation { right: &[Cause::RandomLoss], unconfirmed: &[Cause::Congestion], random: true, ..PLAIN };

const RETURN_PATH: Situation = Situation { right: &[Cause::ReturnPath], ..PLAIN };

pub(in super::super) const SITUATIONS: &[Situation] = &[
    Situation {
        name: "policer-2m",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 250 kbytes/second burst 16 kbytes counter drop"),
        ],
        ..POLICER
    },
    Situation {
        name: "policer-20m-small-bucket",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 2500 kbytes/second burst 64 kbytes counter drop"),
        ],
        ..POLICER
    },
    Situation {
        name: "policer-20m-large-bucket",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 2500 kbytes/second burst 1000 kbytes counter drop"),
        ],
        args: &["-t", "5", "-C", "cubic"],
        ..POLICER
    },
    // nft's byte bucket holds a second of the rate in addition to its burst: 25 MB, which TCP uses up in the
    // first second. After the losses it needs more time to reach the rate again, and is policed from then on.
    Situation {
        name: "policer-200m",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 25 mbytes/second burst 512 kbytes counter drop"),
        ],
        args: &["-t", "10", "-C", "cubic"],
        ..POLICER
    },
    Situation {
        name: "policer-20m-8-streams",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 2500 kbytes/second burst 250 kbytes counter drop"),
        ],
        args: &["-t", "3", "-C", "cubic", "-P", "8"],
        ..POLICER
    },
    Situation {
        name: "policer-packets",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 2000/second burst 100 packets counter drop"),
        ],
        ..POLICER
    },
    Situation {
        name: "udp-100m-into-policer-50m",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("limit rate over 6250 kbytes/second burst 64 kbytes counter drop"),
        ],
        args: &["-t", "3", "-u", "-b", "100M"],
        right: &[Cause::Policer],
        unconfirmed: &[Cause::ShallowBuffer, Cause::Shaper, Cause::Congestion, Cause::Link],
        ..PLAIN
    },
    Situation {
        name: "udp-loss-1-percent",
        means: &[rtt_ms(10), SinglePackets, Filter("numgen random mod 100 == 0 counter drop")],
        args: &["-t", "3", "-u", "-b", "20M"],
        forbidden_text: &["offer more"],
        ..LOSS
    },
    Situation {
        name: "loss-1e-2",
        means: &[rtt_ms(10), SinglePackets, Filter("numgen random mod 100 == 0 counter drop")],
        ..LOSS
    },
    Situation {
        name: "loss-1e-3",
        means: &[rtt_ms(10), SinglePackets, Filter("numgen random mod 1000 == 0 counter drop")],
        args: &["-t", "5", "-C", "cubic"],
        ..LOSS
    },
    Situation {
        name: "loss-1e-3-8-streams",
        means: &[rtt_ms(100), SinglePackets, Filter("numgen random mod 1000 == 0 counter drop")],
        args: &["-t", "10", "-C", "cubic", "-P", "8"],
        ..LOSS
    },
    Situation {
        name: "loss-every-1000th",
        means: &[rtt_ms(10), SinglePackets, Filter("numgen inc mod 1000 == 0 counter drop")],
        args: &["-t", "5", "-C", "cubic"],
        ..LOSS
    },
    Situation {
        name: "loss-1e-3-rtt100",
        means: &[rtt_ms(100), SinglePackets, Filter("numgen random mod 1000 == 0 counter drop")],
        args: &["-t", "10", "-C", "cubic"],
        unconfirmed: &[Cause::Congestion, Cause::TooShort],
        ..LOSS
    },
    Situation {
        name: "reordering-jitter",
        means: &[
            Forwarder(Forwarding { jitter_us: 3000, overtaking: true, ..delay_ms(10) }),
            SinglePackets,
            Qdisc(East, "right", "root tbf rate 200mbit burst 64kb latency 40ms"),
        ],
        right: &[Cause::Reordering],
        unconfirmed: &[Cause::Shaper],
        random: true,
        ..PLAIN
    },
    Situation {
        name: "reordering-sparse",
        means: &[
            Forwarder(Forwarding { late_every: 300, late_us: 20_000, ..delay_ms(10) }),
            SinglePackets,
            Qdisc(East, "right", "root tbf rate 200mbit burst 64kb latency 40ms"),
        ],
        args: &["-t", "5", "-C", "cubic"],
        right: &[Cause::Reordering],
        ..PLAIN
    },
    Situation {
        name: "blackouts",
        means: &[
            rtt_ms(10),
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
            Blackout(Duration::from_millis(2000), Duration::from_millis(700)),
            Blackout(Duration::from_millis(3600), Duration::from_millis(700)),
        ],
        args: &["-t", "5", "-C", "cubic"],
        right: &[Cause::Timeouts],
        ..PLAIN
    },
    Situation {
        name: "black-hole",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("meta length > 1300 counter drop"),
            Sysctl(super::super::situation::PathHost::A, "net.ipv4.tcp_mtu_probing=0"),
        ],
        right: &[Cause::Mtu],
        ..PLAIN
    },
    Situation {
        name: "black-hole-probed",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("meta length > 1300 counter drop"),
            Sysctl(super::super::situation::PathHost::A, "net.ipv4.tcp_mtu_probing=1"),
        ],
        args: &["-t", "8", "-C", "cubic"],
        secondary: &[Cause::Mtu],
        ..PLAIN
    },
    // The rate limit of acknowledgements is too low for the forward direction.
    Situation {
        name: "return-path-500k",
        means: &[
            rtt_ms(10),
            Qdisc(East, "right", "root tbf rate 200mbit burst 64kb latency 40ms"),
            Qdisc(West, "left", "root tbf rate 500kbit burst 5kb latency 300ms"),
        ],
        args: &["-t", "5", "-C", "cubic"],
        ..RETURN_PATH
    },
    Situation {
        name: "return-path-ack-loss",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Qdisc(East, "right", "root tbf rate 200mbit burst 64kb latency 40ms"),
            // Acknowledgements are cumulative: a few are enough while the queue lasts. Five per second arrive
            // 200 ms apart, which the 40 ms of queue cannot bridge, so the link idles most of the time. Packets
            // with data, and those that open or close a connection, pass.
            FilterBack(
                "tcp flags & (syn | fin | rst | psh) == 0 meta length < 100 limit rate over 5/second burst 5 packets counter drop",
            ),
        ],
        args: &["-t", "5", "-C", "cubic"],
        ..RETURN_PATH
    },
    Situation {
        name: "return-path-busy",
        means: &[
            rtt_ms(10),
            Qdisc(East, "right", "root tbf rate 100mbit burst 32kb latency 40ms"),
            Qdisc(West, "left", "root tbf rate 2mbit burst 5kb latency 400ms"),
            NeighbourBack(&["-C", "cubic"]),
        ],
        args: &["-t", "8", "-C", "cubic"],
        // The queue existed before the test, so neither end has seen the path without it.
        right: &[Cause::ReturnPath, Cause::Unknown],
        ..PLAIN
    },
];

pub(in super::super) const CONTROLS: &[Situation] = &[
    Situation {
        name: "control-mtu-1300-told",
        means: &[
            rtt_ms(10),
            Mtu(East, "right", 1300),
            Mtu(B, "eth0", 1300),
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
        ],
        forbidden_text: &["black hole", "mtu_probing"],
        ..super::CONTROL
    },
    Situation {
        name: "control-one-loss-in-5000",
        means: &[
            rtt_ms(10),
            SinglePackets,
            Filter("numgen inc mod 5000 == 4999 counter drop"),
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
        ],
        ..super::CONTROL
    },
    Situation {
        name: "control-duplicates",
        means: &[
            Forwarder(Forwarding { twice_every: 100, ..delay_ms(10) }),
            SinglePackets,
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
        ],
        ..super::CONTROL
    },
    Situation {
        name: "control-jitter",
        means: &[
            Forwarder(Forwarding { jitter_us: 2000, ..delay_ms(10) }),
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
        ],
        random: true,
        ..super::CONTROL
    },
    Situation {
        name: "control-harmless-reordering",
        means: &[
            Forwarder(Forwarding { late_every: 500, late_us: 700, ..delay_ms(10) }),
            SinglePackets,
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
        ],
        ..super::CONTROL
    },
    Situation {
        name: "control-ample-return-path",
        means: &[
            rtt_ms(10),
            Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms"),
            Qdisc(West, "left", "root tbf rate 3mbit burst 10kb latency 50ms"),
        ],
        ..super::CONTROL
    },
];
