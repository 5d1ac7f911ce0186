//! Receives datagrams, several in one call, possibly merged by the kernel (GRO).

use std::net::UdpSocket;
use std::time::Duration;

use linerate_model::flow::{EndMark, Transit};
use linerate_sock::batch::{Datagram, RecvBatch};
use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::stream::{set_nonblocking, set_recv_timeout};
use linerate_sock::{Mono, SockError, clock, sockopt};
use linerate_units::Bytes;

use super::arrival_times::ArrivalTimes;
use super::{PumpEnd, StreamEnd, StreamError};
use crate::arrivals::ArrivalStatistics;
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::stamp::{DatagramMeaning, DatagramReader};
use crate::transit::{SpacingWriter, TransitWriter};

/// After an order to stop, the stream ends when nothing has arrived for this long: what was on the way has
/// arrived.
pub(crate) const STOP_SILENCE: Duration = Duration::from_millis(200);
/// Messages per call.
const MESSAGES: usize = 8;
/// Buffer for one message: merged datagrams take up to 64 KiB.
const MESSAGE_BYTES: usize = 64 << 10;
/// Longest time that datagrams gather: no interval that a result shows is so short that it would matter.
const MAX_GATHER_TIME: Duration = Duration::from_micros(500);
/// A shorter wait saves nothing, and only fills the buffer.
const MIN_GATHER_TIME: Duration = Duration::from_micros(100);
/// Fewer datagrams are not worth a wait.
const MIN_GATHERED: u32 = 4;
/// At most this part of the receive buffer fills meanwhile: a thread may wake up much later than it asked for.
const BUFFER_DIVISOR: u64 = 16;
/// Bytes of the receive buffer that a datagram takes besides its payload (struct sk_buff and what is rounded up).
const PACKET_OVERHEAD: u64 = 1024;
/// Most sockets served between two checks for orders.
const EVENTS: usize = 256;
/// Receive buffer when none was requested, bytes: a few milliseconds at 10 Gbit/s.
pub(crate) const BUFFER: u64 = 4 << 20;

/// Prepares one socket; returns whether the kernel may merge datagrams.
pub(crate) fn prepare(flow: &FlowSide, socket: &UdpSocket) -> Result<bool, SockError> {
    set_nonblocking(socket, flow.plan.shared())?;
    set_recv_timeout(socket, Some(flow.control.max_wait()))?;
    if flow.setup.socket.window.is_none() {
        sockopt::set_rcv_buf(socket, BUFFER)?;
        if sockopt::rcv_buf(socket)? < 2 * BUFFER {
            // SO_RCVBUFFORCE needs CAP_NET_ADMIN. Without it, a caveat reports the smaller buffer.
            let _ = sockopt::force_rcv_buf(socket, BUFFER);
        }
    }
    // For the first datagram, which may arrive before its pump runs. Without timestamps the stream begins when the
    // program reads it.
    let _ = ArrivalTimes::new(socket, true);
    // Without the drop counter, drops at the socket are indistinguishable from other losses; they count as lost
    // in both cases.
    let _ = sockopt::set_drop_counter(socket, true);
    // Of merged datagrams, only the first header would be copied. They have one arrival time, and so no gaps
    // between them.
    let merges = !copies_headers_only(flow) && !matches!(flow.setup.transit, Transit::Spaced(_));
    Ok(sockopt::set_udp_gro(socket, merges).is_ok() && merges)
}

/// Whether only the headers of datagrams are copied.
fn copies_headers_only(flow: &FlowSide) -> bool {
    let setup = &flow.setup;
    setup.socket.skip_rx_copy && setup.stamp.length > 0 && setup.end_mark == EndMark::None
}

/// Receive buffers of one pump.
pub(crate) fn new_batch(flow: &FlowSide) -> RecvBatch {
    let room = if copies_headers_only(flow) { flow.setup.stamp.length } else { MESSAGE_BYTES };
    RecvBatch::new(MESSAGES, room)
}

struct DatagramReceiver<'f> {
    end: StreamEnd,
    socket: &'f UdpSocket,
    meter: CounterWriter<'f>,
    times: ArrivalTimes,
    reader: DatagramReader,
    arrivals: ArrivalStatistics,
    transit: Option<TransitWriter<'f>>,
    spacing: Option<SpacingWriter<'f>>,
    /// End marks received; see [`EndMark::Short`].
    marks: u32,
}

