//! Decides the next trial and evaluates the trials of a size. Pure code: the time is an argument.

use linerate_model::{MessageMode, SizePoint, Sweep, TimeInterval, TrialSequence};
use linerate_proto::{SweepTrial, TrialCount};
use linerate_theory::stats::order::{median, median_interval};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::sizes::sizes;

/// Confidence level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A size whose messages take this long one way is the last, in seconds, as in NetPIPE.
const MAX_MESSAGE_S: f64 = 1.0;

/// Shortest planned duration of a trial, in seconds.
const MIN_TRIAL_S: f64 = 1e-3;

/// Share of the time planned for trials; rehearsals and the gaps between trials take the rest.
const TRIAL_TIME_SHARE: f64 = 0.8;

/// Planned duration of a rehearsal, as a share of its trial; it is not counted. A rehearsal with at least the
/// second share of that duration suffices: at first the number of messages that it needs is unknown.
const REHEARSAL_SHARE: f64 = 0.1;
const MIN_REHEARSAL_SHARE: f64 = 0.25;

/// Most rehearsals of a size.
const MAX_REHEARSALS: u32 = 3;

/// Factor by which a size may exceed its share of the time before it gets no further trial.
const MAX_OVERRUN_FACTOR: f64 = 1.5;

/// If messages arrived at less than this share of the rate that half the round trip gives, one direction is
/// slower: a larger difference than the noise of two estimates of the same rate.
const ASYMMETRY_RATIO: f64 = 0.9;

/// Initial estimate, in seconds: the time of a message, and of each of its bytes (100 Mb/s).
const INITIAL_ESTIMATE: (f64, f64) = (1e-3, 8e-8);

/// The slowest path for which the timeout of the first trial suffices, seconds per byte (1 Mb/s).
const SLOWEST_PATH_S_PER_BYTE: f64 = 8e-6;

/// Timeout of a trial: at least this time, and at least this multiple of its expected duration.
const MIN_TRIAL_TIMEOUT: Span = Span::from_secs(10);
const TRIAL_TIMEOUT_FACTOR: f64 = 8.0;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextTrial {
    /// Make this trial.
    Trial(SweepTrial),
    /// Nothing: every size is measured, or the time is over.
    Over,
}

/// The schedule of a sweep's trials.
#[derive(Debug)]
pub(crate) struct SweepSchedule {
    mode: MessageMode,
    sequence: TrialSequence,
    trials: usize,
    until: Option<f64>,
    total: f64,
    longest: f64,
    sizes: Vec<Size>,
    /// Number of the next trial.
    number: u32,
    /// The running trial: index of the size, number of messages, and whether it is a rehearsal.
    doing: Option<(usize, u32, bool)>,
    /// The latest size and the time of one of its messages, in seconds.
    latest: Option<(u64, f64)>,
}

#[derive(Debug, Default)]
struct Size {
    bytes: u64,
    /// Messages per trial; 0 while unknown.
    repeats: u32,
    /// Number of rehearsals so far.
    rehearsals: u32,
    rehearsed: bool,
    /// Time per message of each trial, in seconds.
    times: Vec<f64>,
    /// Arrival rate in the slower direction for each trial that reported one, in bit/s.
    slower: Vec<f64>,
    /// Deadline of its trials, in seconds from the start of the sweep.
    due: Option<f64>,
    done: bool,
    returned: bool,
}

impl SweepSchedule {
    pub(crate) fn new(sweep: &Sweep) -> Self {
        let size = |bytes| Size { bytes, ..Size::default() };
        Self {
            mode: sweep.mode(),
            sequence: sweep.order,
            trials: sweep.trials as usize,
            until: sweep.until.map(Ratio::get),
            total: sweep.measured().as_secs_f64(),
            longest: sweep.longest().as_secs_f64(),
            sizes: sizes(sweep).into_iter().map(size).collect(),
            number: 0,
            doing: None,
            latest: None,
        }
    }

    pub(crate) fn largest(&self) -> Bytes {
        Bytes::new(self.sizes.last().map_or(0, |size| size.bytes))
    }

