//! Uncertainty of a flow's rate: a budget of contributions, combined and expanded.
//!
//! The measurand is the goodput that the path sustains to this receiver under the conditions of the run. The
//! estimate is the receiver's rate over the whole window. Known biases are not corrected, so they are
//! contributions too. The exception is the traffic of the run itself, which is counted: it extends the interval
//! upwards.

use linerate_model::{Contribution, Uncertainty, UncertaintySource};
use linerate_units::{Bitrate, Ratio};

use crate::domain::{finite, not_negative, positive};
use crate::format;
use crate::stats::{order, series, spread};

/// Coverage probability of the interval.
const COVERAGE: f64 = 0.95;
/// Relative frequency error of a free-running clock: the tolerance of Ethernet clocks.
const CLOCK_RATE_ERROR: f64 = 100e-6;
/// With fewer independent intervals, their spread is not used.
const MIN_INDEPENDENT: f64 = 4.0;
/// Fewest intervals from which it can be detected that neighbours compensate each other.
const MIN_NEIGHBOURS: usize = 20;

/// Observations of a flow for the budget of its rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// The receiver's rate over the whole window, bit/s.
    pub goodput_bps: f64,
    /// Time from its first to its last read, s.
    pub elapsed_s: f64,
    /// Number of connections.
    pub streams: f64,
    /// Rates of the steady intervals, bit/s.
    pub steady_bps: Vec<f64>,
    /// Length of each steady interval, s; empty if all are equally long.
    pub steady_s: Vec<f64>,
    /// Rates at which the sender saw segments delivered, even if earlier ones were missing, bit/s. If packets
    /// were lost, the receiver's intervals show when gaps were filled, but these show what the path carried.
    /// They do not show late reads of the receiver. Empty if unknown.
    pub delivered_bps: Vec<f64>,
    /// Payload of a full segment, bytes: the unit in which delivered data is counted.
    pub segment_bytes: Option<f64>,
    /// Whether the steady intervals are bytes acknowledged to the sender, because the receiver reported none.
    pub by_sender: bool,
    /// Whether a ramp was found before them.
    pub ramped: bool,
    /// Bytes of each stream that may have arrived without being counted at the moments between which the
    /// receiver counts.
    pub unread_bytes: Option<f64>,
    /// Whether the time begins and ends with arrivals that the kernel timestamped, so that late reads move no bytes
    /// over its ends.
    pub arrival_times: bool,
    /// Bytes that had arrived at the end and waited for a missing segment, at most.
    pub held_bytes: Option<f64>,
    /// Mean size of a read, bytes: data is acknowledged in units of this size.
    pub mean_read_bytes: Option<f64>,
    /// Bytes that the sender sends at once if it waits between bursts, so that they arrive together.
    pub burst_bytes: Option<f64>,
    /// Bytes that no count explains.
    pub unaccounted_bytes: Option<f64>,
    /// Latency probes and the control connection in the same direction, headers included, bit/s.
    pub overhead_bps: Option<f64>,
    /// 99th percentile of the lateness of waits on the receiving host, s.
    pub wake_up_s: Option<f64>,
    /// Resolution of the receiver's clock plus the time of one clock read, s.
    pub clock_step_s: Option<f64>,
}

