//! Values derived from the evidence of a flow.

use super::{Evidence, FlowTransport, LinkSource};
use crate::framing::{Headers, IpVersion, LayerBytes};
use crate::stats::{order, series, spread};
use crate::{ceilings, framing};

/// Shortest parts of the steady time over which constancy is judged, s.
const MIN_SPAN_S: f64 = 0.2;
/// Packets that may be on the wrong side of the end of such a part: a GSO burst.
const GRAIN_PACKETS: f64 = 10.0;
/// Below this correlation, neighbouring intervals compensate each other.
const COMPENSATION_CORRELATION: f64 = -0.1;
/// Variation of a sixth of the test that is accepted as noise.
const MAX_NOISE: f64 = 0.10;
/// Coverage of the interval of a rate.
const COVERAGE: f64 = 0.95;
/// Largest share of the bottleneck that is attributed to retransmissions and probes.
const MAX_OTHER_SHARE: f64 = 0.05;

impl Evidence {
    /// The relevant line rate, bit/s: the slower end's. That of a virtual interface is used only if the user
    /// stated it, and a rate that a hypervisor's NIC reports only if the flow did not exceed it.
    #[must_use]
    pub fn line_rate_bps(&self) -> Option<f64> {
        self.line_rate().map(|(rate, _)| rate)
    }

    /// Whether [`Self::line_rate_bps`] is what the NIC of a hypervisor reports.
    #[must_use]
    pub fn is_nominal_link(&self) -> bool {
        self.line_rate().is_some_and(|(_, nominal)| nominal)
    }

