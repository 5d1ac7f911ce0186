//! Random early detection: which packets that arrive at a queue are accepted.

use linerate_units::{Span, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::link_direction::RedSettings;
use crate::packet_batch::PacketBatch;
use crate::stage::cut::{PacketArrivals, runs};
use crate::stage::queue::Room;
use crate::stage::store::BatchStore;

/// RED's decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RedDecision {
    Keep,
    /// Chosen randomly, to be dropped or marked.
    Early,
    /// Dropped, because the average is too high for marking (RFC 3168 §7).
    Drop,
}

/// The state of RED.
///
/// # Source
/// Floyd and Jacobson, "Random early detection gateways for congestion avoidance", 1993, §§4-7: the average,
/// its correction after idle time, and the evenly spread choice of packets. In the gentle variant, by Floyd,
/// the probability increases from `max_probability` to 1 between `max` and twice `max`.
#[derive(Debug)]
pub(super) struct Red {
    settings: RedSettings,
    /// Bytes.
    average: f64,
    /// Consecutive packets kept since the last one that was not.
    kept: u64,
    idle: Option<Idle>,
    rng: StdRng,
}

#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Timestamp,
    packet_time: Span,
}

impl Red {
    pub(super) fn new(settings: RedSettings, seed: u64) -> Self {
        Self { settings, average: 0.0, kept: 0, idle: None, rng: StdRng::seed_from_u64(seed) }
    }

    pub(super) fn set(&mut self, settings: RedSettings) {
        self.settings = settings;
    }

    fn marks(&self) -> bool {
        self.settings.ecn
    }

    /// Reports that the queue is empty from `since` on; `packet_time` is the time that the line or a slower shaper
    /// takes for a packet.
    pub(super) fn emptied(&mut self, since: Timestamp, packet_time: Span) {
        self.idle = Some(Idle { since, packet_time });
    }

    /// Decides about a packet with `waiting` bytes in front of it.
    fn judge(&mut self, now: Timestamp, waiting: u64) -> RedDecision {
        self.observe(now, waiting);
        let probability = self.probability();
        if probability <= 0.0 {
            self.kept = 0;
            return RedDecision::Keep;
        }
        // Gaps between chosen packets are thus uniform over 1 to 1/probability (§7), not geometric.
        let share_left = 1.0 - self.kept as f64 * probability;
        if share_left > probability && self.rng.random::<f64>() * share_left >= probability {
            self.kept += 1;
            return RedDecision::Keep;
        }
        self.kept = 0;
        if probability < 1.0 { RedDecision::Early } else { RedDecision::Drop }
    }

    fn observe(&mut self, now: Timestamp, waiting: u64) {
        let weight = self.settings.weight.get().min(1.0);
        if waiting > 0 {
            self.average += weight * (waiting as f64 - self.average);
        } else if let Some(idle) = &mut self.idle {
            // As if that many packets had arrived at an empty queue; a line of unlimited rate without a shaper
            // sends one per nanosecond.
            let absent = now.since(idle.since).as_ns() as f64 / idle.packet_time.as_ns().max(1) as f64;
            self.average *= (1.0 - weight).powf(absent);
            idle.since = idle.since.max(now);
        }
    }

    /// Probability from the average alone: 1 means that everything is dropped.
    fn probability(&self) -> f64 {
        let (min, max) = (self.settings.min.get() as f64, self.settings.max.get() as f64);
        let most = self.settings.max_probability.get().min(1.0);
        let average = self.average;
        if average < min {
            0.0
        } else if average < max {
            most * (average - min) / (max - min)
        } else if average < 2.0 * max {
            most + (1.0 - most) * (average - max) / max
        } else {
            1.0
        }
    }
}

/// What happens to a packet that is offered to RED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RedAction {
    Keep,
    Mark,
    Drop,
}

/// Offers a batch. RED decides about every packet by the bytes that wait in front of it, earlier packets of its
/// batch included.
pub(super) fn offer<T: PacketBatch>(
    red: &mut Red,
    store: &mut BatchStore<T>,
    now: Timestamp,
    batch: T,
    room: Room,
) {
    let (framing, sizes, arrivals) = (store.framing(), batch.sizes(), PacketArrivals::of(&batch, now));
    let waits = store.stats().held.bytes.get().saturating_add(room.ahead);
    let (mut kept, mut free) = (0_u64, room.for_batch());
    let decide = |batch: &T, index: u32, _: u32| {
        let frame = framing.frame(sizes.of(index));
        let in_front = waits.saturating_add(kept.saturating_sub(room.passing));
        let fate = match red.judge(arrivals.at(index), in_front) {
            _ if frame > free => RedAction::Drop,
            RedDecision::Keep => RedAction::Keep,
            RedDecision::Early if red.marks() && batch.ecn_capable() => RedAction::Mark,
            RedDecision::Early | RedDecision::Drop => RedAction::Drop,
        };
        if fate != RedAction::Drop {
            kept += frame;
            free -= frame;
        }
        (1, fate)
    };
    let mut settled = 0;
    runs(batch, decide, |mut run, fate| {
        settled += run.packets();
        if fate == RedAction::Drop {
            return store.drop_batch(&run);
        }
        if fate == RedAction::Mark && run.mark() {
            store.mark(run.packets());
        }
        store.enqueue(arrivals.at(settled - 1), run);
    });
}

#[cfg(test)]
mod tests {
    use linerate_units::{Bytes, Ratio};

    use super::*;
    use crate::packet_batch::Framing;
    use crate::stage::laws::{Numbered, within_99};

