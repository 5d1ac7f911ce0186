//! Windows, the sender's error, feasibility, and the speed of light.

use linerate_theory::bdp::{
    LinuxBuffer, UNSCALED_WINDOW_BYTES, bdp_bits, bdp_bytes, rtt_for_window_s, window_rate_bps,
    window_scale_exponent, windowed_goodput_bps,
};
use linerate_theory::sender_error::{
    LIGHT_M_PER_S, longest_path_m, outstanding_for_report_bytes, overreport, path_stretch,
    payload_per_packet_bytes, round_trip_floor_s, signal_speed_m_per_s, wire_rate_needed_bps,
};
use linerate_theory::slow_start::rounds;

use super::framing::{plain, stamped, stamped_ceiling};
use super::{FormulaCall, number};

pub(crate) const ROWS: &[FormulaCall] = &[
    ("R*rtt/8", |i| number(bdp_bytes(i.number("R")?, i.number("rtt")?))),
    ("R*rtt", |i| number(bdp_bits(i.number("R")?, i.number("rtt")?))),
    ("R*1448/1538*rtt/8", |i| number(bdp_bytes(stamped_ceiling(i.number("R")?)?, i.number("rtt")?))),
    ("min(8*W/rtt,R*1448/1538)", |i| {
        number(windowed_goodput_bps(i.number("W")?, i.number("rtt")?, stamped_ceiling(i.number("R")?)?))
    }),
    ("ceil(log2(W/65535))", |i| number(window_scale_exponent(i.number("W")?))),
    ("8*65535*2**14/rtt", |i| {
        number(window_rate_bps(UNSCALED_WINDOW_BYTES * 2f64.powi(14), i.number("rtt")?))
    }),
    ("8*(m-(m>>1))/rtt", |i| {
        number(window_rate_bps(LinuxBuffer::Receive.window_bytes(i.number("m")?)?, i.number("rtt")?))
    }),
    ("8*16000/rtt", |i| number(window_rate_bps(16_000.0, i.number("rtt")?))),
    ("W*8/rtt", |i| number(window_rate_bps(i.number("W")?, i.number("rtt")?))),
    ("8*W/R", |i| number(rtt_for_window_s(i.number("W")?, i.number("R")?))),
    ("W*8/R", |i| number(rtt_for_window_s(i.number("W")?, i.number("R")?))),
    ("ceil(log2(W/W0))", |i| number(rounds(i.number("W")?, i.number("W0")?, 2.0))),
    ("sp*1e6*rtt*1e-3", |i| number(bdp_bits(i.number("sp")? * 1e6, i.number("rtt")? * 1e-3))),
    // Mbit/s and ms give kilobytes.
    ("sp*rtt/8", |i| {
        number(bdp_bytes(i.number("sp")? * 1e6, i.number("rtt")? * 1e-3).map(|bytes| bytes / 1e3))
    }),
    ("rate/8/pps", |i| number(payload_per_packet_bytes(i.number("rate")?, i.number("pps")?))),
    ("(rate/8/pps+40+38)*8*pps", |i| {
        number(wire_rate_needed_bps(i.number("rate")?, i.number("pps")?, &plain(), 0.0))
    }),
    ("(rate/8/pps+52+38)*8*pps", |i| {
        number(wire_rate_needed_bps(i.number("rate")?, i.number("pps")?, &stamped(), 0.0))
    }),
    ("N*(1-Rtrue/Rrep)", |i| {
        number(outstanding_for_report_bytes(i.number("N")?, i.number("Rtrue")?, i.number("Rrep")?))
    }),
    ("N/(N-Q)-1", |i| number(overreport(i.number("N")?, i.number("Q")?))),
    // Distances are in kilometres.
    ("2*d*n/299792.458", |i| {
        number(round_trip_floor_s(i.number("d")? * 1e3, signal_speed_m_per_s(i.number("n")?)?))
    }),
    ("2*d/299792.458", |i| number(round_trip_floor_s(i.number("d")? * 1e3, LIGHT_M_PER_S))),
    ("2*d/200000", |i| number(round_trip_floor_s(i.number("d")? * 1e3, 200e6))),
    ("2*4500/200000", |_| number(round_trip_floor_s(4500e3, 200e6))),
    ("rtt/2*299792.458/n", |i| {
        number(
            longest_path_m(i.number("rtt")?, signal_speed_m_per_s(i.number("n")?)?)
                .map(|metres| metres / 1e3),
        )
    }),
    ("rtt*299792.458/(2*n*d)", |i| {
        number(path_stretch(i.number("rtt")?, signal_speed_m_per_s(i.number("n")?)?, i.number("d")? * 1e3))
    }),
];
