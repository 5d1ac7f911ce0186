//! One measurement: load in one direction or in both, until the rate and then the responsiveness are stable.

use std::collections::BTreeMap;

use linerate_model::{Direction, ResponsivenessConfidence, ResponsivenessReport};
use linerate_theory::responsiveness::{
    MOVING_AVERAGE_INTERVALS, ProbeTimes, TRIMMED_MEAN_SHARE, foreign, is_stable, responsiveness,
    trimmed_mean,
};
use linerate_units::{Span, Timestamp};

use super::connection::{Fetch, ForeignTimes};
use super::load::{LoadConnection, ProbeAnswer};
use crate::stand_in::Link;

/// Most connections that carry load in one direction (MNP).
pub(super) const MAX_CONNECTIONS: usize = 16;

/// Most pairs of probes in a second, one over a new connection and one over a loaded one (half of MPS).
const MAX_PAIRS_PER_SECOND: f64 = 50.0;

/// What a pair of probes takes of the path, bits, and which share of it they may take (PTC).
const PAIR_BITS: f64 = 6_000.0 * 8.0;
const PROBE_SHARE: f64 = 0.05;

/// Time between two pairs while the rate of the path is not known.
const FIRST_PAIRS: Span = Span::from_ms(200);

/// When a probe is sent that is due already.
const SOON: Span = Span::from_ms(1);

/// Longest time between two pairs.
const MAX_PAIR_TIME_S: f64 = 10.0;

/// Most probes over new connections that wait for their answer.
pub(super) const MAX_FOREIGN: usize = 100;

/// The rate of one direction.
#[derive(Debug, Default)]
struct Goodput {
    /// Bytes of connections that were replaced.
    gone: u64,
    /// Bytes at the end of each interval.
    at_ends: Vec<u64>,
    /// Moving averages, bit/s.
    averages: Vec<f64>,
}

/// What a stage waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadStageState {
    /// Further intervals.
    Running,
    /// Nothing: its last result is stable.
    Stable,
}

/// One measurement.
#[derive(Debug)]
pub(super) struct LoadStage {
    pub(super) directions: Vec<Direction>,
    began: Timestamp,
    interval: Span,
    pub(super) loads: BTreeMap<Link, LoadConnection>,
    pub(super) fetches: BTreeMap<Link, Fetch>,
    goodput: [Goodput; 2],
    ends: Vec<Timestamp>,
    /// When the rate was stable.
    saturated: Option<Timestamp>,
    /// The responsiveness at the end of each interval since then.
    rpms: Vec<f64>,
    /// When probes were answered, and their times.
    foreign: Vec<(Timestamp, ForeignTimes)>,
    loaded: Vec<(Timestamp, Span)>,
    /// When probes were sent, and how much too late.
    late: Vec<(Timestamp, Span)>,
    /// When probes failed, and when those over new connections among them had begun.
    lost: Vec<Timestamp>,
    pub(super) failed: Vec<Timestamp>,
    connections: usize,
    /// When the last pair of probes was planned; at first, when the stage began.
    last_pair: Timestamp,
    /// When the next probe over a new connection is due, and the next one over a loaded one.
    pub(super) next_foreign: Timestamp,
    pub(super) next_loaded: Timestamp,
}

impl LoadStage {
    pub(super) fn new(now: Timestamp, directions: Vec<Direction>, interval: Span) -> Self {
        Self {
            directions,
            began: now,
            interval,
            loads: BTreeMap::new(),
            fetches: BTreeMap::new(),
            goodput: Default::default(),
            ends: Vec::new(),
            saturated: None,
            rpms: Vec::new(),
            foreign: Vec::new(),
            loaded: Vec::new(),
            late: Vec::new(),
            lost: Vec::new(),
            failed: Vec::new(),
            connections: 0,
            last_pair: now,
            next_foreign: now + FIRST_PAIRS,
            next_loaded: now + FIRST_PAIRS + Span::from_ns(FIRST_PAIRS.as_ns() / 2),
        }
    }

