//! The server: a listener, and a session for each client.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_model::ForeignText;
use linerate_units::Timestamp;

use super::argv::ServerOptions;
use super::session::Session;
use crate::EmbeddedServerConfig;
use crate::stand_in::{Input, Link, LinkOptions, Output, StandIn};

/// The listener of the control port.
const LISTENER: Link = Link(0);

/// Most concurrent clients.
const MAX_SESSIONS: u16 = 400;

/// netserver.
#[derive(Debug)]
pub struct NetperfServer {
    options: ServerOptions,
    /// Keyed by the number that determines their link, flow and runs.
    sessions: BTreeMap<u16, Session>,
    out: VecDeque<Output>,
    over: bool,
}

impl NetperfServer {
    /// Creates a server for a command line.
    #[must_use]
    pub fn new(options: ServerOptions) -> Self {
        Self { options, sessions: BTreeMap::new(), out: VecDeque::new(), over: false }
    }

    /// Creates the server for a port that is shared with other protocols.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(ServerOptions { port: config.port, ..ServerOptions::default() }))
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
        let Some(number) = (0..MAX_SESSIONS).find(|number| !self.sessions.contains_key(number)) else {
            return self.out.push_back(Output::Close { link });
        };
        let passphrase = self.options.passphrase.as_deref().map(ForeignText::new);
        let session = Session::new(now, link, peer, number, MAX_SESSIONS, passphrase);
        self.sessions.insert(number, session);
    }

    /// Collects the outputs of the sessions and removes finished ones.
    fn collect(&mut self) {
        for session in self.sessions.values_mut() {
            self.out.extend(std::iter::from_fn(|| session.output()));
        }
        self.sessions.retain(|_, session| !session.is_over());
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
                self.out.push_back(Output::Complain(text));
                return self.exit(1);
            }
            Input::Accepted { listener: LISTENER, link, opened } => self.accept(now, *link, opened.remote),
            Input::Signal(number) => {
                self.sessions.values_mut().for_each(|session| session.end(Some("interrupted")));
                self.collect();
                return self.exit(128 + number);
            }
            _ => {
                for session in self.sessions.values_mut() {
                    if session.input(now, &input) {
                        break;
                    }
                }
            }
        }
        self.collect();
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.sessions.values().filter_map(Session::deadline).min()
    }
}
