//! Columns of one-way delay: the transit times of datagrams and buffers.

use super::datagram::TransitReport;
use super::numbers::bytes;
use crate::stand_in::TransitCounts;

/// The delays of one line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransitRow {
    /// Number of datagrams or buffers.
    pub(super) count: u64,
    /// Their mean length, bytes.
    pub(super) length: u64,
    /// Seconds; negative if the receiver's clock is behind the sender's.
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) stdev: f64,
}

impl TransitRow {
    /// The delays between two readings of the counts; `before` is absent at the start. `range` is the smallest
    /// and largest delay, in nanoseconds. Absent if there were none.
    pub(super) fn between(
        before: Option<TransitCounts>,
        now: &TransitCounts,
        range: (i64, i64),
    ) -> Option<Self> {
        let before = before.unwrap_or_default();
        let count = now.count.checked_sub(before.count).filter(|count| *count > 0)?;
        let number = count as f64;
        let sum = now.sum_ns.saturating_sub(before.sum_ns) as f64;
        let squares = (now.squares_ns2 - before.squares_ns2).max(0.0);
        // A single value has no deviation.
        let variance = (squares - sum * sum / number).max(0.0) / (number - 1.0).max(1.0);
        Some(Self {
            count,
            length: now.bytes.saturating_sub(before.bytes) / count,
            mean: (now.first_ns as f64 + sum / number) / 1e9,
            least: range.0 as f64 / 1e9,
            most: range.1 as f64 / 1e9,
            stdev: variance.sqrt() / 1e9,
        })
    }

    /// The delays for a server report; negative ones are reported as 0.
    pub(super) fn reported(&self, seconds: f64) -> TransitReport {
        let micros = |seconds: f64| (seconds.max(0.0) * 1e6).round() as u64;
        TransitReport {
            min_us: micros(self.least),
            max_us: micros(self.most),
            mean_us: micros(self.mean),
            stdev_us: micros(self.stdev),
            packets: u32::try_from(self.count).unwrap_or(u32::MAX),
            packets_per_second: if seconds > 0.0 { (self.count as f64 / seconds) as u32 } else { 0 },
        }
    }

    /// The delays from a server report.
    pub(super) fn from_report(transit: &TransitReport) -> Self {
        let seconds = |us: u64| us as f64 / 1e6;
        Self {
            count: u64::from(transit.packets),
            length: 0,
            mean: seconds(transit.mean_us),
            least: seconds(transit.min_us),
            most: seconds(transit.max_us),
            stdev: seconds(transit.stdev_us),
        }
    }
}

/// Mean, minimum, maximum and deviation in milliseconds.
fn latency(row: &TransitRow) -> String {
    let ms = |seconds: f64| seconds * 1e3;
    format!("{:.3}/{:.3}/{:.3}/{:.3} ms", ms(row.mean), ms(row.least), ms(row.most), ms(row.stdev))
}

/// The tool's "power": throughput divided by delay, in 10^6 bytes per second squared.
fn power(bytes_per_second: f64, row: &TransitRow) -> String {
    if row.mean > 0.0 { format!("{:.0}", bytes_per_second / row.mean * 1e-6) } else { "0".to_owned() }
}

/// The columns of a datagram receiver, from the delays to the end of the line.
pub(super) fn datagrams(row: Option<&TransitRow>, received: u64, pace: f64, bytes_per_second: f64) -> String {
    let Some(row) = row else { return format!("-/-/-/- ms {pace:.0} pps {received}/-(-) pkts -") };
    // Number of datagrams in transit, by Little's law.
    let (mean, spread) = (pace * row.mean.max(0.0), pace * row.stdev);
    let power = power(bytes_per_second, row);
    format!("{} {pace:.0} pps {received}/{mean:.0}({spread:.0}) pkts {power}", latency(row))
}

/// The columns of a receiver of stamped buffers, except the reads.
pub(super) fn buffers(row: Option<&TransitRow>, bytes_per_second: f64) -> String {
    let Some(row) = row else { return "-/-/-/- ms (0/0) - -".to_owned() };
    let under_way = bytes(bytes_per_second * row.mean.max(0.0), Default::default());
    let power = power(bytes_per_second, row);
    format!("{} ({}/{}) {under_way} {power}", latency(row), row.count, row.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: u64, sum_ns: i64, squares_ns2: f64) -> TransitCounts {
        let (bytes, first_ns) = (count * 1470, 2_000_000);
        TransitCounts { count, bytes, first_ns, sum_ns, squares_ns2, ..TransitCounts::default() }
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        // 2, 1 and 3 ms, then 4, 6 and 8 ms with a deviation of 2 ms.
        let before = counts(3, 0, 2e12);
        let now = counts(6, 12_000_000, 2e12 + 4e12 + 16e12 + 36e12);
        let row = TransitRow::between(Some(before), &now, (4_000_000, 8_000_000)).unwrap();
        assert_eq!((row.count, row.length), (3, 1470));
        assert_eq!(latency(&row), "6.000/4.000/8.000/2.000 ms");
        assert_eq!(TransitRow::between(Some(now), &now, (0, 0)), None);
    }

    #[test]
    fn columns_are_those_of_2_1_8() {
        // Two lines of its reports: 16556 datagrams per second of 1470 bytes with a delay of 49.150 ms; 10
        // Mbit/s, 0.953 ms.
        let mut row = TransitRow {
            count: 33_981,
            length: 0,
            mean: 49.150e-3,
            least: 1e-6,
            most: 52.907e-3,
            stdev: 10.470e-3,
        };
        let rate = 16_556.0 * 1470.0;
        assert_eq!(
            datagrams(Some(&row), 33_981, 16_556.0, rate),
            "49.150/0.001/52.907/10.470 ms 16556 pps 33981/814(173) pkts 495"
        );
        row = TransitRow {
            count: 251,
            length: 10_000,
            mean: 0.953e-3,
            least: 15e-6,
            most: 41.431e-3,
            stdev: 5.005e-3,
        };
        assert_eq!(
            buffers(Some(&row), 2_520_080.0 / 2.0001),
            "0.953/0.015/41.431/5.005 ms (251/10000) 1.17 KByte 1322"
        );
    }
}
