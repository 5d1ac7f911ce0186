//! Who was planted against who was named.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::case::Case;
use super::trial::Answer;

/// At least this share of all trials must name a right cause.
const RIGHT_OVERALL: f64 = 0.95;
/// And this share of each row.
const RIGHT_EACH: f64 = 0.80;
/// Fewer than this share of all trials may name a wrong one; unknown is not wrong.
const WRONG_OVERALL: f64 = 0.02;

/// What says that no rule explains the figure.
const UNKNOWN: &str = "V99";

/// One half of a case over its seeds.
pub(super) struct Row {
    pub(super) rule: &'static str,
    pub(super) name: &'static str,
    /// Whether the cause was planted; otherwise it is the control.
    pub(super) planted: bool,
    pub(super) right: &'static [&'static str],
    pub(super) trials: Vec<Trial>,
}

/// One run, or why there was none.
pub(super) struct Trial {
    pub(super) seed: u32,
    pub(super) answer: Result<Answer, String>,
    /// Load average of the machine before it, over a minute.
    pub(super) load: f64,
    /// How often it was repeated because the measurement said of itself that it was disturbed.
    pub(super) repeats: u32,
    pub(super) seconds: f64,
}

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Right,
    Unknown,
    Wrong,
    /// The measurement was disturbed, or there was none.
    Lost,
}

impl Row {
    pub(super) fn new(case: &Case, planted: bool) -> Self {
        let plant = if planted { &case.planted } else { &case.control };
        Self { rule: case.rule, name: case.name, planted, right: plant.right, trials: Vec::new() }
    }

    fn fate(&self, trial: &Trial) -> Fate {
        let Ok(answer) = &trial.answer else { return Fate::Lost };
        match answer.named.as_str() {
            named if self.right.contains(&named) => Fate::Right,
            UNKNOWN if !answer.disturbed => Fate::Unknown,
            // What a run calls a disturbed measurement itself is no name for a cause.
            _ if answer.disturbed => Fate::Lost,
            _ => Fate::Wrong,
        }
    }

    fn count(&self, fate: Fate) -> usize {
        self.trials.iter().filter(|trial| self.fate(trial) == fate).count()
    }

    fn right_share(&self) -> f64 {
        self.count(Fate::Right) as f64 / self.trials.len().max(1) as f64
    }

    fn names(&self) -> BTreeMap<&str, usize> {
        let mut names = BTreeMap::new();
        for trial in &self.trials {
            let name = trial.answer.as_ref().map_or("failed", |answer| answer.named.as_str());
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
            self.rule,
            100.0 * self.right_share(),
            names.join(", "),
            self.name,
            self.right.join(" or "),
        )
    }
    /// A line for each trial that was not right.
    pub(super) fn doubts(&self) -> impl Iterator<Item = String> {
        let doubtful = self.trials.iter().filter(|trial| self.fate(trial) != Fate::Right);
        doubtful.map(|trial| {
            let said = trial.answer.as_ref().map_or_else(Clone::clone, |answer| {
                let (found, caveats) = (answer.found.join(" "), answer.caveats.join(" "));
                let rate =
                    answer.bitrate_bps.map_or_else(String::new, |bps| format!("{:.1} Mb/s, ", bps / 1e6));
                format!("{rate}{found}: {} [{caveats}]", answer.text)
            });
            format!("       seed {}, load {:.1}: {said}", trial.seed, trial.load)
        })
    }
}

/// All rows.
pub(super) struct Matrix {
    pub(super) rows: Vec<Row>,
}

impl Matrix {
    fn all(&self) -> usize {
        self.rows.iter().map(|row| row.trials.len()).sum()
    }

    fn share(&self, fate: Fate) -> f64 {
        let count: usize = self.rows.iter().map(|row| row.count(fate)).sum();
        count as f64 / self.all().max(1) as f64
    }

    /// What stays below a bar.
    pub(super) fn misses(&self) -> Vec<String> {
        let mut misses = Vec::new();
        let (right, wrong) = (self.share(Fate::Right), self.share(Fate::Wrong));
        if right < RIGHT_OVERALL {
            misses.push(format!("{:.1} % right overall, not {:.0} %", 100.0 * right, 100.0 * RIGHT_OVERALL));
        }
        if wrong >= WRONG_OVERALL {
            misses.push(format!(
                "{:.1} % named a wrong cause, not below {:.0} %",
                100.0 * wrong,
                100.0 * WRONG_OVERALL
            ));
        }
        for row in self.rows.iter().filter(|row| row.right_share() < RIGHT_EACH) {
            misses.push(format!("{} below {:.0} %", row.line(), 100.0 * RIGHT_EACH));
        }
        misses
    }

