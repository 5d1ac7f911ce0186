//! The end that connects, determines the number of repeats, and prints the result.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use linerate_model::Direction;
use linerate_units::{Span, Timestamp};

use super::argv::NetpipeOptions;
use super::report;
use super::series::{FLOW, NetpipeSeries, OTHER_MODE, SeriesProgress};
use crate::stand_in::{Input, Link, LinkOptions, Opened, Output, Planned, RunId, StandIn, SystemError};

/// A listener that is closed immediately: it shows the initial buffer sizes of a connection.
const PROBE: Link = Link(0);

/// The only run.
const RUN: RunId = RunId(0);

/// Links of connections are numbered from 1 to this, cyclically.
const LAST_LINK: u32 = 60_000;

/// Pause between closing a connection and opening the next: the original closes its listener in this time.
const RECONNECT_PAUSE: Span = Span::from_ms(2);

/// How long the receiver may take to listen again.
const RECONNECT_TIMEOUT: Span = Span::from_secs(5);

/// ECONNREFUSED.
const REFUSED: i32 = 111;

/// NPtcp with `-h`.
pub struct NetpipeTransmitter {
    host: String,
    options: NetpipeOptions,
    outputs: VecDeque<Output>,
    series: NetpipeSeries,
    link: u32,
    begun: bool,
    /// Sum of a connection's send and receive buffers, bytes.
    buffers: u64,
    /// When to reconnect.
    connect_at: Option<Timestamp>,
    /// Until when the receiver must listen again.
    connect_until: Option<Timestamp>,
    over: bool,
}

impl NetpipeTransmitter {
    /// A transmitter to the receiver on `host`, whose address the driver knows.
    #[must_use]
    pub fn new(host: &str, options: NetpipeOptions) -> Self {
        Self {
            host: host.to_owned(),
            series: NetpipeSeries::new(true, RUN, options.clone()),
            options,
            outputs: VecDeque::new(),
            link: 1,
            begun: false,
            buffers: u64::MAX,
            connect_at: None,
            connect_until: None,
            over: false,
        }
    }

    fn link_options(&self) -> LinkOptions {
        LinkOptions { ipv4: !self.host.contains(':'), ..self.options.link() }
    }

    fn probe(&mut self) {
        let local = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let options = LinkOptions { local, ..self.options.link() };
        self.outputs.push_back(Output::Listen { link: PROBE, port: 0, options });
    }

    fn probed(&mut self, opened: &Opened) {
        self.outputs.push_back(Output::Close { link: PROBE });
        self.outputs.push_back(Output::PrintError(report::buffers(opened.snd_buf, opened.rcv_buf)));
        self.buffers = opened.snd_buf.saturating_add(opened.rcv_buf);
        self.connect();
    }

    fn connect(&mut self) {
        self.connect_at = None;
        let (link, port, options) = (Link(self.link), self.options.port, self.link_options());
        self.outputs.push_back(Output::Connect { link, port, to: None, options });
    }

    fn connected(&mut self, now: Timestamp, link: Link) {
        self.connect_until = None;
        if !self.begun {
            self.begun = true;
            self.series.hold(self.buffers);
            self.outputs.append(&mut self.series.outputs);
            self.outputs.push_back(Output::Plan(Box::new(planned(RUN, link, true, &self.options))));
        }
        self.series.connected(now, link, Vec::new());
    }

    fn not_connected(&mut self, now: Timestamp, reason: &SystemError) {
        if reason.errno == REFUSED && self.connect_until.is_some_and(|until| now < until) {
            self.connect_at = Some(now + RECONNECT_PAUSE);
            return;
        }
        let (text, code) = if reason.errno == 0 {
            (format!("NetPIPE: invalid hostname '{}'\n", self.host), 251)
        } else {
            (format!("Client: Cannot Connect! errno={}\n", reason.errno), 246)
        };
        self.outputs.push_back(Output::Print(text));
        if self.begun {
            self.outputs.push_back(Output::PrintError(OTHER_MODE.to_owned()));
        }
        self.end(code, Some(reason.text.clone()));
    }

    fn end(&mut self, code: i32, trouble: Option<String>) {
        if self.begun {
            self.outputs.push_back(Output::Close { link: Link(self.link) });
            self.outputs.push_back(Output::RunOver { run: RUN, trouble });
        }
        self.outputs.push_back(Output::Exit(code));
        self.over = true;
        (self.connect_at, self.connect_until) = (None, None);
    }

    /// Executes the outputs of the series and follows its progress.
    fn follow(&mut self, now: Timestamp) {
        self.outputs.append(&mut self.series.outputs);
        match self.series.progress {
            SeriesProgress::Over(code) => {
                let trouble = (code != 0).then(|| "the series was not finished".to_owned());
                self.end(code, trouble);
            }
            SeriesProgress::Reconnect if self.connect_until.is_none() => {
                self.outputs.push_back(Output::Close { link: Link(self.link) });
                self.link = self.link % LAST_LINK + 1;
                self.connect_at = Some(now + RECONNECT_PAUSE);
                self.connect_until = Some(now + RECONNECT_TIMEOUT);
            }
            SeriesProgress::Reconnect | SeriesProgress::Going => {}
        }
    }
}

impl StandIn for NetpipeTransmitter {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match input {
            Input::Begin => self.probe(),
            Input::Opened { link: PROBE, opened } => self.probed(&opened),
            Input::Opened { link, .. } if link == Link(self.link) => self.connected(now, link),
            Input::NotOpened { link: PROBE, reason } => {
                let text = format!("NetPIPE: can't open stream socket! errno={}\n", reason.errno);
                self.outputs.push_back(Output::Print(text));
                self.end(252, None);
            }
            Input::NotOpened { link, reason } if link == Link(self.link) => self.not_connected(now, &reason),
            Input::Exchanged { link, result } if link == Link(self.link) => {
                self.series.exchanged(now, result)
            }
            Input::NotWritten { name, .. } => {
                self.outputs.push_back(Output::PrintError(format!("Can't open {name} for output\n")));
                self.end(1, Some("the result cannot be written".to_owned()));
            }
            Input::Tick if self.connect_at.is_some_and(|at| now >= at) => self.connect(),
            Input::Signal(number) => self.end(128 + number, Some("interrupted".to_owned())),
            _ => {}
        }
        if !self.over {
            self.follow(now);
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.connect_at
    }
}

pub(super) fn planned(run: RunId, link: Link, client: bool, options: &NetpipeOptions) -> Planned {
    Planned {
        run,
        tool: "netpipe",
        peer: None,
        link,
        client,
        spec: options.spec(),
        // An integrity check has no times.
        flows: if options.integrity { Vec::new() } else { vec![(FLOW, Direction::Upload)] },
        expected: None,
    }
}
