//! strftime(3) in the C locale.

use std::str::Chars;

use jiff::Zoned;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;

/// The conversions of the C library: those of C and POSIX, and `%k`, `%l`, `%P` and `%s` of glibc.
const CONVERSIONS: &str = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%";
/// Conversions with the modifier E (another era), which has no effect in the C locale.
const WITH_E: &str = "cCxXyY";
/// Conversions with the modifier O (other digits or month names), which has no effect in the C locale.
const WITH_O: &str = "BbdehHImMSuUVwWy";

/// Formats a time as the C library does in the C locale. What it does not know as a conversion is copied.
#[must_use]
pub fn strftime(format: &str, time: &Zoned) -> String {
    // The C library calls an unknown time zone UTC.
    let known = if time.time_zone().is_unknown() { time.with_time_zone(TimeZone::UTC) } else { time.clone() };
    let config = Config::new().custom(PosixCustom::new()).lenient(true);
    let mut text = String::new();
    match BrokenDownTime::from(&known).format_with_config(&config, translated(format), &mut text) {
        Ok(()) => text,
        // Lenient formatting fails only for lack of memory.
        Err(_) => format.to_owned(),
    }
}

/// The format in jiff's notation, whose conversions are others too, and which has no modifiers.
fn translated(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(letter) = rest.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        match conversion(rest.clone()) {
            Some((conversion, after)) => {
                text.push('%');
                text.push_str(&conversion);
                rest = after;
            }
            None => text.push_str("%%"),
        }
    }
    text
}

/// The conversion after a percent sign without its modifier, and what follows it.
fn conversion(mut rest: Chars<'_>) -> Option<(String, Chars<'_>)> {
    let mut text = String::new();
    let mut letter = rest.next()?;
    while "_-0^#".contains(letter) || letter.is_ascii_digit() {
        text.push(letter);
        letter = rest.next()?;
    }
    let known = match letter {
        'E' => WITH_E,
        'O' => WITH_O,
        _ => CONVERSIONS,
    };
    if matches!(letter, 'E' | 'O') {
        letter = rest.next()?;
    }
    text.push(letter);
    known.contains(letter).then_some((text, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(format: &str, time: &str) -> String {
        strftime(format, &time.parse().unwrap())
    }

    const TIME: &str = "2026-11-22T22:37:05+01:00[Europe/Berlin]";

    #[test]
    fn the_date_of_iperf3_is_that_of_the_c_locale() {
        assert_eq!(at("%c ", TIME), "Sun Nov 22 22:37:05 2026 ");
        assert_eq!(at("%x|%X|%r", TIME), "11/22/26|22:37:05|10:37:05 PM");
        assert_eq!(at("%c", "2026-03-04T05:06:07+01:00[Europe/Berlin]"), "Wed Mar  4 05:06:07 2026");
    }

    #[test]
    fn modifiers_have_no_effect_and_flags_have() {
        assert_eq!(at("%Ec|%Oy|%EY|%OB", TIME), "Sun Nov 22 22:37:05 2026|26|2026|November");
        assert_eq!(at("%-S|%_M|%^a|%3d", TIME), "5|37|SUN|022");
    }

    #[test]
    fn what_is_no_conversion_of_c_is_copied() {
        assert_eq!(at("%N %f %Q %:z %Ed % %", TIME), "%N %f %Q %:z %Ed % %");
        assert_eq!(at("100%", TIME), "100%");
        assert_eq!(at("%%c", TIME), "%c");
    }

    #[test]
    fn an_unknown_time_zone_is_utc() {
        let time: jiff::Timestamp = "2026-11-22T22:37:05Z".parse().unwrap();
        assert_eq!(strftime("%Z %z", &time.to_zoned(TimeZone::unknown())), "UTC +0000");
    }

    #[test]
    fn a_format_may_be_anything() {
        for format in ["", "%", "%%%", "%-", "%9", "%E", "%O", "%_-0^#", "%999d", "%-EZ", "%é", "é%cé", "%Eé"]
        {
            let _ = at(format, TIME);
        }
    }
}
