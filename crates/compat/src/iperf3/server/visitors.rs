//! Connections from accept to close.

use linerate_units::{Span, Timestamp};

use super::test::{Iperf3ServerPhase, Iperf3ServerTest};
use super::{Iperf3Server, READ_TIMEOUT};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::state::Iperf3State;
use crate::iperf3::wire::{Cookie, server_error};
use crate::stand_in::{Link, Opened, Output, RunId};

/// How long a refused connection may stay half-closed.
const HALF_CLOSE_TIMEOUT: Span = Span::from_secs(2);
/// Most connections without a complete cookie; further ones are reset.
const MAX_PENDING: usize = 512;

/// An accepted connection.
#[derive(Debug)]
pub(super) enum Visitor {
    /// Its cookie is incomplete.
    Arriving { bytes: Vec<u8>, until: Timestamp, opened: Opened },
    /// The control connection of a test.
    Control(RunId),
    /// A stream of a test.
    Stream(RunId),
    /// It was refused, or its test is over; further input is ignored.
    Parting { until: Timestamp },
}

impl Iperf3Server {
    /// Whether another test keeps the server from accepting one.
    pub(super) fn is_busy(&self) -> bool {
        !self.shared && self.tests.values().any(Iperf3ServerTest::is_admitted)
    }

    pub(super) fn accepted(&mut self, now: Timestamp, listener: Link, link: Link, opened: Opened) {
        if listener != self.listener {
            return self.adopted(now, link, opened);
        }
        let arriving = |visitor: &&Visitor| matches!(visitor, Visitor::Arriving { .. });
        if self.leaving || self.visitors.values().filter(arriving).count() >= MAX_PENDING {
            self.server_state.out.push_back(Output::Reset { link });
        } else if self.is_busy() && !self.tests.values().any(Iperf3ServerTest::awaits_streams) {
            self.reject(now, link);
        } else {
            let arriving = Visitor::Arriving { bytes: Vec::new(), until: now + READ_TIMEOUT, opened };
            self.visitors.insert(link, arriving);
        }
    }

    /// Reports that the server is busy. The connection stays open for a moment: closing it with unread bytes
    /// would reset it, and the message could be lost.
    fn reject(&mut self, now: Timestamp, link: Link) {
        self.server_state.out.push_back(Output::Send { link, bytes: vec![Iperf3State::AccessDenied.byte()] });
        self.part(now, link);
    }

    /// Half-closes a connection. It is closed when the peer closes too, or after a moment.
    pub(super) fn part(&mut self, now: Timestamp, link: Link) {
        self.server_state.out.push_back(Output::FinishWriting { link });
        self.visitors.insert(link, Visitor::Parting { until: now + HALF_CLOSE_TIMEOUT });
    }

    pub(super) fn bytes(&mut self, now: Timestamp, link: Link, new: &[u8]) {
        match self.visitors.get_mut(&link) {
            Some(Visitor::Arriving { bytes, opened, .. }) => {
                bytes.extend_from_slice(new);
                let Some((cookie, rest)) = Cookie::split(bytes) else { return };
                let (rest, opened) = (rest.to_vec(), opened.clone());
                self.welcome(now, link, opened, cookie, &rest);
            }
            Some(Visitor::Control(run)) => {
                let run = *run;
                self.control_bytes(now, run, new);
            }
            _ => {}
        }
    }

    /// Assigns a connection with a complete cookie to the streams of a test or to a new client.
    fn welcome(&mut self, now: Timestamp, link: Link, opened: Opened, cookie: Cookie, rest: &[u8]) {
        let busy = self.is_busy();
        let known = self.tests.iter_mut().find(|(_, test)| test.cookie.matches(&cookie));
        match known {
            Some((run, test)) if test.awaits_streams() && !test.is_udp() => {
                self.visitors.insert(link, Visitor::Stream(*run));
                match test.tuning() {
                    None => test.add_stream(now, link, opened, &mut self.server_state),
                    Some(options) => self.server_state.out.push_back(Output::Tune { link, options }),
                }
            }
            Some(_) => self.reject(now, link),
            None if busy => self.reject(now, link),
            None => {
                let run = self.next_run;
                self.next_run = self.next_run.next();
                let report = self.report();
                self.idle_since = None;
                self.visitors.insert(link, Visitor::Control(run));
                let test =
                    Iperf3ServerTest::new(now, run, link, &opened, cookie, report, &mut self.server_state);
                self.tests.insert(run, test);
                self.control_bytes(now, run, rest);
            }
        }
    }

    fn control_bytes(&mut self, now: Timestamp, run: RunId, bytes: &[u8]) {
        let Some(test) = self.tests.get_mut(&run) else { return };
        test.receive(now, bytes, &mut self.server_state);
        if test.phase == Iperf3ServerPhase::Negotiating
            && let Some(params) = test.take_params(&mut self.server_state)
        {
            self.consider(now, run, params);
        }
    }

    pub(super) fn closed(&mut self, now: Timestamp, link: Link) {
        match self.visitors.get(&link) {
            Some(Visitor::Arriving { .. }) => {
                self.server_state.out.push_back(Output::Close { link });
                self.visitors.remove(&link);
                self.report_bad_cookie(0, "");
            }
            Some(Visitor::Parting { .. }) => {
                self.server_state.out.push_back(Output::Close { link });
                self.visitors.remove(&link);
            }
            Some(Visitor::Control(run)) => {
                if let Some(test) = self.tests.get_mut(run) {
                    test.control_closed(now, &mut self.server_state);
                }
            }
            Some(Visitor::Stream(_)) | None => {}
        }
    }

    /// Closes connections that have timed out.
    pub(super) fn part_from_late(&mut self, now: Timestamp) {
        let late = |visitor: &Visitor| match visitor {
            Visitor::Arriving { until, .. } | Visitor::Parting { until } => *until <= now,
            Visitor::Control(_) | Visitor::Stream(_) => false,
        };
        let late: Vec<Link> =
            self.visitors.iter().filter(|(_, visitor)| late(visitor)).map(|(link, _)| *link).collect();
        for link in late {
            if let Some(Visitor::Arriving { .. }) = self.visitors.remove(&link) {
                const ETIMEDOUT: i32 = 110;
                let bytes = server_error(Iperf3ErrorNumber::RECV_COOKIE.0, ETIMEDOUT);
                self.server_state.out.push_back(Output::Send { link, bytes });
                self.part(now, link);
                self.report_bad_cookie(ETIMEDOUT, "Connection timed out");
            } else {
                self.server_state.out.push_back(Output::Close { link });
            }
        }
    }

    /// A connection without a cookie is only reported if nobody else is being served.
    fn report_bad_cookie(&mut self, errno: i32, text: &str) {
        if self.tests.is_empty() {
            let words =
                self.report().failed(&Iperf3Error::because(Iperf3ErrorNumber::RECV_COOKIE, errno, text));
            self.server_state.speak(words);
        }
    }
}
