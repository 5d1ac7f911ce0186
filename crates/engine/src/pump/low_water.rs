//! Fewer wake-ups for a fast receiver: it waits for a whole block while blocks arrive within a millisecond, if that is
//! not slower.
//!
//! A receiver that keeps up with its sender wakes for every packet or two, which can cost the sender more than the
//! bytes do. With a low-water mark on the socket (SO_RCVLOWAT) the kernel delays the wake-up. But a receiver that
//! sleeps also leaves the work of TCP to the processor that delivers the packets, which is the sender's on the same
//! host. Which of the two costs more depends on packets, congestion control and processor, so a [`MarkTrial`] measures
//! it when the flow has become fast.
//!
//! The mark is set only if it delays no byte by more than a few milliseconds, and only if the receive buffer holds
//! several times the bytes of a round trip, so that the receive window does not shrink. The first read below the mark
//! removes it.

use std::net::TcpStream;
use std::time::Duration;

use linerate_sock::stream::{set_low_water, set_recv_timeout};
use linerate_sock::{Mono, sockopt, tcp_info};

use crate::counters::{Counters, Counts};

/// The mark is set only if it fills within this time.
const MAX_FILL_TIME: Duration = Duration::from_millis(1);
/// Longest time that bytes wait for the mark to be reached. The kernel rounds it up to jiffies.
const MAX_WAIT: Duration = Duration::from_millis(2);
/// Number of fills to observe before the mark is set.
const OBSERVED_FILLS: u64 = 16;
/// Divisor of the receive buffer that bounds both the mark and the bytes of a round trip: the sender must not
/// wait for the reader.
const BUFFER_DIVISOR: u64 = 8;
/// A smaller mark saves nothing.
const MIN_MARK_BYTES: usize = 16 << 10;

/// Length of a turn of a trial.
const TURN: Duration = Duration::from_millis(20);
/// Turns of a trial with the mark, and as many without it.
const TURNS: usize = 3;
/// The mark stays unless the flow was faster without it by more than one part in this number. A smaller difference may be
/// a disturbance, and the mark saves wake-ups.
const MIN_GAIN_DIVISOR: u64 = 10;

/// A change of the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkChange {
    /// The flow is fast enough for a mark.
    Raise {
        /// Rate of the flow.
        bytes_per_second: u64,
    },
    /// The mark delayed bytes.
    Remove,
}

/// Measures how fast the mark would fill.
#[derive(Debug)]
struct FillMeter {
    /// Desired mark, bytes; 0 for none.
    most: usize,
    /// Mark in force, bytes; 0 for none.
    mark: usize,
    bytes: u64,
    since: Mono,
}

impl FillMeter {
    fn new(most: usize) -> Self {
        Self { most, mark: 0, bytes: 0, since: Mono::FAR }
    }

    /// Records a read of `bytes` bytes that returned at `now`.
    #[inline]
    fn note(&mut self, now: Mono, bytes: usize) -> Option<MarkChange> {
        if bytes < self.mark {
            self.restart(now);
            return Some(MarkChange::Remove);
        }
        if self.mark == self.most {
            return None;
        }
        self.bytes += bytes as u64;
        if self.bytes < OBSERVED_FILLS * self.most as u64 {
            self.since = self.since.min(now);
            return None;
        }
        let elapsed = now.since(self.since).as_nanos().max(1);
        let fast = u128::from(self.bytes) * MAX_FILL_TIME.as_nanos() > self.most as u128 * elapsed;
        let bytes_per_second = u128::from(self.bytes) * 1_000_000_000 / elapsed;
        self.restart(now);
        let bytes_per_second = u64::try_from(bytes_per_second).unwrap_or(u64::MAX);
        fast.then_some(MarkChange::Raise { bytes_per_second })
    }

    fn restart(&mut self, now: Mono) {
        (self.bytes, self.since) = (0, now);
    }
}

