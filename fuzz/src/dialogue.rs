//! A session of the native protocol against a peer, a host and a clock that all misbehave.
//!
//! The bytes are a script: each step is a byte that says what happens, and what it needs. Noise alone would end at the
//! first frame; a script also contains whole messages in any order.

use linerate_model::{Direction, HostInfo, Side, SideSettings, Tally, TestSpec};
use linerate_proto::native::{ClientSession, FRAME_LIMIT, Framer, PREFACE_BYTES, Preface, ServerSession};
use linerate_proto::{Admission, Ended, FlowOrder, Input, Output, Place, Progress, Session};
use linerate_units::{Bytes, Span, Timestamp};

use crate::seeds::messages;

/// The client's session.
pub fn native_client(script: &[u8]) {
    let drain = Span::from_secs(1);
    let client = ClientSession::new(Timestamp::START, HostInfo::default(), TestSpec::default(), drain);
    Stage { session: client, now: Timestamp::START, over: false }.play(script);
}

/// The server's session.
pub fn native_server(script: &[u8]) {
    let server = ServerSession::new(Timestamp::START);
    Stage { session: server, now: Timestamp::START, over: false }.play(script);
}

struct Stage<S> {
    session: S,
    now: Timestamp,
    /// The session said that it is done.
    over: bool,
}

impl<S: Session> Stage<S> {
    fn play(mut self, script: &[u8]) {
        self.drain();
        let mut script = Script { rest: script };
        while let Some(step) = script.byte() {
            if self.step(step, &mut script).is_none() {
                return;
            }
        }
    }

    /// One step; absent when the session or the script has ended.
    fn step(&mut self, step: u8, script: &mut Script<'_>) -> Option<()> {
        match step % 12 {
            0 => self.feed(Input::Bytes(&Preface::CONTROL.encode())),
            1 => self.feed(Input::Bytes(&frame(messages().get(usize::from(script.byte()?))?))),
            2 => self.feed(Input::Bytes(&frame(script.some()?))),
            3 => self.feed(Input::Bytes(script.some()?)),
            4 => self.pass(Span::from_ms(u64::from(script.byte()?) * 50)),
            5 => self.feed(Input::FlowsOpen),
            6 => {
                let flows = script.some()?.iter().map(|byte| order(*byte)).collect();
                self.feed(Input::Measure(flows))
            }
            7 => {
                let ended = ended(script.byte()?);
                self.feed(Input::FlowEnded(Box::new(ended)))
            }
            8 => {
                let flow = u16::from(script.byte()?);
                self.feed(Input::SenderDone { flow })
            }
            9 => {
                let admission = Admission { host: HostInfo::default(), cookie: [7; 16], neighbours: 1 };
                self.feed(Input::Admit(Box::new(admission)))
            }
            10 => self.decide(script.byte()?),
            _ => {
                let flow = u16::from(script.byte()?);
                self.feed(Input::Progress(Progress {
                    flow,
                    side: Side::Sender,
                    bytes: Bytes::new(u64::MAX),
                    elapsed_ns: Span::ZERO,
                    srtt_ns: None,
                    retransmits: Some(1),
                }))
            }
        }
    }

    fn decide(&mut self, which: u8) -> Option<()> {
        match which % 7 {
            0 => self.feed(Input::Wait(Place { place: 1, wait_ns: Span::from_secs(1) })),
            1 => self.feed(Input::Refuse("no".to_owned())),
            2 => self.feed(Input::Finish),
            3 => self.feed(Input::Stop),
            4 => self.feed(Input::Alive),
            5 => self.feed(Input::FlowsFailed("no sockets".to_owned())),
            _ => self.feed(Input::Closed),
        }
    }

    /// Lets time pass, with a tick at every deadline on the way.
    fn pass(&mut self, span: Span) -> Option<()> {
        let until = self.now + span;
        while let Some(deadline) = self.session.deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.feed(Input::Tick)?;
            let next = self.session.deadline();
            assert!(next.is_none_or(|next| next > self.now), "a tick at its deadline must move the deadline");
        }
        self.now = until;
        Some(())
    }

    /// Absent when the session has failed, which ends it.
    fn feed(&mut self, input: Input<'_>) -> Option<()> {
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
                Output::Send(bytes) => assert!(is_well_formed(&bytes), "what we send must be readable"),
                Output::Done => self.over = true,
                _ => {}
            }
        }
    }
}

/// A preface, or one whole message within the limit.
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

/// Bytes behind their length.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

fn order(byte: u8) -> FlowOrder {
    let direction = if byte % 2 == 0 { Direction::Upload } else { Direction::Download };
    FlowOrder { flow: u16::from(byte), direction, length_bytes: Bytes::new(1) }
}

fn ended(byte: u8) -> Ended {
    let side = if byte % 2 == 0 { Side::Sender } else { Side::Receiver };
    let settings = SideSettings::default();
    Ended { flow: u16::from(byte), side, settings, tally: Tally::default(), caveats: Vec::new() }
}

/// The bytes not yet played.
struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A length in one byte, and at most so many bytes.
    fn some(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.rest.len());
        let (some, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(some)
    }
}
