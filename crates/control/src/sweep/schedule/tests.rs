//! Sweeps over a path that is a formula, in virtual time.

use super::*;
use linerate_model::SizeList;

/// A path with a start-up time and a rate; every trial has an overhead at both ends.
struct SimulatedPath {
    startup_s: f64,
    bps: f64,
    overhead_s: f64,
    /// The trials so far: size and number of messages.
    seen: Vec<(u64, u32)>,
    now: f64,
}

impl SimulatedPath {
    fn new(startup_s: f64, bps: f64) -> Self {
        Self { startup_s, bps, overhead_s: 2.0 * startup_s, seen: Vec::new(), now: 0.0 }
    }

    /// Runs the whole sweep; returns its points in order.
    fn run(&mut self, sweep: &Sweep) -> (Vec<SizePoint>, SweepSchedule) {
        let mut schedule = SweepSchedule::new(sweep);
        let mut points = Vec::new();
        while let NextTrial::Trial(trial) = schedule.next(span(self.now)) {
            assert!(trial.is_sound(sweep), "{trial:?}");
            assert_eq!(trial.trial as usize, self.seen.len());
            self.seen.push((trial.message_bytes.get(), trial.repeats));
            let (own, peer) = self.carry(&trial, sweep.mode());
            let spent = own.elapsed_ns.max(peer.elapsed_ns);
            assert!(spent < trial.timeout_ns, "{trial:?} took {spent}");
            self.now += spent.as_secs_f64() + self.overhead_s;
            points.extend(schedule.counted(span(self.now), &own, &peer).unwrap());
        }
        points.extend(schedule.take_remaining());
        (points, schedule)
    }

    fn carry(&self, trial: &SweepTrial, mode: MessageMode) -> (TrialCount, TrialCount) {
        let one = self.startup_s + trial.message_bytes.get() as f64 * 8.0 / self.bps;
        let payload = Bytes::new(trial.message_bytes.get() * u64::from(trial.repeats));
        let count = |turn: f64, first: f64, sends: bool, reads: bool| TrialCount {
            trial: trial.trial,
            read_bytes: if reads { payload } else { Bytes::new(0) },
            written_bytes: if sends { payload } else { Bytes::new(0) },
            elapsed_ns: span(first + turn * f64::from(trial.repeats - 1)),
            first_ns: span(first),
            ..TrialCount::default()
        };
        match mode {
            MessageMode::PingPong => {
                (count(2.0 * one, 2.0 * one, true, true), count(2.0 * one, one, true, true))
            }
            // The sender has handed over everything early; the first message arrives late.
            MessageMode::Stream => (count(0.0, 0.0, true, false), count(one, 2.0 * one, false, true)),
            MessageMode::Both => (count(one, 2.0 * one, true, true), count(one / 2.0, one, true, true)),
        }
    }
}

fn span(seconds: f64) -> Span {
    Span::from_secs_f64(seconds).unwrap()
}

fn list(sizes: &[u64]) -> Option<SizeList> {
    Some(SizeList(sizes.iter().copied().map(Bytes::new).collect()))
}

#[test]
fn every_size_gets_its_trials_within_the_time_and_the_path_comes_back() {
    for (stream, bidir) in [(false, false), (true, false), (false, true)] {
        let sweep = Sweep { stream, bidir, time: Some(Span::from_secs(30)), ..Sweep::default() };
        let mut path = SimulatedPath::new(20e-6, 1e10);
        let (points, schedule) = path.run(&sweep);
        assert_eq!((points.len(), schedule.unmeasured()), (schedule.sizes.len(), Vec::new()));
        // Rehearsals and gaps between trials come on top of the planned time.
        assert!((15.0..36.0).contains(&path.now), "{}", path.now);
        for point in &points {
            let bytes = point.message_bytes.get() as f64;
            let expected = 20e-6 + bytes * 8.0 / 1e10;
            assert_eq!(point.trials, Some(7), "{point:?}");
            assert!((point.best.as_secs_f64() - expected).abs() < 2e-9 + expected * 1e-4, "{point:?}");
            let messages = if bidir { 2.0 } else { 1.0 };
            let rate = point.bitrate.unwrap().bps();
            assert!((rate / (messages * bytes * 8.0 / expected) - 1.0).abs() < 1e-3, "{point:?}");
            // Seven equal values: the interval extends from the first to the last, with a coverage of 1 - 2 /
            // 2^7.
            let interval = point.interval.unwrap();
            assert!((interval.coverage.get() - 126.0 / 128.0).abs() < 1e-9, "{point:?}");
            assert_eq!(point.median, Some(interval.low));
        }
    }
}

#[test]
fn five_trials_have_a_median_and_no_interval() {
    let sweep = Sweep { trials: 5, sizes: list(&[100]), ..Sweep::default() };
    let (points, _) = SimulatedPath::new(1e-3, 1e9).run(&sweep);
    assert_eq!((points[0].trials, points[0].interval), (Some(5), None));
    assert!(points[0].median.is_some());
}

