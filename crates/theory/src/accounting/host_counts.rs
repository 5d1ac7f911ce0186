//! Counts of a host while the flows of a phase ran.

use linerate_model::metrics::port;
use linerate_model::{
    Direction, FlowRecord, HostInfo, InterfaceCounts, LinkKind, PortRecord, ProbeTransport, RunRecord, Side,
    SocketCounts, Tally, Transport,
};

use linerate_units::Bytes;

use super::load::{DirectionLoad, LoadPart, Others, Probes};
use super::{CountRange, Heading};
use crate::framing::{self, ETHERNET_HEADER_BYTES, FCS_BYTES, Headers, IpVersion, UDP_HEADER_BYTES};

/// Payload of a probe. Source: docs/reference/native-protocol.md.
const PROBE_BYTES: u64 = 64;
/// Other traffic may be higher during the load than before it by this factor, since it is not constant.
const UNEVEN_FACTOR: f64 = 1.5;

/// One host and its side of every flow of the phase.
pub(super) struct Station<'a> {
    host: Option<&'a HostInfo>,
    flows: Vec<(&'a FlowRecord, Side)>,
    probed_idle: u64,
}

impl<'a> Station<'a> {
    pub(super) fn new(record: &'a RunRecord, flows: &[&'a FlowRecord], number: u16) -> Self {
        let side_of = |flow: &FlowRecord| {
            let sends = (flow.plan.direction == Direction::Upload) == (number == 0);
            if sends { Side::Sender } else { Side::Receiver }
        };
        Self {
            host: record.hosts.get(usize::from(number)),
            flows: flows.iter().map(|flow| (*flow, side_of(flow))).collect(),
            probed_idle: record.idle.as_ref().map_or(0, |report| report.sent),
        }
    }

    pub(super) fn name(&self) -> &'a str {
        self.host.map_or("", |host| host.name.as_str())
    }

    /// The tally whose interface readings cover the longest time: that of the flow that ended last.
    fn last(&self) -> Option<&'a Tally> {
        let tallies = self.flows.iter().filter_map(|(flow, side)| flow.tally(*side));
        let over =
            |tally: &&Tally| tally.kernel.as_ref().and_then(|k| k.interface.as_ref()).map(|i| i.duration);
        tallies.filter(|tally| over(tally).is_some()).max_by_key(over)
    }

    pub(super) fn interface(&self) -> Option<&'a InterfaceCounts> {
        self.last()?.kernel.as_ref()?.interface.as_ref()
    }

    /// Bytes of FCS that a network card may count.
    pub(super) fn check(&self) -> u64 {
        let kind = self.host.and_then(|host| host.link.as_ref()).map(|link| link.kind);
        let card = matches!(kind, Some(LinkKind::Physical | LinkKind::Virtual | LinkKind::Paravirtual));
        if card { FCS_BYTES as u64 } else { 0 }
    }

    fn ip(&self) -> IpVersion {
        let address = self.host.and_then(|host| host.address.as_ref()?.parse::<std::net::IpAddr>().ok());
        match address {
            Some(address) if !address.to_canonical().is_ipv4() => IpVersion::V6,
            _ => IpVersion::V4,
        }
    }

    /// Bytes that a packet is counted with before its payload. Loopback counts after it has removed the Ethernet header
    /// (linux, drivers/net/loopback.c, `loopback_xmit`).
    fn header(&self, headers: Headers) -> u64 {
        let loopback =
            self.host.and_then(|host| host.link.as_ref()).map(|link| link.kind) == Some(LinkKind::Loopback);
        let link = if loopback { 0.0 } else { ETHERNET_HEADER_BYTES };
        (link + headers.total_bytes()) as u64
    }

    /// Traffic that the phase and its control connection explain in one direction of the interface; `None` if a
    /// flow's counts are unknown.
    pub(super) fn load(&self, heading: Heading, flow: &FlowRecord) -> Option<DirectionLoad> {
        let header = |headers: Headers| self.header(headers);
        let parts: Option<Vec<LoadPart>> =
            self.flows.iter().map(|(flow, side)| self.part(flow, *side, heading)).collect();
        let mut parts = parts?;
        let control = self.last().and_then(|tally| tally.kernel.as_ref()?.control.as_ref());
        if let Some(counts) = control {
            parts.push(LoadPart::bare(counts, heading, header(Headers::tcp(self.ip(), true))));
        }
        let streams: u64 = self.flows.iter().map(|(flow, _)| u64::from(flow.plan.streams)).sum();
        let probes = flow.loaded.as_ref().map(|report| Probes {
            sent: report.sent,
            lost: report.lost,
            frame: PROBE_BYTES + header(probe_headers(report.transport, self.ip())),
        });
        Some(DirectionLoad {
            parts,
            probes,
            others: self.others(heading, header(Headers::udp(self.ip()))),
            streams,
        })
    }

    fn part(&self, flow: &FlowRecord, side: Side, heading: Heading) -> Option<LoadPart> {
        let (own, other) = (flow.tally(side)?, flow.tally(side.other()));
        let header = self.header(headers(flow, self.ip()));
        if flow.plan.transport == Transport::Udp {
            let datagrams = DatagramPackets::of(flow, header, self.ip());
            return datagrams.part(own, other, side, heading);
        }
        let counts = own.kernel.as_ref()?.socket.as_ref()?;
        let peer = other.and_then(|tally| tally.kernel.as_ref()?.socket.as_ref());
        let segment = segment(flow);
        Some(match heading {
            Heading::Out => LoadPart {
                payload: sent(counts, own),
                segments: sent_segments(counts, own, segment),
                bare: counts.bare_segments_out(),
                header,
                segment,
            },
            Heading::In => LoadPart {
                payload: received(counts, peer, segment),
                segments: came(counts, peer, segment),
                bare: counts.bare_segments_in(),
                header,
                segment,
            },
        })
    }

    /// Other traffic before the load, without the probes of that time, extrapolated to the duration of the
    /// phase.
    fn others(&self, heading: Heading, header: u64) -> Option<Others> {
        let interface = self.interface()?;
        let idle = interface.idle.filter(|idle| idle.duration.as_ns() > 0)?;
        let bytes = if heading == Heading::Out { idle.sent_bytes } else { idle.received_bytes };
        let idle_bytes = bytes.get().saturating_sub(self.probed_idle.saturating_mul(PROBE_BYTES + header));
        let times = interface.duration.as_secs_f64() / idle.duration.as_secs_f64();
        Some(Others { bytes: (idle_bytes as f64 * times * UNEVEN_FACTOR) as u64 })
    }
}