struct DatagramReceivers<'f> {
    flow: &'f FlowSide,
    slots: Vec<DatagramReceiver<'f>>,
    batch: RecvBatch,
    last_arrival: Mono,
    /// How long datagrams gather after a read that took all there were, if their arrival times are known.
    gather: Option<Duration>,
    /// Whether the next read waits until some have gathered.
    rests: bool,
}

impl DatagramReceivers<'_> {
    /// Receives once from a socket; false when its stream has ended.
    fn receive(&mut self, index: usize) -> bool {
        let slot = &mut self.slots[index];
        if let Some(goes_on) = slot.fill(&mut self.batch, self.flow) {
            return goes_on;
        }
        // Without timestamps only one clock is needed, in a loop that runs for every few datagrams.
        let needs_wall = slot.times.are_on() || slot.transit.is_some();
        let (wall_ns, now) = if needs_wall { clock::same_moment() } else { (0, clock::now()) };
        let mark = self.flow.setup.end_mark;
        let headers_only = copies_headers_only(self.flow);
        let stamped = slot.times.are_on();
        let mut bytes = 0;
        let mut first: Option<Origin> = None;
        let mut last_stamp_ns = None;
        // The first datagram decides when the stream begins, and the others need a look at each.
        let runs = !headers_only && mark == EndMark::None && !slot.meter.is_new() && !slot.is_timed();
        'batch: for message in self.batch.iter() {
            if let Some(count) = message.ancillary.dropped {
                slot.arrivals.dropped(count, message.segments());
            }
            let stamp_ns = message.ancillary.arrived_at_ns.filter(|_| stamped);
            let arrived = stamp_ns.and_then(|at| clock::arrival_before(at, wall_ns, now));
            let arrived = arrived.unwrap_or(now);
            let rest = if runs { slot.take_runs(&message, arrived, &mut bytes) } else { message.bytes };
            if rest.len() < message.bytes.len() {
                last_stamp_ns = message.ancillary.arrived_at_ns;
                if rest.is_empty() {
                    continue;
                }
            }
            for datagram in message.split().skip(message.split_before(rest.len())) {
                if slot.is_short_mark(datagram, mark) {
                    if slot.end.mark.is_some() {
                        break 'batch;
                    }
                    continue;
                }
                match slot.reader.read(datagram) {
                    DatagramMeaning::Data(stamp) => {
                        slot.arrivals.sequence.arrive(stamp.seq);
                        slot.arrivals.jitter.arrive(stamp.sent_ns, arrived.as_ns());
                        let length = if headers_only { message.length } else { datagram.len() } as u64;
                        bytes += length;
                        last_stamp_ns = message.ancillary.arrived_at_ns;
                        if slot.meter.is_new() && first.is_none() {
                            let arrived = message.ancillary.arrived_at_ns.and_then(clock::arrival);
                            first = Some(Origin { arrived, bytes: length });
                        }
                        if let Some(transit) = &mut slot.transit {
                            transit.arrive(stamp.sent_ns, wall_ns, length);
                        }
                        if let Some(spacing) = &mut slot.spacing {
                            let arrived_ns = message.ancillary.arrived_at_ns.unwrap_or_else(clock::wall_ns);
                            spacing.arrive(stamp.seq, arrived_ns);
                        }
                    }
                    DatagramMeaning::Negative if mark == EndMark::Negative => {
                        slot.end.mark = Some(datagram.to_vec());
                        break 'batch;
                    }
                    DatagramMeaning::Negative | DatagramMeaning::Stray => slot.arrivals.foreign += 1,
                }
            }
        }
        slot.show();
        self.rests = last_stamp_ns.is_some() && self.batch.get(MESSAGES - 1).is_none();
        if bytes > 0 {
            self.last_arrival = now;
            if slot.count(now, bytes, first, last_stamp_ns) {
                self.flow.control.notify_begun();
            }
        }
        slot.end.mark.is_none()
    }
}

/// The first datagram of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    /// When the kernel received it from the driver; absent without a credible timestamp.
    arrived: Option<Mono>,
    bytes: u64,
}

impl Origin {
    /// When the stream began, and the bytes that had arrived by then, if the first read returned `read_bytes` at
    /// `now`.
    ///
    /// A program that reads late finds many datagrams waiting. They arrived one after the other, so time is
    /// counted from the kernel's timestamp of the first one. Without one, the first read begins the stream.
    fn moment(self, now: Mono, read_bytes: u64) -> (Mono, u64) {
        self.arrived.map_or((now, read_bytes), |at| (at, self.bytes))
    }
}

