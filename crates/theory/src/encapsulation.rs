//! What tunnels take from the MTU of the network under them.

use serde::{Deserialize, Serialize};

use crate::domain::{finite, not_negative, positive};
use crate::framing::{IpVersion, UDP_HEADER_BYTES};

/// Parts of an ESP packet that do not depend on its length, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Esp {
    /// Outer IP header.
    pub ip_header_bytes: f64,
    /// Initialisation vector.
    pub iv_bytes: f64,
    /// Integrity check value.
    pub icv_bytes: f64,
    /// The encrypted part is a multiple of this.
    pub align_bytes: f64,
}

/// Largest inner packet of an ESP tunnel.
///
/// Units: bytes. Domain: alignment > 0, an MTU larger than the headers. Source: RFC 4303 §2, RFC 4106.
#[must_use]
pub fn esp_inner_bytes(mtu_bytes: f64, esp: &Esp) -> Option<f64> {
    // Eight bytes hold the security index and the sequence number.
    let room = finite(mtu_bytes)? - esp.ip_header_bytes - 8.0 - esp.iv_bytes - esp.icv_bytes;
    let align = positive(esp.align_bytes)?;
    // The last two encrypted bytes are pad length and next header.
    positive((room / align).floor() * align - 2.0)
}

/// What WireGuard takes: outer IP, UDP, and 32 bytes of its own header and authentication tag.
///
/// Units: bytes. Domain: IP header ≥ 0. Source: Donenfeld, WireGuard, NDSS 2017 §5.4.6.
#[must_use]
pub fn wireguard_bytes(ip_header_bytes: f64) -> Option<f64> {
    finite(not_negative(ip_header_bytes)? + UDP_HEADER_BYTES + 32.0)
}

/// A tunnel on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encapsulation {
    /// No tunnel.
    None,
    /// VXLAN over IPv4.
    Vxlan4,
    /// VXLAN over IPv6.
    Vxlan6,
    /// WireGuard over IPv4.
    Wireguard4,
    /// WireGuard over IPv6.
    Wireguard6,
    /// GRE over IPv4.
    Gre4,
    /// PPP over Ethernet.
    Pppoe,
}

impl Encapsulation {
    /// Every tunnel that has a name here.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Vxlan4, Self::Vxlan6, Self::Wireguard4, Self::Wireguard6, Self::Gre4, Self::Pppoe];

    /// The name typed on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Vxlan4 => "vxlan4",
            Self::Vxlan6 => "vxlan6",
            Self::Wireguard4 => "wireguard4",
            Self::Wireguard6 => "wireguard6",
            Self::Gre4 => "gre4",
            Self::Pppoe => "pppoe",
        }
    }

    /// The tunnel of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tunnel| tunnel.name() == name)
    }

    /// What it takes from the MTU, bytes. Source: RFC 7348 §5, RFC 2784, RFC 2516, Donenfeld 2017.
    #[must_use]
    pub fn overhead_bytes(self) -> f64 {
        // VXLAN: outer IP, UDP, its own eight bytes and the inner Ethernet header.
        let vxlan = |ip: IpVersion| ip.header_bytes() + UDP_HEADER_BYTES + 8.0 + 14.0;
        let wireguard = |ip: IpVersion| ip.header_bytes() + UDP_HEADER_BYTES + 32.0;
        match self {
            Self::None => 0.0,
            Self::Vxlan4 => vxlan(IpVersion::V4),
            Self::Vxlan6 => vxlan(IpVersion::V6),
            Self::Wireguard4 => wireguard(IpVersion::V4),
            Self::Wireguard6 => wireguard(IpVersion::V6),
            Self::Gre4 => 24.0,
            Self::Pppoe => 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn esp_leaves_the_inner_packet_that_the_rfcs_give() {
        let gcm = Esp { ip_header_bytes: 20.0, iv_bytes: 8.0, icv_bytes: 16.0, align_bytes: 4.0 };
        assert_eq!(esp_inner_bytes(1500.0, &gcm), Some(1446.0));
        let cbc = Esp { ip_header_bytes: 20.0, iv_bytes: 16.0, icv_bytes: 16.0, align_bytes: 16.0 };
        assert_eq!(esp_inner_bytes(1500.0, &cbc), Some(1438.0));
        assert_eq!(esp_inner_bytes(40.0, &cbc), None);
        assert_eq!(esp_inner_bytes(1500.0, &Esp { align_bytes: 0.0, ..gcm }), None);
    }

    #[test]
    fn overheads_are_the_published_ones() {
        assert!((Encapsulation::Vxlan4.overhead_bytes() - 50.0).abs() < f64::EPSILON);
        assert!((Encapsulation::Vxlan6.overhead_bytes() - 70.0).abs() < f64::EPSILON);
        assert_eq!(wireguard_bytes(40.0), Some(Encapsulation::Wireguard6.overhead_bytes()));
    }

    #[test]
    fn names_lead_back_to_their_tunnel() {
        for tunnel in Encapsulation::ALL {
            assert_eq!(Encapsulation::from_name(tunnel.name()), Some(tunnel));
        }
        assert_eq!(Encapsulation::from_name("carrier-pigeon"), None);
    }
}
