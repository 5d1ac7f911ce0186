//! One run of a situation, and the evaluation of its answer.

use std::path::PathBuf;
use std::time::Duration;

use linerate_model::{Cause, Rule};
use linerate_sock::{Mono, clock};

use super::super::answer::{NamedFinding, VerdictAnswer};
use super::super::matrix::TrialGrade;
use super::network::{CLIENT_ADDRESS, KernelNetwork, SERVER_ADDRESS};
use super::situation::{Means, PathHost, Situation};
use crate::bench::listening_port;
use crate::process::{ChildProcess, Processes};

/// Timeout for a program to start, and for a client in addition to its test.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for the cross traffic to reach its rate.
const NEIGHBOUR_LEAD: Duration = Duration::from_millis(1500);

/// Common state of all trials.
pub(super) struct KernelTrialContext {
    /// The program under test.
    pub(super) linerate: PathBuf,
    /// Folder for archives.
    pub(super) folder: PathBuf,
    /// Folder for result documents and counters, if they are kept.
    pub(super) keep: Option<PathBuf>,
    pub(super) processes: Processes,
}

impl KernelTrialContext {
    /// Plants the cause, measures, and removes everything.
    pub(super) fn run(
        &self,
        worker: usize,
        situation: &Situation,
        seed: u32,
    ) -> Result<VerdictAnswer, String> {
        let network = KernelNetwork::make(worker, situation, seed)?;
        if !network.is_reachable() {
            return Err("the path was not made".to_owned());
        }
        let mut server =
            self.start(&network, PathHost::B, &self.linerate(worker, &["serve", "-p", "0", "--json"]))?;
        let port = server.find_line(CLIENT_TIMEOUT, listening_port)?.to_string();
        let background = self.background_programs(&network, situation)?;
        let head = ["test", SERVER_ADDRESS, "-p", &port, "--upload", "--json"];
        // More interval rows in kept documents; the sampling interval is the same without them.
        let closely: &[&str] = if self.keep.is_some() { &["-i", "0.1"] } else { &[] };
        let words = self.linerate(worker, &[&head[..], closely, situation.args].concat());
        let client = self.start(&network, PathHost::A, &words)?;
        let mut timed = TimedKernelActions::of(situation);
        let output = client.finish(CLIENT_TIMEOUT, |client| timed.act(&network, client.id()))?;
        drop((background, server));
        timed.trouble.map_or(Ok(()), Err)?;
        self.keep(situation, seed, &output, &network)?;
        let document =
            serde_json::from_slice(&output).map_err(|e| format!("the client printed no JSON: {e}"))?;
        let mut answer = VerdictAnswer::of(&document)?;
        answer.named = Some(NamedFinding::Cause(answer.causes[counted(&answer, situation)]));
        Ok(answer)
    }

    fn start(
        &self,
        network: &KernelNetwork,
        host: PathHost,
        words: &[String],
    ) -> Result<ChildProcess, String> {
        ChildProcess::start(&self.processes, &[&network.on(host)[..], words].concat())
    }

