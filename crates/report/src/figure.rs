//! The result of a flow: the receiver's count, or its last progress.

use linerate_model::{Caveat, CaveatKind, CeilingShare, FlowRecord};
use linerate_units::{Bitrate, Bytes, Span};

/// The result of a flow, counted where the data arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FlowFigure {
    /// Application bytes inside the window.
    pub(crate) bytes: Bytes,
    /// Time between the first and the last read.
    pub(crate) elapsed: Span,
    /// Goodput; absent if no time passed between the first and the last read.
    pub(crate) bitrate: Option<Bitrate>,
    /// The goodput as a share of the ceiling; absent above the ceiling.
    pub(crate) share: Option<CeilingShare>,
    /// Whether the result exceeds what is possible.
    pub(crate) impossible: bool,
}

impl FlowFigure {
    /// The receiver's tally, or its last progress if the flow ended before the tally.
    pub(crate) fn of(flow: &FlowRecord) -> Option<Self> {
        let ((bytes, elapsed), bitrate) = (flow.received()?, flow.bitrate());
        let (share, impossible) = (flow.ceiling_share(), flow.is_impossible());
        Some(Self { bytes, elapsed, bitrate, share, impossible })
    }
}

/// Whether a flow comes from the file of another program. Values that the file does not have are 0 in its
/// tallies.
pub(crate) fn imported(flow: &FlowRecord) -> bool {
    flow.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Imported)
}

/// The caveats of a flow, including `partial` if the receiver's count is not final.
pub(crate) fn caveats(flow: &FlowRecord) -> Vec<Caveat> {
    let mut caveats = flow.caveats.clone();
    let has_partial = caveats.iter().any(|caveat| caveat.kind == CaveatKind::Partial);
    let finished = flow.receiver.as_ref().is_some_and(|tally| tally.complete);
    // The sizes of a series are reported only after they are finished.
    if !has_partial && !finished && flow.sizes.is_empty() {
        caveats.push(Caveat { kind: CaveatKind::Partial, text: partial_text(flow).into() });
    }
    caveats
}

/// The caveats of a flow for a form without one-way delays, on which a caveat about the clocks has no bearing.
pub(crate) fn caveats_without_one_way(flow: &FlowRecord) -> Vec<Caveat> {
    let mut caveats = caveats(flow);
    caveats.retain(|caveat| caveat.kind != CaveatKind::OffsetUncertain);
    caveats
}

fn partial_text(flow: &FlowRecord) -> String {
    let error = flow.receiver.as_ref().and_then(|tally| tally.error.as_deref());
    match (error, FlowFigure::of(flow)) {
        (Some(trouble), _) => format!("the flow ended early: {trouble}; the figures cover what was measured"),
        (None, Some(figure)) => format!(
            "the receiver's final count is missing; the figures are its last sample, {:.1} s after its \
             first read",
            figure.elapsed.as_secs_f64()
        ),
        (None, None) => "the receiver reported no count before the flow ended".to_owned(),
    }
}
