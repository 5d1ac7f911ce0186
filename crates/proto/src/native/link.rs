//! What both ends of a control connection share: preface, frames, heartbeats.

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use super::frame::{FRAME_LIMIT, Framer, HELLO_LIMIT};
use super::message::NativeMessage;
use super::preface::{ConnectionPurpose, PREFACE_BYTES, Preface, looks_like};
use crate::PeerError;
use crate::allowance::Allowance;
use crate::session::SessionOutput;
use crate::watch::Watch;

/// Most bytes of a trial message that are free; a longer one counts like any other message.
const MAX_TRIAL_MESSAGE_BYTES: usize = 512;

/// A control connection without its socket.
#[derive(Debug)]
pub(super) struct NativeConnection {
    framer: Framer,
    preface: Option<Vec<u8>>,
    outputs: VecDeque<SessionOutput>,
    watch: Watch,
    allowance: Allowance,
    greeted: bool,
}

impl NativeConnection {
    pub(super) fn new(now: Timestamp, during: &'static str) -> Self {
        Self {
            framer: Framer::new(HELLO_LIMIT),
            preface: Some(Vec::new()),
            outputs: VecDeque::new(),
            watch: Watch::new(now, during),
            allowance: Allowance::new(now),
            greeted: false,
        }
    }

    /// Notes that the prefaces were already exchanged.
    pub(super) fn prefaces_exchanged(&mut self) {
        self.preface = None;
        self.greeted = true;
    }

    /// Trusts the peer: larger messages and heartbeats from now on.
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

    pub(super) fn send(&mut self, now: Timestamp, message: &NativeMessage) -> Result<(), PeerError> {
        let bytes = Framer::encode(message)?;
        self.watch.note_sent(now);
        self.outputs.push_back(SessionOutput::Send(bytes));
        Ok(())
    }

    /// Sends our preface, once.
    pub(super) fn send_preface(&mut self, now: Timestamp) {
        if std::mem::replace(&mut self.greeted, true) {
            return;
        }
        self.watch.note_sent(now);
        self.outputs.push_back(SessionOutput::Send(Preface::CONTROL.encode().to_vec()));
    }

    pub(super) fn put(&mut self, output: SessionOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn pop(&mut self) -> Option<SessionOutput> {
        self.outputs.pop_front()
    }

    /// Notes that the peer is alive although its messages may be late.
    pub(super) fn alive(&mut self, now: Timestamp) {
        self.watch.note_received(now);
    }

    /// Sets whether a measurement is running.
    pub(super) fn measuring(&mut self, now: Timestamp, measuring: bool) {
        self.allowance.measuring(now, usize::from(measuring));
    }

    /// Adds received bytes; [`Self::pull`] then returns the messages.
    pub(super) fn bytes(&mut self, now: Timestamp, bytes: &[u8]) -> Result<(), PeerError> {
        self.watch.note_received(now);
        self.allowance.bytes(now, bytes.len())?;
        let Some(held) = &mut self.preface else {
            self.framer.push(bytes);
            return Ok(());
        };
        held.extend_from_slice(bytes);
        let Some(preface) = Preface::decode(held)? else { return Ok(()) };
        if preface.connection != ConnectionPurpose::Control {
            return Err(PeerError::Misbehaved {
                what: "the control connection began as another kind".into(),
            });
        }
        let rest = held.split_off(PREFACE_BYTES);
        self.preface = None;
        self.framer.push(&rest);
        Ok(())
    }

    /// Whether the peer's preface has arrived.
    pub(super) fn known(&self) -> bool {
        self.preface.is_none()
    }

    pub(super) fn pull(&mut self) -> Result<Option<NativeMessage>, PeerError> {
        if self.preface.is_some() {
            return Ok(None);
        }
        let message = self.framer.pull()?;
        // At most one of each is outstanding, so this end limits their rate.
        if let Some(NativeMessage::Trial(_) | NativeMessage::TrialCounted(_)) = &message {
            self.allowance.give_back(MAX_TRIAL_MESSAGE_BYTES);
        }
        if message.is_some() {
            self.allowance.message()?;
        }
        Ok(message)
    }

    /// The error when the peer has closed the connection.
    pub(super) fn closed(&self) -> PeerError {
        match &self.preface {
            // A few bytes and a close: some services answer unknown input like this.
            Some(held) if !held.is_empty() => PeerError::NotOurs { what: looks_like(held).into() },
            Some(_) => {
                PeerError::NotOurs { what: "a service that closes the connection without a reply".into() }
            }
            None => self.watch.closed(),
        }
    }

    /// Handles passed deadlines: silence and late steps are errors, a due heartbeat is sent.
    pub(super) fn tick(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.watch.check(now)? {
            self.send(now, &NativeMessage::Heartbeat)?;
        }
        Ok(())
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.watch.deadline()
    }
}
