//! Handles the messages of the server.

use linerate_units::Timestamp;

use super::{CLOSE_TIMEOUT, CONTROL, Client, Phase};
use crate::iperf3::errors::{Iperf3Error, Number};
use crate::iperf3::state::State;
use crate::iperf3::wire::{RESULTS_LIMIT, read_server_error, take_message};
use crate::stand_in::{Link, SystemError};

impl Client {
    /// Handles what the server has sent, if it is complete and expected.
    pub(super) fn listen(&mut self, now: Timestamp) {
        while !matches!(self.phase, Phase::Over | Phase::Leaving) {
            if self.phase == Phase::Failing {
                if self.held.len() >= 8 {
                    self.server_failed();
                }
                return;
            }
            if self.phase == Phase::Exchanging {
                match take_message(&mut self.held, RESULTS_LIMIT) {
                    Ok(Some(message)) => self.take_results(now, &message),
                    Ok(None) => return,
                    Err(_) => self.fail(&Iperf3Error::new(Number::RECV_RESULTS)),
                }
                continue;
            }
            let Some(&byte) = self.held.first() else { return };
            let state = State::of(byte);
            let too_early = matches!(state, Some(State::TestStart | State::TestRunning))
                && self.phase == Phase::Opening
                || state == Some(State::ExchangeResults) && self.phase == Phase::Stopping;
            if too_early {
                return;
            }
            self.held.remove(0);
            self.handle_state(now, state);
        }
    }

    fn handle_state(&mut self, now: Timestamp, state: Option<State>) {
        match (state, self.phase) {
            (Some(State::ParamExchange), Phase::Agreeing) if self.params.is_none() => self.agree(now),
            (Some(State::CreateStreams), Phase::Agreeing) if self.params.is_some() => self.open_streams(now),
            (Some(State::TestStart), Phase::Ready) => self.start(now),
            (Some(State::TestRunning), Phase::Running) => self.start_senders(),
            (Some(State::ExchangeResults), Phase::Ended) => self.send_results(now),
            (Some(State::DisplayResults), Phase::Showing) => self.show(now),
            (Some(State::ServerTerminate), _) => self.stop_early(&Iperf3Error::new(Number::SERVER_TERM)),
            (Some(State::AccessDenied), _) => self.fail(&Iperf3Error::new(Number::ACCESS_DENIED)),
            (Some(State::ServerError), _) => self.enter(Phase::Failing, Some(now + CLOSE_TIMEOUT)),
            _ => self.fail(&Iperf3Error::new(Number::MESSAGE)),
        }
    }

    /// The server has reported an error.
    pub(super) fn server_failed(&mut self) {
        let (number, errno) = read_server_error(&self.held);
        let trouble = Iperf3Error::because(Number(number), errno, String::new());
        let words = self.report.server_error(&trouble);
        self.leave_with(words, &trouble);
    }

    fn control_closed(&mut self, now: Timestamp, reason: Option<SystemError>) {
        self.listen(now);
        match self.phase {
            Phase::Over => {}
            Phase::Failing => self.server_failed(),
            Phase::Leaving => {
                self.parted = true;
                self.exit_when_done();
            }
            // A busy server that closes with our cookie unread resets the connection, and its message may be
            // lost.
            _ => match reason {
                Some(reason) if !self.heard => {
                    self.fail(&Iperf3Error::because(Number::RECV_MESSAGE, reason.errno, reason.text));
                }
                _ => self.fail(&Iperf3Error::new(Number::CONTROL_CLOSED)),
            },
        }
    }

    pub(super) fn link_closed(&mut self, now: Timestamp, link: Link, reason: Option<SystemError>) {
        if link == CONTROL {
            self.control_closed(now, reason);
        } else if matches!(self.phase, Phase::Opening) && self.is_udp() {
            let (errno, text) = reason.map_or((0, String::new()), |reason| (reason.errno, reason.text));
            self.fail(&Iperf3Error::because(Number::STREAM_READ, errno, text));
        }
        // A stream that is closed before or after the test is ignored, because the server will report the
        // reason.
    }
}
