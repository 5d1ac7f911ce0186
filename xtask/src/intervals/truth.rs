//! The bottleneck's own counts, read frequently, and the rate that follows from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_sock::netns::with_netns;
use linerate_sock::priority::Urgent;
use linerate_sock::{clock, iface};
use linerate_theory::stats::series;

use super::path::OUT_INTERFACE;

/// Interval between two readings of the counter.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Payload of a full frame divided by the frame as the bucket counts it: IPv4, TCP with timestamps, Ethernet
/// header.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;
/// Under load, at least this share of the rate passes the bucket; before and after it, less does.
const LOADED_SHARE: f64 = 0.5;
/// Window for that check, s.
const WINDOW_S: f64 = 0.1;
/// Number of intervals of equal length for batch means.
const INTERVALS: usize = 50;

/// A reading: time in seconds, and bytes so far.
pub(super) type BucketReading = (f64, f64);

/// Reads the bucket's counter until it is stopped.
pub(super) struct BucketWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<BucketReading>>,
}

impl BucketWatch {
    /// Starts in the namespace of the router.
    pub(super) fn start(router: &str) -> Result<Self, String> {
        let text = crate::netns::output(
            "ip",
            &["netns", "exec", router, "cat", &format!("/sys/class/net/{OUT_INTERFACE}/ifindex")],
        )?;
        let index: u32 =
            text.trim().parse().map_err(|_| format!("{OUT_INTERFACE} has no number: {text:?}"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, namespace) = (Arc::clone(&stop), router.to_owned());
        let watch = move || {
            let look = || {
                // The reference must not be late on a busy machine. It sleeps nearly all of the time.
                let _urgent = Urgent::claim().ok();
                let mut looks = Vec::new();
                let mut next = clock::now();
                while !flag.load(Ordering::Relaxed) {
                    if let Ok(Some(counts)) = iface::root_queue(index) {
                        looks.push((clock::now().as_ns() as f64 / 1e9, counts.bytes as f64));
                    }
                    next = (next + POLL_INTERVAL).max(clock::now());
                    clock::sleep_until(next);
                }
                looks
            };
            with_netns(&namespace, look).unwrap_or_default()
        };
        let thread = linerate_sock::thread::spawn("watch", watch).map_err(|e| e.to_string())?;
        Ok(Self { stop, thread })
    }

    /// Stops the readings and returns them.
    pub(super) fn finish(self) -> Result<Vec<BucketReading>, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the watch panicked".to_owned())
    }
}

/// Payload carried by a bottleneck in the seconds of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Truth {
    /// Mean rate, bit/s.
    pub(super) rate_bps: f64,
    /// Half the width of its 95 % interval by batch means; absent if batches correlate.
    pub(super) half_bps: Option<f64>,
}

/// Computes the rate from the readings, the rate of the bucket, and the measured time.
pub(super) fn truth(looks: &[BucketReading], rate_bps: f64, seconds: f64) -> Option<Truth> {
    // Only readings after a change of the counter show when something passed.
    let mut steps: Vec<BucketReading> = Vec::new();
    for look in looks {
        if steps.last().is_none_or(|last| look.1 > last.1) {
            steps.push(*look);
        }
    }
    let coarse = steps.iter().position(|(at, bytes)| {
        let ahead = at_time(&steps, at + WINDOW_S) - bytes;
        ahead * 8.0 >= LOADED_SHARE * rate_bps * WINDOW_S
    })?;
    // Within that window, the load starts where the counter starts to rise at that rate. The first rise has
    // passed when the receiver's time starts: a full bucket passes a burst at once, and the rate counts only
    // what comes after the first read.
    let rises = |two: &[BucketReading]| {
        (two[1].1 - two[0].1) * 8.0 >= LOADED_SHARE * rate_bps * (two[1].0 - two[0].0)
    };
    let begin = coarse + steps[coarse..].windows(2).position(rises)? + 1;
    let (from, _) = *steps.get(begin)?;
    let within: Vec<BucketReading> =
        steps[begin..].iter().copied().take_while(|(at, _)| *at <= from + seconds).collect();
    let (first, last) = (within.first()?, within.last()?);
    let rate = |bytes: f64, time: f64| bytes * 8.0 * PAYLOAD_SHARE / time;
    let (began, length) = (first.0, last.0 - first.0);
    let part = length / INTERVALS as f64;
    let rates: Vec<f64> = (0..INTERVALS)
        .map(|number| {
            let at = began + number as f64 * part;
            rate(at_time(&within, at + part) - at_time(&within, at), part)
        })
        .collect();
    let half_bps = series::batch_means(&rates, 0.95).map(|found| found.half_width());
    (length > 0.0).then(|| Truth { rate_bps: rate(last.1 - first.1, length), half_bps })
}

/// The counter at a time, interpolated between two steps.
fn at_time(steps: &[BucketReading], at: f64) -> f64 {
    let next = steps.partition_point(|(time, _)| *time < at);
    match (next.checked_sub(1).and_then(|before| steps.get(before)), steps.get(next)) {
        (Some((t0, b0)), Some((t1, b1))) => b0 + (b1 - b0) * (at - t0) / (t1 - t0),
        (Some((_, bytes)), None) | (None, Some((_, bytes))) => *bytes,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 1514 bytes at 2 Mb/s for five seconds, after a second of probes of 106 bytes, read every 2 ms.
    /// `burst` additional bytes leave with the first frame.
    fn looks(frame_bits: f64, burst: f64) -> Vec<BucketReading> {
        let counter = |at: f64| {
            let probes = (at.min(1.0) * 100.0).floor() * 106.0;
            let frames = ((at - 1.0).clamp(0.0, 5.2) * 2e6 / frame_bits).floor() * frame_bits / 8.0;
            let burst = if frames > 0.0 { burst } else { 0.0 };
            probes + frames + burst
        };
        (0..4000).map(|tick| f64::from(tick) * 0.002).map(|at| (at, counter(at))).collect()
    }

    #[test]
    fn whole_frames_do_not_blur_the_rate() {
        let expected = 2e6 * 1448.0 / 1514.0;
        // A bucket of 5000 bytes passes three more frames.
        for burst in [0.0, 3.0 * 1514.0] {
            let found = truth(&looks(1514.0 * 8.0, burst), 2e6, 5.0).unwrap();
            // The time of a step is known to one interval: 2 ms of 5 s.
            assert!((found.rate_bps / expected - 1.0).abs() < 5e-4, "{found:?}");
            assert!(found.half_bps.is_some_and(|half| half < 0.01 * expected), "{found:?}");
        }
    }

    #[test]
    fn without_a_load_there_is_no_truth() {
        let idle: Vec<BucketReading> =
            (0..1000).map(|tick| (f64::from(tick) * 0.002, f64::from(tick) * 21.2)).collect();
        assert_eq!(truth(&idle, 2e6, 1.0), None);
        assert_eq!(truth(&[], 2e6, 1.0), None);
    }

    #[test]
    fn the_counter_is_known_between_two_looks() {
        let steps = [(1.0, 100.0), (2.0, 300.0)];
        assert_eq!([0.5, 1.0, 1.5, 3.0].map(|at| at_time(&steps, at)), [100.0, 100.0, 200.0, 300.0]);
    }
}
