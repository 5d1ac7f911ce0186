//! Frames, ceilings, transfers, block sizes.

use linerate_theory::block_size::half_performance_bytes;
use linerate_theory::conversion::{
    GIB, MIB, average_rate_bps, land_speed_bit_m_per_s, transfer_time_s, transferred_bytes,
};
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::framing::{
    Headers, IpVersion, PREAMBLE_AND_GAP_BYTES, acceptable_ceiling_bps, ack_wire_bytes, frame_interval_s,
    frames_per_second, goodput_ceiling_bps, inter_packet_gap_s, layers_bytes, mtu_for_efficiency_bytes,
    payload_bytes, payload_rate_bps, retransmission_ratio, wire_bytes,
};
use linerate_theory::host::utilisation;

use super::{FormulaCall, Inputs, number};

/// TCP over IPv4 with and without timestamps.
pub(crate) fn stamped() -> Headers {
    Headers::tcp(IpVersion::V4, true)
}

pub(crate) fn plain() -> Headers {
    Headers::tcp(IpVersion::V4, false)
}

/// Goodput ceiling of a link with timestamps at MTU 1500.
pub(crate) fn stamped_ceiling(link_bps: f64) -> Option<f64> {
    goodput_ceiling_bps(link_bps, 1500.0, &stamped(), 0.0)
}

fn ceiling(i: &Inputs<'_>, transport: &str) -> Option<f64> {
    let headers = Headers {
        encapsulation_bytes: i.number("encap")?,
        ip_bytes: i.number("hip")?,
        transport_bytes: i.number(transport)?,
        option_bytes: i.number("opts")?,
    };
    goodput_ceiling_bps(i.number("R")?, i.number("M")?, &headers, i.number("tags")?)
}

