//! The MTU of an interface.

use super::Obstacle;
use crate::linux::netlink;
use crate::routing::{LinkChange, RoutingSocket, index_of};
use crate::{SockError, iface};

/// Minimum MTU for IPv6 (RFC 8200 section 5): below it the kernel removes IPv6 from the interface, with all
/// addresses.
const MIN_MTU_V6: u32 = 1280;

pub(super) fn mtu(interface: &str) -> Result<u32, SockError> {
    iface::link(interface).map(|link| link.mtu)
}

pub(super) fn set_mtu(interface: &str, mtu: u32) -> Result<(), SockError> {
    let change = LinkChange { mtu: Some(mtu), ..LinkChange::default() };
    RoutingSocket::open()?.change(index_of(interface)?, &change)
}

pub(super) fn obstacles(interface: &str, wanted: u32) -> Result<Vec<Obstacle>, SockError> {
    let index = index_of(interface)?;
    let (least, largest) = netlink::mtu_limits(index)?;
    let mut found = Vec::new();
    let mut add = |what: String| found.push(Obstacle(format!("mtu {wanted} of {interface}: {what}")));
    if least.is_some_and(|least| wanted < least) || largest.is_some_and(|largest| wanted > largest) {
        let text = |limit: Option<u32>| limit.map_or_else(|| "any".to_owned(), |limit| limit.to_string());
        add(format!("the NIC accepts {} to {}; give a value in this range", text(least), text(largest)));
    }
    for (name, mtu) in netlink::stacked_on(index)?.into_iter().filter(|(_, mtu)| *mtu > wanted) {
        add(format!(
            "{name} is stacked on it with an MTU of {mtu}, which would shrink with it and not grow back; \
             set the MTU of {name} first"
        ));
    }
    if wanted < MIN_MTU_V6 && has_lasting_ipv6(interface)? {
        add(format!(
            "below {MIN_MTU_V6} the kernel removes the IPv6 addresses of the interface, and they would not \
             be restored; remove them yourself, or give {MIN_MTU_V6} or more"
        ));
    }
    Ok(found)
}

/// Whether the interface has an IPv6 address that the kernel would not add again by itself.
fn has_lasting_ipv6(interface: &str) -> Result<bool, SockError> {
    let lasting = |address: &std::net::IpAddr| match address {
        std::net::IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        std::net::IpAddr::V4(_) => false,
    };
    Ok(iface::addresses()?.iter().any(|found| found.name == interface && lasting(&found.address)))
}
