//! A client's answer about the cause.

use std::fmt;

use linerate_model::{Cause, Rule};
use serde_json::Value;

/// The name that counts: a rule in the lab, a cause in the kernel world.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NamedFinding {
    Rule(Rule),
    Cause(Cause),
}

impl NamedFinding {
    /// Whether no rule explains the result.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Rule(Rule::Unexplained) | Self::Cause(Cause::Unknown))
    }
}

impl fmt::Display for NamedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Cause(cause) => cause.fmt(f),
        }
    }
}

/// A verdict and the other findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct VerdictAnswer {
    /// The name that is evaluated: a rule, or a cause.
    pub(super) named: Option<NamedFinding>,
    /// All rules found, the verdict first.
    pub(super) found: Vec<Rule>,
    /// Their causes.
    pub(super) causes: Vec<Cause>,
    /// The verdict as text.
    pub(super) text: String,
    /// Confidence of each finding.
    pub(super) confidences: Vec<String>,
    /// Text and remedy of each finding.
    pub(super) words: Vec<String>,
    /// Whether the measurement reports that it was disturbed.
    pub(super) disturbed: bool,
    /// Payload received, bit/s.
    pub(super) bitrate_bps: Option<f64>,
    /// Caveats of the result.
    pub(super) caveats: Vec<String>,
}

impl VerdictAnswer {
    /// Parses a result document; `named` is still empty.
    pub(super) fn of(document: &Value) -> Result<Self, String> {
        let flow = &document["flows"][0];
        flow["verdict"].as_object().ok_or("the result has no verdict")?;
        let findings: Vec<&Value> =
            std::iter::once(&flow["verdict"]).chain(flow["also"].as_array().into_iter().flatten()).collect();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let all = |key: &str| findings.iter().map(|finding| text(finding, key)).collect::<Vec<_>>();
        let kinds = |caveats: &Value| {
            let kind = |caveat: &Value| caveat["kind"].as_str().map(str::to_owned);
            caveats.as_array().into_iter().flatten().filter_map(kind).collect::<Vec<_>>()
        };
        let rules = findings.iter().map(|finding| serde_json::from_value(finding["rule"].clone()));
        let causes = findings.iter().map(|finding| serde_json::from_value(finding["cause"].clone()));
        let unknown = |e: serde_json::Error| format!("a finding of the result: {e}");
        let found: Vec<Rule> = rules.collect::<Result<_, _>>().map_err(unknown)?;
        let caveats = [kinds(&document["caveats"]), kinds(&flow["caveats"])].concat();
        // An emulated network that was late is not the one that was planted.
        let late = caveats.iter().any(|caveat| caveat == "lab_late");
        Ok(Self {
            named: None,
            disturbed: late || found.contains(&Rule::Disturbed),
            text: text(&flow["verdict"], "text"),
            causes: causes.collect::<Result<_, _>>().map_err(unknown)?,
            confidences: all("confidence"),
            words: findings.iter().map(|f| format!("{} {}", text(f, "text"), text(f, "remedy"))).collect(),
            bitrate_bps: flow["receiver"]["bitrate_bps"].as_f64(),
            caveats,
            found,
        })
    }

    /// The name that is counted, in a table.
    pub(super) fn name(&self) -> String {
        self.named.as_ref().map(NamedFinding::to_string).unwrap_or_default()
    }
}
