//! The exchange of results, and all ways to the end.

use linerate_units::Timestamp;

use super::{
    CLOSE_TIMEOUT, CONTROL, FIRST_STREAM, Iperf3Client, Iperf3ClientCountsReason, Iperf3ClientPhase,
    RESULTS_TIMEOUT, RUN, abort,
};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::report::OutputText;
use crate::iperf3::results::Iperf3Results;
use crate::iperf3::state::Iperf3State;
use crate::iperf3::wire::frame;
use crate::stand_in::{Link, Output};

impl Iperf3Client {
    /// The server requests the results.
    pub(super) fn send_results(&mut self, now: Timestamp) {
        let Some(test) = &self.test else { return };
        let results = test.results(self.ended_at);
        let message = results.write();
        let words = self.report.message("send_results", &message);
        self.speak(words);
        self.send(frame(&message));
        self.enter(Iperf3ClientPhase::Exchanging, Some(now + RESULTS_TIMEOUT));
    }

    /// Takes the server's results.
    pub(super) fn take_results(&mut self, now: Timestamp, message: &[u8]) {
        let Some(test) = &self.test else { return };
        let Some(results) = Iperf3Results::read(message, test.meter.elapsed(self.ended_at)) else {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::RECV_RESULTS));
        };
        if !test.knows(&results) {
            return self.fail(&Iperf3Error::new(Iperf3ErrorNumber::STREAM_ID));
        }
        for (flow, tally) in test.peer_tallies(&results, self.is_udp()) {
            self.out.push_back(Output::PeerCounted { flow, tally: Box::new(tally) });
        }
        let words = self.report.message("get_results", message);
        self.speak(words);
        self.report.peer_results(results.knows_retransmits == Some(true));
        self.peer = Some(results);
        self.enter(Iperf3ClientPhase::Showing, Some(now + RESULTS_TIMEOUT));
    }

    /// The results were exchanged: prints them and ends the dialogue.
    pub(super) fn show(&mut self, now: Timestamp) {
        self.close_streams();
        let Some(test) = &mut self.test else { return };
        let mut text = test.close(self.ended_at, &mut self.report);
        let end = test.end(self.ended_at, self.peer.as_ref());
        text += &self.report.summary(&end);
        if let Some(output) = self.peer.as_mut().and_then(|peer| peer.output.take()) {
            text += &self.report.server_output(output);
        }
        self.print(text);
        let words = self.report.done();
        self.speak(words);
        self.send_state(Iperf3State::IperfDone);
        self.out.push_back(Output::FinishWriting { link: CONTROL });
        self.enter(Iperf3ClientPhase::Leaving, Some(now + CLOSE_TIMEOUT));
    }

    /// The test has failed.
    pub(super) fn fail(&mut self, trouble: &Iperf3Error) {
        if self.phase == Iperf3ClientPhase::Over {
            return;
        }
        let words = self.report.failed(trouble);
        self.leave_with(words, trouble);
    }

    pub(super) fn leave_with(&mut self, words: OutputText, trouble: &Iperf3Error) {
        self.speak(words);
        self.abandon(trouble);
        self.exit(1);
    }

    /// The server ends the test early: prints what was measured, if there is anything.
    pub(super) fn stop_early(&mut self, trouble: &Iperf3Error) {
        if self.phase == Iperf3ClientPhase::Running {
            self.broken = Some(trouble.clone());
            self.request_counts(Iperf3ClientCountsReason::BreakOff);
        } else {
            self.fail(trouble);
        }
    }

    /// Prints the counts up to the interruption.
    pub(super) fn show_broken_off(&mut self, now: Timestamp) {
        if let Some(test) = &mut self.test {
            let interval = test.close(now, &mut self.report);
            let summary = self.report.summary(&test.end(now, None));
            self.print(interval + &summary);
        }
        match self.broken.take() {
            Some(trouble) if self.signal.is_none() => {
                self.send_state(Iperf3State::IperfDone);
                self.fail(&trouble);
            }
            _ => self.show_interrupted(),
        }
    }

    /// Ends a test after a signal.
    pub(super) fn show_interrupted(&mut self) {
        let trouble = Iperf3Error::new(Iperf3ErrorNumber::CLIENT_TERM);
        if self.control.is_some() {
            self.send_state(Iperf3State::ClientTerminate);
        }
        let words = self.report.interrupted(&trouble, self.signal.unwrap_or_default());
        self.speak(words);
        self.abandon(&trouble);
        self.exit(0);
    }

    /// Ends the flows of an unfinished test.
    fn abandon(&mut self, trouble: &Iperf3Error) {
        if let Some(test) = &self.test {
            abort(test, &mut self.out);
        }
        self.close_streams();
        let planned = self.test.is_some() || self.phase == Iperf3ClientPhase::Opening;
        if planned {
            self.out.push_back(Output::RunOver { run: RUN, trouble: Some(trouble.to_string()) });
        }
    }

    /// Exits when the server has closed the connection and no flow is running.
    pub(super) fn exit_when_done(&mut self) {
        if self.parted && self.test.as_ref().is_none_or(|test| test.running().is_empty()) {
            self.exit(0);
        }
    }

    pub(super) fn exit(&mut self, code: i32) {
        if self.phase == Iperf3ClientPhase::Leaving {
            self.out.push_back(Output::RunOver { run: RUN, trouble: None });
        }
        if self.control.is_some() {
            self.out.push_back(Output::Close { link: CONTROL });
        }
        self.out.push_back(Output::Exit(code));
        self.enter(Iperf3ClientPhase::Over, None);
    }

    fn close_streams(&mut self) {
        let links = (FIRST_STREAM..).map(Link).take(self.streams.len());
        self.out.extend(links.map(|link| Output::Close { link }));
    }
}
