//! Both ends of the dialogue between a coordinator and an agent, against an unknown peer, and against a peer
//! that has authenticated itself and then misbehaves.
//!
//! The first byte selects the end under test and how far the dialogue has come. The rest is a script: each step
//! is one byte that selects what happens, followed by its arguments.

use std::sync::LazyLock;

use linerate_model::{Body, Outcome, TestSpec};
use linerate_proto::Ticket;
use linerate_proto::agent::{
    About, AgentDialogue, AgentEnd, AgentInput, AgentOutput, CoordinatorEnd, Job, JobEnd, JobEvent, MAGIC,
    SettingsOrder, SettingsRequest, Token,
};
use linerate_proto::native::{FRAME_LIMIT, Framer};
use linerate_units::{Span, Timestamp};
use serde_json::json;

use crate::dialogue::frame;
use crate::engine;

/// Plays a script.
pub fn agent(bytes: &[u8]) {
    let Some((&first, script)) = bytes.split_first() else { return };
    let (agent, coordinator) = ends(first & 2 != 0);
    if first & 1 == 0 {
        AgentHost { end: agent, now: Timestamp::START, over: false }.play(script);
    } else {
        AgentHost { end: coordinator, now: Timestamp::START, over: false }.play(script);
    }
}

/// Two ends; if `known`, the authentication between them has been completed.
fn ends(known: bool) -> (AgentEnd, CoordinatorEnd) {
    let now = Timestamp::START;
    let token = Token::new("a secret of the fuzzer").ok();
    let for_coordinator = token.clone().unwrap_or_else(|| unreachable!("long enough"));
    let mut agent = AgentEnd::new(now, token, [2; 16]);
    let mut coordinator = CoordinatorEnd::new(now, for_coordinator, [1; 16], String::new());
    // Greeting, challenge, proof, the agent's description of its program, welcome.
    for _ in 0..if known { 5 } else { 0 } {
        let (there, _) = outputs_of(&mut coordinator);
        let (back, proved) = outputs_of(&mut agent);
        let _ = agent.input(now, AgentInput::Bytes(&there));
        let _ = coordinator.input(now, AgentInput::Bytes(&back));
        if proved {
            let _ = agent.input(now, AgentInput::About(Box::default()));
        }
    }
    (agent, coordinator)
}

/// What an end sends, and whether it also reports anything else.
fn outputs_of(end: &mut impl AgentDialogue) -> (Vec<u8>, bool) {
    let (mut bytes, mut news) = (Vec::new(), false);
    while let Some(output) = end.output() {
        match output {
            AgentOutput::Send(some) => bytes.extend(some),
            _ => news = true,
        }
    }
    (bytes, news)
}

struct AgentHost<D> {
    end: D,
    now: Timestamp,
    over: bool,
}

impl<D: AgentDialogue> AgentHost<D> {
    fn play(&mut self, mut script: &[u8]) {
        while let Some((&step, rest)) = script.split_first() {
            let argument = rest.first().copied().unwrap_or_default();
            script = rest.get(1..).unwrap_or_default();
            if self.step(step, argument, &mut script).is_none() {
                return;
            }
        }
    }

    fn step(&mut self, step: u8, argument: u8, script: &mut &[u8]) -> Option<()> {
        let job = u32::from(argument % 4);
        match step % 16 {
            0 => self.feed(AgentInput::Bytes(&MAGIC)),
            1 => {
                let all = messages();
                self.feed(AgentInput::Bytes(&frame(&all[usize::from(argument) % all.len()])))
            }
            2 => {
                let (some, rest) = script.split_at(usize::from(argument).min(script.len()));
                *script = rest;
                self.feed(AgentInput::Bytes(some))
            }
            3 => self.pass(Span::from_ms(u64::from(argument) * 250)),
            4 => self.feed(AgentInput::Held(Ticket([argument; 16]))),
            5 => self.feed(AgentInput::NotHeld("no".to_owned())),
            6 => self.feed(AgentInput::Accepted { job, epoch: self.now }),
            7 => self.feed(AgentInput::Ready { job }),
            8 => {
                let body = Body::Queued { position: 1, wait: Span::ZERO };
                self.feed(AgentInput::Event(Box::new(JobEvent { job, host: 0, at: self.now, body })))
            }
            9 => self.feed(AgentInput::Ended(JobEnd { job, outcome: Outcome::Failed, reason: None })),
            10 => self.feed(AgentInput::Hold { expected: Span::from_secs(1) }),
            11 => self.feed(AgentInput::Prepare(Box::new(order(job)))),
            12 => self.feed(AgentInput::Stop { job }),
            13 => self.feed(AgentInput::Ping),
            14 if argument.is_multiple_of(2) => self.feed(AgentInput::Release),
            14 => self.feed(AgentInput::Finish),
            15 if argument.is_multiple_of(2) => self.feed(settings(argument)),
            _ => self.feed(AgentInput::Closed),
        }
    }

