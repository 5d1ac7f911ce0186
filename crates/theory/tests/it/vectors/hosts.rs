//! LAGs, hosts, ceilings.

use linerate_model::{Ceiling, ForeignText};
use linerate_theory::ceilings::binding;
use linerate_theory::framing::{ack_wire_bytes, frames_per_second, wire_bytes};
use linerate_theory::host::{ack_rate_bps, acks_per_second, cpu_rate_bps, utilisation};
use linerate_theory::lag::{
    all_together_probability, expected_largest_load, flows_to_touch_all, no_collision_probability,
    occupancy_probability, used_share,
};
use linerate_theory::queueing::policer_loss;

use super::framing::stamped;
use super::{FormulaCall, Inputs, number};

fn cpu_model(i: &Inputs<'_>) -> Option<f64> {
    cpu_rate_bps(i.number("f")?, 1.0, i.number("cpp")?, i.number("cpb")?, i.number("mss")?)
}

fn lowest(i: &Inputs<'_>, limits: &[&str]) -> Option<f64> {
    let ceilings = limits
        .iter()
        .map(|limit| {
            Some(Ceiling {
                limit: ForeignText::from(*limit).into(),
                bitrate_bps: i.number(limit)?,
                because: "".into(),
                slack_bps: 0.0,
            })
        })
        .collect::<Option<Vec<_>>>()?;
    binding(&ceilings).map(|ceiling| ceiling.bitrate_bps)
}

pub(crate) const ROWS: &[FormulaCall] = &[
    ("k*(1-(1-1/k)**n)/k", |i| number(used_share(i.number("n")?, i.number("k")?))),
    ("factorial(k)/factorial(k-n)/k**n", |i| number(no_collision_probability(i.count("n")?, i.count("k")?))),
    ("k**(1-n)", |i| number(all_together_probability(i.number("n")?, i.number("k")?))),
    ("k*sum(1/i for i in range(1,k+1))", |i| number(flows_to_touch_all(i.count("k")?))),
    ("exp_max_load(n,k)", |i| number(expected_largest_load(i.count("n")?, i.count("k")?))),
    // The Stirling number S of the inputs is calculated, not read.
    ("factorial(k)/factorial(k-c)*S/k**m", |i| {
        number(occupancy_probability(i.count("m")?, i.count("c")?, i.count("k")?))
    }),
    ("(flow+bg/2-C)/(flow+bg/2)", |i| {
        number(policer_loss(i.number("C")?, i.number("flow")? + i.number("bg")? / 2.0))
    }),
    ("R*1448/1538/8/1448/2", |i| {
        number(acks_per_second(frames_per_second(i.number("R")?, wire_bytes(1500.0, 0.0)?)?, 2.0))
    }),
    ("R/(8*1538)/2*90*8", |i| {
        let segments = frames_per_second(i.number("R")?, wire_bytes(1500.0, 0.0)?)?;
        number(ack_rate_bps(acks_per_second(segments, 2.0)?, ack_wire_bytes(&stamped(), 0.0)?))
    }),
    ("need/avail", |i| number(utilisation(i.number("need")?, i.number("avail")?))),
    ("f/(cpp+cpb*mss)*mss*8", |i| number(cpu_model(i))),
    ("min(link,rwnd,loss,cpu)", |i| number(lowest(i, &["link", "rwnd", "loss", "cpu"]))),
    ("min(link,loss,cpu)", |i| number(lowest(i, &["link", "loss", "cpu"]))),
    ("rwnd/busy", |i| number(utilisation(i.number("rwnd")?, i.number("busy")?))),
];