impl DatagramReceiver<'_> {
    /// Publishes the counts so far.
    fn show(&mut self) {
        self.meter.show(&self.arrivals.counts());
        if let Some(transit) = &mut self.transit {
            transit.show();
        }
        if let Some(spacing) = &mut self.spacing {
            spacing.show();
        }
    }

    /// Receives a batch. Without any datagram, returns whether the stream goes on.
    fn fill(&mut self, batch: &mut RecvBatch, flow: &FlowSide) -> Option<bool> {
        match batch.recv(self.socket) {
            Ok(0) => {
                if !flow.plan.shared() {
                    let _ = flow.pause(self.socket, Interest::READ);
                }
                Some(true)
            }
            Ok(_) => None,
            Err(error) if flow.tolerates(&error) => Some(true),
            Err(error) => {
                self.end.trouble = Some(error.into());
                Some(false)
            }
        }
    }

    /// Whether the times of single datagrams are needed.
    fn is_timed(&self) -> bool {
        self.transit.is_some() || self.spacing.is_some()
    }

    /// Notes the datagrams at the start of a message that follow each other as they were sent, and adds their bytes;
    /// returns what is left of the message.
    #[inline]
    fn take_runs<'m>(&mut self, message: &Datagram<'m>, arrived: Mono, bytes: &mut u64) -> &'m [u8] {
        let mut rest = message.bytes;
        while let Some(run) = self.reader.run(rest, message.segment_size()) {
            self.arrivals.sequence.arrive_run(run.count);
            self.arrivals.jitter.arrive_run(run.sent_ns, arrived.as_ns(), run.count);
            *bytes += run.bytes as u64;
            rest = rest.get(run.bytes..).unwrap_or_default();
        }
        rest
    }

    /// Counts the bytes of a batch that was received at `now`. True if they are the first of the flow.
    fn count(&mut self, now: Mono, bytes: u64, first: Option<Origin>, last_stamp_ns: Option<u64>) -> bool {
        self.end.bytes += bytes;
        let begins = first.is_some_and(|first| {
            let (at, first_bytes) = first.moment(now, bytes);
            self.meter.begin(at, first_bytes)
        });
        let arrived = self.times.of_read(now, last_stamp_ns);
        self.meter.count_read(now, arrived, bytes);
        // Gaps between datagrams need the arrival time of each.
        if self.spacing.is_none() {
            self.times.after(self.socket, now, bytes);
        }
        begins
    }

    /// Whether a datagram is an end mark by its length; keeps the mark that ends the stream.
    #[inline]
    fn is_short_mark(&mut self, datagram: &[u8], mark: EndMark) -> bool {
        let EndMark::Short { bytes, nth } = mark else { return false };
        if datagram.len() > bytes {
            return false;
        }
        self.marks += 1;
        if self.marks >= nth {
            self.end.mark = Some(datagram.to_vec());
        }
        true
    }
}

/// How long the datagrams of a stream with a rate may gather between two reads. A wake-up for each costs both ends more
/// than the datagram itself. Absent unless several gather, all of them fill only a small part of the receive buffer, and
/// the kernel notes when each arrived.
fn gather_time(flow: &FlowSide, slot: &mut DatagramReceiver<'_>) -> Option<Duration> {
    let setup = &flow.setup;
    let even = setup.pacing_tick.is_none();
    let own =
        even && !setup.borrowed && !flow.plan.shared() && !slot.is_timed() && setup.end_mark == EndMark::None;
    let rate = setup.offered.filter(|_| own && slot.times.are_on())?;
    let datagram = setup.datagram_length() as u64;
    let gap = rate.time_for(Bytes::new(datagram))?.as_duration();
    let in_buffer = sockopt::rcv_buf(slot.socket).ok()? / (datagram + PACKET_OVERHEAD);
    let safe = gap.saturating_mul(u32::try_from(in_buffer / BUFFER_DIVISOR).unwrap_or(u32::MAX));
    let time = MAX_GATHER_TIME.min(safe);
    let gathers = time >= gap.saturating_mul(MIN_GATHERED) && time >= MIN_GATHER_TIME;
    gathers.then(|| {
        // Otherwise the wait may be 50 µs longer (the default timer slack). No current kernel refuses.
        let _ = clock::set_timer_slack_ns(1);
        slot.times.keep();
        time
    })
}