    /// The time since it began.
    pub(super) fn elapsed(&self, now: Timestamp) -> Span {
        now - self.began
    }

    /// Whether something was found out.
    pub(super) fn has_load(&self) -> bool {
        !self.ends.is_empty() || !self.foreign.is_empty()
    }

    /// When its current interval ends.
    pub(super) fn interval_end(&self) -> Timestamp {
        let last = self.ends.last().copied().unwrap_or(self.began);
        // After a pause of this program the next interval is a whole one, or nearly.
        let count = (last - self.began).as_ns() / self.interval.as_ns().max(1) + 1;
        self.began + Span::from_ns(self.interval.as_ns().saturating_mul(count))
    }

    /// The directions to which another connection may be added.
    pub(super) fn wanting(&self) -> Vec<Direction> {
        let count = |direction| self.loads.values().filter(|load| load.direction == direction).count();
        self.directions.iter().copied().filter(|direction| count(*direction) < MAX_CONNECTIONS).collect()
    }

    /// Adds a connection that carries load.
    pub(super) fn add(&mut self, link: Link, load: LoadConnection) {
        self.loads.insert(link, load);
        self.connections = self.connections.max(self.loads.len());
    }

    /// Removes a connection whose server takes no further bodies over it.
    pub(super) fn replace(&mut self, now: Timestamp, link: Link) -> Option<LoadConnection> {
        let load = self.loads.remove(&link)?;
        self.lost.extend(load.waiting().map(|_| now));
        self.goodput[index(load.direction)].gone += load.bytes();
        Some(load)
    }

    /// A probe over a new connection was answered; or it failed, with when it began.
    pub(super) fn fetched(&mut self, now: Timestamp, times: Result<ForeignTimes, Timestamp>) {
        match times {
            Ok(times) => self.foreign.push((now, times)),
            Err(began) => {
                self.failed.push(began);
                self.lost.push(now);
            }
        }
    }

    /// The probes over new connections that began before this time, and are not answered.
    pub(super) fn overdue(&self, before: Timestamp) -> Vec<Link> {
        self.fetches.iter().filter(|(_, fetch)| fetch.began() < before).map(|(link, _)| *link).collect()
    }

    /// Probes over loaded connections were answered.
    pub(super) fn answered(&mut self, now: Timestamp, answers: Vec<ProbeAnswer>) {
        for (_, time) in answers {
            match time {
                Some(time) => self.loaded.push((now, time)),
                None => self.lost.push(now),
            }
        }
    }

    /// Sets when the probes after this pair are due: together they may take a small part of the path.
    pub(super) fn plan_probes(&mut self, now: Timestamp) {
        self.late.push((now, now - self.next_foreign));
        let time = self.pair_time(now);
        self.last_pair = now;
        self.next_foreign = now + time;
        self.next_loaded = now + Span::from_ns(time.as_ns() / 2);
    }

    /// Brings the next probes forward if the path is faster than it seemed when they were planned: at its beginning a load
    /// has hardly moved anything.
    pub(super) fn hasten_probes(&mut self, now: Timestamp) {
        let time = self.pair_time(now);
        let soon = now + SOON;
        self.next_foreign = self.next_foreign.min((self.last_pair + time).max(soon));
        // That over a loaded connection comes in the middle; if it was sent, there is none until the next pair.
        if self.next_loaded < Timestamp::from_ns(u64::MAX) {
            let middle = self.last_pair + Span::from_ns(time.as_ns() / 2);
            self.next_loaded = self.next_loaded.min(middle.max(soon));
        }
    }

    /// The time between two pairs of probes.
    fn pair_time(&self, now: Timestamp) -> Span {
        let Some(bps) = self.slowest_bps(now) else { return FIRST_PAIRS };
        let pairs = (PROBE_SHARE * bps / PAIR_BITS).min(MAX_PAIRS_PER_SECOND);
        Span::from_secs_f64((1.0 / pairs).min(MAX_PAIR_TIME_S)).unwrap_or(FIRST_PAIRS)
    }

