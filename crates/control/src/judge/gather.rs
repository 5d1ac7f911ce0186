//! The evidence of one flow, gathered from the records of both ends.

mod connection;
mod path;

use linerate_model::flow::FlowId;
use linerate_model::metrics::{Metric, MetricType, host, loss};
use linerate_model::{
    CaveatKind, Direction, FlowRecord, HostInfo, RunRecord, Sample, Side, Tally, TestFile, TestSpec,
    Transport,
};
use linerate_proto::native::DATAGRAM_BYTES;
use linerate_theory::evidence::{
    BrowserEvidence, DatagramEvidence, Evidence, FlowTransport, HostEvidence, RequestedRates, ResultEvidence,
    Timing,
};
use linerate_theory::framing::Headers;
use linerate_theory::stats::loss::loss_dispersion;
use linerate_theory::stats::order::median;
use linerate_theory::stats::series::mean;
use linerate_units::{Bitrate, Bytes, Span};

use super::{intervals, steady_intervals};

/// Number of streams whose TCP state is sampled; sums in samples cover at most this number.
const SAMPLED_STREAMS: u32 = 64;

/// A thread that uses this share of a core is saturated.
const FULL_CORE_SHARE: f64 = 0.95;

/// The evidence of a flow; absent if the receiver reported nothing.
#[must_use]
pub fn evidence(record: &RunRecord, number: FlowId) -> Option<Evidence> {
    let flow = record.flow(number)?;
    flow.receiver.as_ref()?;
    let (sender, receiver) = record.ends(flow);
    let view =
        FlowView { record, flow, sender, receiver, streams: flow.plan.streams.clamp(1, SAMPLED_STREAMS) };
    Some(Evidence {
        transport: if flow.plan.transport == Transport::Udp {
            FlowTransport::Udp
        } else {
            FlowTransport::Tcp
        },
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
        browser: view.browser(),
        timing: view.timing(),
    })
}

/// The evidence of the reverse direction: that of the flow, but with the receiver's own queue instead of the
/// sender's.
pub(super) fn evidence_back(record: &RunRecord, number: FlowId) -> Option<Evidence> {
    let there = evidence(record, number)?;
    let flow = record.flow(number)?;
    let (sender, receiver) = record.ends(flow);
    let view = FlowView { record, flow, sender, receiver, streams: 1 };
    Some(Evidence { own_queue: view.own_queue(Side::Receiver), ..there })
}

struct FlowView<'a> {
    record: &'a RunRecord,
    flow: &'a FlowRecord,
    sender: Option<&'a HostInfo>,
    receiver: Option<&'a HostInfo>,
    streams: u32,
}

/// A value as a plain number in SI units.
trait PlainNumber: MetricType {
    fn plain(self) -> f64;
}

impl PlainNumber for u64 {
    fn plain(self) -> f64 {
        self as f64
    }
}

impl PlainNumber for Bytes {
    fn plain(self) -> f64 {
        self.get() as f64
    }
}

impl PlainNumber for Span {
    fn plain(self) -> f64 {
        self.as_secs_f64()
    }
}

impl PlainNumber for Bitrate {
    fn plain(self) -> f64 {
        self.bps()
    }
}

impl PlainNumber for linerate_units::Ratio {
    fn plain(self) -> f64 {
        self.get()
    }
}

