//! The traffic at a port of an emulated network: its queue and its line, in the direction away from the node.

use linerate_units::{Bitrate, Bytes, Ratio};

use super::metrics;

metrics! {
    /// Packets sent to the line in the interval.
    /// Discussion: as on the wire; a GSO super-packet from a host counts as its segments.
    PACKETS: u64 = "port.packets", Counter, Neither, "RFC 2863, ifHCOut...Pkts together";
    /// Frames sent to the line in the interval, with frame check sequence and VLAN tags, without preamble and
    /// gap.
    BYTES: Bytes = "port.bytes", Counter, Neither, "RFC 2863 ifHCOutOctets";
    /// Bits on the wire per second of the interval, with preamble and gap between frames.
    /// Discussion: comparable with the line rate; a fully used line has exactly that rate.
    RATE: Bitrate = "port.rate", Mean, Neither, "IEEE 802.3 clauses 3 and 4";
    /// Packets dropped at the port in the interval for any reason: full queue, policer, early detection.
    DROPPED: u64 = "port.dropped", Counter, Lower, "RFC 2863 ifOutDiscards";
    /// Packets marked with congestion experienced in the interval.
    MARKED: u64 = "port.marked", Counter, Lower, "RFC 3168 §5";
    /// Frames in the queue at the end of the interval, without the one being transmitted.
    QUEUE: Bytes = "port.queue", Gauge, Lower, "RFC 7567 §1";
    /// Maximum of the queue in the interval.
    QUEUE_MAX: Bytes = "port.queue_max", Peak, Lower, "RFC 7567 §1";
    /// Share of the interval in which the line was transmitting.
    BUSY: Ratio = "port.busy", Mean, Neither, "own definition";
}