    /// Advances the clock, with a tick at every deadline on the way.
    fn pass(&mut self, span: Span) -> Option<()> {
        let until = self.now + span;
        while let Some(deadline) = self.end.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.feed(AgentInput::Tick)?;
            let next = self.end.deadline();
            assert!(next.is_none_or(|next| next > self.now), "a tick at its deadline must move the deadline");
        }
        self.now = until;
        Some(())
    }

    /// `None` when the dialogue has failed, which ends it.
    fn feed(&mut self, input: AgentInput<'_>) -> Option<()> {
        let result = self.end.input(self.now, input);
        while let Some(output) = self.end.output() {
            match output {
                AgentOutput::Send(bytes) => assert!(is_well_formed(&bytes), "what we send must be readable"),
                AgentOutput::Done => self.over = true,
                // Whatever an agent is asked to run can be prepared.
                AgentOutput::Prepare(job) => match job.spec.checked() {
                    Ok(spec) => engine::take_all(&spec),
                    Err(error) => unreachable!("a job that cannot be reached the agent's program: {error}"),
                },
                AgentOutput::Hold { expected } => {
                    assert!(expected <= Span::from_secs(7 * 86_400), "{expected}")
                }
                _ => {}
            }
        }
        if let Err(error) = result {
            assert!(!error.to_string().is_empty(), "an error must say what is wrong");
            return None;
        }
        assert!(self.over || self.end.deadline().is_some(), "a dialogue that goes on must have a deadline");
        Some(())
    }
}

fn is_well_formed(bytes: &[u8]) -> bool {
    let mut framer = Framer::new(FRAME_LIMIT);
    framer.push(bytes);
    bytes == MAGIC || framer.pull::<serde_json::Value>().is_ok_and(|message| message.is_some())
}

/// A request about settings, or the answer to one.
fn settings(argument: u8) -> AgentInput<'static> {
    let order =
        || Box::new(SettingsOrder { towards: vec!["b".to_owned().into()], ..SettingsOrder::default() });
    match argument % 8 {
        0 => AgentInput::SettingsDone(Box::default()),
        2 => AgentInput::Settings(SettingsRequest::Check(order())),
        4 => AgentInput::Settings(SettingsRequest::Apply(order())),
        _ => AgentInput::Settings(SettingsRequest::Restore),
    }
}

fn order(job: u32) -> Job {
    Job {
        job,
        host: String::new().into(),
        port: None,
        ticket: None,
        certificate: None,
        spec: TestSpec::default(),
    }
}

/// Every message, in the order in which they occur in a job.
fn messages() -> &'static [Vec<u8>] {
    static MESSAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(write_messages);
    &MESSAGES
}

fn write_messages() -> Vec<Vec<u8>> {
    let number = "03".repeat(16);
    let job = |job: u32| {
        let mut order = json!(order(job));
        order["type"] = json!("prepare");
        order
    };
    let all = [
        json!({"type": "hello", "versions": [2, 2], "name": "c", "nonce": number}),
        json!({"type": "challenge", "version": 2, "nonce": number}),
        json!({"type": "proof", "proof": "00".repeat(32)}),
        json!({"type": "welcome", "proof": "00".repeat(32), "about": About::default()}),
        json!({"type": "refused", "why": "no"}),
        json!({"type": "ping", "number": 1, "sent_ns": 5}),
        json!({"type": "pong", "number": 1, "sent_ns": 5, "received_ns": u64::MAX, "replied_ns": 0}),
        json!({"type": "hold", "expected_ns": 5}),
        json!({"type": "waiting", "position": 1, "wait_ns": 5}),
        json!({"type": "held", "ticket": number}),
        json!({"type": "not_held", "why": "no"}),
        job(1),
        job(2),
        job(3),
        json!({"type": "accepted", "job": 1, "epoch_ns": 5}),
        json!({"type": "ready", "job": 1}),
        json!({"type": "start", "job": 1, "at_ns": u64::MAX}),
        json!({"type": "event", "job": 1, "host": 0, "at_ns": 5, "body": {"kind": "queued", "position": 1, "wait_ns": 5}}),
        json!({"type": "event", "job": 1, "host": 9, "at_ns": 5, "body": {"kind": "of_tomorrow"}}),
        json!({"type": "stop", "job": 1}),
        json!({"type": "ended", "job": 1, "outcome": "failed", "reason": "no"}),
        json!({"type": "release"}),
        json!({"type": "heartbeat"}),
        json!({"type": "failed", "why": "no"}),
        json!({"type": "bye"}),
        json!({"type": "check_settings", "towards": ["b"], "values": {"mtu": "9000"}}),
        json!({"type": "apply_settings", "interface": "eth0", "towards": [], "values": {"qdisc": "fq limit 5"}}),
        json!({"type": "restore_settings"}),
        json!({"type": "settings", "in_force": [{"setting": "mtu", "found": "1500", "now": "9000"}], "troubles": ["no"]}),
    ];
    let asked = (11..).zip(specs()).map(|(number, spec)| {
        let mut order = job(number);
        order["spec"] = spec;
        order
    });
    let hold = [5 << 50, u64::MAX].map(|expected| json!({"type": "hold", "expected_ns": expected}));
    let all = all.into_iter().chain(asked).chain(hold);
    all.map(|message| message.to_string().into_bytes()).collect()
}

