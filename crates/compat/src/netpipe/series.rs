//! The dialogue of one series over its connections; both ends take the same steps.

mod requests;

use std::collections::VecDeque;

use linerate_model::SizePoint;
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::argv::{NetpipeMode, NetpipeOptions};
use super::report::{self, NetpipeSizeResult};
use super::sizes::{NetpipeSizes, repeats};
use super::wire::{self, QUIT, SYNC};
use crate::stand_in::{Exchange, Exchanged, FlowId, Link, Output, RunId, SystemError};

/// Number of trials of each size.
pub(super) const TRIALS: u32 = 3;

/// The only flow of a run: the messages of its series.
pub(super) const FLOW: FlowId = FlowId(0);

/// Number of messages of the calibration.
const CALIBRATION: u32 = 100;

/// Most consecutive connections that may fail before anything is exchanged.
const MAX_FAILED_CONNECTIONS: u32 = 20;

/// From this message time on, in seconds, the other end may have ended the series although this one has not.
const NEAR_END_SHARE: f64 = 0.9;

pub(super) const OTHER_MODE: &str =
    "NetPIPE: the peer uses another mode: give both ends the same -s -2 -i -I -r -l -u -p and -n\n";

/// ECONNRESET.
const RESET: i32 = 104;
/// EPIPE.
const BROKEN_PIPE: i32 = 32;

/// The state of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeriesProgress {
    /// Waiting for a requested exchange.
    Going,
    /// Needs a new connection.
    Reconnect,
    /// Over, with this exit code.
    Over(i32),
}

/// The purpose of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeStep {
    Sync(SyncPoint),
    /// The receiver reads whether another size or the end follows.
    Head,
    Calibrate,
    Repeats,
    Trial,
    /// One message of an integrity check.
    Checked,
    Time,
    Quit(SyncPoint),
    /// The receiver's answer to the end.
    Bye,
}

/// The position of a synchronization or reset in the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncPoint {
    Connected,
    Calibrated,
    Size,
    Trial,
    End,
}

/// One series at one end.
pub(super) struct NetpipeSeries {
    transmits: bool,
    run: RunId,
    options: NetpipeOptions,
    /// The pending outputs, in order.
    pub(super) outputs: VecDeque<Output>,
    pub(super) progress: SeriesProgress,
    link: Link,
    /// Bytes that were read from the connection before the series requested them.
    early: Vec<u8>,
    /// Bytes that the step has read so far.
    got: Vec<u8>,
    step: ExchangeStep,
    /// The running exchange.
    exchange: Option<Exchange>,
    asked_at: Timestamp,
    /// Whether nothing has been exchanged on this connection yet.
    fresh: bool,
    /// Number of consecutive connections without an exchange.
    wasted: u32,
    resume: Option<SyncPoint>,
    sizes: NetpipeSizes,
    point: u32,
    size: u64,
    /// The receiver has no further size.
    complete: bool,
    previous: u64,
    repeats: u32,
    trial: u32,
    /// Messages of this trial that were checked.
    checked: u32,
    /// Time of one message in this trial and in the best one, in seconds.
    sum: f64,
    best: f64,
    last: f64,
}

impl NetpipeSeries {
    pub(super) fn new(transmits: bool, run: RunId, options: NetpipeOptions) -> Self {
        let sizes = NetpipeSizes::new(options.start, options.upper, options.perturbation);
        Self {
            transmits,
            run,
            outputs: VecDeque::new(),
            progress: SeriesProgress::Going,
            link: Link(0),
            early: Vec::new(),
            got: Vec::new(),
            step: ExchangeStep::Sync(SyncPoint::Connected),
            exchange: None,
            asked_at: Timestamp::START,
            fresh: true,
            wasted: 0,
            resume: None,
            sizes,
            point: 0,
            size: options.start,
            complete: false,
            previous: options.start,
            repeats: 0,
            trial: 0,
            checked: 0,
            sum: 0.0,
            best: 0.0,
            last: 0.0,
            options,
        }
    }