    /// The rate of the slower direction, bit/s; absent before it is known.
    fn slowest_bps(&self, now: Timestamp) -> Option<f64> {
        let last = |direction: &Direction| self.goodput[index(*direction)].averages.last().copied();
        let so_far = |direction: &Direction| {
            let bits = 8.0 * self.bytes(*direction) as f64;
            let elapsed = self.elapsed(now).as_secs_f64();
            (elapsed > 0.2 && bits > 0.0).then(|| bits / elapsed)
        };
        let rates = self.directions.iter().map(|direction| last(direction).or_else(|| so_far(direction)));
        rates.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
    }

    fn bytes(&self, direction: Direction) -> u64 {
        let loads = self.loads.values().filter(|load| load.direction == direction);
        self.goodput[index(direction)].gone + loads.map(LoadConnection::bytes).sum::<u64>()
    }

    /// The rates of the directions in the last interval, bit/s.
    pub(super) fn rates(&self) -> Vec<(Direction, f64)> {
        let span = match self.ends[..] {
            [.., before, last] => last - before,
            [last] => last - self.began,
            [] => return Vec::new(),
        };
        let rate = |direction: &Direction| {
            let moved = match self.goodput[index(*direction)].at_ends[..] {
                [.., before, last] => last - before,
                [last] => last,
                [] => 0,
            };
            (*direction, 8.0 * moved as f64 / span.as_secs_f64())
        };
        self.directions.iter().map(rate).collect()
    }

    /// Ends an interval, if it is over.
    pub(super) fn evaluate(&mut self, now: Timestamp) -> LoadStageState {
        self.ends.push(now);
        let from = self.ends.len().checked_sub(MOVING_AVERAGE_INTERVALS + 1);
        let since = from.map_or(self.began, |at| self.ends[at]);
        let seconds = (now - since).as_secs_f64();
        for direction in self.directions.clone() {
            let bytes = self.bytes(direction);
            let goodput = &mut self.goodput[index(direction)];
            goodput.at_ends.push(bytes);
            let before = from.map_or(0, |at| goodput.at_ends[at]);
            goodput.averages.push(8.0 * (bytes - before) as f64 / seconds);
        }
        if self.saturated.is_none() {
            let is_stable = |direction: &Direction| is_stable(&self.goodput[index(*direction)].averages);
            if self.directions.iter().all(is_stable) {
                self.saturated = Some(now);
            }
            return LoadStageState::Running;
        }
        let rpm = self.times(self.window(now)).and_then(|times| responsiveness(&times));
        // An interval without an answer has no responsiveness, and is not stable.
        self.rpms.push(rpm.map_or(0.0, |rpm| rpm.overall));
        if is_stable(&self.rpms) { LoadStageState::Stable } else { LoadStageState::Running }
    }

    /// When the last intervals began that a moving average has.
    fn last_intervals(&self, now: Timestamp) -> Timestamp {
        let length = self.interval.as_ns().saturating_mul(MOVING_AVERAGE_INTERVALS as u64);
        Timestamp::from_ns(now.as_ns().saturating_sub(length))
    }

    /// From when on answered probes count: for the last intervals, since the rate was stable.
    fn window(&self, now: Timestamp) -> Timestamp {
        let from = self.last_intervals(now);
        self.saturated.map_or(from, |saturated| from.max(saturated))
    }

    fn counting(&self, from: Timestamp) -> (Vec<ForeignTimes>, Vec<Span>) {
        let foreign = self.foreign.iter().filter(|(at, _)| *at > from).map(|(_, times)| *times);
        let loaded = self.loaded.iter().filter(|(at, _)| *at > from).map(|(_, time)| *time);
        (foreign.collect(), loaded.collect())
    }

