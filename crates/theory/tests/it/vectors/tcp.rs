//! Loss models, recovery, slow start.

use linerate_theory::bdp::window_segments;
use linerate_theory::sender_error::length_for_bias_s;
use linerate_theory::slow_start::{SlowStart, burst_queue_bytes, lost_time_s, rounds};
use linerate_theory::tcp_rate::{
    CUBIC, Cubic, Pftk, bbr_loss_tolerance, cubic_recovery_s, mathis_bps, mathis_loss_for_rate,
    pftk_full_bps, reno_recovery_s,
};

use super::{FormulaCall, Inputs, number};

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
    let start = SlowStart {
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

pub(crate) const ROWS: &[FormulaCall] = &[
    ("8*mss/rtt*sqrt(1.5/p)", |i| number(mathis_bps(i.number("mss")?, i.number("rtt")?, i.number("p")?))),
    ("pftk_full(mss,rtt,p,T0,b,Wm)", |i| number(pftk(i))),
    ("max((C*(3+beta)/(4*(1-beta)))**0.25*(rtt/p)**0.75,sqrt(1.5/p))*8*mss/rtt", |i| number(cubic_rate(i))),
    ("R*rtt**2/(16*mss)", |i| number(path(i, reno_recovery_s))),
    ("(0.3*R*rtt/8/mss/0.4)**(1/3)", |i| {
        number(path(i, |rate, rtt, mss| cubic_recovery_s(CUBIC, rate, rtt, mss)))
    }),
    ("1.5/(R*rtt/8/mss)**2", |i| number(path(i, mathis_loss_for_rate))),
    ("R*rtt/8/mss", |i| number(path(i, window_segments))),
    ("1-1/1.25", |_| number(bbr_loss_tolerance(1.25))),
    ("ceil(log(R*rtt/8/mss/IW)/log(g))", |i| {
        let window = path(i, window_segments)?;
        number(rounds(window, i.number("IW")?, i.number("g")?))
    }),
    ("n*rtt-IW*(g**n-1)/(g-1)*mss*8/R", |i| number(lost(i))),
    ("lost/0.01", |i| number(length_for_bias_s(i.number("lost")?, 0.01))),
    ("W_bytes/2", |i| number(burst_queue_bytes(i.number("W_bytes")?, 1.0, 2.0))),
    ("L*(1-Rout/Rin)", |i| number(burst_queue_bytes(i.number("L")?, i.number("Rout")?, i.number("Rin")?))),
];
