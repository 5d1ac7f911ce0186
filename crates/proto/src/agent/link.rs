//! What both ends share: the first bytes, frames, heartbeats, deadlines.

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use super::MAGIC;
use super::dialogue::Output;
use super::message::Message;
use crate::PeerError;
use crate::native::{FRAME_LIMIT, Framer, HELLO_LIMIT, looks_like};

/// How often an end that has nothing to say says that it lives.
const HEARTBEAT: Span = Span::from_ms(500);

/// How long an end may be silent: a measurement that fills the path delays its messages too.
const SILENCE: Span = Span::from_secs(6);

/// A connection without its socket.
#[derive(Debug)]
pub(super) struct Link {
    framer: Framer,
    /// The other end's first bytes, until they are whole.
    start: Option<Vec<u8>>,
    outputs: VecDeque<Output>,
    heard: Timestamp,
    said: Timestamp,
    step: Option<Step>,
    talking: bool,
    greeted: bool,
    during: &'static str,
}

/// Something that has to happen by a time.
#[derive(Debug, Clone, Copy)]
struct Step {
    by: Timestamp,
    allowed: Span,
}

impl Link {
    pub(super) fn new(now: Timestamp, during: &'static str, allowed: Span) -> Self {
        Self {
            framer: Framer::new(HELLO_LIMIT),
            start: Some(Vec::new()),
            outputs: VecDeque::new(),
            heard: now,
            said: now,
            step: Some(Step { by: now + allowed, allowed }),
            talking: false,
            greeted: false,
            during,
        }
    }

    /// The other end is known: larger messages and heartbeats from now on.
    pub(super) fn trust(&mut self, now: Timestamp) {
        self.framer.set_limit(FRAME_LIMIT);
        self.talking = true;
        self.heard = now;
    }

    /// Begins a step that has to end in time.
    pub(super) fn step(&mut self, now: Timestamp, during: &'static str, allowed: Span) {
        self.during = during;
        self.step = Some(Step { by: now + allowed, allowed });
    }

    /// Begins a step that only the heartbeats guard.
    pub(super) fn rest(&mut self, during: &'static str) {
        self.during = during;
        self.step = None;
    }

    pub(super) fn send(&mut self, now: Timestamp, message: &Message) -> Result<(), PeerError> {
        let bytes = Framer::encode(message)?;
        self.said = now;
        if !std::mem::replace(&mut self.greeted, true) {
            self.outputs.push_back(Output::Send(MAGIC.to_vec()));
        }
        self.outputs.push_back(Output::Send(bytes));
        Ok(())
    }

    pub(super) fn put(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes bytes in; the messages are then read with [`Self::pull`].
    pub(super) fn bytes(&mut self, now: Timestamp, bytes: &[u8]) -> Result<(), PeerError> {
        self.heard = now;
        let Some(held) = &mut self.start else {
            self.framer.push(bytes);
            return Ok(());
        };
        held.extend_from_slice(bytes);
        let known = held.len().min(MAGIC.len());
        if held[..known] != MAGIC[..known] {
            return Err(PeerError::NotOurs { what: looks_like(held) });
        }
        if held.len() >= MAGIC.len() {
            let rest = held.split_off(MAGIC.len());
            self.start = None;
            self.framer.push(&rest);
        }
        Ok(())
    }

    pub(super) fn pull(&mut self) -> Result<Option<Message>, PeerError> {
        if self.start.is_some() { Ok(None) } else { self.framer.pull() }
    }

    /// What to say when the other end closed the connection.
    pub(super) fn closed(&self) -> PeerError {
        match &self.start {
            Some(held) if !held.is_empty() => PeerError::NotOurs { what: looks_like(held) },
            Some(_) => PeerError::NotOurs {
                what: "a service that closes without a word, as a linerate server without agents does"
                    .to_owned(),
            },
            None => PeerError::Closed { during: self.during },
        }
    }

    /// Deadlines that have passed: silence and missed steps are errors, a heartbeat is sent.
    pub(super) fn tick(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if let Some(step) = self.step.filter(|step| now >= step.by) {
            return Err(silent(self.during, step.allowed));
        }
        if self.talking && now.since(self.heard) >= SILENCE {
            return Err(silent(self.during, SILENCE));
        }
        if self.talking && now.since(self.said) >= HEARTBEAT {
            self.send(now, &Message::Heartbeat)?;
        }
        Ok(())
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let talk = self.talking.then(|| (self.said + HEARTBEAT).min(self.heard + SILENCE));
        earliest(self.step.map(|step| step.by), talk)
    }
}

/// The earlier one of two deadlines.
pub(super) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

pub(super) fn silent(during: &'static str, allowed: Span) -> PeerError {
    PeerError::Silent { during, waited_s: allowed.as_ns() / 1_000_000_000 }
}

pub(super) fn misbehaved(what: String) -> PeerError {
    PeerError::Misbehaved { what }
}
