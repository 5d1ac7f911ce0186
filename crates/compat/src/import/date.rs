//! Conversion between dates as programs write them and RFC 3339.

/// Seconds since the Unix epoch as `2026-11-21T19:05:48Z`.
///
/// # Source
/// H. Hinnant, chrono-compatible low-level date algorithms, `civil_from_days`
pub(crate) fn rfc3339(unix_seconds: u64) -> Option<String> {
    // Up to the year 9999.
    if unix_seconds >= 253_402_300_800 {
        return None;
    }
    let (days, second) = (unix_seconds / 86_400 + 719_468, unix_seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// `Sat, 21 Nov 2026 19:05:48 GMT` as RFC 3339.
pub(crate) fn from_rfc1123(text: &str) -> Option<String> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_whitespace();
    let (_, day, name, year) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    let month = MONTHS.find(name).filter(|at| at % 3 == 0 && name.len() == 3)? / 3 + 1;
    let day: u8 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    (zone == "GMT").then(|| checked(&format!("{year}-{month:02}-{day:02}T{time}Z"))).flatten()
}

/// The text, if it is a valid UTC date and time in the form of RFC 3339.
pub(crate) fn checked(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let form = b"dddd-dd-ddTdd:dd:ddZ";
    let fits = bytes.len() == form.len()
        && bytes.iter().zip(form).all(|(byte, want)| match want {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        });
    let number =
        |from: usize| text.get(from..from + 2).and_then(|part| part.parse::<u8>().ok()).unwrap_or(99);
    let in_range = (1..=12).contains(&number(5))
        && (1..=31).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 61;
    (fits && in_range).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_u() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_287_948, "2026-11-21T19:05:48Z"),
        ] {
            assert_eq!(rfc3339(seconds).as_deref(), Some(text));
        }
        assert_eq!(from_rfc1123("Sat, 21 Nov 2026 19:05:48 GMT").as_deref(), Some("2026-11-21T19:05:48Z"));
        assert_eq!(from_rfc1123("Sat, 21 ovD 2026 19:05:48 GMT"), None);
    }
}