    fn linerate(&self, worker: usize, words: &[&str]) -> Vec<String> {
        let own = |key: &str, file: &str| {
            format!("{key}={}", self.folder.join(format!("{worker}-{file}")).display())
        };
        let head = ["env".to_owned(), own("LINERATE_RUN", "run"), own("LINERATE_ARCHIVE", "archive.sqlite")];
        let program = self.linerate.display().to_string();
        head.into_iter().chain([program]).chain(words.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Programs that run during the whole test.
    fn background_programs(
        &self,
        network: &KernelNetwork,
        situation: &Situation,
    ) -> Result<Vec<ChildProcess>, String> {
        let mut background = Vec::new();
        for means in situation.means {
            match *means {
                Means::Loops(count, nice) => {
                    let nice = nice.to_string();
                    let words = ["nice", "-n", &nice, "sh", "-c", "while :; do :; done"];
                    for _ in 0..count {
                        background.push(self.start(network, PathHost::B, &words.map(str::to_owned))?);
                    }
                }
                Means::Neighbour(args) => {
                    background.extend(self.iperf3(
                        network,
                        [PathHost::B, PathHost::West],
                        SERVER_ADDRESS,
                        args,
                    )?);
                }
                Means::NeighbourBack(args) => {
                    background.extend(self.iperf3(
                        network,
                        [PathHost::A, PathHost::East],
                        CLIENT_ADDRESS,
                        args,
                    )?);
                }
                _ => (),
            }
        }
        Ok(background)
    }

    /// Starts a server on the first host and a client on the second, and waits until it sends.
    fn iperf3(
        &self,
        network: &KernelNetwork,
        [server, client]: [PathHost; 2],
        address: &str,
        args: &[&str],
    ) -> Result<[ChildProcess; 2], String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut there = self.start(network, server, &words(&["iperf3", "-s", "--forceflush"]))?;
        there.find_line(CLIENT_TIMEOUT, |line| line.contains("listening").then_some(()))?;
        let head = ["iperf3", "-c", address, "-t", "60", "--forceflush"];
        let here = self.start(network, client, &words(&[&head[..], args].concat()))?;
        self.processes.wait(NEIGHBOUR_LEAD)?;
        Ok([there, here])
    }

    fn keep(
        &self,
        situation: &Situation,
        seed: u32,
        output: &[u8],
        network: &KernelNetwork,
    ) -> Result<(), String> {
        let Some(folder) = &self.keep else { return Ok(()) };
        let name = folder.join(format!("{}-{seed}", situation.name));
        let fail = |e| format!("cannot write {}: {e}", name.display());
        std::fs::write(name.with_extension("json"), output).map_err(fail)?;
        std::fs::write(name.with_extension("txt"), network.counts()).map_err(fail)
    }
}

/// Actions with a time.
struct TimedKernelActions {
    start: Mono,
    /// Times and actions; the last one is the next.
    left: Vec<(Duration, KernelAction)>,
    trouble: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelAction {
    Block(bool),
    Signal(&'static str),
}

impl TimedKernelActions {
    fn of(situation: &Situation) -> Self {
        let mut left = Vec::new();
        for means in situation.means {
            match *means {
                Means::Blackout(after, length) => {
                    left.extend([
                        (after, KernelAction::Block(true)),
                        (after + length, KernelAction::Block(false)),
                    ]);
                }
                Means::Pause(after, length) => {
                    left.extend([
                        (after, KernelAction::Signal("-STOP")),
                        (after + length, KernelAction::Signal("-CONT")),
                    ]);
                }
                _ => (),
            }
        }
        left.sort_by_key(|(after, _)| std::cmp::Reverse(*after));
        Self { start: clock::now(), left, trouble: None }
    }

    /// Executes the actions that are due.
    fn act(&mut self, network: &KernelNetwork, client: u32) {
        while self.left.last().is_some_and(|(after, _)| (self.start + *after).has_passed()) {
            let Some((_, act)) = self.left.pop() else { return };
            let done = match act {
                KernelAction::Block(blocked) => network.block(blocked),
                KernelAction::Signal(signal) => {
                    crate::netns::output("kill", &[signal, &client.to_string()]).map(drop)
                }
            };
            self.trouble = done.err().or(self.trouble.take());
        }
    }
}

/// The index of the finding to evaluate: findings about disturbances by a busy machine come first, correctly,
/// and are skipped unless they were planted; findings that only add to a verdict count if the situation says
/// so.
fn counted(answer: &VerdictAnswer, situation: &Situation) -> usize {
    let causes = answer.causes.iter().enumerate();
    if let Some((at, _)) = causes.clone().find(|(_, cause)| situation.secondary.contains(cause)) {
        return at;
    }
    let of_the_machine = |at: usize, cause: Cause| {
        let expected = situation.right.contains(&cause) || situation.unconfirmed.contains(&cause);
        !expected
            && ([Rule::Disturbed, Rule::Bufferbloat].contains(&answer.found[at]) || cause == Cause::HostBusy)
    };
    causes.clone().find(|(at, cause)| !of_the_machine(*at, **cause)).map_or(0, |(at, _)| at)
}

/// Evaluates an answer.
pub(super) fn judge(answer: &VerdictAnswer, situation: &Situation) -> TrialGrade {
    let at = counted(answer, situation);
    let (named, words) = (answer.causes[at], answer.words[at].to_lowercase());
    let confirmed = answer.confidences[at] == "confirmed";
    let right = situation.right.contains(&named)
        || situation.secondary.contains(&named)
        || (situation.unconfirmed.contains(&named) && !confirmed);
    let has = |list: &[&str]| list.iter().any(|word| words.contains(&word.to_lowercase()));
    match (right, named) {
        _ if has(situation.forbidden_text) => TrialGrade::Wrong,
        (true, _) if situation.required_text.is_empty() || has(situation.required_text) => TrialGrade::Right,
        // The cause is right, but the useful part of the text is missing.
        (true, _) | (false, Cause::Unknown) => TrialGrade::Unknown,
        (false, _) => TrialGrade::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::situation::PLAIN;
    use super::*;

    fn answer(findings: &[(&str, &str, &str, &str)]) -> VerdictAnswer {
        let finding = |(rule, cause, confidence, text): &(&str, &str, &str, &str)| json!({ "rule": rule, "cause": cause, "confidence": confidence, "text": text, "remedy": "Do it." });
        let all: Vec<_> = findings.iter().map(finding).collect();
        VerdictAnswer::of(&json!({ "flows": [{ "verdict": all[0], "also": all[1..] }] })).unwrap()
    }

    #[test]
    fn what_two_ends_cannot_tell_may_not_be_confirmed() {
        let situation = Situation { right: &[Cause::Shaper], unconfirmed: &[Cause::Link], ..PLAIN };
        let one = |cause, confidence| judge(&answer(&[("V02", cause, confidence, "")]), &situation);
        assert_eq!(one("shaper", "confirmed"), TrialGrade::Right);
        assert_eq!(one("link", "probable"), TrialGrade::Right);
        assert_eq!(one("link", "confirmed"), TrialGrade::Wrong);
        assert_eq!(one("unknown", "unexplained"), TrialGrade::Unknown);
        assert_eq!(one("timeouts", "probable"), TrialGrade::Wrong);
    }

    #[test]
    fn words_are_needed_or_forbidden_in_text_and_remedy() {
        let situation = Situation {
            right: &[Cause::Shaper],
            required_text: &["tbf"],
            forbidden_text: &["cables"],
            ..PLAIN
        };
        let one = |text| judge(&answer(&[("V14", "shaper", "probable", text)]), &situation);
        assert_eq!(one("Your own TBF."), TrialGrade::Right);
        assert_eq!(one("A shaper."), TrialGrade::Unknown);
        assert_eq!(one("Your own tbf; check cables."), TrialGrade::Wrong);
        let remedy = Situation { forbidden_text: &["do it"], ..situation };
        assert_eq!(judge(&answer(&[("V14", "shaper", "probable", "tbf")]), &remedy), TrialGrade::Wrong);
    }

    #[test]
    fn a_busy_machine_is_passed_over_unless_it_was_planted() {
        let found = [("V26", "invalid", "probable", ""), ("V14", "shaper", "confirmed", "")];
        let shaper = Situation { right: &[Cause::Shaper], ..PLAIN };
        assert_eq!(judge(&answer(&found), &shaper), TrialGrade::Right);
        let paused = Situation { right: &[Cause::Invalid], ..PLAIN };
        assert_eq!(judge(&answer(&found), &paused), TrialGrade::Right);
        assert_eq!(judge(&answer(&found[1..]), &paused), TrialGrade::Wrong);
    }

    #[test]
    fn a_secondary_finding_counts_where_it_is_expected() {
        let found = [("V20", "random_loss", "probable", ""), ("V15", "mtu", "probable", "")];
        assert_eq!(
            judge(&answer(&found), &Situation { secondary: &[Cause::Mtu], ..PLAIN }),
            TrialGrade::Right
        );
        assert_eq!(judge(&answer(&found), &Situation { right: &[Cause::Mtu], ..PLAIN }), TrialGrade::Wrong);
    }

    #[test]
    fn blackouts_begin_and_end_in_the_order_of_their_times() {
        let ms = Duration::from_millis;
        const MEANS: &[Means] = &[
            Means::Blackout(Duration::from_millis(900), Duration::from_millis(300)),
            Means::Pause(Duration::from_millis(200), Duration::from_millis(800)),
        ];
        let timed = TimedKernelActions::of(&Situation { means: MEANS, ..PLAIN });
        let times: Vec<Duration> = timed.left.iter().map(|(after, _)| *after).collect();
        assert_eq!(times, [ms(1200), ms(1000), ms(900), ms(200)]);
    }
}
