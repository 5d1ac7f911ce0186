//! Who is measured when.

use std::collections::BTreeMap;
use std::sync::Mutex;

use linerate_sock::{Mono, clock};
use linerate_units::Span;

use super::Policy;
use super::registry::locked;

/// The clients at work and in line.
#[derive(Debug)]
pub(super) struct Queue {
    policy: Policy,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// In the order in which they came.
    clients: BTreeMap<u64, Client>,
}

#[derive(Debug)]
struct Client {
    length: Span,
    began: Option<Mono>,
    /// Most others at work at the same time.
    beside: u32,
}

/// What a client may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is at work, beside so many others.
    Now { beside: u32 },
    /// It waits.
    Later { place: u32, wait: Span },
}

impl Queue {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, state: Mutex::new(State::default()) }
    }

    /// A client that will take about `length`; its ticket.
    pub(super) fn join(&self, length: Span) -> u64 {
        let mut state = locked(&self.state);
        let ticket = state.next;
        state.next += 1;
        state.clients.insert(ticket, Client { length, began: None, beside: 0 });
        ticket
    }

    pub(super) fn leave(&self, ticket: u64) {
        locked(&self.state).clients.remove(&ticket);
    }

    /// How many clients there are.
    pub(super) fn len(&self) -> usize {
        locked(&self.state).clients.len()
    }

    /// Whether it is this client's turn; once it is, it stays.
    pub(super) fn turn(&self, ticket: u64) -> Turn {
        let now = clock::now();
        let mut state = locked(&self.state);
        let at_work = state.clients.values().filter(|client| client.began.is_some()).count() as u32;
        let begun = state.clients.get(&ticket).is_some_and(|client| client.began.is_some());
        let first_waiting =
            state.clients.iter().find(|(_, client)| client.began.is_none()).map(|(ticket, _)| *ticket);
        let free = self.policy == Policy::Shared || (at_work == 0 && first_waiting == Some(ticket));
        if !begun && free {
            if let Some(client) = state.clients.get_mut(&ticket) {
                client.began = Some(now);
            }
            for client in state.clients.values_mut().filter(|client| client.began.is_some()) {
                client.beside = client.beside.max(at_work);
            }
        }
        if begun || free {
            return Turn::Now { beside: state.clients.get(&ticket).map_or(0, |client| client.beside) };
        }
        let ahead = state.clients.range(..ticket).map(|(_, client)| client);
        let mut wait = Span::ZERO;
        let mut place = 1;
        for client in ahead {
            wait = wait + client.left(now);
            place += u32::from(client.began.is_none());
        }
        Turn::Later { place, wait }
    }
}

impl Client {
    fn left(&self, now: Mono) -> Span {
        match self.began {
            Some(began) => self.length.saturating_sub(Span::from(now.since(began))),
            None => self.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Span = Span::from_secs(60);

    #[test]
    fn one_at_a_time_in_the_order_of_arrival() {
        let queue = Queue::new(Policy::Exclusive);
        let (a, b, c) = (queue.join(MINUTE), queue.join(MINUTE), queue.join(MINUTE));
        // Not even when asked out of order.
        let Turn::Later { place, wait } = queue.turn(c) else { panic!("c came last") };
        assert_eq!((place, wait), (3, Span::from_secs(120)));
        assert_eq!(queue.turn(a), Turn::Now { beside: 0 });
        let Turn::Later { place, wait } = queue.turn(b) else { panic!("a is at work") };
        assert!(place == 1 && wait <= MINUTE && wait > Span::from_secs(50));
        queue.leave(a);
        assert_eq!(queue.turn(b), Turn::Now { beside: 0 });
        queue.leave(b);
        assert_eq!(queue.turn(c), Turn::Now { beside: 0 });
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn a_client_that_gives_up_does_not_block_the_line() {
        let queue = Queue::new(Policy::Exclusive);
        let (a, b) = (queue.join(MINUTE), queue.join(MINUTE));
        queue.leave(a);
        assert_eq!(queue.turn(b), Turn::Now { beside: 0 });
    }

    #[test]
    fn shared_runs_know_of_each_other() {
        let queue = Queue::new(Policy::Shared);
        let (a, b) = (queue.join(MINUTE), queue.join(MINUTE));
        assert_eq!(queue.turn(a), Turn::Now { beside: 0 });
        assert_eq!(queue.turn(b), Turn::Now { beside: 1 });
        // The first learns of the second, and remembers it after its end.
        assert_eq!(queue.turn(a), Turn::Now { beside: 1 });
        queue.leave(b);
        assert_eq!(queue.turn(a), Turn::Now { beside: 1 });
    }
}
