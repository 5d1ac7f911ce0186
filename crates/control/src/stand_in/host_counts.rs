//! The counters of this host, for tools that print them.

use linerate_compat::stand_in::HostCounts;
use linerate_sock::affinity;
use linerate_sock::proc::{cpu, host, interrupts, net};

/// Reads the counters now: the interrupts of the lines that contain a name, and the packets of an interface.
pub(super) fn read(interrupts_of: Option<&str>, interface: Option<&str>) -> HostCounts {
    let kernel = host::kernel();
    let counters = net::counters();
    let count = |name: &str| counters.as_ref().and_then(|counters| counters.get(name).copied());
    // A counter that the kernel no longer has is 0, which is what the tool prints.
    let kind = |name: &str| count(name).unwrap_or(0);
    let device = interface.and_then(|name| net::devices()?.remove(name));
    HostCounts {
        cpu: cpu::stat().map(|stat| {
            let all = stat.all;
            [all.user, all.nice, all.system, all.idle, all.iowait, all.irq, all.softirq, all.steal]
        }),
        cores: u32::try_from(affinity::online_cpus()).ok(),
        mhz: host::cpu_mhz(),
        retransmits: count("Tcp.RetransSegs"),
        retransmits_by_kind: counters.as_ref().map(|_| {
            [
                kind("TcpExt.TCPLostRetransmit"),
                kind("TcpExt.TCPSynRetrans"),
                kind("TcpExt.TCPFastRetrans"),
                kind("TcpExt.TCPForwardRetrans"),
                kind("TcpExt.TCPSlowStartRetrans"),
                kind("TcpExt.TCPRetransFail"),
            ]
        }),
        interrupts: interrupts_of.and_then(interrupts::interrupts),
        packets: device.map(|device| (device.sent.packets, device.received.packets)),
        system: format!("{} {} {}", kernel.system, kernel.release, kernel.machine),
        name: kernel.host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_reports_what_every_linux_reports() {
        let counts = read(None, Some("lo"));
        assert!(counts.cpu.is_some() && counts.cores > Some(0) && counts.packets.is_some());
        assert!(counts.retransmits.is_some() && counts.retransmits_by_kind.is_some());
        assert!(!counts.name.is_empty() && counts.system.starts_with("Linux "));
        assert_eq!((counts.interrupts, read(Some("no such device"), Some("none")).packets), (None, None));
    }
}
