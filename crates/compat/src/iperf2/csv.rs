//! Comma-separated values (-y C).

use linerate_units::Timestamp;

use super::report::{Iperf2Addresses, Iperf2LineKind, Iperf2ReportLine, per_second};
use super::settings::Iperf2Settings;

/// A line as 2.1.8 writes it, except for the time of a server, which is 1970 there.
pub(super) fn line(
    settings: &Iperf2Settings,
    now: Timestamp,
    kind: Iperf2LineKind,
    row: &Iperf2ReportLine,
    ends: &Iperf2Addresses,
) -> String {
    let (seconds, _) = settings.wall(now);
    let id = row.id.map_or_else(|| "-1".to_owned(), |id| id.to_string());
    // The server prints its peer first.
    let (first, second) = if settings.server { (ends.remote, ends.local) } else { (ends.local, ends.remote) };
    let mut text = format!(
        "{},{},{},{},{},{id},{:.1}-{:.1},{},{:.0}",
        date(seconds),
        settings.shown_ip(first.ip()),
        first.port(),
        settings.shown_ip(second.ip()),
        second.port(),
        row.from,
        row.to,
        row.bytes,
        (per_second(row.bytes, row) * 8.0).floor()
    );
    if matches!(kind, Iperf2LineKind::Datagrams | Iperf2LineKind::UdpReceiver) {
        let share = if row.total == 0 { 0.0 } else { 100.0 * row.lost as f64 / row.total as f64 };
        let (lost, total, late) = (row.lost, row.total, row.out_of_order);
        text.push_str(&format!(",{:.3},{lost},{total},{share:.3},{late}", row.jitter * 1e3));
    }
    if matches!(kind, Iperf2LineKind::UdpSender) || kind == Iperf2LineKind::Plain && row.udp {
        // A sender knows none of these values, and prints them like this.
        text.push_str(",0.000,0,-1,-0.000,0");
    }
    text.push('\n');
    text
}

/// Formats seconds since 1970 as `2026-11-21 19:19:05`, in UTC.
pub(super) fn readable_date(seconds: u32) -> String {
    let digits = date(seconds);
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        match at {
            4 | 6 => text.push('-'),
            8 => text.push(' '),
            10 | 12 => text.push(':'),
            _ => {}
        }
        text.push(digit);
    }
    text
}

/// Formats seconds since 1970 as 20261121191905, in UTC.
///
/// # Source
/// H. Hinnant, chrono-compatible low-level date algorithms, `civil_from_days`
fn date(seconds: u32) -> String {
    let (days, rest) = (i64::from(seconds / 86_400), seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}{:02}{:02}{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_u() {
        // date -u -d @N +%Y%m%d%H%M%S
        for (seconds, text) in [
            (0, "19700101000000"),
            (951_782_399, "20000228235959"),
            (951_782_400, "20000229000000"),
            (1_800_000_000, "20270115080000"),
            (u32::MAX, "21060207062815"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
