//! What is said about a figure.

use std::collections::BTreeMap;

use linerate_model::import::Quantity;
use linerate_model::{Ceiling, CeilingShare};
use serde::Serialize;

/// What a figure is, from the best to the worst that can be said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing known speaks against it.
    Possible,
    /// It is a ceiling that is known, to the digits printed.
    AtCeiling,
    /// It may be true, but not of what it seems to be about, or not as exactly as it is printed.
    Doubtful,
    /// It cannot be true of the path described, or contradicts its own line.
    Impossible,
}

impl Verdict {
    /// The word for it.
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

/// Numbers behind a sentence, by name; the unit ends the name (`_bps`, `_bytes`, `_s`, `_per_second`, `_ratio`).
pub type Numbers = BTreeMap<&'static str, f64>;

/// What one comparison says about a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// Which comparison.
    pub check: Check,
    /// What it concludes, alone.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub text: String,
    /// The numbers it compared.
    pub evidence: Numbers,
    /// What may have made the figure, the likeliest first; only where it exceeds something.
    pub causes: Vec<Cause>,
}

impl Reason {
    /// A conclusion without numbers and causes.
    pub(super) fn new(check: Check, verdict: Verdict, text: String) -> Self {
        Self { check, verdict, text, evidence: Numbers::new(), causes: Vec::new() }
    }

    /// The same with a number; one that is no ordinary number is left out.
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
    /// Whether it is a number that the quantity can have.
    Domain,
    /// Rate against the link.
    Link,
    /// Rate against a standard rate of which nobody spoke.
    KnownCeiling,
    /// Rate against window over round trip.
    Window,
    /// Rate against congestion window over round trip.
    CongestionWindow,
    /// Rate against what loss leaves.
    Loss,
    /// Packets against the link, alone or with the rate.
    PacketRate,
    /// Bytes over time against the rate on the same line.
    BytesOverTime,
    /// Packets lost against packets and the ratio on the same line.
    LossBooks,
    /// Calls, their rate, their time and their bytes.
    Calls,
    /// Streams against their sum.
    SumOfStreams,
    /// Intervals against the whole.
    SumOfIntervals,
    /// What arrived against what was sent.
    ReceivedOverSent,
    /// Segments sent again against segments sent.
    Retransmits,
    /// Clock and length of the test.
    Clock,
    /// Round trip against the speed of light.
    Distance,
    /// Segment size against the packet that carries it.
    SegmentSize,
}

/// What may have made a figure that cannot be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// Which.
    pub kind: CauseKind,
    /// The arithmetic that makes it fit, in a sentence.
    pub text: String,
    /// What to do about it.
    pub remedy: &'static str,
    /// The numbers of the sentence.
    pub evidence: Numbers,
}

/// Kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The clock of the sender stopped while bytes still waited in buffers.
    SenderTiming,
    /// A power of 1024 was taken for one of 1000, or applied twice.
    BinaryPrefix,
    /// Bits for bytes.
    BitsForBytes,
    /// Headers were counted as payload.
    HeadersCounted,
    /// The link is a shaper that counts less than what is on the wire.
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

/// One figure with everything that is said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Which figure of its line.
    pub quantity: Quantity,
    /// The worst of the reasons; possible without one.
    pub verdict: Verdict,
    /// For a rate: the lowest ceiling above it, or the highest when it exceeds all.
    pub ceiling: Option<Ceiling>,
    /// The figure as a share of that ceiling; absent where it is above, by more than the digits printed and two clocks.
    pub share: Option<CeilingShare>,
    /// Worst first.
    pub reasons: Vec<Reason>,
}

/// A line of a result, judged: one entry for each of its figures, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The figures.
    pub judgements: Vec<Judgement>,
}

impl Judged {
    /// The worst of its figures; possible for a line without figures.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.judgements.iter().map(|one| one.verdict).max().unwrap_or(Verdict::Possible)
    }

    /// What is said about a quantity.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<&Judgement> {
        self.judgements.iter().find(|one| one.quantity == quantity)
    }
}
