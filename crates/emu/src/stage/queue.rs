//! The queue: packets waiting in front of a line, and which of them are dropped or marked when it grows.
//!
//! A queue is not a stage by itself. Batches are offered to it with the buffer space available to them; the
//! line takes the next when it is idle. Packets that the line has taken are no longer in the queue, so the
//! caller provides the free space and the bytes ahead.

use linerate_units::{Span, Timestamp};

use crate::link_direction::QueueDiscipline;
use crate::packet_batch::{Framing, PacketBatch, PacketSizes};
use crate::stage::codel::{self, CoDel};
use crate::stage::red::{self, Red};
use crate::stage::shaper::PacketStarts;
use crate::stage::store::BatchStore;
use crate::stage::{Count, Stats};

/// The buffer space available to a batch.
///
/// # Units
/// bytes of frames, as [`Framing::frame`] counts
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that still fit.
    pub free: u64,
    /// Bytes waiting outside the queue: packets of the batch on the line that have not started.
    pub ahead: u64,
    /// Bytes of the first packets of the batch that start as they arrive: they need no buffer space, and do not
    /// wait in front of the others.
    pub passing: u64,
}

impl Room {
    /// The bytes that the kept packets of the batch may have together.
    pub(super) fn for_batch(&self) -> u64 {
        self.free.saturating_add(self.passing)
    }
}

/// The first batch in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// When its last packet arrived: not later than it was offered.
    pub arrived: Timestamp,
    /// Time from the arrival of its first packet to that of its last.
    pub spread: Span,
    /// Lengths of its packets.
    pub sizes: PacketSizes,
}

impl Head {
    /// A batch whose last packet arrived at `arrived`.
    #[must_use]
    pub fn of(arrived: Timestamp, batch: &impl PacketBatch) -> Self {
        Self { arrived, spread: batch.spread(), sizes: batch.sizes() }
    }
}

/// The packets in front of a line.
#[derive(Debug)]
pub struct Queue<T> {
    store: BatchStore<T>,
    control: DisciplineState,
    seed: u64,
}

/// The state of a discipline.
#[derive(Debug)]
enum DisciplineState {
    TailDrop,
    Red(Box<Red>),
    CoDel(CoDel),
}

impl DisciplineState {
    fn new(discipline: QueueDiscipline, seed: u64) -> Self {
        match discipline {
            QueueDiscipline::TailDrop => Self::TailDrop,
            QueueDiscipline::Red(settings) => Self::Red(Box::new(Red::new(settings, seed))),
            QueueDiscipline::CoDel(settings) => Self::CoDel(CoDel::new(settings)),
        }
    }
}

