//! A server's place for one sender, from its first query on.
//!
//! The sender opens its data connections between its second and its third request, on ports that other tools
//! have too (5001 and 5002). A place that is reserved before the first answer makes the driver deliver them here,
//! and tells a sender that another test is running before it has opened any.

use std::net::IpAddr;

use linerate_units::{Span, Timestamp};

use super::{NtttcpReceiver, NtttcpReceiverState};
use crate::ntttcp::wire::{IDLE, RUNNING};
use crate::stand_in::{Link, Opened, Output};

/// Without a further connection for this time, all connections of a sender that is ready have arrived. They are
/// in the kernel's queues already, some of them in queues of other threads.
const LAST_CONNECTION_TIME: Span = Span::from_ms(50);

/// The sender that has a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct SyncSession {
    /// Its sync connection.
    link: Link,
    host: Option<IpAddr>,
}

impl NtttcpReceiver {
    /// Handles a query of the state of this server.
    pub(super) fn queried(&mut self, link: Link) {
        match self.state {
            NtttcpReceiverState::Idle => {
                self.session = Some(SyncSession { link, host: self.clients.host(link) });
                self.state = NtttcpReceiverState::Reserving;
                let run = self.next_run;
                self.console.outputs.push_back(Output::Reserve { run, tool: "ntttcp", link });
            }
            // The sender of the last test has left: the answer waits for the end.
            NtttcpReceiverState::Lingering | NtttcpReceiverState::Ending | NtttcpReceiverState::Running
                if !self.is_session_here() =>
            {
                self.early.push(link);
            }
            _ => self.reply(link, RUNNING),
        }
    }

    /// The sender of the session has a place.
    pub(super) fn reserved(&mut self) {
        self.state = NtttcpReceiverState::Reserved;
        match self.session.filter(|session| self.clients.has(session.link)) {
            Some(session) => self.reply(session.link, IDLE),
            None => self.abandoned(),
        }
    }

    /// Another test is running, or there is no place.
    pub(super) fn not_reserved(&mut self, now: Timestamp, why: &str) {
        self.console.info(now, &format!("the test was refused: {why}"));
        self.state = NtttcpReceiverState::Idle;
        if let Some(session) = self.session.take() {
            self.reply(session.link, RUNNING);
            self.console.outputs.push_back(Output::Close { link: session.link });
            self.clients.remove(session.link);
        }
    }

    /// The sender left before the start of its test.
    pub(super) fn abandoned(&mut self) {
        self.give_place_back("the sender left before the test started");
        self.drop_waiting();
        (self.state, self.deadline) = (NtttcpReceiverState::Idle, None);
        self.agreed = self.options.seconds;
    }

    /// Gives the place of a run back that has not begun.
    pub(super) fn give_place_back(&mut self, why: &str) {
        if self.session.take().is_some() {
            let run = self.next_run;
            self.next_run = run.next();
            self.console.outputs.push_back(Output::RunOver { run, trouble: Some(why.to_owned()) });
        }
    }

    /// Whether this is the sync connection of the sender that has a place.
    pub(super) fn is_session(&self, link: Link) -> bool {
        self.session.is_some_and(|session| session.link == link)
    }

    fn is_session_here(&self) -> bool {
        self.session.is_some_and(|session| self.clients.has(session.link))
    }

    /// Whether a data connection belongs to the sender that has a place.
    pub(super) fn is_from_session(&self, opened: &Opened) -> bool {
        let host = opened.remote.map(|remote| remote.ip());
        self.session.is_some_and(|session| session.host == host)
    }

    /// Notes a data connection: more may follow.
    pub(super) fn note_connection(&mut self, now: Timestamp) {
        if let Some(session) = self.session {
            self.clients.is_active(now, session.link);
        }
        if self.state == NtttcpReceiverState::Gathering {
            self.gather(now);
        }
    }

    /// Waits for the last connections of a sender that is ready.
    pub(super) fn gather(&mut self, now: Timestamp) {
        self.state = NtttcpReceiverState::Gathering;
        self.deadline = Some(now + LAST_CONNECTION_TIME);
    }

    /// Asks for the permission to begin: all connections have arrived.
    pub(super) fn ask_for_session(&mut self, now: Timestamp) {
        self.deadline = None;
        if self.waiting.is_empty() {
            // The dialogue does not tell UDP from TCP, and this server has no UDP ports.
            return self.turn_down(now, "no data connection came; UDP needs `linerate ntttcp -r -u`");
        }
        if let Some(session) = self.session {
            self.ask(now, session.link);
        }
    }
}