impl FlowView<'_> {
    /// Samples of a side in the measured part.
    fn inside(&self, side: Side) -> impl Iterator<Item = &Sample> {
        self.flow.measured_samples_of(side)
    }

    fn browser(&self) -> Option<BrowserEvidence> {
        let note = self.flow.browser.as_ref()?;
        Some(BrowserEvidence {
            receives: self.flow.plan.direction == Direction::Download,
            starved_share: note.starved_share.map(PlainNumber::plain),
            longest_lag_s: note.longest_lag.map(PlainNumber::plain),
            hidden: note.hidden,
        })
    }

    fn series<Q: PlainNumber>(&self, side: Side, metric: Metric<Q>) -> Vec<f64> {
        self.inside(side).filter_map(|sample| sample.readings.get(metric)).map(PlainNumber::plain).collect()
    }

    fn median<Q: PlainNumber>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        median(&self.series(side, metric))
    }

    fn sum<Q: PlainNumber>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        let series = self.series(side, metric);
        (!series.is_empty()).then(|| series.iter().sum())
    }

    /// The sum since the first byte, including the omitted part and the drain.
    fn sum_ever<Q: PlainNumber>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        let samples = self.flow.samples_of(side);
        samples.filter_map(|sample| sample.readings.get(metric)).map(PlainNumber::plain).reduce(|a, b| a + b)
    }

    fn max<Q: PlainNumber>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
        self.series(side, metric).into_iter().reduce(f64::max)
    }

    fn min<Q: PlainNumber>(&self, side: Side, metric: Metric<Q>) -> Option<f64> {
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

    fn outcome(&self) -> ResultEvidence {
        let all = intervals(self.flow);
        let (ramp, steady) = steady_intervals(self.flow);
        let interval_s = self.inside(Side::Receiver).map(|s| s.span().as_secs_f64()).reduce(f64::max);
        let spec = self.record.start.as_ref().map(|start| &start.spec);
        let timed = spec.is_some_and(TestSpec::is_timed);
        let receiver = self.tally(Side::Receiver);
        let mean =
            |rates: &[f64]| (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
        let steady_mean = mean(&steady).filter(|_| steady.len() >= super::MIN_STEADY_INTERVALS);
        ResultEvidence {
            // The rate of the steady part is comparable with a ceiling. It lasts from read to read: the mean of the
            // intervals has all of the first block, which at a low rate is much. Without a steady part, it is the rate of
            // the whole flow.
            goodput_bps: super::steady(self.flow)
                .map(|steady| steady.bitrate.bps())
                .or_else(|| receiver.map(|tally| tally.bitrate.bps())),
            uncertainty_bps: self
                .flow
                .uncertainty
                .as_ref()
                .map(|known| known.expanded_bps.bps() + known.overhead_bps.map_or(0.0, Bitrate::bps)),
            whole_bps: receiver.and_then(|tally| self.whole_bps(tally)),
            counted_by: None,
            measured_s: self.measured_s(interval_s.map(|interval| interval * steady.len() as f64)),
            asked_s: spec.filter(|_| timed).map(|spec| spec.traffic.measured().as_secs_f64()),
            ramp_s: interval_s.map(|interval| interval * ramp as f64),
            omitted_s: spec.and_then(|spec| spec.traffic.omit).map(Span::as_secs_f64),
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

    /// The file that a side sends or writes.
    fn file(&self, side: Side) -> Option<&TestFile> {
        let settings = match side {
            Side::Sender => &self.flow.sender_settings,
            Side::Receiver => &self.flow.receiver_settings,
        };
        settings.as_ref()?.file.as_ref()
    }

    fn peer_is_foreign(&self) -> bool {
        self.record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ForeignPeer)
    }

    fn asked(&self) -> RequestedRates {
        let Some(start) = &self.record.start else { return RequestedRates::default() };
        let traffic = &start.spec.traffic;
        let streams = f64::from(self.flow.plan.streams);
        let all = |rate: Option<Bitrate>| rate.map(|rate| rate.bps() * streams);
        RequestedRates {
            offered_bps: all(traffic.offered()),
            to_a_group: traffic.multicast.is_some(),
            read_bps: all(traffic.read_rate),
            // The rules need this limit per connection, as the kernel applies it.
            max_pacing_bps: traffic.fq_rate.map(Bitrate::bps),
            from_memory: !self.peer_is_foreign()
                && self.tally(Side::Sender).is_some()
                && self.file(Side::Sender).is_none(),
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

    fn host(&self, side: Side, info: Option<&HostInfo>) -> HostEvidence {
        let thread = self.series(side, host::THREAD_CPU);
        let span = self.span_s(side);
        let per_second = |count: Option<f64>| count.filter(|_| span > 0.0).map(|count| count / span);
        let drops = [host::INTERFACE_DROPS, host::LOCAL_RETRANSMITS].map(|metric| self.sum(side, metric));
        let counted = drops.into_iter().flatten().reduce(|a, b| a + b);
        // Drops of the root qdisc may be included, because the kernel reports them to the connection.
        let queue = (side == Side::Sender).then(|| self.own_queue(side)?.dropped).flatten();
        HostEvidence {
            disk_bps: self.file(side).and_then(|file| file.alone_bps).map(Bitrate::bps),
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
            quota_throttled_share: self.median(side, host::QUOTA_THROTTLED),
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

    fn udp(&self) -> DatagramEvidence {
        let sent = self.tally(Side::Sender).and_then(|tally| tally.udp.as_ref());
        let got = self.tally(Side::Receiver).and_then(|tally| tally.udp.as_ref());
        DatagramEvidence {
            lost: got.map(|udp| udp.lost as f64),
            packets: sent.map(|udp| udp.packets as f64),
            buffer_drops: got.and_then(|udp| udp.socket_drops).map(|drops| drops as f64),
            dispersion: loss_dispersion(&self.datagrams_of_intervals()),
        }
    }

    /// Datagrams received and lost in each interval.
    fn datagrams_of_intervals(&self) -> Vec<(f64, f64)> {
        let of = |sample: &Sample| {
            let (received, lost) = (sample.readings.get(loss::PACKETS)?, sample.readings.get(loss::LOST)?);
            Some((received.plain(), lost.plain()))
        };
        self.inside(Side::Receiver).filter_map(of).collect()
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