/// The budget of a rate.
///
/// Units: bit/s. Domain: `None` without a rate or a time, or if the steady intervals are too few or too
/// strongly correlated to estimate the error of their mean. Source: JCGM 100:2008, 4.2 and 4.3 (standard
/// uncertainties of both types), 5.1.2 (combination), G.4.1 (effective degrees of freedom).
#[must_use]
pub fn budget(observed: &Observed) -> Option<Uncertainty> {
    let rate = positive(observed.goodput_bps)?;
    let elapsed = positive(observed.elapsed_s)?;
    let varied = variation(observed, elapsed)?;
    let parts = [
        Some(part(UncertaintySource::Variation, varied.standard_error, varied.because(observed.by_sender))),
        ramp_up(observed, &varied, rate),
        edges(observed, &varied, rate, elapsed),
        wake_up(observed, rate, elapsed),
        Some(clock(observed, rate, elapsed)),
        unaccounted(observed, elapsed),
    ];
    let mut parts: Vec<PendingContribution> =
        parts.into_iter().flatten().filter(|part| part.standard_bps > 0.0).collect();
    parts.sort_by(|a, b| b.standard_bps.total_cmp(&a.standard_bps));
    let squares: f64 = parts.iter().map(|part| part.standard_bps.powi(2)).sum();
    let combined = positive(squares.sqrt())?;
    // Welch and Satterthwaite: only the spread has few degrees of freedom; bounds have infinitely many.
    let freedom = varied.freedom * (combined / varied.standard_error).powi(4);
    let factor = series::student_quantile(freedom.clamp(1.0, 1e6), COVERAGE)?;
    let contributions = parts.into_iter().filter_map(PendingContribution::contribution).collect::<Vec<_>>();
    Some(Uncertainty {
        expanded_bps: Bitrate::from_bps(factor * combined)?,
        overhead_bps: observed.overhead_bps.and_then(positive).and_then(Bitrate::from_bps),
        coverage: Ratio::new(COVERAGE)?,
        coverage_factor: factor,
        main: contributions.first()?.source,
        contributions,
    })
}

/// A contribution under construction.
struct PendingContribution {
    source: UncertaintySource,
    standard_bps: f64,
    because: String,
}

impl PendingContribution {
    fn contribution(self) -> Option<Contribution> {
        let standard_bps = Bitrate::from_bps(self.standard_bps)?;
        Some(Contribution { source: self.source, standard_bps, because: self.because.into() })
    }
}

fn part(source: UncertaintySource, standard_bps: f64, because: String) -> PendingContribution {
    PendingContribution { source, standard_bps, because }
}

/// Standard deviation of a value that is uniformly distributed within ± a (JCGM 100, 4.3.7).
fn rectangular(half_width: f64) -> f64 {
    half_width / 3_f64.sqrt()
}

/// Standard deviation of the difference of two values that are uniformly distributed from 0 to a (4.3.9).
fn difference(width: f64) -> f64 {
    width / 6_f64.sqrt()
}

/// The standard error of the mean of the steady intervals.
struct MeanError {
    standard_error: f64,
    /// The standard error before the effect of whole reads and late reads is removed.
    seen_error: f64,
    freedom: f64,
    intervals: usize,
    batches: Option<usize>,
    /// Whether the intervals are those that the sender saw delivered.
    delivered: bool,
    /// Mean of the intervals, bit/s.
    mean: f64,
    /// Bits that one interval has more and the next one less because of a late read, as a standard deviation.
    late_bits: f64,
}

impl MeanError {
    fn because(&self, by_sender: bool) -> String {
        let how = match self.batches {
            Some(batches) => format!("in {batches} batches"),
            None => format!("worth {:.0} independent ones", self.freedom + 1.0),
        };
        let whose = match (self.delivered, by_sender) {
            (true, false) => " of the sender's delivered bytes",
            (true, true) => " of the sender's delivered bytes, the only known count,",
            (false, true) => " of the sender's acknowledged bytes, the only known count,",
            (false, false) => "",
        };
        format!("{} steady intervals{whose} {how}", self.intervals)
    }
}

