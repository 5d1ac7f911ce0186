//! Resources used and packets dropped by the host.

use linerate_units::{Ratio, Span};

use super::metrics;

metrics! {
    /// Largest share of one core that a data thread used in the interval.
    THREAD_CPU: Ratio = "cpu.thread", Gauge, Lower, "CLOCK_THREAD_CPUTIME_ID";
    /// Largest share of the interval in which a data thread was ready to run and had no processor.
    THREAD_WAIT: Ratio = "cpu.thread_wait", Gauge, Lower, "/proc/self/task/TID/schedstat column 2";
    /// CPU time of this process in the interval.
    PROCESS_CPU: Span = "cpu.process", Counter, Lower, "CLOCK_PROCESS_CPUTIME_ID";
    /// Busy share of all cores of the host.
    BUSY: Ratio = "host.busy", Gauge, Lower, "proc(5) /proc/stat";
    /// Busy share of the busiest core.
    CORE_BUSY: Ratio = "host.core_busy", Gauge, Lower, "proc(5) /proc/stat";
    /// Share of time spent in software interrupts, on the core with the largest such share.
    SOFTIRQ: Ratio = "host.softirq", Gauge, Lower, "proc(5) /proc/stat";
    /// Interrupts handled by the host, all cores and all devices together.
    INTERRUPTS: u64 = "host.interrupts", Counter, Lower, "proc(5) /proc/stat intr";
    /// Share of time that the hypervisor gave to other guests.
    STEAL: Ratio = "host.steal", Gauge, Lower, "proc(5) /proc/stat";
    /// Share of the periods of a CPU quota in which this process, or its cgroup, had used it up and was stopped.
    QUOTA_THROTTLED: Ratio = "host.quota_throttled", Gauge, Lower, "cgroups(7) cpu.stat nr_throttled / nr_periods";
    /// Packets that the kernel dropped because a core's backlog was full.
    SOFTNET_DROPPED: u64 = "host.softnet_dropped", Counter, Lower, "/proc/net/softnet_stat column 2";
    /// Times a core stopped receiving because its budget was used up.
    SOFTNET_SQUEEZED: u64 = "host.softnet_squeezed", Counter, Lower, "/proc/net/softnet_stat column 3";
    /// Packets dropped at the route's interface, both directions.
    INTERFACE_DROPS: u64 = "host.interface_drops", Counter, Lower, "/proc/net/dev";
    /// Damaged packets at the route's interface.
    INTERFACE_ERRORS: u64 = "host.interface_errors", Counter, Lower, "/proc/net/dev";
    /// Collisions at the route's interface, whose line is therefore half duplex.
    COLLISIONS: u64 = "host.collisions", Counter, Lower, "/proc/net/dev";
    /// Retransmissions caused by this host's own queues: the first copy had not left yet.
    LOCAL_RETRANSMITS: u64 = "host.local_retransmits", Counter, Lower, "TcpExt TCPSpuriousRtxHostQueues";
    /// Times that a receive window was closed completely.
    ZERO_WINDOWS: u64 = "host.zero_windows", Counter, Lower, "TcpExt TCPToZeroWindowAdv";
    /// Times that the receive queue was pruned or collapsed for lack of buffer space.
    RCV_PRUNED: u64 = "host.rcv_pruned", Counter, Lower, "TcpExt PruneCalled + TCPRcvCollapsed";
    /// Connections that left slow start because acknowledgements arrived later or in longer trains, whole host.
    HYSTART_EXITS: u64 = "host.hystart_exits", Counter, Neither, "RFC 9406; TcpExt TCPHystartTrainDetect + TCPHystartDelayDetect";
    /// Sum of the congestion windows, in segments, at which these connections left slow start.
    HYSTART_SEGMENTS: u64 = "host.hystart_segments", Counter, Higher, "TcpExt TCPHystartTrainCwnd + TCPHystartDelayCwnd";
    /// Probes for a larger path MTU that arrived or were lost, whole host.
    /// Discussion: Linux sends none before it has detected a black hole, unless tcp_mtu_probing is 2.
    MTU_PROBES: u64 = "host.mtu_probes", Counter, Neither, "RFC 4821; TcpExt TCPMTUPSuccess + TCPMTUPFail";
    /// Reductions of a congestion window that were undone because the retransmission was unnecessary, whole
    /// host.
    WINDOW_UNDONE: u64 = "host.window_undone", Counter, Lower, "RFC 4015; TcpExt TCPFullUndo + TCPPartialUndo + TCPDSACKUndo + TCPLossUndo";
    /// Datagrams dropped for lack of socket buffer space, whole host.
    UDP_RCVBUF_ERRORS: u64 = "host.udp_rcvbuf_errors", Counter, Lower, "/proc/net/snmp Udp RcvbufErrors";
    /// Delay between the sampler's tick and its wake-up.
    TICK_LATENESS: Span = "host.tick_lateness", Gauge, Lower, "own definition";
}
