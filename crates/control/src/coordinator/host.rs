//! One host of the test bed: its connection and its state.

use linerate_sock::handle::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_proto::Ticket;
use linerate_proto::agent::{AGENT, About, AgentInput, AgentOutput, CoordinatorEnd};
use linerate_sock::open::{AllowedIpVersion, ConnectOptions, connect_tcp, resolve};
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::{Mono, SocketOptions, clock, netns};
use linerate_units::{Span, Timestamp};

use super::clocks::AgentClockOffset;
use super::test_bed::{HostRef, HostState};
use crate::control_stream::ControlStream;
use crate::dialogue_loop::DialogueLoop;
use crate::error::ControlError;
use crate::tls::encrypt;

/// Timeout for opening the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the stop flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Number of clock exchanges on connecting. The fastest of them has the smallest error.
pub(super) const PINGS: usize = 16;

/// A host of the test bed. Without a dialogue it is not connected.
#[derive(Default)]
pub(super) struct CoordinatorHost {
    dialogue: Option<DialogueLoop<CoordinatorEnd>>,
    about: Option<Box<About>>,
    pub(super) offset: AgentClockOffset,
    /// The held place in its queue.
    pub(super) kept: Option<Ticket>,
    /// From when on the agent counts how long the place is held.
    pub(super) held_since: Mono,
    /// Whether settings of the host were changed and not restored.
    pub(super) in_force: bool,
    /// Number of the last job.
    last_job: u32,
    /// Outputs that arrived while no call was reading them.
    early: Vec<AgentOutput>,
}

impl CoordinatorHost {
    /// Connects, and requests the description of the host and its clock offset.
    pub(super) fn reach(
        host: &HostRef,
        name: &str,
        epoch: Mono,
        stop: &AtomicBool,
    ) -> Result<Self, ControlError> {
        let stream = connect(host, stop)?;
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce)
            .map_err(|error| ControlError::Local(format!("no random numbers: {error}")))?;
        let now = Timestamp::from_ns(clock::now().as_ns().saturating_sub(epoch.as_ns()));
        let end = CoordinatorEnd::new(now, host.token.clone(), nonce, name.to_owned())
            .with_channel_binding(stream.channel_binding()?);
        let mut dialogue = DialogueLoop::new(end, stream, epoch)?;
        let about = wait(&mut dialogue, stop, |output| match output {
            AgentOutput::Welcomed(about) => Some(about),
            _ => None,
        })?;
        let mut exchanges = Vec::with_capacity(PINGS);
        for _ in 0..PINGS {
            dialogue.input(AgentInput::Ping)?;
            exchanges.push(wait(&mut dialogue, stop, |output| match output {
                AgentOutput::Pong(exchange) => Some(exchange),
                _ => None,
            })?);
        }
        let offset = AgentClockOffset::of(&exchanges).unwrap_or_default();
        Ok(Self { dialogue: Some(dialogue), about: Some(about), offset, ..Self::default() })
    }

    pub(super) fn about(&self) -> Option<&About> {
        self.about.as_deref()
    }

    pub(super) fn state(&self) -> Option<HostState> {
        let about = self.about.as_deref().filter(|_| self.connected())?;
        Some(HostState {
            host: about.host.clone(),
            world: about.world,
            about: about.clone(),
            offset_ns: self.offset.ns,
            offset_error: self.offset.error(),
        })
    }

    pub(super) fn connected(&self) -> bool {
        self.dialogue.is_some()
    }

    /// Whether the connection is still open; reads what has arrived.
    pub(super) fn is_there(&mut self) -> bool {
        match self.poll() {
            Ok(outputs) => self.early.extend(outputs),
            Err(_) => return false,
        }
        self.connected()
    }

    /// A job number that is new on this connection.
    pub(super) fn next_job(&mut self) -> u32 {
        self.last_job += 1;
        self.last_job
    }

    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, Interest)> {
        self.dialogue.as_ref().and_then(DialogueLoop::interest)
    }

    pub(super) fn deadline(&self) -> Mono {
        if self.early.is_empty() {
            self.dialogue.as_ref().map_or(Mono::FAR, DialogueLoop::deadline)
        } else {
            Mono(0)
        }
    }

    /// For how long its agent has counted that the place is held; zero without a place.
    pub(super) fn held_for(&self) -> Span {
        self.ticket().map(|_| clock::now().since(self.held_since).into()).unwrap_or_default()
    }

    /// The outputs that have arrived. An error means that the connection has ended; earlier outputs are then
    /// available from [`CoordinatorHost::drain_outputs`].
    pub(super) fn poll(&mut self) -> Result<Vec<AgentOutput>, ControlError> {
        let mut all = std::mem::take(&mut self.early);
        if let Some(dialogue) = &mut self.dialogue {
            match dialogue.poll() {
                Ok(outputs) => all.extend(outputs),
                Err(error) => {
                    all.extend(dialogue.drain_outputs());
                    self.early = all;
                    self.dialogue = None;
                    return Err(error);
                }
            }
        }
        Ok(all)
    }

    /// The outputs that arrived before the connection ended.
    pub(super) fn drain_outputs(&mut self) -> Vec<AgentOutput> {
        std::mem::take(&mut self.early)
    }

    pub(super) fn ask(&mut self, input: AgentInput<'_>) -> Result<(), ControlError> {
        let Some(dialogue) = &mut self.dialogue else {
            return Err(ControlError::Local("the host is not connected".to_owned()));
        };
        let asked = dialogue.input(input);
        if asked.is_err() {
            self.early.extend(dialogue.drain_outputs());
            self.dialogue = None;
        }
        asked
    }

    pub(super) fn finish(&mut self) {
        if let Some(mut dialogue) = self.dialogue.take() {
            let _ = dialogue.input(AgentInput::Finish);
            dialogue.flush_at_end();
        }
    }
}

