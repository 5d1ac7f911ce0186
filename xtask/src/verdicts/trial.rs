//! One run of one half of a case: a network, a server, a client, and the planted cause.

use std::path::PathBuf;
use std::time::Duration;

use linerate_model::Rule;

use super::answer::{NamedFinding, VerdictAnswer};
use super::case::{FindingPlace, Plant, PlantedAction, PlantedCase};
use crate::bench::listening_port;
use crate::process::{ChildProcess, Processes};
use linerate_sock::clock;

/// Timeout for a program to start, and for a client in addition to its test.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Fixed port of the server, as LAGs hash it.
const PORT: &str = "5990";

/// Common state of all trials.
pub(super) struct LabTrialContext {
    /// The program under test.
    pub(super) linerate: PathBuf,
    /// Folder for labs and archives.
    pub(super) folder: PathBuf,
    pub(super) processes: Processes,
}

/// A running network, removed on drop.
struct TrialLab<'a> {
    stage: &'a LabTrialContext,
    name: String,
    /// Folder for its state and archive, separate for each parallel trial.
    folder: PathBuf,
}

impl LabTrialContext {
    /// Plants the cause, measures, and removes everything.
    pub(super) fn run(
        &self,
        worker: usize,
        case: &PlantedCase,
        plant: &Plant,
        seed: u32,
    ) -> Result<VerdictAnswer, String> {
        let lab = TrialLab::up(self, worker, case, plant, seed)?;
        let by = plant.actions.iter().find_map(|deed| match deed {
            PlantedAction::Serve(by) => Some(*by),
            _ => None,
        });
        let program = self.linerate.display().to_string();
        let words = [by.unwrap_or_default(), &[program.as_str(), "serve", "-p", PORT, "--json"]].concat();
        let mut server = ChildProcess::start(&self.processes, &lab.exec(case.to, &words))?;
        server.find_line(CLIENT_TIMEOUT, listening_port)?;
        let mut background = Vec::new();
        for deed in plant.actions {
            background.extend(lab.begin(deed)?);
        }
        let head = ["test", case.to, "-p", PORT, "--upload", "--json"];
        let client =
            ChildProcess::start(&self.processes, &lab.on("a", &[&head[..], case.args, plant.args].concat()))?;
        let mut timed = TimedLabActions::of(plant.actions);
        let output = client.finish(CLIENT_TIMEOUT, |client| timed.act(&lab, client.id()))?;
        drop((background, server));
        timed.trouble.map_or(Ok(()), Err)?;
        let document =
            serde_json::from_slice(&output).map_err(|e| format!("the client printed no JSON: {e}"))?;
        let mut answer = VerdictAnswer::of(&document)?;
        answer.named = named(&answer.found, case).map(NamedFinding::Rule);
        Ok(answer)
    }
}

impl<'a> TrialLab<'a> {
    fn up(
        stage: &'a LabTrialContext,
        worker: usize,
        case: &PlantedCase,
        plant: &Plant,
        seed: u32,
    ) -> Result<Self, String> {
        let folder = stage.folder.join(worker.to_string());
        std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        // The guard exists before the lab, so that a failure removes what has been created.
        let lab = Self { stage, name: format!("verdicts-{}-{worker}", std::process::id()), folder };
        let seed = format!("seed={seed}");
        let mut words = vec!["up", case.topology, "--name", &lab.name, "--json"];
        for change in case.set.iter().chain(plant.set).copied().chain([seed.as_str()]) {
            words.extend(["--set", change]);
        }
        lab.done(&lab.lab(&words))?;
        Ok(lab)
    }

    /// `linerate lab` with arguments, on this lab's state.
    fn lab(&self, words: &[&str]) -> Vec<String> {
        let own = |key: &str, file: &str| format!("{key}={}", self.folder.join(file).display());
        // `env` is replaced by the command through exec.
        let head = ["env".to_owned(), own("LINERATE_RUN", "run"), own("LINERATE_ARCHIVE", "archive.sqlite")];
        let program = [self.stage.linerate.display().to_string(), "lab".to_owned()];
        head.into_iter().chain(program).chain(words.iter().map(|word| (*word).to_owned())).collect()
    }

    fn exec(&self, host: &str, words: &[&str]) -> Vec<String> {
        self.lab(&[&["exec", "--lab", self.name.as_str(), host, "--"], words].concat())
    }

    /// linerate on a host.
    fn on(&self, host: &str, words: &[&str]) -> Vec<String> {
        let program = self.stage.linerate.display().to_string();
        self.exec(host, &[&[program.as_str()], words].concat())
    }

    fn done(&self, command: &[String]) -> Result<(), String> {
        ChildProcess::start(&self.stage.processes, command)?.finish(CLIENT_TIMEOUT, |_| ()).map(drop)
    }

    /// Executes an action before the client starts; returns the programs that run during the test.
    fn begin(&self, deed: &PlantedAction) -> Result<Vec<ChildProcess>, String> {
        let processes = &self.stage.processes;
        match *deed {
            PlantedAction::Before(host, words) => self.done(&self.exec(host, words)).map(|()| Vec::new()),
            PlantedAction::Concurrent { from, to, args } => {
                let mut server =
                    ChildProcess::start(processes, &self.on(to, &["serve", "-p", "0", "--json"]))?;
                let port = server.find_line(CLIENT_TIMEOUT, listening_port)?.to_string();
                let head = ["test", to, "-p", &port, "--upload", "-q"];
                let client = ChildProcess::start(processes, &self.on(from, &[&head[..], args].concat()))?;
                processes.wait(Duration::from_millis(1500))?;
                Ok(vec![server, client])
            }
            PlantedAction::Spin { cpu, loops } => {
                let words = [
                    "nice",
                    "-n",
                    "-5",
                    "taskset",
                    "-c",
                    &cpu.to_string(),
                    "sh",
                    "-c",
                    "while :; do :; done",
                ];
                (0..loops).map(|_| ChildProcess::start(processes, &words.map(str::to_owned))).collect()
            }
            PlantedAction::Set { .. } | PlantedAction::Pause { .. } | PlantedAction::Serve(_) => {
                Ok(Vec::new())
            }
        }
    }
}

