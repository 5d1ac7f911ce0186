//! The evidence about the path of a flow: its links, round trips, queues and ports.

use linerate_model::metrics::{port, tcp};
use linerate_model::{Direction, LatencyReport, LinkInfo, LinkKind, PortRecord, Side, Transport};
use linerate_theory::evidence::{LinkEvidence, LinkSource, OwnQueue, PortEvidence, RoundTrip};
use linerate_theory::framing::IpVersion;
use linerate_theory::stats::order::percentile;
use linerate_units::{Bitrate, Bytes, Span};

use super::{FlowView, PlainNumber};

/// Fewest returned segments from which a loss ratio is computed.
const MIN_RETURNED_SEGMENTS: f64 = 50.0;

impl FlowView<'_> {
    pub(super) fn link(&self) -> LinkEvidence {
        let given = self.record.start.as_ref().and_then(|start| start.spec.host.link);
        let own = self.sender.and_then(|host| host.link.as_ref());
        let peer = self.receiver.and_then(|host| host.link.as_ref());
        let rate = |link: Option<&LinkInfo>| link.and_then(|link| link.speed).map(Bitrate::bps);
        let settings = self.flow.sender_settings.as_ref();
        let has = |option: &str| settings.map(|s| s.tcp_options.iter().any(|name| name == option));
        let known_options = settings.is_some_and(|s| !s.tcp_options.is_empty());
        let mtus = [own.map(|link| link.mtu), peer.map(|link| link.mtu), settings.and_then(|s| s.pmtu)];
        let udp = self.flow.plan.transport == Transport::Udp;
        LinkEvidence {
            link_bps: given.map(Bitrate::bps).or_else(|| rate(own)),
            source: given.map(|_| LinkSource::User).or_else(|| rate(own).map(|_| LinkSource::Interface)),
            is_nominal: given.is_none() && is_nominal(own),
            is_virtual: [own, peer]
                .into_iter()
                .flatten()
                .any(|link| link.speed.is_none() && is_made_up(link.kind)),
            is_loopback: [own, peer]
                .iter()
                .all(|link| link.is_some_and(|link| link.kind == LinkKind::Loopback)),
            peer_link_bps: rate(peer).filter(|_| given.is_none()),
            peer_is_nominal: is_nominal(peer),
            mtu_bytes: mtus.into_iter().flatten().min().map(f64::from),
            ip_version: self.ip_version(),
            mss_bytes: if udp {
                settings.map(|s| s.length.plain())
            } else {
                self.min(Side::Sender, tcp::SND_MSS)
                    .or_else(|| settings.and_then(|s| s.mss.effective).map(f64::from))
            },
            timestamps: has("timestamps").filter(|_| known_options),
            window_scaling: has("wscale").filter(|_| known_options),
            tags: None,
        }
    }

    pub(super) fn ip_version(&self) -> Option<IpVersion> {
        let address: std::net::IpAddr = self.sender?.address.as_ref()?.parse().ok()?;
        Some(if address.to_canonical().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 })
    }

    pub(super) fn rtt(&self) -> RoundTrip {
        let s = |ns: u64| Span::from_ns(ns).as_secs_f64();
        let smoothed = self.series(Side::Sender, tcp::SRTT);
        let loaded = self.flow.loaded.as_ref().map(|report| report.rtt);
        RoundTrip {
            min_s: self.min(Side::Sender, tcp::MIN_RTT),
            mean_s: (!smoothed.is_empty()).then(|| smoothed.iter().sum::<f64>() / smoothed.len() as f64),
            smoothed_p10_s: percentile(&smoothed, 0.1),
            smoothed_p90_s: percentile(&smoothed, 0.9),
            idle_min_s: self.record.idle.as_ref().map(|report| s(report.rtt.min_ns)),
            idle_p50_s: self.record.idle.as_ref().map(|report| s(report.rtt.p50_ns)),
            loaded_p50_s: loaded.map(|rtt| s(rtt.p50_ns)),
            loaded_p95_s: loaded.map(|rtt| s(rtt.p95_ns)),
            loaded_p99_s: loaded.map(|rtt| s(rtt.p99_ns)),
            out_rise_s: self.one_way_rise_s(Direction::Upload),
            back_rise_s: self.one_way_rise_s(Direction::Download),
        }
    }

    /// Increase of the median one-way delay under load. `Upload` is the direction of this flow's data,
    /// `Download` the reverse.
    pub(super) fn one_way_rise_s(&self, way: Direction) -> Option<f64> {
        let upload = (way == Direction::Upload) == (self.flow.plan.direction == Direction::Upload);
        let median = |report: &LatencyReport| {
            let digest = if upload { report.upload } else { report.download };
            digest.map(|digest| digest.p50_ns as f64 / 1e9)
        };
        Some(median(self.flow.loaded.as_ref()?)? - median(self.record.idle.as_ref()?)?)
    }

    /// The root qdisc of one end's interface; absent if the flow did not pass through it.
    pub(super) fn own_queue(&self, side: Side) -> Option<OwnQueue> {
        let tally = self.tally(side)?;
        let host = if side == Side::Sender { self.sender? } else { self.receiver? };
        let interface = tally.kernel.as_ref()?.interface.as_ref()?;
        let queue = interface.qdisc.as_ref()?;
        // Traffic to an address of the same host uses the loopback interface, whichever interface has the
        // address.
        let arrived = self.tally(Side::Receiver).map_or(Bytes::default(), |tally| tally.total_bytes);
        if queue.bytes < arrived {
            return None;
        }
        let kind = host.link.as_ref().filter(|link| link.speed.is_none()).map(|link| link.kind);
        Some(OwnQueue {
            kind: queue.kind.to_string(),
            interface: interface.name.to_string(),
            host: host.name.to_string(),
            rate_bps: queue.rate_bps.map(PlainNumber::plain),
            burst_bytes: queue.burst_bytes.map(PlainNumber::plain),
            may_count_packets: matches!(
                kind,
                Some(LinkKind::Tun | LinkKind::Virtual | LinkKind::Paravirtual)
            ),
            dropped: Some(queue.dropped.plain()),
        })
    }

    /// Share of the segments sent by the receiver that did not reach the sender.
    pub(super) fn return_lost_share(&self) -> Option<f64> {
        let socket = |side| self.tally(side)?.kernel.as_ref()?.socket;
        let (sender, receiver) = (socket(Side::Sender)?, socket(Side::Receiver)?);
        let (sent, came) = (receiver.segments_out as f64, sender.segments_in as f64);
        (sent >= MIN_RETURNED_SEGMENTS).then(|| (1.0 - came / sent).max(0.0))
    }

    /// Packets dropped by the ports of an emulated network during the measured part.
    pub(super) fn ports(&self) -> Vec<PortEvidence> {
        let passed = |port: &&PortRecord| port.flows.contains(&self.flow.plan.flow);
        let counted = |port: &PortRecord| {
            let inside = port.samples.iter().filter(|sample| !sample.outside);
            let dropped: u64 = inside.filter_map(|sample| sample.readings.get(port::DROPPED)).sum();
            PortEvidence { name: port.port.to_string(), dropped: dropped as f64 }
        };
        self.record.ports.iter().filter(passed).map(counted).collect()
    }
}

/// Whether an interface has no speed because it is not a physical line.
fn is_made_up(kind: LinkKind) -> bool {
    use LinkKind::{Bridge, Loopback, Paravirtual, Tun, Veth, Virtual};
    matches!(kind, Loopback | Veth | Tun | Bridge | Virtual | Paravirtual)
}

/// Whether the rate of an interface is what a hypervisor's network card reports: vmxnet3 always 10 Gb/s, hv_netvsc
/// that of the host's card. Two guests of one host exceed both.
fn is_nominal(link: Option<&LinkInfo>) -> bool {
    link.is_some_and(|link| link.kind == LinkKind::Paravirtual && link.speed.is_some())
}