    fn line_rate(&self) -> Option<(f64, bool)> {
        if self.link.is_virtual && self.link.source != Some(LinkSource::User) {
            return None;
        }
        let usable = |rate: Option<f64>, nominal: bool| {
            let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0)?;
            (!nominal || !self.exceeds_link(rate)).then_some((rate, nominal))
        };
        let own = usable(self.link.link_bps, self.link.is_nominal);
        let peer = usable(self.link.peer_link_bps, self.link.peer_is_nominal);
        [own, peer].into_iter().flatten().min_by(|(one, _), (other, _)| one.total_cmp(other))
    }

    /// Whether the flow was faster than a link of this rate, bit/s, can be.
    fn exceeds_link(&self, link_bps: f64) -> bool {
        let ceiling = ceilings::link_goodput_bps(self, link_bps);
        let most = ceiling
            .and_then(|ceiling| framing::acceptable_ceiling_bps(ceiling, framing::CLOCK_TOLERANCE_PPM));
        most.zip(self.highest_bps()).is_some_and(|(most, rate)| rate > most)
    }

    /// The highest reported rate of the flow, bit/s: that of the steady part, or of the whole.
    #[must_use]
    pub fn highest_bps(&self) -> Option<f64> {
        [self.outcome.goodput_bps, self.outcome.whole_bps].into_iter().flatten().reduce(f64::max)
    }

    /// Whether the user stated the rate of the link, so that it is unknown what it counts.
    #[must_use]
    pub fn is_stated_link(&self) -> bool {
        self.link.source == Some(LinkSource::User) && self.line_rate_bps().is_some()
    }

    /// The headers of a data packet; IPv4 and timestamps unless known otherwise.
    #[must_use]
    pub fn headers(&self) -> Headers {
        let ip = self.link.ip_version.unwrap_or(IpVersion::V4);
        match self.transport {
            FlowTransport::Tcp => Headers::tcp(ip, self.link.timestamps.unwrap_or(true)),
            FlowTransport::Udp => Headers::udp(ip),
        }
    }

    /// Length of the longest packet, bytes: from the effective segment size if known, so that a clamped MSS
    /// counts.
    #[must_use]
    pub fn packet_bytes(&self) -> f64 {
        let of_segment = self.link.mss_bytes.map(|mss| mss + self.headers().total_bytes());
        let mtu = self.link.mtu_bytes.unwrap_or(1500.0);
        // A datagram longer than the MTU is fragmented; its longest packets are as long as the MTU.
        of_segment.map_or(mtu, |packet| if self.link.mtu_bytes.is_some() { packet.min(mtu) } else { packet })
    }

    /// Bytes of a full segment or datagram at each layer. `None` if a packet has no room for payload.
    ///
    /// Units: bytes. A datagram longer than a known MTU is counted with all its fragments, whose headers differ
    /// from those of as many full packets.
    #[must_use]
    pub fn layer_bytes(&self) -> Option<LayerBytes> {
        let datagram = self.link.mss_bytes.filter(|_| self.transport == FlowTransport::Udp);
        match datagram.zip(self.link.mtu_bytes) {
            Some((payload, mtu)) if payload > 0.0 => {
                let ip = self.link.ip_version.unwrap_or(IpVersion::V4);
                LayerBytes::of_datagram(payload, mtu, ip, 0.0, self.tags())
            }
            _ => LayerBytes::of_packet(self.packet_bytes(), &self.headers(), self.tags()),
        }
    }

    /// Number of 802.1Q tags, 0 if unknown.
    #[must_use]
    pub fn tags(&self) -> f64 {
        f64::from(self.link.tags.unwrap_or(0))
    }

    /// Number of connections, at least one.
    #[must_use]
    pub fn streams(&self) -> f64 {
        f64::from(self.outcome.streams.unwrap_or(1).max(1))
    }

    /// Number of connections over which the counts of [`Evidence::tcp`] are sums: at least one, and at most
    /// [`Evidence::streams`].
    #[must_use]
    pub fn sampled_streams(&self) -> f64 {
        let sampled = self.tcp.sampled_streams.map(|streams| f64::from(streams.max(1)));
        sampled.map_or(self.streams(), |sampled| sampled.min(self.streams()))
    }

    /// The RTT without a queue, s: the smallest known. If an emulated network was late under load, it may have
    /// delivered frames early to catch up. Then it is the smallest RTT before the load.
    #[must_use]
    pub fn base_rtt_s(&self) -> Option<f64> {
        let idle = [self.rtt.idle_min_s, self.rtt.idle_p50_s];
        let idle = idle.into_iter().flatten().filter(|rtt| *rtt > 0.0).reduce(f64::min);
        if let Some(idle) = idle.filter(|_| self.timing.emulator_late == Some(true)) {
            return Some(idle);
        }
        let known = [self.rtt.min_s, idle, self.rtt.mean_s];
        known.into_iter().flatten().filter(|rtt| *rtt > 0.0).reduce(f64::min)
    }

    /// Rise of the median RTT under load over the base, s.
    #[must_use]
    pub fn rtt_rise_s(&self) -> Option<f64> {
        let loaded = self.rtt.loaded_p50_s.or(self.rtt.mean_s)?;
        Some(loaded - self.base_rtt_s()?)
    }

    /// Whether there is a standing queue at the bottleneck: the RTT rose by at least half and by 1 ms. Windows
    /// and buffers are then larger than the path and only bound the queue.
    #[must_use]
    pub fn has_standing_queue(&self) -> bool {
        self.rtt_rise_s().zip(self.base_rtt_s()).is_some_and(|(rise, base)| Self::is_queue(rise, base))
    }

    /// Whether a rise of a round trip over its base, both in s, is a queue: at least half of it, and 1 ms.
    pub(crate) fn is_queue(rise_s: f64, base_s: f64) -> bool {
        rise_s >= (0.5 * base_s).max(0.001)
    }

    /// Loss ratio of the sent segments: retransmissions less the needless ones. For UDP, the lost datagrams.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let (lost, sent) = match self.transport {
            FlowTransport::Tcp => {
                let needless = self.tcp.duplicate_acks.unwrap_or(0.0);
                ((self.tcp.retransmits? - needless).max(0.0), self.tcp.segments_sent?)
            }
            FlowTransport::Udp => (self.udp.lost?, self.udp.packets?),
        };
        (sent > 0.0).then(|| lost / sent)
    }

    /// Number of datagrams sent, if not one arrived and there were enough of them that this is no chance.
    pub(crate) fn lost_altogether(&self) -> Option<f64> {
        const ENOUGH: f64 = 10.0;
        let (lost, sent) = (self.udp.lost?, self.udp.packets?);
        (self.transport == FlowTransport::Udp && sent >= ENOUGH && lost >= sent).then_some(sent)
    }

    /// Coefficient of variation of the steady intervals.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        series::coefficient_of_variation(&self.outcome.intervals_bps)
    }

    /// Whether the intervals vary by less than `limit`, or by less than a read of 64 KiB explains; `None` if
    /// unknown.
    ///
    /// Uses the robust spread, so that one interval in which a host was late does not count. But the mean must
    /// be near the median, so that rare deep dips count.
    #[must_use]
    pub fn is_constant(&self, limit: f64) -> Option<bool> {
        let intervals = &self.outcome.intervals_bps;
        let centre = order::median(intervals).filter(|median| *median > 0.0)?;
        let interval_bits = self.outcome.goodput_bps? * self.outcome.interval_s.unwrap_or(1.0);
        let limit = limit.max(65536.0 * 8.0 / interval_bits);
        let spread = spread::robust_sigma(intervals)? / centre;
        let drift = (series::mean(intervals)? / centre - 1.0).abs();
        Some(intervals.len() > 1 && spread < limit && drift < limit)
    }

    /// Like [`Evidence::is_constant`], but without the allowance for reads: intervals are merged until one read
    /// of 64 KiB is at most `limit` of them. `None` if fewer than four remain.
    #[must_use]
    pub fn is_surely_constant(&self, limit: f64) -> Option<bool> {
        let read_s = 65536.0 * 8.0 / self.outcome.goodput_bps.filter(|rate| *rate > 0.0)?;
        let each = (read_s / (limit * self.outcome.interval_s.unwrap_or(1.0))).ceil().max(1.0);
        self.is_constant_by(each as usize, limit)
    }

    /// Whether the means of `each` consecutive intervals vary by less than `limit`; `None` if fewer than four
    /// remain.
    fn is_constant_by(&self, each: usize, limit: f64) -> Option<bool> {
        let merged = self.parts_bps(self.outcome.intervals_bps.len() / each.max(1));
        if merged.len() < 4 {
            return None;
        }
        let centre = order::median(&merged).filter(|median| *median > 0.0)?;
        let drift = (series::mean(&merged)? / centre - 1.0).abs();
        Some(spread::robust_sigma(&merged)? / centre < limit && drift < limit)
    }

    /// Means of this number of parts of the steady time, all of nearly the same length.
    ///
    /// No interval is left out: the last one may contain what those before it lacked.
    fn parts_bps(&self, parts: usize) -> Vec<f64> {
        let intervals = &self.outcome.intervals_bps;
        let bound = |part: usize| part * intervals.len() / parts;
        let all = (0..parts).filter_map(|part| series::mean(intervals.get(bound(part)..bound(part + 1))?));
        all.collect()
    }

    /// Whether most of the steady time exceeded `bps`: the median of its sixths, less a read of 64 KiB in each.
    /// Data that waited somewhere and is then read at once raises only one or two of them.
    #[must_use]
    pub fn mostly_exceeds(&self, bps: f64) -> bool {
        let sixth_s = self.outcome.interval_s.unwrap_or(1.0) * self.outcome.intervals_bps.len() as f64 / 6.0;
        let parts = self.parts_bps(self.outcome.intervals_bps.len().min(6));
        order::median(&parts).is_some_and(|median| median - 65536.0 * 8.0 / sixth_s > bps)
    }

    /// Whether the sixths of the steady part vary by less than `limit`, or by less than ten packets or late
    /// reads explain. Late reads move bytes to the next interval, so they average out within a sixth. `None` if
    /// unknown.
    #[must_use]
    pub fn is_steady(&self, limit: f64) -> Option<bool> {
        let intervals = self.outcome.intervals_bps.len();
        let interval_s = self.outcome.interval_s.filter(|seconds| *seconds > 0.0).unwrap_or(1.0);
        let least = (MIN_SPAN_S / interval_s).ceil() as usize;
        let each = (intervals / 6).max(least.min(intervals / 4)).max(1);
        let span_s = each as f64 * interval_s;
        let grain = GRAIN_PACKETS * self.packet_bytes() * 8.0 / (self.outcome.goodput_bps? * span_s);
        let centre = order::median(&self.outcome.intervals_bps).filter(|median| *median > 0.0)?;
        let uneven = spread::robust_sigma(&self.outcome.intervals_bps)? / centre;
        let made_up = series::autocorrelation(&self.outcome.intervals_bps, 1)? < COMPENSATION_CORRELATION;
        let noise = if made_up { (2.0 * uneven / each as f64).min(MAX_NOISE) } else { 0.0 };
        self.is_constant_by(each, limit.max(grain).max(noise))
    }

    /// The rate that the flow sustained, bit/s: the median of its steady intervals, which neither dips nor data
    /// after a filled gap move. Without intervals, the mean.
    #[must_use]
    pub fn sustained_bps(&self) -> Option<f64> {
        order::median(&self.outcome.intervals_bps).or(self.outcome.goodput_bps).filter(|rate| *rate > 0.0)
    }

    /// Range of the sustained rate, bit/s: both the interval of the median and that of the mean.
    ///
    /// With fewer than six intervals, the extremes are used.
    #[must_use]
    pub fn rate_range_bps(&self) -> Option<(f64, f64)> {
        let intervals = &self.outcome.intervals_bps;
        let median = order::median_interval(intervals, COVERAGE).map(|found| (found.low, found.high));
        let extremes = || {
            let least = intervals.iter().copied().reduce(f64::min)?;
            Some((least, intervals.iter().copied().reduce(f64::max)?))
        };
        let goodput = self.outcome.goodput_bps.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let (low, high) = median.or_else(extremes).unwrap_or((goodput, goodput));
        let width = self.outcome.uncertainty_bps.filter(|width| width.is_finite()).unwrap_or(0.0).abs();
        Some((low.min(goodput - width), high.max(goodput + width)))
    }

    /// Smallest and largest share of other traffic at the bottleneck, relative to the goodput: latency probes
    /// pass it, and retransmissions if the first copies were lost after it.
    #[must_use]
    pub fn other_shares(&self) -> (f64, f64) {
        let sent_again = self.tcp.retransmits.zip(self.tcp.segments_sent).map(|(again, all)| again / all);
        let probes = self.asked.probe_bps.zip(self.outcome.goodput_bps).map(|(probes, rate)| probes / rate);
        let share =
            |known: Option<f64>| known.filter(|share| share.is_finite() && *share > 0.0).unwrap_or(0.0);
        let least = share(probes).min(MAX_OTHER_SHARE);
        (least, (least + share(sent_again)).min(MAX_OTHER_SHARE))
    }

    /// Whether the queue before the bottleneck was hardly ever empty: packets waited even when it was short.
    #[must_use]
    pub fn queue_never_empties(&self) -> bool {
        let rise = self.rtt.smoothed_p10_s.zip(self.base_rtt_s()).map(|(low, base)| (low - base, base));
        rise.is_some_and(|(rise, base)| rise >= (0.25 * base).max(0.001))
    }

    /// Whether the flow uses BBR, for which the loss models are not valid.
    #[must_use]
    pub fn is_bbr(&self) -> bool {
        self.tcp.congestion.as_deref().is_some_and(|name| name.starts_with("bbr"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_frames_of_a_late_network_do_not_lower_the_base() {
        let mut evidence = Evidence::default();
        evidence.rtt.min_s = Some(0.004);
        evidence.rtt.idle_p50_s = Some(0.0201);
        assert_eq!(evidence.base_rtt_s(), Some(0.004));
        evidence.timing.emulator_late = Some(true);
        assert_eq!(evidence.base_rtt_s(), Some(0.0201));
        evidence.rtt.idle_min_s = Some(0.0140);
        assert_eq!(evidence.base_rtt_s(), Some(0.0140), "a neighbour's queue stood before the test");
        (evidence.rtt.idle_min_s, evidence.rtt.idle_p50_s) = (None, None);
        assert_eq!(evidence.base_rtt_s(), Some(0.004), "nothing else is known");
    }

    #[test]
    fn a_virtual_link_has_no_line_rate_unless_the_user_says_so() {
        let mut evidence = Evidence::default();
        evidence.link.link_bps = Some(10e9);
        evidence.link.is_virtual = true;
        assert_eq!(evidence.line_rate_bps(), None);
        evidence.link.source = Some(LinkSource::User);
        assert_eq!(evidence.line_rate_bps(), Some(10e9));
        evidence.link.peer_link_bps = Some(1e9);
        assert_eq!(evidence.line_rate_bps(), Some(1e9));
    }

    #[test]
    fn a_nominal_rate_holds_until_the_flow_exceeds_it() {
        let mut evidence = Evidence::default();
        (evidence.link.link_bps, evidence.link.is_nominal) = (Some(10e9), true);
        evidence.outcome.goodput_bps = Some(9.41e9);
        assert_eq!((evidence.line_rate_bps(), evidence.is_nominal_link()), (Some(10e9), true));
        evidence.outcome.goodput_bps = Some(20e9);
        assert_eq!((evidence.line_rate_bps(), evidence.is_nominal_link()), (None, false));
        evidence.link.peer_link_bps = Some(40e9);
        assert_eq!((evidence.line_rate_bps(), evidence.is_nominal_link()), (Some(40e9), false));
        (evidence.link.peer_link_bps, evidence.link.peer_is_nominal) = (Some(25e9), true);
        assert_eq!((evidence.line_rate_bps(), evidence.is_nominal_link()), (Some(25e9), true));
    }

    #[test]
    fn the_effective_segment_decides_the_packet() {
        let mut evidence = Evidence::default();
        assert!((evidence.packet_bytes() - 1500.0).abs() < f64::EPSILON);
        evidence.link.mtu_bytes = Some(9000.0);
        evidence.link.mss_bytes = Some(1448.0);
        assert!((evidence.packet_bytes() - 1500.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_datagram_above_the_mtu_is_counted_with_its_fragments() {
        let mut evidence = Evidence { transport: FlowTransport::Udp, ..Evidence::default() };
        let wire = |evidence: &Evidence| evidence.layer_bytes().map(|layers| layers.wire_bytes);
        assert_eq!(wire(&evidence), Some(1538.0), "nothing is known");
        evidence.link.mss_bytes = Some(8192.0);
        assert_eq!(wire(&evidence), Some(8192.0 + 28.0 + 38.0), "no MTU is known");
        evidence.link.mtu_bytes = Some(1500.0);
        assert_eq!(wire(&evidence), Some(5.0 * 1538.0 + 858.0));
        evidence.link.mss_bytes = Some(100.0);
        assert_eq!(wire(&evidence), Some(100.0 + 28.0 + 38.0));
        evidence.transport = FlowTransport::Tcp;
        evidence.link.mss_bytes = Some(32_768.0);
        assert_eq!(wire(&evidence), Some(1538.0), "segments are not fragmented");
    }

    #[test]
    fn needless_retransmissions_are_no_loss() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.loss(), None);
        evidence.tcp.retransmits = Some(10.0);
        evidence.tcp.segments_sent = Some(1000.0);
        evidence.tcp.duplicate_acks = Some(4.0);
        assert_eq!(evidence.loss(), Some(0.006));
    }

    #[test]
    fn slow_flows_may_vary_by_a_read() {
        let mut evidence = Evidence::default();
        evidence.outcome.goodput_bps = Some(9.4e6);
        evidence.outcome.interval_s = Some(0.1);
        evidence.outcome.intervals_bps = vec![7e6, 11.8e6, 7e6, 11.8e6];
        assert_eq!(evidence.is_constant(0.02), Some(true));
        evidence.outcome.interval_s = Some(10.0);
        assert_eq!(evidence.is_constant(0.02), Some(false));
    }

    #[test]
    fn what_reads_blur_is_not_surely_constant() {
        let mut evidence = Evidence::default();
        evidence.outcome.goodput_bps = Some(1.4e6);
        evidence.outcome.interval_s = Some(0.1);
        evidence.outcome.intervals_bps = vec![1.4e6; 50];
        assert_eq!(evidence.is_constant(0.1), Some(true));
        assert_eq!(evidence.is_surely_constant(0.1), None, "five seconds are thirteen reads");
        // At 52 Mb/s, a read of 64 KiB is 10 % of 100 ms: intervals are merged in pairs.
        evidence.outcome.goodput_bps = Some(50e6);
        evidence.outcome.intervals_bps = [45e6, 55e6].repeat(25);
        assert_eq!(evidence.is_surely_constant(0.1), Some(true));
        evidence.outcome.intervals_bps = [40e6, 40e6, 60e6, 60e6].repeat(12);
        assert_eq!(evidence.is_surely_constant(0.1), Some(false));
    }

    #[test]
    fn what_waited_behind_a_hole_until_the_last_interval_makes_up_for_it() {
        // A gap of three intervals that is filled in the last one, for any number of intervals.
        for count in 24..=49 {
            let mut evidence = Evidence::default();
            evidence.outcome.goodput_bps = Some(36e6);
            evidence.outcome.interval_s = Some(0.1);
            evidence.outcome.intervals_bps = vec![36e6; count];
            evidence.outcome.intervals_bps[count - 4..].copy_from_slice(&[18e6, 0.0, 18e6, 108e6]);
            assert_eq!(evidence.is_steady(0.03), Some(true), "{count}");
            // If the data never arrives, it is missing.
            evidence.outcome.intervals_bps[count - 1] = 0.0;
            assert_eq!(evidence.is_steady(0.03), Some(false), "{count}");
        }
    }

    #[test]
    fn one_late_interval_in_a_hundred_does_not_count_but_rare_dips_do() {
        let mut evidence = Evidence::default();
        evidence.outcome.goodput_bps = Some(941e6);
        evidence.outcome.intervals_bps = vec![941e6; 100];
        evidence.outcome.intervals_bps[40] = 600e6;
        assert_eq!(evidence.is_constant(0.02), Some(true));
        for dip in evidence.outcome.intervals_bps.iter_mut().step_by(10) {
            *dip = 400e6;
        }
        assert_eq!(evidence.is_constant(0.02), Some(false));
    }
}
