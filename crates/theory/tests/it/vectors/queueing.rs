//! Buffers, policers, shapers, delay lines.

use linerate_theory::conversion::MIB;
use linerate_theory::queueing::{
    aimd_utilisation, bucket_empty_s, bucket_first_bytes, buffer_for_backoff_bytes, buffer_for_flows_bytes,
    cubic_utilisation_without_buffer, delay_line_packets, delay_line_rate_bps, implied_rtt_s,
    least_window_bytes, policer_loss, queue_bytes, shaper_delay_s, udp_wire_rate_bps,
    window_at_first_drop_bytes,
};
use linerate_theory::slow_start::burst_queue_bytes;

use super::{FormulaCall, number};

pub(crate) const ROWS: &[FormulaCall] = &[
    ("C*rtt/8", |i| number(buffer_for_flows_bytes(i.number("C")?, i.number("rtt")?, 1.0))),
    ("C*rtt/8/sqrt(n)", |i| number(buffer_for_flows_bytes(i.number("C")?, i.number("rtt")?, i.number("n")?))),
    ("C*rtt/8*(1-beta)/beta", |i| {
        number(buffer_for_backoff_bytes(i.number("C")?, i.number("rtt")?, i.number("beta")?))
    }),
    ("(((1-w0**2)/2)+((1+b)**2-1)/2)/((1-w0)+((1+b)**2-1)/2) if w0<1 else 1.0", |i| {
        number(aimd_utilisation(i.number("b")?, i.number("w0")?))
    }),
    ("(3+beta)/4", |i| number(cubic_utilisation_without_buffer(i.number("beta")?))),
    ("pay*(len_+8+20+38)/len_", |i| number(udp_wire_rate_bps(i.number("pay")?, i.number("len_")?))),
    ("cwnd*1048576*8/rate", |i| number(implied_rtt_s(i.number("cwnd")? * MIB, i.number("rate")?))),
    ("(rtt-rtt0)*C/8", |i| number(queue_bytes(i.number("rtt")?, i.number("rtt0")?, i.number("C")?))),
    ("Rtcp*(rtt0+B*8/C)/8", |i| {
        let (rate, rtt) = (i.number("Rtcp")?, i.number("rtt0")?);
        number(window_at_first_drop_bytes(rate, rtt, i.number("B")?, i.number("C")?))
    }),
    ("W*(1-(C-U)/C)", |i| {
        let capacity = i.number("C")?;
        number(burst_queue_bytes(i.number("W")?, capacity - i.number("U")?, capacity))
    }),
    ("R*d/8/size", |i| number(delay_line_packets(i.number("R")?, i.number("d")?, i.number("size")?))),
    ("limit*mss*8/d", |i| number(delay_line_rate_bps(i.number("limit")?, i.number("mss")?, i.number("d")?))),
    ("C*(rtt_max-rtt_min)/8", |i| {
        number(queue_bytes(i.number("rtt_max")?, i.number("rtt_min")?, i.number("C")?))
    }),
    ("mb*1048576*rtt", |i| number(least_window_bytes(i.number("mb")? * MIB, i.number("rtt")?))),
    ("B*8/(line-cir)", |i| number(bucket_empty_s(i.number("B")?, i.number("line")?, i.number("cir")?))),
    ("line*B/(line-cir)", |i| {
        number(bucket_first_bytes(i.number("B")?, i.number("line")?, i.number("cir")?))
    }),
    ("1-cir/offered", |i| number(policer_loss(i.number("cir")?, i.number("offered")?))),
    ("buf*8/rate", |i| number(shaper_delay_s(i.number("buf")?, i.number("rate")?))),
];
