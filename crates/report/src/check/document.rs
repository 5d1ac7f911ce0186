//! The answer as one JSON document.

use std::collections::BTreeMap;

use linerate_model::import::{Claim, ClaimScope, Figure, Unread};
use linerate_model::metrics::Side;
use linerate_model::{Ceiling, CeilingShare};
use linerate_theory::claims::{
    Acceptance, AcceptanceCriterion, Context, Judged, Judgement, PossibleCause, Reason, Verdict,
    name_and_unit,
};
use serde::Serialize;

use super::{CheckReport, JudgedReading, JudgedTest, Judgements, VerdictCounts};

/// Version of the document.
const SCHEMA: &str = "linerate.check/1";

/// Whether published figures are physically possible.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckDocument {
    /// `linerate.check/1`.
    schema: &'static str,
    /// Version of linerate.
    linerate: &'static str,
    /// The worst verdict of all figures: `possible`, `at_ceiling`, `doubtful` or `impossible`; absent without figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    /// Number of figures per verdict.
    counts: CountsOf,
    /// What was stated about the path on the command line.
    path: PathOf,
    /// The typed figures, then each file.
    inputs: Vec<InputOf>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CountsOf {
    possible: u64,
    at_ceiling: u64,
    doubtful: u64,
    impossible: u64,
}

/// Properties of the path; absent ones were not stated.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PathOf {
    #[serde(skip_serializing_if = "Option::is_none")]
    link_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mss_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance_m: Option<f64>,
}

/// A file, or the command line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InputOf {
    /// The file as typed, `standard input` or `command line`.
    name: String,
    /// Why nothing could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The results in order.
    readings: Vec<ReadingOf>,
}

/// The result of one program.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReadingOf {
    /// The program; absent for typed figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Parts that could not be read.
    unread: Vec<UnreadOf>,
    /// Its tests.
    tests: Vec<TestOf>,
}

/// A part that could not be read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnreadOf {
    /// Line, from 1.
    line: u32,
    /// Column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    /// The reason.
    why: String,
}

/// One test.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TestOf {
    /// Start time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// The other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The error with which it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Its lines.
    lines: Vec<LineOf>,
    /// Whether it is what the given acceptance rule asks for; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptance: Option<AcceptanceOf>,
}

/// A test measured against an acceptance rule.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AcceptanceOf {
    /// `passed`; `failed` if one criterion fails; `missing` if none fails and the result says nothing about one.
    verdict: &'static str,
    /// Every criterion of the rule.
    criteria: Vec<CriterionOf>,
}

/// What a rule asks for, and what the result says about it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CriterionOf {
    /// `link`, `connections`, `duration`, `retransmits`, `rate` or `possible`.
    name: &'static str,
    /// `passed`, `missing` or `failed`.
    verdict: &'static str,
    /// The same as a sentence, with the remedy.
    text: String,
}

impl AcceptanceOf {
    fn new(found: &Acceptance) -> Self {
        let criteria = found.criteria.iter().map(|AcceptanceCriterion { name, state, text }| CriterionOf {
            name,
            verdict: state.name(),
            text: text.clone(),
        });
        Self { verdict: found.state.name(), criteria: criteria.collect() }
    }
}

/// One line with its figures.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LineOf {
    /// Line of the file, from 1; absent for typed figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// The line itself, or the path of the JSON value.
    quote: String,
    /// `interval`, `total` or `size`.
    scope: &'static str,
    /// Number of the stream in the file; absent for the sum of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<u32>,
    /// `upload` or `download`.
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    /// The end that counted: `sender` or `receiver`.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    /// Start, relative to the start of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ns: Option<u64>,
    /// End, relative to the start of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_ns: Option<u64>,
    /// The figures.
    figures: Vec<FigureOf>,
}