    /// Limits the sizes to the buffers: both ends write before they read, so larger messages would block.
    pub(super) fn hold(&mut self, buffers: u64) {
        if self.options.mode != NetpipeMode::Both || buffers >= self.options.upper {
            return;
        }
        self.sizes.limit(buffers);
        if self.transmits {
            self.outputs.push_back(Output::Print(format!(
                "The upper limit is being set to {buffers} Bytes\ndue to socket buffer size limitations\n\n"
            )));
        }
    }

    /// Continues over a connection from which `early` was already read.
    pub(super) fn connected(&mut self, now: Timestamp, link: Link, early: Vec<u8>) {
        (self.link, self.early, self.fresh) = (link, early, true);
        self.progress = SeriesProgress::Going;
        if let Some(exchange) = self.exchange.take() {
            return self.ask(now, Exchange { link, ..exchange });
        }
        match self.resume.take() {
            None => self.sync(now, SyncPoint::Connected),
            Some(SyncPoint::Calibrated) => self.next_size(now),
            Some(_) => self.after_trial(now),
        }
    }

    /// Handles the result of an exchange.
    pub(super) fn exchanged(&mut self, now: Timestamp, result: Result<Exchanged, SystemError>) {
        if self.progress != SeriesProgress::Going || self.exchange.is_none() {
            return;
        }
        match result {
            Ok(exchanged) => {
                self.exchange = None;
                (self.fresh, self.wasted) = (false, 0);
                self.got.extend_from_slice(&exchanged.last);
                self.done(now, exchanged.elapsed.as_secs_f64());
            }
            Err(reason) if self.fresh && self.may_reconnect(&reason) => {
                self.wasted += 1;
                self.progress = SeriesProgress::Reconnect;
            }
            Err(reason) => self.failed(now, &reason),
        }
    }

    /// The original closes its listener only after the answer that makes us reconnect. It immediately resets a
    /// connection that it accepts meanwhile.
    fn may_reconnect(&self, reason: &SystemError) -> bool {
        let may = self.transmits && self.last > 0.0 && self.wasted < MAX_FAILED_CONNECTIONS;
        may && [RESET, BROKEN_PIPE].contains(&reason.errno)
    }

    fn failed(&mut self, now: Timestamp, reason: &SystemError) {
        let timeout = self.exchange.as_ref().map_or(Span::ZERO, |exchange| exchange.timeout);
        if now.since(self.asked_at) >= timeout {
            let text = format!(
                "NetPIPE: no answer within {timeout}: the peer has disappeared, or the path is slower than \
                 expected\n"
            );
            self.outputs.push_back(Output::PrintError(text));
            return self.fail(OTHER_MODE, 3);
        }
        match self.step {
            ExchangeStep::Sync(SyncPoint::Size) if self.transmits && self.last >= NEAR_END_SHARE => {
                self.over(0)
            }
            ExchangeStep::Bye | ExchangeStep::Quit(SyncPoint::End) if self.transmits => self.over(0),
            ExchangeStep::Sync(_) | ExchangeStep::Head => {
                let text =
                    format!("NetPIPE: error writing or reading synchronization string: {}\n", reason.text);
                self.fail(&text, 3);
            }
            _ => {
                let text = format!("NetPIPE: read: error encountered, errno={}\n", reason.errno);
                self.outputs.push_back(Output::Print(text));
                if reason.errno == 0 {
                    self.outputs.push_back(Output::PrintError(format!("NetPIPE: {}\n", reason.text)));
                }
                self.over(145);
            }
        }
    }