/// What comes next in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrialStep {
    /// A turn with the mark, or without it.
    Turn { marked: bool },
    /// The end: whether the mark stays.
    Decision { keeps: bool },
}

/// Compares the rate of a flow with and without the mark, in turns.
///
/// The streams of a flow compare what all of them receive. Their turns follow the clock of the host, so that all change
/// together and do not take each other's share.
#[derive(Debug)]
struct MarkTrial {
    /// Number of the current turn since the start of the clock. Those with an odd number have the mark.
    turn: u64,
    /// Whether this turn was observed from its start.
    is_whole: bool,
    /// Bytes of the flow before this turn.
    before: u64,
    /// Bytes of the whole turns without the mark and with it.
    turns: [Vec<u64>; 2],
}

impl MarkTrial {
    fn number_of_turn(now: Mono) -> u64 {
        u64::try_from(u128::from(now.0) / TURN.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Begins during a turn, whose rest does not count.
    fn new(now: Mono) -> Self {
        Self { turn: Self::number_of_turn(now), is_whole: false, before: 0, turns: [const { Vec::new() }; 2] }
    }

    /// Tells what comes next when a turn is over, at a read that returned at `now`, when the flow had `total` bytes.
    #[inline]
    fn note(&mut self, now: Mono, total: impl FnOnce() -> u64) -> Option<TrialStep> {
        let turn = Self::number_of_turn(now);
        if turn == self.turn {
            return None;
        }
        let total = total();
        let bytes = total.saturating_sub(self.before);
        let is_next = turn == self.turn + 1;
        if self.is_whole && is_next {
            let [without, with] = &mut self.turns;
            if self.turn % 2 == 1 { with.push(bytes) } else { without.push(bytes) }
        }
        (self.turn, self.is_whole, self.before) = (turn, is_next, total);
        let decision = self.decision().map(|keeps| TrialStep::Decision { keeps });
        Some(decision.unwrap_or(TrialStep::Turn { marked: turn % 2 == 1 }))
    }

    /// Whether the mark stays; absent before enough turns of both kinds.
    fn decision(&mut self) -> Option<bool> {
        let [without, with] = &mut self.turns;
        let (without, with) = (median(without)?, median(with)?);
        Some(without <= with.saturating_add(with / MIN_GAIN_DIVISOR))
    }
}

/// The median of enough turns: one in which the host did something else has no weight.
fn median(turns: &mut [u64]) -> Option<u64> {
    turns.sort_unstable();
    turns.get(turns.len() / 2).copied().filter(|_| turns.len() >= TURNS)
}

/// The mark for a receive buffer of `buffer` bytes when `per_round_trip` bytes arrive in a round trip. Absent
/// if the mark would be too small, if it could shrink the window, or if the round trip is unknown.
fn mark_for(buffer: u64, per_round_trip: Option<u64>, most: usize) -> Option<usize> {
    let part = buffer / BUFFER_DIVISOR;
    let mark = usize::try_from(part).unwrap_or(usize::MAX).min(most);
    (per_round_trip.is_some_and(|bytes| bytes <= part) && mark >= MIN_MARK_BYTES).then_some(mark)
}

/// The low-water mark of one connection.
pub(super) struct LowWater<'s> {
    socket: &'s TcpStream,
    /// The counters of all streams of the flow.
    streams: &'s [Counters],
    watch: FillMeter,
    timeout: Duration,
    trial: Option<MarkTrial>,
    /// The outcome of the trial.
    keeps: Option<bool>,
    bytes_per_second: u64,
}

impl<'s> LowWater<'s> {
    /// For a receiver that reads up to `most` bytes at once and waits at most `timeout`, one of these streams; with
    /// `most` 0 there is never a mark.
    pub(super) fn new(
        socket: &'s TcpStream,
        streams: &'s [Counters],
        most: usize,
        timeout: Duration,
    ) -> Self {
        let most = if most < MIN_MARK_BYTES { 0 } else { most };
        let watch = FillMeter::new(most);
        Self { socket, streams, watch, timeout, trial: None, keeps: None, bytes_per_second: 0 }
    }

