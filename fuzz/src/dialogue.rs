//! A session of the native protocol against a peer and a clock that misbehave, on a host that honours the
//! contract of `Session`: it answers only what it was asked, in any order and at any time.
//!
//! The bytes are a script: each step is one byte that selects what happens, followed by its arguments. Random
//! bytes alone would end at the first frame; a script also contains whole messages in any order.

use linerate_model::flow::FlowId;
use linerate_model::foreign_text::is_forbidden;
use linerate_model::{
    CheckedSpec, Direction, FlowOutcome, HostInfo, Side, SideSettings, SocketKnobs, Sweep, Tally, TestSpec,
};
use linerate_proto::native::{ClientSession, FRAME_LIMIT, Framer, PREFACE_BYTES, Preface, ServerSession};
use linerate_proto::{
    Admission, Ended, FlowOrder, Progress, QueuePosition, Session, SessionInput, SessionOutput, SweepTrial,
    TrialCount,
};
use linerate_units::{Bytes, Span, Timestamp};

use crate::engine;
use crate::script::Script;
use crate::seeds::messages;

/// The client's session.
pub fn native_client(script: &[u8]) {
    let drain = Span::from_secs(1);
    let spec = series();
    DialogueHost::new(ClientSession::new(Timestamp::START, HostInfo::default(), spec, drain), true)
        .play(script);
}

/// The server's session.
pub fn native_server(script: &[u8]) {
    DialogueHost::new(ServerSession::new(Timestamp::START), false).play(script);
}

struct DialogueHost<S> {
    session: S,
    now: Timestamp,
    /// The session reported that it is done.
    over: bool,
    /// The session asks whether a client may start.
    asked: bool,
    /// Flows for which the session requests sockets.
    opening: Vec<FlowOrder>,
    /// Flows that transfer data at this end.
    running: Vec<FlowOrder>,
    /// This end initiates trials.
    client: bool,
    /// The trial in progress at this end.
    trial: Option<SweepTrial>,
    /// The test that the client requested.
    spec: CheckedSpec,
}

impl<S: Session> DialogueHost<S> {
    fn new(session: S, client: bool) -> Self {
        let (opening, running, trial) = (Vec::new(), Vec::new(), None);
        Self {
            session,
            now: Timestamp::START,
            over: false,
            asked: false,
            opening,
            running,
            client,
            trial,
            spec: CheckedSpec::default(),
        }
    }

    fn play(mut self, script: &[u8]) {
        self.drain();
        let mut script = Script { rest: script };
        while let Some(step) = script.byte() {
            if self.step(step, &mut script).is_none() {
                return;
            }
        }
    }

    /// One step; `None` when the session or the script has ended.
    fn step(&mut self, step: u8, script: &mut Script<'_>) -> Option<()> {
        match step % 10 {
            0 => self.feed(SessionInput::Bytes(&Preface::CONTROL.encode())),
            1 => self.feed(SessionInput::Bytes(&frame(messages().get(usize::from(script.byte()?))?))),
            2 => self.feed(SessionInput::Bytes(&frame(script.some()?))),
            3 => self.feed(SessionInput::Bytes(script.some()?)),
            4 => self.pass(Span::from_ms(u64::from(script.byte()?) * 50)),
            5 if self.opening.is_empty() => Some(()),
            5 => {
                self.running = std::mem::take(&mut self.opening);
                self.feed(SessionInput::FlowsOpen)
            }
            6 => {
                let flows = script
                    .some()?
                    .iter()
                    .zip(0..)
                    .filter_map(|(byte, flow)| order(FlowId(flow), *byte))
                    .collect();
                self.feed(SessionInput::Measure(flows))
            }
            7 => self.move_data(script.byte()?, script.byte()?),
            8 => self.decide(script.byte()?),
            _ => self.interrupt(script.byte()?),
        }
    }

    /// The host's side of a running flow.
    fn move_data(&mut self, what: u8, which: u8) -> Option<()> {
        let at = usize::from(which).checked_rem(self.running.len());
        let Some(flow) = at.and_then(|at| self.running.get(at)).map(FlowOrder::flow) else {
            return Some(());
        };
        match what % 5 {
            0 => self.feed(SessionInput::SenderDone { flow }),
            3 => match self.trial.take() {
                Some(SweepTrial { trial, .. }) => {
                    self.feed(SessionInput::TrialCounted(TrialCount { trial, ..TrialCount::default() }))
                }
                None => Some(()),
            },
            4 if self.client => self.feed(SessionInput::Trial(SweepTrial {
                trial: 0,
                message_bytes: Bytes::new(u64::from(which) + 1),
                repeats: 1,
                timeout_ns: Span::from_secs(1),
            })),
            4 => Some(()),
            1 => self.feed(SessionInput::Progress(Progress {
                flow,
                side: Side::Sender,
                bytes: Bytes::new(u64::MAX),
                elapsed_ns: Span::ZERO,
                srtt_ns: None,
                retransmits: Some(1),
            })),
            _ => {
                self.running.retain(|order| order.flow() != flow);
                self.feed(SessionInput::FlowEnded(Box::new(ended(flow, which))))
            }
        }
    }

