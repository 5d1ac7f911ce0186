//! What passes a port of an emulated network: its queue and its line, in the direction away from the node.

use linerate_units::{Bitrate, Bytes, Ratio};

use super::metrics;

metrics! {
    /// Packets sent to the line in the interval.
    /// Discussion: as on the wire; a bundle of segments that the hosts hand over in one piece counts as its segments.
    PACKETS: u64 = "port.packets", Counter, Neither, "RFC 2863, ifHCOut...Pkts together";
    /// Frames sent to the line in the interval, with check sequence and VLAN tags, without preamble and gap.
    BYTES: Bytes = "port.bytes", Counter, Neither, "RFC 2863 ifHCOutOctets";
    /// Bits on the wire per second of the interval, with preamble and gap between frames.
    /// Discussion: compares with the line rate; a full line has exactly that.
    RATE: Bitrate = "port.rate", Mean, Neither, "IEEE 802.3 clauses 3 and 4";
    /// Packets thrown away at the port in the interval, for whatever reason: no room, policer, early detection.
    DROPPED: u64 = "port.dropped", Counter, Lower, "RFC 2863 ifOutDiscards";
    /// Packets marked as having met congestion in the interval.
    MARKED: u64 = "port.marked", Counter, Lower, "RFC 3168 §5";
    /// Frames that wait in the queue at the end of the interval; the one on the line is not among them.
    QUEUE: Bytes = "port.queue", Gauge, Lower, "RFC 7567 §1";
    /// Most that waited in the queue at any moment of the interval.
    QUEUE_MAX: Bytes = "port.queue_max", Peak, Lower, "RFC 7567 §1";
    /// Share of the interval in which the line was sending.
    BUSY: Ratio = "port.busy", Mean, Neither, "own definition";
}