    /// The next trial; `now` is the time since the sweep began.
    pub(crate) fn next(&mut self, now: Span) -> NextTrial {
        let now = now.as_secs_f64();
        let Some(at) = self.pick().filter(|_| now < self.longest) else { return NextTrial::Over };
        let share = self.share(now);
        if self.sizes[at].due.is_none() {
            let left = self.sizes.iter().filter(|size| !size.done).count().max(1);
            self.sizes[at].due = Some(now + MAX_OVERRUN_FACTOR * (self.total - now).max(0.0) / left as f64);
        }
        let bytes = self.sizes[at].bytes;
        let known = self.latest.map(|(before, time)| time * (bytes as f64 / before as f64).max(1.0));
        let turn = known.unwrap_or(INITIAL_ESTIMATE.0 + bytes as f64 * INITIAL_ESTIMATE.1)
            * self.messages_per_turn();
        let fewest = self.fewest();
        let size = &mut self.sizes[at];
        let rehearsal = !size.rehearsed && (known.is_none() || turn * f64::from(fewest) < share / 2.0);
        if size.repeats == 0 && !rehearsal {
            size.repeats = repeats(share, turn, fewest);
        }
        let count = if rehearsal { repeats(share * REHEARSAL_SHARE, turn, fewest) } else { size.repeats };
        self.doing = Some((at, count, rehearsal));
        let expected = match known {
            Some(_) => TRIAL_TIMEOUT_FACTOR * turn * f64::from(count),
            None => SLOWEST_PATH_S_PER_BYTE * self.messages_per_turn() * bytes as f64 * f64::from(count),
        };
        let timeout = MIN_TRIAL_TIMEOUT + Span::from_secs_f64(expected).unwrap_or(SweepTrial::MAX_TRIAL_WAIT);
        let trial = SweepTrial {
            trial: self.number,
            message_bytes: Bytes::new(bytes),
            repeats: count,
            timeout_ns: timeout.min(SweepTrial::MAX_TRIAL_WAIT),
        };
        self.number = self.number.wrapping_add(1);
        NextTrial::Trial(trial)
    }

    /// Index of the next size.
    fn pick(&self) -> Option<usize> {
        let open = self.sizes.iter().enumerate().filter(|(_, size)| !size.done);
        match self.sequence {
            TrialSequence::Ascending => open.map(|(at, _)| at).next(),
            // A size that was only rehearsed gets its first trial immediately.
            TrialSequence::Interleaved => {
                open.min_by_key(|(at, size)| (size.times.len(), *at)).map(|(at, _)| at)
            }
        }
    }

    /// Each remaining trial's share of the remaining time, in seconds.
    fn share(&self, now: f64) -> f64 {
        let of = |size: &Size| self.trials.saturating_sub(size.times.len());
        let left: usize = self.sizes.iter().filter(|size| !size.done).map(of).sum();
        (TRIAL_TIME_SHARE * (self.total - now) / left.max(1) as f64).max(MIN_TRIAL_S)
    }

    /// Consecutive messages of one turn.
    fn messages_per_turn(&self) -> f64 {
        if self.mode == MessageMode::PingPong { 2.0 } else { 1.0 }
    }

    /// Fewest messages of a trial: if the first message starts the clock, a second one is needed.
    fn fewest(&self) -> u32 {
        if self.mode == MessageMode::PingPong { 1 } else { 2 }
    }

    /// Takes the counts of both ends for the running trial. Returns the size if this was its last trial.
    ///
    /// # Errors
    /// The counts of the ends differ; the text says how.
    pub(crate) fn counted(
        &mut self,
        now: Span,
        own: &TrialCount,
        peer: &TrialCount,
    ) -> Result<Option<SizePoint>, String> {
        let Some((at, count, rehearsal)) = self.doing.take() else { return Ok(None) };
        if own.written_bytes != peer.read_bytes || own.read_bytes != peer.written_bytes {
            return Err(format!(
                "it counted {} read and {} written in a trial of which {} were written and {} read here",
                peer.read_bytes.exact(),
                peer.written_bytes.exact(),
                own.written_bytes.exact(),
                own.read_bytes.exact()
            ));
        }
        let seconds = self.message_time(count, own, peer);
        let slower = self.slower_direction(own, peer);
        let share = self.share(now.as_secs_f64());
        let (ways, fewest) = (self.messages_per_turn(), self.fewest());
        let size = &mut self.sizes[at];
        self.latest = Some((size.bytes, seconds));
        if rehearsal {
            size.rehearsals += 1;
            let lasted = seconds * ways * f64::from(count);
            let capped = count >= SweepTrial::MAX_REPEATS;
            size.rehearsed = capped
                || lasted >= MIN_REHEARSAL_SHARE * REHEARSAL_SHARE * share
                || size.rehearsals >= MAX_REHEARSALS;
            size.repeats = repeats(share, seconds * ways, fewest);
            return Ok(None);
        }
        size.times.push(seconds);
        size.slower.extend(slower);
        // The rehearsal may have seen a faster path than the trials. Fewer messages keep the number of trials,
        // which the interval needs.
        let turn = median(&size.times).unwrap_or(seconds) * ways;
        size.repeats = size.repeats.min(repeats(share, turn, fewest));
        let late = self.sequence == TrialSequence::Ascending
            && size.due.is_some_and(|due| now.as_secs_f64() + seconds * ways * f64::from(count) > due);
        size.done = size.times.len() >= self.trials || late || known_well_enough(&size.times, self.until);
        if seconds >= MAX_MESSAGE_S {
            self.sizes.iter_mut().skip(at + 1).for_each(|larger| larger.done = true);
        }
        let size = &self.sizes[at];
        // Interleaved sizes are returned together at the end.
        let now_over = size.done && self.sequence == TrialSequence::Ascending;
        Ok(if now_over { self.take_point(at) } else { None })
    }

