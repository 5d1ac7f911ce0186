//! The part of a flow that counts in the result.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use linerate_sock::Mono;
use linerate_units::Span;

/// Value for an instant that has not come yet.
const NEVER: u64 = Mono::FAR.as_ns();

/// The measured part of a flow: starts after the omitted part, which starts at the first byte, and lasts
/// `measured`.
///
/// # Source
/// RFC 2647 §3.17 defines goodput over a stated interval. Here the interval is counted from the first byte of
/// this side.
#[derive(Debug)]
pub(crate) struct MeasuredPart {
    origin: AtomicU64,
    omit: Span,
    measured: Option<Span>,
}

impl MeasuredPart {
    pub(crate) const fn new(omit: Span, measured: Option<Span>) -> Self {
        Self { origin: AtomicU64::new(NEVER), omit, measured }
    }

    /// Records a first byte; the earliest over all streams counts. True for the first call.
    pub(crate) fn begin(&self, now: Mono) -> bool {
        self.origin.fetch_min(now.as_ns(), Relaxed) == NEVER
    }

    /// Time of the first byte of the flow; [`Mono::FAR`] before it.
    #[inline]
    pub(crate) fn origin(&self) -> Mono {
        Mono(self.origin.load(Relaxed))
    }

    /// Time of the first byte of the flow; absent before it.
    pub(crate) fn begun(&self) -> Option<Mono> {
        Some(self.origin()).filter(|&origin| origin != Mono::FAR)
    }

    /// End of the omitted part.
    #[inline]
    pub(crate) fn opens(&self) -> Mono {
        self.opens_after(self.origin())
    }

    /// End of the omitted part of a flow whose first byte came at `origin`.
    pub(crate) fn opens_after(&self, origin: Mono) -> Mono {
        origin + self.omit.as_duration()
    }

    /// End of the measured part; [`Mono::FAR`] when it lasts until the flow ends.
    #[inline]
    pub(crate) fn closes(&self) -> Mono {
        self.closes_after(self.origin())
    }

    /// End of the measured part of a flow whose first byte came at `origin`.
    pub(crate) fn closes_after(&self, origin: Mono) -> Mono {
        self.measured.map_or(Mono::FAR, |measured| self.opens_after(origin) + measured.as_duration())
    }

    /// Whether a part is omitted.
    pub(crate) fn omits(&self) -> bool {
        self.omit > Span::ZERO
    }
}
