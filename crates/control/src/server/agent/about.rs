//! The description that an agent sends to an authenticated coordinator.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_model::World;
use linerate_proto::agent::{About, Interface};
use linerate_sock::{clock, features, iface, proc};

use crate::host_settings::SETTINGS;
use crate::server::Shared;

/// Describes this host for a connection whose local address is `local`.
pub(super) fn about(local: Option<IpAddr>, shared: &Shared) -> About {
    let congestion = proc::sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let features = features::features();
    let world = if shared.config.observer.is_some() { World::Lab } else { World::Hosts };
    About {
        host: shared.config.host(local),
        world: Some(world),
        identity: shared.identity.clone().into(),
        longest_ns: shared.longest(),
        congestion: congestion.split_whitespace().map(Into::into).collect(),
        interfaces: interfaces(),
        settings: if shared.config.settings.is_some() { SETTINGS.map(Into::into).into() } else { Vec::new() },
        features: features.iter().filter(|f| f.available).map(|feature| feature.name.into()).collect(),
        clock_source: proc::host::clock_source().map(Into::into),
        wall_ns: clock::wall_ns(),
        certificate: shared.config.identity.as_ref().map(|identity| identity.fingerprint()),
    }
}

fn interfaces() -> Vec<Interface> {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in iface::addresses().unwrap_or_default() {
        named.entry(found.name).or_default().push(found.address.to_string());
    }
    let describe = |(name, addresses): (String, Vec<String>)| {
        let mtu_bytes = iface::link(&name).ok().map(|link| link.mtu);
        Interface { name: name.into(), mtu_bytes, addresses: addresses.into_iter().map(Into::into).collect() }
    };
    named.into_iter().map(describe).collect()
}
