//! When a schedule is due.

use std::str::FromStr;

use cronexpr::{Crontab, MakeTimestamp, ParseOptions};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use linerate_model::calendar::{QuietHours, Recurrence, Schedule, UnixTime};
use linerate_units::Span;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use twox_hash::XxHash64;

/// The shortest time between two runs of a schedule.
pub(crate) const MIN_PERIOD: Span = Span::from_secs(10);
/// The longest time between two runs of a schedule.
const MAX_PERIOD: Span = Span::from_secs(366 * 24 * 3600);
/// The latest that a run may begin after it is due.
pub(crate) const MAX_SLIP: Span = Span::from_secs(7 * 24 * 3600);
/// Open times that are tried for a run before its schedule counts as one that never runs. All hours of a week repeat.
const MAX_OPEN_TIMES: u32 = 200;
/// How long all times may be in quiet hours before a schedule counts as one that never runs: a yearly time has each day of
/// the week within six years.
const MAX_QUIET: Span = Span::from_secs(6 * 366 * 24 * 3600);
const MINUTE_MS: i64 = 60_000;

/// Why a schedule cannot be due, or never runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecurrenceError {
    /// The time zone is unknown.
    #[error("there is no time zone '{0}' on this host; give the name of one like Europe/Berlin, or UTC")]
    Zone(String),
    /// The crontab expression cannot be read.
    #[error(
        "'{expression}' is no crontab expression ({why}); write minute, hour, day of month, month and day of week, as \
         in \"30 2 * * Mon-Fri\""
    )]
    Cron {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// The period is out of range.
    #[error("a period of {0} is not possible; give 10s to 8784h (366 days)")]
    Period(Span),
    /// The delay is longer than a period.
    #[error("the jitter of {jitter} is longer than the period of {period}; give a shorter one")]
    Jitter {
        /// Mean of the delay.
        jitter: Span,
        /// The period.
        period: Span,
    },
    /// The crontab expression has no time in the next four years.
    #[error(
        "'{0}' is never due: no day in the next four years matches it; check the day of month and the month"
    )]
    Never(String),
    /// All times are in quiet hours.
    #[error("it never runs: each time that it is due is in its quiet hours ({0}); change one of them")]
    AlwaysQuiet(String),
    /// No time outside the quiet hours is long enough.
    #[error(
        "it never runs: with set-up and settling the test takes {length}, and no time outside its quiet hours \
         ({quiet}) is that long within {slip} after it is due; make the test shorter, or the slip longer"
    )]
    NoGap {
        /// How long its reservations are.
        length: Span,
        /// The quiet hours.
        quiet: String,
        /// How much later than due it may begin.
        slip: Span,
    },
    /// A run may begin too late.
    #[error("a slip of {0} is not possible; a test may begin up to 168h later than due")]
    Slip(Span),
    /// It is over.
    #[error("it never runs: it ends before it is due for the first time; give a later end")]
    Over,
    /// The time is in the past.
    #[error("it never runs: its time is in the past; give a later time")]
    Past,
}

/// When a schedule is due, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct DueTimes<'s> {
    schedule: &'s Schedule,
    zone: TimeZone,
    cron: Option<Crontab>,
}

impl<'s> DueTimes<'s> {
    pub(crate) fn of(schedule: &'s Schedule) -> Result<Self, RecurrenceError> {
        let zone = zone(&schedule.zone)?;
        let cron = match &schedule.recurrence {
            Recurrence::Cron(expression) => Some(crontab(expression, &schedule.zone, &schedule.name)?),
            Recurrence::Every { period, jitter, .. } => {
                check_period(*period, *jitter)?;
                None
            }
            Recurrence::Once(_) => None,
        };
        Ok(Self { schedule, zone, cron })
    }

    /// The first time after `after` at which the schedule is due, outside its quiet hours; absent if there is none.
    pub(crate) fn next(&self, after: UnixTime) -> Result<Option<UnixTime>, RecurrenceError> {
        let mut at = after;
        while at.since(after) < MAX_QUIET {
            let Some(next) = self.next_due(at)? else { return Ok(None) };
            if self.schedule.until.is_some_and(|until| next > until) {
                return Ok(None);
            }
            if !self.is_quiet(next) {
                return Ok(Some(next));
            }
            let Some(end) = self.end_of_quiet_hours(next) else { return Ok(None) };
            at = end.before(Span::from_ms(1)).max(next);
        }
        Ok(None)
    }

