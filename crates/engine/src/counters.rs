//! Counters of each stream, written by one pump only.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use linerate_sock::Mono;

use crate::measured::MeasuredPart;

/// Value for an instant that has not come yet.
const NEVER: u64 = u64::MAX;
/// Most attempts to read counters that belong together. The writer changes them within nanoseconds, unless it loses
/// its CPU just then.
const MAX_ATTEMPTS: u32 = 1000;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Counters of one stream on their own cache lines: one writer, any number of readers. They never
        /// decrease.
        #[derive(Debug)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            /// Odd while the writer changes counters that belong together (a sequence lock).
            version: AtomicU64,
            $($name: AtomicU64,)+
        }

        /// A snapshot of the counters.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct Counts { $($(#[$doc])* pub(crate) $name: u64,)+ }

        impl Counters {
            pub(crate) fn new() -> Self {
                let counters = Self { version: AtomicU64::new(0), $($name: AtomicU64::new(0),)+ };
                counters.first_at.store(NEVER, Relaxed);
                counters
            }

            /// Counters that belong together: bytes, calls, and the time of the last call. Where threads wait for a
            /// CPU, reader and writer often get one at the same moment.
            pub(crate) fn read(&self) -> Counts {
                self.read_together().unwrap_or_else(|| self.read_once())
            }

            /// Counters of one moment; absent if the writer was in the middle of a change in every attempt.
            fn read_together(&self) -> Option<Counts> {
                for _ in 0..MAX_ATTEMPTS {
                    let before = self.version.load(Acquire);
                    let counts = self.read_once();
                    fence(Acquire);
                    if before.is_multiple_of(2) && self.version.load(Relaxed) == before {
                        return Some(counts);
                    }
                    spin_loop();
                }
                None
            }

            fn read_once(&self) -> Counts {
                Counts { $($name: self.$name.load(Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Bytes that the application read or wrote.
    total,
    /// System calls that moved them.
    calls,
    /// Reads with a kernel timestamp of the arrival of their bytes.
    stamped,
    /// Bytes before the measured part (`-O`).
    omitted,
    /// Bytes in the measured part.
    inside,
    /// Time of the first byte, ns; `u64::MAX` before it.
    first_at,
    /// Bytes of the first read; 0 at a sender.
    first_bytes,
    /// Time of the last byte in the measured part, ns.
    last_inside,
    /// Time of the last byte, ns.
    last_at,
    /// Datagrams sent or received.
    packets,
    /// Highest sequence number of a datagram, counted from 1.
    highest,
    /// Datagrams missing below the highest number.
    lost,
    /// Datagrams that arrived after one with a higher number.
    out_of_order,
    /// Datagrams that arrived more than once.
    duplicates,
    /// Datagrams that the kernel dropped at the socket.
    socket_drops,
    /// Jitter, ns; the sum over several streams.
    jitter,
    /// Datagrams that the kernel refused to send.
    send_errors,
    /// Datagrams of other tests.
    foreign,
    /// 1 when the stream has ended; the number of ended streams in a sum.
    ended,
    /// The note in the stream's first block, its eight bytes as a number; 0 before it, and in a sum.
    first_note,
    /// The note in the stream's last block.
    last_note,
}

/// With a single writer, a load and a store are as good as an atomic addition, and do not lock the bus.
#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Single-writer handle to one stream's counters, held by the pump that serves the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterWriter<'f> {
    counters: &'f Counters,
    part: &'f MeasuredPart,
}

impl<'f> CounterWriter<'f> {
    pub(crate) const fn new(counters: &'f Counters, part: &'f MeasuredPart) -> Self {
        Self { counters, part }
    }

    /// Records the first byte of this stream: the first read at a receiver, the moment before the first write
    /// at a sender. True when it is the first byte of the flow.
    pub(crate) fn begin(&self, now: Mono, bytes: u64) -> bool {
        self.counters.first_bytes.store(bytes, Relaxed);
        self.counters.first_at.store(now.as_ns(), Relaxed);
        self.part.begin(now)
    }

    /// Whether [`CounterWriter::begin`] has not been called yet.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.counters.first_at.load(Relaxed) == NEVER
    }

    /// Records bytes that were moved by a call which returned at `now`.
    #[inline]
    pub(crate) fn count(&self, now: Mono, bytes: u64) {
        self.count_until(now, now, bytes);
    }

    /// Records bytes that were read by a call which returned at `now`, and which `arrived` before.
    #[inline]
    pub(crate) fn count_read(&self, now: Mono, arrived: Option<Mono>, bytes: u64) {
        if arrived.is_some() {
            add(&self.counters.stamped, 1);
        }
        self.count_until(now, arrived.unwrap_or(now), bytes);
    }

    /// The call that returned at `now` decides what belongs to the measured part, as the sampler does. Time is
    /// counted until `at`.
    #[inline]
    fn count_until(&self, now: Mono, at: Mono, bytes: u64) {
        let own = self.counters;
        let version = own.version.load(Relaxed);
        own.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        add(&own.total, bytes);
        add(&own.calls, 1);
        own.last_at.store(at.as_ns(), Relaxed);
        if now < self.part.opens() {
            add(&own.omitted, bytes);
        } else if now <= self.part.closes() {
            add(&own.inside, bytes);
            own.last_inside.store(at.as_ns(), Relaxed);
        }
        own.version.store(version.wrapping_add(2), Release);
    }

    /// Records datagrams sent and datagrams that the kernel refused.
    #[inline]
    pub(crate) fn sent(&self, packets: u64, refused: u64) {
        add(&self.counters.packets, packets);
        add(&self.counters.send_errors, refused);
    }

    /// Publishes the notes of the first and the last block.
    #[inline]
    pub(crate) fn noted(&self, first: [u8; 8], last: [u8; 8]) {
        self.counters.last_note.store(u64::from_ne_bytes(last), Relaxed);
        self.counters.first_note.store(u64::from_ne_bytes(first), Relaxed);
    }

    /// Records that the stream has ended.
    pub(crate) fn end(&self) {
        self.counters.ended.store(1, Relaxed);
    }

    /// Publishes the datagram counts of a receiver.
    #[inline]
    pub(crate) fn show(&self, counts: &DatagramCounts) {
        let own = self.counters;
        own.packets.store(counts.packets, Relaxed);
        own.highest.store(counts.highest, Relaxed);
        own.lost.store(counts.lost, Relaxed);
        own.out_of_order.store(counts.out_of_order, Relaxed);
        own.duplicates.store(counts.duplicates, Relaxed);
        own.socket_drops.store(counts.socket_drops, Relaxed);
        own.jitter.store(counts.jitter, Relaxed);
        own.foreign.store(counts.foreign, Relaxed);
    }
}

/// A receiver's datagram counts of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DatagramCounts {
    /// Datagrams of this test.
    pub(crate) packets: u64,
    /// Highest sequence number, counted from 1.
    pub(crate) highest: u64,
    /// Missing below the highest number.
    pub(crate) lost: u64,
    /// Arrived after one with a higher number.
    pub(crate) out_of_order: u64,
    /// Arrived more than once.
    pub(crate) duplicates: u64,
    /// Dropped by the kernel at the socket.
    pub(crate) socket_drops: u64,
    /// Jitter, ns.
    pub(crate) jitter: u64,
    /// Datagrams of other tests.
    pub(crate) foreign: u64,
}

impl Counts {
    /// Time of the first byte; absent before it.
    pub(crate) fn begun(&self) -> Option<Mono> {
        (self.first_at != NEVER).then_some(Mono(self.first_at))
    }

    /// Bytes of all streams.
    pub(crate) fn total_of(streams: &[Counters]) -> u64 {
        streams.iter().map(|stream| stream.total.load(Relaxed)).sum()
    }

    /// Sums over all streams; the earliest first byte and the latest last byte.
    pub(crate) fn of(streams: &[Counters]) -> Self {
        let start = Self { first_at: NEVER, ..Self::default() };
        streams.iter().map(Counters::read).fold(start, Self::with)
    }

    fn with(self, other: Self) -> Self {
        let first = if other.first_at < self.first_at { &other } else { &self };
        Self {
            first_at: first.first_at,
            first_bytes: first.first_bytes,
            last_inside: self.last_inside.max(other.last_inside),
            last_at: self.last_at.max(other.last_at),
            total: self.total + other.total,
            calls: self.calls + other.calls,
            stamped: self.stamped + other.stamped,
            omitted: self.omitted + other.omitted,
            inside: self.inside + other.inside,
            packets: self.packets + other.packets,
            highest: self.highest.saturating_add(other.highest),
            lost: self.lost.saturating_add(other.lost),
            out_of_order: self.out_of_order + other.out_of_order,
            duplicates: self.duplicates + other.duplicates,
            socket_drops: self.socket_drops + other.socket_drops,
            jitter: self.jitter + other.jitter,
            send_errors: self.send_errors + other.send_errors,
            foreign: self.foreign + other.foreign,
            ended: self.ended + other.ended,
            first_note: 0,
            last_note: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Span;

    const MS: u64 = 1_000_000;

    fn part(omit_ms: u64, measured_ms: Option<u64>) -> MeasuredPart {
        MeasuredPart::new(Span::from_ms(omit_ms), measured_ms.map(Span::from_ms))
    }

    fn read(meter: &CounterWriter<'_>, at_ms: u64, bytes: u64) {
        let now = Mono(at_ms * MS);
        if meter.is_new() {
            meter.begin(now, bytes);
        }
        meter.count(now, bytes);
    }

    #[test]
    fn a_part_without_omission_begins_with_the_first_read_and_has_a_tail() {
        let (counters, part) = (Counters::new(), part(0, Some(100)));
        let meter = CounterWriter::new(&counters, &part);
        for (at, bytes) in [(1000, 7), (1050, 20), (1100, 30), (1101, 500)] {
            read(&meter, at, bytes);
        }
        let counts = counters.read();
        assert_eq!((counts.omitted, counts.inside, counts.total), (0, 57, 557));
        assert_eq!(counts.first_bytes, 7);
        assert_eq!((counts.first_at, counts.last_inside, counts.last_at), (1000 * MS, 1100 * MS, 1101 * MS));
        assert_eq!(counts.calls, 4);
    }

    #[test]
    fn what_is_omitted_is_counted_apart() {
        let (counters, part) = (Counters::new(), part(50, Some(100)));
        let meter = CounterWriter::new(&counters, &part);
        for (at, bytes) in [(1000, 1), (1049, 10), (1050, 100), (1150, 1000), (1151, 10_000)] {
            read(&meter, at, bytes);
        }
        let counts = counters.read();
        assert_eq!((counts.omitted, counts.inside, counts.total), (11, 1100, 11_111));
        assert_eq!((part.opens(), part.closes()), (Mono(1050 * MS), Mono(1150 * MS)));
    }

    #[test]
    fn the_earliest_stream_begins_the_flow_whichever_reports_first() {
        let part = part(0, None);
        let pumps = [Counters::new(), Counters::new()];
        assert!(CounterWriter::new(&pumps[0], &part).begin(Mono(20), 5));
        assert!(!CounterWriter::new(&pumps[1], &part).begin(Mono(10), 6));
        assert_eq!(part.begun(), Some(Mono(10)));
        assert_eq!(part.closes(), Mono::FAR);
        let sum = Counts::of(&pumps);
        assert_eq!((sum.begun(), sum.first_bytes), (Some(Mono(10)), 6));
    }

    #[test]
    fn bytes_and_the_time_of_the_last_one_are_read_together() {
        const READS: u64 = 200_000;
        let (counters, part) = (Counters::new(), part(0, None));
        let done = std::sync::atomic::AtomicBool::new(false);
        let (together, torn) = std::thread::scope(|scope| {
            scope.spawn(|| {
                let meter = CounterWriter::new(&counters, &part);
                let mut at = 0;
                while !done.load(Relaxed) {
                    at += 1;
                    meter.count(Mono(at), 1);
                    // A system call lies between two counts.
                    (0..200).for_each(|_| spin_loop());
                }
            });
            let together: Vec<Counts> = (0..READS).filter_map(|_| counters.read_together()).collect();
            done.store(true, Relaxed);
            let torn = together.iter().filter(|counts| counts.total != counts.last_at).count();
            (together.len(), torn)
        });
        assert_eq!(torn, 0, "of {together}");
        // How often the writer loses its CPU within a change, is the machine's.
        assert!(together > 0);
    }

    #[test]
    fn a_writer_that_never_finishes_a_change_stops_no_reader() {
        let counters = Counters::new();
        counters.version.store(1, Relaxed);
        counters.total.store(7, Relaxed);
        assert_eq!(counters.read().total, 7);
    }

    #[test]
    fn before_the_first_byte_nothing_has_begun() {
        assert_eq!(part(5, Some(5)).begun(), None);
        assert_eq!(Counts::of(&[Counters::new()]).begun(), None);
    }
}
