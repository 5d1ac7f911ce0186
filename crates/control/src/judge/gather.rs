//! The evidence of one flow, gathered from the records of both ends.

use linerate_model::metrics::{Metric, Quantity, host, port, queue, tcp};
use linerate_model::{
    CaveatKind, Direction, FlowRecord, HostInfo, LatencyReport, LinkInfo, LinkKind, PortRecord, RunRecord,
    Sample, Side, Tally, Transport,
};
use linerate_proto::native::DATAGRAM_BYTES;
use linerate_theory::evidence::{
    Asked, Datagrams, Evidence, Host, Link, LinkSource, Outcome, OwnQueue, Port, RoundTrip, Tcp, Timing,
    Transport as Carrier, Windows,
};
use linerate_theory::framing::{Headers, IpVersion};
use linerate_theory::stats::order::{median, percentile};
use linerate_theory::stats::series::mean;
use linerate_units::{Bitrate, Bytes, Span};

use super::{intervals, steady_intervals};

/// Number of streams whose TCP state is sampled; sums in samples cover at most this number.
const SAMPLED_STREAMS: u32 = 64;

/// Fewest returned segments from which a loss ratio is computed.
const MIN_RETURNED_SEGMENTS: f64 = 50.0;

/// A thread that uses this share of a core is saturated.
const FULL_CORE_SHARE: f64 = 0.95;

/// The evidence of a flow; absent if the receiver reported nothing.
#[must_use]
pub fn evidence(record: &RunRecord, number: u16) -> Option<Evidence> {
    let flow = record.flow(number)?;
    flow.receiver.as_ref()?;
    let (sender, receiver) = record.ends(flow);
    let view = View { record, flow, sender, receiver, streams: flow.plan.streams.clamp(1, SAMPLED_STREAMS) };
    Some(Evidence {
        transport: if flow.plan.transport == Transport::Udp { Carrier::Udp } else { Carrier::Tcp },
        outcome: view.outcome(),
        link: view.link(),
        rtt: view.rtt(),
        tcp: view.tcp(),
        windows: view.windows(),
        asked: view.asked(),
        sender: view.host(Side::Sender, sender),
        receiver: view.host(Side::Receiver, receiver),
        own_queue: view.own_queue(Side::Sender),
        udp: view.udp(),
        ports: view.ports(),
        timing: view.timing(),
    })
}

/// The evidence of the reverse direction: that of the flow, but with the receiver's own queue instead of the
/// sender's.
pub(super) fn evidence_back(record: &RunRecord, number: u16) -> Option<Evidence> {
    let there = evidence(record, number)?;
    let flow = record.flow(number)?;
    let (sender, receiver) = record.ends(flow);
    let view = View { record, flow, sender, receiver, streams: 1 };
    Some(Evidence { own_queue: view.own_queue(Side::Receiver), ..there })
}

struct View<'a> {
    record: &'a RunRecord,
    flow: &'a FlowRecord,
    sender: Option<&'a HostInfo>,
    receiver: Option<&'a HostInfo>,
    streams: u32,
}

/// A value as a plain number in SI units.
trait Plain: Quantity {
    fn plain(self) -> f64;
}

impl Plain for u64 {
    fn plain(self) -> f64 {
        self as f64
    }
}

impl Plain for Bytes {
    fn plain(self) -> f64 {
        self.get() as f64
    }
}

impl Plain for Span {
    fn plain(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Plain for Bitrate {
    fn plain(self) -> f64 {
        self.bps()
    }
}

impl Plain for linerate_units::Ratio {
    fn plain(self) -> f64 {
        self.get()
    }
}

impl View<'_> {
    /// Samples of a side in the measured part.
    fn inside(&self, side: Side) -> impl Iterator<Item = &Sample> {
        self.flow.measured_samples_of(side)
    }

    fn series<Q: Plain>(&self, side: Side, metric: Metric<Q>) -> Vec<f64> {
        self.inside(side).filter_map(|sample| sample.readings.get(metric)).map(Plain::plain).collect()
    }

    fn median<Q: Plain>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        median(&self.series(side, metric))
    }