/// Uses batch means. If batches still correlate, uses the effective number of independent intervals.
fn variation(observed: &Observed, elapsed: f64) -> Option<MeanError> {
    let steady = &observed.steady_bps;
    let intervals = steady.len();
    let equal = vec![elapsed / intervals.max(1) as f64; intervals];
    let lengths = if observed.steady_s.len() == intervals { &observed.steady_s } else { &equal };
    let late_bits = late_bits(steady, lengths);
    let moved = moved_bits(observed, late_bits).max(late_bits * 2_f64.sqrt());
    let received = batches(steady, lengths, moved).map(|found| MeanError { late_bits, ..found });
    let delivered = delivered(observed, elapsed, received.as_ref());
    // Variation of the path's rate shows at both ends. What only one end shows is its own effect: a gap that is
    // filled, or a thread that reads the counters late.
    let both = [received, delivered].into_iter().flatten();
    if let Some(found) = both.min_by(|a, b| a.seen_error.total_cmp(&b.seen_error)) {
        return Some(MeanError { mean: weighted_mean(steady, lengths).unwrap_or(found.mean), ..found });
    }
    let correlation = series::autocorrelation(steady, 1)?.max(0.0);
    let worth = series::effective_samples(intervals as f64, correlation)?;
    if intervals < 10 || worth < MIN_INDEPENDENT {
        return None;
    }
    let standard_error = finite((series::variance(steady)? / worth).sqrt())?;
    let mean = weighted_mean(steady, lengths)?;
    let freedom = worth - 1.0;
    let seen_error = standard_error;
    Some(MeanError {
        standard_error,
        seen_error,
        freedom,
        intervals,
        batches: None,
        delivered: false,
        mean,
        late_bits,
    })
}

/// The mean rate of intervals of these lengths.
fn weighted_mean(rates: &[f64], lengths: &[f64]) -> Option<f64> {
    let bits: f64 = rates.iter().zip(lengths).map(|(rate, length)| rate * length).sum();
    finite(bits / lengths.iter().sum::<f64>())
}

/// Batch means of intervals, each of which may contain up to `moved_bits` too much or too little at its ends.
fn batches(rates: &[f64], lengths: &[f64], moved_bits: f64) -> Option<MeanError> {
    let found = series::weighted_batch_means(rates, lengths, COVERAGE)?;
    let batches = found.batches as f64;
    let batch_s = lengths.iter().sum::<f64>() / batches;
    let seen_error = found.standard_error()?;
    Some(MeanError {
        standard_error: without_grain(seen_error, moved_bits / batch_s, batches),
        seen_error,
        freedom: batches - 1.0,
        intervals: rates.len(),
        batches: Some(found.batches),
        delivered: false,
        mean: found.mean,
        late_bits: 0.0,
    })
}

/// The spread of the rates that the sender saw delivered, scaled to the receiver's mean: they count whole
/// segments, not payload.
fn delivered(observed: &Observed, elapsed: f64, received: Option<&MeanError>) -> Option<MeanError> {
    let rates = &observed.delivered_bps;
    let lengths = vec![elapsed / rates.len().max(1) as f64; rates.len()];
    let late_bits = late_bits(rates, &lengths);
    // An acknowledgement may wait for a second segment (RFC 5681, 4.2), and segments that arrive together are
    // acknowledged together.
    let segments = observed.segment_bytes.and_then(not_negative).unwrap_or(0.0) * 2.0;
    let grain = segments.max(observed.mean_read_bytes.and_then(not_negative).unwrap_or(0.0));
    let found = batches(rates, &lengths, (late_bits * 2_f64.sqrt()).max(difference(grain) * 8.0))?;
    let mean = received.map(|own| own.mean).or_else(|| series::mean(&observed.steady_bps))?;
    let scale = positive(mean)? / positive(found.mean)?;
    let (standard_error, seen_error) = (found.standard_error * scale, found.seen_error * scale);
    Some(MeanError { standard_error, seen_error, mean, late_bits, delivered: true, ..found })
}

/// Bits that an interval may have too much or too little at its two ends together, as a standard deviation:
/// whole reads, or late reads if they are clearly more. The reads of a steady sender are regular, which makes
/// them look up to twice as late as they are. If the ends are timestamped arrivals, nothing was late: bytes that
/// neighbours exchange then waited in the kernel for a retransmission, and arrived.
fn moved_bits(observed: &Observed, late_bits: f64) -> f64 {
    let (grain, late) = (difference(grain_bytes(observed)) * 8.0, late_bits * 2_f64.sqrt());
    if late > 2.0 * grain && !observed.arrival_times { late } else { grain }
}

