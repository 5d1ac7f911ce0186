//! Shared by the tests of the stages: a batch of numbered packets, the invariants of every stage, and the
//! interval that contains counts of independent events.

use std::ops::Range;

use linerate_units::{Span, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::packet_batch::{Framing, HashFields, PacketBatch, PacketSizes};
use crate::stage::{Count, Stage};

/// A batch whose packets have consecutive numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    first: u64,
    sizes: PacketSizes,
    spread: Span,
    capable: bool,
    marked: bool,
    copy: bool,
    flow: [u64; 3],
}

impl Numbered {
    /// `packets` packets of `length` bytes, numbered from `first` on.
    pub(crate) fn new(first: u64, packets: u32, length: u32) -> Self {
        let sizes = PacketSizes { packets, each: length, last: length };
        Self { first, sizes, spread: Span::ZERO, capable: false, marked: false, copy: false, flow: [0; 3] }
    }

    /// The same with a shorter last packet.
    pub(crate) fn ending_with(mut self, last: u32) -> Self {
        self.sizes.last = last;
        if self.sizes.packets == 1 {
            self.sizes.each = last;
        }
        self
    }

    /// The same, arriving over `spread`; unchanged for a single packet.
    pub(crate) fn spread_over(mut self, spread: Span) -> Self {
        self.spread = if self.sizes.packets > 1 { spread } else { Span::ZERO };
        self
    }

    /// The same, ECN-capable or not.
    pub(crate) fn ecn(mut self, capable: bool) -> Self {
        self.capable = capable;
        self
    }

    /// The same with this flow: MAC, IP, ports.
    pub(crate) fn of_flow(mut self, flow: [u64; 3]) -> Self {
        self.flow = flow;
        self
    }

    /// Numbers of its packets.
    pub(crate) fn ids(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.sizes.packets)
    }

    /// True if it was marked.
    pub(crate) fn marked(&self) -> bool {
        self.marked
    }

    /// True if a stage created it as a copy.
    pub(crate) fn copy(&self) -> bool {
        self.copy
    }
}

impl PacketBatch for Numbered {
    fn sizes(&self) -> PacketSizes {
        self.sizes
    }

    fn spread(&self) -> Span {
        self.spread
    }

    fn set_spread(&mut self, spread: Span) {
        self.spread = spread;
    }

    fn split_off(&mut self, packets: u32) -> Self {
        assert!((1..self.sizes.packets).contains(&packets), "cut {packets} of {}", self.sizes.packets);
        let mut rest = self.clone();
        rest.first += u64::from(packets);
        rest.sizes.packets -= packets;
        if rest.sizes.packets == 1 {
            rest.sizes.each = rest.sizes.last;
        }
        self.sizes = PacketSizes { packets, each: self.sizes.each, last: self.sizes.each };
        rest
    }

    fn mark(&mut self) -> bool {
        self.marked |= self.capable;
        self.capable
    }

    fn duplicate(&self) -> Self {
        Self { copy: true, ..self.clone() }
    }

    fn flow_hash(&self, fields: HashFields, seed: u64) -> u64 {
        let chosen = [fields.mac, fields.ip, fields.ports];
        let fields = chosen.iter().zip(self.flow).filter_map(|(chosen, field)| chosen.then_some(field));
        fields.fold(mixed(seed), |hash, field| mixed(hash ^ field))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014), applied after its increment.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Batches with their arrival times, numbered in the order of arrival.
pub(crate) type Arriving = Vec<(Timestamp, Numbered)>;

/// Any batches at any times, some of them simultaneous.
pub(crate) fn arrivals() -> impl Strategy<Value = Arriving> {
    let batch = (0..400_000_u64, 1..=44_u32, 60..=1514_u32, 60..=1514_u32, 0..600_000_u64, any::<bool>());
    prop::collection::vec(batch, 1..40).prop_map(|batches| {
        let (mut now, mut first) = (600_000, 0);
        let mut arriving = Vec::new();
        for (gap, packets, each, last, spread, capable) in batches {
            now += if gap < 100_000 { 0 } else { gap };
            let batch = Numbered::new(first, packets, each).ending_with(last.min(each)).ecn(capable);
            arriving.push((Timestamp::from_ns(now), batch.spread_over(Span::from_ns(spread))));
            first += u64::from(packets);
        }
        arriving
    })
}

/// Invariants of a stage in addition to conservation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Laws {
    /// Packets leave in the order of arrival; a copy immediately follows its packet.
    pub(crate) keeps_order: bool,
    /// The shortest delay of a packet.
    pub(crate) floor: Span,
    /// The framing with which bytes are counted.
    pub(crate) framing: Framing,
}