/// One figure, judged.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FigureOf {
    /// Quantity: `bitrate`, `bytes`, `seconds`, `packet_rate`, `cwnd` and others.
    quantity: &'static str,
    /// The unit of value and step.
    unit: &'static str,
    /// As printed.
    printed: String,
    /// Value; absent if it is not a finite number.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    /// Value of one unit in the last printed digit; 0 if all digits are printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<f64>,
    /// `possible`, `at_ceiling`, `doubtful` or `impossible`.
    verdict: String,
    /// For a rate: the lowest ceiling that it does not exceed, otherwise the highest ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<Ceiling>,
    /// The figure divided by that ceiling, at most 1; absent if it exceeds the ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<CeilingShare>,
    /// The reasons, the worst first.
    reasons: Vec<ReasonOf>,
}

/// Result of one comparison.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReasonOf {
    /// The comparison: `link`, `window`, `bytes_over_time` and others.
    check: String,
    /// Verdict of this comparison alone.
    verdict: String,
    /// The result as a sentence.
    text: String,
    /// The compared numbers; names end with the unit.
    evidence: BTreeMap<&'static str, f64>,
    /// Possible causes of the figure, the likeliest first.
    causes: Vec<CauseOf>,
}

/// A possible cause of a figure.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CauseOf {
    /// `sender_timing`, `binary_prefix`, `bits_for_bytes`, `larger_mtu` and others.
    kind: String,
    /// The calculation by which the cause explains the figure.
    text: String,
    /// What to do about it.
    remedy: &'static str,
    /// The numbers of the text; names end with the unit.
    evidence: BTreeMap<&'static str, f64>,
}

impl CheckDocument {
    /// The answer as a document.
    #[must_use]
    pub fn of(answer: &CheckReport) -> Self {
        let VerdictCounts { possible, at_ceiling, doubtful, impossible } = answer.counts();
        Self {
            schema: SCHEMA,
            linerate: env!("CARGO_PKG_VERSION"),
            verdict: answer.lines().map(|(_, line)| line.verdict()).max().map(json_name),
            counts: CountsOf { possible, at_ceiling, doubtful, impossible },
            path: PathOf::of(&answer.context),
            inputs: answer.inputs.iter().map(InputOf::of).collect(),
        }
    }
}

/// The JSON Schema of the document.
#[cfg(feature = "schema")]
#[must_use]
pub fn check_schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<CheckDocument>()
        .to_value()
}

/// The name of a value in JSON.
fn json_name(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn ns(seconds: f64) -> Option<u64> {
    linerate_units::Span::from_secs_f64(seconds).map(linerate_units::Span::as_ns)
}

impl PathOf {
    fn of(context: &Context) -> Self {
        Self {
            link_bps: context.link_bps,
            mtu_bytes: context.mtu_bytes,
            mss_bytes: context.mss_bytes,
            rtt_ns: context.rtt_s.and_then(ns),
            window_bytes: context.window_bytes,
            loss_ratio: context.loss,
            streams: context.streams,
            distance_m: context.distance_m,
        }
    }
}

impl InputOf {
    fn of(input: &Judgements) -> Self {
        Self {
            name: input.name.clone(),
            error: input.failure.clone(),
            readings: input.readings.iter().map(ReadingOf::of).collect(),
        }
    }
}

impl ReadingOf {
    fn of(reading: &JudgedReading) -> Self {
        let unread =
            |piece: &Unread| UnreadOf { line: piece.line, column: piece.column, why: piece.why.to_string() };
        Self {
            tool: Some(reading.tool.clone()).filter(|tool| !tool.is_empty()),
            version: reading.version.clone(),
            unread: reading.unread.iter().map(unread).collect(),
            tests: reading.tests.iter().map(TestOf::of).collect(),
        }
    }
}

impl TestOf {
    fn of(judged: &JudgedTest) -> Self {
        Self {
            started_at: judged.test.started_at.clone().map(Into::into),
            target: judged.test.target.clone().map(Into::into),
            error: judged.test.error.clone().map(Into::into),
            lines: judged.lines().map(|(claim, line)| LineOf::of(claim, line)).collect(),
            acceptance: judged.acceptance.as_ref().map(AcceptanceOf::new),
        }
    }
}

impl LineOf {
    fn of(claim: &Claim, line: &Judged) -> Self {
        let figures = claim.figures.iter().zip(&line.judgements);
        Self {
            line: Some(claim.line).filter(|line| *line > 0),
            quote: claim.quote.to_string(),
            scope: match claim.scope {
                ClaimScope::Interval => "interval",
                ClaimScope::Total => "total",
                ClaimScope::Size => "size",
            },
            stream: claim.stream,
            direction: claim.direction.map(linerate_model::Direction::name),
            side: claim.side.map(|side| if side == Side::Sender { "sender" } else { "receiver" }),
            start_ns: claim.start.map(linerate_units::Span::as_ns),
            end_ns: claim.end.map(linerate_units::Span::as_ns),
            figures: figures.map(|(figure, judgement)| FigureOf::of(figure, judgement)).collect(),
        }
    }
}

impl FigureOf {
    fn of(figure: &Figure, judgement: &Judgement) -> Self {
        let (quantity, unit) = name_and_unit(figure.quantity);
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            quantity,
            unit,
            printed: figure.printed.to_string(),
            value: finite(figure.value),
            step: finite(figure.step),
            verdict: verdict(judgement.verdict),
            ceiling: judgement.ceiling.clone(),
            share: judgement.share,
            reasons: judgement.reasons.iter().map(ReasonOf::of).collect(),
        }
    }
}

