//! Handles the messages of the server.

use linerate_units::Timestamp;

use super::{CLOSE_TIMEOUT, CONTROL, Iperf3Client, Iperf3ClientPhase};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::state::Iperf3State;
use crate::iperf3::wire::{MAX_UNREAD_BYTES, RESULTS_LIMIT, read_server_error, take_message};
use crate::stand_in::{Link, SystemError};

impl Iperf3Client {
    /// Handles bytes of the control connection.
    pub(super) fn receive(&mut self, now: Timestamp, bytes: &[u8]) {
        self.server_replied = true;
        // After our last message nothing from the server matters.
        if self.phase == Iperf3ClientPhase::Leaving {
            return;
        }
        self.held.extend_from_slice(bytes);
        self.listen(now);
        // States that come early wait; a message is bounded by its own limit.
        let waits = matches!(self.phase, Iperf3ClientPhase::Opening | Iperf3ClientPhase::Stopping);
        if waits && self.held.len() > MAX_UNREAD_BYTES {
            self.fail(&Iperf3Error::new(Iperf3ErrorNumber::MESSAGE));
        }
    }

    /// Handles what the server has sent, if it is complete and expected.
    pub(super) fn listen(&mut self, now: Timestamp) {
        while !matches!(self.phase, Iperf3ClientPhase::Over | Iperf3ClientPhase::Leaving) {
            if self.phase == Iperf3ClientPhase::Failing {
                if self.held.len() >= 8 {
                    self.server_failed();
                }
                return;
            }
            if self.phase == Iperf3ClientPhase::Exchanging {
                match take_message(&mut self.held, RESULTS_LIMIT) {
                    Ok(Some(message)) => self.take_results(now, &message),
                    Ok(None) => return,
                    Err(_) => self.fail(&Iperf3Error::new(Iperf3ErrorNumber::RECV_RESULTS)),
                }
                continue;
            }
            let Some(&byte) = self.held.first() else { return };
            let state = Iperf3State::of(byte);
            let too_early = matches!(state, Some(Iperf3State::TestStart | Iperf3State::TestRunning))
                && self.phase == Iperf3ClientPhase::Opening
                || state == Some(Iperf3State::ExchangeResults) && self.phase == Iperf3ClientPhase::Stopping;
            if too_early {
                return;
            }
            self.held.remove(0);
            self.handle_state(now, state);
        }
    }

    fn handle_state(&mut self, now: Timestamp, state: Option<Iperf3State>) {
        if let Some(state) = state {
            let words = self.report.received_state(state);
            self.speak(words);
        }
        match (state, self.phase) {
            (Some(Iperf3State::ParamExchange), Iperf3ClientPhase::Agreeing) if self.params.is_none() => {
                self.agree(now)
            }
            (Some(Iperf3State::CreateStreams), Iperf3ClientPhase::Agreeing) if self.params.is_some() => {
                self.open_streams(now)
            }
            (Some(Iperf3State::TestStart), Iperf3ClientPhase::Ready) => self.start(now),
            (Some(Iperf3State::TestRunning), Iperf3ClientPhase::Running) => self.start_senders(),
            (Some(Iperf3State::ExchangeResults), Iperf3ClientPhase::Ended) => self.send_results(now),
            (Some(Iperf3State::DisplayResults), Iperf3ClientPhase::Showing) => self.show(now),
            (Some(Iperf3State::ServerTerminate), _) => {
                self.stop_early(&Iperf3Error::new(Iperf3ErrorNumber::SERVER_TERM))
            }
            (Some(Iperf3State::AccessDenied), _) => {
                self.fail(&Iperf3Error::new(Iperf3ErrorNumber::ACCESS_DENIED))
            }
            (Some(Iperf3State::ServerError), _) => {
                self.enter(Iperf3ClientPhase::Failing, Some(now + CLOSE_TIMEOUT))
            }
            _ => self.fail(&Iperf3Error::new(Iperf3ErrorNumber::MESSAGE)),
        }
    }

    /// The server has reported an error.
    pub(super) fn server_failed(&mut self) {
        let (number, errno) = read_server_error(&self.held);
        let trouble = Iperf3Error::because(Iperf3ErrorNumber(number), errno, String::new());
        let words = self.report.server_error(&trouble);
        self.leave_with(words, &trouble);
    }

    fn control_closed(&mut self, now: Timestamp, reason: Option<SystemError>) {
        self.listen(now);
        match self.phase {
            Iperf3ClientPhase::Over => {}
            Iperf3ClientPhase::Failing => self.server_failed(),
            Iperf3ClientPhase::Leaving => {
                self.parted = true;
                self.exit_when_done();
            }
            // A busy server that closes with our cookie unread resets the connection, and its message may be
            // lost.
            _ => match reason {
                Some(reason) if !self.server_replied => {
                    self.fail(&Iperf3Error::because(
                        Iperf3ErrorNumber::RECV_MESSAGE,
                        reason.errno,
                        reason.text,
                    ));
                }
                _ => self.fail(&Iperf3Error::new(Iperf3ErrorNumber::CONTROL_CLOSED)),
            },
        }
    }

    pub(super) fn link_closed(&mut self, now: Timestamp, link: Link, reason: Option<SystemError>) {
        if link == CONTROL {
            self.control_closed(now, reason);
        } else if matches!(self.phase, Iperf3ClientPhase::Opening) && self.is_udp() {
            let (errno, text) = reason.map_or((0, String::new()), |reason| (reason.errno, reason.text));
            self.fail(&Iperf3Error::because(Iperf3ErrorNumber::STREAM_READ, errno, text));
        }
        // A stream that is closed before or after the test is ignored, because the server will report the
        // reason.
    }
}
