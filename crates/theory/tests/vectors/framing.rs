//! Frames, ceilings, units of other programs, block sizes.

use linerate_theory::block_size::{
    block_rate_bps, call_time_at_rate_s, half_performance_bytes, incremental_rate_bps,
};
use linerate_theory::conversion::{
    MIB, TtcpPrefix, average_rate_bps, call_time_s, gibibytes, gigabytes, land_speed_bit_m_per_s,
    mebibytes_per_second_bps, rate_of_land_speed_bps, share_of_ceiling, total_bytes, transfer_time_s,
    transferred_bytes, ttcp_msec_per_call, ttcp_printed, ttcp_rate_bps, without_binary_factor_bps,
};
use linerate_theory::encapsulation::{Esp, esp_inner_bytes, wireguard_bytes};
use linerate_theory::ethernet::{
    half_duplex_frames_per_second, half_duplex_minimum_goodput_bps, half_duplex_slot_s, line_rate_bps,
};
use linerate_theory::framing::{
    Headers, IpVersion, PREAMBLE_AND_GAP_BYTES, acceptable_ceiling_bps, ack_wire_bytes, effective_mss_bytes,
    efficiency, frame_interval_s, frames_per_second, goodput_ceiling_bps, inter_packet_gap_s, layers_bytes,
    mac_client_rate_bps, mtu_for_efficiency_bytes, packet_count_ratio, packet_rate_ceiling_bps,
    payload_bytes, payload_rate_bps, retransmission_ratio, tcp_option_bytes, wire_bytes,
};

use super::{Inputs, Row, number};

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

fn esp(i: &Inputs<'_>) -> Option<f64> {
    let parts = Esp {
        ip_header_bytes: i.number("hip")?,
        iv_bytes: i.number("iv")?,
        icv_bytes: i.number("icv")?,
        align_bytes: i.number("align")?,
    };
    esp_inner_bytes(i.number("MTU")?, &parts)
}

/// Efficiency of full TCP segments at an MTU.
fn full_efficiency(mtu_bytes: f64, headers: &Headers) -> Option<f64> {
    efficiency(payload_bytes(mtu_bytes, headers)?, wire_bytes(mtu_bytes, 0.0)?)
}

fn incremental(i: &Inputs<'_>) -> Option<f64> {
    // Times are in microseconds.
    incremental_rate_bps((i.number("L1")?, i.number("t1")? / 1e6), (i.number("L2")?, i.number("t2")? / 1e6))
}

