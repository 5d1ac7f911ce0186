//! The description of this host for results.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_model::{ForeignText, HostInfo, LinkInfo, LinkKind};
use linerate_sock::iface::{ConnectionEnds, InterfaceInfo};
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

/// The highest copy rate seen so far. Other load on the machine can only make a copy slower.
///
/// Stored as the bits of a positive `f64` in bit/s, whose order is that of the rates; 0 for none.
struct FastestCopy(AtomicU64);

impl FastestCopy {
    fn note(&self, bps: f64) {
        self.0.fetch_max(bps.to_bits(), Ordering::Relaxed);
    }

    fn rate(&self) -> Option<Bitrate> {
        let bits = self.0.load(Ordering::Relaxed);
        (bits > 0).then(|| Bitrate::from_bps(f64::from_bits(bits))).flatten()
    }
}

/// The fastest copy of this process.
static FASTEST_COPY: FastestCopy = FastestCopy(AtomicU64::new(0));

/// Describes this host, and with an address also the interface that has it. Takes some milliseconds if that is the
/// loopback and this process has not measured the rate of memory copies yet.
#[must_use]
pub fn host_info(local: Option<IpAddr>) -> HostInfo {
    describe(local, interface_at(local).as_ref(), fastest_copy)
}

/// Describes this host as one end of a connection, with the interface that carries it; otherwise like [`host_info`].
#[must_use]
pub(crate) fn host_info_of(ends: Option<&ConnectionEnds>) -> HostInfo {
    describe(ends.map(|ends| ends.local.ip()), interface_of(ends).as_ref(), fastest_copy)
}

/// Like [`host_info_of`], but only with a copy rate that is already known, for callers that must not wait. A socket
/// without a peer has only a local address.
#[must_use]
pub(crate) fn host_info_at_once(local: Option<IpAddr>, ends: Option<&ConnectionEnds>) -> HostInfo {
    let interface = interface_of(ends).or_else(|| interface_at(local));
    describe(local, interface.as_ref(), || FASTEST_COPY.rate())
}

fn interface_at(local: Option<IpAddr>) -> Option<InterfaceInfo> {
    iface::of_local_address(local?).ok()
}

fn interface_of(ends: Option<&ConnectionEnds>) -> Option<InterfaceInfo> {
    ends?.interface().ok()
}

/// The copy rate, measured if it is unknown.
fn fastest_copy() -> Option<Bitrate> {
    FASTEST_COPY.rate().or_else(|| {
        // A client waits for this before its first byte, so it is short: the server of a test over the loopback, which
        // has the same memory, has measured for longer, and the higher rate counts.
        copy_memory(Duration::ZERO);
        FASTEST_COPY.rate()
    })
}

/// Measures the memory copy rate so that the descriptions know it.
pub(crate) fn get_ready() {
    if FASTEST_COPY.rate().is_none() {
        // A server keeps the result of its start for a long time, so it measures several times.
        (0..3).for_each(|_| copy_memory(Duration::from_millis(10)));
    }
}

fn describe(
    local: Option<IpAddr>,
    interface: Option<&InterfaceInfo>,
    memory_copy: impl FnOnce() -> Option<Bitrate>,
) -> HostInfo {
    let kernel = proc::host::kernel();
    let sysctls: BTreeMap<ForeignText, ForeignText> = SYSCTLS
        .iter()
        .filter_map(|name| proc::sysctl(name).map(|value| ((*name).into(), value.into())))
        .collect();
    let link = interface.map(link_info);
    // Memory bandwidth is a ceiling only if both ends are on this host.
    let memory_copy =
        link.as_ref().filter(|link| link.kind == LinkKind::Loopback).and_then(|_| memory_copy());
    HostInfo {
        name: kernel.host.clone().into(),
        kernel: format!("{} {}", kernel.system, kernel.release).into(),
        cpu: proc::host::cpu_model().unwrap_or_default().into(),
        cores: u32::try_from(affinity::online_cpus()).unwrap_or(u32::MAX),
        linerate: env!("CARGO_PKG_VERSION").into(),
        address: local.map(|address| address.to_canonical().to_string().into()),
        link,
        memory_copy,
        sysctls,
        calibration: None,
    }
}

/// Copies blocks of the size of one send call for this time, and a few times at least.
fn copy_memory(budget: Duration) {
    const BLOCK: usize = 1 << 20;
    if let Some(bps) = memcopy::memcopy_bps(BLOCK, budget) {
        FASTEST_COPY.note(bps);
    }
}

fn link_info(link: &InterfaceInfo) -> LinkInfo {
    let kind = match link.carrier.unwrap_or(link.kind) {
        iface::InterfaceKind::Loopback => LinkKind::Loopback,
        iface::InterfaceKind::Veth => LinkKind::Veth,
        iface::InterfaceKind::Tun => LinkKind::Tun,
        iface::InterfaceKind::Bridge => LinkKind::Bridge,
        iface::InterfaceKind::Paravirtual => LinkKind::Paravirtual,
        iface::InterfaceKind::Physical => LinkKind::Physical,
        _ => LinkKind::Virtual,
    };
    let offloads = [
        ("tso", link.offloads.tso),
        ("gso", link.offloads.gso),
        ("gro", link.offloads.gro),
        ("lro", link.offloads.lro),
    ];
    LinkInfo {
        name: link.name.clone().into(),
        kind,
        speed: link.speed_bps.and_then(|bps| Bitrate::from_bps(bps as f64)),
        full_duplex: link.full_duplex,
        mtu: link.mtu,
        driver: link.driver.clone().map(Into::into),
        offloads: offloads
            .iter()
            .filter(|(_, on)| *on == Some(true))
            .map(|(name, _)| (*name).into())
            .collect(),
        gso_max_bytes: Some(link.largest_gso()).filter(|bytes| *bytes > iface::USUAL_MAX_PACKET),
        gro_max_bytes: Some(link.largest_gro()).filter(|bytes| *bytes > iface::USUAL_MAX_PACKET),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn whoever_got_ready_knows_at_once_what_copies_take() {
        get_ready();
        let local = Some(IpAddr::from([127, 0, 0, 1]));
        let known = host_info_at_once(local, None).memory_copy.unwrap();
        assert!(host_info(local).memory_copy.unwrap() >= known);
    }

    /// The kernel sends what is for an own address through the loopback, whose only limit is the memory.
    #[test]
    fn a_test_of_an_own_address_has_the_loopback_and_the_memory_as_its_link() {
        get_ready();
        let own = iface::addresses().unwrap().into_iter().map(|entry| entry.address);
        for address in own.filter(IpAddr::is_ipv4) {
            let end = |port| SocketAddr::new(address, port);
            let ends = ConnectionEnds { local: end(40_000), peer: end(5201), device: None };
            let found = [host_info_of(Some(&ends)), host_info_at_once(Some(address), Some(&ends))];
            for host in found {
                let link = host.link.unwrap();
                assert_eq!((link.kind, link.speed), (LinkKind::Loopback, None), "{address}");
                assert!(host.memory_copy.is_some() && host.address == Some(address.to_string().into()));
            }
        }
    }

    #[test]
    fn the_fastest_copy_stays() {
        let seen = FastestCopy(AtomicU64::new(0));
        assert_eq!(seen.rate(), None);
        for (bps, fastest) in [(2e9, 2e9), (1e9, 2e9), (3e9, 3e9)] {
            seen.note(bps);
            assert_eq!(seen.rate(), Bitrate::from_bps(fastest), "after {bps}");
        }
    }
}
