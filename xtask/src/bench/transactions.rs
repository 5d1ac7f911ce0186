//! Requests and responses, in turn with the programs that are known for them.

use std::time::Duration;

use serde_json::Value;

use super::bench_network::{BenchLocation, BenchNetwork};
use super::figure::{BenchFigure, BenchGoal};
use super::spread::Spread;
use super::tools::{BenchTool, TIMEOUT};
use super::{BenchContext, BenchOutcome, report};
use crate::process::ChildProcess;

/// A comparison: ours, the peer's command, and how both wait for a message.
struct RequestDuel {
    name: &'static str,
    ours: &'static [&'static str],
    peer: RequestPeer,
}

/// A program that measures requests and responses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestPeer {
    /// The name of its test.
    Qperf(&'static str),
    /// Whether it spins, over TCP.
    Sockperf { spins: bool },
}

const REQUEST_DUELS: [RequestDuel; 4] = [
    RequestDuel { name: "tcp-rr", ours: &[], peer: RequestPeer::Qperf("tcp_lat") },
    RequestDuel {
        name: "tcp-rr-sockperf",
        ours: &["--request-size", "14", "--response-size", "14"],
        peer: RequestPeer::Sockperf { spins: false },
    },
    RequestDuel {
        name: "tcp-rr-spin",
        ours: &["--request-size", "14", "--response-size", "14", "--spin"],
        peer: RequestPeer::Sockperf { spins: true },
    },
    RequestDuel { name: "udp-rr", ours: &["-u"], peer: RequestPeer::Qperf("udp_lat") },
];

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 4] =
    [REQUEST_DUELS[0].name, REQUEST_DUELS[1].name, REQUEST_DUELS[2].name, REQUEST_DUELS[3].name];

/// All figures that `wanted` selects.
pub(super) fn run(bed: &BenchContext, wanted: impl Fn(&str) -> bool) -> Result<BenchOutcome, String> {
    let Some(place) = BenchNetwork::make(BenchLocation::Loopback)? else {
        return Ok(BenchOutcome::Skipped("two network namespaces need root"));
    };
    let mut figures = Vec::new();
    for duel in REQUEST_DUELS.iter().filter(|duel| wanted(duel.name)) {
        figures.push(duel.run(bed, &place)?);
    }
    Ok(BenchOutcome::Measured(figures))
}

impl RequestDuel {
    fn run(&self, bed: &BenchContext, place: &BenchNetwork) -> Result<BenchFigure, String> {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for pair in 1..=bed.pairs {
            report::progress(&format!("{}: pair {pair} of {}", self.name, bed.pairs));
            // Alternate the order, as the first transfer affects the state of the machine.
            for ours_now in [pair % 2 == 1, pair % 2 == 0] {
                if ours_now {
                    ours.push(self.ours(bed, place)?);
                } else {
                    peer.push(self.peer.measure(bed, place)?);
                }
            }
        }
        Ok(BenchFigure {
            name: self.name,
            unit: "/s",
            ours: Spread::of(ours).ok_or("nothing was read")?,
            peer: Some(Spread::of(peer).ok_or("nothing was read")?),
            peer_name: self.peer.name(),
            cpu_seconds_per_gb: None,
            cpu_goal: None,
            class: None,
            goal: BenchGoal::RatioAtLeast(1.0),
            note: Some(format!("linerate --workload rr {}; {}", self.ours.join(" "), self.peer.describe())),
        })
    }

    /// Transactions per second.
    fn ours(&self, bed: &BenchContext, place: &BenchNetwork) -> Result<f64, String> {
        let server = BenchTool::Linerate.serve(bed, place)?;
        let options = [&["--workload", "rr"], self.ours].concat();
        let mut command = BenchTool::Linerate.client(bed, place, &server, bed.transfer, &options);
        command.retain(|word| word != "--upload");
        let output = ChildProcess::start(bed, &command)?.finish(bed.transfer + TIMEOUT, |_| ())?;
        let document: Value =
            serde_json::from_slice(&output).map_err(|e| format!("linerate printed no JSON: {e}"))?;
        let made = &document["flows"][0]["transactions"]["per_second"];
        made.as_f64().filter(|rate| *rate > 0.0).ok_or_else(|| "linerate measured nothing".to_owned())
    }
}

impl RequestPeer {
    const fn name(self) -> &'static str {
        match self {
            Self::Qperf(_) => "qperf",
            Self::Sockperf { .. } => "sockperf",
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Qperf(test) => format!("qperf {test}"),
            Self::Sockperf { spins } => {
                format!("sockperf ping-pong --tcp{}", if spins { " --nonblocked" } else { "" })
            }
        }
    }

    /// Transactions per second: the inverse of the round trip, one being under way.
    fn measure(self, bed: &BenchContext, place: &BenchNetwork) -> Result<f64, String> {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        let seconds = bed.transfer.as_secs();
        let (address, inside) =
            (&place.address, |text: &str| [place.for_server.clone(), words(text)].concat());
        let client = |text: &str| [place.for_client.clone(), words(text)].concat();
        let (server, client) = match self {
            Self::Qperf(test) => {
                let size = if test.starts_with("udp") { 32 } else { 1 };
                (inside("qperf"), client(&format!("qperf {address} -t {seconds} -m {size} {test}")))
            }
            Self::Sockperf { spins } => {
                let how = if spins { " --nonblocked" } else { "" };
                let server = format!("sockperf sr --tcp -i {address} -p 11111{how}");
                let client_words =
                    format!("sockperf pp --tcp -i {address} -p 11111 -m 14 -t {seconds} --full-rtt{how}");
                (inside(&server), client(&client_words))
            }
        };
        let _server = ChildProcess::start(bed, &server)?;
        // Neither says when it is ready.
        bed.wait(Duration::from_millis(500))?;
        let output = ChildProcess::start(bed, &client)?.finish(bed.transfer + TIMEOUT, |_| ())?;
        let text = String::from_utf8_lossy(&output);
        self.read(&text).ok_or_else(|| format!("{} measured nothing: {}", self.name(), text.trim()))
    }

    /// Transactions per second in what the client printed.
    fn read(self, text: &str) -> Option<f64> {
        let round_trip_s = match self {
            // Half of a round trip: "latency  =  40.3 us".
            Self::Qperf(_) => {
                let mut words = text.split_once("latency")?.1.split_whitespace().skip(1);
                let (number, unit) = (words.next()?.parse::<f64>().ok()?, words.next()?);
                let scale = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("sec", 1.0)];
                2.0 * number * scale.iter().find(|(name, _)| *name == unit)?.1
            }
            // "Round trip is 85.825 usec".
            Self::Sockperf { .. } => {
                let number = text.split_once("Round trip is")?.1.split_whitespace().next()?;
                number.parse::<f64>().ok()? * 1e-6
            }
        };
        (round_trip_s > 0.0).then(|| 1.0 / round_trip_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_read_as_the_programs_print_them() {
        let near = |found: Option<f64>, expected: f64| (found.unwrap() / expected - 1.0).abs() < 1e-9;
        let qperf = RequestPeer::Qperf("tcp_lat");
        assert!(near(qperf.read("tcp_lat:\n    latency  =  40 us\n"), 12_500.0));
        assert!(near(qperf.read("udp_lat:\n    latency  =  2 ms\n"), 250.0));
        assert_eq!(qperf.read("failed to connect"), None);
        let sockperf = RequestPeer::Sockperf { spins: false };
        let text = "sockperf: Summary: Round trip is 80.000 usec\nsockperf: Total 100 observations";
        assert!(near(sockperf.read(text), 12_500.0));
    }
}
