//! How often the progress of flows is reported.

use linerate_units::Span;

/// How often the progress of a running flow is reported.
pub(super) const PROGRESS_INTERVAL: Span = Span::from_ms(250);

/// Longest progress interval of a server on a slow path, where progress reports compete with a download.
const SLOWEST_PROGRESS: Span = Span::from_secs(1);

/// Share of the path's rate that progress reports may use, and the size of one report: 89 bytes in a capture
/// plus 66 bytes of headers.
const PROGRESS_SHARE: f64 = 0.000_5;
const PROGRESS_BITS: f64 = 155.0 * 8.0;

/// Progress interval on a path of this rate, clamped to [`PROGRESS_INTERVAL`] and [`SLOWEST_PROGRESS`].
pub(super) fn gap_for(path_bps: f64) -> Span {
    let gap = Span::from_secs_f64(PROGRESS_BITS / (PROGRESS_SHARE * path_bps)).unwrap_or(PROGRESS_INTERVAL);
    gap.clamp(PROGRESS_INTERVAL, SLOWEST_PROGRESS)
}