    /// Called after a read of `bytes` bytes that returned at `now`.
    #[inline]
    pub(super) fn after(&mut self, now: Mono, bytes: usize) {
        if self.keeps == Some(false) {
            return;
        }
        if let Some(change) = self.watch.note(now, bytes) {
            self.apply(now, change);
        }
        let total = || Counts::total_of(self.streams);
        if let Some(step) = self.trial.as_mut().and_then(|trial| trial.note(now, total)) {
            self.follow(step);
        }
    }

    fn best_mark(&self) -> Option<usize> {
        let buffer = sockopt::rcv_buf(self.socket).ok()?;
        // The receiver's own estimate; the kernel reports 0 until it has one.
        let rtt_us = tcp_info(self.socket).ok()?.rcv_rtt.filter(|us| *us > 0);
        let per_round_trip = rtt_us.map(|us| self.bytes_per_second.saturating_mul(u64::from(us)) / 1_000_000);
        mark_for(buffer, per_round_trip, self.watch.most)
    }

    #[cold]
    fn apply(&mut self, now: Mono, change: MarkChange) {
        match change {
            MarkChange::Raise { bytes_per_second } => {
                self.bytes_per_second = bytes_per_second;
                match self.keeps {
                    Some(_) => self.raise(),
                    None => {
                        self.trial.get_or_insert_with(|| MarkTrial::new(now));
                    }
                }
            }
            MarkChange::Remove => {
                self.trial = None;
                self.remove();
            }
        }
    }

    /// Does what a trial needs next.
    #[cold]
    fn follow(&mut self, step: TrialStep) {
        match step {
            TrialStep::Turn { marked: true } => {
                self.raise();
                if self.watch.mark == 0 {
                    // There is nothing to try while the window may be needed.
                    self.trial = None;
                }
            }
            TrialStep::Decision { keeps: true } => {
                (self.trial, self.keeps) = (None, Some(true));
                self.raise();
            }
            TrialStep::Turn { marked: false } => self.remove(),
            TrialStep::Decision { keeps: false } => {
                (self.trial, self.keeps) = (None, Some(false));
                self.remove();
            }
        }
    }

    fn raise(&mut self) {
        if let Some(mark) = self.best_mark().filter(|mark| *mark > self.watch.mark) {
            self.set(mark);
        }
    }

    /// If the kernel refuses, the connection works as before, only slower.
    fn set(&mut self, mark: usize) {
        // Timeout first: a mark without it could delay bytes for the whole of `timeout`.
        let limited = set_recv_timeout(self.socket, Some(MAX_WAIT));
        if limited.and_then(|()| set_low_water(self.socket, mark)).is_ok() {
            self.watch.mark = mark;
        }
    }