    fn sum<Q: Plain>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        let series = self.series(side, metric);
        (!series.is_empty()).then(|| series.iter().sum())
    }

    /// The sum since the first byte, including the omitted part and the drain.
    fn sum_ever<Q: Plain>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        let samples = self.flow.samples_of(side);
        samples.filter_map(|sample| sample.readings.get(metric)).map(Plain::plain).reduce(|a, b| a + b)
    }

    fn max<Q: Plain>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        self.series(side, metric).into_iter().reduce(f64::max)
    }

    fn min<Q: Plain>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        self.series(side, metric).into_iter().reduce(f64::min)
    }

    /// The mean per stream of a sum over streams.
    fn each(&self, sum: Option<f64>) -> Option<f64> {
        sum.map(|sum| sum / f64::from(self.streams))
    }

    fn tally(&self, side: Side) -> Option<&Tally> {
        self.flow.tally(side)
    }

    fn span_s(&self, side: Side) -> f64 {
        self.inside(side).map(|sample| sample.span().as_secs_f64()).sum()
    }

    fn outcome(&self) -> Outcome {
        let all = intervals(self.flow);
        let (ramp, steady) = steady_intervals(self.flow);
        let interval_s = self.inside(Side::Receiver).map(|s| s.span().as_secs_f64()).reduce(f64::max);
        let spec = self.record.start.as_ref().map(|start| &start.spec.traffic);
        let timed = spec.is_some_and(|traffic| traffic.bytes.is_none() && traffic.blocks.is_none());
        let receiver = self.tally(Side::Receiver);
        let mean =
            |rates: &[f64]| (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
        let steady_mean = mean(&steady).filter(|_| steady.len() >= super::MIN_STEADY_INTERVALS);
        Outcome {
            // The steady mean is comparable with a ceiling. Without a steady part, the mean of the whole flow
            // is used.
            goodput_bps: steady_mean.or_else(|| receiver.map(|tally| tally.bitrate.bps())),
            uncertainty_bps: self
                .flow
                .uncertainty
                .as_ref()
                .map(|known| known.expanded_bps.bps() + known.overhead_bps.map_or(0.0, Bitrate::bps)),
            whole_bps: receiver.and_then(|tally| self.whole_bps(tally)),
            counted_by: None,
            measured_s: self.measured_s(interval_s.map(|interval| interval * steady.len() as f64)),
            asked_s: spec.filter(|_| timed).map(|traffic| traffic.measured().as_secs_f64()),
            ramp_s: interval_s.map(|interval| interval * ramp as f64),
            omitted_s: spec.and_then(|traffic| traffic.omit).map(Span::as_secs_f64),
            streams: Some(self.flow.plan.streams),
            last_over_previous: last_over_previous(&all, self.round_trip_intervals(interval_s)),
            early_over_steady: steady_mean
                .and_then(|steady| Some(all.first()? / steady))
                .filter(|r| r.is_finite()),
            intervals_bps: steady,
            interval_s,
            written_bytes: self.flow.byte_accounting.map(|bytes| bytes.written_bytes.plain()),
            delivered_bytes: self.flow.byte_accounting.map(|bytes| bytes.delivered_bytes.plain()),
            never_sent_bytes: self.flow.byte_accounting.map(|bytes| bytes.never_sent_bytes.plain()),
            // A foreign tool ends when its client says so, so the bytes in transit at that time are not
            // unaccounted.
            unaccounted_bytes: self
                .flow
                .byte_accounting
                .filter(|_| !self.peer_is_foreign())
                .map(|bytes| bytes.unaccounted_bytes.plain()),
            stream_bytes: receiver
                .map(|tally| tally.streams.iter().map(|stream| stream.bytes.plain()).collect())
                .unwrap_or_default(),
        }
    }

    /// The printed rate minus one read per stream: no more than that can have waited for the program.
    fn whole_bps(&self, tally: &Tally) -> Option<f64> {
        let read = self.flow.receiver_settings.as_ref().map_or(0, |settings| settings.length.get());
        let waited = read.saturating_mul(u64::from(self.flow.plan.streams));
        let bytes = Bytes::new(tally.bytes.get().saturating_sub(waited));
        Bitrate::of(bytes, tally.elapsed).map(Bitrate::bps)
    }

    /// Number of intervals per round trip: within one round trip a window leaves as a burst.
    fn round_trip_intervals(&self, interval_s: Option<f64>) -> usize {
        let intervals = self.rtt().min_s.zip(interval_s).map(|(rtt, interval)| (rtt / interval).ceil());
        intervals
            .filter(|intervals| (1.0..=100.0).contains(intervals))
            .map_or(1, |intervals| intervals as usize)
    }

    /// The duration of the measurement: the steady part, but at most the time between the first and the last
    /// read. A single block has no rate.
    fn measured_s(&self, steady_s: Option<f64>) -> Option<f64> {
        let between_reads = self.tally(Side::Receiver).map(|tally| tally.elapsed.as_secs_f64());
        match (steady_s.filter(|steady| *steady > 0.0), between_reads) {
            (Some(steady), Some(reads)) => Some(steady.min(reads)),
            (steady, reads) => steady.or(reads),
        }
    }

    fn peer_is_foreign(&self) -> bool {
        self.record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ForeignPeer)
    }

    fn link(&self) -> Link {
        let given = self.record.start.as_ref().and_then(|start| start.spec.host.link);
        let own = self.sender.and_then(|host| host.link.as_ref());
        let peer = self.receiver.and_then(|host| host.link.as_ref());
        let rate = |link: Option<&LinkInfo>| link.and_then(|link| link.speed).map(Bitrate::bps);
        let settings = self.flow.sender_settings.as_ref();
        let has = |option: &str| settings.map(|s| s.tcp_options.iter().any(|name| name == option));
        let known_options = settings.is_some_and(|s| !s.tcp_options.is_empty());
        let mtus = [own.map(|link| link.mtu), peer.map(|link| link.mtu), settings.and_then(|s| s.pmtu)];
        let udp = self.flow.plan.transport == Transport::Udp;
        Link {
            link_bps: given.map(Bitrate::bps).or_else(|| rate(own)),
            source: given.map(|_| LinkSource::User).or_else(|| rate(own).map(|_| LinkSource::Interface)),
            is_virtual: [own, peer]
                .into_iter()
                .flatten()
                .any(|link| link.speed.is_none() && is_made_up(link.kind)),
            is_loopback: [own, peer]
                .iter()
                .all(|link| link.is_some_and(|link| link.kind == LinkKind::Loopback)),
            peer_link_bps: rate(peer).filter(|_| given.is_none()),
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

    fn ip_version(&self) -> Option<IpVersion> {
        let address: std::net::IpAddr = self.sender?.address.as_ref()?.parse().ok()?;
        Some(if address.to_canonical().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 })
    }

    fn rtt(&self) -> RoundTrip {
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
    fn one_way_rise_s(&self, way: Direction) -> Option<f64> {
        let upload = (way == Direction::Upload) == (self.flow.plan.direction == Direction::Upload);
        let median = |report: &LatencyReport| {
            let digest = if upload { report.upload } else { report.download };
            digest.map(|digest| digest.p50_ns as f64 / 1e9)
        };
        Some(median(self.flow.loaded.as_ref()?)? - median(self.record.idle.as_ref()?)?)
    }

    /// The root qdisc of one end's interface; absent if the flow did not pass through it.
    fn own_queue(&self, side: Side) -> Option<OwnQueue> {
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
            rate_bps: queue.rate_bps.map(Plain::plain),
            burst_bytes: queue.burst_bytes.map(Plain::plain),
            may_count_packets: matches!(kind, Some(LinkKind::Tun | LinkKind::Virtual)),
            dropped: Some(queue.dropped.plain()),
        })
    }

    /// Share of the segments sent by the receiver that did not reach the sender.
    fn return_lost_share(&self) -> Option<f64> {
        let socket = |side| self.tally(side)?.kernel.as_ref()?.socket;
        let (sender, receiver) = (socket(Side::Sender)?, socket(Side::Receiver)?);
        let (sent, came) = (receiver.segments_out as f64, sender.segments_in as f64);
        (sent >= MIN_RETURNED_SEGMENTS).then(|| (1.0 - came / sent).max(0.0))
    }

    fn tcp(&self) -> Tcp {
        if self.flow.plan.transport == Transport::Udp {
            return Tcp::default();
        }
        let span = self.span_s(Side::Sender);
        let busy = self.sum(Side::Sender, tcp::BUSY);
        let share = |part: Metric<Span>| self.share_of_busy(part);
        let limited = self.series(Side::Sender, tcp::APP_LIMITED);
        let cwnd = self.series(Side::Sender, tcp::CWND);
        let hystart_exits = self.sum_ever(Side::Sender, host::HYSTART_EXITS);
        let ends: Vec<&Sample> = self.inside(Side::Sender).collect();
        let threshold = ends.last().map(|sample| sample.readings.get(tcp::SSTHRESH).is_none());
        Tcp {
            congestion: self
                .flow
                .sender_settings
                .as_ref()
                .and_then(|s| s.congestion.effective.clone())
                .map(Into::into),
            busy_share: busy.filter(|_| span > 0.0).map(|busy| (busy / span).min(1.0)),
            receiver_window_share: share(tcp::RWND_LIMITED),
            send_buffer_share: share(tcp::SNDBUF_LIMITED),
            app_limited_share: (!limited.is_empty())
                .then(|| limited.iter().sum::<f64>() / limited.len() as f64),
            not_sent_bytes: self.each(self.median(Side::Sender, tcp::NOTSENT)),
            unacked_bytes: self.each(self.median(Side::Sender, tcp::UNACKED)),
            cwnd_bytes: self.each(median(&cwnd)),
            cwnd_last_bytes: self.each(cwnd.last().copied()),
            cwnd_growth_per_s: growth_per_s(&cwnd, span),
            ssthresh_infinite: threshold,
            retransmits: self.sum(Side::Sender, tcp::RETRANSMITS),
            segments_sent: self.sum(Side::Sender, tcp::SEGMENTS),
            duplicate_acks: self.sum(Side::Sender, tcp::DSACK_DUPS),
            timeouts: self.sum(Side::Sender, tcp::TIMEOUTS),
            timeout_s: self.sum(Side::Sender, tcp::TIMEOUT_TIME),
            delivered_marked: self.sum(Side::Sender, tcp::DELIVERED_CE),
            delivered: self.sum(Side::Sender, tcp::DELIVERED),
            acked_bytes: self.sum_ever(Side::Sender, tcp::BYTES_ACKED),
            reordered: self.sum(Side::Sender, tcp::REORDERED),
            out_of_order: self.sum(Side::Receiver, tcp::OUT_OF_ORDER),
            window_undone: self.sum(Side::Sender, host::WINDOW_UNDONE),
            return_pps: self.returned().map(|(pps, _)| pps),
            return_lost_share: self.return_lost_share(),
            return_per_segment: self.returned().map(|(_, each)| each),
            hystart_exits,
            hystart_window_bytes: self.hystart_window_bytes(hystart_exits),
            mss_first_bytes: self.series(Side::Sender, tcp::SND_MSS).first().copied(),
            mtu_probes: self.sum_ever(Side::Sender, host::MTU_PROBES),
            pacing_rate_bps: self.median(Side::Sender, tcp::PACING_RATE),
        }
    }

    /// Share of the busy time in which the sender was limited in this way. The ramp is left out if enough
    /// intervals remain: rules compare the share with the steady rate, and the growth of the window while a
    /// token bucket empties does not affect that.
    fn share_of_busy(&self, part: Metric<Span>) -> Option<f64> {
        let (ramp, steady) = steady_intervals(self.flow);
        let ramp = if steady.len() >= super::MIN_STEADY_INTERVALS { ramp } else { 0 };
        let sum = |metric: Metric<Span>| {
            let values =
                self.inside(Side::Sender).skip(ramp).filter_map(|sample| sample.readings.get(metric));
            values.map(Plain::plain).reduce(|a, b| a + b)
        };
        let busy = sum(tcp::BUSY).filter(|busy| *busy > 0.0)?;
        Some(sum(part)? / busy).map(|share| share.clamp(0.0, 1.0))
    }

    /// Returned segments without payload, per second and per segment sent, over the whole flow.
    fn returned(&self) -> Option<(f64, f64)> {
        let tally = self.tally(Side::Sender)?;
        let socket = tally.kernel.as_ref()?.socket.as_ref()?;
        let (bare, segments) = (socket.bare_segments_in() as f64, socket.data_segments_out as f64);
        let seconds = tally.elapsed.as_secs_f64();
        (seconds > 0.0 && segments > 0.0).then(|| (bare / seconds, bare / segments))
    }

    /// Mean window at which HyStart ended slow start.
    fn hystart_window_bytes(&self, exits: Option<f64>) -> Option<f64> {
        let segments = self.sum_ever(Side::Sender, host::HYSTART_SEGMENTS)?;
        Some(segments / exits.filter(|exits| *exits > 0.0)? * self.max(Side::Sender, tcp::SND_MSS)?)
    }

    fn windows(&self) -> Windows {
        if self.flow.plan.transport == Transport::Udp {
            return Windows::default();
        }
        let asked = self.record.start.as_ref().and_then(|start| start.spec.socket.window).map(Plain::plain);
        let limit = |host: Option<&HostInfo>, name: &str| {
            host.and_then(|host| host.buffer_limit(name)).map(Plain::plain)
        };
        Windows {
            offered_min_bytes: self.each(self.min(Side::Sender, tcp::SND_WND)),
            offered_median_bytes: self.each(self.median(Side::Sender, tcp::SND_WND)),
            offered_max_bytes: self.each(self.max(Side::Sender, tcp::SND_WND)),
            queue_median_share: self.median(Side::Receiver, queue::RCV_SHARE),
            queue_max_share: self.max(Side::Receiver, queue::RCV_SHARE),
            rcv_buf_asked_bytes: asked,
            rcv_buf_bytes: self.each(self.median(Side::Receiver, tcp::RCV_BUF)),
            snd_buf_asked_bytes: asked,
            snd_buf_bytes: self.each(self.median(Side::Sender, tcp::SND_BUF)),
            rmem_max_bytes: limit(self.receiver, "net.ipv4.tcp_rmem"),
            wmem_max_bytes: limit(self.sender, "net.ipv4.tcp_wmem"),
            zero_windows: self.sum(Side::Receiver, host::ZERO_WINDOWS),
            pruned: self.sum(Side::Receiver, host::RCV_PRUNED),
        }
    }

    fn asked(&self) -> Asked {
        let Some(start) = &self.record.start else { return Asked::default() };
        let traffic = &start.spec.traffic;
        let streams = f64::from(self.flow.plan.streams);
        let all = |rate: Option<Bitrate>| rate.map(|rate| rate.bps() * streams);
        Asked {
            offered_bps: all(traffic.offered()),
            read_bps: all(traffic.read_rate),
            // The rules need this limit per connection, as the kernel applies it.
            max_pacing_bps: traffic.fq_rate.map(Bitrate::bps),
            from_memory: !self.peer_is_foreign() && self.tally(Side::Sender).is_some(),
            probe_bps: self.probe_bps(),
        }
    }

    /// The rate of the probes during the load in one direction; as many go there as come back.
    fn probe_bps(&self) -> Option<f64> {
        let sent = self.flow.loaded.as_ref()?.sent as f64;
        let elapsed = self.tally(Side::Receiver)?.elapsed.as_secs_f64();
        let packet = DATAGRAM_BYTES as f64 + Headers::udp(self.ip_version()?).total_bytes();
        Some(sent * packet * 8.0 / elapsed).filter(|rate| rate.is_finite())
    }

    fn host(&self, side: Side, info: Option<&HostInfo>) -> Host {
        let thread = self.series(side, host::THREAD_CPU);
        let span = self.span_s(side);
        let per_second = |count: Option<f64>| count.filter(|_| span > 0.0).map(|count| count / span);
        let drops = [host::INTERFACE_DROPS, host::LOCAL_RETRANSMITS].map(|metric| self.sum(side, metric));
        let counted = drops.into_iter().flatten().reduce(|a, b| a + b);
        // Drops of the root qdisc may be included, because the kernel reports them to the connection.
        let queue = (side == Side::Sender).then(|| self.own_queue(side)?.dropped).flatten();
        Host {
            // Rounding of the two clocks may give slightly more than one core.
            thread_share: median(&thread).map(|share| share.min(1.0)),
            thread_wait_share: mean(&self.series(side, host::THREAD_WAIT)).map(|wait| wait.min(1.0)),
            thread_full_share: (!thread.is_empty()).then(|| {
                thread.iter().filter(|share| **share >= FULL_CORE_SHARE).count() as f64 / thread.len() as f64
            }),
            all_cores_share: self.median(side, host::BUSY),
            others_share: self.others_share(side, info),
            softirq_share: self.median(side, host::SOFTIRQ),
            steal_share: self.median(side, host::STEAL),
            softnet_dropped_per_s: per_second(self.sum(side, host::SOFTNET_DROPPED)),
            softnet_squeezed_per_s: per_second(self.sum(side, host::SOFTNET_SQUEEZED)),
            damaged_frames: self.sum(side, host::INTERFACE_ERRORS),
            collisions: self.sum(side, host::COLLISIONS),
            half_duplex: info
                .and_then(|host| host.link.as_ref()?.full_duplex)
                .map(|full_duplex| !full_duplex),
            local_drops: counted.into_iter().chain(queue).reduce(f64::max),
            copy_bps: info.and_then(|host| host.memory_copy).map(Bitrate::bps),
        }
    }

    /// Share of a host's CPU time used by other programs: the busy time minus that of this program and of
    /// softirqs.
    fn others_share(&self, side: Side, info: Option<&HostInfo>) -> Option<f64> {
        let (tally, info) = (self.tally(side)?, info?);
        let cores = f64::from(info.cores);
        let of_all = |seconds: f64| seconds / (tally.elapsed.as_secs_f64() * cores);
        let other = if side == Side::Sender { Side::Receiver } else { Side::Sender };
        // Both ends may run on one machine and then share its CPU time.
        let peer = self.record.ends(self.flow);
        let together = peer.0.zip(peer.1).is_some_and(|(a, b)| a.name == b.name);
        let peers = self.tally(other).filter(|_| together).map_or(0.0, |tally| tally.cpu_seconds);
        let softirq = self.median(side, host::SOFTIRQ).unwrap_or(0.0) / cores;
        let others = tally.host_busy?.get() - of_all(tally.cpu_seconds + peers) - softirq;
        others.is_finite().then(|| others.clamp(0.0, 1.0))
    }

    fn udp(&self) -> Datagrams {
        let sent = self.tally(Side::Sender).and_then(|tally| tally.udp.as_ref());
        let got = self.tally(Side::Receiver).and_then(|tally| tally.udp.as_ref());
        Datagrams {
            lost: got.map(|udp| udp.lost as f64),
            packets: sent.map(|udp| udp.packets as f64),
            buffer_drops: got.and_then(|udp| udp.socket_drops).map(|drops| drops as f64),
        }
    }

    /// Packets dropped by the ports of an emulated network during the measured part.
    fn ports(&self) -> Vec<Port> {
        let beside = |port: &&PortRecord| port.flows.contains(&self.flow.plan.flow);
        let counted = |port: &PortRecord| {
            let inside = port.samples.iter().filter(|sample| !sample.outside);
            let dropped: u64 = inside.filter_map(|sample| sample.readings.get(port::DROPPED)).sum();
            Port { name: port.port.to_string(), dropped: dropped as f64 }
        };
        self.record.ports.iter().filter(beside).map(counted).collect()
    }

    fn timing(&self) -> Timing {
        let late =
            [Side::Sender, Side::Receiver].into_iter().filter_map(|side| self.max(side, host::TICK_LATENESS));
        let caveat = |kind: CaveatKind| self.flow.caveats.iter().any(|caveat| caveat.kind == kind);
        Timing {
            gap_max_s: late.reduce(f64::max),
            expected_intervals: None,
            // Ticks are absolute: a missed one makes the next one late, and no interval is missing.
            seen_intervals: None,
            clock_stepped: Some(caveat(CaveatKind::ClockStepped)),
            emulator_late: Some(caveat(CaveatKind::LabLate)),
        }
    }
}

