//! The parameters that both ends agreed on, from the view of one end, and the links, flow and archive entry for
//! them.

use std::net::SocketAddr;

use linerate_model::{Direction, Side, SocketKnobs, TestSpec};
use linerate_units::{Bitrate, Bytes, Span};

use super::MAX_STREAMS;
use super::marks::{MARK_AT, MARKED_LENGTH, OF_CONNECTION};
use super::options::{IDLE, MAX_TIME, NEIGHBOURS};
use super::report::Setup;
use super::summary::LineContents;
use super::wire::{NuttcpFormat, NuttcpRequest, NuttcpVersion};
use crate::stand_in::{
    BlockNote, Blocks, EndMark, FlowId, FlowTask, Link, LinkOptions, Opened, Pattern, Payload, Planned,
    RunId, Transit, Transport,
};
use linerate_model::flow::{BlockLength, SeqField, Spacing, StampLayout, TimeField, TimeForm};

/// Offset of the send time in a datagram or block.
const TIME_AT: usize = 8;

/// Shortest datagram or block that has room for it, bytes.
const TIMED_LENGTH: u64 = 16;

/// The urgent byte with which a receiver reports that it has given up.
pub(super) const ABORT_BYTE: u8 = b'A';

/// Longest accepted block, bytes.
const MAX_BLOCK: u64 = 64 << 20;

/// Longest datagram, bytes of payload.
const MAX_DATAGRAM: u64 = 65_507;

/// First version with a second datagram at the start of a UDP test, and with a message of a receiver that gives
/// up.
const SECOND_BEGIN: NuttcpVersion = NuttcpVersion::new(50_401);

/// First version whose datagrams may be timestamped.
const SEND_TIMES_SINCE: NuttcpVersion = NuttcpVersion::new(70_001);

/// A test from the view of one end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Terms {
    pub(super) client: bool,
    pub(super) transmit: bool,
    pub(super) udp: bool,
    pub(super) flip: bool,
    pub(super) length: u64,
    pub(super) blocks: Option<u64>,
    pub(super) streams: u16,
    pub(super) port: u16,
    pub(super) time: Option<Span>,
    pub(super) rate_kbps: Option<u64>,
    pub(super) instantaneous: bool,
    pub(super) burst: u64,
    pub(super) interval: Span,
    pub(super) window: Option<u64>,
    pub(super) both_windows: bool,
    pub(super) mss: Option<u32>,
    pub(super) tos: u8,
    pub(super) no_delay: bool,
    /// Which values of the jitter are reported; 0 if it is not measured.
    pub(super) jitter: u64,
    /// Which values of the one-way delay are reported; 0 if it is not measured.
    pub(super) one_way_delay: u64,
    /// CPU of the data threads.
    pub(super) affinity: Option<u32>,
    /// Source port of data connections that this end opens.
    pub(super) source_port: Option<u16>,
    pub(super) peer: NuttcpVersion,
    pub(super) stdio: bool,
    /// Destination of data connections; their port depends on the stream.
    pub(super) to: Option<SocketAddr>,
    pub(super) ipv4: bool,
    pub(super) ipv6: bool,
    /// Shortest, default and longest idle timeout.
    pub(super) idle: [Span; 3],
    /// Whether there is no server, and the other end is a plain ttcp.
    pub(super) classic: bool,
}

impl Terms {
    /// Checks a request like a server does. The error is the text of its answer after the version.
    pub(super) fn of_request(request: &NuttcpRequest, control_port: u16) -> Result<Self, String> {
        let streams = u16::try_from(request.nstream).ok().filter(|count| (1..=MAX_STREAMS).contains(count));
        let Some(streams) = streams else {
            return Err(format!("invalid nstream\nnstream = {}", request.nstream));
        };
        let last = request.port.saturating_add(u64::from(streams) - 1);
        if request.port < 1024 || last > 65_535 {
            return Err(format!("invalid port/nstream\nport/nstream = {}/{streams}", request.port));
        }
        let port = request.port as u16;
        if (request.port..=last).contains(&u64::from(control_port)) {
            return Err(format!(
                "ctlport overlaps port/nstream\nctlport = {control_port}, port/nstream = {port}/{streams}"
            ));
        }
        let sizes = if request.udp { 5..=MAX_DATAGRAM } else { 1..=MAX_BLOCK };
        if !sizes.contains(&request.buflen) {
            return Err(format!("invalid buflen\nbuflen = {}", request.buflen));
        }
        if request.timeout > MAX_TIME {
            return Err(format!("invalid timeout\ntimeout = {:.6}", request.timeout.as_secs_f64()));
        }
        let terms = Self { client: false, transmit: !request.trans, ..Self::of(request, streams, port) };
        if (1..1024).contains(&request.srcport) || request.srcport > 65_535 {
            return Err(format!("invalid srcport\nsrcport = {}", request.srcport));
        }
        let unsupported = [
            (request.multicast != 0, "multicast not supported"),
            (request.smoothed_start, "smoothed slow start not supported"),
            (request.several_paths && terms.connects(), "several paths not supported"),
            (request.do_jitter != 0 && !request.udp, "jitter option not supported for TCP"),
            (
                request.do_jitter != 0 && request.rate_kbps.is_none(),
                "jitter option not supported for unlimited rate",
            ),
            (request.do_jitter != 0 && !request.irate, "jitter option requires instantaneous rate limit"),
        ];
        match unsupported.into_iter().find(|(asked, _)| *asked) {
            Some((_, why)) => Err(why.to_owned()),
            None => Ok(terms),
        }
    }

