//! Standard Ethernet rates, and how to recognise one in a measured goodput.

use crate::domain::positive;
use crate::framing::{self, LayerBytes};

/// A standard Ethernet rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardRate {
    /// Its name as printed on ports and in standards.
    pub name: &'static str,
    /// Bits per second at the MAC.
    pub bps: f64,
}

/// Every standard rate from slowest to fastest. Source: IEEE 802.3, 802.3bz, 802.3by, 802.3bs.
pub const STANDARD_RATES: [StandardRate; 12] = [
    StandardRate { name: "10BASE-T", bps: 10e6 },
    StandardRate { name: "100BASE-TX", bps: 100e6 },
    StandardRate { name: "1000BASE-T", bps: 1e9 },
    StandardRate { name: "2.5GBASE-T", bps: 2.5e9 },
    StandardRate { name: "5GBASE-T", bps: 5e9 },
    StandardRate { name: "10 Gigabit Ethernet", bps: 10e9 },
    StandardRate { name: "25 Gigabit Ethernet", bps: 25e9 },
    StandardRate { name: "40 Gigabit Ethernet", bps: 40e9 },
    StandardRate { name: "50 Gigabit Ethernet", bps: 50e9 },
    StandardRate { name: "100 Gigabit Ethernet", bps: 100e9 },
    StandardRate { name: "200 Gigabit Ethernet", bps: 200e9 },
    StandardRate { name: "400 Gigabit Ethernet", bps: 400e9 },
];

/// The name of a rate that is exactly a standard one.
#[must_use]
pub fn standard_name(link_bps: f64) -> Option<&'static str> {
    STANDARD_RATES.iter().find(|rate| (rate.bps - link_bps).abs() < 0.5).map(|rate| rate.name)
}

/// The standard rate whose goodput ceiling matches a plateau: from `lowest_share` of the ceiling to 200 ppm
/// above it.
///
/// Units: `goodput_bps` payload bit/s; `lowest_share` ratio (0.98 on a quiet path, 0.93 when other traffic is
/// possible).
/// Domain: goodput > 0. Neighbouring rates differ by a factor of at least 1.25, so at most one matches. Source:
/// RFC 6349 §4.1.1 inverted.
#[must_use]
pub fn inferred_link(goodput_bps: f64, layers: &LayerBytes, lowest_share: f64) -> Option<StandardRate> {
    positive(goodput_bps)?;
    STANDARD_RATES.into_iter().find(|rate| {
        let ceiling = framing::payload_rate_bps(rate.bps, layers.payload_bytes, layers.wire_bytes);
        ceiling.is_some_and(|ceiling| {
            let share = goodput_bps / ceiling;
            (lowest_share..=1.0 + framing::CLOCK_TOLERANCE_PPM * 1e-6).contains(&share)
        })
    })
}

/// The payload rate after a shaper of `shaper_bps` that counts frames without preamble, gap and FCS.
///
/// Software shapers charge the packet as the host stores it: IP packet and Ethernet header. Units: bit/s.
/// Domain: shaper > 0. Source: Linux `tc-tbf`, whose unit is the length of the packet buffer.
#[must_use]
pub fn shaped_goodput_bps(shaper_bps: f64, layers: &LayerBytes) -> Option<f64> {
    framing::payload_rate_bps(positive(shaper_bps)?, layers.payload_bytes, layers.stored_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::{Headers, IpVersion};

    fn tcp() -> LayerBytes {
        LayerBytes::of_packet(1500.0, &Headers::tcp(IpVersion::V4, true), 0.0).unwrap()
    }

    #[test]
    fn a_fast_ethernet_plateau_is_recognised() {
        let found = inferred_link(93.9e6, &tcp(), 0.98).unwrap();
        assert_eq!(found.name, "100BASE-TX");
        assert_eq!(inferred_link(80e6, &tcp(), 0.93), None);
        assert_eq!(inferred_link(94.3e6, &tcp(), 0.93), None, "above the ceiling");
    }

    #[test]
    fn a_shaper_that_counts_1514_bytes_is_no_link() {
        // 100 Mbit/s that count 1514 of the 1538 bytes.
        let goodput = 100e6 * 1448.0 / 1514.0;
        assert_eq!(inferred_link(goodput, &tcp(), 0.93), None);
        assert_eq!(shaped_goodput_bps(100e6, &tcp()), Some(goodput));
    }

    #[test]
    fn names_belong_to_exact_rates_only() {
        assert_eq!(standard_name(1e9), Some("1000BASE-T"));
        assert_eq!(standard_name(1.001e9), None);
    }
}
