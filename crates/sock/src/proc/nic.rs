//! The NIC of an interface according to `/sys`: its PCI Express slot and its receive queues.
//!
//! `/sys` shows the network namespace in which it was mounted. The interface index detects another namespace;
//! nothing is reported then.

use std::fs;

use super::text;

/// Properties of the NIC of an interface; `None` if unknown or without hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Nic {
    /// PCI Express slot.
    pub slot: Option<PcieLink>,
    /// Number of receive queues.
    pub receive_queues: Option<usize>,
}

/// A negotiated PCI Express link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcieLink {
    /// Transfers per second of each lane.
    pub transfers_per_second: f64,
    /// Lanes in use.
    pub lanes: u32,
}

/// Parses the kernel's description of a slot, such as `8.0 GT/s PCIe` and `4`. Without a link it is `Unknown`
/// and 0.
#[must_use]
pub fn parse_slot(speed: &str, width: &str) -> Option<PcieLink> {
    let (number, unit) = speed.trim().split_once(' ')?;
    let gigatransfers: f64 = number.parse().ok().filter(|rate| *rate > 0.0)?;
    let lanes = width.trim().parse().ok().filter(|lanes| *lanes > 0)?;
    unit.starts_with("GT/s").then_some(PcieLink { transfers_per_second: gigatransfers * 1e9, lanes })
}

/// Counts the receive queues in an interface's `queues` folder.
#[must_use]
pub fn count_receive_queues<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    Some(names.into_iter().filter(|name| name.starts_with("rx-")).count()).filter(|count| *count > 0)
}

/// Reads the properties of the NIC of the interface with this name and index.
#[must_use]
pub fn read_nic(interface: &str, index: u32) -> Nic {
    let file = |name: &str| text(format!("/sys/class/net/{interface}/{name}"));
    if file("ifindex").and_then(|number| number.parse().ok()) != Some(index) {
        return Nic::default();
    }
    let speed = file("device/current_link_speed");
    let slot = speed.zip(file("device/current_link_width"));
    let queues = fs::read_dir(format!("/sys/class/net/{interface}/queues")).into_iter().flatten().flatten();
    let queues: Vec<String> = queues.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    Nic {
        slot: slot.and_then(|(speed, width)| parse_slot(&speed, &width)),
        receive_queues: count_receive_queues(queues.iter().map(String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_slot_is_read_and_an_empty_one_is_absent() {
        let slot = |transfers_per_second, lanes| Some(PcieLink { transfers_per_second, lanes });
        assert_eq!(parse_slot("8.0 GT/s PCIe\n", "4\n"), slot(8e9, 4));
        assert_eq!(parse_slot("2.5 GT/s", "1"), slot(2.5e9, 1));
        for (speed, width) in [("Unknown", "0"), ("8.0 GT/s PCIe", "0"), ("-8 GT/s", "4"), ("8.0 GB/s", "4")]
        {
            assert_eq!(parse_slot(speed, width), None, "{speed} {width}");
        }
    }

    #[test]
    fn receive_queues_are_counted_and_sending_ones_are_not() {
        assert_eq!(count_receive_queues(["rx-0", "rx-1", "tx-0"]), Some(2));
        assert_eq!(count_receive_queues(["tx-0"]), None);
    }

    #[test]
    fn loopback_has_no_slot_and_an_interface_with_another_number_is_not_ours() {
        assert_eq!(read_nic("lo", crate::iface::link("lo").unwrap().index).slot, None);
        assert_eq!(read_nic("lo", u32::MAX), Nic::default());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(speed in ".*", width in ".*") {
            let _ = parse_slot(&speed, &width);
        }
    }
}
