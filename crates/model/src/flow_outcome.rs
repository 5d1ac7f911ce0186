//! What a flow came to: the result in a list of finished tests.

use linerate_units::Bitrate;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::finding::Finding;
use crate::foreign_text::ForeignText;
use crate::record::{FlowRecord, RunRecord};

/// The result of a flow, without what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowOutcome {
    /// Name of the flow, such as `download`.
    pub name: ForeignText,
    /// Goodput at the receiver; absent if not measured.
    #[serde(default, rename = "bitrate_bps", skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<Bitrate>,
    /// Requests that were answered per second, in a test that makes transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions_per_second: Option<f64>,
    /// What limited it; absent if it was not judged, or for a cause that this version does not know.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Finding>,
}

/// A verdict, or nothing where a newer version has one that this one does not know: the rate is worth as much.
fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Finding>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum AnyVerdict {
        Known(Box<Finding>),
        Unknown(IgnoredAny),
    }
    Ok(match AnyVerdict::deserialize(from)? {
        AnyVerdict::Known(verdict) => Some(*verdict),
        AnyVerdict::Unknown(_) => None,
    })
}

impl FlowOutcome {
    /// The result of a flow.
    #[must_use]
    pub fn of(flow: &FlowRecord) -> Self {
        let transactions = flow.sender.as_ref().and_then(|tally| tally.transactions.as_ref());
        Self {
            name: flow.plan.name.clone(),
            bitrate: flow.bitrate(),
            transactions_per_second: transactions.map(|made| made.per_second),
            verdict: flow.verdict.clone(),
        }
    }

    /// The results of all flows of a run.
    #[must_use]
    pub fn all(record: &RunRecord) -> Vec<Self> {
        record.flows.iter().map(Self::of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_verdict_of_a_newer_version_does_not_make_the_rate_unreadable() {
        let parse = |cause: &str| {
            let verdict = json!({"cause": cause, "rule": "V77", "confidence": "probable", "text": "so", "evidence": {"k": 1.5}});
            let flow = json!({"name": "upload", "bitrate_bps": 94e6, "verdict": verdict});
            serde_json::from_value::<FlowOutcome>(flow).unwrap()
        };
        assert_eq!(parse("link").verdict.unwrap().text.as_str(), "so");
        let newer = parse("aliens");
        assert_eq!((newer.bitrate, newer.verdict), (Bitrate::from_bps(94e6), None));
    }
}
