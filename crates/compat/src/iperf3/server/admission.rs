//! Admission of tests, and the socket on which datagram streams arrive.

use std::net::SocketAddr;

use linerate_units::Timestamp;

use super::{Iperf3Server, Visitor};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::params::{Iperf3Limits, Params};
use crate::iperf3::plan;
use crate::iperf3::server::test::{Iperf3ServerPhase, Iperf3ServerTest};
use crate::iperf3::wire::HELLO_REPLY;
use crate::stand_in::{Link, LinkOptions, Opened, Output, RunId, SystemError, Transport};

/// The socket on which datagram streams arrive: open while a test waits for some.
#[derive(Debug)]
pub(super) struct DatagramListener {
    link: Link,
    open: bool,
}

impl Iperf3Server {
    /// The parameters are complete: decides whether the test is permitted.
    pub(super) fn consider(&mut self, now: Timestamp, run: RunId, params: Params) {
        let seconds = self.unix_seconds(now);
        let server = &self.server_state.settings.server;
        let limits = Iperf3Limits {
            bitrate: server.bitrate_limit.filter(|limit| *limit > 0),
            seconds: server.max_duration.map(|most| most.as_ns() / 1_000_000_000),
            file: self.server_state.settings.common.file.is_some(),
        };
        let busy = self.is_busy();
        let Some(test) = self.tests.get_mut(&run) else { return };
        if let Some(gate) = &mut self.gate {
            let token = params.authtoken.as_deref().unwrap_or_default();
            if gate.admits(token, seconds, &mut self.random).is_none() {
                return test.fail(&Iperf3Error::new(Iperf3ErrorNumber::AUTH), &mut self.server_state);
            }
        }
        if params.sctp {
            const EPROTONOSUPPORT: i32 = 93;
            let why = Iperf3Error::because(
                Iperf3ErrorNumber::STREAM_LISTEN,
                EPROTONOSUPPORT,
                "Protocol not supported",
            );
            return test.fail(&why, &mut self.server_state);
        }
        if let Err(number) = params.check(&limits) {
            return test.fail(&Iperf3Error::new(number), &mut self.server_state);
        }
        if busy {
            return test.reject(&mut self.server_state);
        }
        test.ask(params, &mut self.server_state);
    }

    pub(super) fn admitted(&mut self, now: Timestamp, run: RunId) {
        let unix_ms = self.server_state.unix_ms.saturating_add(now.as_ns() / 1_000_000);
        let Some(test) = self.tests.get_mut(&run).filter(|test| test.phase == Iperf3ServerPhase::Asking)
        else {
            return;
        };
        test.accept(now, unix_ms, &mut self.server_state);
        self.admit_udp_tests(now);
    }

    pub(super) fn refused(&mut self, run: RunId) {
        if let Some(test) = self.tests.get_mut(&run).filter(|test| test.phase == Iperf3ServerPhase::Asking) {
            test.reject(&mut self.server_state);
        }
    }

    /// Admits tests that wait for the datagram socket. Datagrams carry no cookie, so tests of the same host
    /// open their streams one after another.
    pub(super) fn admit_udp_tests(&mut self, now: Timestamp) {
        if !self.tests.values().any(|test| test.phase == Iperf3ServerPhase::AwaitsUdpListener) {
            return;
        }
        match &self.udp_listener {
            None => {
                let common = &self.server_state.settings.common;
                let options = LinkOptions { transport: Transport::Udp, ..LinkOptions::default() };
                let (options, port) = (plan::located(options, common), common.port);
                let link = self.server_state.link();
                self.server_state.out.push_back(Output::Listen { link, port, options });
                self.udp_listener = Some(DatagramListener { link, open: false });
            }
            Some(listener) if listener.open => {
                let awaited = |test: &&Iperf3ServerTest| test.is_udp() && test.awaits_streams();
                let mut hosts: Vec<_> =
                    self.tests.values().filter(awaited).map(|test| test.peer.ip()).collect();
                for test in
                    self.tests.values_mut().filter(|test| test.phase == Iperf3ServerPhase::AwaitsUdpListener)
                {
                    if !hosts.contains(&test.peer.ip()) {
                        hosts.push(test.peer.ip());
                        test.create_streams(now, &mut self.server_state);
                    }
                }
            }
            Some(_) => {}
        }
    }

    /// Closes the datagram socket when no streams are expected.
    pub(super) fn close_udp_listener(&mut self) {
        let awaited = |test: &Iperf3ServerTest| {
            test.phase == Iperf3ServerPhase::AwaitsUdpListener || test.is_udp() && test.awaits_streams()
        };
        if let Some(listener) = self.udp_listener.take_if(|_| !self.tests.values().any(awaited)) {
            self.server_state.out.push_back(Output::Close { link: listener.link });
        }
    }

    pub(super) fn udp_listener_opened(&mut self, now: Timestamp, link: Link) {
        if let Some(listener) = self.udp_listener.as_mut().filter(|listener| listener.link == link) {
            listener.open = true;
            self.admit_udp_tests(now);
        }
    }

    pub(super) fn udp_listener_failed(&mut self, now: Timestamp, link: Link, reason: &SystemError) {
        if self.udp_listener.as_ref().is_none_or(|listener| listener.link != link) {
            return;
        }
        let opened = self.udp_listener.take().is_some_and(|listener| listener.open);
        let number = if opened { Iperf3ErrorNumber::STREAM_ACCEPT } else { Iperf3ErrorNumber::STREAM_LISTEN };
        let trouble = Iperf3Error::because(number, reason.errno, reason.text.clone());
        for test in self.tests.values_mut().filter(|test| test.is_udp()) {
            if test.phase == Iperf3ServerPhase::AwaitsUdpListener || test.awaits_streams() {
                test.fail(&trouble, &mut self.server_state);
            }
        }
        self.admit_udp_tests(now);
    }

    /// The first datagram of a peer opens a stream, whatever its content.
    pub(super) fn datagram(&mut self, link: Link, from: SocketAddr) {
        if self.udp_listener.as_ref().is_none_or(|listener| listener.link != link) {
            return;
        }
        let expects = |test: &&mut Iperf3ServerTest| test.is_udp() && test.awaits_streams();
        let many = self.tests.values_mut().filter(expects).count() > 1;
        // A host with several addresses may send from another one than that of its control connection. But no
        // data are sent to an address that has not proved to receive: the source address of a datagram is
        // easily forged.
        let its = |test: &&mut Iperf3ServerTest| test.peer.ip() == from.ip() || !many && !test.sends();
        let Some(test) = self.tests.values_mut().filter(expects).find(its) else { return };
        if let Some(options) = test.adopt(from) {
            self.server_state.out.push_back(Output::Adopt { listener: link, peer: from, options });
        }
    }

    /// The socket of a datagram stream is open.
    pub(super) fn adopted(&mut self, now: Timestamp, link: Link, opened: Opened) {
        let Some(peer) = opened.remote else { return };
        let found = self.tests.iter_mut().find(|(_, test)| test.adopting == Some(peer));
        let Some((run, test)) = found else {
            return self.server_state.out.push_back(Output::Close { link });
        };
        self.visitors.insert(link, Visitor::Stream(*run));
        self.server_state.out.push_back(Output::Send { link, bytes: HELLO_REPLY.to_vec() });
        test.adopting = None;
        test.add_stream(now, link, opened, &mut self.server_state);
        self.admit_udp_tests(now);
    }

    fn unix_seconds(&self, now: Timestamp) -> u64 {
        self.server_state.unix_ms.saturating_add(now.as_ns() / 1_000_000) / 1000
    }
}
