//! The evidence about the TCP connections of a flow: what its kernels counted, and its windows.

use linerate_model::metrics::{Metric, host, queue, tcp};
use linerate_model::{HostInfo, Side, Transport};
use linerate_theory::evidence::{Tcp, WindowEvidence};
use linerate_theory::stats::order::median;
use linerate_units::Span;

use super::{FlowView, PlainNumber, growth_per_s};
use crate::judge::{MIN_STEADY_INTERVALS, steady_intervals};

impl FlowView<'_> {
    pub(super) fn tcp(&self) -> Tcp {
        if self.flow.plan.transport == Transport::Udp {
            return Tcp::default();
        }
        let span = self.span_s(Side::Sender);
        let busy = self.sum(Side::Sender, tcp::BUSY);
        let share = |part: Metric<Span>| self.share_of_busy(part);
        let limited = self.series(Side::Sender, tcp::APP_LIMITED);
        let cwnd = self.series(Side::Sender, tcp::CWND);
        let hystart_exits = self.sum_ever(Side::Sender, host::HYSTART_EXITS);
        Tcp {
            sampled_streams: Some(self.streams),
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
            ssthresh_infinite: self.threshold_is_infinite(),
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

    /// Whether the flow never left slow start, by the last sample that has the state of its connections. The
    /// kernel's infinite threshold is left out of samples, so without that state its absence means nothing.
    fn threshold_is_infinite(&self) -> Option<bool> {
        let known = self.inside(Side::Sender).filter(|sample| sample.readings.get(tcp::CWND).is_some());
        known.last().map(|sample| sample.readings.get(tcp::SSTHRESH).is_none())
    }

    /// Share of the busy time in which the sender was limited in this way. The ramp is left out if enough
    /// intervals remain: rules compare the share with the steady rate, and the growth of the window while a
    /// token bucket empties does not affect that.
    fn share_of_busy(&self, part: Metric<Span>) -> Option<f64> {
        let (ramp, steady) = steady_intervals(self.flow);
        let ramp = if steady.len() >= MIN_STEADY_INTERVALS { ramp } else { 0 };
        let sum = |metric: Metric<Span>| {
            let values =
                self.inside(Side::Sender).skip(ramp).filter_map(|sample| sample.readings.get(metric));
            values.map(PlainNumber::plain).reduce(|a, b| a + b)
        };
        let busy = sum(tcp::BUSY).filter(|busy| *busy > 0.0)?;
        Some(sum(part)? / busy).map(|share| share.clamp(0.0, 1.0))
    }

    /// Returned segments without payload, per second and per segment sent, over the whole flow.
    pub(super) fn returned(&self) -> Option<(f64, f64)> {
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

    pub(super) fn windows(&self) -> WindowEvidence {
        if self.flow.plan.transport == Transport::Udp {
            return WindowEvidence::default();
        }
        let asked =
            self.record.start.as_ref().and_then(|start| start.spec.socket.window).map(PlainNumber::plain);
        let limit = |host: Option<&HostInfo>, name: &str| {
            host.and_then(|host| host.buffer_limit(name)).map(PlainNumber::plain)
        };
        WindowEvidence {
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
}
