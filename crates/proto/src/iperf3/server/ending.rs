//! Every way in which a test, or the server, ends.

use linerate_units::Timestamp;

use super::test::{Break, Ending, Looking, Phase, Test};
use super::{Server, ServerState, Visitor};
use crate::iperf3::errors::{Iperf3Error, Number};
use crate::iperf3::report::Report;
use crate::iperf3::state::State;
use crate::iperf3::wire::server_error;
use crate::stand_in::{Output, RunId, Stop};

impl Test {
    /// The client has said farewell.
    pub(super) fn done(&mut self, desk: &mut ServerState) {
        let words = self.report.done();
        desk.speak(words);
        self.over(None, false, desk);
    }

    /// It went wrong: both the client and the terminal are told.
    pub(super) fn fail(&mut self, trouble: &Iperf3Error, desk: &mut ServerState) {
        if matches!(self.phase, Phase::Over(_)) {
            return;
        }
        let bytes = server_error(trouble.number.0, trouble.errno);
        desk.out.push_back(Output::Send { link: self.control, bytes });
        let words = self.report.failed(trouble);
        desk.speak(words);
        // A peer that does not speak this protocol is not the one client of a server that takes one.
        let counts = trouble.number != Number::MESSAGE;
        self.over_counting(Some(&trouble.to_string()), true, counts, desk);
    }

    /// The test is not admitted; nothing is printed, as others are not disturbed.
    pub(super) fn deny(&mut self, desk: &mut ServerState) {
        self.say(State::AccessDenied, desk);
        self.enter(Phase::Over(Ending { counts: false, last_word: true }), None);
    }

    /// The control connection was closed.
    pub(super) fn control_closed(&mut self, now: Timestamp, desk: &mut ServerState) {
        self.listen(now, desk);
        match self.phase {
            Phase::Over(_) => {}
            Phase::Showing => self.done(desk),
            Phase::Negotiating => {
                let words = self.report.failed(&Iperf3Error::new(Number::RECV_PARAMS));
                desk.speak(words);
                self.over(None, false, desk);
            }
            Phase::Running => self.look(Looking::BreakOff(Break::Vanished)),
            _ => self.vanished(desk),
        }
    }

    /// The client is gone without a word.
    pub(super) fn vanished(&mut self, desk: &mut ServerState) {
        let words = self.report.client_gone(false);
        desk.speak(words);
        self.over(Some("the client has unexpectedly closed the connection"), false, desk);
    }

    /// The client has said that it was told to end.
    pub(super) fn terminated(&mut self, desk: &mut ServerState) {
        let bytes = server_error(Number::CLIENT_TERM.0, 0);
        desk.out.push_back(Output::Send { link: self.control, bytes });
        let words = self.report.client_gone(true);
        desk.speak(words);
        self.over(Some("the client has terminated"), true, desk);
    }

    /// What was counted until the test was broken off.
    pub(super) fn show_broken_off(&mut self, now: Timestamp, by: Break, desk: &mut ServerState) {
        if let Some(course) = &mut self.course {
            let interval = course.close(now, &mut self.report);
            let summary = self.report.summary(&course.end(now, None));
            desk.print(interval + &summary);
        }
        match by {
            Break::Client => self.terminated(desk),
            Break::Vanished => self.vanished(desk),
            Break::Signal(signal) => self.interrupted(signal, desk),
        }
    }

    /// A signal ends the program.
    fn interrupted(&mut self, signal: i32, desk: &mut ServerState) {
        self.say(State::ServerTerminate, desk);
        let trouble = Iperf3Error::new(Number::SERVER_TERM);
        let words = self.report.interrupted(&trouble, signal);
        desk.speak(words);
        self.over(Some(&trouble.to_string()), true, desk);
    }

    fn over(&mut self, trouble: Option<&str>, last_word: bool, desk: &mut ServerState) {
        self.over_counting(trouble, last_word, true, desk);
    }

    fn over_counting(
        &mut self,
        trouble: Option<&str>,
        last_word: bool,
        counts: bool,
        desk: &mut ServerState,
    ) {
        let running = self.course.as_ref().map(|course| course.running().to_vec()).unwrap_or_default();
        desk.out.extend(running.into_iter().map(|flow| Output::Stop { flow, how: Stop::Abort }));
        self.close_streams(desk);
        let admitted = self.is_admitted();
        if admitted {
            let trouble = trouble.map(ToOwned::to_owned);
            desk.out.push_back(Output::RunOver { run: self.run, trouble });
        }
        self.looking = (Looking::No, false);
        self.draining = None;
        self.enter(Phase::Over(Ending { counts: admitted && counts, last_word }), None);
    }
}

impl Server {
    /// A signal: every client is told, and what was measured is printed.
    pub(super) fn interrupt(&mut self, signal: i32) {
        if self.leaving {
            return self.exit(0);
        }
        self.leaving = true;
        if self.tests.is_empty() {
            let words = self.report().interrupted(&Iperf3Error::new(Number::SERVER_TERM), signal);
            self.desk.speak(words);
        }
        for test in self.tests.values_mut() {
            if test.phase == Phase::Running {
                test.look(Looking::BreakOff(Break::Signal(signal)));
            } else {
                test.interrupted(signal, &mut self.desk);
            }
        }
    }

    /// Ends the program once nobody is there any more who has a word to read.
    pub(super) fn leave(&mut self) {
        let parting = self.visitors.values().any(|visitor| matches!(visitor, Visitor::Parting { .. }));
        if self.leaving && !self.over && !parting && !self.tests.values().any(Test::is_admitted) {
            self.exit(0);
        }
    }

    /// Takes leave of tests that are over, and waits for the next.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        let over = |test: &Test| if let Phase::Over(ending) = test.phase { Some(ending) } else { None };
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
                self.desk.out.push_back(Output::Close { link: test.control });
                self.visitors.remove(&test.control);
            }
            self.number += 1;
            self.leaving |= ending.counts && self.desk.settings.server.one_off;
        }
        self.open_door(now);
        self.close_door();
        if self.tests.is_empty() && !self.leaving {
            self.idle_since = Some(now);
            if self.lobby.is_none() {
                self.lobby = Some(Report::new(&self.desk.settings, &self.desk.host));
                self.announce();
            }
        }
    }
}
