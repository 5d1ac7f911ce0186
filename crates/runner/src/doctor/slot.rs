//! The PCI Express slot of a NIC.

use linerate_model::{CheckStatus, HostCheck};
use linerate_sock::iface::InterfaceInfo;
use linerate_sock::proc::nic::PcieLink;
use linerate_theory::host;
use linerate_units::Bitrate;

/// Capacity of a slot relative to the line rate that leaves enough room for descriptors and completions.
const SLOT_HEADROOM: f64 = 1.2;

/// Compares the slot with the line rate of its NIC.
pub(super) fn check(slot: PcieLink, link: &InterfaceInfo) -> Option<HostCheck> {
    let usable = host::pcie_rate_bps(slot.transfers_per_second, f64::from(slot.lanes))?;
    let usable = Bitrate::from_bps(usable)?;
    let value = format!("{} lanes of {} GT/s", slot.lanes, slot.transfers_per_second / 1e9);
    let text = format!("the slot carries about {usable} in each direction");
    let check = HostCheck::good(format!("{}.pcie", link.name), value, text);
    let Some(speed) = link.speed_bps else { return Some(check) };
    let share = usable.bps() / speed as f64;
    Some(if share >= SLOT_HEADROOM {
        check
    } else if share >= 1.0 {
        let text = format!(
            "the slot carries about {usable} in each direction, little more than the line rate: there is little \
             room for descriptors and completions"
        );
        check.judged(CheckStatus::Note, text)
    } else {
        let text = format!(
            "the slot carries about {usable} in each direction, less than the line rate; use a wider slot"
        );
        check.judged(CheckStatus::Bad, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::iface;

    /// Regression: a slot that carries the line rate, as those of most fast NICs do, was called slower than it.
    #[test]
    fn only_a_slot_below_the_line_rate_is_bad_and_one_with_little_room_is_noted() {
        let judge = |gigabits: u64, transfers_per_second, lanes| {
            let mut link = iface::link("lo").unwrap();
            link.speed_bps = Some(gigabits * 1_000_000_000);
            let found = check(PcieLink { transfers_per_second, lanes }, &link).unwrap();
            let less = found.text.contains("less than the line rate");
            assert_eq!(less, found.status == CheckStatus::Bad, "{found:?}");
            assert_eq!(found.text.contains("little room"), found.status == CheckStatus::Note, "{found:?}");
            found.status
        };
        // Transfers times lanes times the line code (0.8 up to 5 GT/s, then 128/130) times 0.85:
        // 16 lanes of 8 GT/s carry 107.1 Gb/s, 8 lanes 53.6, 4 lanes 26.8.
        assert_eq!(judge(100, 8e9, 16), CheckStatus::Note);
        assert_eq!(judge(100, 16e9, 8), CheckStatus::Note);
        assert_eq!(judge(50, 8e9, 8), CheckStatus::Note);
        assert_eq!(judge(25, 8e9, 4), CheckStatus::Note);
        assert_eq!(judge(200, 16e9, 16), CheckStatus::Note);
        assert_eq!(judge(100, 16e9, 16), CheckStatus::Good);
        assert_eq!(judge(40, 8e9, 8), CheckStatus::Good);
        assert_eq!(judge(100, 8e9, 8), CheckStatus::Bad);
        assert_eq!(judge(10, 2.5e9, 4), CheckStatus::Bad);
        // At both bounds, and between them and the next values: 107.1 is 1.2 times 89.25.
        assert_eq!(judge(89, 8e9, 16), CheckStatus::Good);
        assert_eq!(judge(90, 8e9, 16), CheckStatus::Note);
        assert_eq!(judge(107, 8e9, 16), CheckStatus::Note);
        assert_eq!(judge(108, 8e9, 16), CheckStatus::Bad);
    }

    #[test]
    fn a_slot_without_a_line_rate_is_only_shown() {
        let mut link = iface::link("lo").unwrap();
        link.speed_bps = None;
        let found = check(PcieLink { transfers_per_second: 2.5e9, lanes: 1 }, &link).unwrap();
        assert_eq!(found.status, CheckStatus::Good);
    }
}
