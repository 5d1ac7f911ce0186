//! Published claims: `fixtures/published-claims.json` has each with its verdict and the arithmetic of the
//! numbers.
use std::collections::BTreeMap;

use linerate_model::CeilingShare;
use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_theory::claims::{Context, Judgement, Verdict, judge, name_and_unit};
use linerate_units::Span;
use serde::Deserialize;

mod arithmetic;

/// A published claim.
#[derive(Deserialize)]
struct PublishedClaim {
    /// Where it was published.
    source: String,
    claim: String,
    context: ClaimPath,
    lines: Vec<ClaimLine>,
    /// The verdict for figures of the last line.
    verdict: BTreeMap<String, String>,
    /// Its rate divided by the ceiling.
    share: Option<String>,
    /// Sums by figure and name; `cause.name` is a number of a cause.
    #[serde(default)]
    evidence: BTreeMap<String, BTreeMap<String, String>>,
    /// Causes that must be named, by figure.
    #[serde(default)]
    causes: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct ClaimPath {
    link_bps: Option<f64>,
    mtu_bytes: Option<f64>,
    rtt_s: Option<f64>,
    window_bytes: Option<f64>,
    loss: Option<f64>,
    distance_m: Option<f64>,
    streams: Option<u32>,
    udp: bool,
    datagram_bytes: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimLine {
    scope: Option<String>,
    side: Option<String>,
    stream: Option<u32>,
    start: Option<f64>,
    end: Option<f64>,
    /// Value and step.
    figures: BTreeMap<String, [f64; 2]>,
}

const QUANTITIES: [Quantity; 16] = [
    Quantity::Bytes,
    Quantity::Seconds,
    Quantity::Bitrate,
    Quantity::Packets,
    Quantity::PacketRate,
    Quantity::Lost,
    Quantity::LossRatio,
    Quantity::Retransmits,
    Quantity::CongestionWindow,
    Quantity::RoundTrip,
    Quantity::Calls,
    Quantity::CallRate,
    Quantity::CallTime,
    Quantity::MessageSize,
    Quantity::Mss,
    Quantity::Mtu,
];

fn quantity(name: &str) -> Quantity {
    QUANTITIES.into_iter().find(|one| name_and_unit(*one).0 == name).unwrap_or_else(|| panic!("{name}"))
}

fn claim(line: &ClaimLine) -> Claim {
    let span = |seconds: f64| Span::from_secs_f64(seconds).unwrap();
    let figure = |(name, [value, step]): (&String, &[f64; 2])| Figure {
        quantity: quantity(name),
        value: *value,
        step: *step,
        printed: name.clone().into(),
    };
    Claim {
        scope: if line.scope.as_deref() == Some("interval") {
            ClaimScope::Interval
        } else {
            ClaimScope::Total
        },
        side: line.side.as_deref().map(|side| if side == "sender" { Side::Sender } else { Side::Receiver }),
        stream: line.stream,
        start: line.start.map(span),
        end: line.end.map(span),
        figures: line.figures.iter().map(figure).collect(),
        ..Claim::default()
    }
}

fn context(path: &ClaimPath) -> Context {
    Context {
        link_bps: path.link_bps,
        mtu_bytes: path.mtu_bytes,
        rtt_s: path.rtt_s,
        window_bytes: path.window_bytes,
        loss: path.loss,
        distance_m: path.distance_m,
        streams: path.streams,
        udp: path.udp,
        datagram_bytes: path.datagram_bytes,
        ..Context::default()
    }
}

fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

/// A number by its name, from the reasons or, after a dot, from a cause.
fn number(judgement: &Judgement, name: &str) -> Option<f64> {
    if let Some((kind, name)) = name.split_once('.') {
        let causes = judgement.reasons.iter().flat_map(|reason| &reason.causes);
        return causes
            .filter(|cause| word(cause.kind) == kind)
            .find_map(|cause| cause.evidence.get(name).copied());
    }
    judgement.reasons.iter().find_map(|reason| reason.evidence.get(name).copied())
}

fn close(found: Option<f64>, sum: &str, at: &str) {
    let (found, want) = (found.unwrap_or(f64::NAN), arithmetic::value(sum));
    // Figures are the middle of the range that their digits allow.
    assert!((found / want - 1.0).abs() < 1e-4, "{at}: {found}, not {want} = {sum}");
}

#[test]
fn what_cannot_be_is_not_possible_in_a_file_either() {
    let rows: Vec<PublishedClaim> =
        serde_json::from_str(include_str!("../../../../fixtures/published-claims.json")).unwrap();
    let (mut caught, mut doubted) = (0, 0);
    for row in &rows {
        let claims = row.lines.iter().map(claim).collect();
        let test = ForeignTest { claims, ..ForeignTest::default() };
        let judged = judge(&test, &Context { from_file: true, ..context(&row.context) });
        for name in row.verdict.iter().filter(|(_, verdict)| *verdict == "impossible").map(|(name, _)| name) {
            let found = judged.last().unwrap().of(quantity(name)).unwrap();
            assert!(found.verdict >= Verdict::Doubtful, "{}: {found:#?}", row.claim);
            caught += usize::from(found.verdict == Verdict::Impossible);
            doubted += usize::from(found.verdict == Verdict::Doubtful);
        }
    }
    // Rates that a shaper lets through or that a sender's buffers may hold are only doubtful.
    assert!(caught >= 15 && caught > doubted, "{caught} impossible, {doubted} doubtful");
}

#[test]
fn published_claims_get_the_verdict_that_the_arithmetic_gives() {
    let rows: Vec<PublishedClaim> =
        serde_json::from_str(include_str!("../../../../fixtures/published-claims.json")).unwrap();
    assert!(rows.len() > 80);
    let mut wrong = Vec::new();
    for row in &rows {
        let claims = row.lines.iter().map(claim).collect();
        let test = ForeignTest { claims, ..ForeignTest::default() };
        let judged = judge(&test, &context(&row.context));
        let last = judged.last().unwrap();
        for (name, verdict) in &row.verdict {
            let found = last.of(quantity(name)).unwrap();
            if word(found.verdict) != *verdict {
                wrong.push(format!("{}, {}: {name} is {found:#?}, not {verdict}", row.source, row.claim));
            }
        }
        if !wrong.is_empty() {
            continue;
        }
        for (name, numbers) in &row.evidence {
            let found = last.of(quantity(name)).unwrap();
            for (number_name, sum) in numbers {
                close(
                    number(found, number_name),
                    sum,
                    &format!("{}: {number_name} of {found:#?}", row.claim),
                );
            }
        }
        for (name, causes) in &row.causes {
            let reasons = last.of(quantity(name)).unwrap().reasons.iter();
            let found: Vec<String> =
                reasons.flat_map(|reason| &reason.causes).map(|cause| word(cause.kind)).collect();
            let all = causes.iter().all(|cause| found.contains(cause));
            assert!(all, "{}: {found:?} lacks one of {causes:?}", row.claim);
        }
        if let Some(sum) = &row.share {
            let rate = last.judgements.iter().find_map(|one| one.share).map(CeilingShare::get);
            close(rate, sum, &row.claim);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
