//! Counters of the host, for tools that print them.

/// What the host has counted since it started; absent is what this system does not tell.
///
/// # Source
/// Linux: /proc/stat, /proc/net/snmp, /proc/net/netstat, /proc/interrupts, /proc/cpuinfo, /sys/class/net
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostCounts {
    /// CPU time of all cores by state: user, nice, system, idle, iowait, irq, softirq, steal.
    ///
    /// # Source
    /// the first line of /proc/stat, in its own ticks; only shares of it mean something
    pub cpu: Option<[u64; 8]>,
    /// Cores that are online.
    pub cores: Option<u32>,
    /// Clock of the first core, MHz (the first "cpu MHz" line).
    pub mhz: Option<f64>,
    /// Segments sent again, of all connections (`RetransSegs`).
    pub retransmits: Option<u64>,
    /// Details of them, in the order lost, SYN, fast, forward, slow-start, failed.
    ///
    /// # Source
    /// TCPLostRetransmit, TCPSynRetrans, TCPFastRetrans, TCPForwardRetrans, TCPSlowStartRetrans, TCPRetransFail; a
    /// counter that the kernel no longer has is 0
    pub retransmits_by_kind: Option<[u64; 6]>,
    /// Interrupts of the lines whose text contains the name that was asked for, all cores together.
    pub interrupts: Option<u64>,
    /// Packets sent and received by the interface that was asked for.
    pub packets: Option<(u64, u64)>,
    /// Name of the host.
    pub name: String,
    /// System, release and machine, as uname(1) prints them.
    pub system: String,
}