    /// Handles the end of a step; `seconds` is the duration of its exchange.
    fn done(&mut self, now: Timestamp, seconds: f64) {
        let got = std::mem::take(&mut self.got);
        match self.step {
            ExchangeStep::Sync(place) if got == SYNC => self.synced(now, place),
            ExchangeStep::Sync(_) => self.wrong_sync(&got),
            ExchangeStep::Head => self.head(now, got),
            ExchangeStep::Calibrate => {
                self.last = per_message(seconds, CALIBRATION * 2);
                self.sync(now, SyncPoint::Calibrated);
            }
            ExchangeStep::Repeats => {
                if !self.transmits {
                    let Some(repeats) = wire::decode_repeats(&got) else {
                        return self.fail(OTHER_MODE, 3);
                    };
                    self.repeats = repeats;
                }
                self.trial = 0;
                self.best = f64::INFINITY;
                self.sync(now, SyncPoint::Trial);
            }
            ExchangeStep::Trial => self.trial_over(now, seconds),
            ExchangeStep::Checked => self.checked(now, &got, seconds),
            ExchangeStep::Time => {
                if let Some(time) = wire::decode_time(&got).filter(|_| self.transmits) {
                    self.best = time;
                }
                self.size_over(now);
            }
            ExchangeStep::Quit(place) if got == QUIT => self.quit(place),
            ExchangeStep::Quit(_) => self.fail(OTHER_MODE, 3),
            ExchangeStep::Bye => self.over(0),
        }
    }

    fn synced(&mut self, now: Timestamp, place: SyncPoint) {
        match place {
            SyncPoint::Connected => {
                let size = self.options.start;
                self.turns(now, ExchangeStep::Calibrate, NetpipeMode::PingPong, size, CALIBRATION);
            }
            SyncPoint::Calibrated => {
                self.begin_file();
                if self.options.resets() {
                    self.send_quit(now, SyncPoint::Calibrated);
                } else {
                    self.next_size(now);
                }
            }
            SyncPoint::Size if self.transmits => {
                let repeats = self.repeats.to_be_bytes().to_vec();
                self.once(now, ExchangeStep::Repeats, repeats, 0, true);
            }
            SyncPoint::Size => self.once(now, ExchangeStep::Repeats, Vec::new(), 4, false),
            SyncPoint::Trial | SyncPoint::End => {
                (self.checked, self.sum) = (0, 0.0);
                if self.options.integrity {
                    self.check_one(now);
                } else {
                    self.turns(now, ExchangeStep::Trial, self.options.mode, self.size, self.repeats);
                }
            }
        }
    }

    fn wrong_sync(&mut self, got: &[u8]) {
        let text = linerate_model::foreign_text::one_line(&String::from_utf8_lossy(got));
        let incorrect = format!("NetPIPE: Synchronization string incorrect! |{text}|\n");
        self.outputs.push_back(Output::PrintError(incorrect));
        self.fail(OTHER_MODE, 3);
    }

    fn next_size(&mut self, now: Timestamp) {
        // The receiver follows the transmitter, whose clock ends the series.
        let last = if self.transmits { self.last } else { 0.0 };
        let size = self.sizes.next(last);
        self.complete = size.is_none();
        if let Some(size) = size {
            let step = self.sizes.step();
            (self.previous, self.size) = (self.size, size);
            self.repeats = self.options.repeats.unwrap_or_else(|| repeats(self.previous, step, self.last));
        }
        if !self.transmits {
            return self.once(now, ExchangeStep::Head, Vec::new(), QUIT.len(), false);
        }
        if size.is_none() {
            return self.send_quit(now, SyncPoint::End);
        }
        self.outputs.push_back(Output::PrintError(report::begins(self.point, self.size, self.repeats)));
        self.sync(now, SyncPoint::Size);
    }

    fn begin_file(&mut self) {
        if !self.transmits {
            return;
        }
        self.outputs.push_back(Output::PrintError("Now starting the main loop\n".to_owned()));
        let name = self.options.output.clone();
        self.outputs.push_back(Output::WriteFile { name, text: String::new(), append: false });
    }

    /// Handles what the receiver has read between two sizes.
    fn head(&mut self, now: Timestamp, got: Vec<u8>) {
        if got == QUIT {
            if self.point == 0 && self.last < NEAR_END_SHARE {
                // The transmitter closes after the calibration, so it uses one connection per trial.
                return self.fail(OTHER_MODE, 3);
            }
            return self.once(now, ExchangeStep::Bye, QUIT.to_vec(), 0, true);
        }
        if SYNC.starts_with(&got) && !self.complete {
            self.got = got;
            return self.once(now, ExchangeStep::Sync(SyncPoint::Size), SYNC.to_vec(), 1, true);
        }
        self.wrong_sync(&got);
    }

