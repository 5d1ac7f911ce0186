//! The PCI Express slot that a card sits in.

use linerate_sock::iface::LinkInfo;
use linerate_units::Bitrate;

use super::check::{Check, Status};

/// What a slot should carry beyond the line rate, since descriptors and completions share it.
const RESERVE: f64 = 1.2;

/// The width of a PCI Express link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slot {
    /// Transfers per second of a lane, in units of 10^9.
    pub(super) gigatransfers: f64,
    /// Lanes in use.
    pub(super) lanes: u32,
}

impl Slot {
    /// Reads the kernel's words: `8.0 GT/s PCIe` and `4`. A slot without a link says `Unknown` and 0.
    pub(super) fn parse(speed: &str, width: &str) -> Option<Self> {
        let gigatransfers = speed.split_whitespace().next()?.parse().ok()?;
        let lanes = width.parse().ok().filter(|lanes| *lanes > 0)?;
        Some(Self { gigatransfers, lanes })
    }

    /// The slot against the line rate of the card in it.
    pub(super) fn check(self, link: &LinkInfo) -> Option<Check> {
        let usable = Bitrate::from_bps(self.usable_bps())?;
        let value = format!("{} lanes of {} GT/s", self.lanes, self.gigatransfers);
        let text = format!("the slot carries about {usable} each way");
        let check = Check::good(format!("{}.pcie", link.name), value, text);
        if link.speed_bps.is_none_or(|speed| usable.bps() >= speed as f64 * RESERVE) {
            return Some(check);
        }
        let text = format!(
            "the slot carries about {usable} each way: too little for the line rate; use a wider slot"
        );
        Some(check.but(Status::Bad, text))
    }

    /// What a slot carries in one direction: lanes times symbols, less the line code and about 15 % for packet headers.
    /// Source: PCI Express Base Specification (8b/10b to 5 GT/s, 128b/130b to 32 GT/s).
    fn usable_bps(self) -> f64 {
        const PACKETS: f64 = 0.85;
        let code = if self.gigatransfers <= 5.0 { 8.0 / 10.0 } else { 128.0 / 130.0 };
        self.gigatransfers * 1e9 * f64::from(self.lanes) * code * PACKETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::iface;

    #[test]
    fn a_slot_is_read_and_an_empty_one_is_absent() {
        assert_eq!(Slot::parse("8.0 GT/s PCIe", "4"), Some(Slot { gigatransfers: 8.0, lanes: 4 }));
        assert_eq!(Slot::parse("2.5 GT/s", "1"), Some(Slot { gigatransfers: 2.5, lanes: 1 }));
        assert_eq!(Slot::parse("Unknown", "0"), None);
        assert_eq!(Slot::parse("8.0 GT/s PCIe", "0"), None);
    }

    #[test]
    fn slots_carry_what_their_lanes_do() {
        // 8 lanes of 5 GT/s: 32 Gb/s after 8b/10b, 27.2 of them usable.
        assert!((Slot { gigatransfers: 5.0, lanes: 8 }.usable_bps() - 27.2e9).abs() < 1.0);
        let mut link = iface::link("lo").unwrap();
        link.speed_bps = Some(100_000_000_000);
        let status = |gigatransfers, lanes| Slot { gigatransfers, lanes }.check(&link).unwrap().status;
        // 16 lanes of 8 GT/s: 107 Gb/s, less than the 120 that 100 Gb/s should have.
        assert_eq!(status(8.0, 16), Status::Bad);
        assert_eq!(status(16.0, 16), Status::Good);
    }
}
