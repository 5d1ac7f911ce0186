//! The requests of the steps of a series, and their timeouts.

use linerate_units::{Bytes, Span, Timestamp};

use super::super::argv::NetpipeMode;
use super::super::wire::{self, QUIT, SYNC};
use super::{ExchangeStep, NetpipeSeries, OTHER_MODE, SyncPoint};
use crate::stand_in::{Exchange, Output};

/// Timeout of every step in addition to the expected duration of its messages.
const STEP_TIMEOUT_MARGIN: Span = Span::from_secs(30);

/// Longest timeout of a step, whatever its expected duration.
const MAX_STEP_TIMEOUT: Span = Span::from_secs(7_200);

/// The slowest path for which the timeout of a calibration suffices, seconds per byte (80 kb/s).
const SLOWEST_PATH_S_PER_BYTE: f64 = 1e-4;

impl NetpipeSeries {
    pub(super) fn sync(&mut self, now: Timestamp, place: SyncPoint) {
        self.once(now, ExchangeStep::Sync(place), SYNC.to_vec(), SYNC.len(), true);
    }

    pub(super) fn send_quit(&mut self, now: Timestamp, place: SyncPoint) {
        self.once(now, ExchangeStep::Quit(place), QUIT.to_vec(), QUIT.len(), self.transmits);
    }

    /// Exchanges one short message in each direction, if it has bytes.
    pub(super) fn once(
        &mut self,
        now: Timestamp,
        step: ExchangeStep,
        send: Vec<u8>,
        receive: usize,
        sends_first: bool,
    ) {
        self.step = step;
        let known = self.early.len().min(receive);
        self.got.extend(self.early.drain(..known));
        if send.is_empty() && known == receive {
            return self.done(now, 0.0);
        }
        let exchange = Exchange {
            link: self.link,
            send: Bytes::new(send.len() as u64),
            receive: Bytes::new((receive - known) as u64),
            sends_first,
            repeats: 1,
            timeout: self.step_timeout(0.0),
            head: send,
            cold: false,
            each_turn: false,
        };
        self.ask(now, exchange);
    }

    /// Exchanges messages as in a measurement.
    pub(super) fn turns(
        &mut self,
        now: Timestamp,
        step: ExchangeStep,
        mode: NetpipeMode,
        size: u64,
        repeats: u32,
    ) {
        if !self.early.is_empty() {
            return self.fail(OTHER_MODE, 3);
        }
        self.step = step;
        let (sends, receives) = match mode {
            NetpipeMode::Stream => (self.transmits, !self.transmits),
            NetpipeMode::PingPong | NetpipeMode::Both => (true, true),
        };
        let bytes = |moves: bool| Bytes::new(if moves { size } else { 0 });
        let slow = if step == ExchangeStep::Calibrate {
            size as f64 * SLOWEST_PATH_S_PER_BYTE
        } else {
            self.last * self.growth()
        };
        let head = if step == ExchangeStep::Checked {
            wire::integrity(usize::try_from(size).unwrap_or(0))
        } else {
            Vec::new()
        };
        let exchange = Exchange {
            link: self.link,
            send: bytes(sends),
            receive: bytes(receives),
            sends_first: self.transmits || mode == NetpipeMode::Both,
            repeats,
            timeout: self.step_timeout(slow * f64::from(repeats)),
            head,
            cold: self.options.cold,
            each_turn: false,
        };
        self.ask(now, exchange);
    }

    fn growth(&self) -> f64 {
        (self.size as f64 / (self.previous as f64).max(1.0)).max(1.0)
    }

    /// Timeout of a step whose messages should take this many seconds one way.
    fn step_timeout(&self, seconds: f64) -> Span {
        let expected = Span::from_secs_f64(seconds * 8.0).unwrap_or(MAX_STEP_TIMEOUT);
        // The receiver of a stream may still be reading when the sender begins the next step.
        let trial =
            Span::from_secs_f64(self.last * f64::from(self.repeats) * 8.0).unwrap_or(MAX_STEP_TIMEOUT);
        (STEP_TIMEOUT_MARGIN + expected + trial).min(MAX_STEP_TIMEOUT)
    }

    pub(super) fn ask(&mut self, now: Timestamp, exchange: Exchange) {
        self.asked_at = now;
        self.outputs.push_back(Output::Exchange(Box::new(exchange.clone())));
        self.exchange = Some(exchange);
    }
}
