//! How the test of a page ends, and its connections with it.

use linerate_units::Timestamp;

use super::{BrowserPhase, BrowserSession, CLOSE_TIMEOUT, GRACE};
use crate::http::page::ToPage;
use crate::http::websocket::{self, close_code};
use crate::stand_in::{FlowId, Output, Stop};

impl BrowserSession {
    /// Ends the test of a page that has left, or whose connection cannot be used.
    pub(in crate::http) fn end(&mut self, now: Timestamp, why: &str) {
        match self.phase {
            BrowserPhase::Deciding | BrowserPhase::Closing => self.over(),
            BrowserPhase::Draining | BrowserPhase::Over => {}
            _ => self.fail(now, why),
        }
    }

    pub(super) fn fail(&mut self, now: Timestamp, why: &str) {
        self.trouble.get_or_insert_with(|| why.to_owned());
        let flow_runs = matches!(self.phase, BrowserPhase::Running | BrowserPhase::Stopping)
            && self.links.iter().any(Option::is_some);
        (self.next_look, self.next_ping) = (None, None);
        self.send_message(&ToPage::Failed { why });
        if flow_runs {
            self.phase = BrowserPhase::Draining;
            self.due = Some(now + GRACE);
            if let Some(transfer) = self.phases.front_mut() {
                transfer.stop(Stop::Abort, &mut self.out);
            }
        } else {
            self.close(now);
        }
    }

    /// Ends the run and says so.
    pub(super) fn finish(&mut self, now: Timestamp) {
        let log = self.log.take();
        // The page goes to the run, which must be there.
        self.out.push_back(Output::RunOver { run: self.run, trouble: None });
        self.send_message(&ToPage::Finished { run: log.as_deref() });
        self.close_control(now);
    }

    pub(super) fn close(&mut self, now: Timestamp) {
        for link in std::mem::take(&mut self.links).into_iter().flatten() {
            self.out.push_back(Output::Reset { link });
        }
        let trouble = self.trouble.take();
        self.out.push_back(Output::RunOver { run: self.run, trouble });
        self.close_control(now);
    }

    fn close_control(&mut self, now: Timestamp) {
        self.out.push_back(Output::Send { link: self.control, bytes: websocket::close(close_code::NORMAL) });
        self.phase = BrowserPhase::Closing;
        self.due = Some(now + CLOSE_TIMEOUT);
        (self.next_look, self.next_ping) = (None, None);
        if self.page_closed {
            self.over();
        }
    }

    pub(super) fn over(&mut self) {
        self.out.push_back(Output::Close { link: self.control });
        let first = crate::http::server::first_flow(u16::try_from(self.run.0).unwrap_or_default());
        for flow in first..first + 2 {
            self.out.push_back(Output::Forget { flow: FlowId(flow) });
        }
        self.phase = BrowserPhase::Over;
        (self.due, self.next_look, self.next_ping) = (None, None, None);
    }
}
