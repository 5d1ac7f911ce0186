//! Limits the places that one host may take to a share of the free ones, so that other hosts always find some.
//!
//! These are the dynamic thresholds of switches whose queues share one memory (Choudhury and Hahne, "Dynamic
//! queue length thresholds for shared-memory packet switches", 1998): a host may take one more place while it
//! has fewer than a multiple of the free places. One host alone gets half of the places, and k hosts leave 1 of
//! 1 + k of them free for the next.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use linerate_sock::thread::locked;

/// The multiple of the free places that one host, its network (/24, /48) and its region (/16, /32) may have.
const HOST: usize = 1;
const NETWORK: usize = 2;
const REGION: usize = 3;

/// Addresses that count together, because one party may own many of them. They share the first `bits` bits,
/// with IPv4 as mapped addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressGroup {
    bits: u8,
    prefix: u128,
}

impl AddressGroup {
    fn new(address: IpAddr, bits: u8) -> Self {
        let number = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        Self { bits, prefix: number & (u128::MAX << (128 - u32::from(bits))) }
    }

    /// One host: an IPv4 address, or the /64 of an IPv6 address, within which a host chooses its addresses
    /// freely. Link-local addresses (`fe80::/10`) share one /64, so they count individually.
    pub(crate) fn host(address: IpAddr) -> Self {
        let bits = match address.to_canonical() {
            IpAddr::V6(v6) if !v6.is_unicast_link_local() && !v6.is_loopback() => 64,
            _ => 128,
        };
        Self::new(address, bits)
    }

    /// The addresses of one site: the /24 of an IPv4 address, or the /56 of an IPv6 address.
    pub(crate) fn site(address: IpAddr) -> Self {
        Self::new(address, if address.to_canonical().is_ipv4() { 96 + 24 } else { 56 })
    }

    /// The host, its network (/24, /48) and its region (/16, /32), each with its multiple.
    fn all_of(address: IpAddr) -> [(Self, usize); 3] {
        let (network, region) = if address.to_canonical().is_ipv4() { (96 + 24, 96 + 16) } else { (48, 32) };
        let (network, region) = (Self::new(address, network), Self::new(address, region));
        [(Self::host(address), HOST), (network, NETWORK), (region, REGION)]
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        Self::new(address, self.bits) == self
    }
}

impl fmt::Display for AddressGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_bits(self.prefix);
        match (address.to_ipv4_mapped(), self.bits) {
            (Some(v4), 128) => write!(f, "{v4}"),
            (Some(v4), bits) => write!(f, "{v4}/{}", bits - 96),
            (None, 128) => write!(f, "{address}"),
            (None, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

/// A limited number of places.
#[derive(Debug)]
pub struct Shares {
    total: usize,
    state: Mutex<TakenPlaces>,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    all: usize,
    taken: BTreeMap<AddressGroup, usize>,
}

/// The group that has reached its share, and the number of its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// The group.
    pub group: AddressGroup,
    /// Its places.
    pub taken: usize,
}

/// A place, released when this is dropped.
#[derive(Debug)]
pub struct Permit {
    shares: Arc<Shares>,
    groups: [AddressGroup; 3],
}

impl Shares {
    /// This number of places, all free.
    #[must_use]
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, state: Mutex::default() })
    }

    /// Takes a place for the host at `address`.
    ///
    /// # Errors
    /// The host, its network or its region has its share.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Result<Permit, Exhausted> {
        let mut state = locked(&self.state);
        let free = self.total.saturating_sub(state.all);
        let groups = AddressGroup::all_of(address);
        for (group, times) in groups {
            let taken = state.taken.get(&group).copied().unwrap_or(0);
            if taken >= free.saturating_mul(times) {
                return Err(Exhausted { group, taken });
            }
        }
        let groups = groups.map(|(group, _)| group);
        state.all += 1;
        for group in groups {
            *state.taken.entry(group).or_default() += 1;
        }
        Ok(Permit { shares: Arc::clone(self), groups })
    }

    /// Number of taken places.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        locked(&self.state).all
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = locked(&self.shares.state);
        state.all = state.all.saturating_sub(1);
        for group in self.groups {
            if let Some(taken) = state.taken.get_mut(&group) {
                *taken = taken.saturating_sub(1);
                if *taken == 0 {
                    state.taken.remove(&group);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Takes as many places as the addresses get, one address after another.
    fn flood(shares: &Arc<Shares>, addresses: impl Iterator<Item = IpAddr>) -> Vec<Permit> {
        let all = |address| std::iter::from_fn(move || shares.take(address).ok()).collect::<Vec<_>>();
        addresses.flat_map(all).collect()
    }

    #[test]
    fn one_host_gets_half_and_the_next_always_gets_some() {
        let shares = Shares::new(512);
        let hog = flood(&shares, [address("192.0.2.1")].into_iter());
        assert_eq!(hog.len(), 256);
        let refused = shares.take(address("192.0.2.1")).unwrap_err();
        assert_eq!((refused.group.to_string(), refused.taken), ("192.0.2.1".to_owned(), 256));
        // Other hosts, in another network and in the same one.
        for other in ["198.51.100.7", "192.0.2.2"] {
            assert!(shares.take(address(other)).is_ok(), "{other}");
        }
        drop(hog);
        assert_eq!(shares.taken(), 0);
        assert!(locked(&shares.state).taken.is_empty(), "nothing is remembered of those who left");
    }

    #[test]
    fn a_network_a_region_and_every_address_of_ipv6_leave_room_for_others() {
        let floods: [(&str, Vec<IpAddr>); 4] = [
            ("a /24", (0..=255).map(|n| IpAddr::from([10, 0, 0, n])).collect()),
            ("a /16", (0..=255).map(|n| IpAddr::from([10, 0, n, 1])).collect()),
            ("a /64", (0..500).map(|n| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n])).collect()),
            ("a /32", (0..500).map(|n| IpAddr::from([0x2001, 0xdb8, n, 0, 0, 0, 0, 1])).collect()),
        ];
        for (name, addresses) in floods {
            let shares = Shares::new(512);
            let hog = flood(&shares, addresses.into_iter());
            assert!(hog.len() <= 384, "{name} has {} of 512", hog.len());
            for other in ["203.0.113.9", "2a00::1"] {
                let honest = flood(&shares, [address(other)].into_iter());
                assert!(honest.len() >= 16, "{name} leaves {} for {other}", honest.len());
            }
        }
    }

    #[test]
    fn a_host_is_one_address_or_one_network_of_ipv6_and_mapped_addresses_are_ipv4() {
        let host = |text| AddressGroup::host(address(text));
        assert_eq!(host("::ffff:192.0.2.1"), host("192.0.2.1"));
        assert_ne!(host("192.0.2.1"), host("192.0.2.2"));
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff:2"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
        assert_ne!(host("fe80::1"), host("fe80::2"), "on one link everybody has the same /64");
        assert_eq!(host("2001:db8::1").to_string(), "2001:db8::/64");
        let [_, (network, _), (region, _)] = AddressGroup::all_of(address("192.0.2.1"));
        assert_eq!(
            (network.to_string(), region.to_string()),
            ("192.0.2.0/24".to_owned(), "192.0.0.0/16".to_owned())
        );
        assert!(network.contains(address("192.0.2.77")) && !network.contains(address("192.0.3.1")));
    }
}