    fn times(&self, from: Timestamp) -> Option<ProbeTimes> {
        let (foreign, loaded) = self.counting(from);
        let (tcp_s, tls_s, http_s) = foreign_means(&foreign)?;
        let loaded_s = mean(loaded.iter().copied())?;
        Some(ProbeTimes { tcp_s, tls_s, http_s, loaded_s })
    }

    /// The probes over new connections that were answered.
    pub(super) fn foreign(&self) -> Vec<ForeignTimes> {
        self.foreign.iter().map(|(_, times)| *times).collect()
    }

    /// The first direction in which nothing was moved.
    pub(super) fn idle_direction(&self) -> Option<Direction> {
        self.directions.iter().copied().find(|direction| self.bytes(*direction) == 0)
    }

    /// What was found until now.
    pub(super) fn report(&self, now: Timestamp, idle: &[ForeignTimes]) -> ResponsivenessReport {
        // If the time ends when the rate has just become stable, the probes before that are all there are.
        let from = if self.rpms.is_empty() { self.last_intervals(now) } else { self.window(now) };
        let (foreign_probes, loaded_probes) = self.counting(from);
        let means = foreign_means(&foreign_probes);
        let loaded_s = mean(loaded_probes.iter().copied());
        // A path that carries nothing is not loaded.
        let has_moved = self.idle_direction().is_none();
        let found = self.times(from).filter(|_| has_moved).and_then(|times| responsiveness(&times));
        let span = |seconds: f64| Span::from_secs_f64(seconds);
        let enough = |count: usize, is_stable: bool| match (is_stable, count >= MOVING_AVERAGE_INTERVALS) {
            (true, _) => ResponsivenessConfidence::High,
            (false, true) => ResponsivenessConfidence::Medium,
            (false, false) => ResponsivenessConfidence::Low,
        };
        // What was sent in the last interval may still be answered.
        let late = Timestamp::from_ns(now.as_ns().saturating_sub(self.interval.as_ns()));
        let waiting = self.loads.values().flat_map(LoadConnection::waiting);
        let waiting = waiting.chain(self.fetches.values().map(Fetch::began)).filter(|began| *began < late);
        let failed = self.lost.iter().filter(|at| **at > from);
        ResponsivenessReport {
            loaded: self.directions.clone(),
            rpm: found.map(|found| found.overall),
            foreign_rpm: means.and_then(|(tcp, tls, http)| foreign(tcp, tls, http)),
            loaded_rpm: found.map(|found| found.loaded),
            idle_rpm: foreign_means(idle).and_then(|(tcp, tls, http)| foreign(tcp, tls, http)),
            tcp: means.and_then(|(tcp, ..)| span(tcp)),
            tls: means.and_then(|(_, tls, _)| span(tls?)),
            http: means.and_then(|(.., http)| span(http)),
            loaded_http: loaded_s.and_then(span),
            late: mean(self.late.iter().filter(|(at, _)| *at > from).map(|(_, late)| *late)).and_then(span),
            rate_confidence: enough(self.ends.len(), self.saturated.is_some()),
            confidence: enough(self.rpms.len(), is_stable(&self.rpms)),
            probes: [foreign_probes.len() as u64, loaded_probes.len() as u64],
            lost: (failed.count() + waiting.count()) as u64,
            connections: u32::try_from(self.connections).unwrap_or(u32::MAX),
            intervals: u32::try_from(self.ends.len()).unwrap_or(u32::MAX),
            interval: self.interval,
            encrypted: foreign_probes.iter().any(|times| times.tls.is_some()),
        }
    }
}

/// The times of the TCP handshakes of probes, with when they began; absent for those that failed.
pub(super) fn handshakes(answered: &[ForeignTimes], failed: &[Timestamp]) -> Vec<(Timestamp, Option<Span>)> {
    let mut probes: Vec<_> = answered.iter().map(|times| (times.began, Some(times.tcp))).collect();
    probes.extend(failed.iter().map(|began| (*began, None)));
    probes.sort_unstable_by_key(|(began, _)| *began);
    probes
}

