//! Comparisons: ours and theirs in turn, over the same path, with options of the same meaning.

use super::figure::{Bar, Figure};
use super::place::{Place, Where};
use super::spread::Spread;
use super::tools::{Tool, Transfer};
use super::{Bench, Outcome, report};

/// One comparison.
pub(super) struct Duel {
    pub(super) name: &'static str,
    place: Where,
    quantity: Quantity,
    ours: &'static [&'static str],
    peer: &'static [&'static str],
}

/// What of a transfer is compared.
#[derive(Clone, Copy)]
enum Quantity {
    /// The receiver's bit rate: more is better.
    Rate,
    /// How far the receiver's bit rate is from the one asked for, bits per second: less is better.
    ErrorOf(f64),
}

const PACED: f64 = 100e6;

/// In the order in which they are run.
pub(super) const DUELS: &[Duel] = &[
    rate("tcp-loopback", Where::Loopback, &[], &[]),
    rate("tcp-veth", Where::Veth, &[], &[]),
    rate("tcp-4-loopback", Where::Loopback, &["-P", "4"], &["-P", "4"]),
    rate("tcp-4-veth", Where::Veth, &["-P", "4"], &["-P", "4"]),
    rate("tcp-best-loopback", Where::Loopback, &["-Z"], &["-Z", "-l", "1M"]),
    rate("tcp-best-veth", Where::Veth, &["-Z"], &["-Z", "-l", "1M"]),
    rate("tcp-4-best-loopback", Where::Loopback, &["-Z", "-P", "4"], &["-Z", "-l", "1M", "-P", "4"]),
    rate("tcp-4-best-veth", Where::Veth, &["-Z", "-P", "4"], &["-Z", "-l", "1M", "-P", "4"]),
    rate("udp-loopback", Where::Loopback, UDP_OURS, UDP_PEER),
    rate("udp-veth", Where::Veth, UDP_OURS, UDP_PEER),
    Duel {
        name: "udp-paced-loopback",
        place: Where::Loopback,
        quantity: Quantity::ErrorOf(PACED),
        ours: &["-u", "-b", "100M", "-l", "1448"],
        peer: &["-u", "-b", "100M", "-l", "1448"],
    },
];

const UDP_OURS: &[&str] = &["-u", "-b", "0", "-l", "1448"];
const UDP_PEER: &[&str] = &["-u", "-b", "0", "-l", "1448", "-w", "4M"];

const fn rate(
    name: &'static str,
    place: Where,
    ours: &'static [&'static str],
    peer: &'static [&'static str],
) -> Duel {
    Duel { name, place, quantity: Quantity::Rate, ours, peer }
}

impl Duel {
    /// Runs all pairs.
    pub(super) fn run(&self, bench: &Bench) -> Result<Outcome, String> {
        let Some(place) = Place::make(self.place)? else {
            return Ok(Outcome::Skipped("two network namespaces need root"));
        };
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for pair in 1..=bench.pairs {
            report::progress(&format!("{}: pair {pair} of {}", self.name, bench.pairs));
            ours.push(Tool::Linerate.transfer(bench, &place, self.ours)?);
            peer.push(Tool::Iperf3.transfer(bench, &place, self.peer)?);
        }
        let figure = self.figure(&ours, &peer).ok_or("the readings are not numbers")?;
        Ok(Outcome::Measured(vec![figure]))
    }

    fn figure(&self, ours: &[Transfer], peer: &[Transfer]) -> Option<Figure> {
        let values = |all: &[Transfer]| Spread::of(all.iter().map(|one| self.quantity.of(one)).collect());
        let cpu = |all: &[Transfer]| Spread::of(all.iter().map(|one| one.cpu_seconds_per_gb).collect());
        Some(Figure {
            name: self.name,
            unit: self.quantity.unit(),
            ours: values(ours)?,
            peer: Some(values(peer)?),
            cpu_seconds_per_gb: Some((cpu(ours)?, cpu(peer)?)),
            bar: match self.quantity {
                Quantity::Rate => Bar::AtLeastPeer,
                Quantity::ErrorOf(_) => Bar::Nothing,
            },
            note: Some(format!("linerate {}; iperf3 {}", self.ours.join(" "), self.peer.join(" "))),
        })
    }
}

impl Quantity {
    fn of(self, transfer: &Transfer) -> f64 {
        match self {
            Self::Rate => transfer.bits_per_second / 1e9,
            Self::ErrorOf(asked) => (transfer.bits_per_second / asked - 1.0).abs() * 100.0,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Rate => "Gb/s",
            Self::ErrorOf(_) => "% off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal_and_errors_have_no_sign() {
        let transfer = |bits_per_second| Transfer { bits_per_second, cpu_seconds_per_gb: 0.1 };
        assert_eq!(Quantity::Rate.of(&transfer(2.5e9)), 2.5);
        let error = Quantity::ErrorOf(100e6);
        assert!((error.of(&transfer(99e6)) - 1.0).abs() < 1e-9);
        assert!((error.of(&transfer(101e6)) - 1.0).abs() < 1e-9);
    }
}
