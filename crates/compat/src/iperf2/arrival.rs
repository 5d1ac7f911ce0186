//! A connection or datagram sender before it belongs to a run.

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::datagram::{Generation, number_of};
use super::report::Iperf2Addresses;
use super::track::Iperf2Stream;
use super::wire::{BASE_BYTES, TestHeader, is_bounce_back};
use crate::stand_in::{Link, Opened};

/// Timeout for the header of a connection.
const HEADER_TIMEOUT: Span = Span::from_secs(5);

/// A connection or datagram sender before it belongs to a run.
#[derive(Debug)]
pub(super) struct Iperf2Arrival {
    pub(super) udp: bool,
    /// Absent while its own socket is being opened.
    pub(super) link: Option<Link>,
    pub(super) stream: Iperf2Stream,
    pub(super) header: Option<TestHeader>,
    pub(super) generation: Generation,
    pub(super) descriptor: i32,
    pub(super) mss: Option<u32>,
    pub(super) rtt: Option<Span>,
    pub(super) at: Timestamp,
    pub(super) due: Timestamp,
    /// Whether the other end has already closed it.
    pub(super) closed: bool,
    /// The received part of the header.
    received: Vec<u8>,
}

/// What the received bytes show.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Iperf2FirstBytes {
    /// More bytes are needed.
    More,
    /// The header is invalid.
    Wrong,
    /// The header is complete, or there is none.
    Header,
    /// A bounce-back test, whose requests begin with these bytes.
    Bounce(Vec<u8>),
}

impl Iperf2Arrival {
    pub(super) fn connection(now: Timestamp, link: Link, ends: Iperf2Addresses, opened: &Opened) -> Self {
        Self {
            udp: false,
            link: Some(link),
            stream: Iperf2Stream::new(0, link, ends),
            header: None,
            generation: super::server::DEFAULT_GENERATION,
            descriptor: opened.descriptor,
            mss: opened.mss,
            rtt: opened.rtt,
            at: now,
            due: now + HEADER_TIMEOUT,
            closed: false,
            received: Vec::new(),
        }
    }

    pub(super) fn datagram(
        now: Timestamp,
        from: SocketAddr,
        generation: Generation,
        header: Option<TestHeader>,
        number: i64,
        bytes: usize,
    ) -> Self {
        let mut stream = Iperf2Stream::new(0, Link(u32::MAX), Iperf2Addresses { local: from, remote: from });
        stream.add_datagram(bytes, number, generation);
        Self {
            udp: true,
            link: None,
            stream,
            header,
            generation,
            descriptor: 0,
            mss: None,
            rtt: None,
            at: now,
            due: now + HEADER_TIMEOUT,
            closed: false,
            received: Vec::new(),
        }
    }

    pub(super) fn is_from(&self, peer: SocketAddr) -> bool {
        self.udp && self.stream.ends.remote == peer
    }

    pub(super) fn add_datagram(&mut self, bytes: &[u8]) {
        if let Some(number) = number_of(bytes, self.generation).filter(|number| *number >= 0) {
            self.stream.add_datagram(bytes.len(), number, self.generation);
        }
    }

    /// Handles further bytes of a connection.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Iperf2FirstBytes {
        self.received.extend_from_slice(bytes);
        self.stream.own_bytes = self.received.len() as u64;
        if is_bounce_back(&self.received) {
            return Iperf2FirstBytes::Bounce(std::mem::take(&mut self.received));
        }
        match TestHeader::read_tcp(&self.received) {
            Err(_) => Iperf2FirstBytes::Wrong,
            Ok(None) => Iperf2FirstBytes::More,
            Ok(Some((Some(header), length))) => {
                if header.extension.is_some_and(|extension| extension.trip_times) {
                    self.stream.early = self.received.split_off(length.min(self.received.len()));
                }
                self.header = Some(header);
                Iperf2FirstBytes::Header
            }
            // There are no flags, but versions before 2.0.10 still send the number of connections.
            Ok(Some((None, _))) if self.received.len() < BASE_BYTES && self.received.starts_with(&[0; 4]) => {
                Iperf2FirstBytes::More
            }
            Ok(Some((None, _))) => {
                self.header = TestHeader::read_old(&self.received, 0);
                Iperf2FirstBytes::Header
            }
        }
    }

    /// Whether the received bytes can no longer become a header, or are not one.
    pub(super) fn is_data_only(&self) -> bool {
        !matches!(TestHeader::read_tcp(&self.received), Err(_) | Ok(Some((Some(_), _))))
    }

    /// Number of connections of the test; absent if the client does not tell it.
    pub(super) fn threads(&self) -> Option<usize> {
        let threads = self.header?.threads;
        (threads > 0).then(|| threads.min(1000) as usize)
    }
}