/// Receives until an order to stop, and then until nothing arrives any more.
pub(crate) fn read(flow: &FlowSide, pump: usize, batch: RecvBatch) -> PumpEnd {
    let setup = &flow.setup;
    let slots = flow.plan.streams_of(pump).filter_map(|stream| {
        let socket = flow.sockets.udp(stream)?;
        Some(DatagramReceiver {
            end: StreamEnd { stream, ..StreamEnd::default() },
            socket,
            meter: flow.meter(stream),
            times: ArrivalTimes::new(socket, true),
            reader: DatagramReader::new(setup.stamp, setup.tag, setup.datagram_length()),
            arrivals: ArrivalStatistics::after(setup.read_before.get(stream).copied().unwrap_or_default()),
            transit: flow.transits.get(stream).map(TransitWriter::new),
            spacing: flow.spacing_writer(stream),
            marks: 0,
        })
    });
    let mut slots: Vec<_> = slots.collect();
    let gather = slots.first_mut().and_then(|slot| gather_time(flow, slot));
    let mut stream_set =
        DatagramReceivers { flow, slots, batch, last_arrival: Mono::default(), gather, rests: false };
    let ended = if flow.plan.shared() { read_many(&mut stream_set) } else { read_one(&mut stream_set) };
    if let Err(trouble) = ended {
        for slot in &mut stream_set.slots {
            slot.end.trouble.get_or_insert_with(|| trouble.clone());
        }
    }
    for slot in &mut stream_set.slots {
        slot.end.sequence = Some(slot.arrivals.sequence.end());
        slot.times.end(slot.socket);
        flow.stream_ended(&slot.meter, slot.end.trouble.as_ref());
    }
    PumpEnd { streams: stream_set.slots.into_iter().map(|slot| slot.end).collect(), ..PumpEnd::default() }
}

fn read_one(stream_set: &mut DatagramReceivers<'_>) -> Result<(), StreamError> {
    let mut timeout = Silence::default();
    while !timeout.is_over(stream_set)? {
        if !stream_set.receive(0) {
            break;
        }
        if let Some(time) = stream_set.gather.filter(|_| std::mem::take(&mut stream_set.rests)) {
            clock::sleep_until(stream_set.last_arrival + time);
        }
    }
    Ok(())
}

fn read_many(stream_set: &mut DatagramReceivers<'_>) -> Result<(), StreamError> {
    let poller = Poller::new()?;
    for (index, slot) in stream_set.slots.iter().enumerate() {
        poller.add(slot.socket, index as u64, Interest::READ)?;
    }
    let mut events = Events::with_capacity(EVENTS);
    let mut timeout = Silence::default();
    let mut open = stream_set.slots.len();
    while open > 0 && !timeout.is_over(stream_set)? {
        poller.wait(&mut events, clock::now() + stream_set.flow.control.max_wait())?;
        for ready in events.iter() {
            let index = ready.token as usize;
            if !stream_set.receive(index) {
                poller.remove(stream_set.slots[index].socket)?;
                open -= 1;
            }
        }
    }
    Ok(())
}

/// Time at which the pump noticed the order to stop.
#[derive(Default)]
struct Silence {
    stop_noticed: Option<Mono>,
}

impl Silence {
    fn is_over(&mut self, stream_set: &DatagramReceivers<'_>) -> Result<bool, StreamError> {
        let control = &stream_set.flow.control;
        if control.aborted() {
            return Err(StreamError::Aborted);
        }
        let deadline = control.read_until();
        if deadline == Mono::FAR {
            return Ok(false);
        }
        let now = clock::now();
        let stop_noticed = *self.stop_noticed.get_or_insert(now);
        Ok(now >= deadline || now.since(stop_noticed.max(stream_set.last_arrival)) >= STOP_SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_begins_where_the_kernel_had_its_first_datagram() {
        let now = Mono(50_000_000);
        // Read 17 ms late, with 200 datagrams waiting: they arrived during these 17 ms and not all at once.
        let late = Origin { arrived: Some(Mono(33_000_000)), bytes: 1448 };
        assert_eq!(late.moment(now, 200 * 1448), (Mono(33_000_000), 1448));
        let unknown = Origin { arrived: None, bytes: 1448 };
        assert_eq!(unknown.moment(now, 200 * 1448), (now, 200 * 1448));
    }
}
