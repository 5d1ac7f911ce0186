//! The document of `linerate check`: figures of files and typed ones, judged with the theory.

mod document;
mod text;

use linerate_model::import::{Claim, ForeignResult, ForeignTest, Unread};
use linerate_theory::claims::{
    Acceptance, AcceptanceRule, AcceptanceState, Context, Judged, Judgement, Verdict, accept, judge,
};

pub use document::CheckDocument;
#[cfg(feature = "schema")]
pub use document::check_schema;
pub use text::text;

/// Name of this program in imported results.
const OWN_PROGRAM: &str = "linerate";

/// A file and what was read from it.
#[derive(Debug)]
pub struct CheckInput {
    /// As typed; `standard input` for `-`.
    pub name: String,
    /// Why nothing could be read.
    pub failure: Option<String>,
    /// Its results.
    pub readings: Vec<ForeignResult>,
}

/// All given figures, judged.
#[derive(Debug)]
pub struct CheckReport {
    /// The path as stated.
    pub context: Context,
    /// The typed figures, then each file.
    pub inputs: Vec<Judgements>,
}

/// One file, or the typed figures.
#[derive(Debug)]
pub struct Judgements {
    /// The file as typed, `standard input` or `command line`.
    pub name: String,
    /// Why nothing could be read.
    pub failure: Option<String>,
    /// Its results in order.
    pub readings: Vec<JudgedReading>,
}

/// One result of one program.
#[derive(Debug)]
pub struct JudgedReading {
    /// Empty for typed figures.
    pub tool: String,
    /// Version of the program, if it says so.
    pub version: Option<String>,
    /// Parts that could not be read.
    pub unread: Vec<Unread>,
    /// Its tests in order.
    pub tests: Vec<JudgedTest>,
}

/// One test.
#[derive(Debug)]
pub struct JudgedTest {
    /// What it printed.
    pub test: ForeignTest,
    /// One judgement per line.
    pub lines: Vec<Judged>,
    /// Whether it is what an acceptance rule asks for, if there is one.
    pub acceptance: Option<Acceptance>,
}

/// Number of figures per verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    /// Nothing known contradicts them.
    pub possible: u64,
    /// Equal to a known ceiling.
    pub at_ceiling: u64,
    /// True at most for something else than they appear to describe.
    pub doubtful: u64,
    /// Impossible on the path described.
    pub impossible: u64,
}

impl VerdictCounts {
    fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Possible => &mut self.possible,
            Verdict::AtCeiling => &mut self.at_ceiling,
            Verdict::Doubtful => &mut self.doubtful,
            Verdict::Impossible => &mut self.impossible,
        } += 1;
    }

    /// Number of all figures.
    #[must_use]
    pub fn all(self) -> u64 {
        self.possible + self.at_ceiling + self.doubtful + self.impossible
    }
}

impl CheckReport {
    /// Judges the typed figures, then each file.
    #[must_use]
    pub fn to(typed: Option<ForeignTest>, inputs: Vec<CheckInput>, context: &Context) -> Self {
        let typed = typed.map(|test| Judgements {
            name: "command line".to_owned(),
            failure: None,
            readings: vec![judged(ForeignResult { tests: vec![test], ..ForeignResult::default() }, context)],
        });
        let files = inputs.into_iter().map(|CheckInput { name, failure, readings }| {
            let readings = readings.into_iter().map(|reading| judged(reading, context)).collect();
            Judgements { name, failure, readings }
        });
        Self { context: context.clone(), inputs: typed.into_iter().chain(files).collect() }
    }

    /// The same, with every test measured against a rule.
    #[must_use]
    pub fn accepted_by(mut self, rule: &AcceptanceRule) -> Self {
        for reading in self.inputs.iter_mut().flat_map(|input| &mut input.readings) {
            let context = context_of(&reading.tool, &self.context);
            for JudgedTest { test, lines, acceptance } in &mut reading.tests {
                *acceptance = Some(accept(rule, test, lines, &context));
            }
        }
        self
    }

    /// Whether every test passes the rule that it was measured against, as far as there is one.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        let tests = self.inputs.iter().flat_map(|input| &input.readings).flat_map(|reading| &reading.tests);
        let mut found = tests.filter_map(|test| test.acceptance.as_ref());
        found.all(|acceptance| acceptance.state == AcceptanceState::Passed)
    }

    /// Files from which nothing could be read, with the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inputs.iter().filter_map(|input| Some((input.name.as_str(), input.failure.as_deref()?)))
    }

    /// Every line with its judgement.
    pub fn lines(&self) -> impl Iterator<Item = (&Claim, &Judged)> {
        let tests = self.inputs.iter().flat_map(|input| &input.readings).flat_map(|reading| &reading.tests);
        tests.flat_map(JudgedTest::lines)
    }

    fn figures(&self) -> impl Iterator<Item = &Judgement> {
        self.lines().flat_map(|(_, line)| &line.judgements)
    }

    /// Number of figures per verdict.
    #[must_use]
    pub fn counts(&self) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        self.figures().for_each(|figure| counts.add(figure.verdict));
        counts
    }
}