pub(crate) const ROWS: &[Row] = &[
    ("max(64,14+4*tags+M+4)+8+12", |i| number(wire_bytes(i.number("M")?, i.number("tags")?))),
    ("R*(M-encap-hip-htcp-opts)/(max(64,14+4*tags+M+4)+20)", |i| number(ceiling(i, "htcp"))),
    ("R*(M-encap-hip-hudp-opts)/(max(64,14+4*tags+M+4)+20)", |i| number(ceiling(i, "hudp"))),
    ("R/(8*(max(64,14+4*tags+M+4)+20))", |i| {
        number(frames_per_second(i.number("R")?, wire_bytes(i.number("M")?, i.number("tags")?)?))
    }),
    ("hip+8+32", |i| number(wireguard_bytes(i.number("hip")?))),
    ("floor((MTU-hip-8-iv-icv)/align)*align-2", |i| number(esp(i))),
    ("12+4+8*n", |i| number(tcp_option_bytes(true, Some(i.count("n")?)))),
    ("4+8*n", |i| number(tcp_option_bytes(false, Some(i.count("n")?)))),
    ("max(64,14+hip+20+opts+4)+20", |i| number(ack_wire_bytes(i.number("hip")?, i.number("opts")?))),
    ("R/(8*(F+20))", |i| number(frames_per_second(i.number("R")?, i.number("F")? + PREAMBLE_AND_GAP_BYTES))),
    ("R*(F-18)/(F+20)", |i| number(mac_client_rate_bps(i.number("R")?, i.number("F")?))),
    ("8e6*(F+20)/R", |i| {
        number(frame_interval_s(i.number("R")?, i.number("F")?).map(|seconds| seconds * 1e6))
    }),
    ("96e9/R", |i| number(inter_packet_gap_s(i.number("R")?).map(|seconds| seconds * 1e9))),
    ("R/(8*(8+512+12))", |i| number(half_duplex_frames_per_second(i.number("R")?))),
    ("R*46/(8+512+12)", |i| number(half_duplex_minimum_goodput_bps(i.number("R")?))),
    ("512*8*1e6/R", |i| number(half_duplex_slot_s(i.number("R")?).map(|seconds| seconds * 1e6))),
    ("pay+20+20+18+20", |i| number(layers_bytes(i.number("pay")?, &plain(), 0.0))),
    ("(M-40-opts)/(M+38)", |i| {
        let headers = Headers { option_bytes: i.number("opts")?, ..plain() };
        number(full_efficiency(i.number("M")?, &headers))
    }),
    ("8960/(M+38)", |i| number(efficiency(8960.0, wire_bytes(i.number("M")?, 0.0)?))),
    ("rate*t/8/1e9", |i| number(gigabytes(transferred_bytes(i.number("rate")?, i.number("t")?)?))),
    ("rate*t/8/2**30", |i| number(gibibytes(transferred_bytes(i.number("rate")?, i.number("t")?)?))),
    ("retr/(rate*t/8/mss)", |i| {
        number(retransmission_ratio(i.number("retr")?, i.number("rate")?, i.number("t")?, i.number("mss")?))
    }),
    ("min(user_mss,peer_adv_mss,pmtu-hip-20)-opts", |i| {
        number(effective_mss_bytes(
            i.number("user_mss")?,
            i.number("peer_adv_mss")?,
            i.number("pmtu")?,
            i.number("hip")?,
            i.number("opts")?,
        ))
    }),
    ("print_val*1048576", |i| number(ttcp_rate_bps(i.number("print_val")?, TtcpPrefix::Mega))),
    ("true_bps/1048576", |i| number(ttcp_printed(i.number("true_bps")?, TtcpPrefix::Mega))),
    ("print_val*1024", |i| number(ttcp_rate_bps(i.number("print_val")?, TtcpPrefix::Kilo))),
    ("print_val*1073741824", |i| number(ttcp_rate_bps(i.number("print_val")?, TtcpPrefix::Giga))),
    ("1024*t/calls", |i| number(ttcp_msec_per_call(i.number("t")?, i.number("calls")?))),
    ("1000*t/calls", |i| {
        number(call_time_s(i.number("t")?, i.number("calls")?).map(|seconds| seconds * 1e3))
    }),
    ("l*n", |i| number(total_bytes(i.number("l")?, i.number("n")?))),
    ("256*1024*n", |i| number(total_bytes(256.0 * 1024.0, i.number("n")?))),
    ("l*n*8/1e9", |i| number(transfer_time_s(total_bytes(i.number("l")?, i.number("n")?)?, 1e9))),
    ("mib*1048576*8", |i| number(mebibytes_per_second_bps(i.number("mib")?))),
    ("1e6*L/(mib*1048576)", |i| {
        let rate = mebibytes_per_second_bps(i.number("mib")?)?;
        number(call_time_at_rate_s(i.number("L")?, rate).map(|seconds| seconds * 1e6))
    }),
    ("mb*1048576*8/t", |i| number(average_rate_bps(i.number("mb")? * MIB, i.number("t")?))),
    ("claim*8/(R*1448/1538)", |i| {
        number(share_of_ceiling(average_rate_bps(i.number("claim")?, 1.0)?, stamped_ceiling(i.number("R")?)?))
    }),
    ("mib*1048576*8/(100e6*1448/1538)", |i| {
        number(share_of_ceiling(mebibytes_per_second_bps(i.number("mib")?)?, stamped_ceiling(100e6)?))
    }),
    ("MB*8e6/(min_*60)", |i| number(average_rate_bps(i.number("MB")? * 1e6, i.number("min_")? * 60.0))),
    ("18*MB*8e6/(min_*60)", |i| {
        number(average_rate_bps(total_bytes(i.number("MB")? * 1e6, 18.0)?, i.number("min_")? * 60.0))
    }),
    ("8e9/t", |i| number(average_rate_bps(1e9, i.number("t")?))),
    ("bytes_*8/t", |i| number(average_rate_bps(i.number("bytes_")?, i.number("t")?))),
    ("B*8/rate", |i| number(transfer_time_s(i.number("B")?, i.number("rate")?))),
    ("B*1e9*8/rate", |i| number(transfer_time_s(i.number("B")? * 1e9, i.number("rate")?))),
    ("B*2**30*8/rate", |i| {
        number(transfer_time_s(total_bytes(2f64.powi(30), i.number("B")?)?, i.number("rate")?))
    }),
    ("rate*dist/1e15", |i| {
        number(land_speed_bit_m_per_s(i.number("rate")?, i.number("dist")?).map(|figure| figure / 1e15))
    }),
    ("rate*dist/1e12", |i| {
        number(land_speed_bit_m_per_s(i.number("rate")?, i.number("dist")?).map(|figure| figure / 1e12))
    }),
    ("rec*1e15/dist", |i| number(rate_of_land_speed_bps(i.number("rec")? * 1e15, i.number("dist")?))),
    ("rep/1.048576", |i| number(without_binary_factor_bps(i.number("rep")?))),
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
    ("8e9/(100e6*1500/1538)", |_| number(transfer_time_s(1e9, packet_rate_ceiling_bps(100e6, 1500.0, 0.0)?))),
    ("2**30/(100e6*1500/1538)", |_| {
        number(transfer_time_s(2f64.powi(30) / 8.0, packet_rate_ceiling_bps(100e6, 1500.0, 0.0)?))
    }),
    ("((9000-52)/(9000+38))/((1500-52)/(1500+38))", |_| {
        let (jumbo, standard) = (full_efficiency(9000.0, &stamped())?, full_efficiency(1500.0, &stamped())?);
        number(share_of_ceiling(jumbo, standard))
    }),
    ("(9000-52)/(1500-52)", |_| {
        number(packet_count_ratio(payload_bytes(9000.0, &stamped())?, payload_bytes(1500.0, &stamped())?))
    }),
    ("250*4", |_| number(line_rate_bps(4.0, 125e6, 2.0).map(|rate| rate / 1e6))),
    ("t0*R/8", |i| number(half_performance_bytes(i.number("t0")?, i.number("R")?))),
    ("8*n/(t0+8*n/R)", |i| number(block_rate_bps(i.number("n")?, i.number("t0")?, i.number("R")?))),
    ("8e6*(L2-L1)/(t2-t1)", |i| number(incremental(i))),
    ("(C-udp)*8948/9038", |i| {
        let left = i.number("C")? - i.number("udp")?;
        number(payload_rate_bps(left, payload_bytes(9000.0, &stamped())?, wire_bytes(9000.0, 0.0)?))
    }),
];
