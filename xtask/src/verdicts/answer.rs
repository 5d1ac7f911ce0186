//! A client's answer about the cause.

use serde_json::Value;

/// A verdict and the other findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Answer {
    /// The name that is evaluated: a rule, or a cause.
    pub(super) named: String,
    /// All rules found, the verdict first.
    pub(super) found: Vec<String>,
    /// Their causes.
    pub(super) causes: Vec<String>,
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

impl Answer {
    /// Parses a result document; `named` is still empty.
    pub(super) fn of(document: &Value) -> Result<Self, String> {
        let flow = &document["flows"][0];
        flow["verdict"]["rule"].as_str().ok_or("the result has no verdict")?;
        let findings: Vec<&Value> =
            std::iter::once(&flow["verdict"]).chain(flow["also"].as_array().into_iter().flatten()).collect();
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let all = |key: &str| findings.iter().map(|finding| text(finding, key)).collect::<Vec<_>>();
        let kinds = |caveats: &Value| {
            let kind = |caveat: &Value| caveat["kind"].as_str().map(str::to_owned);
            caveats.as_array().into_iter().flatten().filter_map(kind).collect::<Vec<_>>()
        };
        let found = all("rule");
        Ok(Self {
            named: String::new(),
            disturbed: found.iter().any(|rule| rule == "V26"),
            text: text(&flow["verdict"], "text"),
            causes: all("cause"),
            confidences: all("confidence"),
            words: findings.iter().map(|f| format!("{} {}", text(f, "text"), text(f, "remedy"))).collect(),
            bitrate_bps: flow["receiver"]["bitrate_bps"].as_f64(),
            caveats: [kinds(&document["caveats"]), kinds(&flow["caveats"])].concat(),
            found,
        })
    }
}
