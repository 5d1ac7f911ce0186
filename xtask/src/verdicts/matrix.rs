//! The matrix of planted causes and answers.

use std::collections::BTreeMap;

use linerate_model::Rule;
use serde_json::{Value, json};

use super::answer::{NamedFinding, VerdictAnswer};
use super::case::PlantedCase;

/// Required shares of the trials of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bars {
    /// At least this share of all trials must name a correct cause.
    pub(super) right_overall: f64,
    /// At least this share of each row must name a correct cause.
    pub(super) right_each: f64,
    /// At most this share of all trials may name a wrong cause; unknown is not wrong.
    pub(super) wrong_overall: f64,
    /// Whether no control may name a wrong cause.
    pub(super) controls_are_innocent: bool,
}

/// Evaluates the answer of an undisturbed measurement.
pub(super) type TrialJudge = Box<dyn Fn(&VerdictAnswer) -> TrialGrade + Send>;

/// One half of a case, or a situation, over its seeds.
pub(super) struct MatrixRow {
    /// Prefix of each line: a rule of the decision table, or a situation's name.
    pub(super) label: &'static str,
    /// Short description of the planted cause.
    pub(super) name: &'static str,
    /// Whether the cause was planted; otherwise this is the control.
    pub(super) planted: bool,
    /// Correct answers.
    pub(super) right: Vec<NamedFinding>,
    /// Evaluates an answer.
    pub(super) judge: TrialJudge,
    pub(super) trials: Vec<MatrixTrial>,
}

/// One run, or why it failed.
pub(super) struct MatrixTrial {
    pub(super) seed: u32,
    pub(super) answer: Result<VerdictAnswer, String>,
    /// One-minute load average of the machine before it.
    pub(super) load: f64,
    /// Number of repetitions because the measurement reported that it was disturbed.
    pub(super) repeats: u32,
    pub(super) seconds: f64,
}

/// Evaluation of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialGrade {
    /// A correct cause was named.
    Right,
    /// No cause was named.
    Unknown,
    /// A wrong cause was named.
    Wrong,
    /// The measurement was disturbed, or failed.
    Lost,
}

impl MatrixRow {
    /// One half of a case; its rules are correct.
    pub(super) fn new(case: &'static PlantedCase, planted: bool) -> Self {
        let plant = if planted { &case.planted } else { &case.control };
        Self::of(&case.rule, case.name, planted, plant.right)
    }

    fn of(rule: &'static Rule, name: &'static str, planted: bool, right: &[Rule]) -> Self {
        let right: Vec<NamedFinding> = right.iter().cloned().map(NamedFinding::Rule).collect();
        let among = right.clone();
        let judge: TrialJudge = Box::new(move |answer| named_among(answer.named.as_ref(), &among));
        let label = rule.name();
        Self { label, name, planted, right, judge, trials: Vec::new() }
    }

    pub(super) fn fate(&self, trial: &MatrixTrial) -> TrialGrade {
        let Ok(answer) = &trial.answer else { return TrialGrade::Lost };
        match (self.judge)(answer) {
            TrialGrade::Right => TrialGrade::Right,
            // An answer from a measurement that reports a disturbance does not count as a name.
            _ if answer.disturbed => TrialGrade::Lost,
            fate => fate,
        }
    }

    fn count(&self, fate: TrialGrade) -> usize {
        self.trials.iter().filter(|trial| self.fate(trial) == fate).count()
    }

    fn right_share(&self) -> f64 {
        self.count(TrialGrade::Right) as f64 / self.trials.len().max(1) as f64
    }

    fn right_names(&self) -> Vec<String> {
        self.right.iter().map(NamedFinding::to_string).collect()
    }

    fn names(&self) -> BTreeMap<String, usize> {
        let mut names = BTreeMap::new();
        for trial in &self.trials {
            let name = trial.answer.as_ref().map_or_else(|_| "failed".to_owned(), VerdictAnswer::name);
            *names.entry(name).or_default() += 1;
        }
        names
    }