/// Whether an interface has no speed because it is not a physical line.
fn is_made_up(kind: LinkKind) -> bool {
    matches!(kind, LinkKind::Loopback | LinkKind::Veth | LinkKind::Tun | LinkKind::Bridge | LinkKind::Virtual)
}

/// Mean of the last `span` rates divided by the mean of the `span` rates before them.
fn last_over_previous(rates: &[f64], span: usize) -> Option<f64> {
    let (rest, last) = rates.split_at_checked(rates.len().checked_sub(span)?)?;
    let before = rest.get(rest.len().checked_sub(span)?..)?;
    Some(mean(last)? / mean(before)?).filter(|ratio| ratio.is_finite())
}

/// Relative growth per second over the second half of a series that spans `span_s` seconds.
fn growth_per_s(series: &[f64], span_s: f64) -> Option<f64> {
    let half = series.get(series.len() / 2..)?;
    let (first, last) = (half.first()?, half.last()?);
    let growth = (last / first - 1.0) / (span_s / 2.0);
    growth.is_finite().then_some(growth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_leave_in_bursts_are_compared_by_the_round_trip() {
        let doubling = [1.0, 0.0, 2.0, 0.0, 4.0, 0.0];
        assert_eq!(last_over_previous(&doubling, 2), Some(2.0));
        assert_eq!(last_over_previous(&doubling, 1), Some(0.0));
        assert_eq!(last_over_previous(&doubling[..3], 2), None, "less than two round trips");
        assert_eq!(last_over_previous(&[0.0, 1.0], 1), None, "nothing to compare with");
    }
}
