//! The policer: packets that conform to a token bucket pass immediately, the others are dropped.

use linerate_units::Timestamp;

use crate::link_direction::Bucket;
use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::Stage;
use crate::stage::cut::{PacketArrivals, runs};
use crate::stage::departures::{Departures, departures};

/// A policer. It decides for each packet of a batch at that packet's own arrival time.
///
/// # Source
/// RFC 2697 §3, colour-blind, with one bucket
#[derive(Debug)]
pub struct Policer<T> {
    framing: Framing,
    tokens: PolicerTokens,
    departures: Departures<T>,
}

impl<T: PacketBatch> Policer<T> {
    /// A policer whose bucket is full.
    #[must_use]
    pub fn new(bucket: Bucket, framing: Framing) -> Self {
        Self { framing, tokens: PolicerTokens::full(bucket), departures: Departures::new(framing) }
    }

    /// Changes rate and depth from `now` on; tokens above the new depth are lost.
    pub fn set(&mut self, now: Timestamp, bucket: Bucket) {
        self.tokens.fill(now);
        self.tokens = PolicerTokens {
            level: self.tokens.level,
            filled: self.tokens.filled,
            ..PolicerTokens::full(bucket)
        };
        self.tokens.fill(now);
    }
}

impl<T: PacketBatch> Stage<T> for Policer<T> {
    fn push(&mut self, now: Timestamp, batch: T) {
        let Self { framing, tokens, departures } = self;
        departures.arrived(&batch);
        let (sizes, arrivals) = (batch.sizes(), PacketArrivals::of(&batch, now));
        runs(
            batch,
            |_, index, _| (1, tokens.admit(arrivals.at(index), framing.frame(sizes.of(index)))),
            |run, conforming| {
                if conforming {
                    departures.leave(now, run);
                } else {
                    departures.drop_batch(&run);
                }
            },
        );
    }

    departures!(T);
}

/// Tokens per byte: a token is 10^-12 bit, a nanosecond at 1/1000 bit/s, so that filling and spending are exact
/// for every rate of whole millibits per second.
const PER_BYTE: u128 = 8_000_000_000_000;

/// The contents of a token bucket.
#[derive(Debug)]
struct PolicerTokens {
    per_ns: u128,
    depth: u128,
    level: u128,
    filled: Timestamp,
}

impl PolicerTokens {
    fn full(bucket: Bucket) -> Self {
        let depth = u128::from(bucket.burst.get()) * PER_BYTE;
        let per_ns = (bucket.rate.bps() * 1000.0).round() as u128;
        Self { per_ns, depth, level: depth, filled: Timestamp::START }
    }

    /// Adds the tokens that have arrived until `now`.
    fn fill(&mut self, now: Timestamp) {
        let come = u128::from(now.since(self.filled).as_ns()).saturating_mul(self.per_ns);
        self.level = self.level.saturating_add(come).min(self.depth);
        self.filled = self.filled.max(now);
    }

