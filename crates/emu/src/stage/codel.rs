//! Controlled delay: which of the waiting packets are sent.

use linerate_units::{Span, Timestamp};

use crate::link_direction::CoDelSettings;
use crate::packet_batch::{Framing, PacketBatch, PacketSizes};
use crate::stage::cut::PacketArrivals;
use crate::stage::queue::Head;
use crate::stage::shaper::PacketStarts;
use crate::stage::store::BatchStore;

/// The state of CoDel. Decisions are pure state changes, so a copy can be used to predict them.
///
/// For the first packet that the line could send at a given time, [`CoDel::should_drop`] decides whether it is
/// hit, that is, dropped or marked. If marked ([`CoDel::marked`]), it is sent; if dropped ([`CoDel::dropped`]),
/// the next packet may be hit at the same time.
///
/// # Source
/// RFC 8289 §5, the pseudo-code; marking, which it leaves open, counts as a drop and ends the sequence
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoDel {
    settings: CoDelSettings,
    /// When packets will have waited above the target for an interval.
    above_until: Option<Timestamp>,
    striking: bool,
    next_strike: Timestamp,
    /// Hits since the current sequence started.
    count: u32,
    /// `count` at the start of the current sequence.
    began_with: u32,
}

impl CoDel {
    pub(super) fn new(settings: CoDelSettings) -> Self {
        Self {
            settings,
            above_until: None,
            striking: false,
            next_strike: Timestamp::START,
            count: 0,
            began_with: 0,
        }
    }

    pub(super) fn set(&mut self, settings: CoDelSettings) {
        self.settings = settings;
    }

    /// Whether the packet at the head is hit; `above` means that it has waited for at least the target and that
    /// more than a full-size packet waits behind it.
    fn should_drop(&mut self, now: Timestamp, above: bool) -> bool {
        let ok = self.above_long_enough(now, above);
        self.striking &= ok;
        ok && (!self.striking || now >= self.next_strike)
    }

    /// Records that the packet was marked.
    fn marked(&mut self, now: Timestamp) {
        if self.striking {
            self.count = self.count.saturating_add(1);
            self.next_strike = self.after(self.next_strike);
        } else {
            self.begin(now);
        }
    }

    /// Records that the packet was dropped; returns whether the one now at the head is hit too.
    fn dropped(&mut self, now: Timestamp, above: bool) -> bool {
        let ok = self.above_long_enough(now, above);
        if !self.striking {
            self.begin(now);
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.striking = ok;
        if ok {
            self.next_strike = self.after(self.next_strike);
        }
        ok && now >= self.next_strike
    }

    /// The time until which packets that are all above pass without a change of state; `None` if unknown.
    fn quiet_until(&self, now: Timestamp) -> Option<Timestamp> {
        let above_until = self.above_until?;
        match self.striking {
            false => Some(above_until),
            true => (above_until <= now).then_some(self.next_strike),
        }
    }

    fn above_long_enough(&mut self, now: Timestamp, above: bool) -> bool {
        if !above {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            Some(until) => now >= until,
            None => {
                self.above_until = Some(now + self.settings.interval);
                false
            }
        }
    }

    /// Starts a sequence of hits: at the rate at which the last one ended, if that was recent.
    fn begin(&mut self, now: Timestamp) {
        let gained = self.count.saturating_sub(self.began_with);
        let recent = now.since(self.next_strike) < self.settings.interval.saturating_mul(16);
        self.count = if gained > 1 && recent { gained } else { 1 };
        self.began_with = self.count;
        self.next_strike = self.after(now);
        self.striking = true;
    }

    /// The control law.
    fn after(&self, at: Timestamp) -> Timestamp {
        let interval = self.settings.interval.as_ns() as f64;
        at + Span::from_ns((interval / f64::from(self.count).sqrt()).round() as u64)
    }
}

/// Takes the next batch for the line, with the arrival of its last packet.
pub(super) fn take<T: PacketBatch>(
    codel: &mut CoDel,
    store: &mut BatchStore<T>,
    starts: impl Fn(&Head) -> PacketStarts,
) -> Option<(Timestamp, T)> {
    let settings = codel.settings;
    let outlook = |store: &BatchStore<T>| Outlook::of(store, &starts);
    let first = outlook(store)?;
    let mut ready = first.ready;
    let mut struck = codel.should_drop(ready, first.above(settings, 0, ready));
    while struck {
        let (arrived, mut packet) = store.take_packets(1)?;
        if settings.ecn && packet.mark() {
            codel.marked(ready);
            store.mark(1);
            return Some((arrived, packet));
        }
        store.drop_batch(&packet);
        struck = match outlook(store) {
            Some(next) => {
                ready = ready.max(next.ready);
                codel.dropped(ready, next.above(settings, 0, ready))
            }
            None => codel.dropped(ready, false),
        };
    }
    let passing = outlook(store)?.passing_packets(codel);
    store.take_packets(passing)
}

/// What happens to the packets of the batch at the head if the line takes them now.
#[derive(Debug, Clone)]
struct Outlook {
    /// When the line is ready for the first.
    ready: Timestamp,
    starts: PacketStarts,
    arrivals: PacketArrivals,
    sizes: PacketSizes,
    framing: Framing,
    /// Bytes waiting, the batch included.
    held: u64,
    /// Bytes of a full-size packet.
    full: u64,
}

impl Outlook {
    fn of<T: PacketBatch>(store: &BatchStore<T>, starts: impl Fn(&Head) -> PacketStarts) -> Option<Self> {
        let (arrived, batch) = store.head()?;
        let starts = starts(&Head::of(arrived, batch));
        Some(Self {
            ready: starts.next_ready(),
            starts,
            arrivals: PacketArrivals::of(batch, arrived),
            sizes: batch.sizes(),
            framing: store.framing(),
            held: store.stats().held.bytes.get(),
            full: store.largest(),
        })
    }