    /// One line of the table.
    pub(super) fn line(&self) -> String {
        let names: Vec<String> = self.names().iter().map(|(name, count)| format!("{name} {count}")).collect();
        let half = if self.planted { "planted" } else { "control" };
        format!(
            "{}  {half}  {:>5.1} %  {:<24} {} ({})",
            self.label,
            100.0 * self.right_share(),
            names.join(", "),
            self.name,
            self.right_names().join(" or "),
        )
    }
    /// A line for each trial that was not correct.
    pub(super) fn doubts(&self) -> impl Iterator<Item = String> {
        let doubtful = self.trials.iter().filter(|trial| self.fate(trial) != TrialGrade::Right);
        doubtful.map(|trial| {
            let answer = trial.answer.as_ref().map_or_else(Clone::clone, |answer| {
                let found: Vec<&str> = answer.found.iter().map(Rule::name).collect();
                let (found, caveats) = (found.join(" "), answer.caveats.join(" "));
                let rate =
                    answer.bitrate_bps.map_or_else(String::new, |bps| format!("{:.1} Mb/s, ", bps / 1e6));
                format!("{rate}{found}: {} [{caveats}]", answer.text)
            });
            format!("       seed {}, load {:.1}: {answer}", trial.seed, trial.load)
        })
    }
}

/// Whether the name is correct, unknown or wrong.
pub(super) fn named_among(named: Option<&NamedFinding>, right: &[NamedFinding]) -> TrialGrade {
    match named {
        Some(named) if right.contains(named) => TrialGrade::Right,
        Some(named) if named.is_unknown() => TrialGrade::Unknown,
        _ => TrialGrade::Wrong,
    }
}

/// All rows.
pub(super) struct VerdictMatrix {
    pub(super) rows: Vec<MatrixRow>,
    pub(super) bars: Bars,
}

impl VerdictMatrix {
    fn all(&self) -> usize {
        self.rows.iter().map(|row| row.trials.len()).sum()
    }

    fn share(&self, fate: TrialGrade) -> f64 {
        let count: usize = self.rows.iter().map(|row| row.count(fate)).sum();
        count as f64 / self.all().max(1) as f64
    }

    /// Without the trials whose measurements report that they were disturbed, and the rows that have none then.
    ///
    /// # Errors
    /// Too few are left to say anything.
    pub(super) fn undisturbed(mut self) -> Result<(Self, Vec<String>), String> {
        let all = self.all();
        for row in &mut self.rows {
            let lost: Vec<bool> =
                row.trials.iter().map(|trial| row.fate(trial) == TrialGrade::Lost).collect();
            let mut lost = lost.into_iter();
            // A measurement that failed stays.
            row.trials.retain(|trial| lost.next() != Some(true) || trial.answer.is_err());
        }
        let count = |rows: &[MatrixRow], planted| rows.iter().filter(|row| row.planted == planted).count();
        let before = [true, false].map(|planted| count(&self.rows, planted));
        let gone = self.rows.extract_if(.., |row| row.trials.is_empty());
        let gone = gone.map(|row| format!("{} {}", row.label, row.name)).collect();
        let after = [true, false].map(|planted| count(&self.rows, planted));
        let left = self.all();
        if 2 * left < all || before.iter().zip(after).any(|(before, after)| 2 * after < *before) {
            return Err(format!(
                "only {left} of {all} measurements were not disturbed; the machine is too busy"
            ));
        }
        Ok((self, gone))
    }

    /// The missed bars.
    pub(super) fn misses(&self) -> Vec<String> {
        let mut misses = Vec::new();
        let (right, wrong) = (self.share(TrialGrade::Right), self.share(TrialGrade::Wrong));
        let bars = self.bars;
        if right < bars.right_overall {
            misses.push(format!(
                "{:.1} % right overall, not {:.0} %",
                100.0 * right,
                100.0 * bars.right_overall
            ));
        }
        if wrong > bars.wrong_overall {
            misses.push(format!(
                "{:.1} % named a wrong cause, more than {:.0} %",
                100.0 * wrong,
                100.0 * bars.wrong_overall
            ));
        }
        for row in self.rows.iter().filter(|row| row.right_share() < bars.right_each) {
            misses.push(format!("{} below {:.0} %", row.line(), 100.0 * bars.right_each));
        }
        let accused = self.rows.iter().filter(|row| !row.planted && row.count(TrialGrade::Wrong) > 0);
        misses.extend(
            accused.filter(|_| bars.controls_are_innocent).map(|row| format!("accused: {}", row.line())),
        );
        misses
    }