/// Data that is read late in one interval counts in the next one. So neighbours deviate in opposite directions,
/// and their negative covariance is the variance of the misplaced bits.
fn late_bits(rates: &[f64], lengths: &[f64]) -> f64 {
    if rates.len() < MIN_NEIGHBOURS {
        return 0.0;
    }
    let covariance = || {
        let spread = series::variance(rates)?;
        finite(series::autocorrelation(rates, 1)? * spread)
    };
    let length = series::mean(lengths).unwrap_or(0.0);
    (-covariance().unwrap_or(0.0)).max(0.0).sqrt() * length
}

/// The standard error of a mean without the effect of whole reads, bursts and late reads on batch means. What
/// one batch misses at its end, the next one gets. So only both ends of the whole remain, and these are counted
/// as edges. If all of the spread were of this kind, the error of the mean would be the spread divided by the
/// number of batches. The result is never smaller than that.
fn without_grain(error: f64, grain: f64, batches: f64) -> f64 {
    let spread = (error * error * batches).max(0.0);
    ((spread - grain * grain).max(spread / batches) / batches).sqrt()
}

/// Bytes that may have arrived but are not counted yet, or the reverse, at any moment: a read of each stream,
/// or a burst.
fn grain_bytes(observed: &Observed) -> f64 {
    let known = [observed.unread_bytes, observed.burst_bytes].into_iter().flatten().filter_map(not_negative);
    known.fold(0.0, f64::max) * observed.streams.max(1.0).sqrt()
}

/// A start that was slower or faster than the rest shifts the mean by up to this difference.
fn ramp_up(observed: &Observed, varied: &MeanError, rate: f64) -> Option<PendingContribution> {
    let steady = Some(varied.mean).filter(|_| observed.ramped)?;
    let because = format!("the rate is {} without the start", format::rate(steady));
    Some(part(UncertaintySource::RampUp, rectangular((steady - rate).abs()), because))
}

/// At both ends of the measured time, a stream may hold up to one read or burst that had arrived; the
/// difference of the two counts. If reads were late, the late bits count. The result is never less than the
/// difference between the intervals and the rate.
fn edges(observed: &Observed, varied: &MeanError, rate: f64, elapsed: f64) -> Option<PendingContribution> {
    let outside = if observed.ramped { 0.0 } else { rectangular((varied.mean - rate).abs()) };
    let grain = difference(grain_bytes(observed)) * 8.0;
    let moved = held_back_bits(observed, elapsed)
        .map_or_else(|| moved_bits(observed, varied.late_bits), |held| held.max(grain));
    let standard = positive((moved / elapsed).max(outside))?;
    // The width of the distribution that has this standard deviation.
    let size = standard * elapsed / 8.0 * 6_f64.sqrt();
    let because = format!(
        "up to {} may be counted on either side of the ends of {}",
        format::size(size),
        format::time(elapsed)
    );
    Some(part(UncertaintySource::Edges, standard, because))
}

/// Bits that were delivered but not read at the end because earlier data was missing, combined with the usual
/// variation of this difference, as a standard deviation. Absent if the sender reported nothing. Of one stream the
/// receiver's kernel says what waits. Usually nothing counts, as its time ends with its last read; but that read may
/// be a retransmission, with more missing after it.
fn held_back_bits(observed: &Observed, elapsed: f64) -> Option<f64> {
    if observed.streams <= 1.0 {
        let held = observed.held_bytes.filter(|_| observed.arrival_times).and_then(positive)?;
        return finite(rectangular(held) * 8.0);
    }
    let (received, delivered) = (&observed.steady_bps, &observed.delivered_bps);
    let count = received.len().min(delivered.len());
    let length = elapsed / received.len().max(1) as f64;
    let mut missing = 0.0;
    let missing: Vec<f64> = received
        .iter()
        .zip(delivered)
        .map(|(received, delivered)| {
            missing += (delivered - received) * length;
            missing
        })
        .collect();
    // If nothing is missing, the two differ by the data in flight.
    let usual = order::percentile(&missing, 0.25).filter(|_| count >= MIN_NEIGHBOURS)?;
    let held = (missing.last()? - usual).max(0.0);
    finite(rectangular(held).hypot(spread::robust_sigma(&missing)? * 2_f64.sqrt()))
}