    /// The parameters of a client's own request, which the command line has already checked.
    pub(super) fn of(request: &NuttcpRequest, streams: u16, port: u16) -> Self {
        let some = |value: u64| Some(value).filter(|value| *value > 0);
        Self {
            client: true,
            transmit: request.trans,
            udp: request.udp,
            flip: request.flip,
            length: request.buflen,
            blocks: request.nbuf,
            streams,
            port,
            time: Some(request.timeout).filter(|time| *time > Span::ZERO),
            rate_kbps: request.rate_kbps,
            instantaneous: request.irate,
            burst: request.maxburst.clamp(1, 1000),
            // An interval of a microsecond would overload the server.
            interval: if request.interval == Span::ZERO {
                Span::ZERO
            } else {
                request.interval.clamp(Span::from_ms(10), MAX_TIME)
            },
            window: some(request.win).map(|bytes| bytes.min(1 << 30)),
            both_windows: request.braindead,
            mss: some(request.datamss).and_then(|mss| u32::try_from(mss).ok()).filter(|mss| *mss < 65_536),
            tos: request.tos,
            no_delay: request.nodelay,
            jitter: request.do_jitter,
            one_way_delay: request.do_owd,
            affinity: request.affinity,
            source_port: u16::try_from(request.srcport).ok().filter(|port| *port > 0),
            peer: request.vers,
            stdio: false,
            to: None,
            ipv4: false,
            ipv6: false,
            idle: IDLE,
            classic: false,
        }
    }

    /// Whether this end opens the data connections.
    pub(super) const fn connects(&self) -> bool {
        self.transmit != self.flip || (self.udp && self.transmit)
    }

    pub(super) const fn transport(&self) -> Transport {
        if self.udp { Transport::Udp } else { Transport::Tcp }
    }

    /// Number of datagrams at the start of a UDP test.
    pub(super) fn begins(&self) -> u8 {
        if self.peer >= SECOND_BEGIN { 2 } else { 1 }
    }

    /// Whether the peer understands the urgent byte of a receiver.
    pub(super) fn urgent(&self) -> bool {
        self.peer >= SECOND_BEGIN
    }

    /// Idle timeout of a receiver.
    pub(super) fn data_timeout(&self) -> Span {
        let [shortest, default, longest] = self.idle;
        let timeout = match self.time {
            _ if self.interval > Span::ZERO => self.interval,
            Some(time) => Span::from_ns(time.as_ns() / 2),
            None => default,
        };
        timeout.clamp(shortest, longest)
    }

    /// Bytes to send on all streams.
    pub(super) fn bytes(&self) -> Option<Bytes> {
        self.blocks.map(|blocks| Bytes::new(blocks.saturating_mul(self.length)))
    }

    fn total_rate(&self) -> Option<Bitrate> {
        self.rate_kbps.and_then(|rate| Bitrate::from_bps(rate as f64 * 1e3))
    }

    fn stream_rate(&self) -> Option<Bitrate> {
        self.total_rate().and_then(|rate| Bitrate::from_bps(rate.bps() / f64::from(self.streams)))
    }

