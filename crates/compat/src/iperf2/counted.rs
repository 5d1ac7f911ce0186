//! Converts a datagram receiver's counts to a server report and back.

use linerate_model::{Tally, UdpTally};
use linerate_units::{Bitrate, Bytes, Span};

use super::datagram::ServerReport;
use super::report::Iperf2ReportLine;

/// The report of a datagram receiver for the sender.
pub(super) fn server_report(row: &Iperf2ReportLine) -> ServerReport {
    let parts = |seconds: f64| {
        let micros = (seconds.max(0.0) * 1e6).round() as u64;
        ((micros / 1_000_000) as u32, (micros % 1_000_000) as u32)
    };
    ServerReport {
        bytes: row.bytes,
        duration: parts(row.to),
        lost: row.lost,
        out_of_order: row.out_of_order,
        datagrams: row.total,
        jitter: parts(row.jitter),
        transit: row.transit.map(|transit| transit.reported(row.to - row.from)),
    }
}

/// The counts in a report of the receiver at the other end.
pub(super) fn tally(report: &ServerReport) -> Tally {
    let span = |(seconds, micros): (u32, u32)| {
        Span::from_secs(u64::from(seconds)) + Span::from_ns(u64::from(micros) * 1000)
    };
    let (bytes, elapsed) = (Bytes::new(report.bytes), span(report.duration));
    Tally {
        bytes,
        total_bytes: bytes,
        elapsed,
        bitrate: Bitrate::of(bytes, elapsed).unwrap_or(Bitrate::ZERO),
        udp: Some(UdpTally {
            packets: report.datagrams.saturating_sub(report.lost),
            lost: report.lost,
            out_of_order: report.out_of_order,
            jitter: Some(span(report.jitter)),
            ..UdpTally::default()
        }),
        complete: true,
        ..Tally::default()
    }
}