fn probe_headers(over: ProbeTransport, ip: IpVersion) -> Headers {
    match over {
        ProbeTransport::Udp => Headers::udp(ip),
        ProbeTransport::Tcp => Headers::tcp(ip, true),
    }
}

fn headers(flow: &FlowRecord, ip: IpVersion) -> Headers {
    if flow.plan.transport == Transport::Udp {
        return Headers::udp(ip);
    }
    let known = [&flow.sender_settings, &flow.receiver_settings].into_iter().flatten();
    let mut options = known.filter(|settings| !settings.tcp_options.is_empty());
    let stamped = options.next().is_none_or(|s| s.tcp_options.iter().any(|name| name == "timestamps"));
    Headers::tcp(ip, stamped)
}

fn segment(flow: &FlowRecord) -> u64 {
    let settings = flow.sender_settings.as_ref();
    settings.and_then(|settings| settings.mss.effective).map_or(65_535, u64::from)
}

/// Largest payload that TCP passes down at once. A super-packet is dropped as a whole (linux/netdevice.h,
/// GSO_LEGACY_MAX_SIZE).
pub(super) const MAX_BUNDLE: u64 = 65_536;

/// Packets that this host dropped before they left it; a super-packet counts once.
pub(super) fn thrown(own: &Tally) -> u64 {
    let interface = own.kernel.as_ref().and_then(|kernel| kernel.interface.as_ref());
    interface.map_or(0, |interface| {
        let qdisc = interface.qdisc.as_ref().map_or(0, |qdisc| qdisc.dropped);
        interface.sent.dropped.saturating_add(qdisc)
    })
}

/// Bytes sent. If the host dropped packets, only acknowledged bytes certainly passed. TCP counts a segment as
/// sent before its own queue rejects it, and again when it leaves: as new data, not as a retransmission
/// (net/ipv4/tcp_output.c, `__tcp_transmit_skb`).
fn sent(counts: &SocketCounts, own: &Tally) -> CountRange {
    let most = counts.sent_bytes.get();
    let least = if thrown(own) > 0 { most.min(counts.acked_bytes.get()) } else { most };
    CountRange { least, most }
}

/// Segments that left, like [`sent`].
fn sent_segments(counts: &SocketCounts, own: &Tally, segment: u64) -> CountRange {
    let most = counts.data_segments_out;
    let least = if thrown(own) > 0 { most.min(counts.acked_bytes.get() / segment.max(1)) } else { most };
    CountRange { least, most }
}

/// Segments received. A super-packet that a program passed to the kernel (TAP) counts as one at the receiver.
/// So the number is at least what the payload needs, and at most what was sent.
fn came(counts: &SocketCounts, peer: Option<&SocketCounts>, segment: u64) -> CountRange {
    let filled = counts.received_bytes.get() / segment.max(1);
    let least = counts.data_segments_in.max(filled);
    CountRange { least, most: peer.map_or(least, |peer| peer.data_segments_out.max(least)) }
}

