//! The ways in which a test or the server ends.

use linerate_units::Timestamp;

use super::test::{Break, Ending, Iperf3ServerCountsReason, Iperf3ServerPhase, Iperf3ServerTest};
use super::{Iperf3Server, ServerState, Visitor};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::report::Iperf3Report;
use crate::iperf3::state::Iperf3State;
use crate::iperf3::wire::server_error;
use crate::stand_in::{Output, RunId, Stop};

impl Iperf3ServerTest {
    /// The client has sent its last state.
    pub(super) fn done(&mut self, server_state: &mut ServerState) {
        let words = self.report.done();
        server_state.speak(words);
        self.over(None, false, server_state);
    }

    /// The test has failed: reports the error to the client and prints it.
    pub(super) fn fail(&mut self, trouble: &Iperf3Error, server_state: &mut ServerState) {
        if matches!(self.phase, Iperf3ServerPhase::Over(_)) {
            return;
        }
        let bytes = server_error(trouble.number.0, trouble.errno);
        server_state.out.push_back(Output::Send { link: self.control, bytes });
        let words = self.report.failed(trouble);
        server_state.speak(words);
        // A peer that does not use this protocol does not count as the one client of a server with `--one-off`.
        let counts = trouble.number != Iperf3ErrorNumber::MESSAGE;
        self.over_counting(Some(&trouble.to_string()), true, counts, server_state);
    }

    /// Refuses the test. Nothing is printed, because the running test is not affected.
    pub(super) fn reject(&mut self, server_state: &mut ServerState) {
        self.send_state(Iperf3State::AccessDenied, server_state);
        self.enter(Iperf3ServerPhase::Over(Ending { counts: false, last_word: true }), None);
    }

    /// The control connection was closed.
    pub(super) fn control_closed(&mut self, now: Timestamp, server_state: &mut ServerState) {
        self.listen(now, server_state);
        match self.phase {
            Iperf3ServerPhase::Over(_) => {}
            Iperf3ServerPhase::Showing => self.done(server_state),
            Iperf3ServerPhase::Negotiating => {
                let words = self.report.failed(&Iperf3Error::new(Iperf3ErrorNumber::RECV_PARAMS));
                server_state.speak(words);
                self.over(None, false, server_state);
            }
            Iperf3ServerPhase::Running => {
                self.request_counts(Iperf3ServerCountsReason::BreakOff(Break::Vanished))
            }
            _ => self.vanished(server_state),
        }
    }

    /// The client has disconnected without a message.
    pub(super) fn vanished(&mut self, server_state: &mut ServerState) {
        let words = self.report.client_gone(false);
        server_state.speak(words);
        self.over(Some("the client has unexpectedly closed the connection"), false, server_state);
    }

    /// The client has reported that it was interrupted.
    pub(super) fn terminated(&mut self, server_state: &mut ServerState) {
        let bytes = server_error(Iperf3ErrorNumber::CLIENT_TERM.0, 0);
        server_state.out.push_back(Output::Send { link: self.control, bytes });
        let words = self.report.client_gone(true);
        server_state.speak(words);
        self.over(Some("the client has terminated"), true, server_state);
    }

    /// Prints the counts up to the interruption.
    pub(super) fn show_broken_off(&mut self, now: Timestamp, by: Break, server_state: &mut ServerState) {
        if let Some(test) = &mut self.test {
            let interval = test.close(now, &mut self.report);
            let summary = self.report.summary(&test.end(now, None));
            server_state.print(interval + &summary);
        }
        match by {
            Break::Client => self.terminated(server_state),
            Break::Vanished => self.vanished(server_state),
            Break::Signal(signal) => self.interrupted(signal, server_state),
        }
    }

    /// A signal ends the program.
    fn interrupted(&mut self, signal: i32, server_state: &mut ServerState) {
        self.send_state(Iperf3State::ServerTerminate, server_state);
        let trouble = Iperf3Error::new(Iperf3ErrorNumber::SERVER_TERM);
        let words = self.report.interrupted(&trouble, signal);
        server_state.speak(words);
        self.over(Some(&trouble.to_string()), true, server_state);
    }

    fn over(&mut self, trouble: Option<&str>, last_word: bool, server_state: &mut ServerState) {
        self.over_counting(trouble, last_word, true, server_state);
    }

    fn over_counting(
        &mut self,
        trouble: Option<&str>,
        last_word: bool,
        counts: bool,
        server_state: &mut ServerState,
    ) {
        let running = self.test.as_ref().map(|test| test.running().to_vec()).unwrap_or_default();
        server_state.out.extend(running.into_iter().map(|flow| Output::Stop { flow, how: Stop::Abort }));
        self.close_streams(server_state);
        let admitted = self.is_admitted();
        if admitted {
            let trouble = trouble.map(ToOwned::to_owned);
            server_state.out.push_back(Output::RunOver { run: self.run, trouble });
        }
        self.looking = (Iperf3ServerCountsReason::No, false);
        self.draining = None;
        self.enter(Iperf3ServerPhase::Over(Ending { counts: admitted && counts, last_word }), None);
    }
}

impl Iperf3Server {
    /// Handles a signal: informs every client and prints what was measured.
    pub(super) fn interrupt(&mut self, signal: i32) {
        if self.leaving {
            return self.exit(0);
        }
        self.leaving = true;
        if self.tests.is_empty() {
            let words = self.report().interrupted(&Iperf3Error::new(Iperf3ErrorNumber::SERVER_TERM), signal);
            self.server_state.speak(words);
        }
        for test in self.tests.values_mut() {
            if test.phase == Iperf3ServerPhase::Running {
                test.request_counts(Iperf3ServerCountsReason::BreakOff(Break::Signal(signal)));
            } else {
                test.interrupted(signal, &mut self.server_state);
            }
        }
    }

    /// Ends the program when no client has to read a last message any more.
    pub(super) fn leave(&mut self) {
        let parting = self.visitors.values().any(|visitor| matches!(visitor, Visitor::Parting { .. }));
        if self.leaving && !self.over && !parting && !self.tests.values().any(Iperf3ServerTest::is_admitted) {
            self.exit(0);
        }
    }

    /// Removes finished tests, and waits for the next client.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        let over = |test: &Iperf3ServerTest| {
            if let Iperf3ServerPhase::Over(ending) = test.phase { Some(ending) } else { None }
        };
        let done: Vec<(RunId, Ending)> =
            self.tests.iter().filter_map(|(run, test)| Some((*run, over(test)?))).collect();
        if done.is_empty() {
            return;
        }
        for (run, ending) in done {
            let Some(test) = self.tests.remove(&run) else { continue };
            self.visitors.retain(|_, visitor| !matches!(visitor, Visitor::Stream(of) if *of == run));
            if ending.last_word {
                self.part(now, test.control);
            } else {
                self.server_state.out.push_back(Output::Close { link: test.control });
                self.visitors.remove(&test.control);
            }
            self.number += 1;
            self.leaving |= ending.counts && self.server_state.settings.server.one_off;
        }
        self.admit_udp_tests(now);
        self.close_udp_listener();
        if self.tests.is_empty() && !self.leaving {
            self.idle_since = Some(now);
            if self.lobby.is_none() {
                self.lobby = Some(Iperf3Report::new(&self.server_state.settings, &self.server_state.host));
                self.announce();
            }
        }
    }
}
