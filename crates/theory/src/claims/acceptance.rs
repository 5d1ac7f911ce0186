//! Whether a result shows that a new line keeps its rate: an acceptance rule with its criteria.

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_model::metrics::Side;

use super::{Context, Judged, Verdict};
use crate::format;

/// What a result must show, besides that no segment was retransmitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcceptanceRule {
    /// Its name.
    pub name: &'static str,
    /// Rate of the link, bit/s.
    pub link_bps: f64,
    /// Number of TCP connections.
    pub connections: u32,
    /// Shortest test, s.
    pub least_seconds: f64,
    /// Lowest payload per second, bit/s.
    pub least_bps: f64,
}

impl AcceptanceRule {
    /// One TCP connection moves 941 Mb/s over a gigabit link for 10 s, without a retransmit.
    ///
    /// # Source
    /// Acceptance rule of SANET, the Slovak academic network: 941.48 Mb/s is the payload of a full link at an MTU of
    /// 1500 with TCP timestamps.
    pub const GIGABIT: Self =
        Self { name: "gigabit", link_bps: 1e9, connections: 1, least_seconds: 10.0, least_bps: 941e6 };
    /// All rules.
    pub const ALL: [Self; 1] = [Self::GIGABIT];

    /// The rule with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name == name)
    }
}

/// Whether a result, or one criterion, is what a rule asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AcceptanceState {
    /// It is.
    Passed,
    /// The result does not say.
    Missing,
    /// It is not.
    Failed,
}

impl AcceptanceState {
    /// Its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

/// One requirement of a rule, and what the result says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptanceCriterion {
    /// What it is about: `link`, `connections`, `duration`, `retransmits`, `rate` or `possible`.
    pub name: &'static str,
    /// Whether it holds.
    pub state: AcceptanceState,
    /// The same as a sentence, with the remedy.
    pub text: String,
}

/// A result measured against a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// Failed if one criterion fails, otherwise missing if one is.
    pub state: AcceptanceState,
    /// Every criterion of the rule.
    pub criteria: Vec<AcceptanceCriterion>,
}

/// Measures a test against a rule. `judged` are the judgements of its lines: a result with an impossible figure fails,
/// and a doubtful one shows nothing yet.
///
/// Only lines of the whole test count. A rate is that of the receiver where there is one, and of the slower direction.
/// A rounded figure passes if its printed value does.
#[must_use]
pub fn accept(rule: &AcceptanceRule, test: &ForeignTest, judged: &[Judged], context: &Context) -> Acceptance {
    let all = context.with_test(test);
    let totals: Vec<&Claim> =
        test.claims.iter().filter(|claim| claim.scope == ClaimScope::Total && !claim.omitted).collect();
    let criteria = vec![
        link(rule, all.link_bps),
        // Typed figures say nothing about connections unless their number is typed too.
        connections(rule, all.udp, if context.from_file { all.streams } else { context.streams }),
        duration(rule, &totals),
        retransmits(&totals),
        rate(rule, &totals),
        possible(judged),
    ];
    let state = criteria.iter().map(|criterion| criterion.state).max().unwrap_or(AcceptanceState::Missing);
    Acceptance { state, criteria }
}

fn possible(judged: &[Judged]) -> AcceptanceCriterion {
    let (holds, text) = match judged.iter().map(Judged::verdict).max() {
        Some(Verdict::Impossible) => (Some(false), "A figure is impossible, so the result proves nothing."),
        Some(Verdict::Doubtful) => (None, "A figure is doubtful; repeat the test, or give what explains it."),
        _ => (Some(true), "Every figure is possible."),
    };
    criterion("possible", holds, text.to_owned())
}

fn criterion(name: &'static str, holds: Option<bool>, text: String) -> AcceptanceCriterion {
    let state = match holds {
        Some(true) => AcceptanceState::Passed,
        Some(false) => AcceptanceState::Failed,
        None => AcceptanceState::Missing,
    };
    AcceptanceCriterion { name, state, text }
}

fn link(rule: &AcceptanceRule, link_bps: Option<f64>) -> AcceptanceCriterion {
    let wanted = format::rate(rule.link_bps);
    let Some(found) = link_bps else {
        return criterion("link", None, format!("The rate of the link is not stated; it must be {wanted}."));
    };
    let holds = (found / rule.link_bps - 1.0).abs() < 1e-9;
    let text = match holds {
        true => format!("The link has {wanted}."),
        false => format!("The link has {}; the rule is for {wanted}.", format::rate(found)),
    };
    criterion("link", Some(holds), text)
}

fn connections(rule: &AcceptanceRule, udp: bool, streams: Option<u32>) -> AcceptanceCriterion {
    let wanted = rule.connections;
    let (holds, text) = match streams {
        _ if udp => (Some(false), "The test used UDP; repeat it with TCP.".to_owned()),
        None => (None, format!("The number of connections is not stated; it must be {wanted}.")),
        Some(1) if wanted == 1 => (Some(true), "One TCP connection.".to_owned()),
        Some(found) => {
            let text = format!("{found} TCP connections; repeat the test with {wanted}.");
            (Some(found == wanted), text)
        }
    };
    criterion("connections", holds, text)
}

