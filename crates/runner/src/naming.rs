//! Names of runs and targets.

use linerate_model::split_host_and_port;
use linerate_units::Span;

use crate::RunnerError;

/// Splits `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. `port` has precedence over the one in the text; an absent port
/// is the default one of the protocol.
///
/// # Errors
/// The text has another form, or the port is not from 1 to 65535.
pub fn target(typed: &str, port: Option<u16>) -> Result<(String, Option<u16>), RunnerError> {
    if let Some((before, rest)) = typed.split_once('/') {
        let url = before.strip_suffix(':').and_then(|_| rest.strip_prefix('/'));
        let host = url.map_or(before, |rest| rest.split('/').next().unwrap_or_default());
        let host = host.rsplit('@').next().unwrap_or_default().to_owned();
        let typed = typed.to_owned();
        return Err(match (host.is_empty(), url) {
            (true, _) => RunnerError::Target(typed),
            (false, Some(_)) => RunnerError::TargetUrl { typed, host },
            (false, None) => RunnerError::TargetSlash { typed, host },
        });
    }
    split_host_and_port(typed, port).ok_or_else(|| RunnerError::Target(typed.to_owned()))
}

/// Wall-clock time, rounded to seconds, RFC 3339.
#[must_use]
pub fn now() -> String {
    time_ago(Span::ZERO)
}

/// The moment of a time in RFC 3339 format, or of the beginning of a day in the time zone of this host, as the archive
/// compares it with the starts of runs: in UTC, to the next whole second. Absent for another text.
#[must_use]
pub fn day_or_time(text: &str) -> Option<String> {
    // The parser of days passes over a time without a zone, which is no moment.
    let day = text.parse::<jiff::civil::Date>().ok().filter(|day| day.to_string() == text);
    let moment = match day {
        Some(day) => day.to_zoned(jiff::tz::TimeZone::system()).ok()?.timestamp(),
        None => text.parse::<jiff::Timestamp>().ok()?,
    };
    let seconds = moment.as_second() + i64::from(moment.subsec_nanosecond() > 0);
    Some(utc(jiff::Timestamp::from_second(seconds).ok()?))
}

fn utc(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time after this number of days, RFC 3339 in UTC.
#[must_use]
pub fn in_days(days: u32) -> String {
    let later = jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_hours(24 * i64::from(days)));
    utc(later.unwrap_or(jiff::Timestamp::MAX))
}

/// Seconds since 1970 of an RFC 3339 time; absent for another text.
#[must_use]
pub fn unix_seconds(text: &str) -> Option<f64> {
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_second() as f64)
}

/// An RFC 3339 time to the minute, in the local time zone; another text is returned as it is.
#[must_use]
pub fn local_time(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// As [`now`], this long ago.
pub(crate) fn time_ago(span: Span) -> String {
    let now = jiff::Timestamp::now();
    let seconds = i64::try_from(span.as_ns() / 1_000_000_000).unwrap_or(i64::MAX);
    let then = now.checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    then.round(jiff::Unit::Second).unwrap_or(then).to_string()
}

/// A new run id of 16 random hexadecimal digits.
///
/// # Errors
/// This system has no random numbers.
pub fn run_name() -> Result<String, RunnerError> {
    getrandom::u64().map(|number| format!("{number:016x}")).map_err(RunnerError::NoRandomNumbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_another_zone_is_compared_as_the_moment_that_it_is() {
        for (typed, compared) in [
            ("2026-05-01T12:00:00Z", Some("2026-05-01T12:00:00Z")),
            ("2026-05-01T01:30:00+02:00", Some("2026-04-30T23:30:00Z")),
            ("2026-05-01T12:00:00.5-00:30", Some("2026-05-01T12:30:01Z")),
            ("2026-05-01T12:00:00", None),
            ("20260501", None),
            ("2026-13-01", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(day_or_time(typed).as_deref(), compared, "{typed}");
        }
        // A day begins when the clock on the wall says so, as in lists of runs.
        let day = day_or_time("2026-05-01").unwrap();
        assert_eq!(local_time(&day), "2026-05-01 00:00");
    }

    #[test]
    fn a_url_or_a_network_names_the_host_in_it() {
        let error = |typed: &str| target(typed, None).unwrap_err().to_string();
        assert_eq!(
            error("http://far.example.org/"),
            "'http://far.example.org/' is a URL; give only its host: far.example.org"
        );
        assert!(error("https://me@far.example.org:8000/a/b").ends_with(": far.example.org:8000"));
        assert!(error("10.0.0.1/24").ends_with("give only the host: 10.0.0.1"));
        assert!(error("/24").contains("is not HOST"), "{}", error("/24"));
        assert!(error("http://").contains("is not HOST"), "{}", error("http://"));
    }
}
