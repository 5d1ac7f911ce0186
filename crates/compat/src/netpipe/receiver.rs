//! The end that listens and answers.

use std::collections::VecDeque;
use std::net::IpAddr;

use linerate_units::{Span, Timestamp};

use super::argv::NetpipeOptions;
use super::report;
use super::series::{NetpipeSeries, SeriesProgress};
use super::transmitter::planned;
use crate::stand_in::{Input, Link, Opened, Output, RunId, StandIn, SystemError};

const LISTENER: Link = Link(0);

/// How long the transmitter may take to reconnect.
const RECONNECT_TIMEOUT: Span = Span::from_secs(30);

/// More bytes than this, received before the receiver has sent anything, are not NetPIPE.
const MAX_EARLY_BYTES: usize = 64;

/// NPtcp without `-h`: one series, or, as a server, any number in sequence and in parallel.
///
/// The listener stays open, so a transmitter that reconnects never finds one that is about to close.
pub struct NetpipeReceiver {
    options: NetpipeOptions,
    serves: bool,
    outputs: VecDeque<Output>,
    /// Sum of the listener's send and receive buffers, bytes.
    buffers: u64,
    runs: Vec<NetpipeRun>,
    next_run: RunId,
    over: bool,
}

struct NetpipeRun {
    run: RunId,
    peer: Option<IpAddr>,
    admitted: bool,
    series: NetpipeSeries,
    /// The connection of the series, while it has one.
    link: Option<Link>,
    /// Bytes that were read before they were requested, from this connection or the next.
    early: Vec<u8>,
    /// The connection after a reset that is in progress.
    next: Option<Link>,
    connect_until: Option<Timestamp>,
}

impl NetpipeReceiver {
    /// A receiver for one series, or for any number if it `serves`. In that case its output is irrelevant, and
    /// it ends only on a signal.
    #[must_use]
    pub fn new(options: NetpipeOptions, serves: bool) -> Self {
        Self {
            options,
            serves,
            outputs: VecDeque::new(),
            buffers: u64::MAX,
            runs: Vec::new(),
            next_run: RunId(0),
            over: false,
        }
    }

    fn listening(&mut self, opened: &Opened) {
        self.buffers = opened.snd_buf.saturating_add(opened.rcv_buf);
        self.outputs.push_back(Output::PrintError(report::buffers(opened.snd_buf, opened.rcv_buf)));
    }

    fn accepted(&mut self, link: Link, opened: &Opened) {
        let peer = opened.remote.map(|remote| remote.ip());
        if let (false, Some(running)) = (self.serves, self.runs.first_mut()) {
            let expected = self.options.resets() && running.next.is_none() && running.peer == peer;
            if expected && running.admitted {
                running.next = Some(link);
                running.early.clear();
            } else {
                self.outputs.push_back(Output::Reset { link });
            }
            return;
        }
        let run = self.next_run;
        self.next_run = self.next_run.next();
        let mut series = NetpipeSeries::new(false, run, self.options.clone());
        series.hold(self.buffers);
        self.outputs.push_back(Output::Ask(Box::new(planned(run, link, false, &self.options))));
        let (link, early) = (Some(link), Vec::new());
        self.runs.push(NetpipeRun {
            run,
            peer,
            admitted: false,
            series,
            link,
            early,
            next: None,
            connect_until: None,
        });
    }

    /// Keeps bytes that were read before the series requested them.
    fn early(&mut self, link: Link, bytes: &[u8]) {
        let waits = |running: &&mut NetpipeRun| {
            running.next == Some(link) || (running.link == Some(link) && !running.admitted)
        };
        let Some(running) = self.runs.iter_mut().find(waits) else {
            return;
        };
        running.early.extend_from_slice(bytes);
        if running.early.len() > MAX_EARLY_BYTES {
            running.series.fail("NetPIPE: the peer is not NetPIPE\n", 3);
        }
    }

    fn closed(&mut self, link: Link, reason: Option<SystemError>) {
        let Some(running) = self.runs.iter_mut().find(|running| running.is_on(link)) else {
            return;
        };
        let why = reason.map_or_else(|| "connection closed by the peer".to_owned(), |reason| reason.text);
        let text = format!("NetPIPE: error writing or reading synchronization string: {why}\n");
        running.series.fail(&text, 3);
    }