    /// The time in which a sender wrote, including the interval of the last block: a paced block occupies the
    /// line until the next one may be sent.
    pub(super) fn with_last_turn(&self, bytes: u64, span: Span) -> Span {
        let Some(rate) = self.total_rate().filter(|_| self.transmit) else { return span };
        let turn = rate.time_for(Bytes::new(self.length.saturating_mul(u64::from(self.streams))));
        let nominal = rate.time_for(Bytes::new(bytes)).unwrap_or_default();
        let longest = Span::from_ns(span.as_ns().saturating_add(turn.unwrap_or_default().as_ns()));
        span.max(nominal.min(longest))
    }

    fn direction(&self) -> Direction {
        if self.client == self.transmit { Direction::Upload } else { Direction::Download }
    }

    pub(super) fn link_options(&self) -> LinkOptions {
        let window = |wanted: bool| self.window.filter(|_| wanted || self.both_windows);
        LinkOptions {
            transport: self.transport(),
            snd_buf: window(self.transmit),
            rcv_buf: window(!self.transmit),
            mss: self.mss.filter(|_| !self.udp),
            tos: Some(self.tos).filter(|tos| *tos > 0),
            no_delay: self.no_delay && self.transmit && !self.udp,
            local_port: self.source_port.filter(|_| self.connects()),
            ipv4: self.ipv4,
            ipv6: self.ipv6,
            ..LinkOptions::default()
        }
    }

    /// Destination of stream `number`, if the address is known.
    pub(super) fn address(&self, number: u16) -> Option<SocketAddr> {
        let mut to = self.to?;
        if to.ip().to_canonical().is_ipv4() {
            to.set_ip(to.ip().to_canonical());
        }
        to.set_port(self.stream_port(number));
        Some(to)
    }

    pub(super) const fn stream_port(&self, number: u16) -> u16 {
        self.port.saturating_add(number)
    }

    fn stamp(&self) -> StampLayout {
        let asked = self.interval > Span::ZERO || self.jitter & NEIGHBOURS != 0;
        let counted = self.udp && self.length >= MARKED_LENGTH && asked;
        let timed = self.length >= TIMED_LENGTH && self.one_way_delay != 0 && self.peer >= SEND_TIMES_SINCE;
        let streams = u32::from(self.streams);
        StampLayout {
            tag_at: None,
            seq: if counted { SeqField::Bytes { at: MARK_AT, streams } } else { SeqField::Absent },
            time: timed.then_some(TimeField { at: TIME_AT, form: TimeForm::Wall }),
            stream_at: None,
            length: match (counted, timed) {
                (true, _) => MARKED_LENGTH as usize,
                (false, true) => TIMED_LENGTH as usize,
                (false, false) => 0,
            },
        }
    }

    /// Whether blocks of a TCP stream carry their send time.
    pub(super) fn stamps_blocks(&self) -> bool {
        !self.udp && !self.stdio && self.stamp().time.is_some()
    }

    /// Which times a receiver measures. Streams share the rate, and `early` are their data before the flow.
    fn transit(&self, early: &[Vec<u8>]) -> Transit {
        if self.stamps_blocks() {
            let length = BlockLength::Fixed(self.length);
            return Transit::Blocks(Blocks { length, skipped: 0, early: early.to_vec() });
        }
        let gap = self.stream_rate().and_then(|rate| rate.time_for(Bytes::new(self.length)));
        match gap.filter(|_| self.udp && self.jitter != 0) {
            Some(gap) => Transit::Spaced(Spacing {
                gap,
                neighbours: self.jitter & NEIGHBOURS != 0 && self.sees_losses(),
            }),
            None if self.udp && self.stamp().time.is_some() => Transit::Datagrams,
            None => Transit::Uncounted,
        }
    }

    /// Whether losses are visible during the test.
    pub(super) fn sees_losses(&self) -> bool {
        matches!(self.stamp().seq, SeqField::Bytes { .. })
    }

    /// What the interval lines contain.
    pub(super) fn line_contents(&self, format: NuttcpFormat) -> LineContents {
        LineContents {
            lossy: Some(self.length).filter(|_| self.sees_losses() && self.interval > Span::ZERO),
            jitter: self.jitter,
            one_way: self.one_way_delay,
            format,
        }
    }

    /// The pattern from its start, with zeros where a receiver looks for retransmission marks.
    fn payload(&self) -> Payload {
        let marked = !self.udp && self.interval > Span::ZERO && self.length >= MARKED_LENGTH;
        let head = if marked {
            let pattern = (b' '..).take(MARK_AT);
            pattern.chain([0; MARKED_LENGTH as usize - MARK_AT]).collect()
        } else {
            Vec::new()
        };
        Payload { head, pattern: Pattern::Printable, first_length: None }
    }

