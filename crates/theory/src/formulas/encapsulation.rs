//! MTU overhead of tunnels.

use serde::{Deserialize, Serialize};

use crate::framing::{IpVersion, UDP_HEADER_BYTES};

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
    /// All tunnels.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Vxlan4, Self::Vxlan6, Self::Wireguard4, Self::Wireguard6, Self::Gre4, Self::Pppoe];

    /// Name on the command line.
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

    /// The tunnel with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tunnel| tunnel.name() == name)
    }

    /// Overhead in the MTU, bytes. Source: RFC 7348 §5, RFC 2784, RFC 2516, Donenfeld 2017.
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
    fn overheads_are_the_published_ones() {
        assert!((Encapsulation::Vxlan4.overhead_bytes() - 50.0).abs() < f64::EPSILON);
        assert!((Encapsulation::Vxlan6.overhead_bytes() - 70.0).abs() < f64::EPSILON);
        assert!((Encapsulation::Wireguard4.overhead_bytes() - 60.0).abs() < f64::EPSILON);
        assert!((Encapsulation::Wireguard6.overhead_bytes() - 80.0).abs() < f64::EPSILON);
    }

    #[test]
    fn names_lead_back_to_their_tunnel() {
        for tunnel in Encapsulation::ALL {
            assert_eq!(Encapsulation::from_name(tunnel.name()), Some(tunnel));
        }
        assert_eq!(Encapsulation::from_name("carrier-pigeon"), None);
    }
}