    /// Whether a time is in quiet hours.
    pub(crate) fn is_quiet(&self, at: UnixTime) -> bool {
        !self.schedule.quiet.is_empty() && is_quiet(&self.schedule.quiet, &self.zone, at)
    }

    /// The first full minute after `at` that is not in quiet hours; absent if all hours of the week are quiet.
    pub(crate) fn end_of_quiet_hours(&self, at: UnixTime) -> Option<UnixTime> {
        let first = at.as_ms().div_euclid(MINUTE_MS) + 1;
        let minutes = first..first + 8 * 24 * 60;
        minutes.map(|minute| UnixTime::from_ms(minute * MINUTE_MS)).find(|time| !self.is_quiet(*time))
    }

    /// Why the schedule never runs from `now` on, with reservations of this length; nothing if it does.
    pub(crate) fn check(&self, now: UnixTime, length: Span) -> Result<(), RecurrenceError> {
        let schedule = self.schedule;
        if schedule.slip > MAX_SLIP {
            return Err(RecurrenceError::Slip(schedule.slip));
        }
        if let (Recurrence::Once(at), true) = (&schedule.recurrence, self.next_due(now)?.is_none()) {
            debug_assert!(*at <= now, "a later time is due");
            return Err(RecurrenceError::Past);
        }
        let quiet = || schedule.quiet.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if self.next(now)?.is_some() {
            let no_gap = || RecurrenceError::NoGap { length, quiet: quiet(), slip: schedule.slip };
            return if self.has_gap(now, length)? { Ok(()) } else { Err(no_gap()) };
        }
        match self.next_due(now)? {
            Some(first) if schedule.until.is_some_and(|until| first > until) => Err(RecurrenceError::Over),
            _ => Err(RecurrenceError::AlwaysQuiet(quiet())),
        }
    }

    /// Whether a run of this length fits between quiet hours after one of the times at which it is due.
    fn has_gap(&self, now: UnixTime, length: Span) -> Result<bool, RecurrenceError> {
        let slip = self.schedule.slip;
        let mut after = now;
        for _ in 0..MAX_OPEN_TIMES {
            let Some(due) = self.next(after)? else { break };
            let mut starts = due;
            while starts <= due.after(slip) {
                match self.quiet_until(starts, length) {
                    None => return Ok(true),
                    Some(open) => starts = open.max(starts.after(Span::from_ms(1))),
                }
            }
            // Those that are due before reach no later open time either.
            after = due.max(starts.before(slip).before(Span::from_ms(1)));
        }
        Ok(false)
    }

    /// If a run of this length that starts then would be in quiet hours at some moment, when those are over.
    pub(crate) fn quiet_until(&self, starts: UnixTime, length: Span) -> Option<UnixTime> {
        if self.schedule.quiet.is_empty() {
            return None;
        }
        let ends = starts.after(length);
        let mut at = starts;
        loop {
            if self.is_quiet(at) {
                return Some(self.end_of_quiet_hours(at).unwrap_or(UnixTime::MAX));
            }
            if at >= ends {
                return None;
            }
            at = at.after(Span::from_ms(MINUTE_MS as u64)).min(ends);
        }
    }

    /// Whether the clock of the zone showed the same time an hour before.
    fn is_repeated(&self, at: Timestamp) -> bool {
        let local = at.to_zoned(self.zone.clone()).datetime();
        self.zone.to_ambiguous_zoned(local).earlier().is_ok_and(|first| first.timestamp() < at)
    }