    /// The table of planted against named causes, and the shares.
    pub(super) fn text(&self) -> String {
        let mut columns: Vec<&str> = self.rows.iter().flat_map(|row| row.names().into_keys()).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut text = String::from("\nplanted against named\n             ");
        text.extend(columns.iter().map(|name| format!("{name:>7}")));
        for row in &self.rows {
            let names = row.names();
            let half = if row.planted { "" } else { "control" };
            text.push_str(&format!("\n{} {half:<9}", row.rule));
            text.extend(columns.iter().map(|name| {
                format!("{:>7}", names.get(name).map_or_else(|| ".".to_owned(), ToString::to_string))
            }));
        }
        let loads = self.rows.iter().flat_map(|row| &row.trials).map(|trial| trial.load);
        let repeats: u32 = self.rows.iter().flat_map(|row| &row.trials).map(|trial| trial.repeats).sum();
        text.push_str(&format!(
            "\n\n{} trials: {:.1} % right, {:.1} % unknown, {:.1} % wrong, {:.1} % lost; {repeats} repeats of disturbed ones; load up to {:.1}\n",
            self.all(),
            100.0 * self.share(Fate::Right),
            100.0 * self.share(Fate::Unknown),
            100.0 * self.share(Fate::Wrong),
            100.0 * self.share(Fate::Lost),
            loads.fold(0.0, f64::max),
        ));
        text
    }

    /// Everything, for programs.
    pub(super) fn document(&self) -> Value {
        let trial = |trial: &Trial| {
            let said = match &trial.answer {
                Ok(answer) => json!({
                    "named": answer.named, "found": answer.found, "text": answer.text,
                    "bitrate_bps": answer.bitrate_bps, "caveats": answer.caveats,
                }),
                Err(why) => json!({ "failed": why }),
            };
            let (seed, load, repeats) = (trial.seed, trial.load, trial.repeats);
            json!({ "seed": seed, "load": load, "repeats": repeats, "seconds": trial.seconds, "answer": said })
        };
        let row = |row: &Row| {
            json!({
                "rule": row.rule, "name": row.name, "planted": row.planted, "right": row.right,
                "right_share": row.right_share(), "trials": row.trials.iter().map(trial).collect::<Vec<_>>(),
            })
        };
        json!({
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "right_share": self.share(Fate::Right),
            "unknown_share": self.share(Fate::Unknown),
            "wrong_share": self.share(Fate::Wrong),
            "lost_share": self.share(Fate::Lost),
            "misses": self.misses(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(right: &'static [&'static str], named: &[&str]) -> Row {
        let trial = |named: &&str| {
            let answer = Answer {
                named: (*named).to_owned(),
                found: vec![(*named).to_owned()],
                text: String::new(),
                disturbed: *named == "V26",
                bitrate_bps: None,
                caveats: Vec::new(),
            };
            Trial { seed: 1, answer: Ok(answer), load: 0.5, repeats: 0, seconds: 1.0 }
        };
        Row { rule: "V04", name: "x", planted: true, right, trials: named.iter().map(trial).collect() }
    }

    #[test]
    fn unknown_is_not_right_and_not_wrong() {
        let rows = vec![row(&["V04", "V06"], &["V04", "V06", "V99", "V20", "V26"])];
        let matrix = Matrix { rows };
        let shares = [Fate::Right, Fate::Unknown, Fate::Wrong, Fate::Lost].map(|fate| matrix.share(fate));
        assert_eq!(shares, [0.4, 0.2, 0.2, 0.2]);
        assert_eq!(matrix.misses().len(), 3);
    }

    #[test]
    fn a_wrong_name_from_a_disturbed_measurement_is_lost_and_a_right_one_right() {
        let mut lost = row(&["V04"], &["V04", "V20"]);
        for trial in &mut lost.trials {
            trial.answer.as_mut().unwrap().disturbed = true;
        }
        assert_eq!((lost.count(Fate::Right), lost.count(Fate::Lost), lost.count(Fate::Wrong)), (1, 1, 0));
    }

    #[test]
    fn bars_are_reached_exactly_at_their_values() {
        let twenty = ["V04"; 19];
        let matrix =
            |last: &'static str| Matrix { rows: vec![row(&["V04"], &[&twenty[..], &[last]].concat())] };
        assert!(matrix("V99").misses().is_empty(), "19 of 20 and nothing wrong");
        assert_eq!(matrix("V20").misses().len(), 1, "one of 20 wrong is too much");
        let failed = Trial { seed: 1, answer: Err("no".into()), load: 0.0, repeats: 0, seconds: 0.0 };
        let mut lost = row(&["V04"], &["V04"; 3]);
        lost.trials.push(failed);
        assert_eq!(Matrix { rows: vec![lost] }.misses().len(), 2, "what was not measured is not right");
    }

    #[test]
    fn the_table_has_a_column_for_each_name() {
        let text = Matrix { rows: vec![row(&["V04"], &["V04", "V04", "V99"])] }.text();
        assert!(text.contains("    V04    V99\nV04                2      1\n"), "{text}");
        assert!(text.contains("3 trials: 66.7 % right, 33.3 % unknown, 0.0 % wrong"), "{text}");
    }
}
