//! The configuration of one direction, and its flow.

use linerate_model::{Direction, Side};
use linerate_units::{Bitrate, Bytes, Span};

use super::datagram::Generation;
use super::output_queue::OutputQueue;
use super::settings::Iperf2Amount;
use super::track::Iperf2Stream;
use super::wire::{BURST_BYTES, BURST_LENGTH_AT, BURST_NUMBER_AT, BURST_TIME_AT};
use crate::stand_in::{Blocks, EndMark, FlowId, FlowTask, Pattern, Payload, RunId, Transit, Transport};
use linerate_model::flow::{BlockLength, SeqField, StampLayout, TimeField, TimeForm};

/// The configuration of one direction.
#[derive(Debug, Clone)]
pub(super) struct Iperf2Load {
    pub(super) flow: FlowId,
    pub(super) run: RunId,
    pub(super) udp: bool,
    pub(super) sends: bool,
    pub(super) star: bool,
    pub(super) direction: Direction,
    pub(super) length: u32,
    /// The start of every buffer.
    pub(super) head: Vec<u8>,
    /// The amount of a sender; absent to send until stopped.
    pub(super) amount: Option<Iperf2Amount>,
    /// Rate of each connection, bit/s.
    pub(super) offered: Option<u64>,
    pub(super) generation: Generation,
    /// Whether the last datagram is answered by the receiver.
    pub(super) answers: bool,
    /// Whether another direction uses the same connections.
    pub(super) shared: bool,
    pub(super) fq_rate: Option<u64>,
    /// Whether the data carry timestamps.
    pub(super) trip_times: bool,
    /// Bytes of the header that a TCP receiver with trip times finds before the first buffer.
    pub(super) skipped: u64,
}

impl Iperf2Load {
    /// The time between two buffers of a sender with a rate.
    pub(super) fn gap(&self) -> Span {
        let rate = self.offered.filter(|_| self.sends).and_then(|rate| Bitrate::from_bps(rate as f64));
        rate.and_then(|rate| rate.time_for(Bytes::new(self.length.into()))).unwrap_or(Span::ZERO)
    }

    /// Whether TCP buffers are stamped; stamped ones are always sent in full.
    fn is_stamped(&self) -> bool {
        self.trip_times && !self.udp
    }
}

/// Bytes for the engine on all connections, when the amount also includes the headers already sent.
fn whole_of(load: &Iperf2Load, streams: usize, headers: u64) -> Option<u64> {
    let (each, length) = share(load, streams, headers)?;
    // Datagrams and stamped buffers are not divided. Over TCP the part that is not a whole buffer is sent at
    // the end.
    let cut = !load.udp && !load.is_stamped();
    let buffers = if cut { each / length } else { each.div_ceil(length) };
    Some(buffers.saturating_mul(length).saturating_mul(streams as u64))
}

/// The remaining bytes of each connection after the engine has sent whole buffers.
pub(super) fn rest_of(load: &Iperf2Load, streams: usize, headers: u64) -> u64 {
    match share(load, streams, headers) {
        Some((each, length)) if !load.udp && !load.is_stamped() => each % length,
        _ => 0,
    }
}

/// Bytes that each connection still has to send, and the length of a buffer.
fn share(load: &Iperf2Load, streams: usize, headers: u64) -> Option<(u64, u64)> {
    let Some(Iperf2Amount::Bytes(each)) = load.amount else { return None };
    let header = headers / (streams as u64).max(1);
    Some((each.saturating_sub(header), u64::from(load.length).max(1)))
}

/// The flow to request from the engine.
pub(super) fn task(queue: &OutputQueue, load: &Iperf2Load, streams: &[Iperf2Stream]) -> FlowTask {
    let headers = streams.iter().map(|stream| stream.own_bytes).sum();
    let first = load.generation.first_number();
    let seq = match load.generation {
        Generation::New | Generation::Between { wide: true } => {
            SeqField::Halves { low_at: 0, high_at: 12, first }
        }
        Generation::Old | Generation::Between { wide: false } => SeqField::Signed { at: 0, first },
    };
    let wall = |at| Some(TimeField { at, form: TimeForm::Wall });
    let (seq, time, length) = match (load.udp, load.is_stamped()) {
        (true, _) => (seq, wall(4), load.generation.header_bytes()),
        (_, true) => (SeqField::Narrow { at: BURST_NUMBER_AT, first: 1 }, wall(BURST_TIME_AT), BURST_BYTES),
        _ => (SeqField::Absent, None, 0),
    };
    let stamp = StampLayout { tag_at: None, seq, time, stream_at: None, length };
    let first_length = (load.udp && load.head.len() > load.length as usize).then_some(load.head.len() as u64);
    let time = load.amount.and_then(Iperf2Amount::limited_time);
    FlowTask {
        flow: load.flow,
        run: load.run,
        side: if load.sends { Side::Sender } else { Side::Receiver },
        direction: load.direction,
        transport: if load.udp { Transport::Udp } else { Transport::Tcp },
        links: streams.iter().map(|stream| stream.link).collect(),
        length: Bytes::new(u64::from(load.length)),
        payload: Payload {
            head: load.head.clone(),
            pattern: Pattern::Digits,
            first_length: first_length.map(Bytes::new),
        },
        framing: Default::default(),
        stamp,
        bytes: whole_of(load, streams.len(), headers).filter(|_| load.sends).map(Bytes::new),
        time: time.filter(|_| load.sends),
        omit: Span::ZERO,
        offered: load.offered.filter(|_| load.sends).and_then(|rate| Bitrate::from_bps(rate as f64)),
        burst: None,
        pacing_tick: None,
        fq_rate: load.fq_rate.and_then(|rate| Bitrate::from_bps(rate as f64)),
        socket: queue.sockets(),
        affinity: None,
        end_mark: if load.udp && !load.sends { EndMark::Negative } else { EndMark::None },
        read_before: streams
            .iter()
            .filter(|_| load.udp && !load.sends)
            .map(Iperf2Stream::read_before)
            .collect(),
        note: None,
        transit: transit(queue, load, streams),
        together: false,
        file: None,
    }
}

/// Which transit times to measure. Datagrams always carry a timestamp, so -e suffices for them.
fn transit(queue: &OutputQueue, load: &Iperf2Load, streams: &[Iperf2Stream]) -> Transit {
    if load.is_stamped() {
        let early = streams.iter().map(|stream| stream.early.clone()).collect();
        Transit::Blocks(Blocks { length: BlockLength::At(BURST_LENGTH_AT), skipped: load.skipped, early })
    } else if load.udp && !load.sends && (load.trip_times || queue.settings.enhanced) {
        Transit::Datagrams
    } else {
        Transit::Uncounted
    }
}