pub(super) fn index(direction: Direction) -> usize {
    usize::from(direction == Direction::Upload)
}

fn mean(times: impl Iterator<Item = Span>) -> Option<f64> {
    let seconds: Vec<f64> = times.map(Span::as_secs_f64).collect();
    trimmed_mean(&seconds, TRIMMED_MEAN_SHARE)
}

/// Trimmed means of the handshakes and requests, s.
fn foreign_means(probes: &[ForeignTimes]) -> Option<(f64, Option<f64>, f64)> {
    let tcp = mean(probes.iter().map(|times| times.tcp))?;
    let http = mean(probes.iter().map(|times| times.http))?;
    Some((tcp, mean(probes.iter().filter_map(|times| times.tls)), http))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ns(ms * 1_000_000)
    }

    fn probed(stage: &mut LoadStage, now: Timestamp, ms: u64) {
        let time = Span::from_ms(ms);
        stage.fetched(now, Ok(ForeignTimes { began: now, tcp: time, tls: Some(time), http: time }));
        stage.answered(now, vec![(now, Some(time))]);
    }

    #[test]
    fn a_load_that_begins_slowly_does_not_put_off_the_probes_of_a_fast_path() {
        let mut stage = LoadStage::new(at(0), vec![Direction::Upload], Span::from_secs(1));
        stage.goodput[1].gone = 1_000;
        stage.plan_probes(at(500));
        assert_eq!(stage.next_foreign, at(10_500), "16 kb/s");
        stage.goodput[1].gone = 2_500_000;
        stage.hasten_probes(at(520));
        assert!(stage.next_foreign > at(520) && stage.next_foreign < at(600), "38 Mb/s");
        assert!(stage.next_loaded > at(520) && stage.next_loaded < stage.next_foreign);
        stage.next_loaded = Timestamp::from_ns(u64::MAX);
        stage.next_foreign = at(10_500);
        stage.hasten_probes(at(1_000));
        assert_eq!(stage.next_foreign, at(1_001), "soon, and not in the past");
        assert_eq!(stage.next_loaded, Timestamp::from_ns(u64::MAX), "it was sent");
        // A planned probe is not put off by a path that becomes slower.
        stage.plan_probes(at(1_000));
        let planned = stage.next_foreign;
        stage.goodput[1].averages.push(1_000.0);
        stage.hasten_probes(at(1_001));
        assert_eq!(stage.next_foreign, planned);
    }

    #[test]
    fn probes_count_that_were_answered_in_the_last_intervals_since_the_rate_was_stable() {
        let mut stage = LoadStage::new(at(0), vec![Direction::Download], Span::from_secs(1));
        for (second, ms) in [(1, 900), (4, 500), (6, 20), (8, 40)] {
            probed(&mut stage, at(second * 1_000), ms);
        }
        stage.fetched(at(2_000), Err(at(1_500)));
        stage.fetched(at(7_000), Err(at(6_500)));
        let found = stage.report(at(8_500), &[]);
        assert_eq!((found.probes, found.lost), ([2, 2], 1), "of the last four seconds");
        assert_eq!((found.tcp, found.loaded_http), (Some(Span::from_ms(30)), Some(Span::from_ms(30))));
        stage.saturated = Some(at(6_500));
        assert_eq!(stage.report(at(8_500), &[]).probes, [2, 2], "no interval has ended since then");
        stage.rpms.push(1_000.0);
        assert_eq!(stage.report(at(8_500), &[]).probes, [1, 1], "since then");
        assert_eq!(stage.report(at(20_000), &[]).probes, [0, 0]);
        let all = handshakes(&stage.foreign(), &stage.failed);
        assert_eq!((all.len(), all.iter().filter(|(_, time)| time.is_none()).count()), (6, 2));
        assert!(all.is_sorted_by_key(|(began, _)| *began));
    }
}
