//! Quantities of results by name and unit.

use linerate_model::import::Quantity;

/// Name and unit of a quantity in JSON. A quantity of a later version has the name `other`.
#[must_use]
pub fn name_and_unit(quantity: Quantity) -> (&'static str, &'static str) {
    match quantity {
        Quantity::Bytes => ("bytes", "B"),
        Quantity::Seconds => ("seconds", "s"),
        Quantity::Bitrate => ("bitrate", "bit/s"),
        Quantity::Packets => ("packets", "1"),
        Quantity::PacketRate => ("packet_rate", "1/s"),
        Quantity::Lost => ("lost", "1"),
        Quantity::LossRatio => ("loss_ratio", "ratio"),
        Quantity::OutOfOrder => ("out_of_order", "1"),
        Quantity::Jitter => ("jitter", "s"),
        Quantity::Retransmits => ("retransmits", "1"),
        Quantity::CongestionWindow => ("cwnd", "B"),
        Quantity::RoundTrip => ("rtt", "s"),
        Quantity::RoundTripVariation => ("rtt_variation", "s"),
        Quantity::OneWay => ("one_way_delay", "s"),
        Quantity::Calls => ("calls", "1"),
        Quantity::CallRate => ("call_rate", "1/s"),
        Quantity::CallTime => ("call_time", "s"),
        Quantity::MessageSize => ("message_size", "B"),
        Quantity::CpuLocal => ("cpu_local", "ratio"),
        Quantity::CpuRemote => ("cpu_remote", "ratio"),
        Quantity::CpuSender => ("cpu_sender", "ratio"),
        Quantity::CpuReceiver => ("cpu_receiver", "ratio"),
        Quantity::CyclesPerByte => ("cycles_per_byte", "1/B"),
        Quantity::PacketsPerInterrupt => ("packets_per_interrupt", "1"),
        Quantity::Mss => ("mss", "B"),
        Quantity::Mtu => ("mtu", "B"),
        Quantity::SendBuffer => ("snd_buf", "B"),
        Quantity::ReceiveBuffer => ("rcv_buf", "B"),
        _ => ("other", "1"),
    }
}
