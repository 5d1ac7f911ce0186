//! What both ends share: the first bytes, frames, heartbeats.

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use super::MAGIC;
use super::dialogue::AgentOutput;
use super::message::AgentMessage;
use crate::PeerError;
use crate::allowance::Allowance;
use crate::native::{FRAME_LIMIT, Framer, HELLO_LIMIT, looks_like};
use crate::watch::Watch;

/// A connection without its socket.
#[derive(Debug)]
pub(super) struct AgentConnection {
    framer: Framer,
    /// The first bytes of the other end, until they are complete.
    start: Option<Vec<u8>>,
    outputs: VecDeque<AgentOutput>,
    watch: Watch,
    allowance: Allowance,
    greeted: bool,
}

impl AgentConnection {
    pub(super) fn new(now: Timestamp, during: &'static str, allowed: Span) -> Self {
        let mut watch = Watch::new(now, during);
        watch.begin_step(now, during, allowed);
        Self {
            framer: Framer::new(HELLO_LIMIT),
            start: Some(Vec::new()),
            outputs: VecDeque::new(),
            watch,
            allowance: Allowance::new(now),
            greeted: false,
        }
    }

    /// Trusts the other end: larger messages and heartbeats from now on.
    pub(super) fn trust(&mut self, now: Timestamp) {
        self.framer.set_limit(FRAME_LIMIT);
        self.watch.start_heartbeats(now);
    }

    /// Begins a step with a deadline.
    pub(super) fn begin_step(&mut self, now: Timestamp, during: &'static str, allowed: Span) {
        self.watch.begin_step(now, during, allowed);
    }

    /// Begins a step without a deadline, which only heartbeats guard.
    pub(super) fn begin_untimed_step(&mut self, during: &'static str) {
        self.watch.begin_untimed_step(during);
    }

    pub(super) fn send(&mut self, now: Timestamp, message: &AgentMessage) -> Result<(), PeerError> {
        let bytes = Framer::encode(message)?;
        self.watch.note_sent(now);
        if !std::mem::replace(&mut self.greeted, true) {
            self.outputs.push_back(AgentOutput::Send(MAGIC.to_vec()));
        }
        self.outputs.push_back(AgentOutput::Send(bytes));
        Ok(())
    }

    pub(super) fn put(&mut self, output: AgentOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn pop(&mut self) -> Option<AgentOutput> {
        self.outputs.pop_front()
    }

    /// Sets the number of running jobs about which the other end sends events.
    pub(super) fn measuring(&mut self, now: Timestamp, jobs: usize) {
        // Each job has the events of two ends.
        self.allowance.measuring(now, 2 * jobs);
    }

    /// Adds received bytes; [`Self::pull`] then returns the messages.
    pub(super) fn bytes(&mut self, now: Timestamp, bytes: &[u8]) -> Result<(), PeerError> {
        self.watch.note_received(now);
        self.allowance.bytes(now, bytes.len())?;
        let Some(held) = &mut self.start else {
            self.framer.push(bytes);
            return Ok(());
        };
        held.extend_from_slice(bytes);
        let known = held.len().min(MAGIC.len());
        if held[..known] != MAGIC[..known] {
            return Err(PeerError::NotOurs { what: looks_like(held).into() });
        }
        if held.len() >= MAGIC.len() {
            let rest = held.split_off(MAGIC.len());
            self.start = None;
            self.framer.push(&rest);
        }
        Ok(())
    }

    pub(super) fn pull(&mut self) -> Result<Option<AgentMessage>, PeerError> {
        if self.start.is_some() {
            return Ok(None);
        }
        let message = self.framer.pull()?;
        if message.is_some() {
            self.allowance.message()?;
        }
        Ok(message)
    }

    /// The error when the other end has closed the connection.
    pub(super) fn closed(&self) -> PeerError {
        match &self.start {
            Some(held) if !held.is_empty() => PeerError::NotOurs { what: looks_like(held).into() },
            Some(_) => PeerError::NotOurs {
                what: "a service that closes the connection without a reply, as a linerate server without \
                       agents does"
                    .into(),
            },
            None => self.watch.closed(),
        }
    }

    /// Handles passed deadlines: silence and late steps are errors, a due heartbeat is sent.
    pub(super) fn tick(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.watch.check(now)? {
            self.send(now, &AgentMessage::Heartbeat)?;
        }
        Ok(())
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.watch.deadline()
    }
}

pub(super) fn misbehaved(what: String) -> PeerError {
    PeerError::Misbehaved { what: what.into() }
}
