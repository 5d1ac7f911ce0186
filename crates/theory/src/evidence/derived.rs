//! What follows from the evidence of a flow.

use super::{Evidence, LinkSource, Transport};
use crate::framing::{Headers, IpVersion};
use crate::stats::{order, series, spread};

impl Evidence {
    /// The line rate that means something: no virtual interface's, unless the user vouches for it; the slower end's.
    #[must_use]
    pub fn line_rate_bps(&self) -> Option<f64> {
        if self.link.is_virtual && self.link.source != Some(LinkSource::User) {
            return None;
        }
        let own = self.link.link_bps.filter(|rate| rate.is_finite() && *rate > 0.0);
        let peer = self.link.peer_link_bps.filter(|rate| rate.is_finite() && *rate > 0.0);
        match (own, peer) {
            (Some(own), Some(peer)) => Some(own.min(peer)),
            (own, peer) => own.or(peer),
        }
    }

    /// Whether somebody states the rate of the link, so that nobody knows what it counts.
    #[must_use]
    pub fn is_stated_link(&self) -> bool {
        self.link.source == Some(LinkSource::User) && self.line_rate_bps().is_some()
    }

    /// The headers of a data packet; IPv4 and timestamps unless known otherwise.
    #[must_use]
    pub fn headers(&self) -> Headers {
        let ip = self.link.ip_version.unwrap_or(IpVersion::V4);
        match self.transport {
            Transport::Tcp => Headers::tcp(ip, self.link.timestamps.unwrap_or(true)),
            Transport::Udp => Headers::udp(ip),
        }
    }

    /// Length of a full packet, bytes: from the effective segment where it is known, so that a clamped MSS counts.
    #[must_use]
    pub fn packet_bytes(&self) -> f64 {
        let of_segment = self.link.mss_bytes.map(|mss| mss + self.headers().total_bytes());
        let mtu = self.link.mtu_bytes.unwrap_or(1500.0);
        // A datagram longer than the MTU is sent in pieces; its frames are as long as the MTU.
        of_segment.map_or(mtu, |packet| if self.link.mtu_bytes.is_some() { packet.min(mtu) } else { packet })
    }

    /// 802.1Q tags, 0 when nothing is known.
    #[must_use]
    pub fn tags(&self) -> f64 {
        f64::from(self.link.tags.unwrap_or(0))
    }

    /// Connections of the flow, at least one.
    #[must_use]
    pub fn streams(&self) -> f64 {
        f64::from(self.outcome.streams.unwrap_or(1).max(1))
    }

    /// The round trip without queue: the smallest known.
    #[must_use]
    pub fn base_rtt_s(&self) -> Option<f64> {
        let known = [self.rtt.min_s, self.rtt.idle_p50_s, self.rtt.mean_s];
        known.into_iter().flatten().filter(|rtt| *rtt > 0.0).reduce(f64::min)
    }

    /// Rise of the median round trip under load over the base, s.
    #[must_use]
    pub fn rtt_rise_s(&self) -> Option<f64> {
        let loaded = self.rtt.loaded_p50_s.or(self.rtt.mean_s)?;
        Some(loaded - self.base_rtt_s()?)
    }

    /// Whether a queue stands before the bottleneck, so that windows and buffers are larger than the path and only bound
    /// the queue: the round trip grew by half and by a millisecond.
    #[must_use]
    pub fn queue_stands(&self) -> bool {
        self.rtt_rise_s().zip(self.base_rtt_s()).is_some_and(|(rise, base)| rise >= (0.5 * base).max(0.001))
    }

    /// Share of the sent segments that were lost: retransmissions less the needless ones. For UDP the lost datagrams.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let (lost, sent) = match self.transport {
            Transport::Tcp => {
                let needless = self.tcp.duplicate_acks.unwrap_or(0.0);
                ((self.tcp.retransmits? - needless).max(0.0), self.tcp.segments_sent?)
            }
            Transport::Udp => (self.udp.lost?, self.udp.packets?),
        };
        (sent > 0.0).then(|| lost / sent)
    }

    /// Coefficient of variation of the steady intervals.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        series::coefficient_of_variation(&self.outcome.intervals_bps)
    }

    /// Whether the intervals vary less than `limit`, or less than one read of 64 KiB makes them; `None` when unknown.
    ///
    /// Judged by the robust spread, so that one interval in which a host was late does not count; but the mean must stay
    /// at the median, so that rare deep dips do.
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

    /// As [`Evidence::is_constant`], but not excused by the size of a read: intervals are merged until one read of
    /// 64 KiB is at most `limit` of them. `None` where fewer than four are left.
    #[must_use]
    pub fn is_surely_constant(&self, limit: f64) -> Option<bool> {
        let read_s = 65536.0 * 8.0 / self.outcome.goodput_bps.filter(|rate| *rate > 0.0)?;
        let each = (read_s / (limit * self.outcome.interval_s.unwrap_or(1.0))).ceil().max(1.0);
        self.is_constant_by(each as usize, limit)
    }

    /// Whether sixths of the steady part vary less than `limit`, however slow the flow is. `None` when unknown.
    #[must_use]
    pub fn is_constant_by_sixths(&self, limit: f64) -> Option<bool> {
        self.is_constant_by((self.outcome.intervals_bps.len() / 6).max(1), limit)
    }

    /// Whether the means of so many intervals each vary less than `limit`; `None` where fewer than four are left.
    fn is_constant_by(&self, each: usize, limit: f64) -> Option<bool> {
        let whole = self.outcome.intervals_bps.chunks_exact(each);
        let merged: Vec<f64> = whole.filter_map(series::mean).collect();
        if merged.len() < 4 {
            return None;
        }
        let centre = order::median(&merged).filter(|median| *median > 0.0)?;
        let drift = (series::mean(&merged)? / centre - 1.0).abs();
        Some(spread::robust_sigma(&merged)? / centre < limit && drift < limit)
    }

    /// Whether the flow runs BBR, to which the loss models do not apply.
    #[must_use]
    pub fn is_bbr(&self) -> bool {
        self.tcp.congestion.as_deref().is_some_and(|name| name.starts_with("bbr"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_effective_segment_decides_the_packet() {
        let mut evidence = Evidence::default();
        assert!((evidence.packet_bytes() - 1500.0).abs() < f64::EPSILON);
        evidence.link.mtu_bytes = Some(9000.0);
        evidence.link.mss_bytes = Some(1448.0);
        assert!((evidence.packet_bytes() - 1500.0).abs() < f64::EPSILON);
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
        // At 52 Mb/s a read of 64 KiB is a tenth of 100 ms: two intervals at a time.
        evidence.outcome.goodput_bps = Some(50e6);
        evidence.outcome.intervals_bps = [45e6, 55e6].repeat(25);
        assert_eq!(evidence.is_surely_constant(0.1), Some(true));
        evidence.outcome.intervals_bps = [40e6, 40e6, 60e6, 60e6].repeat(12);
        assert_eq!(evidence.is_surely_constant(0.1), Some(false));
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