fn verdict(verdict: Verdict) -> String {
    json_name(verdict)
}

impl ReasonOf {
    fn of(reason: &Reason) -> Self {
        Self {
            check: json_name(reason.check),
            verdict: verdict(reason.verdict),
            text: reason.text.clone(),
            evidence: reason.evidence.clone(),
            causes: reason.causes.iter().map(CauseOf::of).collect(),
        }
    }
}

impl CauseOf {
    fn of(cause: &PossibleCause) -> Self {
        let (text, evidence) = (cause.text.clone(), cause.evidence.clone());
        Self { kind: json_name(cause.kind), text, remedy: cause.remedy, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_files, of_rate};
    use super::*;

    #[test]
    fn a_document_holds_every_figure_with_its_numbers() {
        let document = serde_json::to_value(CheckDocument::of(&of_files(987e6))).unwrap();
        assert_eq!(document["schema"], "linerate.check/1");
        assert_eq!(document["verdict"], "impossible");
        assert_eq!(document["counts"]["impossible"], 1);
        let reading = &document["inputs"][0]["readings"][0];
        assert_eq!(reading["tool"], "iperf3");
        assert_eq!(reading["unread"][0]["line"], 6);
        let total = &reading["tests"][0]["lines"][2];
        assert_eq!((total["line"].as_u64(), total["side"].as_str()), (Some(7), Some("receiver")));
        let rate = &total["figures"][1];
        assert_eq!((rate["quantity"].as_str(), rate["unit"].as_str()), (Some("bitrate"), Some("bit/s")));
        let ceiling = rate["reasons"][0]["evidence"]["ceiling_bps"].as_f64().unwrap();
        assert!((ceiling - 1e9 * 1460.0 / 1538.0).abs() < 1.0);
        assert_eq!(rate["reasons"][0]["causes"][0]["kind"], "binary_prefix");
        assert_eq!(document["inputs"][1]["error"], "no result of a known program");
    }

    #[test]
    fn what_was_not_stated_is_absent() {
        let document = serde_json::to_value(CheckDocument::of(&of_rate(941e6, 1e6, "941M"))).unwrap();
        assert_eq!(document["path"], serde_json::json!({}));
        assert!(document["inputs"][0]["readings"][0].get("tool").is_none());
        assert!(document["inputs"][0]["readings"][0]["tests"][0]["lines"][0].get("line").is_none());
    }
}
