//! Two ends against each other in virtual time, and one end against an unknown peer.

use linerate_model::{Body, HostInfo, Outcome, TestSpec};
use linerate_units::{Span, Timestamp};

use super::{
    About, AgentDialogue, AgentEnd, AgentInput, AgentOutput, CoordinatorEnd, Job, JobEnd, JobEvent, Token,
};
use crate::session::QueuePosition;
use crate::{PeerError, Ticket};

pub(super) const TICKET: Ticket = Ticket([7; 16]);

/// How far the agent's clock is ahead of the coordinator's.
const AHEAD: Span = Span::from_secs(1000);

/// More deadlines than both ends have in an hour of heartbeats.
const MOST_TICKS: u32 = 50_000;

/// One-way delay.
const DELAY: Span = Span::from_ms(10);

fn token(text: &str) -> Token {
    Token::new(text).unwrap()
}

pub(super) fn secret() -> Token {
    token("a secret of the tests")
}

pub(super) fn job(number: u32) -> Box<Job> {
    let (host, spec) = ("b".to_owned(), TestSpec::default());
    Box::new(Job {
        job: number,
        host: host.into(),
        port: None,
        ticket: Some(TICKET),
        certificate: None,
        spec,
    })
}

fn ended(job: u32) -> AgentInput<'static> {
    AgentInput::Ended(JobEnd { job, outcome: Outcome::Interrupted, reason: None })
}

/// Both ends, each with its own clock, and their outputs.
pub(super) struct AgentEnds {
    pub(super) now: Timestamp,
    pub(super) coordinator: CoordinatorEnd,
    pub(super) agent: AgentEnd,
    pub(super) at_coordinator: Vec<AgentOutput>,
    pub(super) asked: Vec<AgentOutput>,
    /// Everything that the coordinator has sent.
    coordinator_bytes: Vec<u8>,
}

impl AgentEnds {
    pub(super) fn new(agents: Option<Token>, coordinators: Token) -> Self {
        let now = Timestamp::from_ns(5_000_000_000);
        Self {
            now,
            coordinator: CoordinatorEnd::new(now, coordinators, [1; 16], "c\u{1b}[2Jd".to_owned()),
            agent: AgentEnd::new(now + AHEAD, agents, [2; 16]),
            at_coordinator: Vec::new(),
            asked: Vec::new(),
            coordinator_bytes: Vec::new(),
        }
    }

    /// A pair after the authentication, whose coordinator holds the place.
    pub(super) fn at_work() -> Self {
        let mut pair = Self::new(Some(secret()), secret());
        pair.settle().unwrap();
        pair.agent_input(AgentInput::About(Box::default()));
        pair.ask(AgentInput::Hold { expected: Span::from_secs(60) });
        pair.agent_input(AgentInput::Held(TICKET));
        pair.forget();
        pair
    }

    pub(super) fn forget(&mut self) {
        self.at_coordinator.clear();
        self.asked.clear();
    }

    pub(super) fn ask(&mut self, input: AgentInput<'_>) {
        self.coordinator.input(self.now, input).unwrap();
        self.settle().unwrap();
    }

    pub(super) fn agent_input(&mut self, input: AgentInput<'_>) {
        self.agent.input(self.now + AHEAD, input).unwrap();
        self.settle().unwrap();
    }

    /// Carries bytes in both directions until there are none; each direction takes [`DELAY`].
    pub(super) fn settle(&mut self) -> Result<(), PeerError> {
        loop {
            let there = drain(&mut self.coordinator, &mut self.at_coordinator);
            let back = drain(&mut self.agent, &mut self.asked);
            if there.is_empty() && back.is_empty() {
                return Ok(());
            }
            self.coordinator_bytes.extend_from_slice(&there);
            self.now = self.now + DELAY;
            let arrived = if there.is_empty() {
                Ok(())
            } else {
                self.agent.input(self.now + AHEAD, AgentInput::Bytes(&there))
            };
            let answered = if back.is_empty() {
                Ok(())
            } else {
                self.coordinator.input(self.now, AgentInput::Bytes(&back))
            };
            answered.and(arrived)?;
        }
    }