impl Laws {
    /// Order is preserved, with no guarantee about the delay.
    pub(crate) const IN_ORDER: Self =
        Self { keeps_order: true, floor: Span::ZERO, framing: Framing { tags: 0 } };
    /// Packets may overtake.
    pub(crate) const ANY_ORDER: Self = Self { keeps_order: false, ..Self::IN_ORDER };
}

/// Whether a stage keeps the invariants: conservation in packets and bytes at every step, identity, order,
/// shortest delay, no missed deadline, nothing early; the same result from the same seed; and the same result
/// for a late caller.
pub(crate) fn check<S: Stage<Numbered>>(
    arriving: &Arriving,
    laws: Laws,
    make: impl Fn() -> S,
) -> Result<(), TestCaseError> {
    let exact = LawsDriver::new(make(), arriving, laws).run(1)?;
    let again = LawsDriver::new(make(), arriving, laws).run(1)?;
    prop_assert_eq!(&exact, &again, "same seed, same result");
    let batches =
        |left: &[(Timestamp, Numbered)]| left.iter().map(|(_, batch)| batch.clone()).collect::<Vec<_>>();
    for looks_every in [3, usize::MAX] {
        let late = LawsDriver::new(make(), arriving, laws).run(looks_every)?;
        prop_assert_eq!(batches(&exact), batches(&late), "looking before each {}. arrival", looks_every);
    }
    Ok(())
}

/// After all events.
const END: Timestamp = Timestamp::from_ns(u64::MAX);

/// A driver with its own counters.
struct LawsDriver<'a, S> {
    stage: S,
    arriving: &'a Arriving,
    laws: Laws,
    now: Timestamp,
    taken: Count,
    given: Count,
    /// By number of the packet: its arrival time and its length.
    came: Vec<(Timestamp, u32)>,
    /// By number of the packet: whether it and its copy have left.
    gone: Vec<[bool; 2]>,
    left: Vec<(Timestamp, Numbered)>,
}

