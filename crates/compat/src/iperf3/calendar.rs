//! Dates as iperf3 prints them.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, u64); 12] = [
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
    ("Jan", 31),
    ("Feb", 29),
];

/// Milliseconds since the Unix epoch as `Sat, 21 Nov 2026 19:05:48 GMT` (RFC 1123).
#[must_use]
pub(super) fn gmt(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let days = seconds / 86_400;
    let weekday = DAYS.get((days % 7) as usize).copied().unwrap_or_default();
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Year, month and day of the month. Years are counted from March, so that the leap day is the last day of its
/// year.
fn date(days: u64) -> (u64, &'static str, u64) {
    // Days from 1 March of the year 0 to the epoch.
    let days = days + 719_468;
    let (eras, day) = (days / 146_097, days % 146_097);
    let centuries = (day / 36_524).min(3);
    let day = day - centuries * 36_524;
    let (fours, day) = (day / 1461, day % 1461);
    let years = (day / 365).min(3);
    let mut day = day - years * 365;
    let year = eras * 400 + centuries * 100 + fours * 4 + years;
    for (at, (month, length)) in MONTHS.into_iter().enumerate() {
        if day < length {
            return (year + u64::from(at >= 10), month, day + 1);
        }
        day -= length;
    }
    (year, "Feb", 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times from reports of the real program, and some from date(1).
    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_704_067_199, "Sun, 31 Dec 2023 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_795_287_948, "Sat, 21 Nov 2026 19:05:48 GMT"),
            (1_795_316_418, "Sun, 22 Nov 2026 03:00:18 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(gmt(seconds * 1000 + 940), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_time_is_too_late(ms: u64) {
            let _ = gmt(ms);
        }
    }
}
