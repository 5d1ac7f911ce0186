//! Opening the connections: the addresses of each, further attempts, and tests that only connect.

use std::net::{IpAddr, SocketAddr};

use linerate_units::{Span, Timestamp};

use super::{Iperf2Client, Iperf2ClientState};
use crate::iperf2::report::{ConnectionDetails, Iperf2Addresses};
use crate::iperf2::settings::{Iperf2Amount, Iperf2Mode};
use crate::stand_in::{Link, LinkOptions, Opened, Output};

/// Time between two attempts to connect (2.1.8).
const RETRY_DELAY: Span = Span::from_ms(200);

/// A test that only connects.
#[derive(Debug, Default)]
pub(super) struct ConnectOnly {
    /// Connections that were tried.
    tried: u32,
    /// Connections of the present round that have no result yet.
    open: u32,
    /// Whether the banner was printed.
    announced: bool,
    /// When the present round began, and when the test ends.
    round_at: Timestamp,
    until: Option<Timestamp>,
}

impl ConnectOnly {
    pub(super) const fn has_begun(&self) -> bool {
        self.announced
    }
}

/// The address that is `number` after this one.
fn after(address: IpAddr, number: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::from(u32::from(v4).wrapping_add(number).to_be_bytes()),
        IpAddr::V6(v6) => IpAddr::from(u128::from(v6).wrapping_add(u128::from(number)).to_be_bytes()),
    }
}

impl Iperf2Client {
    /// Opens all connections.
    pub(super) fn connect(&mut self) {
        for number in 0..self.wanted() {
            self.connect_one(number);
        }
    }

    fn connect_one(&mut self, number: u32) {
        let settings = &self.queue.settings;
        let local_port = settings.bind_port.and_then(|port| port.checked_add(number as u16));
        let mut options = LinkOptions { local_port, ..self.queue.options(settings.udp) };
        if settings.increments.from {
            options.local = options.local.map(|local| after(local, number));
        }
        let next_port = if settings.increments.to_port { number as u16 } else { 0 };
        let port = settings.port.saturating_add(next_port);
        let host = settings.host.as_ref().and_then(|host| host.parse::<IpAddr>().ok());
        let to =
            host.filter(|_| settings.increments.to).map(|host| SocketAddr::new(after(host, number), port));
        self.queue.put(Output::Connect { link: Link(number), port, to, options });
    }

    /// Tries a connection again after a pause, if attempts are left.
    pub(super) fn try_again(&mut self, now: Timestamp, link: Link) -> bool {
        let left = self.retries.get(&link.0).map_or(self.queue.settings.connect_retries, |(_, left)| *left);
        let Some(left) = left.checked_sub(1) else { return false };
        self.retries.insert(link.0, (Some(now + RETRY_DELAY), left));
        true
    }

    pub(super) fn retry(&mut self, now: Timestamp) {
        let mut due = Vec::new();
        for (number, (at, _)) in &mut self.retries {
            if at.take_if(|at| *at <= now).is_some() {
                due.push(*number);
            }
        }
        for number in due {
            self.connect_one(number);
        }
    }

    /// With --connect-only: a connection has opened, or cannot be opened.
    pub(super) fn connected_only(&mut self, now: Timestamp, link: Link, opened: Option<&Opened>) {
        if !self.connects.announced {
            self.connects.announced = true;
            self.connects.round_at = now;
            self.connects.until = match self.queue.settings.amount {
                Iperf2Amount::Time(time) => Some(now + time),
                Iperf2Amount::Bytes(_) => None,
            };
            self.connects.open = self.wanted();
            if opened.is_some() {
                self.banner(opened);
            }
        }
        if let Some(opened) = opened {
            let details = ConnectionDetails {
                mss: opened.mss,
                rtt: opened.rtt,
                handshake: opened.handshake,
                opened_at: self.queue.settings.wall(now).0,
                ..ConnectionDetails::default()
            };
            let ends = Iperf2Addresses { local: opened.local, remote: opened.remote.unwrap_or(opened.local) };
            let notes = self.queue.report.notes(Iperf2Mode::Plain, &details);
            let text = self.queue.report.connected(link.0 + 1, false, ends.local, ends.remote, &notes);
            self.queue.print(text);
            self.queue.put(Output::Close { link });
        }
        self.connects.tried += 1;
        self.connects.open = self.connects.open.saturating_sub(1);
        if self.connects.open > 0 {
            return;
        }
        let wanted = self.queue.settings.connect_only.filter(|wanted| *wanted > 0);
        let next = match self.queue.settings.interval {
            Some(interval) => self.connects.round_at + interval,
            None => now,
        };
        let over = wanted.is_some_and(|wanted| self.connects.tried >= wanted)
            || self.connects.until.is_some_and(|until| next >= until);
        if over {
            self.stage = Iperf2ClientState::Over;
            self.queue.exit(0);
        } else {
            self.due = Some(next.max(now));
        }
    }

    /// With --connect-only: the next connections.
    pub(super) fn next_connects(&mut self, now: Timestamp) {
        self.connects.round_at = now;
        self.connects.open = self.wanted();
        self.retries.clear();
        self.connect();
    }
}