    /// The host's answer to a client's request.
    fn decide(&mut self, which: u8) -> Option<()> {
        if !self.asked {
            return Some(());
        }
        self.asked = which.is_multiple_of(3);
        match which % 3 {
            0 => self.feed(SessionInput::Wait(QueuePosition { position: 1, wait_ns: Span::from_secs(1) })),
            1 => self.feed(SessionInput::Refuse("no".to_owned())),
            _ => {
                let admission = Admission { host: HostInfo::default(), cookie: [7; 16], concurrent_runs: 1 };
                self.feed(SessionInput::Admit(Box::new(admission)))
            }
        }
    }

    /// Events that can occur at any time.
    fn interrupt(&mut self, which: u8) -> Option<()> {
        match which % 5 {
            0 => self.feed(SessionInput::Finish(vec![outcome()])),
            1 => self.feed(SessionInput::Stop),
            2 => self.feed(SessionInput::Alive),
            3 => self.feed(SessionInput::FlowsFailed("no sockets".to_owned())),
            _ => self.feed(SessionInput::Closed),
        }
    }

    /// Advances the clock, with a tick at every deadline on the way.
    fn pass(&mut self, span: Span) -> Option<()> {
        let until = self.now + span;
        while let Some(deadline) = self.session.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.feed(SessionInput::Tick)?;
            let next = self.session.deadline();
            assert!(next.is_none_or(|next| next > self.now), "a tick at its deadline must move the deadline");
        }
        self.now = until;
        Some(())
    }

    /// `None` when the session has failed, which ends it.
    fn feed(&mut self, input: SessionInput<'_>) -> Option<()> {
        let result = self.session.input(self.now, input);
        self.drain();
        if let Err(error) = result {
            assert!(!error.to_string().is_empty(), "an error must say what is wrong");
            return None;
        }
        assert!(
            self.over || self.session.deadline().is_some(),
            "a session that goes on must have a deadline"
        );
        Some(())
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.output() {
            match output {
                SessionOutput::Send(bytes) => {
                    assert!(is_well_formed(&bytes), "what we send must be readable")
                }
                SessionOutput::Done => self.over = true,
                SessionOutput::Asked(hello) => (self.asked, self.spec) = (true, hello.spec),
                SessionOutput::Open(flows) => {
                    if !self.client {
                        engine::take(&self.spec, &flows, false);
                    }
                    self.opening = flows;
                }
                SessionOutput::PeerResults(flows) => {
                    assert!(flows.len() <= 2, "no more than a phase for each direction");
                    let printed = linerate_report::outcome(&flows).unwrap_or_default();
                    assert!(!printed.contains(is_forbidden), "{printed:?}");
                }
                SessionOutput::Trial(trial) => {
                    assert!(trial.is_sound(&longest()), "a server is never asked for what cannot be");
                    self.trial = Some(trial);
                }
                _ => {}
            }
        }
    }
}

/// A preface, or one whole message within the size limit.
fn is_well_formed(bytes: &[u8]) -> bool {
    if bytes.len() == PREFACE_BYTES && Preface::decode(bytes).is_ok_and(|preface| preface.is_some()) {
        return true;
    }
    let mut framer = Framer::new(FRAME_LIMIT);
    framer.push(bytes);
    let first = framer.pull::<serde_json::Value>();
    let rest = framer.pull::<serde_json::Value>();
    first.is_ok_and(|message| message.is_some()) && rest.is_ok_and(|message| message.is_none())
}

/// `body` with its length prefixed.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

fn order(flow: FlowId, byte: u8) -> Option<FlowOrder> {
    let direction = if byte.is_multiple_of(2) { Direction::Upload } else { Direction::Download };
    FlowOrder::new(&CheckedSpec::default(), flow, direction, Bytes::new(1)).ok()
}

/// The sweep that allows the largest messages.
fn longest() -> Sweep {
    Sweep { to: Bytes::new(Sweep::MAX_BYTES), ..Sweep::default() }
}

/// A specification that also has trials.
fn series() -> CheckedSpec {
    let spec = TestSpec::of_sweep(longest(), SocketKnobs::default(), linerate_model::HostKnobs::default());
    spec.checked().unwrap_or_default()
}

fn outcome() -> FlowOutcome {
    FlowOutcome { name: "upload".into(), bitrate: None, transactions_per_second: None, verdict: None }
}

fn ended(flow: FlowId, byte: u8) -> Ended {
    let side = if byte.is_multiple_of(2) { Side::Sender } else { Side::Receiver };
    Ended { flow, side, settings: SideSettings::default(), tally: Tally::default(), caveats: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    /// Whether a regular script reaches its regular end: otherwise the seeds would cover nothing.
    fn ends_well(session: impl Session, client: bool, script: &[u8]) -> bool {
        let mut stage = DialogueHost::new(session, client);
        stage.drain();
        let mut script = Script { rest: script };
        while let Some(step) = script.byte() {
            if stage.step(step, &mut script).is_none() {
                return false;
            }
        }
        stage.over
    }

    #[test]
    fn the_first_seeds_are_whole_runs() {
        let start = Timestamp::START;
        for script in &seeds::client_dialogues()[..3] {
            let (host, spec) = (HostInfo::default(), series());
            assert!(ends_well(ClientSession::new(start, host, spec, Span::from_secs(1)), true, script));
        }
        for script in &seeds::server_dialogues()[..4] {
            assert!(ends_well(ServerSession::new(start), false, script));
        }
    }
}
