//! Senders on sync connections. The meaning of a number depends on its position in the dialogue, not on its
//! value.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_units::{Span, Timestamp};

use crate::ntttcp::wire::{END, LAST, NumberSplitter, QUERY, READY};
use crate::stand_in::Link;

/// Most concurrent senders.
const MAX_SENDERS: usize = 64;

/// Timeout for a sender's next number before it is ready.
const SENDER_TIMEOUT: Span = Span::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NtttcpClientState {
    Fresh,
    Queried,
    Agreed,
    Ready,
}

/// The meaning of a number from a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NtttcpClientMessage {
    /// It queries the state of the receiver.
    Query,
    /// It proposes a duration in seconds.
    Time(u32),
    /// It is ready; `last` if no other sender follows.
    Ready { last: bool },
    /// It ends the test.
    End,
    /// It is not part of this protocol.
    Nonsense,
}

#[derive(Debug)]
struct NtttcpClient {
    numbers: NumberSplitter,
    step: NtttcpClientState,
    since: Timestamp,
    /// Its host; absent if unknown.
    host: Option<IpAddr>,
}

/// All senders.
#[derive(Debug, Default)]
pub(super) struct Clients {
    all: BTreeMap<Link, NtttcpClient>,
}

impl Clients {
    /// Adds a sender; false if there is no room.
    pub(super) fn add(&mut self, now: Timestamp, link: Link, host: Option<IpAddr>) -> bool {
        let room = self.all.len() < MAX_SENDERS;
        if room {
            let numbers = NumberSplitter::default();
            self.all.insert(link, NtttcpClient { numbers, step: NtttcpClientState::Fresh, since: now, host });
        }
        room
    }

    /// Whether this sender is still here.
    pub(super) fn has(&self, link: Link) -> bool {
        self.all.contains_key(&link)
    }

    /// The host of a sender.
    pub(super) fn host(&self, link: Link) -> Option<IpAddr> {
        self.all.get(&link)?.host
    }

    /// Notes that a sender has opened a connection, and restarts its timeout.
    pub(super) fn is_active(&mut self, now: Timestamp, link: Link) {
        if let Some(client) = self.all.get_mut(&link) {
            client.since = now;
        }
    }

    /// Removes all senders but these; returns the removed ones.
    pub(super) fn drain_but(&mut self, kept: &[Link]) -> Vec<Link> {
        let gone: Vec<Link> = self.all.keys().copied().filter(|link| !kept.contains(link)).collect();
        self.all.retain(|link, _| kept.contains(link));
        gone
    }

    pub(super) fn push(&mut self, now: Timestamp, link: Link, bytes: &[u8]) -> Vec<NtttcpClientMessage> {
        let Some(client) = self.all.get_mut(&link) else {
            return Vec::new();
        };
        let numbers = client.numbers.push(bytes);
        let mut messages = Vec::new();
        for number in numbers {
            client.since = now;
            messages.push(client.take(number));
            if messages.last() == Some(&NtttcpClientMessage::Nonsense) {
                break;
            }
        }
        messages
    }

    pub(super) fn remove(&mut self, link: Link) -> bool {
        self.all.remove(&link).is_some()
    }

    pub(super) fn drain(&mut self) -> Vec<Link> {
        std::mem::take(&mut self.all).into_keys().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there are no senders besides these.
    pub(super) fn has_no_others(&self, than: &[Link]) -> bool {
        self.all.keys().all(|link| than.contains(link))
    }

    /// The senders that wait for the start or have got it.
    pub(super) fn ready(&self) -> Vec<Link> {
        self.all
            .iter()
            .filter(|(_, client)| client.step == NtttcpClientState::Ready)
            .map(|(link, _)| *link)
            .collect()
    }

    /// Whether this sender is one of the test, or a second connection of a host that has one.
    pub(super) fn takes_part(&self, link: Link) -> bool {
        let Some(client) = self.all.get(&link) else { return false };
        let ready = |other: &NtttcpClient| other.step == NtttcpClientState::Ready;
        ready(client) || self.all.values().any(|other| ready(other) && other.host == client.host)
    }

    /// Whether another sender has agreed on a duration.
    pub(super) fn is_one_agreed(&self, but: Link) -> bool {
        let agreed = |client: &NtttcpClient| {
            matches!(client.step, NtttcpClientState::Agreed | NtttcpClientState::Ready)
        };
        self.all.iter().any(|(link, client)| *link != but && agreed(client))
    }

    /// From now on senders only wait for the end of the test.
    pub(super) fn start_time(&mut self, now: Timestamp) {
        for client in self.all.values_mut() {
            client.since = now;
        }
    }

    /// The senders whose timeout has passed before they were ready.
    pub(super) fn overdue(&self, now: Timestamp) -> Vec<Link> {
        let late = |client: &NtttcpClient| client.until().is_some_and(|until| now >= until);
        self.all.iter().filter(|(_, client)| late(client)).map(|(link, _)| *link).collect()
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.all.values().filter_map(NtttcpClient::until).min()
    }
}

impl NtttcpClient {
    fn until(&self) -> Option<Timestamp> {
        (self.step != NtttcpClientState::Ready).then(|| self.since + SENDER_TIMEOUT)
    }

    fn take(&mut self, number: i32) -> NtttcpClientMessage {
        match (self.step, number) {
            (NtttcpClientState::Fresh, QUERY) => {
                self.step = NtttcpClientState::Queried;
                NtttcpClientMessage::Query
            }
            // An interrupted sender opens a new connection only to end the test.
            (NtttcpClientState::Fresh | NtttcpClientState::Agreed | NtttcpClientState::Ready, END) => {
                NtttcpClientMessage::End
            }
            (NtttcpClientState::Queried, seconds) => {
                self.step = NtttcpClientState::Agreed;
                u32::try_from(seconds).map_or(NtttcpClientMessage::Nonsense, NtttcpClientMessage::Time)
            }
            (NtttcpClientState::Agreed | NtttcpClientState::Ready, READY | LAST) => {
                self.step = NtttcpClientState::Ready;
                NtttcpClientMessage::Ready { last: number == LAST }
            }
            (NtttcpClientState::Agreed | NtttcpClientState::Ready, QUERY) => NtttcpClientMessage::Query,
            _ => NtttcpClientMessage::Nonsense,
        }
    }
}