    /// How long packet `index` has waited when the line is ready for it at `ready`.
    fn wait(&self, index: u32, ready: Timestamp) -> Span {
        ready.since(self.arrivals.at(index))
    }

    /// Whether more than a full-size packet waits behind packet `index`. More may arrive until it starts.
    fn backed(&self, index: u32) -> bool {
        self.held.saturating_sub(self.framing.frames_of(&self.sizes, index + 1)) > self.full
    }

    fn above(&self, settings: CoDelSettings, index: u32, ready: Timestamp) -> bool {
        self.wait(index, ready) >= settings.target && self.backed(index)
    }

    /// How many packets pass before one that is hit or cannot be decided yet. The first is known to pass; the
    /// state after it becomes the state after the last of them.
    fn passing_packets(&self, codel: &mut CoDel) -> u32 {
        let settings = codel.settings;
        let last = self.sizes.packets - 1;
        if last == 0 || self.all_pass(codel, last) {
            return self.sizes.packets;
        }
        let mut line = self.starts.clone();
        for index in 1..=last {
            line.next();
            let ready = line.next_ready();
            let undecided = self.wait(index, ready) >= settings.target && !self.backed(index);
            let mut next = *codel;
            if undecided || next.should_drop(ready, self.above(settings, index, ready)) {
                return index;
            }
            *codel = next;
        }
        self.sizes.packets
    }