    /// Between 10 and 30 kilobytes up to 10 %; the average follows immediately.
    fn settings(ecn: bool) -> RedSettings {
        RedSettings {
            min: Bytes::new(10_000),
            max: Bytes::new(30_000),
            max_probability: Ratio::new(0.1).unwrap(),
            weight: Ratio::new(1.0).unwrap(),
            ecn,
        }
    }

    /// Distances between the packets that are not kept while `waiting` bytes are queued.
    fn gaps(waiting: u64, packets: usize) -> Vec<usize> {
        let mut red = Red::new(settings(false), 1);
        let verdicts: Vec<_> = (0..packets).map(|_| red.judge(Timestamp::START, waiting)).collect();
        verdicts.split_inclusive(|verdict| *verdict != RedDecision::Keep).map(<[RedDecision]>::len).collect()
    }

    #[test]
    fn drops_are_spread_evenly_at_the_probability_of_the_average() {
        // 20 kB are half-way, so 5 %: gaps are uniform over 1 to 20, 10.5 on average.
        let gaps = gaps(20_000, 1_000_000);
        let (many, mean) = (gaps.len() as f64, gaps.iter().sum::<usize>() as f64 / gaps.len() as f64);
        let variance: f64 = (20.0 * 20.0 - 1.0) / 12.0;
        assert!(within_99(mean, 10.5, (variance / many).sqrt()), "{mean}");
        let expected = many / 20.0;
        let squares = (1..=20).map(|length| {
            let seen = gaps.iter().filter(|gap| **gap == length).count() as f64;
            (seen - expected) * (seen - expected) / expected
        });
        // 99 % of chi-square with 19 degrees of freedom.
        let sum: f64 = squares.sum();
        assert!(sum < 36.19, "{sum}");
    }

    #[test]
    fn the_gentle_part_rises_to_certainty() {
        assert_eq!(gaps(9_999, 1000), [1000], "none below the minimum");
        // 45 kB: 0.1 + 0.9 / 2 = 0.55, so the second packet of a gap is always chosen: 1 x 0.55 + 2 x 0.45.
        let gaps_seen = gaps(45_000, 100_000);
        let mean = 100_000.0 / gaps_seen.len() as f64;
        assert!(within_99(mean, 1.45, (0.55 * 0.45 / gaps_seen.len() as f64).sqrt()), "{mean}");
        let mut red = Red::new(settings(true), 1);
        assert!((0..1000).all(|_| red.judge(Timestamp::START, 60_000) == RedDecision::Drop));
    }

    #[test]
    fn the_average_follows_by_its_weight_and_decays_while_idle() {
        let mut red = Red::new(RedSettings { weight: Ratio::new(0.5).unwrap(), ..settings(false) }, 1);
        red.judge(Timestamp::START, 8_000);
        assert_eq!(red.average, 4_000.0);
        red.judge(Timestamp::START, 8_000);
        assert_eq!(red.average, 6_000.0);
        // Idle from 100 on, a packet takes 10: at 120 as if two packets had found the queue empty, at 130 a
        // third.
        red.emptied(Timestamp::from_ns(100), Span::from_ns(10));
        red.judge(Timestamp::from_ns(120), 0);
        assert_eq!(red.average, 1_500.0);
        red.judge(Timestamp::from_ns(130), 0);
        assert_eq!(red.average, 750.0);
    }

    /// Packets kept, marked and dropped of a batch of 44 that finds `ahead` bytes in the queue.
    fn offered(ahead: u64, free: u64, ecn: bool, capable: bool) -> (u64, u64, u64) {
        offered_into(Room { free, ahead, passing: 0 }, ecn, capable)
    }

    fn offered_into(room: Room, ecn: bool, capable: bool) -> (u64, u64, u64) {
        let mut store = BatchStore::new(Framing::default());
        let batch = Numbered::new(0, 44, 1514).ecn(capable);
        store.arrived(&batch);
        offer(&mut Red::new(settings(ecn), 1), &mut store, Timestamp::START, batch, room);
        let stats = store.stats();
        assert!(stats.balanced());
        (stats.held.packets, stats.marked, stats.dropped.packets)
    }

    #[test]
    fn what_waits_ahead_counts_and_marks_replace_drops() {
        let (kept, marked, dropped) = offered(0, u64::MAX, true, true);
        // Packets up to the one that finds 60 kB are kept or marked: 60000 / 1518 = 39.5.
        assert_eq!((kept, dropped), (40, 4));
        assert!(marked > 0, "some of 33 packets above the minimum");
        for (ecn, capable) in [(true, false), (false, true)] {
            let (kept, marked, dropped) = offered(0, u64::MAX, ecn, capable);
            assert!(marked == 0 && dropped > 4 && kept + dropped == 44, "{kept} kept, {dropped} dropped");
        }
        assert_eq!(offered(60_000, u64::MAX, true, true), (0, 0, 44), "all waits on the line");
        assert_eq!(offered(0, 5 * 1518, true, true), (5, 0, 39), "no room");
        // The first two start at once: they wait neither in the buffer nor in front of the others.
        let (kept, _, dropped) =
            offered_into(Room { free: u64::MAX, ahead: 0, passing: 2 * 1518 }, true, true);
        assert_eq!((kept, dropped), (42, 2));
        let idle = Room { free: 3 * 1518, ahead: 0, passing: 2 * 1518 };
        assert_eq!(offered_into(idle, true, true), (5, 0, 39), "room for three more");
    }
}
