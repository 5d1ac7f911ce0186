//! Controlled delay: which of the waiting packets are sent.

use linerate_units::{Span, Timestamp};

use crate::link_direction::CoDelSettings;
use crate::packet_batch::{Framing, PacketBatch, PacketSizes};
use crate::stage::cut::PacketArrivals;
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

/// Takes the next batch for the line; its first packet starts at `start`.
pub(super) fn take<T: PacketBatch>(
    codel: &mut CoDel,
    store: &mut BatchStore<T>,
    start: Timestamp,
    packet_time: impl Fn(u32) -> Span,
) -> Option<T> {
    let settings = codel.settings;
    let above = |store: &BatchStore<T>| {
        Outlook::of(store, start, &packet_time).is_some_and(|next| next.above(settings, 0))
    };
    let mut struck = codel.should_drop(start, above(store));
    while struck {
        let mut packet = store.take_packets(1)?;
        if settings.ecn && packet.mark() {
            codel.marked(start);
            store.mark(1);
            return Some(packet);
        }
        store.drop_batch(&packet);
        struck = codel.dropped(start, above(store));
    }
    let passing = Outlook::of(store, start, &packet_time)?.passing_packets(codel);
    store.take_packets(passing)
}

/// What happens to the packets of the batch at the head if they are sent from `start` on.
#[derive(Debug, Clone, Copy)]
struct Outlook {
    start: Timestamp,
    packet_time: Span,
    arrivals: PacketArrivals,
    sizes: PacketSizes,
    framing: Framing,
    /// Bytes waiting, the batch included.
    held: u64,
    /// Bytes of a full-size packet.
    full: u64,
}

impl Outlook {
    fn of<T: PacketBatch>(
        store: &BatchStore<T>,
        start: Timestamp,
        packet_time: impl Fn(u32) -> Span,
    ) -> Option<Self> {
        let (arrived, batch) = store.head()?;
        let sizes = batch.sizes();
        Some(Self {
            start,
            packet_time: packet_time(sizes.each),
            arrivals: PacketArrivals::of(batch, arrived),
            sizes,
            framing: store.framing(),
            held: store.stats().held.bytes.get(),
            full: store.largest(),
        })
    }

    fn start_of(&self, index: u32) -> Timestamp {
        self.start + self.packet_time.saturating_mul(u64::from(index))
    }

    /// How long packet `index` will have waited.
    fn wait(&self, index: u32) -> Span {
        self.start_of(index).since(self.arrivals.at(index))
    }

    /// Whether more than a full-size packet waits behind packet `index`. More may arrive until it starts.
    fn backed(&self, index: u32) -> bool {
        self.held.saturating_sub(self.framing.frames_of(&self.sizes, index + 1)) > self.full
    }

    fn above(&self, settings: CoDelSettings, index: u32) -> bool {
        self.wait(index) >= settings.target && self.backed(index)
    }

    /// How many packets pass before one that is hit or cannot be decided yet. The first is known to pass; the
    /// state after it becomes the state after the last of them.
    fn passing_packets(&self, codel: &mut CoDel) -> u32 {
        let settings = codel.settings;
        let last = self.sizes.packets - 1;
        if last == 0 {
            return 1;
        }
        // Waits change linearly along a batch, up to a rounded nanosecond: what holds at both ends holds in
        // between.
        let nanosecond = Span::from_ns(1);
        let (least, most) = {
            let (first, last) = (self.wait(0), self.wait(last));
            (first.min(last), first.max(last))
        };
        if most + nanosecond < settings.target {
            // One packet below the target ends the time above it, and the first was such a packet.
            return self.sizes.packets;
        }
        let quiet = codel.quiet_until(self.start_of(1)).is_some_and(|until| self.start_of(last) < until);
        if quiet && least >= settings.target + nanosecond && self.backed(last) {
            return self.sizes.packets;
        }
        for index in 1..=last {
            let undecided = self.wait(index) >= settings.target && !self.backed(index);
            let mut next = *codel;
            if undecided || next.should_drop(self.start_of(index), self.above(settings, index)) {
                return index;
            }
            *codel = next;
        }
        self.sizes.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_direction::QueueDiscipline;
    use crate::stage::laws::Numbered;
    use crate::stage::queue::{Queue, Room};

    const ROOM: Room = Room { free: u64::MAX, ahead: 0 };

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
                queue.take(ms(now), |_| Span::from_ms(1)).unwrap();
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
            let left = queue.take(ms(now), |_| Span::from_secs(1)).map(|batch| batch.ids());
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
            assert_eq!(queue.take(ms(now), |_| Span::from_ms(1)).unwrap().ids(), id..id + 1);
            queue.offer(ms(0), Numbered::new(id + 2, 1, 1514), ROOM);
        }
        assert_eq!(queue.stats().dropped.packets, 0);
    }

    #[test]
    fn a_train_that_does_not_wait_is_not_cut() {
        let mut queue = queue(false);
        queue.offer(ms(0), Numbered::new(0, 44, 1514), ROOM);
        assert_eq!(queue.take(ms(0), |_| Span::from_ns(12_304)).unwrap().ids(), 0..44);
        // Nor is one that waits, before the interval has passed and with others behind it.
        queue.offer(ms(0), Numbered::new(44, 44, 1514), ROOM);
        queue.offer(ms(0), Numbered::new(88, 44, 1514), ROOM);
        assert_eq!(queue.take(ms(10), |_| Span::from_ns(12_304)).unwrap().ids(), 44..88);
    }
}
