//! Metrics of the host: CPU use and drops.

use linerate_model::Readings;
use linerate_model::metrics::host;
use linerate_sock::proc::cgroup::{CpuCgroups, CpuQuotas};
use linerate_sock::proc::cpu::{self, CpuStat, CpuTimes};
use linerate_sock::proc::net;
use linerate_units::Ratio;

/// The host's counters at one moment. Reading them takes about 100 µs, so they are not read on every tick.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostCounters {
    cpu: Option<CpuStat>,
    quotas: CpuQuotas,
    softnet_dropped: Option<u64>,
    softnet_squeezed: Option<u64>,
    interface_drops: Option<u64>,
    interface_errors: Option<u64>,
    collisions: Option<u64>,
    hystart_exits: Option<u64>,
    hystart_segments: Option<u64>,
    mtu_probes: Option<u64>,
    window_undone: Option<u64>,
    local_retransmits: Option<u64>,
    zero_windows: Option<u64>,
    rcv_pruned: Option<u64>,
    udp_rcvbuf_errors: Option<u64>,
}

impl HostCounters {
    pub(crate) fn read(interface: Option<&str>, cgroups: &CpuCgroups) -> Self {
        let softnet = net::softnet();
        let counters = net::counters().unwrap_or_default();
        let counter = |name: &str| counters.get(name).copied();
        let sum = |names: &[&str]| names.iter().map(|name| counter(&format!("TcpExt.{name}"))).sum();
        let device = interface.and_then(|name| net::devices()?.remove(name));
        let udp = ["Udp.RcvbufErrors", "Udp6.RcvbufErrors"].iter().filter_map(|name| counter(name));
        Self {
            cpu: cpu::stat(),
            quotas: cgroups.quotas(),
            softnet_dropped: softnet.as_ref().map(|cpus| cpus.iter().map(|cpu| cpu.dropped).sum()),
            softnet_squeezed: softnet.as_ref().map(|cpus| cpus.iter().map(|cpu| cpu.time_squeeze).sum()),
            interface_drops: device.map(|device| device.received.dropped + device.sent.dropped),
            interface_errors: device.map(|device| device.received.errors + device.sent.errors),
            collisions: device.map(|device| device.sent.frame_or_collisions),
            hystart_exits: sum(&["TCPHystartTrainDetect", "TCPHystartDelayDetect"]),
            hystart_segments: sum(&["TCPHystartTrainCwnd", "TCPHystartDelayCwnd"]),
            mtu_probes: sum(&["TCPMTUPSuccess", "TCPMTUPFail"]),
            window_undone: sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"]),
            local_retransmits: counter("TcpExt.TCPSpuriousRtxHostQueues"),
            zero_windows: counter("TcpExt.TCPToZeroWindowAdv"),
            rcv_pruned: sum(&["PruneCalled", "TCPRcvCollapsed"]),
            udp_rcvbuf_errors: udp.reduce(|sum, errors| sum + errors),
        }
    }

    /// Busy share of all cores since `earlier`.
    pub(crate) fn busy(&self, earlier: &Self) -> Option<Ratio> {
        Ratio::new(self.cpu.as_ref()?.since(earlier.cpu.as_ref()?).all.busy_share()?)
    }

    /// Writes the changes since `earlier`.
    pub(crate) fn put(&self, earlier: &Self, out: &mut Readings) {
        out.put_some(host::BUSY, self.busy(earlier));
        if let (Some(now), Some(then)) = (&self.cpu, &earlier.cpu) {
            let spent = now.since(then);
            let largest = |share: fn(&CpuTimes) -> Option<f64>| {
                spent.cpus.values().filter_map(share).reduce(f64::max).and_then(Ratio::new)
            };
            out.put_some(host::CORE_BUSY, largest(CpuTimes::busy_share));
            out.put_some(host::SOFTIRQ, largest(CpuTimes::softirq_share));
            out.put_some(host::INTERRUPTS, spent.interrupts);
            out.put_some(host::STEAL, spent.all.steal_share().and_then(Ratio::new));
        }
        let throttled = self.quotas.throttled_share(&earlier.quotas);
        out.put_some(host::QUOTA_THROTTLED, throttled.and_then(Ratio::new));
        for (metric, field) in [
            (host::SOFTNET_DROPPED, (|state| state.softnet_dropped) as fn(&Self) -> Option<u64>),
            (host::SOFTNET_SQUEEZED, |state| state.softnet_squeezed),
            (host::INTERFACE_DROPS, |state| state.interface_drops),
            (host::INTERFACE_ERRORS, |state| state.interface_errors),
            (host::COLLISIONS, |state| state.collisions),
            (host::HYSTART_EXITS, |state| state.hystart_exits),
            (host::HYSTART_SEGMENTS, |state| state.hystart_segments),
            (host::MTU_PROBES, |state| state.mtu_probes),
            (host::WINDOW_UNDONE, |state| state.window_undone),
            (host::LOCAL_RETRANSMITS, |state| state.local_retransmits),
            (host::ZERO_WINDOWS, |state| state.zero_windows),
            (host::RCV_PRUNED, |state| state.rcv_pruned),
            (host::UDP_RCVBUF_ERRORS, |state| state.udp_rcvbuf_errors),
        ] {
            let grown = field(self).zip(field(earlier)).map(|(now, then)| now.saturating_sub(then));
            out.put_some(metric, grown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_counters_are_differences_and_the_busiest_core_is_named() {
        let then = HostCounters {
            cpu: Some(CpuStat::parse("cpu 0 0 0 100\ncpu0 0 0 0 50\ncpu1 0 0 0 50\nintr 1000 1 2\n")),
            zero_windows: Some(3),
            ..HostCounters::default()
        };
        let now = HostCounters {
            cpu: Some(CpuStat::parse("cpu 30 0 0 170\ncpu0 25 0 0 75\ncpu1 5 0 0 95\nintr 1700 1 2\n")),
            zero_windows: Some(10),
            ..HostCounters::default()
        };
        let mut out = Readings::default();
        now.put(&then, &mut out);
        assert_eq!(out.get(host::BUSY).map(Ratio::get), Some(0.3));
        assert_eq!(out.get(host::INTERRUPTS), Some(700));
        assert_eq!(out.get(host::CORE_BUSY).map(Ratio::get), Some(0.5));
        assert_eq!(out.get(host::ZERO_WINDOWS), Some(7));
        assert_eq!(out.get(host::RCV_PRUNED), None, "not read, so absent");
    }
}