    /// The first time after `after`, quiet or not.
    fn next_due(&self, after: UnixTime) -> Result<Option<UnixTime>, RecurrenceError> {
        match &self.schedule.recurrence {
            Recurrence::Once(at) => Ok(Some(*at).filter(|at| *at > after)),
            Recurrence::Every { period, jitter, anchor } => {
                Ok(Some(next_period(&self.schedule.name, *period, *jitter, *anchor, after)))
            }
            Recurrence::Cron(expression) => {
                let never = || RecurrenceError::Never(expression.to_string());
                let cron = self.cron.as_ref().ok_or_else(never)?;
                let from = timestamp(after);
                // Ten years before the end of the calendar, its arithmetic would overflow.
                if from > latest() {
                    return Ok(None);
                }
                let mut next = cron.find_next(MakeTimestamp(from)).map_err(|_| never())?.timestamp();
                // An hour that the end of summer time repeats is one hour, except for expressions of every hour.
                while !is_hourly(expression) && self.is_repeated(next) {
                    next = cron.find_next(MakeTimestamp(next)).map_err(|_| never())?.timestamp();
                }
                Ok(Some(UnixTime::from_ms(next.as_millisecond())))
            }
        }
    }
}

/// Whether an expression has every hour, or a step of hours.
fn is_hourly(expression: &str) -> bool {
    expression.split_whitespace().nth(1).is_some_and(|hours| hours.starts_with('*'))
}

fn latest() -> Timestamp {
    Timestamp::MAX.checked_sub(SignedDuration::from_hours(24 * 3660)).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn check_period(period: Span, jitter: Span) -> Result<(), RecurrenceError> {
    if !(MIN_PERIOD..=MAX_PERIOD).contains(&period) {
        return Err(RecurrenceError::Period(period));
    }
    if jitter > period {
        return Err(RecurrenceError::Jitter { jitter, period });
    }
    Ok(())
}

/// The first time of a periodic schedule after `after`. Number, name and seed give each delay, so that every program
/// computes the same times.
fn next_period(name: &str, period: Span, jitter: Span, anchor: UnixTime, after: UnixTime) -> UnixTime {
    let ms = (period.as_ns() / 1_000_000).max(1) as i64;
    let elapsed = after.as_ms().saturating_sub(anchor.as_ms());
    // A delay is at most a period, so the one before may be due after `after` as well.
    let mut number = elapsed.div_euclid(ms).saturating_sub(1);
    loop {
        let base = anchor.as_ms().saturating_add(number.saturating_mul(ms));
        let due = UnixTime::from_ms(base).after(delay(name, number, period, jitter));
        if due > after || due == UnixTime::MAX {
            return due;
        }
        number = number.saturating_add(1);
    }
}

/// The delay of one period, from an exponential distribution that is cut at one period.
fn delay(name: &str, number: i64, period: Span, jitter: Span) -> Span {
    if jitter == Span::ZERO {
        return Span::ZERO;
    }
    let seed = XxHash64::oneshot(number as u64, name.as_bytes());
    let uniform: f64 = StdRng::seed_from_u64(seed).random_range(f64::EPSILON..1.0);
    let exponential = -uniform.ln() * jitter.as_secs_f64();
    Span::from_secs_f64(exponential).unwrap_or(period).min(period)
}

/// Where in its first period a schedule is due, so that the pairs of a mesh are spread over it.
pub(crate) fn offset_in_period(name: &str, period: Span) -> Span {
    let seconds = (period.as_ns() / 1_000_000_000).max(1);
    Span::from_secs(XxHash64::oneshot(0, name.as_bytes()) % seconds)
}

/// The time zone with this IANA name.
pub(crate) fn zone(name: &str) -> Result<TimeZone, RecurrenceError> {
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|_| RecurrenceError::Zone(name.to_owned()))
}

/// A crontab expression without a time zone. `H` is a value that the name of the schedule gives, as in Jenkins.
fn crontab(expression: &str, zone: &str, name: &str) -> Result<Crontab, RecurrenceError> {
    let wrong = |why: String| RecurrenceError::Cron { expression: expression.to_owned(), why };
    let fields = expression.split_whitespace().count();
    if fields != 5 {
        return Err(wrong(format!("it has {fields} fields instead of 5")));
    }
    let mut options = ParseOptions::default();
    options.hashed_value = Some(XxHash64::oneshot(0, name.as_bytes()));
    cronexpr::parse_crontab_with(&format!("{expression} {zone}"), options).map_err(|error| {
        // Its messages have several lines: what was read, a mark below it, and the reason.
        let text = error.to_string();
        wrong(
            text.lines()
                .rev()
                .find_map(|line| line.trim().strip_prefix('^'))
                .unwrap_or(&text)
                .trim()
                .to_owned(),
        )
    })
}

