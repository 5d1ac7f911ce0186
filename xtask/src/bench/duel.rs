//! Comparisons: ours and theirs in turn, over the same path, with equivalent options.

use std::time::Duration;

use super::bench_network::{BenchLocation, BenchNetwork};
use super::figure::{BenchFigure, BenchGoal};
use super::spread::Spread;
use super::tools::{BenchTool, TIMEOUT, TransferResult, transfer};
use super::{BenchContext, BenchOutcome, report};
use crate::process::ChildProcess;

/// One comparison.
pub(super) struct Duel {
    pub(super) name: &'static str,
    place: BenchLocation,
    quantity: ComparedQuantity,
    goal: BenchGoal,
    /// Largest share of the peer's CPU time.
    cpu_goal: Option<f64>,
    ours: DuelSide,
    peer: DuelSide,
    rounds: Rounds,
}

/// Number and length of the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounds {
    /// As for all figures.
    Few,
    /// Many short ones, to decide even if single transfers of the same program differ by a factor of two.
    Many,
}

impl Rounds {
    /// Number of pairs, and duration of each transfer.
    fn of(self, bed: &BenchContext) -> (usize, Duration) {
        match self {
            Self::Many if !bed.quick => (15, Duration::from_secs(2)),
            _ => (bed.pairs, bed.transfer),
        }
    }
}

/// Client and server of one half of a pair.
#[derive(Clone, Copy)]
struct DuelSide {
    client: BenchTool,
    server: BenchTool,
    /// Options of the client.
    options: Options,
}

type Options = &'static [&'static str];

/// The compared quantity of a transfer.
#[derive(Clone, Copy)]
enum ComparedQuantity {
    /// The receiver's bit rate: higher is better.
    Rate,
    /// Deviation of the receiver's bit rate from the requested one, bits per second: lower is better.
    ErrorOf(f64),
    /// Deviation of the sender's bit rate from the requested one, bits per second: lower is better.
    SentErrorOf(f64),
}

const PACED: f64 = 100e6;

/// In order of execution.
///
/// The ratios are those that this program has to keep or to reach. They differ, because a kernel that copies each
/// byte twice leaves less to gain in one case than in another.
pub(super) const PAIRED_RUNS: &[Duel] = &[
    native("tcp-loopback", BenchLocation::Loopback, &[], &[]).must(1.4).with_cpu(0.8),
    native("tcp-cubic-loopback", BenchLocation::Loopback, &["-C", "cubic"], &["-C", "cubic"])
        .must(1.4)
        .with_cpu(0.8),
    native("tcp-veth", BenchLocation::Veth, &[], &[]).must(1.3),
    native("tcp-no-offloads", BenchLocation::VethWithoutOffloads, &[], &[]),
    native("tcp-big-tcp", BenchLocation::VethBigTcp, &[], &[]),
    native("tcp-4-loopback", BenchLocation::Loopback, &["-P", "4"], &["-P", "4"]).must(1.15),
    native("tcp-4-veth", BenchLocation::Veth, &["-P", "4"], &["-P", "4"]),
    native("tcp-128-loopback", BenchLocation::Loopback, &["-P", "128"], &["-P", "128"]).must(1.1),
    native("tcp-best-loopback", BenchLocation::Loopback, &["-Z"], BEST_PEER).must(1.25).with_cpu(0.85),
    native("tcp-best-veth", BenchLocation::Veth, &["-Z"], BEST_PEER).must(1.3),
    native("tcp-4-best-loopback", BenchLocation::Loopback, &["-Z", "-P", "4"], BEST_PEER_4).must(1.4),
    native("tcp-4-best-veth", BenchLocation::Veth, &["-Z", "-P", "4"], BEST_PEER_4),
    native("tcp-discard-loopback", BenchLocation::Loopback, DISCARDING, DISCARDING).must(1.2),
    native("tcp-4-discard-loopback", BenchLocation::Loopback, DISCARDING_4, DISCARDING_4).must(1.4),
    native("udp-64-loopback", BenchLocation::Loopback, UDP_64, UDP_64_PEER).must(1.35),
    native("udp-loopback", BenchLocation::Loopback, UDP_OURS, UDP_PEER).must(1.25),
    native("udp-8972-loopback", BenchLocation::Loopback, UDP_8972, UDP_8972_PEER).must(1.1),
    native("udp-veth", BenchLocation::Veth, UDP_OURS, UDP_PEER),
    Duel {
        quantity: ComparedQuantity::ErrorOf(PACED),
        goal: BenchGoal::Nothing,
        ..native("udp-paced-loopback", BenchLocation::Loopback, PACED_100M, PACED_100M)
    },
    Duel {
        quantity: ComparedQuantity::ErrorOf(1e9),
        goal: BenchGoal::Below(0.01),
        ..native("udp-paced-1g-loopback", BenchLocation::Loopback, PACED_1G, PACED_1G).with_cpu(1.0)
    },
    as_client("iperf3-client", &[]),
    as_server("iperf3-server", &[]),
    as_client("iperf3-reverse-client", &["-R"]),
    as_server("iperf3-reverse-server", &["-R"]),
    paced("iperf3-udp-100m", PACED, PACED_100M),
    paced("iperf3-udp-1g", 1e9, PACED_1G),
    Duel {
        name: "nuttcp-tcp",
        place: BenchLocation::Loopback,
        quantity: ComparedQuantity::Rate,
        goal: BenchGoal::HigherIsBetter,
        cpu_goal: None,
        ours: DuelSide { client: BenchTool::LinerateNuttcp, server: BenchTool::Nuttcp, options: &[] },
        peer: DuelSide::both(BenchTool::Nuttcp, &[]),
        rounds: Rounds::Few,
    },
];

