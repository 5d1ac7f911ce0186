//! A connection or sender of datagrams before it belongs to a run.

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::datagram::{Generation, number_of};
use super::report::Ends;
use super::track::Stream;
use super::wire::{BASE_BYTES, TestHeader, is_bounce_back};
use crate::stand_in::{Link, Opened};

/// How long a connection may be silent before its header.
const HEADER_TIMEOUT: Span = Span::from_secs(5);

/// A connection or sender of datagrams before it belongs to a run.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) udp: bool,
    /// Absent while a socket of its own is wanted.
    pub(super) link: Option<Link>,
    pub(super) stream: Stream,
    pub(super) header: Option<TestHeader>,
    pub(super) generation: Generation,
    pub(super) descriptor: i32,
    pub(super) mss: Option<u32>,
    pub(super) at: Timestamp,
    pub(super) due: Timestamp,
    /// The other end closed it already.
    pub(super) closed: bool,
    /// The header as far as it has come.
    heard: Vec<u8>,
}

/// What the bytes so far say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// More are needed.
    More,
    /// A header that cannot be.
    Wrong,
    /// The header is there, or it is known that there is none.
    Header,
    /// Requests to be returned, beginning with these.
    Bounce(Vec<u8>),
}

impl Arrival {
    pub(super) fn connection(now: Timestamp, link: Link, ends: Ends, opened: &Opened) -> Self {
        Self {
            udp: false,
            link: Some(link),
            stream: Stream::new(0, link, ends),
            header: None,
            generation: super::server::DEFAULT_GENERATION,
            descriptor: opened.descriptor,
            mss: opened.mss,
            at: now,
            due: now + HEADER_TIMEOUT,
            closed: false,
            heard: Vec::new(),
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
        let mut stream = Stream::new(0, Link(u32::MAX), Ends { local: from, remote: from });
        stream.add_datagram(bytes, number, generation);
        Self {
            udp: true,
            link: None,
            stream,
            header,
            generation,
            descriptor: 0,
            mss: None,
            at: now,
            due: now + HEADER_TIMEOUT,
            closed: false,
            heard: Vec::new(),
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

    /// More bytes of a connection.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Heard {
        self.heard.extend_from_slice(bytes);
        self.stream.own_bytes = self.heard.len() as u64;
        if is_bounce_back(&self.heard) {
            return Heard::Bounce(std::mem::take(&mut self.heard));
        }
        match TestHeader::read_tcp(&self.heard) {
            Err(_) => Heard::Wrong,
            Ok(None) => Heard::More,
            Ok(Some((Some(header), length))) => {
                if header.extension.is_some_and(|extension| extension.trip_times) {
                    self.stream.early = self.heard.split_off(length.min(self.heard.len()));
                }
                self.header = Some(header);
                Heard::Header
            }
            // No header to speak of; versions before 2.0.10 still say how many connections there are.
            Ok(Some((None, _))) if self.heard.len() < BASE_BYTES && self.heard.starts_with(&[0; 4]) => {
                Heard::More
            }
            Ok(Some((None, _))) => {
                self.header = TestHeader::read_old(&self.heard, 0);
                Heard::Header
            }
        }
    }

    /// What came cannot become a header any more, or never looked like one.
    pub(super) fn is_data_only(&self) -> bool {
        !matches!(TestHeader::read_tcp(&self.heard), Err(_) | Ok(Some((Some(_), _))))
    }

    /// Connections that belong to the test.
    pub(super) fn threads(&self) -> usize {
        self.header.map_or(1, |header| header.threads.clamp(1, 1000) as usize)
    }
}
