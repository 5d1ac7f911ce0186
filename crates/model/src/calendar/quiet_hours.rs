//! Hours of the week in which nothing is measured.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MINUTES_OF_DAY: u16 = 24 * 60;

/// Hours of the week: some days, and the time from one minute to another on each of them. Hours that end at or before
/// the time at which they begin end on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// The first and the last day, from 0 (Monday) to 6; the first may be later in the week than the last.
    days: (u8, u8),
    /// Minutes since midnight, below 24 hours.
    from: u16,
    /// Minutes since midnight, at most 24 hours.
    until: u16,
}

/// Why a text cannot be quiet hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietHoursError(String);

impl fmt::Display for QuietHoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let examples = r#""Mon-Fri 08:00-18:00", "Sun 22:00-06:00" or "00:00-06:00""#;
        write!(f, "'{}' cannot be quiet hours; write for example {examples}", self.0)
    }
}

impl std::error::Error for QuietHoursError {}

impl QuietHours {
    /// Whether this minute of the day is quiet, on a day from 0 (Monday) to 6.
    #[must_use]
    pub fn contains(&self, day: u8, minute: u16) -> bool {
        let on = |day: u8| match self.days {
            (first, last) if first <= last => (first..=last).contains(&day),
            (first, last) => day >= first || day <= last,
        };
        if self.from < self.until {
            return on(day) && (self.from..self.until).contains(&minute);
        }
        let yesterday = day.checked_sub(1).unwrap_or(6);
        (on(day) && minute >= self.from) || (on(yesterday) && minute < self.until)
    }
}

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, QuietHoursError> {
        parse(text).ok_or_else(|| QuietHoursError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<QuietHours> {
    let mut words = text.split_whitespace();
    let (days, hours) = match (words.next()?, words.next()) {
        (hours, None) => ((0, 6), hours),
        (days, Some(hours)) => (self::days(days)?, hours),
    };
    if words.next().is_some() {
        return None;
    }
    let (from, until) = hours.split_once('-')?;
    let (from, until) = (minute(from)?, minute(until)?);
    (from < MINUTES_OF_DAY && from != until).then_some(QuietHours { days, from, until })
}

fn days(text: &str) -> Option<(u8, u8)> {
    let day = |text: &str| {
        let at = DAYS.iter().position(|day| day.eq_ignore_ascii_case(text))?;
        u8::try_from(at).ok()
    };
    match text.split_once('-') {
        None => day(text).map(|day| (day, day)),
        Some((first, last)) => Some((day(first)?, day(last)?)),
    }
}

fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u16>().ok()).flatten()
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    let all = hour.checked_mul(60)?.checked_add(minute)?;
    (minute < 60 && all <= MINUTES_OF_DAY).then_some(all)
}

impl fmt::Display for QuietHours {
    /// The form that is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = |at: u8| DAYS.get(usize::from(at)).copied().unwrap_or_default();
        match self.days {
            (0, 6) => {}
            (first, last) if first == last => write!(f, "{} ", day(first))?,
            (first, last) => write!(f, "{}-{} ", day(first), day(last))?,
        }
        let (from, until) = (self.from, self.until);
        let hour = |minutes: u16| minutes.checked_div(60).unwrap_or(0);
        let minute = |minutes: u16| minutes.checked_rem(60).unwrap_or(0);
        write!(f, "{:02}:{:02}-{:02}:{:02}", hour(from), minute(from), hour(until), minute(until))
    }
}

impl Serialize for QuietHours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QuietHours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for QuietHours {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QuietHours".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "Hours of the week, such as `Mon-Fri 08:00-18:00`." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(text: &str) -> QuietHours {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_minute_is_quiet_and_the_last_is_not() {
        let office = quiet("Mon-Fri 08:00-18:00");
        assert!(office.contains(0, 8 * 60) && office.contains(4, 18 * 60 - 1));
        assert!(
            !office.contains(0, 8 * 60 - 1) && !office.contains(4, 18 * 60) && !office.contains(5, 9 * 60)
        );
    }

    #[test]
    fn hours_over_midnight_end_on_the_next_day() {
        let night = quiet("Sun 22:00-06:00");
        assert!(night.contains(6, 23 * 60) && night.contains(0, 0) && night.contains(0, 6 * 60 - 1));
        assert!(!night.contains(0, 6 * 60) && !night.contains(6, 60) && !night.contains(5, 23 * 60));
    }

    #[test]
    fn days_may_go_over_the_end_of_the_week() {
        let weekend = quiet("Fri-Mon 00:00-24:00");
        let days: Vec<u8> = (0..7).filter(|day| weekend.contains(*day, 720)).collect();
        assert_eq!(days, [0, 4, 5, 6]);
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["Mon-Fri 08:00-18:00", "Sun 22:00-06:00", "00:00-24:00", "Sat-Sun 00:30-00:00"] {
            assert_eq!(quiet(text).to_string(), text);
        }
        assert_eq!(quiet("mon-SUN 8:00-9:05").to_string(), "08:00-09:05");
    }

    #[test]
    fn other_texts_are_refused_with_an_example() {
        for text in [
            "",
            "Mon",
            "Mon 08:00",
            "08:00-08:00",
            "24:00-25:00",
            "08:60-09:00",
            "Foo 08:00-09:00",
            "Mon 1-2 3",
            "+8:00-9:00",
        ] {
            let error = text.parse::<QuietHours>().unwrap_err().to_string();
            assert!(error.contains("Mon-Fri 08:00-18:00"), "{text}: {error}");
        }
    }
}