fn is_quiet(quiet: &[QuietHours], zone: &TimeZone, at: UnixTime) -> bool {
    let local = timestamp(at).to_zoned(zone.clone());
    let day = local.weekday().to_monday_zero_offset() as u8;
    let minute = local.hour() as u16 * 60 + local.minute() as u16;
    quiet.iter().any(|hours| hours.contains(day, minute))
}

pub(crate) fn timestamp(at: UnixTime) -> Timestamp {
    Timestamp::from_millisecond(at.as_ms()).unwrap_or(Timestamp::MAX)
}

/// A time in RFC 3339 format, in UTC.
#[must_use]
pub fn rfc3339(at: UnixTime) -> String {
    timestamp(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time that a text in RFC 3339 format, or of the form `2026-12-01 14:30` in a time zone, is. A time zone in brackets
/// after either of them counts instead.
pub(crate) fn parse_time(text: &str, zone: &TimeZone) -> Option<UnixTime> {
    let time = if text.contains('[') {
        // The other readers ignore brackets. This one refuses an offset that the zone does not have then.
        Zoned::from_str(text).ok()?.timestamp()
    } else if let Ok(time) = Timestamp::from_str(text) {
        time
    } else {
        jiff::civil::DateTime::from_str(text).ok()?.to_zoned(zone.clone()).ok()?.timestamp()
    };
    Some(UnixTime::from_ms(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::schedule;
    use proptest::prelude::*;

    fn at(text: &str) -> UnixTime {
        parse_time(text, &TimeZone::UTC).unwrap()
    }

    fn cron(expression: &str, zone: &str) -> Schedule {
        Schedule {
            recurrence: Recurrence::Cron(expression.into()),
            zone: zone.into(),
            ..schedule("s", "a", "b")
        }
    }

    /// The next times after a time.
    fn times(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
        let due = DueTimes::of(schedule).unwrap();
        let mut time = at(after);
        (0..count)
            .map(|_| {
                time = due.next(time).unwrap().unwrap();
                rfc3339(time)
            })
            .collect()
    }

    #[test]
    fn a_time_zone_in_brackets_counts_whatever_the_zone_of_the_fleet_is() {
        let in_zone = |text: &str, name: &str| parse_time(text, &zone(name).unwrap()).map(rfc3339);
        for name in ["UTC", "America/New_York", "Asia/Kolkata"] {
            for text in ["2026-12-24T03:00[Europe/Paris]", "2026-12-24 03:00:00+01:00[Europe/Paris]"] {
                assert_eq!(in_zone(text, name).as_deref(), Some("2026-12-24T02:00:00Z"), "{text} in {name}");
            }
            for text in [
                "2026-12-24T03:00[Mars/Base]",
                "2026-12-24T03:00[",
                "2026-12-24T03:00[u-ca=iso8601]",
                "2026-12-24T03:00+05:00[Europe/Paris]",
            ] {
                assert_eq!(in_zone(text, name), None, "{text} in {name}");
            }
        }
        assert_eq!(in_zone("2026-12-24 03:00", "Europe/Paris").as_deref(), Some("2026-12-24T02:00:00Z"));
        assert_eq!(in_zone("2026-12-24T03:00-05:00", "UTC").as_deref(), Some("2026-12-24T08:00:00Z"));
    }

    #[test]
    fn cron_follows_the_clock_of_its_zone_when_summer_time_begins_and_ends() {
        let nightly = cron("30 2 * * *", "Europe/Berlin");
        // On 2026-03-29, 02:00 becomes 03:00, and there is no 02:30.
        assert_eq!(
            times(&nightly, "2026-03-28T00:00:00Z", 2),
            ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]
        );
        // On 2026-10-25, 03:00 becomes 02:00, and 02:30 exists twice: it is due once.
        assert_eq!(
            times(&nightly, "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        let hourly = cron("30 * * * *", "Europe/Berlin");
        assert_eq!(
            times(&hourly, "2026-10-25T00:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
        );
    }

    #[test]
    fn an_expression_that_cannot_be_read_says_what_to_write() {
        for text in ["", "* * * *", "* * * * * UTC", "61 * * * *", "x * * * *"] {
            let error = DueTimes::of(&cron(text, "UTC")).unwrap_err();
            assert!(matches!(error, RecurrenceError::Cron { .. }), "{text}: {error:?}");
            assert!(error.to_string().contains("30 2 * * Mon-Fri"), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
        let zone = DueTimes::of(&cron("* * * * *", "Europe/Bielefeld")).unwrap_err();
        assert_eq!(zone, RecurrenceError::Zone("Europe/Bielefeld".to_owned()));
    }

    #[test]
    fn a_schedule_that_never_runs_says_why() {
        let now = at("2026-11-27T00:00:00Z");
        let check = |schedule: &Schedule| {
            DueTimes::of(schedule).unwrap().check(now, Span::from_secs(15)).unwrap_err()
        };
        assert!(matches!(check(&cron("0 0 30 2 *", "UTC")), RecurrenceError::Never(_)));
        let mut quiet = cron("0 3 * * *", "UTC");
        quiet.quiet = vec!["00:00-06:00".parse().unwrap()];
        assert_eq!(check(&quiet), RecurrenceError::AlwaysQuiet("00:00-06:00".to_owned()));
        let always = Schedule { quiet: vec!["00:00-24:00".parse().unwrap()], ..schedule("s", "a", "b") };
        assert!(matches!(check(&always), RecurrenceError::AlwaysQuiet(_)));
        let over = Schedule { until: Some(at("2026-11-26T00:00:00Z")), ..cron("0 3 * * *", "UTC") };
        assert_eq!(check(&over), RecurrenceError::Over);
        let past = Schedule { recurrence: Recurrence::Once(now), ..schedule("s", "a", "b") };
        assert_eq!(check(&past), RecurrenceError::Past);
        let leap = cron("0 0 29 2 *", "UTC");
        assert_eq!(times(&leap, "2026-11-27T00:00:00Z", 1), ["2028-02-29T00:00:00Z"]);
    }

    #[test]
    fn quiet_hours_are_left_out() {
        let hourly =
            Schedule { quiet: vec!["Mon-Fri 08:00-18:00".parse().unwrap()], ..cron("0 * * * *", "UTC") };
        // 2026-11-27 is a Friday.
        assert_eq!(
            times(&hourly, "2026-11-27T06:30:00Z", 3),
            ["2026-11-27T07:00:00Z", "2026-11-27T18:00:00Z", "2026-11-27T19:00:00Z"]
        );
    }

    #[test]
    fn delays_have_the_mean_and_the_spread_of_an_exponential_distribution() {
        let (period, jitter) = (Span::from_secs(3600), Span::from_secs(300));
        let delays: Vec<f64> =
            (0..4000).map(|number| delay("s", number, period, jitter).as_secs_f64()).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let deviation =
            (delays.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / delays.len() as f64).sqrt();
        // Standard error of the mean: 300/sqrt(4000) = 4.7 s.
        assert!((mean - 300.0).abs() < 25.0 && (deviation - 300.0).abs() < 40.0, "{mean} {deviation}");
        assert_ne!(delay("s", 1, period, jitter), delay("t", 1, period, jitter));
    }

    proptest! {
        #[test]
        fn periodic_times_rise_and_each_is_in_its_period(
            period in 10_u64..100_000, jitter in 0_u64..=100, anchor in -1_000_000_i64..1_000_000, after in -1_000_000_000_i64..1_000_000_000,
        ) {
            let period_span = Span::from_secs(period);
            let jitter = Span::from_secs(period * jitter / 100);
            let anchor = UnixTime::from_ms(anchor);
            let mut last = UnixTime::from_ms(after);
            for step in 0..20_i64 {
                let next = next_period("name", period_span, jitter, anchor, last);
                prop_assert!(next > last);
                // No period is left out: the next one is at most two periods away.
                prop_assert!(next.since(last) <= Span::from_secs(2 * period), "{step}");
                last = next;
            }
        }
    }
}
