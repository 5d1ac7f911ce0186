//! The server: a listener, and a session for each client.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_model::ForeignText;
use linerate_units::Timestamp;

use super::argv::NetperfServerOptions;
use super::session::NetperfSession;
use crate::EmbeddedServerConfig;
use crate::sessions::Sessions;
use crate::stand_in::{Input, Link, LinkOptions, Output, StandIn};

/// The listener of the control port.
const LISTENER: Link = Link(0);

/// Most concurrent clients.
const MAX_SESSIONS: u16 = 400;

/// netserver.
#[derive(Debug)]
pub struct NetperfServer {
    options: NetperfServerOptions,
    sessions: Sessions<NetperfSession>,
    out: VecDeque<Output>,
    over: bool,
}

impl NetperfServer {
    /// Creates a server for a command line.
    #[must_use]
    pub fn new(options: NetperfServerOptions) -> Self {
        Self { options, sessions: Sessions::default(), out: VecDeque::new(), over: false }
    }

    /// Creates the server for a port that is shared with other protocols.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(NetperfServerOptions { port: config.port, ..NetperfServerOptions::default() }))
    }

    fn listen(&mut self) {
        let options = LinkOptions {
            local: self.options.local,
            ipv4: self.options.ipv4,
            ipv6: self.options.ipv6,
            no_delay: true,
            ..LinkOptions::default()
        };
        self.out.push_back(Output::Listen { link: LISTENER, port: self.options.port, options });
    }

    fn accept(&mut self, now: Timestamp, link: Link, peer: Option<SocketAddr>) {
        let Some(number) = self.sessions.free_number(MAX_SESSIONS) else {
            return self.out.push_back(Output::Close { link });
        };
        let passphrase = self.options.passphrase.as_deref().map(ForeignText::new);
        let session = NetperfSession::new(now, link, peer, number, MAX_SESSIONS, passphrase);
        self.sessions.insert(number, session);
    }

    fn exit(&mut self, code: i32) {
        self.over = true;
        self.out.push_back(Output::Close { link: LISTENER });
        self.out.push_back(Output::Exit(code));
    }
}

impl StandIn for NetperfServer {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match &input {
            Input::Begin => self.listen(),
            Input::Opened { link: LISTENER, .. } => {
                let text = format!("Starting netserver with {}\n", self.options.listener());
                self.out.push_back(Output::Print(text));
            }
            Input::NotOpened { link: LISTENER, .. } => {
                let text = format!("Unable to start netserver with  {}\n", self.options.listener());
                self.out.push_back(Output::PrintError(text));
                return self.exit(1);
            }
            Input::Accepted { listener: LISTENER, link, opened } => self.accept(now, *link, opened.remote),
            Input::Signal(number) => {
                self.sessions.for_each(|session| session.end(Some("interrupted")));
                self.sessions.collect(&mut self.out);
                return self.exit(128 + number);
            }
            _ => self.sessions.input(now, &input),
        }
        self.sessions.collect(&mut self.out);
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.sessions.deadline()
    }
}
