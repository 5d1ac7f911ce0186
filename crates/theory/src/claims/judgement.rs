//! Results of checking a figure.

use std::collections::BTreeMap;

use linerate_model::import::Quantity;
use linerate_model::{Ceiling, CeilingShare};
use serde::Serialize;

/// Result for a figure, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing known contradicts it.
    Possible,
    /// It equals a known ceiling, to the printed digits.
    AtCeiling,
    /// It may be true, but for something else than it appears to describe, or less precisely than printed.
    Doubtful,
    /// It is impossible on the path described, or contradicts its own line.
    Impossible,
}

impl Verdict {
    /// The result in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::AtCeiling => "at a ceiling",
            Self::Doubtful => "doubtful",
            Self::Impossible => "impossible",
        }
    }
}

/// Numbers of a sentence, by name. The name ends with the unit (`_bps`, `_bytes`, `_s`, `_per_second`,
/// `_ratio`).
pub type Numbers = BTreeMap<&'static str, f64>;

/// Result of one comparison for a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The comparison.
    pub check: Check,
    /// Its result.
    pub verdict: Verdict,
    /// The result as a sentence.
    pub text: String,
    /// The compared numbers.
    pub evidence: Numbers,
    /// Possible causes of the figure, the most likely first; only if it exceeds something.
    pub causes: Vec<PossibleCause>,
}

/// The result of one comparison, with the figure of the line that it is about.
pub(super) type FigureRemark = (Quantity, Reason);

impl Reason {
    /// A result without numbers and causes.
    pub(super) fn new(check: Check, verdict: Verdict, text: String) -> Self {
        Self { check, verdict, text, evidence: Numbers::new(), causes: Vec::new() }
    }

    /// Adds a number. `None` and non-finite values are left out.
    pub(super) fn with(mut self, name: &'static str, value: Option<f64>) -> Self {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.evidence.insert(name, value);
        }
        self
    }
}

/// The comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Whether the quantity can have this value.
    Domain,
    /// Rate against the link.
    Link,
    /// Rate against a standard rate that was not stated.
    KnownCeiling,
    /// Rate against window over round trip.
    Window,
    /// Rate against congestion window over round trip.
    CongestionWindow,
    /// Rate against the loss model.
    Loss,
    /// Packets against the link, alone or with the rate.
    PacketRate,
    /// Bytes over time against the rate on the same line.
    BytesOverTime,
    /// Packets lost against packets and the ratio on the same line.
    LossAccounting,
    /// Calls, their rate, their time and their bytes.
    Calls,
    /// Streams against their sum.
    SumOfStreams,
    /// Intervals against the whole.
    SumOfIntervals,
    /// What arrived against what was sent.
    ReceivedOverSent,
    /// Retransmitted segments against segments sent.
    Retransmits,
    /// Clock and length of the test.
    Clock,
    /// Round trip against the speed of light.
    Distance,
    /// Segment size against the packet that carries it.
    SegmentSize,
}

/// A possible cause of an impossible figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PossibleCause {
    /// Kind of the cause.
    pub kind: CauseKind,
    /// The arithmetic that makes it fit, as a sentence.
    pub text: String,
    /// How to correct it.
    pub remedy: &'static str,
    /// The numbers of the sentence.
    pub evidence: Numbers,
}

/// Kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The sender's clock stopped while bytes still waited in buffers.
    SenderTiming,
    /// A power of 1024 was taken for one of 1000, or applied twice.
    BinaryPrefix,
    /// Bits were taken for bytes.
    BitsForBytes,
    /// Headers were counted as payload.
    HeadersCounted,
    /// The link is a shaper that counts less than the bytes on the wire.
    ShaperCounts,
    /// Packets were larger than described.
    LargerMtu,
    /// Segments were sent without timestamps.
    NoTimestamps,
    /// Headers, preamble and gap were forgotten.
    HeadersForgotten,
    /// Both directions were added.
    BothDirections,
    /// The link is a faster one.
    FasterLink,
    /// The window is larger, or the round trip shorter, than described.
    LargerWindow,
}

/// One figure with all its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Which figure of its line.
    pub quantity: Quantity,
    /// The worst of the reasons; `Possible` without one.
    pub verdict: Verdict,
    /// For a rate: the lowest ceiling above it, or the highest when it exceeds all.
    pub ceiling: Option<Ceiling>,
    /// The figure as a share of that ceiling; absent if it is higher by more than the printed digits and two
    /// clocks allow.
    pub share: Option<CeilingShare>,
    /// Worst first.
    pub reasons: Vec<Reason>,
}

/// Results for one line: one entry for each of its figures, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The figures.
    pub judgements: Vec<Judgement>,
}

impl Judged {
    /// The worst result of its figures; `Possible` for a line without figures.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.judgements.iter().map(|one| one.verdict).max().unwrap_or(Verdict::Possible)
    }

    /// The result for a quantity.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<&Judgement> {
        self.judgements.iter().find(|one| one.quantity == quantity)
    }
}