/// The fastest options of iperf3 that transfer the bytes to the receiving program.
const BEST_PEER: Options = &["-Z", "-l", "1M"];
const BEST_PEER_4: Options = &["-Z", "-l", "1M", "-P", "4"];
const DISCARDING: Options = &["-Z", "--skip-rx-copy"];
const DISCARDING_4: Options = &["-Z", "--skip-rx-copy", "-P", "4"];
const UDP_OURS: Options = &["-u", "-b", "0", "-l", "1448"];
/// The peer's best options too: linerate uses GSO and GRO by default.
const UDP_PEER: Options = &["-u", "-b", "0", "-l", "1448", "--gsro", "-w", "4M"];
const UDP_64: Options = &["-u", "-b", "0", "-l", "64"];
const UDP_64_PEER: Options = &["-u", "-b", "0", "-l", "64", "--gsro", "-w", "4M"];
const UDP_8972: Options = &["-u", "-b", "0", "-l", "8972"];
const UDP_8972_PEER: Options = &["-u", "-b", "0", "-l", "8972", "--gsro", "-w", "4M"];
const PACED_1G: Options = &["-u", "-b", "1G", "-l", "1448"];
/// Datagrams that fit into Ethernet: over loopback, iperf3's default would be 32 KiB, of which a rate allows
/// few.
const PACED_100M: Options = &["-u", "-b", "100M", "-l", "1448"];

/// Our native protocol compared with iperf3.
const fn native(name: &'static str, place: BenchLocation, ours: Options, peer: Options) -> Duel {
    Duel {
        name,
        place,
        quantity: ComparedQuantity::Rate,
        goal: BenchGoal::RatioAtLeast(1.0),
        cpu_goal: None,
        ours: DuelSide::both(BenchTool::Linerate, ours),
        peer: DuelSide::both(BenchTool::Iperf3, peer),
        rounds: Rounds::Few,
    }
}

/// Our stand-in as iperf3's client; the server is iperf3 in both halves.
const fn as_client(name: &'static str, options: Options) -> Duel {
    let ours = DuelSide { client: BenchTool::LinerateIperf3, server: BenchTool::Iperf3, options };
    Duel { ours, rounds: Rounds::Many, ..native(name, BenchLocation::Loopback, options, options) }
}

/// Our stand-in as iperf3's server; the client is iperf3 in both halves.
const fn as_server(name: &'static str, options: Options) -> Duel {
    let ours = DuelSide { client: BenchTool::Iperf3, server: BenchTool::LinerateIperf3, options };
    Duel { ours, rounds: Rounds::Many, ..native(name, BenchLocation::Loopback, options, options) }
}

