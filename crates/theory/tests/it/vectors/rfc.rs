//! Methods of the RFCs.

use linerate_theory::conversion::transfer_time_s;
use linerate_theory::delay::round_trips_per_minute;
use linerate_theory::framing::{IpVersion, frames_per_second};
use linerate_theory::responsiveness::{ProbeTimes, responsiveness};
use linerate_theory::rfc8337::{LossTest, packets_to_pass, target_run_length, target_window_packets};
use linerate_theory::rfc9097::{Feedback, RateAdjustment, TypeB, ip_capacity_bps};
use linerate_theory::slow_start::burst_queue_bytes;
use linerate_theory::{rfc2544, rfc6349, stats};
use serde_json::{Value, json};

use super::{FormulaCall, Inputs, number};

fn rate_rows(i: &Inputs<'_>) -> Option<Value> {
    let mut adjustment = RateAdjustment::new(TypeB::default());
    let rows = i.0.get("feedback_seqerr_delayms")?.as_array()?.iter().map(|pair| {
        let feedback = Feedback {
            sequence_errors: u32::try_from(pair.get(0)?.as_u64()?).ok()?,
            delay_variation_s: pair.get(1)?.as_f64()? / 1e3,
        };
        Some(adjustment.on_feedback(feedback))
    });
    Some(json!(rows.collect::<Option<Vec<u32>>>()?))
}

fn loss_test(i: &Inputs<'_>) -> Option<Value> {
    let test = LossTest::new(i.number("run_length")?, i.number("alpha")?, i.number("beta")?)?;
    Some(json!({ "h1": test.pass, "h2": test.fail, "s": test.slope }))
}

fn window(i: &Inputs<'_>) -> Option<f64> {
    target_window_packets(i.number("rate")?, i.number("rtt")?, i.number("mtu")?, i.number("hdr")?)
}

fn percentiles(i: &Inputs<'_>) -> Option<Value> {
    let samples = i.list("x")?;
    let shares = i.list("p")?;
    let found = shares.iter().map(|percent| stats::order::percentile(&samples, percent / 100.0));
    Some(json!(found.collect::<Option<Vec<f64>>>()?))
}

fn rpm(i: &Inputs<'_>) -> Option<Value> {
    let seconds = |name: &str| i.number(name).map(|ms| ms / 1e3);
    let (tcp_s, http_s, loaded_s) = (seconds("tcp")?, seconds("http")?, seconds("load")?);
    let times = ProbeTimes { tcp_s, tls_s: seconds("tls"), http_s, loaded_s };
    number(responsiveness(&times).map(|found| found.overall))
}

pub(crate) const ROWS: &[FormulaCall] = &[
    ("floor(R/((1500+8)*8))", |i| number(frames_per_second(i.number("R")?, 1508.0).map(f64::floor))),
    ("floor(R/(1538*8))", |i| number(frames_per_second(i.number("R")?, 1538.0).map(f64::floor))),
    ("5*100e6*8/500e6", |_| number(transfer_time_s(5.0 * 100e6, 500e6))),
    ("(tx-retx)/tx*100", |i| {
        number(rfc6349::efficiency(i.number("tx")?, i.number("retx")?).map(|share| share * 100.0))
    }),
    ("(avg-base)/base*100", |i| {
        number(rfc6349::buffer_delay(i.number("avg")?, i.number("base")?).map(|share| share * 100.0))
    }),
    ("(inp-out)*100/inp", |i| number(rfc2544::frame_loss_percent(i.number("inp")?, i.number("out")?))),
    ("n/fps", |i| number(rfc2544::implied_buffer_s(i.number("n")?, i.number("fps")?))),
    ("burst*(1-out/inp)", |i| {
        number(burst_queue_bytes(i.number("burst")?, i.number("out")?, i.number("inp")?))
    }),
    ("n*(pay+8+20)*8/dt", |i| {
        let ip = IpVersion::V4.header_bytes();
        number(ip_capacity_bps(i.number("n")?, i.number("pay")?, ip, i.number("dt")?))
    }),
    (
        "Type B load rate adjustment: rows after each 50 ms feedback; defaults seqErr 10, low 30 ms, upper 90 ms, slowAdj 3, delta 10, backup 3x",
        rate_rows,
    ),
    ("ceil(rate*rtt/8/(mtu-hdr))", |i| number(window(i))),
    ("3*W**2", |i| number(target_run_length(i.number("W")?))),
    ("3*ceil(rate*rtt/8/(mtu-hdr))**2", |i| number(target_run_length(window(i)?))),
    (
        "SPRT: k=ln(p1(1-p0)/(p0(1-p1))), h1=ln((1-a)/b)/k, h2=ln((1-b)/a)/k, s=ln((1-p0)/(1-p1))/k; p0=1/run, p1=4/run",
        loss_test,
    ),
    ("ceil(h1/s)", |i| number(packets_to_pass(i.number("h1")?, i.number("s")?))),
    ("smallest x with F(x)>=p", percentiles),
    ("lost/sent*100", |i| {
        number(rfc2544::frame_loss_percent(i.number("sent")?, i.number("sent")? - i.number("lost")?))
    }),
    ("(60000/((tcp+tls+http)/3)+60000/load)/2", rpm),
    ("(60000/((tcp+http)/2)+60000/load)/2", rpm),
    ("60000/rtt_ms", |i| number(round_trips_per_minute(i.number("rtt_ms")? / 1e3))),
];