    /// The table of planted and named causes, and the shares.
    pub(super) fn text(&self) -> String {
        let mut columns: Vec<String> = self.rows.iter().flat_map(|row| row.names().into_keys()).collect();
        columns.sort_unstable();
        columns.dedup();
        let width = columns.iter().map(|name| name.len() + 1).max().unwrap_or(0).max(7);
        let left = self.rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
        let mut text = format!("\nplanted against named\n{:left$}          ", "");
        text.extend(columns.iter().map(|name| format!("{name:>width$}")));
        for row in &self.rows {
            let names = row.names();
            let half = if row.planted { "" } else { "control" };
            text.push_str(&format!("\n{:left$} {half:<9}", row.label));
            text.extend(columns.iter().map(|name| {
                format!("{:>width$}", names.get(name).map_or_else(|| ".".to_owned(), ToString::to_string))
            }));
        }
        let loads = self.rows.iter().flat_map(|row| &row.trials).map(|trial| trial.load);
        let repeats: u32 = self.rows.iter().flat_map(|row| &row.trials).map(|trial| trial.repeats).sum();
        text.push_str(&format!(
            "\n\n{} trials: {:.1} % right, {:.1} % unknown, {:.1} % wrong, {:.1} % lost; {repeats} repeats of disturbed ones; load up to {:.1}\n",
            self.all(),
            100.0 * self.share(TrialGrade::Right),
            100.0 * self.share(TrialGrade::Unknown),
            100.0 * self.share(TrialGrade::Wrong),
            100.0 * self.share(TrialGrade::Lost),
            loads.fold(0.0, f64::max),
        ));
        text
    }