/// Our stand-in as iperf3's client, sending datagrams at a rate, bits per second.
const fn paced(name: &'static str, rate: f64, options: Options) -> Duel {
    let goal = BenchGoal::Below(0.5);
    Duel {
        quantity: ComparedQuantity::SentErrorOf(rate),
        goal,
        rounds: Rounds::Few,
        ..as_client(name, options)
    }
}

impl Duel {
    /// Requires this ratio.
    const fn must(self, ratio: f64) -> Self {
        Self { goal: BenchGoal::RatioAtLeast(ratio), ..self }
    }

    /// Requires that ours uses at most this share of the peer's CPU time for a byte.
    const fn with_cpu(self, share: f64) -> Self {
        Self { cpu_goal: Some(share), ..self }
    }

    /// Runs all pairs.
    pub(super) fn run(&self, bed: &BenchContext) -> Result<BenchOutcome, String> {
        let Some(place) = BenchNetwork::make(self.place)? else {
            return Ok(BenchOutcome::Skipped("two network namespaces need root"));
        };
        if let Some(why) = self.peer.missing_option(bed)? {
            return Ok(BenchOutcome::Skipped(why));
        }
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        let (pairs, length) = self.rounds.of(bed);
        for pair in 1..=pairs {
            report::progress(&format!("{}: pair {pair} of {pairs}", self.name));
            // Alternate the order, as the first transfer affects the state of the machine.
            let peer_first = pair % 2 == 0;
            if peer_first {
                peer.push(self.peer.transfer(bed, &place, length)?);
            }
            ours.push(self.ours.transfer(bed, &place, length)?);
            if !peer_first {
                peer.push(self.peer.transfer(bed, &place, length)?);
            }
        }
        let figure = self.figure(&ours, &peer).ok_or("the readings are not numbers")?;
        Ok(BenchOutcome::Measured(vec![figure]))
    }

    fn figure(&self, ours: &[TransferResult], peer: &[TransferResult]) -> Option<BenchFigure> {
        let values = |all: &[TransferResult]| {
            Spread::of(all.iter().map(|one| self.quantity.of(one)).collect::<Option<Vec<f64>>>()?)
        };
        let cpu = |all: &[TransferResult]| Spread::of(all.iter().map(|one| one.cpu_seconds_per_gb).collect());
        let mut note = format!("{}; {}", self.ours.describe(), self.peer.describe());
        if let (Some(ours), Some(peer)) = (datagrams(ours), datagrams(peer)) {
            note.push_str(&format!("; datagrams sent: {:.0} and {:.0}", ours.median(), peer.median()));
        }
        Some(BenchFigure {
            name: self.name,
            unit: self.quantity.unit(),
            ours: values(ours)?,
            peer: Some(values(peer)?),
            peer_name: self.peer.client.name(),
            cpu_seconds_per_gb: Some((cpu(ours)?, cpu(peer)?)),
            cpu_goal: self.cpu_goal,
            class: Some(self.ours.class()),
            goal: self.goal,
            note: Some(note),
        })
    }
}

/// Datagrams sent in each transfer, if reported by the client.
fn datagrams(all: &[TransferResult]) -> Option<Spread> {
    Spread::of(all.iter().filter_map(|one| Some(one.report.sent?.datagrams)).collect())
}

impl DuelSide {
    /// The same tool at both ends.
    const fn both(tool: BenchTool, options: Options) -> Self {
        Self { client: tool, server: tool, options }
    }

    fn transfer(
        &self,
        bed: &BenchContext,
        place: &BenchNetwork,
        length: Duration,
    ) -> Result<TransferResult, String> {
        transfer(bed, place, self.client, self.server, self.options, length)
    }

