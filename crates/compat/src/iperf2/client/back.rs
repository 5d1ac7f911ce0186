//! Reverse connections from the server (-d, -r).

use std::net::SocketAddr;

use linerate_units::Timestamp;

use super::{Iperf2Client, Iperf2ClientState, REVERSE_LISTENER};
use crate::iperf2::datagram::{number_of, opening_header};
use crate::iperf2::direction::Iperf2Direction;
use crate::iperf2::report::{ConnectionDetails, Iperf2Addresses};
use crate::iperf2::settings::Iperf2Mode;
use crate::iperf2::track::Iperf2Stream;
use crate::stand_in::{FlowId, Link, Opened, Output};

impl Iperf2Client {
    /// Handles a reverse connection, or the socket of a reverse datagram flow.
    pub(super) fn accepted(&mut self, now: Timestamp, link: Link, opened: &Opened) {
        let remote = opened.remote.unwrap_or(opened.local);
        let known = self
            .back
            .iter_mut()
            .find(|stream| stream.link == REVERSE_LISTENER && stream.ends.remote == remote);
        if let Some(stream) = known {
            stream.link = link;
        } else if self.is_server(remote)
            && self.back.len() < self.wanted() as usize
            && !self.queue.settings.udp
        {
            let ends = Iperf2Addresses { local: opened.local, remote };
            let id = self.wanted() + self.back.len() as u32 + 1;
            self.back.push(Iperf2Stream::new(id, link, ends));
        } else {
            // Only the server of this test may send here.
            self.queue.put(Output::Reset { link });
            return;
        }
        let details = ConnectionDetails {
            descriptor: opened.descriptor,
            opened_at: self.queue.settings.wall(now).0,
            ..ConnectionDetails::default()
        };
        if let Some(stream) = self.back.iter().find(|stream| stream.link == link) {
            let notes = self.queue.report.notes(Iperf2Mode::Plain, &details);
            let (id, ends) = (stream.id, stream.ends);
            let text = self.queue.report.connected(id, false, ends.local, ends.remote, &notes);
            self.queue.print(text);
        }
        self.start_back(now);
    }

    pub(super) fn is_server(&self, address: SocketAddr) -> bool {
        self.opened.values().any(|opened| opened.remote.is_some_and(|remote| remote.ip() == address.ip()))
    }

    pub(super) fn start_back(&mut self, now: Timestamp) {
        let started = self.directions.iter().any(|direction| direction.load.flow == FlowId(1));
        let all = self.back.len() == self.wanted() as usize
            && self.back.iter().all(|stream| stream.link != REVERSE_LISTENER);
        if started || !all || !matches!(self.stage, Iperf2ClientState::Testing | Iperf2ClientState::Waiting) {
            return;
        }
        let mut load = self.load(false, false);
        (load.answers, load.shared) = (true, false);
        load.generation = self.back_generation;
        let direction = Iperf2Direction::start(&mut self.queue, now, load, self.back.clone());
        self.directions.push(direction);
        self.stage = Iperf2ClientState::Testing;
        self.due = None;
    }

    /// Handles the first datagram of a reverse test.
    pub(super) fn back_datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        let (generation, _) = opening_header(bytes);
        let number = number_of(bytes, generation).filter(|number| *number >= 0);
        let Some(number) = number.filter(|_| self.is_server(from)) else { return };
        self.back_generation = generation;
        if let Some(stream) = self.back.iter_mut().find(|stream| stream.ends.remote == from) {
            stream.add_datagram(bytes.len(), number, generation);
        } else if self.back.len() < self.wanted() as usize {
            let port = self.queue.settings.listen_port.unwrap_or(self.queue.settings.port);
            let local = self.opened.values().next().map_or(from, |opened| opened.local);
            let ends = Iperf2Addresses { local: SocketAddr::new(local.ip(), port), remote: from };
            let mut stream =
                Iperf2Stream::new(self.wanted() + self.back.len() as u32 + 1, REVERSE_LISTENER, ends);
            stream.add_datagram(bytes.len(), number, generation);
            self.back.push(stream);
            let options = self.queue.options(true);
            self.queue.put(Output::Adopt { listener: REVERSE_LISTENER, peer: from, options });
        }
    }
}