#[test]
fn a_path_that_is_slower_than_its_rehearsal_has_all_its_trials() {
    let sweep = Sweep { sizes: list(&[1, 2, 4]), time: Some(Span::from_secs(3)), ..Sweep::default() };
    let mut schedule = SweepSchedule::new(&sweep);
    let (mut now, mut points) = (0.0, Vec::new());
    while let NextTrial::Trial(trial) = schedule.next(span(now)) {
        // The first trials see a path of 5 us, all others one of 20 us.
        let path = SimulatedPath::new(if trial.trial < 3 { 5e-6 } else { 20e-6 }, 1e9);
        let (own, peer) = path.carry(&trial, MessageMode::PingPong);
        now += own.elapsed_ns.as_secs_f64() + 1e-4;
        points.extend(schedule.counted(span(now), &own, &peer).unwrap());
    }
    assert_eq!(points.iter().map(|point| point.trials).collect::<Vec<_>>(), [Some(7); 3]);
    assert!(now < 3.5, "{now}");
}

#[test]
fn large_messages_on_a_slow_path_get_fewer_trials_and_small_ones_all() {
    // 8 MiB take 0.67 s one way at 100 Mb/s, far above their share of 20 s.
    let sweep = Sweep { time: Some(Span::from_secs(20)), ..Sweep::default() };
    let mut path = SimulatedPath::new(1e-3, 1e8);
    let (points, schedule) = path.run(&sweep);
    assert!(path.now < 42.0, "{}", path.now);
    assert!(
        points.iter().filter(|point| point.message_bytes.get() < 1000).all(|point| point.trials == Some(7))
    );
    let largest = points.last().unwrap();
    assert!(largest.trials < Some(7) && largest.repeats == Some(1), "{largest:?}");
    assert!(!schedule.too_slow());
}

#[test]
fn a_message_of_a_second_is_the_last_and_the_larger_ones_are_named() {
    // 1 Mb/s: 128 KiB take 1.05 s.
    let sizes = list(&[1, 1 << 10, 1 << 17, 1 << 18, 1 << 20]);
    for order in [TrialSequence::Ascending, TrialSequence::Interleaved] {
        let sweep =
            Sweep { sizes: sizes.clone(), order, time: Some(Span::from_secs(60)), ..Sweep::default() };
        let (points, schedule) = SimulatedPath::new(1e-3, 1e6).run(&sweep);
        let measured: Vec<u64> = points.iter().map(|point| point.message_bytes.get()).collect();
        assert_eq!(measured, [1, 1 << 10, 1 << 17], "{order:?}");
        assert_eq!(schedule.unmeasured(), [1 << 18, 1 << 20].map(Bytes::new));
        assert!(schedule.too_slow());
    }
}

#[test]
fn when_the_time_is_over_the_rest_is_named() {
    let sweep = Sweep { sizes: list(&[1 << 20, 2 << 20, 4 << 20]), ..Sweep::default() };
    let sweep = Sweep { time: Some(Span::from_ms(100)), ..sweep };
    // 1 MiB takes 84 ms one way: two round trips take more than twice the time.
    let (points, schedule) = SimulatedPath::new(0.0, 1e8).run(&sweep);
    assert_eq!(points.len() + schedule.unmeasured().len(), 3);
    assert_eq!(schedule.unmeasured().last(), Some(&Bytes::new(4 << 20)));
    assert!(!schedule.too_slow());
}

#[test]
fn interleaved_trials_go_round() {
    let sweep = Sweep {
        sizes: list(&[1, 10, 100]),
        trials: 3,
        order: TrialSequence::Interleaved,
        ..Sweep::default()
    };
    let mut path = SimulatedPath::new(1e-4, 1e9);
    let (points, schedule) = path.run(&sweep);
    assert_eq!(points.iter().map(|point| point.trials).collect::<Vec<_>>(), [Some(3); 3]);
    let mut sizes: Vec<u64> = path.seen.iter().map(|(size, _)| *size).collect();
    sizes.dedup();
    assert_eq!(sizes, [1, 10, 100, 1, 10, 100, 1, 10, 100]);
    assert!(schedule.sizes.iter().all(|size| size.done));
}

#[test]
fn a_size_that_is_known_well_enough_gets_no_further_trial() {
    let sweep = Sweep { trials: 1000, until: Ratio::new(0.01), sizes: list(&[1, 10]), ..Sweep::default() };
    let (points, _) = SimulatedPath::new(1e-4, 1e9).run(&sweep);
    // An interval needs at least six trials, and all are alike.
    assert_eq!(points.iter().map(|point| point.trials).collect::<Vec<_>>(), [Some(6); 2]);
}