/// What happened at a host.
pub(super) enum CoordinatorHostEvent {
    Message(AgentOutput),
    Gone(String),
}

/// Waits at most until `until`; returns what has arrived from any of these hosts.
pub(super) fn listen(hosts: &mut [CoordinatorHost], until: Mono) -> Vec<(usize, CoordinatorHostEvent)> {
    let deadline = hosts.iter().map(CoordinatorHost::deadline).fold(until, Mono::min);
    let fds: Vec<_> = hosts.iter().filter_map(CoordinatorHost::interest).collect();
    // An error of the poll will show up on the connections themselves.
    let _ = poll_few(&fds, deadline);
    let mut events = Vec::new();
    for (at, host) in hosts.iter_mut().enumerate() {
        let result = host.poll();
        let messages = result.as_ref().map_or_else(|_| host.drain_outputs(), |_| Vec::new());
        let gone = result.as_ref().err().map(ToString::to_string);
        let messages = messages.into_iter().chain(result.into_iter().flatten());
        events.extend(messages.map(|message| (at, CoordinatorHostEvent::Message(message))));
        events.extend(gone.map(|why| (at, CoordinatorHostEvent::Gone(why))));
    }
    events
}

/// Connects from a dedicated thread, because entering a namespace changes the thread permanently.
fn connect(host: &HostRef, stop: &AtomicBool) -> Result<ControlStream, ControlError> {
    if let Some(netns) = &host.netns {
        netns::enter_fd(netns)?;
    }
    let port = host.port.unwrap_or(AGENT.default_port);
    let addresses = resolve(&host.address, port, AllowedIpVersion::Any)?;
    let socket = SocketOptions::default();
    let connected =
        connect_tcp(&ConnectOptions { addresses, socket, deadline: clock::now() + CONNECT_TIMEOUT })?;
    match &host.tls {
        None => Ok(ControlStream::plain(connected.stream)),
        Some(trust) => encrypt(connected.stream, &host.address, trust, stop),
    }
}

/// Waits for an output for which `wanted` returns a value.
fn wait<T>(
    dialogue: &mut DialogueLoop<CoordinatorEnd>,
    stop: &AtomicBool,
    wanted: impl Fn(AgentOutput) -> Option<T>,
) -> Result<T, ControlError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(ControlError::Stopped);
        }
        if let Some(found) = dialogue.turn(clock::now() + POLL_INTERVAL, &[])?.into_iter().find_map(&wanted) {
            return Ok(found);
        }
    }
}