pub(crate) const ROWS: &[FormulaCall] = &[
    ("max(64,14+4*tags+M+4)+8+12", |i| number(wire_bytes(i.number("M")?, i.number("tags")?))),
    ("R*(M-encap-hip-htcp-opts)/(max(64,14+4*tags+M+4)+20)", |i| number(ceiling(i, "htcp"))),
    ("R*(M-encap-hip-hudp-opts)/(max(64,14+4*tags+M+4)+20)", |i| number(ceiling(i, "hudp"))),
    ("R/(8*(max(64,14+4*tags+M+4)+20))", |i| {
        number(frames_per_second(i.number("R")?, wire_bytes(i.number("M")?, i.number("tags")?)?))
    }),
    ("hip+8+32", |i| {
        let over = |ip: IpVersion| ip.header_bytes() == i.number("hip").unwrap_or_default();
        let tunnels =
            [(IpVersion::V4, Encapsulation::Wireguard4), (IpVersion::V6, Encapsulation::Wireguard6)];
        number(tunnels.into_iter().find(|(ip, _)| over(*ip)).map(|(_, tunnel)| tunnel.overhead_bytes()))
    }),
    ("max(64,14+hip+20+opts+4)+20", |i| {
        let headers = Headers { ip_bytes: i.number("hip")?, option_bytes: i.number("opts")?, ..plain() };
        number(ack_wire_bytes(&headers, 0.0))
    }),
    ("R/(8*(F+20))", |i| number(frames_per_second(i.number("R")?, i.number("F")? + PREAMBLE_AND_GAP_BYTES))),
    ("R*(F-18)/(F+20)", |i| {
        number(payload_rate_bps(
            i.number("R")?,
            i.number("F")? - 18.0,
            i.number("F")? + PREAMBLE_AND_GAP_BYTES,
        ))
    }),
    ("8e6*(F+20)/R", |i| {
        number(frame_interval_s(i.number("R")?, i.number("F")?).map(|seconds| seconds * 1e6))
    }),
    ("96e9/R", |i| number(inter_packet_gap_s(i.number("R")?).map(|seconds| seconds * 1e9))),
    ("R/(8*(8+512+12))", |i| number(frames_per_second(i.number("R")?, 512.0 + PREAMBLE_AND_GAP_BYTES))),
    ("R*46/(8+512+12)", |i| number(payload_rate_bps(i.number("R")?, 46.0, 512.0 + PREAMBLE_AND_GAP_BYTES))),
    ("512*8*1e6/R", |i| number(transfer_time_s(512.0, i.number("R")?).map(|seconds| seconds * 1e6))),
    ("pay+20+20+18+20", |i| number(layers_bytes(i.number("pay")?, &plain(), 0.0))),
    ("(M-40-opts)/(M+38)", |i| {
        let headers = Headers { option_bytes: i.number("opts")?, ..plain() };
        number(goodput_ceiling_bps(1.0, i.number("M")?, &headers, 0.0))
    }),
    ("8960/(M+38)", |i| number(payload_rate_bps(1.0, 8960.0, wire_bytes(i.number("M")?, 0.0)?))),
    ("rate*t/8/1e9", |i| {
        number(transferred_bytes(i.number("rate")?, i.number("t")?).map(|bytes| bytes / 1e9))
    }),
    ("retr/(rate*t/8/mss)", |i| {
        number(retransmission_ratio(i.number("retr")?, i.number("rate")?, i.number("t")?, i.number("mss")?))
    }),
    ("l*n*8/1e9", |i| number(transfer_time_s(i.number("l")? * i.number("n")?, 1e9))),
    ("mib*1048576*8", |i| number(average_rate_bps(i.number("mib")? * MIB, 1.0))),
    ("1e6*L/(mib*1048576)", |i| {
        let rate = average_rate_bps(i.number("mib")? * MIB, 1.0)?;
        number(transfer_time_s(i.number("L")?, rate).map(|seconds| seconds * 1e6))
    }),
    ("mb*1048576*8/t", |i| number(average_rate_bps(i.number("mb")? * MIB, i.number("t")?))),
    ("claim*8/(R*1448/1538)", |i| {
        number(utilisation(average_rate_bps(i.number("claim")?, 1.0)?, stamped_ceiling(i.number("R")?)?))
    }),
    ("mib*1048576*8/(100e6*1448/1538)", |i| {
        number(utilisation(average_rate_bps(i.number("mib")? * MIB, 1.0)?, stamped_ceiling(100e6)?))
    }),
    ("MB*8e6/(min_*60)", |i| number(average_rate_bps(i.number("MB")? * 1e6, i.number("min_")? * 60.0))),
    ("18*MB*8e6/(min_*60)", |i| {
        number(average_rate_bps(18.0 * i.number("MB")? * 1e6, i.number("min_")? * 60.0))
    }),
    ("8e9/t", |i| number(average_rate_bps(1e9, i.number("t")?))),
    ("bytes_*8/t", |i| number(average_rate_bps(i.number("bytes_")?, i.number("t")?))),
    ("B*8/rate", |i| number(transfer_time_s(i.number("B")?, i.number("rate")?))),
    ("B*1e9*8/rate", |i| number(transfer_time_s(i.number("B")? * 1e9, i.number("rate")?))),
    ("B*2**30*8/rate", |i| number(transfer_time_s(i.number("B")? * GIB, i.number("rate")?))),
    ("rate*dist/1e15", |i| {
        number(land_speed_bit_m_per_s(i.number("rate")?, i.number("dist")?).map(|figure| figure / 1e15))
    }),
    ("rate*dist/1e12", |i| {
        number(land_speed_bit_m_per_s(i.number("rate")?, i.number("dist")?).map(|figure| figure / 1e12))
    }),
    ("R*1460/1538", |i| number(goodput_ceiling_bps(i.number("R")?, 1500.0, &plain(), 0.0))),
    ("R*1448/1538", |i| number(stamped_ceiling(i.number("R")?))),
    ("R*(4470-52)/(4470+38)", |i| number(goodput_ceiling_bps(i.number("R")?, 4470.0, &stamped(), 0.0))),
    ("R*(M-52)/(M+38)*(1+ppm*1e-6)", |i| {
        let exact = goodput_ceiling_bps(i.number("R")?, i.number("M")?, &stamped(), 0.0)?;
        number(acceptable_ceiling_bps(exact, i.number("ppm")?))
    }),
    ("R/(8*1538)", |i| number(frames_per_second(i.number("R")?, wire_bytes(1500.0, 0.0)?))),
    ("R/(8*1500)", |i| number(frames_per_second(i.number("R")?, 1500.0))),
    ("100e6/(8*1518)", |_| {
        number(frames_per_second(100e6, linerate_theory::framing::frame_bytes(1500.0, 0.0)?))
    }),
    ("(38*g+40)/(1-g)", |i| number(mtu_for_efficiency_bytes(i.number("g")?, &plain()))),
    ("(38*g+52)/(1-g)", |i| number(mtu_for_efficiency_bytes(i.number("g")?, &stamped()))),
    ("8e9/(100e6*1500/1538)", |_| number(transfer_time_s(1e9, payload_rate_bps(100e6, 1500.0, 1538.0)?))),
    ("2**30/(100e6*1500/1538)", |_| {
        number(transfer_time_s(GIB / 8.0, payload_rate_bps(100e6, 1500.0, 1538.0)?))
    }),
    ("t0*R/8", |i| number(half_performance_bytes(i.number("t0")?, i.number("R")?))),
    ("(C-udp)*8948/9038", |i| {
        let left = i.number("C")? - i.number("udp")?;
        number(payload_rate_bps(left, payload_bytes(9000.0, &stamped())?, wire_bytes(9000.0, 0.0)?))
    }),
];