/// Test specifications that a coordinator may request, and some that it may not.
fn specs() -> Vec<serde_json::Value> {
    let day = 86_400_000_000_000_u64;
    vec![
        json!({"traffic": {"upload": true, "length_bytes": 1_u64 << 40}}),
        json!({"traffic": {"upload": true, "length_bytes": 64 << 20, "streams": 10_000, "duration_ns": day}}),
        json!({"traffic": {"bidir": true, "streams": 1, "duration_ns": 10_000_000, "interval_ns": 10_000_000}}),
        json!({"traffic": {"udp": true, "length_bytes": 65_507, "rate_bps": 1, "omit_ns": day}}),
        json!({"traffic": {"udp": true, "length_bytes": 0, "streams": u32::MAX}}),
        json!({"traffic": {"bytes": u64::MAX, "length_bytes": 1}}),
        json!({"traffic": {"blocks": u64::MAX, "length_bytes": 64 << 20}}),
        json!({"sweep": {"to_bytes": 64 << 20}}),
        json!({"sweep": {"to_bytes": u64::MAX}}),
    ]
}

/// An agent and a coordinator at work, each against an unknown peer, and both idle for a while.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let message = |number: u8| [1, number];
    let at_work = [2, 1, 7, 4, 7, 1, 11, 6, 1, 7, 1, 1, 16, 8, 1, 9, 1, 1, 21, 1, 24];
    let coordinating = [
        &[3, 10, 0][..],
        &message(9),
        &[11, 1],
        &message(14),
        &message(15),
        &message(17),
        &[12, 1],
        &message(20),
    ]
    .concat();
    let greeted = [&[0, 0, 0][..], &message(0), &message(2)].concat();
    let challenged = [&[1, 0, 0][..], &message(1), &message(3)].concat();
    // Held, settings requested and applied, restored, released; and the coordinator's side of the same.
    let settings = [2, 1, 7, 4, 7, 1, 26, 15, 0, 1, 27, 15, 0, 1, 21];
    let asking = [3, 10, 0, 1, 9, 15, 4, 1, 28, 15, 6, 1, 28, 14, 0];
    // Held, and every test requested.
    let first = 29;
    let jobs = (first..).take(specs().len()).flat_map(message);
    let ordered: Vec<u8> = [2, 1, 7, 4, 7].into_iter().chain(jobs).collect();
    // The same with a hold that lasts too long.
    let after = first + specs().len() as u8;
    let held_long = [[2].to_vec(), message(after).to_vec()].concat();
    vec![
        ordered,
        held_long,
        settings.to_vec(),
        asking.to_vec(),
        at_work.to_vec(),
        coordinating,
        greeted,
        challenged,
        vec![2, 3, 255, 3, 255],
        vec![3, 13, 0, 3, 255],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_messages_in_the_seeds_are_those_of_settings() {
        for (number, name) in
            [(25, "check_settings"), (26, "apply_settings"), (27, "restore_settings"), (28, "settings")]
        {
            let message = String::from_utf8_lossy(&messages()[number]).into_owned();
            assert!(message.contains(&format!("\"type\":\"{name}\"")), "{number}: {message}");
        }
    }

    #[test]
    fn ends_that_know_each_other_get_to_work_and_those_that_do_not_do_not() {
        for (known, expected) in [(true, 2), (false, 0)] {
            let (agent, coordinator) = ends(known);
            let mut stages = (
                AgentHost { end: agent, now: Timestamp::START, over: false },
                AgentHost { end: coordinator, now: Timestamp::START, over: false },
            );
            let hold = frame(&messages()[7]);
            let at_work = [
                stages.0.feed(AgentInput::Bytes(&hold)).is_some(),
                stages.1.feed(AgentInput::Hold { expected: Span::ZERO }).is_some(),
            ];
            assert_eq!(at_work.iter().filter(|at_work| **at_work).count(), expected, "known: {known}");
        }
    }
}