fn duration(rule: &AcceptanceRule, totals: &[&Claim]) -> AcceptanceCriterion {
    let wanted = format::time(rule.least_seconds);
    let longest = figures(totals, Quantity::Seconds).map(|figure| figure.value).reduce(f64::max);
    let Some(found) = longest else {
        return criterion(
            "duration",
            None,
            format!("The duration is not given; it must be at least {wanted}."),
        );
    };
    let (holds, found) = (found >= rule.least_seconds, format::time(found));
    let text = match holds {
        true => format!("The test took {found}, at least {wanted}."),
        false => format!("The test took {found}; repeat it for at least {wanted}."),
    };
    criterion("duration", Some(holds), text)
}

fn retransmits(totals: &[&Claim]) -> AcceptanceCriterion {
    let most = figures(totals, Quantity::Retransmits).map(|figure| figure.value).reduce(f64::max);
    let Some(found) = most else {
        let text = "The number of retransmits is not given; iperf3 prints it in the sender's summary (Retr).";
        return criterion("retransmits", None, text.to_owned());
    };
    let holds = found == 0.0;
    let text = match holds {
        true => "No retransmit.".to_owned(),
        false => format!("Retransmits: {found:.0}; there may be none."),
    };
    criterion("retransmits", Some(holds), text)
}

fn rate(rule: &AcceptanceRule, totals: &[&Claim]) -> AcceptanceCriterion {
    let wanted = format::fine_rate(rule.least_bps);
    let directions = [None, Some(Direction::Upload), Some(Direction::Download)];
    let found = directions.iter().filter_map(|direction| best(totals, *direction));
    let Some(figure) = found.min_by(|a, b| a.value.total_cmp(&b.value)) else {
        return criterion("rate", None, format!("The rate is not given; it must be at least {wanted}."));
    };
    let found = format::fine_rate(figure.value);
    let (holds, text) = if figure.value >= rule.least_bps {
        (Some(true), format!("{found} of payload, at least {wanted}."))
    } else if figure.value + figure.step / 2.0 >= rule.least_bps {
        let text = format!("{found} has too few digits; it must be at least {wanted}.");
        (None, text)
    } else {
        (Some(false), format!("{found} of payload; at least {wanted} is needed."))
    };
    criterion("rate", holds, text)
}

/// The rate of a direction: that of all streams before that of one, and the receiver's before the sender's.
fn best<'t>(totals: &[&'t Claim], direction: Option<Direction>) -> Option<&'t Figure> {
    let rates = totals.iter().filter(|claim| claim.direction == direction);
    let rates = rates.filter_map(|claim| Some((*claim, claim.figure(Quantity::Bitrate)?)));
    rates
        .min_by_key(|(claim, _)| {
            let side = match claim.side {
                Some(Side::Receiver) => 0,
                None => 1,
                Some(_) => 2,
            };
            (claim.stream.is_some(), side)
        })
        .map(|(_, figure)| figure)
}

fn figures<'t>(totals: &[&'t Claim], quantity: Quantity) -> impl Iterator<Item = &'t Figure> {
    totals.iter().filter_map(move |claim| claim.figure(quantity))
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use crate::typed::{TypedFigure, TypedFigures};

    fn typed(rate: &str, duration: &str, retransmits: &str, streams: Option<u32>) -> Acceptance {
        let figures = TypedFigures {
            rate: TypedFigure::rate(rate).ok(),
            duration: TypedFigure::time(duration).ok(),
            retransmits: TypedFigure::count(retransmits).ok(),
            ..TypedFigures::default()
        };
        let context = Context { link_bps: Some(1e9), streams, ..Context::default() };
        let test = figures.test().unwrap();
        accept(&AcceptanceRule::GIGABIT, &test, &judge(&test, &context), &context)
    }

    fn with(found: &Acceptance, state: AcceptanceState) -> Vec<&'static str> {
        let same = found.criteria.iter().filter(|criterion| criterion.state == state);
        same.map(|criterion| criterion.name).collect()
    }

    #[test]
    fn a_full_gigabit_passes() {
        for rate in ["941M", "941.48M", "0.941G"] {
            let found = typed(rate, "10s", "0", Some(1));
            assert_eq!(
                (found.state, with(&found, AcceptanceState::Passed).len()),
                (AcceptanceState::Passed, 6),
                "{found:?}"
            );
        }
    }

    #[test]
    fn each_shortfall_fails_by_its_name() {
        for (found, name) in [
            (typed("938M", "10s", "0", Some(1)), "rate"),
            (typed("941M", "9.9s", "0", Some(1)), "duration"),
            (typed("941M", "10s", "3", Some(1)), "retransmits"),
            (typed("941M", "10s", "0", Some(4)), "connections"),
            (typed("1.1G", "10s", "0", Some(1)), "possible"),
        ] {
            assert_eq!(
                (found.state, with(&found, AcceptanceState::Failed)),
                (AcceptanceState::Failed, vec![name])
            );
        }
    }

    #[test]
    fn what_is_not_said_is_missing_and_not_passed() {
        let found = typed("941M", "", "", None);
        assert_eq!(found.state, AcceptanceState::Missing);
        assert_eq!(with(&found, AcceptanceState::Missing), ["connections", "duration", "retransmits"]);
        // Only with a larger MTU than the usual one, which nobody states.
        assert_eq!(with(&typed("966M", "10s", "0", Some(1)), AcceptanceState::Missing), ["possible"]);
        // Between 0.935 and 0.945 Gb/s.
        assert_eq!(with(&typed("0.94G", "10s", "0", Some(1)), AcceptanceState::Missing), ["rate"]);
    }
}