/// Bytes received in order; at most also those that were retransmitted or duplicated on the path.
fn received(counts: &SocketCounts, peer: Option<&SocketCounts>, segment: u64) -> CountRange {
    let least = counts.received_bytes.get();
    let again = peer.map_or(0, |peer| {
        let doubled = counts.data_segments_in.saturating_sub(peer.data_segments_out);
        peer.retransmitted_bytes.get().saturating_add(doubled.saturating_mul(segment))
    });
    CountRange { least, most: least.saturating_add(again) }
}

/// The packets of a flow's datagrams.
struct DatagramPackets {
    /// Packets of each datagram.
    packets: u64,
    /// Bytes of a packet before its part of the datagram, and before its payload if it is the only one.
    header: u64,
    /// Bytes of each datagram that are neither payload nor in `header`: its UDP header, if it is cut.
    apart: u64,
}

impl DatagramPackets {
    fn of(flow: &FlowRecord, header: u64, ip: IpVersion) -> Self {
        let whole = Self { packets: 1, header, apart: 0 };
        let Some(settings) = flow.sender_settings.as_ref() else { return whole };
        let Some(mtu) = settings.pmtu.filter(|_| settings.length.get() > 0) else { return whole };
        let data = settings.length.get() as f64 + UDP_HEADER_BYTES;
        match framing::fragments(data, f64::from(mtu), ip, 0.0) {
            Some(cut) if cut.full > 0.0 => {
                let more = cut.header_bytes - Headers::udp(ip).total_bytes();
                Self {
                    packets: cut.packets() as u64,
                    header: header.saturating_add_signed(more as i64),
                    apart: UDP_HEADER_BYTES as u64,
                }
            }
            _ => whole,
        }
    }

    fn part(&self, own: &Tally, other: Option<&Tally>, side: Side, heading: Heading) -> Option<LoadPart> {
        let header = self.header;
        let passes = (side == Side::Sender) == (heading == Heading::Out);
        if !passes {
            return Some(LoadPart { header, ..LoadPart::default() });
        }
        let udp = own.udp.as_ref()?;
        let bytes = own.total_bytes.get();
        let (most, datagrams) = match other.filter(|_| side == Side::Receiver) {
            // What this host dropped had arrived. Of a datagram that was cut, some packets may have.
            Some(sent) => {
                let came = udp.packets.saturating_add(udp.socket_drops.unwrap_or_default());
                let cut = sent.udp.as_ref().filter(|_| self.packets > 1).map_or(0, |udp| udp.packets);
                (sent.total_bytes.get().max(bytes), came.max(cut))
            }
            None => (bytes, udp.packets),
        };
        let segment = bytes / udp.packets.saturating_mul(self.packets).max(1);
        // If the sender's own queue dropped datagrams, only those that arrived certainly left.
        let arrived = other.filter(|_| side == Side::Sender && thrown(own) > 0);
        let (least, fewest) = arrived.map_or((bytes, datagrams), |other| {
            let packets = other.udp.as_ref().map_or(0, |udp| udp.packets.saturating_sub(udp.duplicates));
            (bytes.min(other.total_bytes.get()), datagrams.min(packets))
        });
        let with_apart =
            |bytes: u64, datagrams: u64| bytes.saturating_add(datagrams.saturating_mul(self.apart));
        let packets = |datagrams: u64| datagrams.saturating_mul(self.packets);
        let payload = CountRange { least: with_apart(least, fewest), most: with_apart(most, datagrams) };
        let segments = CountRange { least: packets(fewest), most: packets(datagrams) };
        Some(LoadPart { payload, segments, bare: 0, header, segment })
    }
}

/// Counts of a port.
pub(super) struct PortByteCounts {
    /// Bytes sent.
    pub(super) bytes: u64,
    /// Packets dropped.
    pub(super) dropped: u64,
    /// Largest number of bytes in one interval. They may be missing if the last interval was not over when the
    /// port was read.
    pub(super) interval: u64,
}

/// Sums over the port's intervals.
pub(super) fn port_counts(port: &PortRecord) -> PortByteCounts {
    let readings = || port.samples.iter().map(|sample| &sample.readings);
    let bytes = || readings().filter_map(|found| found.get(port::BYTES)).map(Bytes::get);
    let dropped = readings().filter_map(|found| found.get(port::DROPPED));
    PortByteCounts {
        bytes: bytes().fold(0, u64::saturating_add),
        dropped: dropped.fold(0, u64::saturating_add),
        interval: bytes().max().unwrap_or_default(),
    }
}
