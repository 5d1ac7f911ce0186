//! Counters of the host, for tools that print them.

/// Counters of the host since its start; absent if this system does not provide them.
///
/// # Source
/// Linux: /proc/stat, /proc/net/snmp, /proc/net/netstat, /proc/interrupts, /proc/cpuinfo, /sys/class/net
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostCounts {
    /// CPU time of all cores by state: user, nice, system, idle, iowait, irq, softirq, steal.
    ///
    /// # Source
    /// the first line of /proc/stat, in ticks; use only the ratios
    pub cpu: Option<[u64; 8]>,
    /// Number of online cores.
    pub cores: Option<u32>,
    /// Clock rate of the first core, MHz (the first "cpu MHz" line).
    pub mhz: Option<f64>,
    /// Retransmitted segments of all connections (`RetransSegs`).
    pub retransmits: Option<u64>,
    /// The same by kind: lost, SYN, fast, forward, slow-start, failed.
    ///
    /// # Source
    /// TCPLostRetransmit, TCPSynRetrans, TCPFastRetrans, TCPForwardRetrans, TCPSlowStartRetrans,
    /// TCPRetransFail; a counter that the kernel no longer has is 0
    pub retransmits_by_kind: Option<[u64; 6]>,
    /// Sum over all cores of the interrupts of the lines that contain the requested name.
    pub interrupts: Option<u64>,
    /// Packets sent and received by the requested interface.
    pub packets: Option<(u64, u64)>,
    /// Name of the host.
    pub name: String,
    /// System, release and machine, as uname(1) prints them.
    pub system: String,
}