    /// Why this iperf3 cannot do its half.
    fn missing_option(&self, bed: &BenchContext) -> Result<Option<&'static str>, String> {
        let newer = ["--gsro", "--skip-rx-copy"].into_iter().find(|newer| self.options.contains(newer));
        let Some(option) = newer.filter(|_| self.client == BenchTool::Iperf3) else { return Ok(None) };
        let help = ChildProcess::start(bed, &[bed.iperf3.display().to_string(), "--help".to_owned()])?;
        let help = help.finish(TIMEOUT, |_| ())?;
        let missing = !String::from_utf8_lossy(&help).contains(option);
        Ok(missing
            .then_some("needs the iperf3 that make test unpacks: this one has no --gsro or --skip-rx-copy"))
    }

    /// How the bytes pass through both ends. Figures of different classes are not comparable.
    fn class(&self) -> &'static str {
        let has = |option| self.options.contains(&option);
        match (has("-u"), has("--skip-rx-copy"), has("-Z")) {
            (true, ..) => "datagrams, copied at both ends",
            (_, true, _) => "the receiving kernel discards the bytes",
            (_, _, true) => "sent by reference, copied by the receiver",
            _ => "copied at both ends",
        }
    }

    /// The client with its options, and the server if it is another tool.
    fn describe(&self) -> String {
        let mut words = vec![self.client.name()];
        words.extend(self.options);
        if self.client != self.server {
            words.extend(["to", self.server.name()]);
        }
        words.join(" ")
    }
}

impl ComparedQuantity {
    /// Absent if the client does not report it.
    fn of(self, transfer: &TransferResult) -> Option<f64> {
        let error = |rate: f64, asked: f64| (rate / asked - 1.0).abs() * 100.0;
        match self {
            Self::Rate => Some(transfer.report.bits_per_second / 1e9),
            Self::ErrorOf(asked) => Some(error(transfer.report.bits_per_second, asked)),
            Self::SentErrorOf(asked) => Some(error(transfer.report.sent?.bits_per_second, asked)),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Rate => "Gb/s",
            Self::ErrorOf(_) | Self::SentErrorOf(_) => "% off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tools::{SentDatagrams, TransferReport};
    use super::*;

    fn transfer(bits_per_second: f64, sent: Option<SentDatagrams>) -> TransferResult {
        TransferResult {
            report: TransferReport { bits_per_second, bytes: 1.0, sent },
            cpu_seconds_per_gb: 0.1,
        }
    }

    #[test]
    fn rates_are_decimal_and_errors_have_no_sign() {
        assert_eq!(ComparedQuantity::Rate.of(&transfer(2.5e9, None)), Some(2.5));
        let off = |rate| ComparedQuantity::ErrorOf(100e6).of(&transfer(rate, None)).unwrap();
        assert!((off(99e6) - 1.0).abs() < 1e-9 && (off(101e6) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn pacing_is_judged_by_what_was_sent_and_not_by_what_arrived() {
        let sent = Some(SentDatagrams { bits_per_second: 99.8e6, datagrams: 8632.0 });
        let off = ComparedQuantity::SentErrorOf(100e6).of(&transfer(50e6, sent)).unwrap();
        assert!((off - 0.2).abs() < 1e-9);
        assert_eq!(ComparedQuantity::SentErrorOf(100e6).of(&transfer(50e6, None)), None);
    }

    #[test]
    fn only_transfers_that_treat_the_bytes_alike_are_compared() {
        for duel in PAIRED_RUNS {
            assert_eq!(duel.ours.class(), duel.peer.class(), "{}", duel.name);
        }
    }

    #[test]
    fn a_stand_in_is_compared_with_its_original_in_the_same_role() {
        for duel in PAIRED_RUNS.iter().filter(|duel| duel.name.starts_with("iperf3-")) {
            let (ours, peer) = (duel.ours, duel.peer);
            assert_eq!((peer.client, peer.server), (BenchTool::Iperf3, BenchTool::Iperf3));
            let at_server = duel.name.ends_with("-server");
            let stands_in = if at_server { ours.server } else { ours.client };
            let other = if at_server { ours.client } else { ours.server };
            assert_eq!((stands_in, other), (BenchTool::LinerateIperf3, BenchTool::Iperf3), "{}", duel.name);
            assert_eq!(ours.options, peer.options);
            // Rates of single transfers are not meaningful.
            let many = matches!(duel.quantity, ComparedQuantity::Rate);
            assert_eq!(duel.rounds == Rounds::Many, many, "{}", duel.name);
        }
    }
}
