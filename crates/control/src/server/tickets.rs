//! Queue places held by coordinators, by the tickets that their runs present.

use std::collections::BTreeMap;
use std::sync::Mutex;

use linerate_proto::Ticket;
use linerate_sock::thread::locked;

/// The valid tickets, each with its place in the queue.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    places: Mutex<BTreeMap<Ticket, u64>>,
}

impl Tickets {
    pub(super) fn give(&self, ticket: Ticket, place: u64) {
        locked(&self.places).insert(ticket, place);
    }

    pub(super) fn withdraw(&self, ticket: &Ticket) {
        locked(&self.places).remove(ticket);
    }

    /// The place of a ticket; absent if the ticket is unknown or no longer valid.
    pub(super) fn place(&self, ticket: &Ticket) -> Option<u64> {
        locked(&self.places).get(ticket).copied()
    }
}