    fn remove(&mut self) {
        self.watch.mark = 0;
        let _ = set_low_water(self.socket, 1);
        let _ = set_recv_timeout(self.socket, Some(self.timeout));
    }
}

impl Drop for LowWater<'_> {
    /// A borrowed connection continues as a link, without the mark.
    fn drop(&mut self) {
        if self.watch.mark > 0 {
            self.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::poll::{Interest, wait_for};
    use linerate_sock::queues;
    use std::io::Write;
    use std::net::TcpListener;

    const BLOCK: usize = 128 << 10;

    /// Feeds reads of `bytes` bytes every `gap_us` to the watch; returns its changes with the number of the
    /// read.
    fn play(
        watch: &mut FillMeter,
        from_us: u64,
        reads: u64,
        gap_us: u64,
        bytes: usize,
    ) -> Vec<(u64, MarkChange)> {
        (0..reads)
            .filter_map(|read| {
                let now = Mono((from_us + read * gap_us) * 1000);
                Some((read, watch.note(now, bytes)?))
            })
            .collect()
    }

    #[test]
    fn a_block_in_less_than_a_millisecond_raises_the_mark_and_a_slower_one_does_not() {
        let raise = MarkChange::Raise { bytes_per_second: 16 * BLOCK as u64 * 10_000 / 135 };
        assert_eq!(play(&mut FillMeter::new(BLOCK), 0, 17, 900, BLOCK), [(15, raise)], "in 13.5 ms");
        assert_eq!(play(&mut FillMeter::new(BLOCK), 0, 200, 1100, BLOCK), []);
        // At 1 Gb/s in packets of 1448 bytes, 128 KiB take 1.05 ms.
        assert_eq!(play(&mut FillMeter::new(BLOCK), 0, 10_000, 12, 1448), []);
        assert!(!play(&mut FillMeter::new(BLOCK), 0, 10_000, 10, 1448).is_empty());
    }

    #[test]
    fn a_read_below_the_mark_removes_it_and_the_watch_begins_anew() {
        let mut watch = FillMeter::new(BLOCK);
        watch.mark = BLOCK;
        assert_eq!(play(&mut watch, 0, 100, 10, BLOCK), []);
        assert_eq!(watch.note(Mono(2_000_000), BLOCK - 1), Some(MarkChange::Remove));
        watch.mark = 0;
        assert_eq!(play(&mut watch, 2000, 100, 2000, BLOCK), []);
        watch.mark = BLOCK;
        assert_eq!(watch.note(Mono(500_000_000), 0), Some(MarkChange::Remove), "nothing came in time");
    }

    #[test]
    fn a_pause_is_no_speed() {
        let mut watch = FillMeter::new(BLOCK);
        assert_eq!(play(&mut watch, 0, 15, 1, BLOCK), []);
        assert_eq!(
            watch.note(Mono(1_000_000_000), BLOCK),
            None,
            "fifteen blocks at once and one a second later"
        );
    }

    #[test]
    fn a_mark_that_the_buffer_kept_small_is_raised_again_when_the_buffer_has_grown() {
        let mut watch = FillMeter::new(BLOCK);
        watch.mark = BLOCK / 2;
        let changes = play(&mut watch, 0, 16, 10, BLOCK);
        assert!(matches!(changes[..], [(15, MarkChange::Raise { .. })]), "{changes:?}");
    }

    #[test]
    fn the_mark_is_an_eighth_of_the_buffer_or_the_block_and_never_tiny() {
        let mark_for = |buffer| mark_for(buffer, Some(1), BLOCK);
        assert_eq!(mark_for(6 << 20), Some(BLOCK));
        assert_eq!(mark_for(512 << 10), Some(64 << 10));
        assert_eq!(mark_for(64 << 10), None);
        assert_eq!(mark_for(0), None);
    }

    #[test]
    fn a_window_that_may_be_needed_gets_no_mark() {
        assert_eq!(mark_for(6 << 20, Some(6 << 17), BLOCK), Some(BLOCK));
        assert_eq!(mark_for(6 << 20, Some((6 << 17) + 1), BLOCK), None);
        assert_eq!(mark_for(6 << 20, None, BLOCK), None, "of an unknown round trip");
    }

    #[test]
    fn the_kernel_waits_for_the_mark_until_it_is_removed_or_the_flow_has_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let readable = || wait_for(&far, Interest::READ, Mono(0)).unwrap();
        let mut low_water = LowWater::new(&far, &[], BLOCK, Duration::from_millis(20));
        near.write_all(b"x").unwrap();
        while queues::readable(&far).unwrap() == 0 {}
        assert!(readable());
        low_water.set(MIN_MARK_BYTES);
        assert!(!readable(), "one byte is no block");
        assert_eq!(far.read_timeout().unwrap().map(|limit| limit < Duration::from_millis(20)), Some(true));
        low_water.after(Mono(1_000_000), 1);
        assert!(readable());
        assert_eq!(far.read_timeout().unwrap(), Some(Duration::from_millis(20)));
        low_water.set(MIN_MARK_BYTES);
        assert!(!readable());
        drop(low_water);
        assert!(readable());
    }

    /// Plays a trial that begins at `from_us` with a read every `gap_us`. `bytes` gives the size of a read by its time and
    /// by whether the mark is set. Returns the outcome and how long it took, us.
    fn play_trial(from_us: u64, gap_us: u64, bytes: impl Fn(u64, bool) -> usize) -> (bool, u64) {
        let at = |us: u64| Mono(us * 1000);
        let mut trial = MarkTrial::new(at(from_us));
        let (mut is_marked, mut total) = (false, 0);
        for us in (from_us..).step_by(gap_us as usize) {
            total += bytes(us, is_marked);
            match trial.note(at(us), || total as u64) {
                None => {}
                Some(TrialStep::Turn { marked }) => is_marked = marked,
                Some(TrialStep::Decision { keeps }) => return (keeps, us - from_us),
            }
        }
        unreachable!("the clock has no end")
    }

    #[test]
    fn the_mark_stays_unless_the_flow_is_faster_without_it() {
        for from_us in [0, 7_000, 19_999, 20_000, 33_333] {
            for gap_us in [10, 90, 1_000] {
                let keeps = |percent: usize| {
                    let bytes = |_, marked: bool| if marked { 100_000 } else { 1_000 * percent };
                    let (keeps, took_us) = play_trial(from_us, gap_us, bytes);
                    assert!((120_000..=161_000).contains(&took_us), "{took_us} us");
                    keeps
                };
                assert!(keeps(50) && keeps(100) && keeps(108), "{from_us} {gap_us}");
                assert!(!keeps(112) && !keeps(200), "{from_us} {gap_us}");
            }
        }
    }

    #[test]
    fn a_turn_in_which_the_host_did_something_else_decides_nothing() {
        // The turn from 40 ms on has no mark, the one from 60 ms on has it.
        for (begin_us, without, keeps) in [(40_000, 130, false), (60_000, 130, false), (60_000, 90, true)] {
            let is_lost = |us: u64| (begin_us..begin_us + 20_000).contains(&us);
            let bytes = |us, marked| match (is_lost(us), marked) {
                (true, _) => 10,
                (false, true) => 100,
                (false, false) => without,
            };
            assert_eq!(play_trial(0, 100, bytes).0, keeps, "{without}");
        }
    }

    #[test]
    fn a_turn_that_was_not_seen_whole_does_not_count() {
        let mut trial = MarkTrial::new(Mono(5_000_000));
        let ms = |ms: u64| Mono(ms * 1_000_000);
        assert_eq!(trial.note(ms(21), || 1), Some(TrialStep::Turn { marked: true }));
        assert_eq!(trial.note(ms(65), || 2), Some(TrialStep::Turn { marked: true }), "after a pause");
        assert_eq!(trial.note(ms(81), || 3), Some(TrialStep::Turn { marked: false }));
        assert_eq!(trial.turns.concat(), [0; 0], "one began before it was watched, the others with a pause");
        assert_eq!(trial.note(ms(101), || 7), Some(TrialStep::Turn { marked: true }));
        assert_eq!(trial.turns.concat(), [4]);
    }

    #[test]
    fn a_flow_that_is_faster_without_the_mark_never_has_it_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut low_water = LowWater::new(&near, &[], BLOCK, Duration::from_millis(20));
        low_water.trial = Some(MarkTrial::new(Mono(0)));
        low_water.set(MIN_MARK_BYTES);
        low_water.follow(TrialStep::Decision { keeps: false });
        assert_eq!(low_water.watch.mark, 0);
        for read in 0..1000 {
            low_water.after(Mono(read * 1000), BLOCK);
        }
        assert!(low_water.trial.is_none() && low_water.watch.mark == 0);
        assert_eq!(low_water.bytes_per_second, 0, "the flow is not watched any more");
    }

    #[test]
    fn without_a_target_nothing_is_requested() {
        assert_eq!(play(&mut FillMeter::new(0), 0, 100, 1, BLOCK), []);
    }
}