    /// The whole matrix as JSON.
    pub(super) fn document(&self) -> Value {
        let trial = |trial: &MatrixTrial| {
            let answer = match &trial.answer {
                Ok(answer) => json!({
                    "named": answer.name(), "found": answer.found, "text": answer.text,
                    "bitrate_bps": answer.bitrate_bps, "caveats": answer.caveats,
                }),
                Err(why) => json!({ "failed": why }),
            };
            let (seed, load, repeats) = (trial.seed, trial.load, trial.repeats);
            json!({ "seed": seed, "load": load, "repeats": repeats, "seconds": trial.seconds, "answer": answer })
        };
        let row = |row: &MatrixRow| {
            json!({
                "rule": row.label, "name": row.name, "planted": row.planted, "right": row.right_names(),
                "right_share": row.right_share(), "trials": row.trials.iter().map(trial).collect::<Vec<_>>(),
            })
        };
        json!({
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "right_share": self.share(TrialGrade::Right),
            "unknown_share": self.share(TrialGrade::Unknown),
            "wrong_share": self.share(TrialGrade::Wrong),
            "lost_share": self.share(TrialGrade::Lost),
            "misses": self.misses(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIRED: Bars =
        Bars { right_overall: 0.95, right_each: 0.8, wrong_overall: 0.02, controls_are_innocent: false };

    fn row(right: &[Rule], named: &[Rule]) -> MatrixRow {
        let trial = |named: &Rule| {
            let answer = VerdictAnswer {
                named: Some(NamedFinding::Rule(named.clone())),
                found: vec![named.clone()],
                text: String::new(),
                disturbed: *named == Rule::Disturbed,
                bitrate_bps: None,
                caveats: Vec::new(),
                ..VerdictAnswer::default()
            };
            MatrixTrial { seed: 1, answer: Ok(answer), load: 0.5, repeats: 0, seconds: 1.0 }
        };
        let mut row = MatrixRow::of(&Rule::ReceiverWindow, "x", true, right);
        row.trials = named.iter().map(trial).collect();
        row
    }

    #[test]
    fn unknown_is_not_right_and_not_wrong() {
        let rows = vec![row(
            &[Rule::ReceiverWindow, Rule::SendBuffer],
            &[Rule::ReceiverWindow, Rule::SendBuffer, Rule::Unexplained, Rule::RandomLoss, Rule::Disturbed],
        )];
        let matrix = VerdictMatrix { rows, bars: REQUIRED };
        let shares = [TrialGrade::Right, TrialGrade::Unknown, TrialGrade::Wrong, TrialGrade::Lost]
            .map(|fate| matrix.share(fate));
        assert_eq!(shares, [0.4, 0.2, 0.2, 0.2]);
        assert_eq!(matrix.misses().len(), 3);
    }

    #[test]
    fn a_wrong_name_from_a_disturbed_measurement_is_lost_and_a_right_one_right() {
        let mut lost = row(&[Rule::ReceiverWindow], &[Rule::ReceiverWindow, Rule::RandomLoss]);
        for trial in &mut lost.trials {
            trial.answer.as_mut().unwrap().disturbed = true;
        }
        assert_eq!(
            (lost.count(TrialGrade::Right), lost.count(TrialGrade::Lost), lost.count(TrialGrade::Wrong)),
            (1, 1, 0)
        );
    }

    #[test]
    fn bars_are_reached_exactly_at_their_values() {
        let nineteen = || vec![Rule::ReceiverWindow; 19];
        let matrix = |last: Rule| VerdictMatrix {
            rows: vec![row(&[Rule::ReceiverWindow], &[nineteen(), vec![last]].concat())],
            bars: REQUIRED,
        };
        assert!(matrix(Rule::Unexplained).misses().is_empty(), "19 of 20 and nothing wrong");
        assert_eq!(matrix(Rule::RandomLoss).misses().len(), 1, "one of 20 wrong is too much");
        let failed = MatrixTrial { seed: 1, answer: Err("no".into()), load: 0.0, repeats: 0, seconds: 0.0 };
        let mut lost = row(&[Rule::ReceiverWindow], &vec![Rule::ReceiverWindow; 3]);
        lost.trials.push(failed);
        assert_eq!(
            VerdictMatrix { rows: vec![lost], bars: REQUIRED }.misses().len(),
            2,
            "what was not measured is not right"
        );
    }

    #[test]
    fn a_sample_passes_over_what_was_disturbed_and_over_nothing_else() {
        let disturbed = |count: usize| {
            let mut all = row(
                &[Rule::ReceiverWindow],
                &[vec![Rule::ReceiverWindow; 2], vec![Rule::RandomLoss; count]].concat(),
            );
            for trial in &mut all.trials[2..] {
                trial.answer.as_mut().unwrap().disturbed = true;
            }
            VerdictMatrix { rows: vec![all], bars: REQUIRED }
        };
        assert!(!disturbed(2).misses().is_empty());
        assert!(disturbed(2).undisturbed().unwrap().0.misses().is_empty());
        assert!(disturbed(3).undisturbed().err().unwrap().contains("only 2 of 5"));
        let wrong =
            VerdictMatrix { rows: vec![row(&[Rule::ReceiverWindow], &[Rule::RandomLoss])], bars: REQUIRED };
        assert!(!wrong.undisturbed().unwrap().0.misses().is_empty());
        let failed = MatrixTrial { seed: 1, answer: Err("no".into()), load: 0.0, repeats: 0, seconds: 0.0 };
        let mut lost = row(&[Rule::ReceiverWindow], &[Rule::ReceiverWindow]);
        lost.trials.push(failed);
        let lost = VerdictMatrix { rows: vec![lost], bars: REQUIRED };
        assert!(!lost.undisturbed().unwrap().0.misses().is_empty(), "a failure is no disturbance");
    }

    #[test]
    fn a_wrong_name_in_a_control_is_an_accusation_where_that_counts() {
        let mut control = row(&[Rule::LinkFull], &vec![Rule::LinkFull; 99]);
        control.trials.extend(row(&[], &[Rule::RandomLoss]).trials);
        control.planted = false;
        let innocent = Bars { controls_are_innocent: true, ..REQUIRED };
        let matrix = VerdictMatrix { rows: vec![control], bars: innocent };
        assert_eq!(matrix.misses().len(), 1, "one of a hundred");
        assert!(VerdictMatrix { bars: REQUIRED, ..matrix }.misses().is_empty());
    }

    #[test]
    fn the_table_has_a_column_for_each_name() {
        let text = VerdictMatrix {
            rows: vec![row(
                &[Rule::ReceiverWindow],
                &[Rule::ReceiverWindow, Rule::ReceiverWindow, Rule::Unexplained],
            )],
            bars: REQUIRED,
        }
        .text();
        assert!(text.contains("    V04    V99\nV04                2      1\n"), "{text}");
        assert!(text.contains("3 trials: 66.7 % right, 33.3 % unknown, 0.0 % wrong"), "{text}");
    }
}
