//! The dialogue between a coordinator and an agent over its connection. Both ends share this loop.

use linerate_sock::handle::BorrowedFd;
use std::net::TcpStream;

use linerate_proto::agent::{AgentDialogue, AgentInput, AgentOutput};
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::{Mono, clock};
use linerate_units::Timestamp;

use crate::ControlError;
use crate::control_stream::{Arrival, ControlStream};

/// Most bytes read in one turn, so that deadlines and the owner of the control connection are not delayed.
const MAX_BYTES_PER_TURN: usize = 64 << 10;

/// Most unsent bytes for a peer that reads too slowly; enough for the events of several minutes.
const MAX_UNSENT_BYTES: usize = 64 << 20;

/// One end of the control connection and its connection.
pub(crate) struct DialogueLoop<D> {
    end: D,
    stream: ControlStream,
    epoch: Mono,
    events: Vec<AgentOutput>,
}

impl<D: AgentDialogue> DialogueLoop<D> {
    /// Times of the control connection count from `epoch`.
    pub(crate) fn new(end: D, stream: ControlStream, epoch: Mono) -> Result<Self, ControlError> {
        let local = |error: std::io::Error| ControlError::Local(format!("the connection: {error}"));
        stream.make_ready().map_err(local)?;
        Ok(Self { end, stream, epoch, events: Vec::new() })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.tcp()
    }

    /// Converts an instant to a time of the control connection.
    pub(crate) fn time_of(&self, at: Mono) -> Timestamp {
        Timestamp::from_ns(at.as_ns().saturating_sub(self.epoch.as_ns()))
    }

    /// Converts a time of the control connection to an instant.
    pub(crate) fn instant_of(&self, at: Timestamp) -> Mono {
        Mono(self.epoch.as_ns().saturating_add(at.as_ns()))
    }

    /// Feeds the end and sends its output.
    pub(crate) fn input(&mut self, input: AgentInput<'_>) -> Result<(), ControlError> {
        let result = self.feed(input);
        self.stream.flush();
        result
    }

    /// Like [`DialogueLoop::input`], but the output is sent with the next send or poll.
    pub(crate) fn feed(&mut self, input: AgentInput<'_>) -> Result<(), ControlError> {
        let now = self.time_of(clock::now());
        let result = self.end.input(now, input);
        self.gather();
        result?;
        if self.stream.unsent() > MAX_UNSENT_BYTES {
            return Err(ControlError::Local("the other end does not read its messages".to_owned()));
        }
        Ok(())
    }

    fn execute(&mut self) {
        self.gather();
        self.stream.flush();
    }

    fn gather(&mut self) {
        while let Some(output) = self.end.output() {
            match output {
                AgentOutput::Send(bytes) => self.stream.queue(&bytes),
                other => self.events.push(other),
            }
        }
    }

    /// What to wait for; absent once the peer has closed the connection.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, Interest)> {
        self.stream.interest()
    }

    /// When to poll even if nothing has arrived.
    pub(crate) fn deadline(&self) -> Mono {
        match self.end.deadline() {
            _ if !self.events.is_empty() || self.stream.has_decrypted() => Mono(0),
            Some(at) => self.instant_of(at),
            None => Mono::FAR,
        }
    }

    /// Handles what has arrived and returns the outputs for the owner. Never waits.
    pub(crate) fn poll(&mut self) -> Result<Vec<AgentOutput>, ControlError> {
        self.execute();
        self.read()?;
        if self.end.deadline().is_some_and(|deadline| clock::now() >= self.instant_of(deadline)) {
            self.input(AgentInput::Tick)?;
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// The outputs that had not been returned when the dialogue failed.
    pub(crate) fn drain_outputs(&mut self) -> Vec<AgentOutput> {
        std::mem::take(&mut self.events)
    }

    /// Like [`DialogueLoop::poll`], after waiting until something arrives, `until` has passed, or one of `others` is
    /// readable.
    pub(crate) fn turn(
        &mut self,
        until: Mono,
        others: &[BorrowedFd<'_>],
    ) -> Result<Vec<AgentOutput>, ControlError> {
        self.execute();
        if self.events.is_empty() {
            let mut fds: Vec<_> = self.interest().into_iter().collect();
            fds.extend(others.iter().map(|fd| (*fd, Interest::READ)));
            poll_few(&fds, until.min(self.deadline()))?;
        }
        self.poll()
    }

    fn read(&mut self) -> Result<(), ControlError> {
        let mut bytes = [0; 16 << 10];
        let mut left = MAX_BYTES_PER_TURN;
        // Unread bytes wake the next turn immediately.
        while !self.stream.is_closed() && left > 0 {
            match self.stream.read(&mut bytes)? {
                Arrival::Bytes(count) => {
                    left = left.saturating_sub(count);
                    self.input(AgentInput::Bytes(&bytes[..count]))?;
                }
                Arrival::Nothing => return Ok(()),
                Arrival::Closed => self.input(AgentInput::Closed)?,
            }
        }
        Ok(())
    }

    /// Sends the remaining bytes, so that the final message of this end arrives.
    pub(crate) fn flush_at_end(&mut self) {
        self.stream.flush_at_end();
    }
}
