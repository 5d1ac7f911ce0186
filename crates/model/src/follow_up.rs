//! Follow-ups: questions answered by further runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence_key::EvidenceKey;
use crate::foreign_text::ForeignText;

/// Which further runs to make when a test has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Investigation {
    /// Find what the verdict leaves open
    Open,
    /// Count reverse-direction packets for reads of 1 KiB to 1 MiB
    Reads,
}

/// One question about a flow, and the answer from further runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUp {
    /// The question: `policing`, `pacing`, `ports`, `sizes` or `reads`.
    pub question: ForeignText,
    /// Why it was asked, for the user.
    pub because: ForeignText,
    /// The runs made for it, in order.
    pub runs: Vec<ForeignText>,
    /// The answer, for the user, with the relevant numbers.
    pub answer: ForeignText,
    /// The numbers; each name carries its unit (`_bps`, `_bytes`, `_ns`) or is a plain ratio.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::evidence_key::map_schema"))]
    pub evidence: BTreeMap<EvidenceKey, f64>,
}
