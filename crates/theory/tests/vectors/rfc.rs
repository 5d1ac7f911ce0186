//! Methods of the RFCs.

use linerate_theory::delay::{
    Exchange, ForeignProbe, excess_over_minimum, jitter, responsiveness_rpm, round_trip_loss_percent,
    round_trip_s, round_trips_per_minute, variation,
};
use linerate_theory::framing::IpVersion;
use linerate_theory::rfc6349::{
    buffer_delay_percent, efficiency_percent, frames_per_second, ideal_transfer_s, max_throughput_bps,
    transfer_time_ratio,
};
use linerate_theory::rfc8337::{LossTest, packets_to_pass, target_run_length, target_window_packets};
use linerate_theory::rfc9097::{Feedback, RateAdjustment, TypeB, ip_capacity_bps};
use linerate_theory::{rfc2544, stats};
use serde_json::{Value, json};

use super::{Inputs, Row, number};

fn search(i: &Inputs<'_>) -> Option<Value> {
    let limit = i.number("limit")?;
    let found =
        rfc2544::throughput_search(i.number("lo")?, i.number("hi")?, i.number("res")?, |load| load <= limit)?;
    let trials: Vec<Value> = found.trials.iter().map(|trial| json!([trial.load, trial.passed])).collect();
    Some(json!({ "result": found.throughput, "trials": trials }))
}

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

fn exchange(i: &Inputs<'_>) -> Option<f64> {
    round_trip_s(&Exchange {
        sent_s: i.number("T1")?,
        reflector_received_s: i.number("T2")?,
        reflector_sent_s: i.number("T3")?,
        received_s: i.number("T4")?,
    })
}

/// Times are in milliseconds.
fn responsiveness(i: &Inputs<'_>, with_tls: bool) -> Option<f64> {
    let tls_s = if with_tls { Some(i.number("tls")? / 1e3) } else { None };
    let foreign = ForeignProbe { tcp_s: i.number("tcp")? / 1e3, tls_s, http_s: i.number("http")? / 1e3 };
    responsiveness_rpm(&foreign, i.number("load")? / 1e3)
}

fn percentiles(i: &Inputs<'_>) -> Option<Value> {
    let samples = i.list("x")?;
    let shares = i.list("p")?;
    let found = shares.iter().map(|percent| stats::order::percentile(&samples, percent / 100.0));
    Some(json!(found.collect::<Option<Vec<f64>>>()?))
}

pub(crate) const ROWS: &[Row] = &[
    ("floor(R/((1500+8)*8))", |i| number(frames_per_second(i.number("R")?, 1500.0, 8.0))),
    ("1460*8*3664", |_| number(max_throughput_bps(1460.0, frames_per_second(44.21e6, 1500.0, 8.0)?))),
    ("floor(R/(1538*8))", |i| number(frames_per_second(i.number("R")?, 1500.0, 38.0))),
    ("1460*8*8127", |_| number(max_throughput_bps(1460.0, frames_per_second(100e6, 1500.0, 38.0)?))),
    ("actual/ideal", |i| number(transfer_time_ratio(i.number("actual")?, i.number("ideal")?))),
    ("5*100e6*8/500e6", |_| number(ideal_transfer_s(5.0 * 100e6, 500e6))),
    ("(tx-retx)/tx*100", |i| number(efficiency_percent(i.number("tx")?, i.number("retx")?))),
    ("(avg-base)/base*100", |i| number(buffer_delay_percent(i.number("avg")?, i.number("base")?))),
    ("(inp-out)*100/inp", |i| number(rfc2544::frame_loss_percent(i.number("inp")?, i.number("out")?))),
    (
        "RFC 2544 s26.1 binary search over fraction of line rate; pass iff rate<=limit; stop when hi-lo<=res",
        search,
    ),
    ("n/fps", |i| number(rfc2544::implied_buffer_s(i.number("n")?, i.number("fps")?))),
    ("n/fps*(1-thr/fps)", |i| {
        number(rfc2544::corrected_buffer_s(i.number("n")?, i.number("fps")?, i.number("thr")?))
    }),
    ("n*(1-thr/fps)", |i| {
        number(rfc2544::corrected_buffer_frames(i.number("n")?, i.number("fps")?, i.number("thr")?))
    }),
    ("burst*(1-out/inp)", |i| {
        number(rfc2544::port_buffer_bytes(i.number("burst")?, i.number("out")?, i.number("inp")?))
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
    ("(T4-T1)-(T3-T2)", |i| number(exchange(i))),
    ("J+=(|D(i-1,i)|-J)/16", |i| Some(json!(jitter(&i.list("transit_ms")?)))),
    ("D(i)-D(i-1)", |i| Some(json!(variation(&i.list("delay_ms")?)))),
    ("D(i)-min(D)", |i| Some(json!(excess_over_minimum(&i.list("delay_ms")?)))),
    ("smallest x with F(x)>=p", percentiles),
    ("lost/sent*100", |i| number(round_trip_loss_percent(i.number("lost")?, i.number("sent")?))),
    ("(60000/((tcp+tls+http)/3)+60000/load)/2", |i| number(responsiveness(i, true))),
    ("(60000/((tcp+http)/2)+60000/load)/2", |i| number(responsiveness(i, false))),
    ("60000/rtt_ms", |i| number(round_trips_per_minute(i.number("rtt_ms")? / 1e3))),
];
