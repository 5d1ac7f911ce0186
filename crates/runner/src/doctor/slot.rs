//! The PCI Express slot of a NIC.

use linerate_model::{CheckStatus, HostCheck};
use linerate_sock::iface::InterfaceInfo;
use linerate_sock::proc::nic::PcieLink;
use linerate_theory::host;
use linerate_units::Bitrate;

/// Required capacity of a slot relative to the line rate, since descriptors and completions use it too.
const SLOT_HEADROOM: f64 = 1.2;

/// Compares the slot with the line rate of its NIC.
pub(super) fn check(slot: PcieLink, link: &InterfaceInfo) -> Option<HostCheck> {
    let usable = host::pcie_rate_bps(slot.transfers_per_second, f64::from(slot.lanes))?;
    let usable = Bitrate::from_bps(usable)?;
    let value = format!("{} lanes of {} GT/s", slot.lanes, slot.transfers_per_second / 1e9);
    let text = format!("the slot carries about {usable} in each direction");
    let check = HostCheck::good(format!("{}.pcie", link.name), value, text);
    if link.speed_bps.is_none_or(|speed| usable.bps() >= speed as f64 * SLOT_HEADROOM) {
        return Some(check);
    }
    let text = format!(
        "the slot carries about {usable} in each direction, less than the line rate; use a wider \
                 slot"
    );
    Some(check.judged(CheckStatus::Bad, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::iface;

    #[test]
    fn a_slot_carries_the_line_rate_and_a_fifth_more() {
        let mut link = iface::link("lo").unwrap();
        link.speed_bps = Some(100_000_000_000);
        let status = |transfers_per_second, lanes| {
            check(PcieLink { transfers_per_second, lanes }, &link).unwrap().status
        };
        // 16 lanes of 8 GT/s: 107 Gb/s, less than the required 120 for 100 Gb/s.
        assert_eq!(status(8e9, 16), CheckStatus::Bad);
        assert_eq!(status(16e9, 16), CheckStatus::Good);
    }
}
