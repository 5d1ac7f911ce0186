//! Estimates the buffer from a step of steady load: the delay rises until the buffer is full, then stays
//! constant while packets are lost.

use super::{BufferFinding, FULL_LOAD};
use crate::domain::{finite, not_negative, positive};
use crate::queueing::queue_bytes;
use crate::stats::{Interval, order};

/// The rise starts at this share of the plateau and ends at its complement.
const RISE_SHARE: f64 = 0.1;

/// A plateau gives an estimate if it exceeds the noise of the probes by this factor: it is then known to within
/// 10 %.
const MIN_PLATEAU_RATIO: f64 = 10.0;

/// Smallest number of intervals on a plateau.
const MIN_PLATEAU_INTERVALS: usize = 3;

/// Smallest and largest RTT of the probes of an interval. A full queue delays all of them alike, so the
/// difference is due to the hosts, or to a queue that was not full all the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RttRange {
    /// Smallest RTT, s.
    pub min_s: f64,
    /// Largest plausible RTT, s.
    pub max_s: f64,
}

impl RttRange {
    /// Middle of the range, s: the RTT through the queue to within [`Self::half_s`].
    fn middle_s(self) -> f64 {
        self.min_s.midpoint(self.max_s)
    }

    /// Half of the range, s.
    fn half_s(self) -> f64 {
        (self.max_s - self.min_s) / 2.0
    }
}

/// One interval of a flow that does not back off.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepInterval {
    /// Time of its middle, from any origin, s.
    pub at_s: f64,
    /// RTTs of the probes at the same time; absent if none returned.
    pub rtt: Option<RttRange>,
    /// Lost datagrams.
    pub lost: u64,
}

/// A step of load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadStep {
    /// Offered rate of all flows together, bit/s on the line.
    pub offered_bps: f64,
    /// Drain rate of the queue, bit/s on the line.
    pub drain_bps: f64,
    /// RTT of the probes without a queue, s.
    pub base_rtt_s: f64,
    /// Delay that the load adds on the path without a queue, s: the hosts' part. It may be just as large on the
    /// path through the queue, where it cannot be distinguished from the queue.
    pub hosts_s: f64,
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Stepped {
    /// The buffer.
    pub finding: BufferFinding,
    /// Gain of delay per second during the rise; absent if it rose within less than three intervals.
    pub slope: Option<f64>,
    /// Expected gain: offered rate over drain rate, less 1.
    pub expected_slope: f64,
}

/// Estimates the buffer from a step of load; `None` if no probe returned, or the drain rate is not above zero.
///
/// The plateau is the median of the round trips from the first loss to the last, and the round trip of an
/// interval is the middle between its smallest and its largest. Without a loss, the largest of the smallest
/// round trips is a lower bound. Losses on a line that has room, or with a flat round trip, do not come from a
/// full queue. If the hosts' own delays, the typical range of the round trips within an interval, or their
/// spread over the intervals is more than 10 % of the plateau, it is out of reach.
///
/// Source: B = C · plateau / 8, with d(delay)/dt = (offered − C)/C as the check (RFC 8238 section 3 measures
/// buffers with bursts in the same way).
#[must_use]
pub fn step(looks: &[StepInterval], step: &LoadStep) -> Option<Stepped> {
    let drain = positive(step.drain_bps)?;
    let load = not_negative(step.offered_bps)? / drain;
    let hosts = not_negative(step.hosts_s)?;
    let queue = |rtt: f64| queue_bytes(rtt, step.base_rtt_s + hosts, drain).map(|bytes| bytes.max(0.0));
    let largest_of = |rtt: fn(RttRange) -> f64| {
        looks.iter().filter_map(|look| queue(rtt(look.rtt?))).max_by(f64::total_cmp)
    };
    let largest = largest_of(RttRange::middle_s)?;
    let lossy: Vec<usize> = (0..looks.len()).filter(|at| looks[*at].lost > 0).collect();
    let expected_slope = load - 1.0;
    let result = |finding, slope| Some(Stepped { finding, slope, expected_slope });
    let (Some(first), Some(last)) = (lossy.first(), lossy.last()) else {
        // At least one probe of an interval may have met nothing but the queue.
        let bytes = largest_of(|rtt| rtt.min_s)?;
        return result(BufferFinding::LowerBound { bytes, other_losses: 0 }, slope(looks, largest, &queue));
    };
    // The first interval with losses began before the buffer was full.
    let full: Vec<RttRange> =
        looks[(first + 1).min(*last)..=*last].iter().filter_map(|look| look.rtt).collect();
    let queues: Vec<f64> = full.iter().filter_map(|rtt| queue(rtt.middle_s())).collect();
    let bytes = order::median(&queues).unwrap_or(0.0);
    let flat = queues.iter().filter(|one| (*one - bytes).abs() <= RISE_SHARE * bytes).count();
    if load < FULL_LOAD || flat < MIN_PLATEAU_INTERVALS || bytes <= 0.5 * largest {
        let losses = lossy.len();
        return result(BufferFinding::NotAFullQueue { losses, load, queue_bytes: bytes }, None);
    }
    let halves: Vec<f64> = full.iter().map(|rtt| rtt.half_s()).collect();
    let own_delay = order::median(&halves).unwrap_or(0.0).max(hosts);
    let noise_bytes = half_spread(&queues).max(own_delay * drain / 8.0);
    if bytes < MIN_PLATEAU_RATIO * noise_bytes {
        return result(BufferFinding::OutOfReach { bytes, noise_bytes }, None);
    }
    let interval: Option<Interval> = order::median_interval(&queues, 0.95);
    let slope = slope(&looks[..=*first], bytes, &queue);
    result(BufferFinding::Estimate { bytes, interval, drops: queues.len(), load }, slope)
}