impl Drop for TrialLab<'_> {
    fn drop(&mut self) {
        // Not as a process of the task, which an interrupt would end. Fails if the lab is already down.
        let words = self.lab(&["down", "--all"]);
        let quiet = std::process::Stdio::null;
        let _ =
            std::process::Command::new(&words[0]).args(&words[1..]).stdout(quiet()).stderr(quiet()).status();
    }
}

/// Actions with a time.
struct TimedLabActions {
    start: linerate_sock::Mono,
    /// Times and actions; the last one is the next.
    left: Vec<(Duration, LabAction)>,
    trouble: Option<String>,
}

enum LabAction {
    Set(&'static str, &'static [&'static str]),
    Signal(&'static str),
}

impl TimedLabActions {
    fn of(actions: &'static [PlantedAction]) -> Self {
        let mut left = Vec::new();
        for deed in actions {
            match *deed {
                PlantedAction::Set { after, link, changes } => {
                    left.push((after, LabAction::Set(link, changes)))
                }
                PlantedAction::Pause { after, length } => {
                    left.push((after, LabAction::Signal("-STOP")));
                    left.push((after + length, LabAction::Signal("-CONT")));
                }
                _ => (),
            }
        }
        left.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
        Self { start: clock::now(), left, trouble: None }
    }

    /// Executes the actions that are due.
    fn act(&mut self, lab: &TrialLab<'_>, client: u32) {
        while self.left.last().is_some_and(|(after, _)| (self.start + *after).has_passed()) {
            let Some((_, act)) = self.left.pop() else { return };
            let command = match act {
                LabAction::Set(link, changes) => {
                    lab.lab(&[&["set", "--lab", &lab.name, link], changes].concat())
                }
                LabAction::Signal(signal) => vec!["kill".to_owned(), signal.to_owned(), client.to_string()],
            };
            self.trouble = lab.done(&command).err().or(self.trouble.take());
        }
    }
}

/// The name to evaluate: findings about disturbances by a busy machine come first, correctly, and are skipped
/// unless they were planted.
fn named(found: &[Rule], case: &PlantedCase) -> Option<Rule> {
    let planted = found.iter().find(|rule| **rule == case.rule);
    if let Some(rule) = planted.filter(|_| case.look == FindingPlace::Also || case.rule == Rule::Disturbed) {
        return Some(rule.clone());
    }
    let of_the_path = found.iter().find(|rule| ![Rule::Disturbed, Rule::Bufferbloat].contains(rule));
    of_the_path.or(found.first()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::case::PAIR;
    use super::*;

    fn answer_of(rules: &[Rule], case: &PlantedCase) -> Rule {
        let also: Vec<Value> =
            rules[1..].iter().map(|rule| json!({ "rule": rule, "cause": rule.cause() })).collect();
        let flow =
            json!({ "verdict": { "rule": rules[0], "cause": rules[0].cause(), "text": "so" }, "also": also });
        named(&VerdictAnswer::of(&json!({ "flows": [flow] })).unwrap().found, case).unwrap()
    }

    #[test]
    fn a_disturbed_measurement_is_passed_over_unless_it_was_planted() {
        let case = PlantedCase { rule: Rule::ReceiverWindow, ..PAIR };
        assert_eq!(answer_of(&[Rule::Disturbed, Rule::ReceiverWindow], &case), Rule::ReceiverWindow);
        assert_eq!(answer_of(&[Rule::Disturbed], &case), Rule::Disturbed);
        assert_eq!(
            answer_of(&[Rule::Disturbed, Rule::Bufferbloat], &case),
            Rule::Disturbed,
            "a rule that only adds is no verdict"
        );
        assert_eq!(answer_of(&[Rule::LinkFull, Rule::ReceiverWindow], &case), Rule::LinkFull);
        assert_eq!(
            answer_of(
                &[Rule::Disturbed, Rule::ReceiverWindow],
                &PlantedCase { rule: Rule::Disturbed, ..PAIR }
            ),
            Rule::Disturbed
        );
        assert_eq!(
            answer_of(&[Rule::LinkFull, Rule::Disturbed], &PlantedCase { rule: Rule::Disturbed, ..PAIR }),
            Rule::Disturbed
        );
    }

    #[test]
    fn a_rule_that_only_adds_is_looked_for_everywhere() {
        let case = PlantedCase { rule: Rule::Bufferbloat, look: FindingPlace::Also, ..PAIR };
        assert_eq!(answer_of(&[Rule::LinkFull, Rule::Bufferbloat], &case), Rule::Bufferbloat);
        assert_eq!(answer_of(&[Rule::LinkFull], &case), Rule::LinkFull);
        assert!(VerdictAnswer::of(&json!({ "flows": [{}] })).is_err());
    }

    #[test]
    fn deeds_wait_in_the_order_of_their_times() {
        let ms = Duration::from_millis;
        const ACTIONS: &[PlantedAction] = &[
            PlantedAction::Pause { after: Duration::from_millis(200), length: Duration::from_millis(300) },
            PlantedAction::Set { after: Duration::from_millis(400), link: "link.b", changes: &["loss=1"] },
        ];
        let timed = TimedLabActions::of(ACTIONS);
        let times: Vec<Duration> = timed.left.iter().map(|(after, _)| *after).collect();
        assert_eq!(times, [ms(500), ms(400), ms(200)]);
    }
}