impl JudgedTest {
    /// Every line with its judgement.
    pub fn lines(&self) -> impl Iterator<Item = (&Claim, &Judged)> {
        self.test.claims.iter().zip(&self.lines)
    }
}

/// The stated path, and what the program is known for.
fn context_of(tool: &str, context: &Context) -> Context {
    Context {
        // Only our rates exclude the bytes that arrived before the clock started.
        first_read_left_out: tool == OWN_PROGRAM,
        from_file: !tool.is_empty(),
        ..context.clone()
    }
}

fn judged(reading: ForeignResult, context: &Context) -> JudgedReading {
    let context = context_of(&reading.tool, context);
    let tests = reading.tests.into_iter().map(|test| {
        let lines = judge(&test, &context);
        JudgedTest { test, lines, acceptance: None }
    });
    JudgedReading {
        tool: reading.tool.into(),
        version: reading.version.map(Into::into),
        unread: reading.unread,
        tests: tests.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::import::{ClaimScope, Figure, Quantity};
    use linerate_model::metrics::Side;

    /// A result of iperf3 as its importer returns it: two intervals and a total above the rate of gigabit
    /// Ethernet.
    pub(super) fn reading(rate_bps: f64) -> ForeignResult {
        let figure = |quantity, value: f64, step: f64, printed: &str| Figure {
            quantity,
            value,
            step,
            printed: printed.into(),
        };
        let line = |number: u32, scope, begin: u64, end: u64, rate: f64| Claim {
            line: number,
            quote: format!("[  5]   {begin}.00-{end}.00   sec  {:.0} Mbits/sec", rate / 1e6).into(),
            scope,
            stream: Some(5),
            side: Some(Side::Receiver),
            start: Some(linerate_units::Span::from_secs(begin)),
            end: Some(linerate_units::Span::from_secs(end)),
            figures: vec![
                figure(Quantity::Seconds, (end - begin) as f64, 0.01, "sec"),
                figure(Quantity::Bitrate, rate, 1e6, &format!("{:.0} Mbits/sec", rate / 1e6)),
            ],
            ..Claim::default()
        };
        let claims = vec![
            line(4, ClaimScope::Interval, 0, 1, 930e6),
            line(5, ClaimScope::Interval, 1, 2, 931e6),
            line(7, ClaimScope::Total, 0, 10, rate_bps),
        ];
        let unread = Unread { line: 6, column: Some(12), why: "a number was expected, not '9,41'".into() };
        ForeignResult {
            tool: "iperf3".into(),
            version: Some("3.12".into()),
            tests: vec![ForeignTest { claims, ..ForeignTest::default() }],
            unread: vec![unread],
        }
    }

    /// The answer for that result and a file of unknown format.
    pub(super) fn of_files(rate_bps: f64) -> CheckReport {
        let inputs = vec![
            CheckInput { name: "run.txt".to_owned(), failure: None, readings: vec![reading(rate_bps)] },
            CheckInput {
                name: "cat.jpg".to_owned(),
                failure: Some("no result of a known program".to_owned()),
                readings: Vec::new(),
            },
        ];
        let context = Context { link_bps: Some(1e9), mtu_bytes: Some(1500.0), ..Context::default() };
        CheckReport::to(None, inputs, &context)
    }

    /// The answer for one typed rate.
    pub(super) fn of_rate(rate_bps: f64, step: f64, printed: &str) -> CheckReport {
        let figure = Figure { quantity: Quantity::Bitrate, value: rate_bps, step, printed: printed.into() };
        let claim = Claim { scope: ClaimScope::Total, figures: vec![figure], ..Claim::default() };
        let test = ForeignTest { claims: vec![claim], ..ForeignTest::default() };
        CheckReport::to(Some(test), Vec::new(), &Context::default())
    }

    #[test]
    fn one_unknown_file_does_not_stop_the_others() {
        let answer = of_files(941e6);
        assert_eq!(answer.failures().collect::<Vec<_>>(), [("cat.jpg", "no result of a known program")]);
        assert_eq!(answer.counts(), VerdictCounts { possible: 5, at_ceiling: 1, ..VerdictCounts::default() });
        assert_eq!(of_files(987e6).counts().impossible, 1);
    }
}
