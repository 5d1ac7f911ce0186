//! Bundles of links, hosts, estimates, the ladder.

use linerate_model::Ceiling;
use linerate_theory::ceilings::binding;
use linerate_theory::framing::{ack_wire_bytes, frames_per_second, wire_bytes};
use linerate_theory::host::{
    ack_rate_bps, acks_per_second, burst_efficiency, burst_overhead_clocks, bus_rate_bps, cpu_rate_bps,
    cpu_share, estimate, estimate_error_factor, instructions_per_packet, instructions_per_second,
    other_stage_rate, reads_per_second, segments_per_second, serial_rate, utilisation,
};
use linerate_theory::lag::{
    all_together_probability, expected_largest_load, flows_to_see_two_links, flows_to_touch_all, member_loss,
    no_collision_probability, occupancy_probability, polarised_share, used_share,
};

use super::framing::stamped_ceiling;
use super::{Inputs, Row, number};

fn cpu_model(i: &Inputs<'_>) -> Option<f64> {
    cpu_rate_bps(i.number("f")?, 1.0, i.number("cpp")?, i.number("cpb")?, i.number("mss")?)
}

fn lowest(i: &Inputs<'_>, limits: &[&str]) -> Option<f64> {
    let ladder = limits
        .iter()
        .map(|limit| {
            Some(Ceiling {
                limit: (*limit).into(),
                bitrate_bps: i.number(limit)?,
                because: "".into(),
                slack_bps: 0.0,
            })
        })
        .collect::<Option<Vec<_>>>()?;
    binding(&ladder).map(|ceiling| ceiling.bitrate_bps)
}

pub(crate) const ROWS: &[Row] = &[
    ("k*(1-(1-1/k)**n)/k", |i| number(used_share(i.number("n")?, i.number("k")?))),
    ("factorial(k)/factorial(k-n)/k**n", |i| number(no_collision_probability(i.count("n")?, i.count("k")?))),
    ("k**(1-n)", |i| number(all_together_probability(i.number("n")?, i.number("k")?))),
    ("k*sum(1/i for i in range(1,k+1))", |i| number(flows_to_touch_all(i.count("k")?))),
    ("exp_max_load(n,k)", |i| number(expected_largest_load(i.count("n")?, i.count("k")?))),
    ("ceil(1+log(1/alpha)/log(k))", |i| number(flows_to_see_two_links(i.number("alpha")?, i.number("k")?))),
    // The Stirling number S of the inputs is calculated, not taken.
    ("factorial(k)/factorial(k-c)*S/k**m", |i| {
        number(occupancy_probability(i.count("m")?, i.count("c")?, i.count("k")?))
    }),
    ("(flow+bg/2-C)/(flow+bg/2)", |i| {
        number(member_loss(i.number("flow")?, i.number("bg")? * 0.5, i.number("C")?))
    }),
    ("1/k", |i| number(polarised_share(i.number("k")?))),
    ("R*1448/1538/8/1448/2", |i| {
        let segments = segments_per_second(stamped_ceiling(i.number("R")?)?, 1448.0)?;
        number(acks_per_second(segments, 2.0))
    }),
    ("R/(8*1538)/2*90*8", |i| {
        let segments = frames_per_second(i.number("R")?, wire_bytes(1500.0, 0.0)?)?;
        number(ack_rate_bps(acks_per_second(segments, 2.0)?, ack_wire_bytes(20.0, 12.0)?))
    }),
    ("R*1448/1538/8/L", |i| number(reads_per_second(stamped_ceiling(i.number("R")?)?, i.number("L")?))),
    ("mips*1e6*frac/pps", |i| {
        number(instructions_per_packet(i.number("mips")? * 1e6, i.number("frac")?, i.number("pps")?))
    }),
    ("mips_per*pps/1e6", |i| {
        number(instructions_per_second(i.number("mips_per")?, i.number("pps")?).map(|rate| rate / 1e6))
    }),
    ("33e6*32", |_| number(bus_rate_bps(33e6, 32.0))),
    ("1e9/30*32", |_| number(bus_rate_bps(1e9 / 30.0, 32.0))),
    ("66e6*64", |_| number(bus_rate_bps(66e6, 64.0))),
    ("B/(B+o)", |i| number(burst_efficiency(i.number("B")?, i.number("o")?))),
    ("16*(1056/600-1)", |_| number(burst_overhead_clocks(16.0, bus_rate_bps(33e6, 32.0)?, 600e6))),
    ("1/(1/a+1/b)", |i| number(serial_rate(i.number("a")?, i.number("b")?))),
    ("1/(1/tot-1/net)", |i| number(other_stage_rate(i.number("tot")?, i.number("net")?))),
    ("w*d*v", |i| number(estimate(&[i.number("w")?, i.number("d")?, i.number("v")?]))),
    ("exp(sqrt(log(a)**2+log(b)**2+log(c)**2))", |i| {
        number(estimate_error_factor(&[i.number("a")?, i.number("b")?, i.number("c")?]))
    }),
    ("need/avail", |i| number(utilisation(i.number("need")?, i.number("avail")?))),
    ("(u+s)/t*100", |i| {
        number(cpu_share(i.number("u")?, i.number("s")?, i.number("t")?).map(|share| share * 100.0))
    }),
    ("f/(cpp+cpb*mss)*mss*8", |i| number(cpu_model(i))),
    ("min(link,rwnd,loss,cpu)", |i| number(lowest(i, &["link", "rwnd", "loss", "cpu"]))),
    ("min(link,loss,cpu)", |i| number(lowest(i, &["link", "loss", "cpu"]))),
    ("rwnd/busy", |i| number(utilisation(i.number("rwnd")?, i.number("busy")?))),
];