    /// The position of retransmission marks in the blocks of a transmitting server. A transmitting client knows
    /// its own counts.
    fn note(&self) -> Option<BlockNote> {
        let shows_retransmits = !self.udp && self.streams == 1 && self.interval > Span::ZERO;
        let fits = self.length >= MARKED_LENGTH && !self.stdio;
        let mine = !(self.client && self.transmit);
        (shows_retransmits && fits && mine).then_some(BlockNote { at: MARK_AT, kind: OF_CONNECTION })
    }

    /// `early` are the data of each stream that arrived before the flow.
    pub(super) fn task(&self, flow: FlowId, run: RunId, links: Vec<Link>, early: &[Vec<u8>]) -> FlowTask {
        let end_mark =
            if self.udp && !self.transmit { EndMark::Short { bytes: 4, nth: 2 } } else { EndMark::None };
        FlowTask {
            flow,
            run,
            side: if self.transmit { Side::Sender } else { Side::Receiver },
            direction: self.direction(),
            transport: self.transport(),
            links,
            length: Bytes::new(self.length),
            payload: self.payload(),
            framing: Default::default(),
            stamp: self.stamp(),
            bytes: self.bytes(),
            time: self.time,
            omit: Span::ZERO,
            offered: self.stream_rate(),
            burst: u32::try_from(self.burst).ok().filter(|burst| *burst > 1),
            pacing_tick: None,
            fq_rate: None,
            socket: self.knobs(),
            affinity: self.affinity,
            end_mark,
            read_before: Vec::new(),
            note: self.note(),
            transit: self.transit(early),
            together: false,
            file: None,
        }
    }

    fn knobs(&self) -> SocketKnobs {
        SocketKnobs {
            window: self.window.map(Bytes::new),
            mss: self.mss,
            tos: Some(self.tos).filter(|tos| *tos > 0),
            no_delay: self.no_delay,
            ..SocketKnobs::default()
        }
    }

    /// The planned run, for the archive.
    pub(super) fn planned(
        &self,
        run: RunId,
        flow: FlowId,
        link: Link,
        peer: Option<NuttcpVersion>,
    ) -> Planned {
        let mut spec = TestSpec::default();
        let traffic = &mut spec.traffic;
        traffic.udp = self.udp;
        let direction = self.direction();
        traffic.upload = direction == Direction::Upload;
        traffic.download = direction == Direction::Download;
        traffic.duration = self.time;
        traffic.blocks = self.blocks;
        traffic.streams = u32::from(self.streams);
        traffic.rate =
            if self.udp && self.rate_kbps.is_none() { Some(Bitrate::ZERO) } else { self.stream_rate() };
        traffic.length = Some(Bytes::new(self.length));
        if self.interval > Span::ZERO {
            traffic.interval = self.interval;
        }
        traffic.no_latency = true;
        spec.socket = self.knobs();
        let paced = self.bytes().zip(self.total_rate()).and_then(|(bytes, rate)| rate.time_for(bytes));
        Planned {
            run,
            tool: super::NUTTCP.name,
            peer: peer.map(|version| format!("nuttcp {version}")),
            link,
            client: self.client,
            spec,
            flows: vec![(flow, direction)],
            expected: match (self.time, paced) {
                (Some(time), Some(paced)) => Some(time.min(paced)),
                (time, paced) => time.or(paced),
            },
        }
    }

    /// The values of the report before the test.
    pub(super) fn setup(&self, opened: Option<&Opened>, peer: Option<SocketAddr>) -> Setup {
        Setup {
            transmit: self.transmit,
            udp: self.udp,
            length: self.length,
            blocks: self.blocks,
            streams: self.streams,
            port: self.port,
            time: self.time.unwrap_or_default(),
            rate_kbps: self.rate_kbps,
            instantaneous: self.instantaneous,
            burst: self.burst,
            tos: self.tos,
            // A server does not tell a CPU that its client has chosen.
            affinity: self.affinity.filter(|_| self.client),
            source_port: self.source_port,
            host: None,
            interval: self.interval,
            no_delay: self.no_delay,
            connected: self.connects(),
            peer: opened.and_then(|opened| opened.remote).or(peer),
            mss: opened.and_then(|opened| opened.mss),
            rtt: opened.and_then(|opened| opened.handshake),
            snd_buf: opened.map_or(0, |opened| opened.snd_buf),
            rcv_buf: opened.map_or(0, |opened| opened.rcv_buf),
        }
    }
}