    fn trials(&self) -> u32 {
        if self.options.integrity { 1 } else { TRIALS }
    }

    fn trial_over(&mut self, now: Timestamp, seconds: f64) {
        let halves = if self.options.mode == NetpipeMode::PingPong { 2 } else { 1 };
        let each = per_message(seconds, self.repeats.saturating_mul(halves));
        self.best = self.best.min(each);
        self.trial += 1;
        if self.options.resets() {
            return self.send_quit(now, SyncPoint::Trial);
        }
        self.after_trial(now);
    }

    fn after_trial(&mut self, now: Timestamp) {
        if self.trial < self.trials() {
            return self.sync(now, SyncPoint::Trial);
        }
        if self.options.mode != NetpipeMode::Stream {
            return self.size_over(now);
        }
        if self.transmits {
            self.once(now, ExchangeStep::Time, Vec::new(), 4, false);
        } else {
            let time = wire::encode_time(self.best).to_vec();
            self.once(now, ExchangeStep::Time, time, 0, true);
        }
    }

    fn size_over(&mut self, now: Timestamp) {
        // The clock of the original may not advance during a trial.
        self.last = if self.best > 0.0 { self.best } else { 1e-6 };
        if self.transmits {
            self.report_progress();
        }
        self.archive();
        self.point += 1;
        self.next_size(now);
    }

    fn report_progress(&mut self) {
        let measured = NetpipeSizeResult { size: self.size, repeats: self.repeats, seconds: self.last };
        let mode = self.options.mode;
        let (line, text) = if self.options.integrity {
            (" Integrity check passed\n".to_owned(), measured.integrity_row())
        } else {
            (measured.line(mode), measured.row(mode))
        };
        self.outputs.push_back(Output::PrintError(line));
        self.outputs.push_back(Output::WriteFile { name: self.options.output.clone(), text, append: true });
    }

    /// Reports a point for our own log. Both ends do this, each by its own clock, except the transmitter of a
    /// stream.
    fn archive(&mut self) {
        if self.options.integrity {
            return;
        }
        let measured = NetpipeSizeResult { size: self.size, repeats: self.repeats, seconds: self.last };
        let point = Box::new(SizePoint {
            message_bytes: Bytes::new(self.size),
            trials: Some(TRIALS),
            repeats: Some(self.repeats),
            best: Span::from_secs_f64(self.last).unwrap_or_default(),
            median: None,
            interval: None,
            bitrate: Bitrate::from_bps(measured.bits(self.options.mode) / self.last),
            buffered: false,
        });
        self.outputs.push_back(Output::Point { run: self.run, flow: FLOW, point });
    }

    /// Exchanges one message whose content is checked.
    fn check_one(&mut self, now: Timestamp) {
        if self.checked >= self.repeats {
            return self.trial_over(now, self.sum);
        }
        self.turns(now, ExchangeStep::Checked, self.options.mode, self.size, 1);
    }

    fn checked(&mut self, now: Timestamp, got: &[u8], seconds: f64) {
        if let Err((expected, found)) = wire::check_integrity(got) {
            let text = format!("Integrity check failed: Expecting {expected} but received {found}\n");
            return self.fail(&text, 255);
        }
        self.checked += 1;
        self.sum += seconds;
        self.check_one(now);
    }

    fn quit(&mut self, place: SyncPoint) {
        if place == SyncPoint::End {
            return self.over(0);
        }
        self.resume = Some(place);
        self.progress = SeriesProgress::Reconnect;
    }

    pub(super) fn fail(&mut self, text: &str, code: i32) {
        self.outputs.push_back(Output::PrintError(text.to_owned()));
        self.over(code);
    }

    fn over(&mut self, code: i32) {
        self.progress = SeriesProgress::Over(code);
    }
}

/// The time per message, in seconds.
fn per_message(seconds: f64, messages: u32) -> f64 {
    seconds / f64::from(messages.max(1))
}