    fn admitted(&mut self, now: Timestamp, run: RunId) {
        if let Some(running) = self.runs.iter_mut().find(|running| running.run == run && !running.admitted) {
            running.admitted = true;
            running.continue_series(now);
        }
    }

    fn refused(&mut self, run: RunId, why: &str) {
        if let Some(running) = self.runs.iter_mut().find(|running| running.run == run && !running.admitted) {
            running.series.fail(&format!("NetPIPE: {why}\n"), 1);
        }
    }

    fn end(&mut self, code: i32, trouble: Option<&str>) {
        while let Some(running) = self.runs.pop() {
            self.remove_run(&running, trouble.map(str::to_owned));
        }
        self.outputs.push_back(Output::Close { link: LISTENER });
        self.outputs.push_back(Output::Exit(code));
        self.over = true;
    }

    fn remove_run(&mut self, running: &NetpipeRun, trouble: Option<String>) {
        for link in running.link.iter().chain(&running.next) {
            self.outputs.push_back(Output::Close { link: *link });
        }
        if running.admitted {
            self.outputs.push_back(Output::RunOver { run: running.run, trouble });
        }
    }

    /// Executes the outputs of each series and follows its progress.
    fn follow(&mut self, now: Timestamp) {
        for mut running in std::mem::take(&mut self.runs) {
            if running.series.progress == SeriesProgress::Reconnect {
                running.reconnect(now, &mut self.outputs);
            }
            self.outputs.append(&mut running.series.outputs);
            let SeriesProgress::Over(code) = running.series.progress else {
                self.runs.push(running);
                continue;
            };
            let trouble = (code != 0).then_some("the series was not finished");
            self.remove_run(&running, trouble.map(str::to_owned));
            if !self.serves {
                return self.end(code, trouble);
            }
        }
    }
}

impl NetpipeRun {
    fn is_on(&self, link: Link) -> bool {
        self.link == Some(link) || self.next == Some(link)
    }

    fn continue_series(&mut self, now: Timestamp) {
        if let Some(link) = self.link {
            self.connect_until = None;
            self.series.connected(now, link, std::mem::take(&mut self.early));
        }
    }

    fn reconnect(&mut self, now: Timestamp, outputs: &mut VecDeque<Output>) {
        if let Some(link) = self.link.take() {
            outputs.push_back(Output::Close { link });
            self.connect_until = Some(now + RECONNECT_TIMEOUT);
        }
        if let Some(link) = self.next.take() {
            self.link = Some(link);
            self.continue_series(now);
        } else if self.connect_until.is_some_and(|until| now >= until) {
            self.series.fail("NetPIPE: the peer did not connect again\n", 3);
        }
    }
}

impl StandIn for NetpipeReceiver {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match input {
            Input::Begin => {
                let (port, options) = (self.options.port, self.options.link());
                self.outputs.push_back(Output::Listen { link: LISTENER, port, options });
            }
            Input::Opened { link: LISTENER, opened } => self.listening(&opened),
            Input::NotOpened { link: LISTENER, reason } => {
                let text = format!("NetPIPE: server: bind on local address failed! errno={}\n", reason.errno);
                self.outputs.push_back(Output::Print(text));
                return self.end(250, None);
            }
            Input::Accepted { link, opened, .. } => self.accepted(link, &opened),
            Input::Bytes { link, bytes } => self.early(link, bytes),
            Input::Closed { link, reason } => self.closed(link, reason),
            Input::Admitted { run } => self.admitted(now, run),
            Input::Refused { run, why, .. } => self.refused(run, &why),
            Input::Exchanged { link, result } => {
                if let Some(running) = self.runs.iter_mut().find(|running| running.link == Some(link)) {
                    running.series.exchanged(now, result);
                }
            }
            Input::Signal(number) => return self.end(128 + number, Some("interrupted")),
            _ => {}
        }
        self.follow(now);
    }

    fn output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.runs.iter().filter_map(|running| running.connect_until).min()
    }
}
