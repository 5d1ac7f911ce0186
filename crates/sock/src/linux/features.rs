//! Tries the capabilities of this kernel.

use std::fs;
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::features::KernelCapability;
use crate::linux::call::{get_bytes, set};
use crate::sockopt::{self, Timestamping};

impl KernelCapability {
    /// Without further information.
    fn new(name: &'static str, available: bool) -> Self {
        Self { name, available, detail: None }
    }

    /// Available if `attempt` succeeded; otherwise with the kernel's reason.
    fn tried<T, E: std::error::Error>(name: &'static str, attempt: &Result<T, E>) -> Self {
        let detail = attempt
            .as_ref()
            .err()
            .map(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string));
        Self { name, available: attempt.is_ok(), detail }
    }
}

/// Tries everything that a measurement can use. Opens a few sockets and sends nothing.
#[must_use]
pub fn features() -> Vec<KernelCapability> {
    let mut found = vec![congestion_controls(), mptcp(), io_uring(), huge_pages()];
    if let Ok(tcp) = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)) {
        found.push(tcp_info_length(&tcp));
        found.push(KernelCapability::tried("MSG_ZEROCOPY (TCP)", &sockopt::set_zerocopy(&tcp, true)));
        found.push(KernelCapability::tried(
            "SO_MAX_PACING_RATE",
            &sockopt::set_max_pacing_rate(&tcp, u64::MAX),
        ));
    }
    if let Ok(udp) = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)) {
        let stamps = Timestamping { receive: true, send: true, acknowledged: false };
        found.push(KernelCapability::tried("UDP_SEGMENT (GSO)", &udp_segment(&udp)));
        found.push(KernelCapability::tried("UDP_GRO", &sockopt::set_udp_gro(&udp, true)));
        found.push(KernelCapability::tried("MSG_ZEROCOPY (UDP)", &sockopt::set_zerocopy(&udp, true)));
        found.push(KernelCapability::tried("SO_RXQ_OVFL", &sockopt::set_drop_counter(&udp, true)));
        found.push(KernelCapability::tried(
            "SO_TIMESTAMPING (software)",
            &sockopt::set_timestamping(&udp, stamps),
        ));
        found.push(KernelCapability::tried("SO_TXTIME", &txtime(&udp)));
        found.push(KernelCapability::tried("CAP_NET_ADMIN", &sockopt::force_rcv_buf(&udp, 1 << 20)));
    }
    found
}

fn congestion_controls() -> KernelCapability {
    let list = crate::proc::sysctl("net.ipv4.tcp_available_congestion_control");
    KernelCapability { name: "TCP congestion control", available: list.is_some(), detail: list }
}

fn mptcp() -> KernelCapability {
    KernelCapability::tried("MPTCP", &Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)))
}

/// Every kernel refuses a ring without entries; one that supports io_uring does so with `EINVAL` or `EFAULT`.
fn io_uring() -> KernelCapability {
    // SAFETY: the kernel rejects the null parameters before it creates anything.
    unsafe { libc::syscall(libc::SYS_io_uring_setup, 0, std::ptr::null::<u8>()) };
    let error = std::io::Error::last_os_error();
    let available = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EFAULT));
    KernelCapability { name: "io_uring", available, detail: (!available).then(|| error.to_string()) }
}

fn huge_pages() -> KernelCapability {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = setting.split('[').nth(1).and_then(|rest| rest.split(']').next()).map(str::to_owned);
    let available = matches!(chosen.as_deref(), Some("always" | "madvise"));
    KernelCapability { name: "transparent huge pages", available, detail: chosen }
}

fn tcp_info_length(tcp: &impl AsFd) -> KernelCapability {
    let mut buffer = [0; 512];
    let filled = get_bytes("read TCP_INFO", tcp, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer);
    let length = filled.map_or(0, <[u8]>::len);
    let detail = Some(format!("{length} bytes"));
    KernelCapability { detail, ..KernelCapability::new("TCP_INFO", length > 0) }
}

fn udp_segment(udp: &impl AsFd) -> Result<(), crate::SockError> {
    set("set UDP_SEGMENT", udp, libc::IPPROTO_UDP, libc::UDP_SEGMENT, 1400)
}

/// Every kernel that knows the option accepts it; it works only if the interface has the `fq` or `etf`
/// discipline.
fn txtime(udp: &impl AsFd) -> Result<(), crate::SockError> {
    let clock_and_flags = [libc::CLOCK_MONOTONIC, 0];
    set("set SO_TXTIME", udp, libc::SOL_SOCKET, libc::SO_TXTIME, clock_and_flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_named_once_and_a_missing_one_says_why() {
        let found = features();
        let mut names: Vec<&str> = found.iter().map(|feature| feature.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), found.len());
        assert_eq!(found.len(), 14);
        for feature in &found {
            assert!(feature.available || feature.detail.is_some(), "{feature:?}");
        }
        let info = found.iter().find(|feature| feature.name == "TCP_INFO").unwrap();
        assert!(info.available, "every Linux since 2.4 has it");
    }

    #[test]
    fn io_uring_is_available_exactly_if_a_ring_can_be_made() {
        let mut parameters = [0u8; 120];
        // SAFETY: `parameters` is as large as `struct io_uring_params`, which the kernel reads and writes.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
        assert_eq!(io_uring().available, ring >= 0);
        if ring >= 0 {
            // SAFETY: closes the descriptor that the kernel has just returned.
            unsafe { libc::close(ring as i32) };
        }
    }

    #[test]
    fn a_refusal_carries_the_kernels_reason() {
        let refused =
            KernelCapability::tried("x", &Err::<(), _>(crate::SockError::errno("try", libc::ENOPROTOOPT)));
        assert!(!refused.available);
        assert!(refused.detail.unwrap().contains("Protocol not available"));
    }
}
