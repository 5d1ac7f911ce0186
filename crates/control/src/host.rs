//! What this host says about itself.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use linerate_model::{HostInfo, LinkInfo, LinkKind};
use linerate_sock::{affinity, iface, memcopy, proc};
use linerate_units::Bitrate;

/// Kernel settings that explain results.
const SYSCTLS: [&str; 9] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.core.default_qdisc",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_timestamps",
];

/// Describes this host; with an address also the interface that has it.
#[must_use]
pub fn host_info(local: Option<IpAddr>) -> HostInfo {
    let kernel = proc::host::kernel();
    let sysctls: BTreeMap<String, String> = SYSCTLS
        .iter()
        .filter_map(|name| proc::sysctl(name).map(|value| ((*name).to_owned(), value.replace('\t', " "))))
        .collect();
    let link = local.and_then(|address| iface::of_local_address(address).ok()).map(|link| link_info(&link));
    // Only where no line has a rate is the host itself the ceiling worth knowing.
    let memory_copy = link.as_ref().filter(|link| link.speed.is_none()).and_then(|_| memory_copy());
    HostInfo {
        name: kernel.host.clone(),
        kernel: format!("{} {}", kernel.system, kernel.release),
        cpu: proc::host::cpu_model().unwrap_or_default(),
        cores: u32::try_from(affinity::online_cpus()).unwrap_or(u32::MAX),
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        address: local.map(|address| address.to_canonical().to_string()),
        link,
        memory_copy,
        sysctls,
        calibration: None,
    }
}

/// Rate of a copy of the size that one send call hands over. Short, so that asking costs no noticeable time.
fn memory_copy() -> Option<Bitrate> {
    const BLOCK: usize = 1 << 20;
    memcopy::memcopy_bps(BLOCK, Duration::from_millis(10)).and_then(Bitrate::from_bps)
}

fn link_info(link: &iface::LinkInfo) -> LinkInfo {
    let kind = match link.kind {
        iface::LinkKind::Loopback => LinkKind::Loopback,
        iface::LinkKind::Veth => LinkKind::Veth,
        iface::LinkKind::Tun => LinkKind::Tun,
        iface::LinkKind::Bridge => LinkKind::Bridge,
        iface::LinkKind::Physical => LinkKind::Physical,
        _ => LinkKind::Virtual,
    };
    let offloads = [
        ("tso", link.offloads.tso),
        ("gso", link.offloads.gso),
        ("gro", link.offloads.gro),
        ("lro", link.offloads.lro),
    ];
    LinkInfo {
        name: link.name.clone(),
        kind,
        speed: link.speed_bps.and_then(|bps| Bitrate::from_bps(bps as f64)),
        full_duplex: link.full_duplex,
        mtu: link.mtu,
        driver: link.driver.clone(),
        offloads: offloads
            .iter()
            .filter(|(_, on)| *on == Some(true))
            .map(|(name, _)| (*name).to_owned())
            .collect(),
    }
}