    /// Time of one message in one direction, in seconds.
    fn message_time(&self, count: u32, own: &TrialCount, peer: &TrialCount) -> f64 {
        let between = |counted: &TrialCount| between_messages(count, counted);
        let seconds = match self.mode {
            MessageMode::PingPong => own.elapsed_ns.as_secs_f64() / f64::from(count.max(1)) / 2.0,
            MessageMode::Stream => between(peer),
            MessageMode::Both => between(own).max(between(peer)),
        };
        // The peer's figures may be arbitrary, and a clock may not advance: a message takes at least a
        // nanosecond.
        seconds.max(1e-9)
    }

    /// For ping-pong: the arrival rate in the slower direction, in bit/s. A direction in which the messages
    /// arrived in one piece is not considered; absent if neither is.
    fn slower_direction(&self, own: &TrialCount, peer: &TrialCount) -> Option<f64> {
        let arrived = |counted: &TrialCount| {
            let seconds = counted.arriving_ns.as_secs_f64();
            // The bytes that arrived in pieces must be at least half of those that were read.
            let most = counted.arrived_bytes.get() >= counted.read_bytes.get() / 2;
            (most && seconds > 0.0).then(|| counted.arrived_bytes.get() as f64 * 8.0 / seconds)
        };
        let both = [own, peer].into_iter().filter(|_| self.mode == MessageMode::PingPong);
        both.filter_map(arrived).reduce(f64::min)
    }

    fn take_point(&mut self, at: usize) -> Option<SizePoint> {
        let size = &mut self.sizes[at];
        if size.returned || size.times.is_empty() {
            return None;
        }
        size.returned = true;
        Some(point(size, self.mode))
    }

    /// The measured sizes that were not returned yet: those of an interleaved sweep, or of one that ended
    /// early.
    pub(crate) fn take_remaining(&mut self) -> Vec<SizePoint> {
        (0..self.sizes.len()).filter_map(|at| self.take_point(at)).collect()
    }

    /// Sizes of which nothing was measured.
    pub(crate) fn unmeasured(&self) -> Vec<Bytes> {
        let without = self.sizes.iter().filter(|size| size.times.is_empty());
        without.map(|size| Bytes::new(size.bytes)).collect()
    }

    /// Whether messages became too slow, so that no larger ones are sent.
    pub(crate) fn too_slow(&self) -> bool {
        self.sizes.iter().flat_map(|size| &size.times).any(|seconds| *seconds >= MAX_MESSAGE_S)
    }
}

/// Time of one message after the first, in seconds, at the end that counted.
///
/// A reader that is late for the first message finds later ones waiting. Those did not arrive in the time
/// counted from there on. If they are most of the trial, the whole trial is counted, which errs on the slow
/// side.
fn between_messages(count: u32, counted: &TrialCount) -> f64 {
    let rest = counted.elapsed_ns.saturating_sub(counted.first_ns).as_secs_f64();
    let later = f64::from(count.saturating_sub(1).max(1));
    let message = counted.read_bytes.get() as f64 / f64::from(count.max(1));
    let waiting = if message > 0.0 { counted.waiting_bytes.get() as f64 / message } else { 0.0 };
    if waiting <= later / 2.0 {
        return rest / (later - waiting);
    }
    counted.elapsed_ns.as_secs_f64() / f64::from(count.max(1))
}

/// Number of turns that fit into a time.
fn repeats(seconds: f64, turn: f64, fewest: u32) -> u32 {
    // A cast from a float saturates at the bounds of the integer.
    ((seconds / turn) as u32).clamp(fewest, SweepTrial::MAX_REPEATS)
}

fn known_well_enough(times: &[f64], until: Option<f64>) -> bool {
    let (Some(until), Some(middle)) = (until, median(times)) else { return false };
    median_interval(times, CONFIDENCE)
        .is_some_and(|interval| (interval.high - interval.low) / 2.0 <= until * middle)
}

fn point(size: &Size, mode: MessageMode) -> SizePoint {
    let span = |seconds: f64| Span::from_secs_f64(seconds).unwrap_or_default();
    let middle = median(&size.times);
    let interval = median_interval(&size.times, CONFIDENCE).and_then(|interval| {
        let coverage = Ratio::new(interval.coverage)?;
        Some(TimeInterval { low: span(interval.low), high: span(interval.high), coverage })
    });
    let messages = if mode == MessageMode::Both { 2.0 } else { 1.0 };
    let rate = middle.map(|seconds| messages * size.bytes as f64 * 8.0 / seconds);
    // Half the round trip is the mean of both directions. If they differ, the slower one counts.
    let slower = median(&size.slower).filter(|_| 2 * size.slower.len() >= size.times.len());
    let slower = slower.filter(|slower| rate.is_some_and(|rate| *slower < ASYMMETRY_RATIO * rate));
    SizePoint {
        message_bytes: Bytes::new(size.bytes),
        trials: Some(size.times.len() as u32),
        repeats: Some(size.repeats),
        best: span(size.times.iter().copied().fold(f64::INFINITY, f64::min)),
        median: middle.map(span),
        interval,
        bitrate: slower.or(rate).and_then(Bitrate::from_bps),
        buffered: false,
    }
}

#[cfg(test)]
mod tests;