impl<T: PacketBatch> Queue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(discipline: QueueDiscipline, framing: Framing, seed: u64) -> Self {
        Self { store: BatchStore::new(framing), control: DisciplineState::new(discipline, seed), seed }
    }

    /// Changes discipline and framing. Waiting packets are kept; so is the state of the discipline, if only its
    /// settings change. Waiting packets are counted as if they had arrived with the new framing.
    pub fn reconfigure(&mut self, discipline: QueueDiscipline, framing: Framing) {
        match (&mut self.control, discipline) {
            (DisciplineState::Red(red), QueueDiscipline::Red(settings)) => red.set(settings),
            (DisciplineState::CoDel(codel), QueueDiscipline::CoDel(settings)) => codel.set(settings),
            (control, discipline) => *control = DisciplineState::new(discipline, self.seed),
        }
        self.store.reframe(framing);
    }

    /// Offers a batch whose last packet arrives at `now`: packets that fit and that the discipline does not
    /// drop are queued.
    pub fn offer(&mut self, now: Timestamp, batch: T, room: Room) {
        self.store.arrived(&batch);
        match &mut self.control {
            DisciplineState::Red(red) => red::offer(red, &mut self.store, now, batch, room),
            DisciplineState::TailDrop | DisciplineState::CoDel(_) => {
                self.store.keep_fitting(now, batch, room.for_batch())
            }
        }
    }

    /// The first batch in the queue. [`Queue::take`] may return a part of it, or another: the discipline
    /// decides.
    #[must_use]
    pub fn head(&self) -> Option<Head> {
        let (arrived, batch) = self.store.head()?;
        Some(Head::of(arrived, batch))
    }

    /// Takes the next batch for the line, and returns it with the time at which its last packet arrived. `starts`
    /// tells when the packets of a batch start if it is the next.
    ///
    /// Everything that arrives before the line is ready for the first packet must have been offered. The batch ends
    /// before a packet whose fate depends on later arrivals, so that each packet is decided when the line is ready
    /// for it: at its start, or when it begins to wait for the tokens of a shaper.
    pub fn take(&mut self, starts: impl Fn(&Head) -> PacketStarts) -> Option<(Timestamp, T)> {
        let store = &mut self.store;
        let (arrived, batch) = match &mut self.control {
            DisciplineState::TailDrop => store.take_head()?,
            DisciplineState::Red(red) => {
                let (arrived, batch) = store.take_head()?;
                if store.head().is_none() {
                    let starts = starts(&Head::of(arrived, &batch));
                    red.emptied(starts.start_of(batch.packets() - 1), starts.sustained_time());
                }
                (arrived, batch)
            }
            DisciplineState::CoDel(state) => codel::take(state, store, starts)?,
        };
        store.give(&batch);
        Some((arrived, batch))
    }

    /// The packets in the queue.
    #[must_use]
    pub fn backlog(&self) -> Count {
        self.store.stats().held
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use linerate_units::{Bitrate, Bytes, Ratio};
    use proptest::prelude::*;

    use super::*;
    use crate::link_direction::{CoDelSettings, RedSettings};
    use crate::stage::Stage;
    use crate::stage::cut::{PacketArrivals, split};
    use crate::stage::laws::{Laws, Numbered, arrivals, check};
    use crate::stage::shaper::Line;

    /// A frame of 1514 bytes with its check sequence.
    const FRAME: u64 = 1518;
    const PLAIN: Framing = Framing { tags: 0 };

    fn at(ns: u64) -> Timestamp {
        Timestamp::from_ns(ns)
    }

    fn room(free: u64) -> Room {
        Room { free, ahead: 0, passing: 0 }
    }

    /// Packets that start one after the other from `start` on.
    fn starts_from(start: Timestamp, ns_per_byte: u64) -> impl Fn(&Head) -> PacketStarts {
        let line = Line::<Numbered>::new(Bitrate::from_bps(8e9 / ns_per_byte as f64), None, PLAIN);
        move |head| line.starts(&Head { arrived: start, spread: Span::ZERO, ..*head })
    }

    #[test]
    fn packets_that_fit_are_kept_to_the_byte() {
        let kept = |free| {
            let mut queue = Queue::new(QueueDiscipline::TailDrop, PLAIN, 1);
            let batch = Numbered::new(0, 10, 1514).ending_with(100).spread_over(Span::from_ns(900));
            queue.offer(at(1000), batch, room(free));
            (queue.backlog().packets, queue.backlog().bytes.get(), queue.stats().dropped.packets)
        };
        assert_eq!(kept(0), (0, 0, 10));
        assert_eq!(kept(103), (0, 0, 10));
        assert_eq!(kept(FRAME - 1), (1, 104, 9), "the short one");
        assert_eq!(kept(5 * FRAME), (5, 5 * FRAME, 5));
        assert_eq!(kept(5 * FRAME + 103), (5, 5 * FRAME, 5));
        assert_eq!(kept(6 * FRAME - 1), (6, 5 * FRAME + 104, 4), "the short one");
        assert_eq!(kept(6 * FRAME), (6, 6 * FRAME, 4));
        assert_eq!(kept(9 * FRAME + 103), (9, 9 * FRAME, 1));
        assert_eq!(kept(9 * FRAME + 104), (10, 9 * FRAME + 104, 0));
        assert_eq!(kept(u64::MAX), (10, 9 * FRAME + 104, 0));
    }

    #[test]
    fn what_is_kept_keeps_its_arrival() {
        let mut queue = Queue::new(QueueDiscipline::TailDrop, PLAIN, 1);
        queue.offer(at(1000), Numbered::new(0, 10, 1514).spread_over(Span::from_ns(900)), room(4 * FRAME));
        let head = queue.head().unwrap();
        assert_eq!(
            (head.arrived, head.spread),
            (at(400), Span::from_ns(300)),
            "packets at 100, 200, 300, 400"
        );
        let (arrived, batch) = queue.take(starts_from(at(1000), 1)).unwrap();
        assert_eq!((arrived, batch.ids()), (at(400), 0..4));
        assert_eq!((queue.head(), queue.backlog()), (None, Count::default()));
    }

    #[test]
    fn what_waits_stays_when_discipline_and_framing_change() {
        let mut queue = Queue::new(QueueDiscipline::TailDrop, PLAIN, 1);
        queue.offer(at(0), Numbered::new(0, 10, 1514), room(u64::MAX));
        queue.take(starts_from(at(0), 1));
        queue.offer(at(0), Numbered::new(10, 10, 1514), room(u64::MAX));
        let settings = CoDelSettings { target: Span::from_ms(5), interval: Span::from_ms(100), ecn: false };
        queue.reconfigure(QueueDiscipline::CoDel(settings), Framing { tags: 1 });
        assert_eq!(queue.backlog(), Count { packets: 10, bytes: Bytes::new(10 * (FRAME + 4)) });
        assert!(queue.stats().balanced());
        assert_eq!(queue.take(starts_from(at(1), 1)).unwrap().1.ids(), 10..20);
        assert!(queue.stats().balanced());
    }

    /// The minimal stage with a queue: a line of constant rate after it, and a buffer.
    struct QueueStage {
        queue: Queue<Numbered>,
        capacity: u64,
        ns_per_byte: u64,
        /// Splits every batch into single packets first.
        singly: bool,
        pushed: Timestamp,
        free_at: Timestamp,
        /// The batch on the line: its start, the time of each packet, and the packets.
        sending: Option<(Timestamp, Span, PacketSizes)>,
        sent: VecDeque<(Timestamp, Numbered)>,
        given: Count,
        /// Number of each packet sent, when it started, and whether it was marked.
        starts: Vec<(u64, Timestamp, bool)>,
    }

    impl QueueStage {
        fn new(discipline: QueueDiscipline, capacity: u64, ns_per_byte: u64, singly: bool) -> Self {
            Self {
                queue: Queue::new(discipline, PLAIN, 1),
                capacity,
                ns_per_byte,
                singly,
                pushed: Timestamp::START,
                free_at: Timestamp::START,
                sending: None,
                sent: VecDeque::new(),
                given: Count::default(),
                starts: Vec::new(),
            }
        }

        fn ahead(&self, now: Timestamp) -> u64 {
            self.sending.map_or(0, |(start, time, sizes)| {
                let started = now.since(start).as_ns() / time.as_ns() + 1;
                let started =
                    u32::try_from(started).map_or(sizes.packets, |started| started.min(sizes.packets));
                PLAIN.frames_of(&sizes, sizes.packets) - PLAIN.frames_of(&sizes, started)
            })
        }

        fn offer(&mut self, now: Timestamp, arrived: Timestamp, batch: Numbered) {
            let ahead = self.ahead(now);
            let waits = self.queue.backlog().bytes.get() + ahead;
            assert!(waits <= self.capacity, "{waits} bytes wait in {}", self.capacity);
            self.queue.offer(arrived, batch, Room { free: self.capacity - waits, ahead, passing: 0 });
        }

        fn advance(&mut self, now: Timestamp) {
            let time = |length| Span::from_ns(self.ns_per_byte * PLAIN.wire(length));
            while self.free_at <= now && self.queue.head().is_some() {
                let start = self.free_at.max(self.pushed);
                let starts = starts_from(start, self.ns_per_byte);
                let (_, batch) = self.queue.take(starts).expect("something waits");
                let sizes = batch.sizes();
                for (index, id) in batch.ids().enumerate() {
                    let start = start + time(sizes.each).saturating_mul(index as u64);
                    self.starts.push((id, start, batch.marked()));
                }
                let spread = time(sizes.each).saturating_mul(u64::from(sizes.packets - 1));
                self.free_at = start + spread + time(sizes.last);
                self.sending = Some((start, time(sizes.each), sizes));
                self.sent.push_back((self.free_at, batch.spread_over(spread)));
            }
        }
    }

    impl Stage<Numbered> for QueueStage {
        fn push(&mut self, now: Timestamp, batch: Numbered) {
            self.advance(now);
            self.pushed = now;
            let arrivals = PacketArrivals::of(&batch, now);
            if self.singly {
                let (mut rest, mut index) = (Some(batch), 0);
                while let Some(mut packet) = rest {
                    rest = (packet.packets() > 1).then(|| split(&mut packet, 1));
                    self.offer(now, arrivals.at(index), packet);
                    index += 1;
                }
            } else {
                self.offer(now, now, batch);
            }
            self.advance(now);
        }

        fn pop(&mut self, now: Timestamp) -> Option<Numbered> {
            self.advance(now);
            let (_, batch) = self.sent.pop_front_if(|(at, _)| *at <= now)?;
            self.given.add(Count::of(&batch, PLAIN));
            Some(batch)
        }

        fn deadline(&self) -> Option<Timestamp> {
            self.sent.front().map(|(at, _)| *at)
        }

        fn stats(&self) -> Stats {
            let mut stats = self.queue.stats();
            stats.held.add(stats.given);
            stats.held.take(self.given);
            Stats { given: self.given, ..stats }
        }
    }

    fn discipline() -> impl Strategy<Value = QueueDiscipline> {
        let red = (0..40_000_u64, 1..60_000_u64, 0.0..=0.5, 0.001..=1.0, any::<bool>());
        let red = red.prop_map(|(min, more, most, weight, ecn)| {
            QueueDiscipline::Red(RedSettings {
                min: Bytes::new(min),
                max: Bytes::new(min + more),
                max_probability: Ratio::new(most).unwrap(),
                weight: Ratio::new(weight).unwrap(),
                ecn,
            })
        });
        let codel = (0..1_000_000_u64, 0..1_000_000_u64, any::<bool>());
        let codel = codel.prop_map(|(target, interval, ecn)| {
            let (target, interval) = (Span::from_ns(target), Span::from_ns(interval));
            QueueDiscipline::CoDel(CoDelSettings { target, interval, ecn })
        });
        prop_oneof![Just(QueueDiscipline::TailDrop), red, codel]
    }

    proptest! {
        #[test]
        fn a_line_behind_a_queue_keeps_the_laws(
            arriving in arrivals(), discipline in discipline(), capacity in 0..500_000_u64, ns_per_byte in 1..40_u64
        ) {
            check(&arriving, Laws::IN_ORDER, || QueueStage::new(discipline, capacity, ns_per_byte, false))?;
        }

        /// Packets in batches are treated exactly like single packets.
        #[test]
        fn a_batch_fares_as_its_packets_would(
            arriving in arrivals(), discipline in discipline(), capacity in 0..500_000_u64, ns_per_byte in 1..40_u64
        ) {
            let [whole, singly] = [false, true].map(|singly| {
                let mut line = QueueStage::new(discipline, capacity, ns_per_byte, singly);
                for (now, batch) in &arriving {
                    // In whole nanoseconds from packet to packet, so that a part of a batch has the same times
                    // as the whole.
                    let gaps = u64::from(batch.packets() - 1).max(1);
                    let even = Span::from_ns(batch.spread().as_ns() / gaps * gaps);
                    line.push(*now, batch.clone().spread_over(even));
                }
                line.advance(at(u64::MAX));
                (line.starts, line.queue.stats())
            });
            prop_assert_eq!(whole.0, singly.0);
            prop_assert_eq!(whole.1, singly.1);
        }
    }
}
