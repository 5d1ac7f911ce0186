//! Formats numbers for sentences: decimal rates, binary sizes, times in a suitable unit.

/// A rate with four digits.
pub(crate) fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        bps if bps >= 1e9 => (bps / 1e9, "Gb/s"),
        bps if bps >= 1e6 => (bps / 1e6, "Mb/s"),
        bps if bps >= 1e3 => (bps / 1e3, "kb/s"),
        bps => (bps, "b/s"),
    };
    format!("{} {unit}", digits(value))
}

/// A rate with six digits, for rates that differ by little.
pub(crate) fn fine_rate(bps: f64) -> String {
    let (value, unit) = match bps.abs() {
        size if size >= 1e9 => (bps / 1e9, "Gb/s"),
        size if size >= 1e6 => (bps / 1e6, "Mb/s"),
        size if size >= 1e3 => (bps / 1e3, "kb/s"),
        _ => (bps, "b/s"),
    };
    let decimals = match value.abs() {
        size if size >= 1e5 => 0,
        size if size >= 100.0 => 3,
        size if size >= 10.0 => 4,
        _ => 5,
    };
    format!("{} {unit}", trimmed(format!("{value:.decimals$}")))
}

/// A size of memory or of a window, in binary units.
pub(crate) fn size(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1_073_741_824.0 => (bytes / 1_073_741_824.0, "GiB"),
        bytes if bytes >= 1_048_576.0 => (bytes / 1_048_576.0, "MiB"),
        bytes if bytes >= 1024.0 => (bytes / 1024.0, "KiB"),
        bytes => (bytes, "B"),
    };
    format!("{} {unit}", digits(value))
}

/// A time in s, ms or us.
pub(crate) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        seconds if seconds >= 1.0 => (seconds, "s"),
        seconds if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        seconds => (seconds * 1e6, "us"),
    };
    format!("{} {unit}", digits(value))
}

/// A share as percent.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size >= 0.1 || size == 0.0 => format!("{percent:.1} %"),
        size if size >= 1e-4 => format!("{} %", trimmed(format!("{percent:.4}"))),
        _ => format!("{percent:.1e} %"),
    }
}

/// How far something exceeds its limit: as a percentage, or as a multiple from 2 on.
pub(crate) fn beyond(ratio: f64) -> String {
    if ratio < 2.0 { percent(ratio - 1.0) } else { format!("{} times that", digits(ratio)) }
}

/// Four significant digits above one, without trailing zeros.
fn digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    };
    trimmed(format!("{value:.decimals$}"))
}

/// Removes the zeros at the end of a fraction.
fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(rate(941_482_444.7), "941.5 Mb/s");
        assert_eq!(rate(10e9), "10 Gb/s");
        assert_eq!(fine_rate(941_482_444.7), "941.482 Mb/s");
        assert_eq!(fine_rate(3_120_761.9), "3.12076 Mb/s");
        assert_eq!(size(65536.0), "64 KiB");
        assert_eq!(size(2_625_000.0), "2.503 MiB");
        assert_eq!(time(0.021), "21 ms");
        assert_eq!(time(0.0002), "200 us");
        assert_eq!((beyond(1.028), beyond(2.028)), ("2.8 %".to_owned(), "2.028 times that".to_owned()));
        assert_eq!(percent(0.998), "99.8 %");
        assert_eq!(percent(0.000_028_6), "0.0029 %");
        assert_eq!(percent(0.0001), "0.01 %");
        assert_eq!(percent(3.1e-8), "3.1e-6 %");
        assert_eq!(percent(0.0), "0.0 %");
    }
}