impl<'a, S: Stage<Numbered>> LawsDriver<'a, S> {
    fn new(stage: S, arriving: &'a Arriving, laws: Laws) -> Self {
        let (now, taken, given) = (Timestamp::START, Count::default(), Count::default());
        Self {
            stage,
            arriving,
            laws,
            now,
            taken,
            given,
            came: Vec::new(),
            gone: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Pushes everything. Before every `looks_every`th arrival and at the end it pops what has left: if 1 at
    /// each deadline, otherwise all at once. Returns what left, and the time at which it was popped.
    fn run(mut self, looks_every: usize) -> Result<Vec<(Timestamp, Numbered)>, TestCaseError> {
        self.check_accounting()?;
        for (index, (at, batch)) in self.arriving.iter().enumerate() {
            if looks_every == 1 {
                self.pop_at_deadlines(*at)?;
            } else if index % looks_every == looks_every - 1 {
                self.pop_all(*at)?;
            }
            self.push(*at, batch)?;
        }
        if looks_every == 1 {
            self.pop_at_deadlines(END)?;
        } else {
            self.pop_all(END)?;
        }
        prop_assert_eq!(self.stage.stats().held, Count::default(), "everything leaves");
        prop_assert!(self.stage.pop(END).is_none());
        let marked = self.left.iter().filter(|(_, batch)| batch.marked() && !batch.copy());
        let marked: u32 = marked.map(|(_, batch)| batch.packets()).sum();
        prop_assert_eq!(self.stage.stats().marked, u64::from(marked));
        Ok(self.left)
    }

    fn push(&mut self, now: Timestamp, batch: &Numbered) -> Result<(), TestCaseError> {
        self.now = now;
        self.taken.add(Count::of(batch, self.laws.framing));
        for index in 0..batch.packets() {
            self.came.push((now, batch.sizes().of(index)));
            self.gone.push([false; 2]);
        }
        self.stage.push(now, batch.clone());
        self.check_accounting()
    }

    fn pop_at_deadlines(&mut self, until: Timestamp) -> Result<(), TestCaseError> {
        while let Some(deadline) = self.stage.deadline().filter(|deadline| *deadline <= until) {
            prop_assert!(deadline >= self.now, "a deadline passed: {deadline:?}, now {:?}", self.now);
            if deadline > self.now {
                let before = Timestamp::from_ns(deadline.as_ns() - 1);
                prop_assert!(self.stage.pop(before).is_none(), "a batch left before the deadline");
            }
            let popped = self.left.len();
            self.pop_all(deadline)?;
            prop_assert!(self.left.len() > popped, "no batch left at the deadline {deadline:?}");
        }
        Ok(())
    }

    fn pop_all(&mut self, now: Timestamp) -> Result<(), TestCaseError> {
        self.now = now;
        while let Some(batch) = self.stage.pop(now) {
            self.given.add(Count::of(&batch, self.laws.framing));
            self.left(batch)?;
            self.check_accounting()?;
        }
        Ok(())
    }

    fn left(&mut self, batch: Numbered) -> Result<(), TestCaseError> {
        for (index, id) in batch.ids().enumerate() {
            let (came, length) = self.came[id as usize];
            prop_assert!(self.now >= came + self.laws.floor, "packet {} came at {:?}", id, came);
            prop_assert_eq!(batch.sizes().of(index as u32), length, "length of packet {}", id);
            let gone = &mut self.gone[id as usize][usize::from(batch.copy())];
            prop_assert!(!*gone, "packet {} left twice", id);
            *gone = true;
        }
        if self.laws.keeps_order
            && let Some((_, before)) = self.left.last()
        {
            if batch.copy() {
                prop_assert_eq!(before.ids(), batch.ids(), "a copy follows its packet");
            } else {
                prop_assert!(before.ids().end <= batch.first, "{} behind {:?}", batch.first, before.ids());
            }
        }
        self.left.push((self.now, batch));
        Ok(())
    }

    /// Checks the counters after every step.
    fn check_accounting(&self) -> Result<(), TestCaseError> {
        let stats = self.stage.stats();
        prop_assert!(stats.balanced(), "{stats:?}");
        prop_assert_eq!((stats.taken, stats.given), (self.taken, self.given));
        prop_assert_eq!(stats.held.packets > 0, self.stage.deadline().is_some(), "held, but no deadline");
        Ok(())
    }
}

/// Whether `successes` of `trials` lie in the 99 % interval of the binomial distribution, approximated by the
/// normal distribution, which is accurate if both outcomes are frequent.
pub(crate) fn likely(successes: u64, trials: u64, probability: f64) -> bool {
    let (trials, mean) = (trials as f64, trials as f64 * probability);
    within_99(successes as f64, mean, (trials * probability * (1.0 - probability)).sqrt())
}

/// Whether a normal variable lies in its 99 % interval.
pub(crate) fn within_99(value: f64, mean: f64, deviation: f64) -> bool {
    (value - mean).abs() <= 2.5758 * deviation
}

/// Pushes full-sized batches with `packets` packets in total, one batch per millisecond, and pops everything
/// immediately. Returns what left.
pub(crate) fn pass(stage: &mut impl Stage<Numbered>, packets: u64) -> Vec<Numbered> {
    let mut left = Vec::new();
    let mut first = 0;
    while first < packets {
        let now = Timestamp::from_ns(1_000_000 * (1 + first / 44));
        let batch = Numbered::new(first, (packets - first).min(44) as u32, 1514);
        first = batch.ids().end;
        stage.push(now, batch);
        left.extend(std::iter::from_fn(|| stage.pop(now)));
    }
    left
}

/// By number of the packet, up to `packets`: whether it is missing in `left`.
pub(crate) fn missing(left: &[Numbered], packets: u64) -> Vec<bool> {
    let mut missing = vec![true; packets as usize];
    for batch in left {
        missing[batch.first as usize..batch.ids().end as usize].fill(false);
    }
    missing
}

mod tests {
    use linerate_units::{Bitrate, Bytes, Ratio};

    use super::*;
    use crate::link_direction::{Bucket, DelayJitter, Loss, Reorder};
    use crate::stage::delay::Delay;
    use crate::stage::duplicate::Duplicate;
    use crate::stage::loss::Losses;
    use crate::stage::policer::Policer;
    use crate::stage::reorder::Overtake;

    #[test]
    fn of_ten_million_packets_none_is_unaccounted_for() {
        let framing = Framing::default();
        let share = |value| Ratio::new(value).unwrap();
        // Batches of 44 full-size frames per millisecond are 534 Mb/s, of which the policer passes most.
        let bucket = Bucket { rate: Bitrate::from_bps(5e8).unwrap(), burst: Bytes::new(100_000) };
        let reorder = Reorder { probability: share(0.001), by: Span::from_ms(3) };
        let jitter = DelayJitter { most: Span::from_ms(2), may_overtake: true };
        let mut stages: [Box<dyn Stage<Numbered>>; 5] = [
            Box::new(Policer::new(bucket, framing)),
            Box::new(Losses::new(&Loss::Random(share(0.001)), framing, 1)),
            Box::new(Duplicate::new(share(0.001), framing, 2)),
            Box::new(Overtake::new(reorder, framing, 3)),
            Box::new(Delay::new(Span::from_ms(10), jitter, framing, 4)),
        ];
        let (packets, mut first, mut received) = (10_000_000, 0, 0);
        while first < packets {
            let now = Timestamp::from_ns(1_000_000 * (1 + first / 44));
            let batch = Numbered::new(first, (packets - first).min(44) as u32, 1514);
            first = batch.ids().end;
            stages[0].push(now, batch);
            received += drain(&mut stages, now);
        }
        // Everything in flight has left 15 ms later.
        for late in 1..=20 {
            received += drain(&mut stages, Timestamp::from_ns(1_000_000 * (packets / 44 + 1 + late)));
        }

        let stats = stages.each_ref().map(|stage| stage.stats());
        assert!(stats.iter().all(|stats| stats.balanced() && stats.held == Count::default()), "{stats:?}");
        assert!(stats.windows(2).all(|pair| pair[0].given == pair[1].taken), "{stats:?}");
        let sum = |of: fn(&crate::stage::Stats) -> u64| stats.iter().map(of).sum::<u64>();
        let (dropped, added) = (sum(|stats| stats.dropped.packets), sum(|stats| stats.added.packets));
        assert!(dropped > 0 && added > 0);
        assert_eq!(packets + added, received + dropped);
    }

    /// Forwards what leaves each stage by `now`, and counts the packets that leave the last.
    fn drain(stages: &mut [Box<dyn Stage<Numbered>>; 5], now: Timestamp) -> u64 {
        for index in 0..4 {
            while let Some(batch) = stages[index].pop(now) {
                stages[index + 1].push(now, batch);
            }
        }
        std::iter::from_fn(|| stages[4].pop(now)).map(|batch| u64::from(batch.packets())).sum()
    }
}