fn wake_up(observed: &Observed, rate: f64, elapsed: f64) -> Option<PendingContribution> {
    let late = not_negative(observed.wake_up_s?)?;
    let because = format!("threads wake up to {} late", format::time(late));
    Some(part(UncertaintySource::WakeUp, difference(late) / elapsed * rate, because))
}

fn clock(observed: &Observed, rate: f64, elapsed: f64) -> PendingContribution {
    let step = observed.clock_step_s.and_then(not_negative).unwrap_or(0.0);
    let relative = rectangular(CLOCK_RATE_ERROR).hypot(difference(step) / elapsed);
    part(
        UncertaintySource::Clock,
        relative * rate,
        format!("a clock may be wrong by {:.0} ppm", CLOCK_RATE_ERROR * 1e6),
    )
}

fn unaccounted(observed: &Observed, elapsed: f64) -> Option<PendingContribution> {
    let bytes = positive(observed.unaccounted_bytes?)?;
    let because = format!("{} are missing from the counts", format::size(bytes));
    Some(part(UncertaintySource::Unaccounted, rectangular(bytes) * 8.0 / elapsed, because))
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Ten seconds of a gigabit whose intervals alternate by 0.1 %.
    fn gigabit() -> Observed {
        Observed {
            goodput_bps: 941.5e6,
            elapsed_s: 10.0,
            streams: 1.0,
            steady_bps: (0..100).map(|i| 941.5e6 + if i % 2 == 0 { 1e6 } else { -1e6 }).collect(),
            unread_bytes: Some(131_072.0),
            wake_up_s: Some(100e-6),
            clock_step_s: Some(60e-9),
            ..Observed::default()
        }
    }

    fn standard(found: &Uncertainty, source: UncertaintySource) -> Option<f64> {
        found.contributions.iter().find(|part| part.source == source).map(|part| part.standard_bps.bps())
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} is not {expected}");
    }

    #[test]
    fn bounds_become_standard_deviations_by_their_shape() {
        let found = budget(&gigabit()).unwrap();
        // 131072 × 8 / 10 s / √6; 100 µs / 10 s / √6 of the rate; 100 ppm / √3 of it.
        near(standard(&found, UncertaintySource::Edges).unwrap(), 42_807.6);
        near(standard(&found, UncertaintySource::WakeUp).unwrap(), 3843.7);
        near(standard(&found, UncertaintySource::Clock).unwrap(), 54_357.5);
        assert_eq!(standard(&found, UncertaintySource::RampUp), None);
        assert_eq!(standard(&found, UncertaintySource::Unaccounted), None, "absent, not 0");
    }

    #[test]
    fn bounds_alone_are_expanded_like_a_normal_distribution() {
        // Batches of ten alternating values are all equal: the spread is zero.
        let found = budget(&gigabit()).unwrap();
        assert_eq!(found.main, UncertaintySource::Clock);
        near(found.coverage_factor, 1.959_96);
        let combined = (42_807.6_f64.powi(2) + 3843.7_f64.powi(2) + 54_357.5_f64.powi(2)).sqrt();
        near(found.expanded_bps.bps(), 1.959_96 * combined);
    }

    #[test]
    fn a_swinging_rate_is_known_as_well_as_its_batches_say() {
        // Ten batches of one value each: alternately 110 and 90, so that s = 10.541 and the error of the mean
        // 3.3333.
        let steady_bps: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 110.0 } else { 90.0 }).collect();
        let swinging = Observed { goodput_bps: 100.0, elapsed_s: 10.0, steady_bps, ..Observed::default() };
        let found = budget(&swinging).unwrap();
        assert_eq!(found.main, UncertaintySource::Variation);
        near(standard(&found, UncertaintySource::Variation).unwrap(), 3.333_33);
        // Student's t for nine degrees of freedom.
        near(found.coverage_factor, 2.262_16);
        near(found.expanded_bps.bps(), 7.540_5);
    }

    #[test]
    fn a_slow_start_inside_the_window_counts_as_far_as_it_moves_the_mean() {
        let ramped = Observed { goodput_bps: 900e6, ramped: true, ..gigabit() };
        let found = budget(&ramped).unwrap();
        assert_eq!(found.main, UncertaintySource::RampUp);
        near(standard(&found, UncertaintySource::RampUp).unwrap(), 41.5e6 / 3_f64.sqrt());
        assert!(found.expanded_bps.bps() > 41.5e6, "the steady rate is inside");
        assert_eq!(
            standard(&budget(&Observed { ramped: false, ..ramped }).unwrap(), UncertaintySource::RampUp),
            None
        );
    }

    #[test]
    fn what_waited_for_a_retransmission_is_no_late_read_at_the_ends() {
        let mut steady_bps = vec![941.5e6; 100];
        (steady_bps[50], steady_bps[51]) = (700e6, 1183e6);
        let by_reads = Observed { steady_bps, unread_bytes: None, ..gigabit() };
        assert!(standard(&budget(&by_reads).unwrap(), UncertaintySource::Edges).is_some());
        let by_arrivals = Observed { arrival_times: true, ..by_reads };
        let left = standard(&budget(&by_arrivals).unwrap(), UncertaintySource::Edges).unwrap_or_default();
        assert!(left < 1.0, "{left} is not the rounding of a mean");
        let held = budget(&Observed { held_bytes: Some(30_000.0), ..by_arrivals }).unwrap();
        near(standard(&held, UncertaintySource::Edges).unwrap(), 30_000.0 * 8.0 / 10.0 / 3_f64.sqrt());
    }

    #[test]
    fn what_arrives_in_bursts_is_as_uncertain_as_its_ends_and_not_as_its_intervals() {
        // 100 Mb/s in blocks of 524288 bytes, 24 per second: an interval of 0.1 s has two or three of them.
        let block = 524_288.0;
        let count = |until: f64| (until * 100e6 / 8.0 / block).floor();
        let interval = |i: i32| {
            let (from, to) = (f64::from(i) / 10.0, f64::from(i + 1) / 10.0);
            (count(to) - count(from)) * block * 8.0 / 0.1
        };
        let paced = Observed {
            goodput_bps: 100e6,
            elapsed_s: 2.0,
            steady_bps: (0..20).map(interval).collect(),
            unread_bytes: Some(65_536.0),
            burst_bytes: Some(block),
            ..gigabit()
        };
        let found = budget(&paced).unwrap();
        near(standard(&found, UncertaintySource::Edges).unwrap(), block * 8.0 / 2.0 / 6_f64.sqrt());
        let blind = budget(&Observed { burst_bytes: None, ..paced }).unwrap();
        // Without knowledge of the blocks, the intervals show that they compensate each other.
        let factor = standard(&blind, UncertaintySource::Edges).unwrap()
            / standard(&found, UncertaintySource::Edges).unwrap();
        assert!((1.0..2.0).contains(&factor), "{blind:?} {found:?}");
    }

    #[test]
    fn the_spread_loses_what_whole_bursts_add_to_it_and_no_more() {
        // Ten batches with a spread of √10: the error of their mean is 1, of which a grain of √6 takes 0.6.
        near(without_grain(1.0, 0.0, 10.0), 1.0);
        near(without_grain(1.0, 6_f64.sqrt(), 10.0), 0.4_f64.sqrt());
        near(without_grain(1.0, 100.0, 10.0), 0.1_f64.sqrt());
        assert_eq!(without_grain(0.0, 5.0, 10.0), 0.0);
    }

    #[test]
    fn unaccounted_bytes_and_many_streams_widen_it() {
        let plain = budget(&gigabit()).unwrap();
        let many = budget(&Observed { streams: 16.0, ..gigabit() }).unwrap();
        near(
            standard(&many, UncertaintySource::Edges).unwrap()
                / standard(&plain, UncertaintySource::Edges).unwrap(),
            4.0, // √16
        );
        let lost = budget(&Observed { unaccounted_bytes: Some(1e6), ..gigabit() }).unwrap();
        near(standard(&lost, UncertaintySource::Unaccounted).unwrap(), 8e5 / 3_f64.sqrt());
        assert_eq!(lost.main, UncertaintySource::Unaccounted);
    }

    #[test]
    fn overhead_raises_the_upper_end_only() {
        let found = budget(&Observed { overhead_bps: Some(85e3), ..gigabit() }).unwrap();
        assert_eq!(found.expanded_bps, budget(&gigabit()).unwrap().expanded_bps);
        let around = found.around(Bitrate::from_bps(941.5e6).unwrap()).unwrap();
        let half = found.expanded_bps.bps();
        near(941.5e6 - around.low().bps(), half);
        near(around.high().bps() - 941.5e6, half + 85e3);
        assert_eq!(budget(&gigabit()).unwrap().overhead_bps, None);
    }

    #[test]
    fn what_only_a_sender_knows_says_so_whichever_of_its_counts_is_taken() {
        let steady_bps: Vec<f64> = (0..100).map(|i| 941.5e6 + f64::from(i % 7) * 1e6).collect();
        for delivered_bps in [Vec::new(), vec![941.5e6; 99]] {
            let seen =
                Observed { by_sender: true, steady_bps: steady_bps.clone(), delivered_bps, ..gigabit() };
            let found = budget(&seen).unwrap();
            let because = |text: &str| found.contributions.iter().any(|part| part.because.contains(text));
            assert!(because("the only known count"), "{found:?}");
        }
    }

    /// Both ends of a flow of 612 Mb/s with its own variation, and one end with a thread that reads late.
    #[test]
    fn what_only_one_end_shows_is_no_variation_of_the_path() {
        let mut random = StdRng::seed_from_u64(11);
        let path: Vec<f64> = (0..100).map(|_| random.random_range(610e6..614e6)).collect();
        let late: Vec<f64> = (0..=100).map(|i| if i % 13 == 0 { 0.08 } else { 0.0 }).collect();
        let read: Vec<f64> = path
            .iter()
            .zip(late.windows(2))
            .map(|(rate, two)| rate * (0.1 + two[0] - two[1]) / 0.1)
            .collect();
        let goodput_bps = path.iter().sum::<f64>() / 100.0;
        let of = |steady_bps: &Vec<f64>, delivered_bps: &Vec<f64>| {
            let (steady_bps, delivered_bps) = (steady_bps.clone(), delivered_bps.clone());
            let unread_bytes = Some(1448.0);
            let seen = Observed { goodput_bps, steady_bps, delivered_bps, unread_bytes, ..gigabit() };
            standard(&budget(&seen).unwrap(), UncertaintySource::Variation).unwrap()
        };
        let (neither, receiver, sender) = (of(&path, &path), of(&read, &path), of(&path, &read));
        for one in [receiver, sender] {
            assert!((0.8..1.25).contains(&(one / neither)), "{one} {neither}");
        }
        // The path's own variation is kept: 4 Mb/s over √12 in a hundred intervals are 115 kb/s.
        assert!((60e3..230e3).contains(&neither), "{neither}");
    }

    #[test]
    fn the_doubt_is_about_the_rate_next_to_it() {
        // 941.5 except for a first second of 805.5: 927.9 were received. Whatever was found, both are inside.
        for ramped in [false, true] {
            let mut steady_bps = vec![941.5e6; 100];
            if !ramped {
                steady_bps[..10].fill(805.5e6);
            }
            let found = budget(&Observed { goodput_bps: 927.9e6, ramped, steady_bps, ..gigabit() }).unwrap();
            assert!(found.expanded_bps.bps() > 13.6e6, "{ramped}: {found:?}");
            assert!(found.expanded_bps.bps() < 40e6, "{ramped}: {found:?}");
        }
        // Intervals with another mean than the rate: the difference is part of the uncertainty.
        let other = Observed { goodput_bps: 900e6, steady_bps: vec![941.5e6; 100], ..gigabit() };
        assert!(budget(&other).unwrap().expanded_bps.bps() > 41.5e6);
    }

    /// 2 Mb/s with an occasional gap that lasts half a second: nothing can be read, then everything.
    #[test]
    fn a_hole_that_is_filled_is_no_uneven_path() {
        let read = |i: i32| match i % 17 {
            4..=8 => 0.2e6,
            9 => 11e6,
            _ => 2e6,
        };
        let steady_bps: Vec<f64> = (0..50).map(read).collect();
        let goodput_bps = steady_bps.iter().sum::<f64>() / 50.0;
        let holes = Observed { goodput_bps, elapsed_s: 5.0, steady_bps, ..Observed::default() };
        let blind = budget(&holes).unwrap();
        let delivered_bps = (0..49).map(|i| 2.1e6 + f64::from(i % 3) * 1e4).collect();
        let seen = budget(&Observed { delivered_bps, ..holes }).unwrap();
        let of = |found: &Uncertainty| standard(found, UncertaintySource::Variation).unwrap();
        assert!(of(&seen) < 0.1 * of(&blind), "{seen:?} {blind:?}");
        assert!(
            seen.contributions.iter().any(|part| part.because.contains("sender's delivered bytes")),
            "{seen:?}"
        );
    }

    /// A path that carries exactly 100 Mb/s, and a receiver that reads up to 20 ms late and catches up with the
    /// next read.
    #[test]
    fn a_late_reader_is_no_uneven_path() {
        let mut random = StdRng::seed_from_u64(3);
        let (mut held, mut widths) = (0, 0.0_f64);
        for _ in 0..400 {
            let late: Vec<f64> = (0..=50).map(|_| random.random_range(0.0..0.020)).collect();
            let rates: Vec<f64> = late.windows(2).map(|two| 100e6 * (0.1 + two[0] - two[1]) / 0.1).collect();
            let goodput_bps = rates.iter().sum::<f64>() / 50.0;
            let found =
                budget(&Observed { goodput_bps, elapsed_s: 5.0, steady_bps: rates, ..Observed::default() })
                    .unwrap();
            held += u32::from((goodput_bps - 100e6).abs() <= found.expanded_bps.bps());
            widths += found.expanded_bps.bps();
        }
        assert!(held >= 372, "{held} of 400");
        // 20 ms over √6 are the difference of two ends: 163 kb/s in 5 s. Independent batches with that spread
        // would give 1.2 Mb/s.
        assert!(widths / 400.0 < 0.7e6, "{}", widths / 400.0);
    }

    #[test]
    fn correlated_intervals_are_worth_fewer_and_a_drift_says_nothing() {
        // A slow wave: five long batches still correlate, so the intervals count as a few.
        let wave: Vec<f64> = (0..200).map(|i| 100.0 + 10.0 * (f64::from(i) / 8.0).sin()).collect();
        let of = |steady_bps| budget(&Observed { goodput_bps: 100.0, steady_bps, ..gigabit() });
        let found = of(wave).unwrap();
        // An independent 10/√2 over √200 would be 0.5.
        assert!(standard(&found, UncertaintySource::Variation).unwrap() > 0.5, "{found:?}");
        let drift: Vec<f64> = (0..100).map(|i| 50.0 + f64::from(i)).collect();
        assert_eq!(of(drift), None);
    }

    #[test]
    fn what_cannot_be_stated_is_absent() {
        assert_eq!(budget(&Observed::default()), None);
        assert_eq!(budget(&Observed { steady_bps: vec![941.5e6; 9], ..gigabit() }), None);
        assert_eq!(budget(&Observed { elapsed_s: 0.0, ..gigabit() }), None);
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(budget(&Observed { goodput_bps: bad, ..gigabit() }), None);
            assert_eq!(budget(&Observed { steady_bps: vec![bad; 50], ..gigabit() }).is_some(), bad == -1.0);
            let odd = Observed {
                unread_bytes: Some(bad),
                burst_bytes: Some(bad),
                wake_up_s: Some(bad),
                clock_step_s: Some(bad),
                ..gigabit()
            };
            let found = budget(&odd).unwrap();
            assert!(found.expanded_bps.bps().is_finite(), "{found:?}");
        }
    }
}