#[test]
fn ends_that_do_not_agree_end_the_series() {
    let sweep = Sweep { sizes: list(&[100]), ..Sweep::default() };
    let mut schedule = SweepSchedule::new(&sweep);
    let NextTrial::Trial(trial) = schedule.next(Span::ZERO) else { panic!("no trial") };
    let (own, peer) = SimulatedPath::new(1e-4, 1e9).carry(&trial, MessageMode::PingPong);
    let peer = TrialCount { read_bytes: Bytes::new(1), ..peer };
    let error = schedule.counted(Span::from_ms(1), &own, &peer).unwrap_err();
    assert!(error.contains("1B read"), "{error}");
    // A count without a running trial is ignored.
    assert_eq!(schedule.counted(Span::from_ms(1), &own, &peer), Ok(None));
}

#[test]
fn a_clock_that_does_not_advance_and_a_peer_that_sends_nonsense_do_no_harm() {
    for mode in [(false, false), (true, false), (false, true)] {
        let sweep = Sweep { stream: mode.0, bidir: mode.1, sizes: list(&[1, 2, 4]), ..Sweep::default() };
        let mut schedule = SweepSchedule::new(&sweep);
        let mut steps = 0;
        while let NextTrial::Trial(trial) = schedule.next(Span::from_ms(steps)) {
            assert!(trial.is_sound(&sweep));
            let own = TrialCount::default();
            let peer = TrialCount { elapsed_ns: Span::from_ns(u64::MAX), ..TrialCount::default() };
            schedule.counted(Span::from_ms(steps), &own, &peer).unwrap();
            steps += 1;
            assert!(steps < 100_000);
        }
    }
}

/// A trial of ten messages of 1 MB at 1 Gb/s, 8 ms each. The reader is so late for the first that `waiting`
/// others are waiting.
fn late(waiting: u64) -> TrialCount {
    let message = 1_000_000;
    let last_ms = 80.0;
    // The first was read when it and the waiting ones had arrived.
    let first_ms = 8.0 * (1.0 + waiting as f64);
    TrialCount {
        read_bytes: Bytes::new(10 * message),
        elapsed_ns: span(last_ms / 1e3),
        first_ns: span(first_ms / 1e3),
        waiting_bytes: Bytes::new(waiting * message),
        ..TrialCount::default()
    }
}

#[test]
fn a_late_first_read_makes_no_message_faster() {
    for waiting in 0..=9 {
        let seconds = between_messages(10, &late(waiting));
        assert!((seconds / 8e-3 - 1.0).abs() < 1e-9, "{waiting} waited: {seconds}");
    }
    // Not reported, as by a peer of an older version: 40 ms for nine messages of which five had arrived.
    let unreported = TrialCount { waiting_bytes: Bytes::new(0), ..late(5) };
    assert!(between_messages(10, &unreported) < 4e-3);
    let absurd = TrialCount { waiting_bytes: Bytes::new(u64::MAX), ..late(5) };
    assert!(between_messages(10, &absurd).is_finite());
    assert!(between_messages(1, &TrialCount::default()).is_finite());
}

/// With unequal directions, half the round trip is a mean that neither direction reaches.
#[test]
fn the_slower_of_two_unequal_ways_has_the_rate() {
    let sweep = Sweep { sizes: list(&[1_000_000]), trials: 1, ..Sweep::default() };
    let rate = |up_bps: f64, down_bps: f64, whole: bool| {
        let mut schedule = SweepSchedule::new(&sweep);
        let mut now = 0.0;
        let mut result = None;
        while let NextTrial::Trial(trial) = schedule.next(span(now)) {
            let bytes = trial.message_bytes.get() as f64 * f64::from(trial.repeats);
            // The first 64 KiB of each message arrive in one piece.
            let later = (1_000_000 - 65_536) * u64::from(trial.repeats);
            let took = |bps: f64| later as f64 * 8.0 / bps;
            let elapsed = bytes * 8.0 / up_bps + bytes * 8.0 / down_bps;
            let count = |arriving: f64, later: u64| TrialCount {
                trial: trial.trial,
                read_bytes: Bytes::new(bytes as u64),
                written_bytes: Bytes::new(bytes as u64),
                elapsed_ns: span(elapsed),
                first_ns: span(elapsed / f64::from(trial.repeats)),
                arrived_bytes: Bytes::new(later),
                arriving_ns: span(arriving),
                ..TrialCount::default()
            };
            // In a fast direction each message may arrive in one piece.
            let back = if whole { count(0.0, 0) } else { count(took(down_bps), later) };
            let there = count(took(up_bps), later);
            now += elapsed;
            let point = schedule.counted(span(now), &back, &there).unwrap();
            result = result.or(point);
        }
        result.unwrap().bitrate.unwrap().bps()
    };
    // 1 Gb/s there and 20 Gb/s back: half the round trip gives 1.905 Gb/s.
    for whole in [false, true] {
        let found = rate(1e9, 20e9, whole);
        assert!((found / 1e9 - 1.0).abs() < 1e-3, "{found}");
    }
    assert!((rate(20e9, 1e9, false) / 1e9 - 1.0).abs() < 1e-3);
    // Directions that hardly differ keep their mean, which has less noise.
    assert!((rate(1e9, 1.1e9, false) / 1.0476e9 - 1.0).abs() < 1e-3);
}
