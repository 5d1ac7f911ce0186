//! What time it is for the fleet, and how sure an agent is of that.
//!
//! An agent takes the time from the answers of the coordinator, and goes on from there with a clock that nobody sets. So
//! a step of its host's clock does nothing, and how far it may be off is known.

use linerate_model::calendar::UnixTime;
use linerate_units::Span;

/// How much a quartz clock that nobody adjusts gains or loses, in millionths.
const DRIFT_PPM: u64 = 100;
/// Answers that took longer say little.
const LONGEST_ANSWER: Span = Span::from_secs(5);
/// The time is passed on in milliseconds.
const RESOLUTION: Span = Span::from_ms(1);

/// The clocks of a host at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Time since an arbitrary moment, the same until the host is restarted. Nobody sets it, and it goes on while the host
    /// sleeps.
    pub running: Span,
    /// The wall clock.
    pub wall: UnixTime,
    /// How far the wall clock is off at most; absent if it is not synchronised.
    pub wall_error: Option<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Anchor {
    running: Span,
    time: UnixTime,
    error: Span,
}

/// The clock of the fleet, as an agent knows it.
#[derive(Debug, Clone, Default)]
pub struct AgentClock {
    anchor: Option<Anchor>,
    wall_agrees: bool,
}

impl AgentClock {
    /// A clock that nothing is known of but whether the host's wall clock agreed with the fleet when they last met.
    #[must_use]
    pub fn new(wall_agrees: bool) -> Self {
        Self { anchor: None, wall_agrees }
    }

    /// Whether the host's wall clock agreed with the fleet when they last met.
    #[must_use]
    pub fn wall_agrees(&self) -> bool {
        self.wall_agrees
    }

    /// The coordinator said `time` at some moment after `asked` and before now.
    pub fn learn(&mut self, asked: Span, time: UnixTime, reading: &ClockReading) {
        let took = reading.running.saturating_sub(asked);
        if took > LONGEST_ANSWER {
            return;
        }
        let half = Span::from_ns(took.as_ns() / 2);
        let mut new = Anchor { running: reading.running, time: time.after(half), error: half + RESOLUTION };
        if let Some((known, error)) = self.anchor.as_ref().map(|known| at(known, reading))
            && distance(known, new.time) > error + new.error
        {
            // One of both is wrong: a host that was paused, or a coordinator whose clock was set. Not sure of anything
            // until another answer agrees.
            new.error = new.error + distance(known, new.time);
            self.anchor = Some(new);
        } else if self.anchor.is_none_or(|known| new.error <= at(&known, reading).1) {
            self.anchor = Some(new);
        }
        if let (Some(anchor), Some(wall_error)) = (&self.anchor, reading.wall_error) {
            let (time, error) = at(anchor, reading);
            self.wall_agrees = distance(time, reading.wall) <= error + wall_error;
        }
    }

    /// The time, and how far it is off at most; absent if nothing is known of it.
    #[must_use]
    pub fn now(&self, reading: &ClockReading) -> Option<(UnixTime, Span)> {
        let wall = reading.wall_error.filter(|_| self.wall_agrees).map(|error| (reading.wall, error));
        let anchored = self.anchor.as_ref().map(|anchor| at(anchor, reading));
        anchored.into_iter().chain(wall).min_by_key(|(_, error)| *error)
    }
}

fn at(anchor: &Anchor, reading: &ClockReading) -> (UnixTime, Span) {
    let passed = reading.running.saturating_sub(anchor.running);
    let drift = Span::from_ns(passed.as_ns() / 1_000_000 * DRIFT_PPM);
    (anchor.time.after(passed), anchor.error + drift)
}

fn distance(a: UnixTime, b: UnixTime) -> Span {
    a.since(b).max(b.since(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(running_ms: u64, wall_ms: i64, wall_error: Option<u64>) -> ClockReading {
        ClockReading {
            running: Span::from_ms(running_ms),
            wall: UnixTime::from_ms(wall_ms),
            wall_error: wall_error.map(Span::from_ms),
        }
    }

    #[test]
    fn the_time_comes_from_the_coordinator_and_steps_of_the_wall_clock_do_nothing() {
        let mut clock = AgentClock::default();
        assert_eq!(clock.now(&reading(0, 5000, None)), None);
        clock.learn(Span::from_ms(1000), UnixTime::from_ms(700_000), &reading(1040, 123, None));
        // Asked 40 ms ago: the answer is of the middle, give or take 20 ms and the millisecond of its resolution.
        assert_eq!(
            clock.now(&reading(1040, 123, None)),
            Some((UnixTime::from_ms(700_020), Span::from_ms(21)))
        );
        let (time, error) = clock.now(&reading(11_040, -999_999, None)).unwrap();
        assert_eq!(time, UnixTime::from_ms(710_020));
        assert_eq!(error, Span::from_ms(22));
    }

    #[test]
    fn a_better_answer_replaces_a_worse_one_and_an_old_one_ages() {
        let mut clock = AgentClock::default();
        clock.learn(Span::from_ms(0), UnixTime::from_ms(1000), &reading(10, 0, None));
        clock.learn(Span::from_ms(100), UnixTime::from_ms(1400), &reading(1100, 0, None));
        assert_eq!(clock.now(&reading(1100, 0, None)).unwrap().0, UnixTime::from_ms(2095));
        // After three hours without an answer, the same slow one is better.
        let later = 3 * 3600 * 1000;
        let slow = 1000 + later as i64;
        clock.learn(Span::from_ms(later), UnixTime::from_ms(slow), &reading(later + 1000, 0, None));
        assert_eq!(clock.now(&reading(later + 1000, 0, None)).unwrap().0, UnixTime::from_ms(slow + 500));
    }

    #[test]
    fn an_answer_that_contradicts_the_known_time_makes_both_unsure_until_another_one_agrees() {
        let mut clock = AgentClock::default();
        clock.learn(Span::from_ms(0), UnixTime::from_ms(1000), &reading(10, 0, None));
        clock.learn(Span::from_ms(20), UnixTime::from_ms(9000), &reading(40, 0, None));
        let (time, error) = clock.now(&reading(40, 0, None)).unwrap();
        assert_eq!(time, UnixTime::from_ms(9010));
        assert!(error >= Span::from_ms(7975), "{error}");
        clock.learn(Span::from_ms(50), UnixTime::from_ms(9030), &reading(60, 0, None));
        assert_eq!(clock.now(&reading(60, 0, None)), Some((UnixTime::from_ms(9035), Span::from_ms(6))));
    }

    #[test]
    fn a_wall_clock_counts_if_it_is_synchronised_and_agreed_before() {
        let later = reading(500, 90_000, Some(30));
        assert_eq!(AgentClock::new(false).now(&later), None);
        assert_eq!(AgentClock::new(true).now(&later), Some((UnixTime::from_ms(90_000), Span::from_ms(30))));
        let mut clock = AgentClock::new(true);
        clock.learn(Span::from_ms(0), UnixTime::from_ms(50_000), &reading(10, 90_000, Some(30)));
        assert!(!clock.wall_agrees());
        assert_eq!(clock.now(&later).unwrap().0, UnixTime::from_ms(50_495));
    }
}