    /// True if all packets up to the last one pass without a change of state, which two of them tell.
    fn all_pass(&self, codel: &CoDel, last: u32) -> bool {
        // Behind a shaper the first packets may start at the rate of the line and the others at its own.
        if self.starts.is_shaped() {
            return false;
        }
        // Waits change linearly along a batch, up to a rounded nanosecond: what holds at both ends holds in
        // between.
        let nanosecond = Span::from_ns(1);
        let last_start = self.starts.start_of(last);
        let (first_wait, last_wait) = (self.wait(0, self.ready), self.wait(last, last_start));
        let target = codel.settings.target;
        if first_wait.max(last_wait) + nanosecond < target {
            // One packet below the target ends the time above it, and the first was such a packet.
            return true;
        }
        let quiet = codel.quiet_until(self.starts.start_of(1)).is_some_and(|until| last_start < until);
        quiet && first_wait.min(last_wait) >= target + nanosecond && self.backed(last)
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::{Bitrate, Bytes};

    use super::*;
    use crate::link_direction::{Bucket, QueueDiscipline};
    use crate::stage::laws::Numbered;
    use crate::stage::queue::{Queue, Room};
    use crate::stage::shaper::Line;

    const ROOM: Room = Room { free: u64::MAX, ahead: 0, passing: 0 };

    /// Full-size packets that start one after the other from `start` on, each after `packet_time`.
    fn starts_from(start: Timestamp, packet_time: Span) -> impl Fn(&Head) -> PacketStarts {
        let rate = Bitrate::from_bps(1538.0 * 8.0 / packet_time.as_secs_f64());
        let line = Line::<Numbered>::new(rate, None, Framing::default());
        move |head| line.starts(&Head { arrived: start, spread: Span::ZERO, ..*head })
    }

    fn ms(ms: u64) -> Timestamp {
        Timestamp::START + Span::from_ms(ms)
    }

    fn settings(ecn: bool) -> CoDelSettings {
        CoDelSettings { target: Span::from_ms(5), interval: Span::from_ms(100), ecn }
    }

    fn queue(ecn: bool) -> Queue<Numbered> {
        Queue::new(QueueDiscipline::CoDel(settings(ecn)), Framing::default(), 1)
    }

    /// Milliseconds at which packets are dropped or marked. One packet arrives and one leaves each millisecond,
    /// with 20 waiting initially.
    fn strikes(ecn: bool, until: u64) -> Vec<u64> {
        let mut queue = queue(ecn);
        let mut strikes = Vec::new();
        for now in 0..until {
            queue.offer(ms(now), Numbered::new(now, 1, 1514).ecn(true), ROOM);
            if now >= 20 {
                let before = queue.stats();
                queue.take(starts_from(ms(now), Span::from_ms(1))).unwrap();
                let after = queue.stats();
                let struck = after.dropped.packets + after.marked - before.dropped.packets - before.marked;
                strikes.extend((0..struck).map(|_| now));
            }
        }
        strikes
    }

    #[test]
    fn strikes_come_at_the_pace_of_the_control_law() {
        // Waits are above the target from 20 ms on, for an interval at 120; then 100 / sqrt(count) ms apart:
        // 220, 290.71, 348.45, 398.45, 443.17, 483.99, 521.79, each at the next whole millisecond.
        let expected = [120, 220, 291, 349, 399, 444, 484, 522];
        assert_eq!(strikes(false, 530), expected);
        assert_eq!(strikes(true, 530), expected, "marks");
    }

    #[test]
    fn a_new_series_soon_after_goes_on_at_the_old_pace() {
        let mut codel = CoDel::new(settings(false));
        let mut drops = Vec::new();
        // Above the target except at the two milliseconds 530 and 531.
        for now in (20..720).chain(3000..3300) {
            let above = !(530..532).contains(&now);
            if codel.should_drop(ms(now), above) {
                drops.push(now);
                assert!(!codel.dropped(ms(now), above));
            }
            if now == 719 {
                assert!(!codel.should_drop(ms(now), false), "below the target");
            }
        }
        // Eight drops, seven of them counted, so the next sequence starts at 632 with count 7: 100 / sqrt(7) =
        // 37.80, then 100 / sqrt(8) = 35.36 ms. At 3100 that sequence is more than 16 intervals ago, and its
        // rate is forgotten.
        assert_eq!(drops[8..], [632, 670, 706, 3100, 3200, 3271]);
    }

    #[test]
    fn late_strikes_fall_on_one_instant() {
        let mut queue = queue(false);
        queue.offer(ms(0), Numbered::new(0, 20, 1514), ROOM);
        let mut take = |now| {
            let left = queue.take(starts_from(ms(now), Span::from_secs(1))).map(|(_, batch)| batch.ids());
            (left, queue.stats().dropped.packets)
        };
        assert_eq!(take(20), (Some(0..1), 0));
        assert_eq!(take(120), (Some(2..3), 1));
        // 220 and 290.7 have passed, 348.4 has not.
        assert_eq!(take(300), (Some(5..6), 3));
    }

    #[test]
    fn nothing_is_dropped_that_has_a_full_packet_or_less_behind_it() {
        let mut queue = queue(false);
        queue.offer(ms(0), Numbered::new(0, 2, 1514), ROOM);
        for (id, now) in [(0, 1000), (1, 2000)] {
            let taken = queue.take(starts_from(ms(now), Span::from_ms(1))).unwrap();
            assert_eq!(taken.1.ids(), id..id + 1);
            queue.offer(ms(0), Numbered::new(id + 2, 1, 1514), ROOM);
        }
        assert_eq!(queue.stats().dropped.packets, 0);
    }

    #[test]
    fn a_batch_that_does_not_wait_is_not_cut() {
        let mut queue = queue(false);
        queue.offer(ms(0), Numbered::new(0, 44, 1514), ROOM);
        let take = |queue: &mut Queue<Numbered>, now| {
            queue.take(starts_from(ms(now), Span::from_ns(12_304))).unwrap().1.ids()
        };
        assert_eq!(take(&mut queue, 0), 0..44);
        // Nor is one that waits, before the interval has passed and with others behind it.
        queue.offer(ms(0), Numbered::new(44, 44, 1514), ROOM);
        queue.offer(ms(0), Numbered::new(88, 44, 1514), ROOM);
        assert_eq!(take(&mut queue, 10), 44..88);
    }

    #[test]
    fn a_wait_below_the_target_within_a_batch_behind_a_shaper_ends_the_time_above_it() {
        // A packet each millisecond, from 0.5 ms on; the line is free from 10 ms on, with tokens for fifteen, and
        // for one more each 3 ms.
        let rate = Bitrate::from_bps(1518.0 * 8.0 / 0.003).unwrap();
        let shape = Bucket { rate, burst: Bytes::new(16 * 1518) };
        let mut line = Line::new(Bitrate::from_bps(1e9), Some(shape), Framing::default());
        line.begin(Timestamp::from_ns(10_000_000 - 12_304), Numbered::new(0, 1, 1514));
        assert!(line.end(ms(10)).is_some());
        let (mut queue, arrived) = (queue(false), Timestamp::from_ns(43_500_000));
        queue.offer(arrived, Numbered::new(1, 44, 1514).spread_over(Span::from_ms(43)), ROOM);
        queue.offer(arrived, Numbered::new(45, 44, 1514), ROOM);
        // The first waits 9.5 ms, the eleventh not at all, and from the twenty-second on, at 28 ms, they wait above
        // the target again. The batch ends at 97 ms, 31 ms before the interval does.
        let (arrived, batch) = queue.take(|head| line.starts(head)).unwrap();
        assert_eq!(batch.ids(), 1..45);
        line.begin(arrived, batch);
        assert!(line.end(ms(98)).is_some());
        assert_eq!(
            queue.take(|head| line.starts(head)).unwrap().1.ids(),
            45..56,
            "one each 3 ms, until 128 ms"
        );
    }
}
