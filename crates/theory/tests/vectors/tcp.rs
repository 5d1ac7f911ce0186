//! Loss models, recovery, slow start.

use linerate_theory::bdp::window_segments;
use linerate_theory::framing::packet_count_ratio;
use linerate_theory::sender_error::length_for_bias_s;
use linerate_theory::slow_start::{
    Start, burst_queue_bytes, exit_queue_bytes, hystart_threshold_s, initial_window_bytes, lost_time_s,
    rounds,
};
use linerate_theory::tcp_rate::{
    AIMD_CONSTANT_ROUNDED, CUBIC, Cubic, MATHIS_DELAYED_ACK, MATHIS_PER_SEGMENT, Pftk, bbr_loss_tolerance,
    bbr_probe_rtt_share, cubic_deficit_bytes, cubic_loss_for_window, cubic_recovery_ratio, cubic_recovery_s,
    cubic_window_segments, htcp_increase_segments, mathis_bps, mathis_loss_for_rate, pftk_full_bps,
    pftk_simple_bps, reno_deficit_bytes, reno_deficit_s, reno_recovery_s,
};

use super::{Inputs, Row, number};

fn mathis(i: &Inputs<'_>, constant_squared: f64) -> Option<f64> {
    mathis_bps(i.number("mss")?, i.number("rtt")?, i.number("p")?, constant_squared)
}

fn cubic_constants(i: &Inputs<'_>) -> Option<Cubic> {
    Some(Cubic { c: i.number("C")?, beta: i.number("beta")? })
}

fn pftk(i: &Inputs<'_>) -> Option<f64> {
    let path = Pftk {
        mss_bytes: i.number("mss")?,
        rtt_s: i.number("rtt")?,
        rto_s: i.number("T0")?,
        segments_per_ack: i.number("b")?,
        window_segments: i.number("Wm")?,
    };
    pftk_full_bps(&path, i.number("p")?)
}

fn cubic_rate(i: &Inputs<'_>) -> Option<f64> {
    let cubic = cubic_constants(i)?;
    linerate_theory::tcp_rate::cubic_bps(cubic, i.number("mss")?, i.number("rtt")?, i.number("p")?)
}

fn lost(i: &Inputs<'_>) -> Option<f64> {
    let start = Start {
        rate_bps: i.number("R")?,
        rtt_s: i.number("rtt")?,
        mss_bytes: i.number("mss")?,
        initial_segments: i.number("IW")?,
        growth: i.number("g")?,
    };
    lost_time_s(&start, i.number("n")?)
}

/// Rate, round trip and segment of a path, for formulas that take all three.
fn path(i: &Inputs<'_>, formula: fn(f64, f64, f64) -> Option<f64>) -> Option<f64> {
    formula(i.number("R")?, i.number("rtt")?, i.number("mss")?)
}

pub(crate) const ROWS: &[Row] = &[
    ("8*mss/rtt*sqrt(1.5/p)", |i| number(mathis(i, MATHIS_PER_SEGMENT))),
    ("8*mss/rtt*sqrt(0.75/p)", |i| number(mathis(i, MATHIS_DELAYED_ACK))),
    ("8948/1448", |_| number(packet_count_ratio(8948.0, 1448.0))),
    ("pftk_full(mss,rtt,p,T0,b,Wm)", |i| number(pftk(i))),
    ("8*mss/(rtt*sqrt(2*b*p/3)+T0*min(1,3*sqrt(3*b*p/8))*p*(1+32*p**2))", |i| {
        let (mss, rtt, p) = (i.number("mss")?, i.number("rtt")?, i.number("p")?);
        number(pftk_simple_bps(mss, rtt, p, i.number("T0")?, i.number("b")?))
    }),
    ("max((C*(3+beta)/(4*(1-beta)))**0.25*(rtt/p)**0.75,1.2/sqrt(p))", |i| {
        let cubic = cubic_constants(i)?;
        number(cubic_window_segments(cubic, i.number("rtt")?, i.number("p")?, AIMD_CONSTANT_ROUNDED))
    }),
    ("max(rtt*(1.054/W)**(4/3),0)", |i| number(cubic_loss_for_window(i.number("rtt")?, i.number("W")?))),
    ("max((C*(3+beta)/(4*(1-beta)))**0.25*(rtt/p)**0.75,sqrt(1.5/p))*8*mss/rtt", |i| number(cubic_rate(i))),
    ("R*rtt**2/(16*mss)", |i| number(path(i, reno_recovery_s))),
    ("(0.3*R*rtt/8/mss/0.4)**(1/3)", |i| {
        number(path(i, |rate, rtt, mss| cubic_recovery_s(CUBIC, rate, rtt, mss)))
    }),
    ("1.5/(R*rtt/8/mss)**2", |i| number(path(i, mathis_loss_for_rate))),
    ("R*rtt/8/mss", |i| number(path(i, window_segments))),
    ("(8948/1448)**(1/3)", |_| number(cubic_recovery_ratio(8948.0, 1448.0))),
    ("(R*rtt/8/mss)**2/8*mss", |i| number(path(i, reno_deficit_bytes))),
    ("(R*rtt/8/mss)**2/8*mss*8/R", |i| number(path(i, reno_deficit_s))),
    ("C*K**4/(4*rtt)*mss", |i| {
        let cubic = Cubic { c: i.number("C")?, ..CUBIC };
        number(cubic_deficit_bytes(cubic, i.number("K")?, i.number("rtt")?, i.number("mss")?))
    }),
    ("1-(0.2+rtt)/10", |i| number(bbr_probe_rtt_share(i.number("rtt")?))),
    ("1-1/1.25", |_| number(bbr_loss_tolerance(1.25))),
    ("2*((1+10*(d-1)+((d-1)/2)**2)/min(max(0.1/minrtt,0.5),10))*(1-beta)", |i| {
        number(htcp_increase_segments(i.number("d")?, i.number("minrtt")?, i.number("beta")?))
    }),
    ("ceil(log(R*rtt/8/mss/IW)/log(g))", |i| {
        let window = path(i, window_segments)?;
        number(rounds(window, i.number("IW")?, i.number("g")?))
    }),
    ("n*rtt-IW*(g**n-1)/(g-1)*mss*8/R", |i| number(lost(i))),
    ("lost/0.01", |i| number(length_for_bias_s(i.number("lost")?, 0.01))),
    ("min(10*mss,max(2*mss,14600))", |i| number(initial_window_bytes(i.number("mss")?))),
    ("min(max(rtt/8,0.004),0.016)", |i| number(hystart_threshold_s(i.number("rtt")?))),
    ("W_bytes/2", |i| number(exit_queue_bytes(i.number("W_bytes")?))),
    ("L*(1-Rout/Rin)", |i| number(burst_queue_bytes(i.number("L")?, i.number("Rout")?, i.number("Rin")?))),
];