    /// Lets time pass; both ends get their ticks and each other's messages.
    pub(super) fn pass(&mut self, span: Span) -> Result<(), PeerError> {
        let until = self.now + span;
        for tick in 0.. {
            assert!(tick < MOST_TICKS, "a tick at its deadline must move the deadline");
            let agents = self.agent.deadline().map(|at| Timestamp::from_ns(at.as_ns() - AHEAD.as_ns()));
            let next = [self.coordinator.deadline(), agents].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            self.coordinator.input(self.now, AgentInput::Tick)?;
            self.agent.input(self.now + AHEAD, AgentInput::Tick)?;
            self.settle()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }
}

fn drain(end: &mut impl AgentDialogue, news: &mut Vec<AgentOutput>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(output) = end.output() {
        match output {
            AgentOutput::Send(some) => bytes.extend_from_slice(&some),
            other => news.push(other),
        }
    }
    bytes
}

/// Runs one end alone until it gives up; returns the error and the elapsed time.
pub(super) fn alone(end: &mut impl AgentDialogue, from: Timestamp) -> (PeerError, Span) {
    for _ in 0..MOST_TICKS {
        let at = end.deadline().unwrap();
        if let Err(error) = end.input(at, AgentInput::Tick) {
            return (error, at.since(from));
        }
    }
    panic!("it waits for ever");
}

#[test]
fn a_job_from_the_greeting_to_the_farewell() {
    let mut pair = AgentEnds::new(Some(secret()), secret());
    pair.settle().unwrap();
    let [AgentOutput::Known { name }] = &pair.asked[..] else { panic!("{:?}", pair.asked) };
    assert_eq!(name, "c?[2Jd", "what a terminal would obey is replaced");
    assert!(pair.at_coordinator.is_empty(), "nothing is sent before both have proved their identity");
    let host = HostInfo { name: "agent's host".into(), ..HostInfo::default() };
    let about = About { host, congestion: vec!["bbr".into()], ..About::default() };
    pair.agent_input(AgentInput::About(Box::new(about.clone())));
    assert!(matches!(&pair.at_coordinator[..], [AgentOutput::Welcomed(welcome)] if **welcome == about));
    pair.forget();

    pair.ask(AgentInput::Hold { expected: Span::from_secs(60) });
    pair.agent_input(AgentInput::Waiting(QueuePosition { position: 2, wait_ns: Span::from_secs(9) }));
    pair.agent_input(AgentInput::Held(TICKET));
    assert!(matches!(pair.asked[..], [AgentOutput::Hold { expected }] if expected == Span::from_secs(60)));
    assert!(
        matches!(pair.at_coordinator[..], [AgentOutput::Waiting(_), AgentOutput::Held(ticket)] if ticket == TICKET)
    );
    pair.forget();

    pair.ask(AgentInput::Prepare(job(1)));
    assert!(matches!(&pair.asked[..], [AgentOutput::Prepare(asked)] if *asked == job(1)));
    pair.agent_input(AgentInput::Accepted { job: 1, epoch: Timestamp::from_ns(77) });
    pair.agent_input(AgentInput::Ready { job: 1 });
    pair.ask(AgentInput::Start { job: 1, at: Timestamp::from_ns(99) });
    assert!(matches!(pair.asked[1..], [AgentOutput::Start { job: 1, at }] if at == Timestamp::from_ns(99)));
    let body = Body::Queued { position: 3, wait: Span::ZERO };
    let event = JobEvent { job: 1, host: 1, at: Timestamp::from_ns(5), body };
    pair.agent_input(AgentInput::Event(Box::new(event.clone())));
    pair.agent_input(ended(1));
    let [
        AgentOutput::Accepted { job: 1, .. },
        AgentOutput::Ready { job: 1 },
        AgentOutput::Event(reported),
        AgentOutput::Ended(end),
    ] = &pair.at_coordinator[..]
    else {
        panic!("{:?}", pair.at_coordinator)
    };
    assert_eq!((&**reported, end.outcome), (&event, Outcome::Interrupted));
    pair.ask(AgentInput::Release);
    pair.ask(AgentInput::Finish);
    assert!(matches!(pair.asked[2..], [AgentOutput::Release, AgentOutput::Done]), "{:?}", pair.asked);
    assert_eq!((pair.agent.deadline(), pair.coordinator.deadline()), (None, None));
}

#[test]
fn a_wrong_token_gets_nothing_but_the_reason() {
    let mut pair = AgentEnds::new(Some(secret()), token("another secret of the tests"));
    let error = pair.settle().unwrap_err();
    assert!(matches!(&error, PeerError::Refused { why } if why.contains("token")), "{error}");
    assert!(matches!(&pair.asked[..], [AgentOutput::TurnedAway(_), AgentOutput::Done]), "{:?}", pair.asked);
    assert!(pair.at_coordinator.is_empty());
}

#[test]
fn a_server_that_is_no_agent_says_how_to_make_it_one() {
    let mut pair = AgentEnds::new(None, secret());
    let error = pair.settle().unwrap_err();
    assert!(matches!(&error, PeerError::Refused { why } if why.contains("--agent-token-file")), "{error}");
    assert!(matches!(pair.asked[..], [AgentOutput::TurnedAway(_), AgentOutput::Done]), "{:?}", pair.asked);
}

#[test]
fn what_one_connection_proved_proves_nothing_on_the_next() {
    let mut pair = AgentEnds::new(Some(secret()), secret());
    pair.settle().unwrap();
    assert!(matches!(pair.asked[..], [AgentOutput::Known { .. }]));
    // A replay of everything that the coordinator sent, to an agent with another nonce.
    let mut agent = AgentEnd::new(Timestamp::START, Some(secret()), [3; 16]);
    agent.input(Timestamp::START, AgentInput::Bytes(&pair.coordinator_bytes)).unwrap();
    let mut asked = Vec::new();
    drain(&mut agent, &mut asked);
    assert!(matches!(asked[..], [AgentOutput::TurnedAway(_), AgentOutput::Done]), "{asked:?}");
}

#[test]
fn an_agent_that_does_not_have_the_token_is_not_believed() {
    let now = Timestamp::START;
    let mut coordinator = CoordinatorEnd::new(now, secret(), [1; 16], String::new());
    let frame =
        |json: &str| [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], json.as_bytes()].concat();
    let challenge = format!(r#"{{"type":"challenge","version":2,"nonce":"{}"}}"#, "02".repeat(16));
    let bytes = [&super::MAGIC[..], &frame(&challenge)].concat();
    coordinator.input(now, AgentInput::Bytes(&bytes)).unwrap();
    // The coordinator's own proof, sent back to it.
    let mut news = Vec::new();
    let sent = String::from_utf8_lossy(&drain(&mut coordinator, &mut news)).into_owned();
    let proof = sent.rsplit("\"proof\":\"").next().unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(proof.len(), 64);
    let about = serde_json::to_string(&About::default()).unwrap();
    let welcome = frame(&format!(r#"{{"type":"welcome","proof":"{proof}","about":{about}}}"#));
    let error = coordinator.input(now, AgentInput::Bytes(&welcome)).unwrap_err();
    assert!(error.to_string().contains("has not proved"), "{error}");
    // The coordinator's own nonce, sent back so that its proof would be valid as the agent's.
    let mut coordinator = CoordinatorEnd::new(now, secret(), [1; 16], String::new());
    let mirrored = frame(&challenge.replace("02", "01"));
    let error =
        coordinator.input(now, AgentInput::Bytes(&[&super::MAGIC[..], &mirrored].concat())).unwrap_err();
    assert!(error.to_string().contains("our own number"), "{error}");
}

#[test]
fn nobody_is_asked_anything_before_the_proof() {
    for early in [
        r#"{"type":"hold","expected_ns":1}"#,
        r#"{"type":"release"}"#,
        r#"{"type":"ping","number":1,"sent_ns":1}"#,
        r#"{"type":"proof","proof":""}"#,
        r#"{"type":"stop","job":1}"#,
    ] {
        let mut agent = AgentEnd::new(Timestamp::START, Some(secret()), [3; 16]);
        let length = u32::try_from(early.len()).unwrap().to_be_bytes();
        let bytes = [&super::MAGIC[..], &length, early.as_bytes()].concat();
        let error = agent.input(Timestamp::START, AgentInput::Bytes(&bytes)).unwrap_err();
        assert!(matches!(error, PeerError::Misbehaved { .. }), "{early}: {error}");
        assert!(agent.output().is_none(), "{early}");
    }
}

#[test]
fn both_clocks_are_read_for_the_offset() {
    let mut pair = AgentEnds::at_work();
    let asked = pair.now;
    pair.ask(AgentInput::Ping);
    let [AgentOutput::Pong(pong)] = pair.at_coordinator[..] else { panic!("{:?}", pair.at_coordinator) };
    assert_eq!((pong.sent, pong.back), (asked, asked + DELAY + DELAY));
    assert_eq!((pong.received, pong.replied), (asked + DELAY + AHEAD, asked + DELAY + AHEAD));
}

#[test]
fn a_silent_or_incomplete_connection_is_not_waited_for() {
    let from = Timestamp::START;
    let mut agent = AgentEnd::new(from, Some(secret()), [2; 16]);
    let (error, waited) = alone(&mut agent, from);
    assert!(matches!(error, PeerError::Silent { .. }) && waited == Span::from_secs(5), "{error} {waited}");
    let mut pair = AgentEnds::new(Some(secret()), secret());
    // The greeting arrives, but the proof does not.
    let mut news = Vec::new();
    let hello = drain(&mut pair.coordinator, &mut news);
    pair.agent.input(from + AHEAD + AHEAD, AgentInput::Bytes(&hello)).unwrap();
    let (error, waited) = alone(&mut pair.agent, from + AHEAD + AHEAD);
    assert!(matches!(error, PeerError::Silent { .. }) && waited == Span::from_secs(5), "{error} {waited}");
    // The coordinator gives up waiting for the challenge too.
    let (error, _) = alone(&mut pair.coordinator, from);
    assert!(error.to_string().contains("greeting"), "{error}");
}

#[test]
fn an_end_that_vanishes_is_missed_within_seconds_whatever_was_going_on() {
    let steps: [fn(&mut AgentEnds); 4] = [
        |_| {},
        |pair| pair.ask(AgentInput::Prepare(job(1))),
        |pair| {
            pair.ask(AgentInput::Prepare(job(1)));
            pair.agent_input(AgentInput::Accepted { job: 1, epoch: Timestamp::START });
            pair.agent_input(AgentInput::Ready { job: 1 });
        },
        |pair| {
            pair.ask(AgentInput::Prepare(job(1)));
            pair.agent_input(AgentInput::Accepted { job: 1, epoch: Timestamp::START });
            pair.agent_input(AgentInput::Ready { job: 1 });
            pair.ask(AgentInput::Start { job: 1, at: Timestamp::START });
        },
    ];
    for step in steps {
        let mut pair = AgentEnds::at_work();
        step(&mut pair);
        let (error, waited) = alone(&mut pair.agent, pair.now + AHEAD);
        assert!(
            matches!(error, PeerError::Silent { .. }) && waited <= Span::from_secs(6),
            "{error} {waited}"
        );
        let (error, waited) = alone(&mut pair.coordinator, pair.now);
        assert!(
            matches!(error, PeerError::Silent { .. }) && waited <= Span::from_secs(6),
            "{error} {waited}"
        );
        assert!(pair.agent.input(pair.now + AHEAD, AgentInput::Closed).is_err());
    }
}

#[test]
fn heartbeats_keep_a_quiet_dialogue_for_an_hour() {
    let mut pair = AgentEnds::at_work();
    pair.pass(Span::from_secs(3600)).unwrap();
    assert!(pair.at_coordinator.is_empty() && pair.asked.is_empty());
}

#[test]
fn a_job_that_is_never_ready_or_never_started_is_ended() {
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Prepare(job(1)));
    pair.agent_input(AgentInput::Accepted { job: 1, epoch: Timestamp::START });
    pair.forget();
    pair.pass(Span::from_secs(59)).unwrap();
    assert!(pair.asked.is_empty());
    pair.pass(Span::from_secs(2)).unwrap();
    assert!(matches!(pair.asked[..], [AgentOutput::Stop { job: 1 }]), "{:?}", pair.asked);
    pair.agent_input(ended(1));
    pair.forget();
    pair.ask(AgentInput::Prepare(job(2)));
    pair.agent_input(AgentInput::Accepted { job: 2, epoch: Timestamp::START });
    pair.agent_input(AgentInput::Ready { job: 2 });
    pair.forget();
    pair.pass(Span::from_secs(26)).unwrap();
    assert!(matches!(pair.asked[..], [AgentOutput::Stop { job: 2 }]), "{:?}", pair.asked);
    // If the program does not end it, the dialogue fails.
    let error = pair.pass(Span::from_secs(31)).unwrap_err();
    assert!(error.to_string().contains("job 2"), "{error}");
}

#[test]
fn a_job_needs_a_place_and_a_new_number_and_a_specification_that_can_be() {
    let mut pair = AgentEnds::new(Some(secret()), secret());
    pair.settle().unwrap();
    pair.agent_input(AgentInput::About(Box::default()));
    pair.coordinator.input(pair.now, AgentInput::Prepare(job(1))).unwrap();
    let error = pair.settle().unwrap_err();
    assert!(error.to_string().contains("without a place"), "{error}");

    let mut pair = AgentEnds::at_work();
    let mut wrong = job(1);
    wrong.spec.socket.mss = Some(1);
    pair.ask(AgentInput::Prepare(wrong));
    let [AgentOutput::Ended(end)] = &pair.at_coordinator[..] else { panic!("{:?}", pair.at_coordinator) };
    assert!(end.outcome == Outcome::Failed && end.reason.as_ref().unwrap().contains("--set-mss"), "{end:?}");
    assert!(pair.asked.is_empty(), "the agent's program did not receive it");
    pair.coordinator.input(pair.now, AgentInput::Prepare(job(1))).unwrap();
    assert!(pair.settle().unwrap_err().to_string().contains("its number was used before"));
}

#[test]
fn an_event_of_a_kind_that_is_not_known_here_is_a_caveat_and_not_the_end() {
    let mut pair = AgentEnds::at_work();
    pair.ask(AgentInput::Prepare(job(1)));
    pair.forget();
    let event = r#"{"type":"event","job":1,"host":0,"at_ns":5,"body":{"kind":"of_tomorrow","x":1}}"#;
    let bytes = [&u32::try_from(event.len()).unwrap().to_be_bytes()[..], event.as_bytes()].concat();
    pair.coordinator.input(pair.now, AgentInput::Bytes(&bytes)).unwrap();
    pair.settle().unwrap();
    let [AgentOutput::Event(event)] = &pair.at_coordinator[..] else { panic!("{:?}", pair.at_coordinator) };
    assert!(matches!(&event.body, Body::Caveat { caveat, .. } if caveat.text.contains("of_tomorrow")));
}

#[test]
fn a_place_is_asked_for_no_longer_than_tests_can_take() {
    let week = Span::from_secs(7 * 86_400);
    for (expected, taken) in
        [(week, true), (week + Span::from_ns(1), false), (Span::from_ns(u64::MAX), false)]
    {
        let mut pair = AgentEnds::new(Some(secret()), secret());
        pair.settle().unwrap();
        pair.agent_input(AgentInput::About(Box::default()));
        pair.forget();
        pair.coordinator.input(pair.now, AgentInput::Hold { expected }).unwrap();
        let settled = pair.settle();
        assert_eq!(settled.is_ok(), taken, "{expected}: {settled:?}");
        assert_eq!(pair.asked.len(), usize::from(taken), "{:?}", pair.asked);
    }
}

#[test]
fn proofs_that_somebody_passes_on_between_two_encrypted_connections_are_refused() {
    for (coordinators, agents, same) in [
        (Some([7; 32]), Some([7; 32]), true),
        (Some([7; 32]), Some([8; 32]), false),
        (Some([7; 32]), None, false),
    ] {
        let mut pair = AgentEnds::new(Some(secret()), secret());
        pair.coordinator = pair.coordinator.with_channel_binding(coordinators);
        pair.agent = pair.agent.with_channel_binding(agents);
        match pair.settle() {
            Ok(()) => {
                assert!(same && matches!(pair.asked[..], [AgentOutput::Known { .. }]), "{:?}", pair.asked)
            }
            Err(error) => {
                assert!(!same && error.to_string().contains("the token differs"), "{error}");
                let nobody_known =
                    !pair.asked.iter().any(|output| matches!(output, AgentOutput::Known { .. }));
                assert!(nobody_known, "{:?}", pair.asked);
            }
        }
    }
}