/// Half the interquartile range.
fn half_spread(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: usize| sorted.get(sorted.len() * share / 4).copied().unwrap_or(0.0);
    (at(3) - at(1)) / 2.0
}

/// Gain of delay per second between the start and the end of the rise, by least squares.
fn slope(looks: &[StepInterval], full: f64, queue: &dyn Fn(f64) -> Option<f64>) -> Option<f64> {
    let rising = |look: &&StepInterval| {
        let bytes = look.rtt.and_then(|rtt| queue(rtt.middle_s()));
        bytes.is_some_and(|bytes| (RISE_SHARE * full..(1.0 - RISE_SHARE) * full).contains(&bytes))
    };
    let points: Vec<(f64, f64)> =
        looks.iter().filter(rising).filter_map(|look| Some((look.at_s, look.rtt?.middle_s()))).collect();
    (points.len() >= MIN_PLATEAU_INTERVALS).then_some(())?;
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (at, rtt) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - at).powi(2)).sum();
    finite(points.iter().map(|point| (point.0 - at) * (point.1 - rtt)).sum::<f64>() / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(rtt_s: f64) -> Option<RttRange> {
        Some(RttRange { min_s: rtt_s, max_s: rtt_s })
    }

    /// 1 Gb/s with 1.25 Gb/s offered, and 2 ms without a queue: the delay grows by 0.25 s per second. So 1 MB
    /// (8 ms) is full after 32 ms, and then a fifth is lost.
    fn looks(buffer_ms: f64, intervals: u32) -> Vec<StepInterval> {
        let look = |number: u32| {
            let at_s = f64::from(number) * 0.004 + 0.002;
            let (rise, full) = (0.25 * at_s, buffer_ms / 1e3);
            StepInterval {
                at_s,
                rtt: steady(0.002 + rise.min(full)),
                lost: if rise > full { 400 } else { 0 },
            }
        };
        (0..intervals).map(look).collect()
    }

    const STEP: LoadStep = LoadStep { offered_bps: 1.25e9, drain_bps: 1e9, base_rtt_s: 0.002, hosts_s: 0.0 };

    #[test]
    fn the_plateau_is_the_buffer_and_the_slope_is_that_of_the_surplus() {
        let stepped = step(&looks(8.0, 60), &STEP).unwrap();
        let BufferFinding::Estimate { bytes, load, drops, interval } = stepped.finding else {
            panic!("{stepped:?}")
        };
        assert!((bytes - 1e6).abs() < 1.0, "{bytes}");
        // 60 intervals: eight during the rise, and one in which the first loss occurred.
        assert_eq!((load, drops), (1.25, 51));
        assert!(interval.is_some_and(|one| one.low <= 1e6 + 1.0 && one.high >= 1e6 - 1.0));
        assert!((stepped.slope.unwrap() - 0.25).abs() < 1e-9, "{:?}", stepped.slope);
        assert!((stepped.expected_slope - 0.25).abs() < 1e-12);
    }

    #[test]
    fn without_a_loss_the_longest_delay_is_a_lower_bound() {
        // 0.25 · 78 ms = 19.5 ms of delay, which are 2.4375 MB.
        let stepped = step(&looks(100.0, 20), &STEP).unwrap();
        let BufferFinding::LowerBound { bytes, other_losses: 0 } = stepped.finding else {
            panic!("{stepped:?}")
        };
        assert!((bytes - 2.4375e6).abs() < 1.0, "{bytes}");
    }

    #[test]
    fn losses_with_room_or_without_a_plateau_are_not_of_a_full_queue() {
        let idle = LoadStep { offered_bps: 0.9e9, ..STEP };
        let found = step(&looks(8.0, 60), &idle).unwrap().finding;
        assert!(matches!(found, BufferFinding::NotAFullQueue { losses: 52, .. }), "{found:?}");
        let mut flat = looks(8.0, 60);
        flat.iter_mut().for_each(|look| look.rtt = steady(0.002));
        flat[30].rtt = steady(0.010);
        let found = step(&flat, &STEP).unwrap().finding;
        assert!(matches!(found, BufferFinding::NotAFullQueue { queue_bytes: 0.0, .. }), "{found:?}");
        assert_eq!(step(&[], &STEP), None);
        assert_eq!(step(&looks(8.0, 60), &LoadStep { drain_bps: 0.0, ..STEP }), None);
    }

    /// 200 kB at 1 Gb/s are 1.6 ms. An equal delay of the hosts under load would double the estimate.
    #[test]
    fn a_buffer_that_the_hosts_own_delays_hide_is_out_of_reach() {
        let late = |ms: f64| {
            let mut shifted = looks(1.6, 60);
            shifted.iter_mut().for_each(|look| look.rtt = steady(look.rtt.unwrap().min_s + ms / 1e3));
            shifted
        };
        let with = |looks: &[StepInterval], hosts_s: f64| {
            step(looks, &LoadStep { hosts_s, ..STEP }).unwrap().finding
        };
        let BufferFinding::Estimate { bytes, .. } = with(&late(0.0), 0.0) else { panic!("quiet hosts") };
        assert!((bytes - 200e3).abs() < 1.0, "{bytes}");
        // 1.55 ms more, half of it on the return path: 200 kB remain, and 97 kB that cannot be distinguished
        // from them.
        let found = with(&late(1.55), 0.775e-3);
        let BufferFinding::OutOfReach { bytes, noise_bytes } = found else { panic!("{found:?}") };
        assert!((bytes - 296_875.0).abs() < 1.0 && (noise_bytes - 96_875.0).abs() < 1.0, "{found:?}");
        // A delay of 5 % on the return path is subtracted, and is within the 10 %.
        let BufferFinding::Estimate { bytes, .. } = with(&late(0.08), 0.08e-3) else {
            panic!("a little late")
        };
        assert!((bytes - 200e3).abs() < 1.0, "{bytes}");
        // Probes with random delays between 0 and 2 ms have no plateau.
        let mut uneven = late(0.0);
        for (at, look) in uneven.iter_mut().enumerate() {
            look.rtt = steady(look.rtt.unwrap().min_s + 0.0005 * (at % 5) as f64);
        }
        let found = with(&uneven, 0.0);
        assert!(
            !matches!(found, BufferFinding::Estimate { .. } | BufferFinding::LowerBound { .. }),
            "{found:?}"
        );
    }

    /// Hosts that delay some of the probes of each interval, as on a machine whose processors are busy.
    #[test]
    fn probes_that_differ_within_an_interval_set_the_resolution() {
        let uneven = |buffer_ms: f64, ms: f64| {
            let mut looks = looks(buffer_ms, 60);
            for rtt in looks.iter_mut().filter_map(|look| look.rtt.as_mut()) {
                rtt.max_s += ms / 1e3;
            }
            step(&looks, &STEP).unwrap().finding
        };
        // 200 kB are 1.6 ms. With up to 0.8 ms more, they are 200 to 300 kB.
        let found = uneven(1.6, 0.8);
        let BufferFinding::OutOfReach { bytes, noise_bytes } = found else { panic!("{found:?}") };
        assert!((bytes - 250e3).abs() < 1.0 && (noise_bytes - 50e3).abs() < 1.0, "{found:?}");
        // The same delay is 5 % of 1 MB.
        let found = uneven(8.0, 0.8);
        let BufferFinding::Estimate { bytes, .. } = found else { panic!("{found:?}") };
        assert!((bytes - 1.05e6).abs() < 1.0, "{bytes}");
        // Without a loss, only what every probe met is certain: 0.25 of 238 ms, the middle of the last interval.
        let found = uneven(100.0, 0.8);
        let BufferFinding::LowerBound { bytes, .. } = found else { panic!("{found:?}") };
        assert!((bytes - 7.4375e6).abs() < 1.0, "{bytes}");
    }
}