    /// Spends the tokens for a frame of `bytes` if there are enough.
    fn admit(&mut self, now: Timestamp, bytes: u64) -> bool {
        self.fill(now);
        match self.level.checked_sub(u128::from(bytes) * PER_BYTE) {
            Some(left) => {
                self.level = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::{Bitrate, Bytes, Span};
    use proptest::prelude::*;

    use super::*;
    use crate::stage::laws::{Laws, Numbered, arrivals, check};

    /// A frame of 1514 bytes with its check sequence.
    const FRAME: u64 = 1518;
    /// A frame each millisecond.
    const ONE_PER_MS: f64 = 8000.0 * FRAME as f64;

    fn policer(bps: f64, burst: u64) -> Policer<Numbered> {
        let bucket = Bucket { rate: Bitrate::from_bps(bps).unwrap(), burst: Bytes::new(burst) };
        Policer::new(bucket, Framing::default())
    }

    fn us(us: u64) -> Timestamp {
        Timestamp::from_ns(1000 * us)
    }

    /// Numbers of the packets that pass.
    fn passing(policer: &mut Policer<Numbered>, now: Timestamp, batch: Numbered) -> Vec<u64> {
        policer.push(now, batch);
        std::iter::from_fn(|| policer.pop(now)).flat_map(|batch| batch.ids()).collect()
    }

    #[test]
    fn a_burst_passes_to_the_byte() {
        let batch = || Numbered::new(0, 44, 1514);
        assert_eq!(passing(&mut policer(1e6, 10 * FRAME), us(0), batch()).len(), 10);
        assert_eq!(passing(&mut policer(1e6, 10 * FRAME - 1), us(0), batch()).len(), 9);
        // A short last packet still conforms after long ones that did not.
        let short = Numbered::new(0, 4, 1514).ending_with(60);
        assert_eq!(passing(&mut policer(1e6, 2 * FRAME + 64), us(0), short), [0, 1, 3]);
    }

    #[test]
    fn packets_are_judged_at_their_own_arrival() {
        let batch = |ms| Numbered::new(0, 5, 1514).spread_over(Span::from_ms(ms));
        let passed = |ms| passing(&mut policer(ONE_PER_MS, FRAME), us(50_000), batch(ms));
        assert_eq!(passed(4), [0, 1, 2, 3, 4], "one a millisecond");
        assert_eq!(passed(2), [0, 2, 4], "two a millisecond");
        assert_eq!(passed(0), [0]);
    }

    #[test]
    fn what_fills_the_bucket_in_pieces_adds_up() {
        // A dropped packet every third of a millisecond makes the bucket fill in fractions of a byte.
        let mut policer = policer(ONE_PER_MS, FRAME);
        let mut passed = Vec::new();
        for index in 0..30_000 {
            passed.extend(passing(
                &mut policer,
                Timestamp::from_ns(index * 1_000_000 / 3),
                Numbered::new(index, 1, 1514),
            ));
        }
        assert_eq!(passed, (0..30_000).step_by(3).collect::<Vec<_>>());
    }

    #[test]
    fn the_long_run_rate_is_the_rate() {
        // Twice the rate for ten seconds: what passes is the burst and what arrived, less what is left at the
        // end.
        let (rate, burst) = (9_999_991.0, 50_000);
        let mut policer = policer(rate, burst);
        let gap_us = 600;
        let mut last = us(0);
        for index in 0..10_000_000 / gap_us {
            last = us(index * gap_us);
            passing(&mut policer, last, Numbered::new(index, 1, 1514));
        }
        let bound = burst as f64 + rate / 8.0 * last.since(Timestamp::START).as_secs_f64();
        let passed = policer.stats().given.bytes.get() as f64;
        assert!(passed <= bound && passed > bound - FRAME as f64, "{passed} of {bound}");
    }

    #[test]
    fn a_change_counts_from_its_moment() {
        let mut policer = policer(ONE_PER_MS, 100 * FRAME);
        assert_eq!(passing(&mut policer, us(0), Numbered::new(0, 100, 1514)).len(), 100);
        // Ten milliseconds at the old rate add ten frames, of which the new bucket holds four.
        let rate = Bitrate::from_bps(10.0 * ONE_PER_MS).unwrap();
        policer.set(us(10_000), Bucket { rate, burst: Bytes::new(4 * FRAME) });
        assert_eq!(passing(&mut policer, us(10_000), Numbered::new(0, 44, 1514)).len(), 4);
        assert_eq!(passing(&mut policer, us(10_200), Numbered::new(0, 44, 1514)).len(), 2);
    }

    proptest! {
        #[test]
        fn keeps_the_laws(arriving in arrivals(), mbps in 1..200_u32, burst in 0..100_000_u64) {
            check(&arriving, Laws::IN_ORDER, || policer(f64::from(mbps) * 1e6, burst))?;
        }
    }
}
