//! Questions that further runs answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// One question about a flow, and what further runs answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Inquiry"))]
pub struct FollowUp {
    /// Which question: `policing`, `pacing`, `ports`, `sizes` or `reads`.
    pub question: ForeignText,
    /// Why it was asked, for a person.
    pub because: ForeignText,
    /// The runs that were made for it, in their order.
    pub runs: Vec<ForeignText>,
    /// What they answer, for a person, with the numbers in it.
    pub answer: ForeignText,
    /// The numbers; each name carries its unit (`_bps`, `_bytes`, `_ns`) or is a plain ratio.
    pub evidence: BTreeMap<ForeignText, f64>,
}
