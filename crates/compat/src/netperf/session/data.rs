//! The data of a test: its connections, its flow, and transactions.

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::{FLOW_END_TIMEOUT, IDLE_TIMEOUT, NetperfServerPhase, NetperfSession};
use crate::netperf::terms::{grace, task};
use crate::netperf::wire::NetperfProtocol;
use crate::stand_in::{FlowCounts, Link, Output, Stop};

impl NetperfSession {
    pub(super) fn accepted(&mut self, now: Timestamp, link: Link) {
        let Some(test) = self.test.as_mut() else {
            return self.out.push_back(Output::Close { link });
        };
        test.active = now;
        let transactions = test.request.roles.transactions();
        match self.phase {
            NetperfServerPhase::Accepting if !transactions => {
                test.data = Some(link);
                self.out.push_back(Output::Close { link: self.own });
                self.start(now, link);
            }
            NetperfServerPhase::Accepting | NetperfServerPhase::Transacting if transactions => {
                self.phase = NetperfServerPhase::Transacting;
                if !test.request.roles.receives {
                    // Only connections are measured.
                    test.responder.transactions = test.responder.transactions.saturating_add(1);
                    self.out.push_back(Output::Close { link });
                    self.end_if_complete(now);
                } else if !test.responder.accept(link) {
                    self.out.push_back(Output::Close { link });
                }
            }
            _ => self.out.push_back(Output::Close { link }),
        }
    }

    /// Starts the flow of a stream.
    pub(super) fn start(&mut self, now: Timestamp, link: Link) {
        let Some(test) = &self.test else { return };
        let left = u64::try_from(test.request.length).ok().filter(|seconds| *seconds > 0).map(|seconds| {
            Span::from_secs(seconds).saturating_sub(now.since(test.began)).max(Span::from_ms(1))
        });
        let opened = test.opened.as_ref();
        let task = task(&test.request, opened, self.flow, self.run, link, left);
        if test.request.roles.sends {
            self.due = left.map(|left| now + left + FLOW_END_TIMEOUT);
        }
        self.phase = NetperfServerPhase::Streaming;
        self.out.push_back(Output::Start(Box::new(task)));
    }

    pub(super) fn stop(&mut self, now: Timestamp, how: Stop) {
        if self.phase == NetperfServerPhase::Streaming {
            self.phase = NetperfServerPhase::Stopping;
            self.due = Some(now + FLOW_END_TIMEOUT);
            self.next_look = None;
            self.out.push_back(Output::Stop { flow: self.flow, how });
        }
    }

    pub(super) fn request_bytes(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        if let Some(test) = &mut self.test {
            test.active = now;
            test.responder.bytes(link, bytes.len(), &mut self.out);
        }
        self.end_if_complete(now);
    }

    /// Ends a test with a fixed number of transactions over as many connections, which nothing else ends.
    pub(super) fn end_if_complete(&mut self, now: Timestamp) {
        let complete = self.test.as_ref().is_some_and(|test| {
            let wanted = u64::from(test.request.length.unsigned_abs());
            test.request.connects_each_time()
                && test.request.length < 0
                && test.responder.transactions >= wanted
        });
        if complete {
            self.finish(now, Span::ZERO);
        }
    }

    pub(super) fn data_closed(&mut self, now: Timestamp, link: Link) {
        let Some(test) = &mut self.test else { return };
        test.responder.closed(link, &mut self.out);
        let length = u64::try_from(test.request.length).unwrap_or(0);
        let late = length > 0 && now.since(test.began) >= Span::from_secs(length);
        // With a connection for each transaction, one without a request ends the test when its time is over.
        if !test.request.connects_each_time() || (late && test.responder.is_idle()) {
            self.finish(now, Span::ZERO);
        }
    }

    /// Answers a datagram. Only the client gets answers, because a source address is easily forged.
    pub(super) fn datagram(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) {
        let Some(test) = self.test.as_mut().filter(|_| self.phase == NetperfServerPhase::Transacting) else {
            return;
        };
        if self.peer.is_some_and(|peer| peer.ip().to_canonical() != from.ip().to_canonical()) {
            return;
        }
        if bytes.is_empty() {
            return self.finish(now, Span::ZERO);
        }
        test.active = now;
        let length = test.request.response_size.unwrap_or(1);
        let responder = &mut test.responder;
        let asked = u64::from(test.request.request_size.unwrap_or(1));
        responder.received = responder.received.saturating_add(asked.min(bytes.len() as u64));
        responder.sent = responder.sent.saturating_add(u64::from(length));
        responder.transactions = responder.transactions.saturating_add(1);
        self.out.push_back(Output::SendTo { link: self.own, to: from, bytes: vec![0; length as usize] });
    }

    pub(super) fn flow_ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        let late = self.phase == NetperfServerPhase::Stopping;
        self.out.push_back(Output::Forget { flow: self.flow });
        let Some(test) = &mut self.test else { return };
        let calls = if test.request.protocol == NetperfProtocol::Udp {
            counts.total(|s| s.packets)
        } else {
            counts.total(|s| s.calls)
        };
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let results = &mut test.results;
        let sends = test.request.roles.sends;
        if sends {
            (results.sent, results.send_calls) = (counts.total(|stream| stream.bytes), calls);
        } else {
            (results.received, results.receive_calls) = (counts.total(|stream| stream.bytes), calls);
        }
        let retransmits =
            counts.streams.iter().filter_map(|stream| stream.retransmits).reduce(u64::saturating_add);
        results.retransmits = retransmits.and_then(|count| u32::try_from(count).ok());
        test.trouble = counts.trouble.as_ref().map(|reason| reason.text.clone()).or(test.trouble.take());
        // The timer of a receiver runs longer than the test.
        let beyond = if late && test.request.length > 0 { grace(&test.request) } else { Span::ZERO };
        self.finish(now, beyond);
    }

    pub(super) fn check_activity(&mut self, now: Timestamp, flows: &[FlowCounts]) {
        let Some(test) = self.test.as_mut().filter(|_| self.phase == NetperfServerPhase::Streaming) else {
            return;
        };
        let Some(counts) = flows.iter().find(|counts| counts.flow == self.flow) else { return };
        let moved = counts.total(|stream| stream.bytes);
        if moved != test.moved {
            (test.moved, test.active) = (moved, now);
        } else if now.since(test.active) >= IDLE_TIMEOUT {
            test.trouble = Some("no data arrive any more".to_owned());
            self.stop(now, Stop::AtOnce);
        }
    }
}
