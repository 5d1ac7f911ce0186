//! The server: a listener, and a session for each client.

use std::collections::VecDeque;

use linerate_units::Timestamp;

use super::MAX_STREAMS;
use super::options::NuttcpServerOptions;
use super::session::NuttcpSession;
use super::wire::NuttcpVersion;
use crate::EmbeddedServerConfig;
use crate::sessions::Sessions;
use crate::stand_in::{FlowId, Input, Link, LinkOptions, Output, RunId, StandIn};

/// The listener on the control port.
const LISTENER: Link = Link(0);

/// Most concurrent clients; each has a block of link numbers for its streams.
const MAX_SESSIONS: u16 = 400;

/// A nuttcp server.
#[derive(Debug)]
pub struct NuttcpServer {
    options: NuttcpServerOptions,
    sessions: Sessions<NuttcpSession>,
    /// The clients that are served one after the other, the present one first.
    turns: VecDeque<u16>,
    next_run: RunId,
    out: VecDeque<Output>,
    over: bool,
}

impl NuttcpServer {
    /// Creates a server for a command line.
    #[must_use]
    pub fn new(options: NuttcpServerOptions) -> Self {
        Self {
            options,
            sessions: Sessions::default(),
            turns: VecDeque::new(),
            next_run: RunId(0),
            out: VecDeque::new(),
            over: false,
        }
    }

    /// Creates the server for a port that is shared with other protocols.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(NuttcpServerOptions {
            control_port: config.port,
            ..NuttcpServerOptions::default()
        }))
    }

    fn listen(&mut self) {
        self.out.push_back(Output::Listen {
            link: LISTENER,
            port: self.options.control_port,
            options: LinkOptions {
                ipv4: self.options.ipv4,
                ipv6: self.options.ipv6,
                no_delay: true,
                ..LinkOptions::default()
            },
        });
    }

    fn accept(&mut self, now: Timestamp, link: Link, peer: Option<std::net::SocketAddr>) {
        let most = if self.options.one_shot { 1 } else { MAX_SESSIONS };
        let Some(number) = self.sessions.free_number(most) else {
            self.out.push_back(Output::Close { link });
            return;
        };
        let base = 1 + u32::from(number) * u32::from(MAX_STREAMS);
        let run = self.next_run;
        self.next_run = self.next_run.next();
        let mut session =
            NuttcpSession::new(now, self.options.clone(), link, peer, base, FlowId(number), run);
        if self.options.single {
            self.turns.push_back(number);
            if self.turns.len() > 1 {
                session.wait();
            }
        }
        self.sessions.insert(number, session);
    }

    /// Collects the outputs of the sessions. A server for one client ends with it; one that serves one after the
    /// other continues with the next.
    fn collect(&mut self, now: Timestamp) {
        loop {
            let ended = self.sessions.collect(&mut self.out);
            let Some(session) = ended.last() else { return };
            if self.options.one_shot {
                return self.exit(i32::from(!session.complete));
            }
            self.turns.retain(|number| self.sessions.has(*number));
            if let Some(next) = self.turns.front().and_then(|number| self.sessions.get_mut(*number)) {
                next.serve(now);
            }
        }
    }

    fn exit(&mut self, code: i32) {
        if !std::mem::replace(&mut self.over, true) {
            self.out.push_back(Output::Close { link: LISTENER });
            self.out.push_back(Output::Exit(code));
        }
    }
}

impl StandIn for NuttcpServer {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match &input {
            Input::Begin => self.listen(),
            Input::Opened { link: LISTENER, .. } => {}
            Input::NotOpened { link: LISTENER, reason } => {
                let (version, text, number) = (NuttcpVersion::REPORTED, &reason.text, reason.errno);
                self.out.push_back(Output::PrintError(format!(
                    "nuttcp: v{version}: Error: bind: {text}\nerrno={number}\n"
                )));
                self.exit(1);
            }
            Input::Accepted { listener: LISTENER, link, opened } => self.accept(now, *link, opened.remote),
            Input::Signal(number) => {
                self.sessions.for_each(|session| session.end(Some("interrupted".to_owned())));
                self.collect(now);
                self.exit(128 + number);
            }
            _ => self.sessions.input(now, &input),
        }
        self.collect(now);
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.sessions.deadline()
    }
}
