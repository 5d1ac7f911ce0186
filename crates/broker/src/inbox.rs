//! What waits for the caller: messages and changes of the connection.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use linerate_sock::clock;
use linerate_sock::thread::locked;

use crate::broker::BrokerEvent;

/// Limits of the messages that wait. Senders repeat what was not answered.
const MAX_MESSAGES: usize = 16_384;
const MAX_BYTES: usize = 16 << 20;
/// Changes of the connection that wait; of more only the latest are kept.
const MAX_CHANGES: usize = 64;

/// A bounded queue of events.
#[derive(Debug, Default)]
pub(crate) struct BrokerInbox {
    state: Mutex<InboxState>,
    added: Condvar,
}

#[derive(Debug, Default)]
struct InboxState {
    queue: VecDeque<BrokerEvent>,
    messages: usize,
    bytes: usize,
    dropped: u64,
}

impl BrokerInbox {
    /// Adds a message, or drops it if too many wait.
    pub(crate) fn push_message(&self, subject: &str, payload: &[u8]) {
        let bytes = subject.len() + payload.len();
        let mut state = locked(&self.state);
        if state.messages >= MAX_MESSAGES || state.bytes + bytes > MAX_BYTES {
            state.dropped += 1;
            return;
        }
        state.messages += 1;
        state.bytes += bytes;
        // A copy, because what comes from the network shares the memory of a whole read.
        state
            .queue
            .push_back(BrokerEvent::Message { subject: subject.to_owned(), payload: payload.to_vec() });
        drop(state);
        self.added.notify_one();
    }

    /// Adds a change of the connection. If too many wait, the oldest is dropped: the latest says how things are.
    pub(crate) fn push_change(&self, change: BrokerEvent) {
        let mut state = locked(&self.state);
        if state.queue.len() - state.messages >= MAX_CHANGES {
            let oldest = state.queue.iter().position(|event| !matches!(event, BrokerEvent::Message { .. }));
            oldest.map(|at| state.queue.remove(at));
        }
        state.queue.push_back(change);
        drop(state);
        self.added.notify_one();
    }

    /// Counts messages that were dropped elsewhere.
    pub(crate) fn count_dropped(&self) {
        locked(&self.state).dropped += 1;
    }

    pub(crate) fn dropped(&self) -> u64 {
        locked(&self.state).dropped
    }

    pub(crate) fn pop(&self, timeout: Duration) -> Option<BrokerEvent> {
        let until = clock::now() + timeout;
        let mut state = locked(&self.state);
        loop {
            if let Some(event) = state.queue.pop_front() {
                if let BrokerEvent::Message { subject, payload } = &event {
                    state.messages -= 1;
                    state.bytes -= subject.len() + payload.len();
                }
                return Some(event);
            }
            let left = until.remaining();
            if left.is_zero() {
                return None;
            }
            state = self.added.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(inbox: &BrokerInbox) -> Vec<BrokerEvent> {
        std::iter::from_fn(|| inbox.pop(Duration::ZERO)).collect()
    }

    #[test]
    fn messages_beyond_the_limits_are_dropped_and_counted() {
        let inbox = BrokerInbox::default();
        (0..MAX_MESSAGES + 10).for_each(|n| inbox.push_message("a", &n.to_le_bytes()));
        assert_eq!((drain(&inbox).len(), inbox.dropped()), (MAX_MESSAGES, 10));
        (0..5).for_each(|_| inbox.push_message("a", &vec![0; MAX_BYTES / 4]));
        assert_eq!((drain(&inbox).len(), inbox.dropped()), (3, 12));
        inbox.push_message("a", b"room again");
        assert_eq!(drain(&inbox).len(), 1);
    }

    #[test]
    fn a_full_inbox_still_says_how_the_connection_is() {
        let inbox = BrokerInbox::default();
        (0..MAX_MESSAGES).for_each(|_| inbox.push_message("a", b""));
        let lost = |n: usize| BrokerEvent::Disconnected { why: n.to_string().into() };
        (0..3 * MAX_CHANGES).for_each(|n| inbox.push_change(lost(n)));
        let events = drain(&inbox);
        assert_eq!(events.len(), MAX_MESSAGES + MAX_CHANGES);
        assert_eq!(events.last(), Some(&lost(3 * MAX_CHANGES - 1)));
    }

    #[test]
    fn waiting_ends_with_an_event_or_with_time() {
        let inbox = std::sync::Arc::new(BrokerInbox::default());
        assert_eq!(inbox.pop(Duration::from_millis(2)), None);
        let waiting = std::sync::Arc::clone(&inbox);
        let thread = std::thread::spawn(move || waiting.pop(Duration::MAX));
        inbox.push_message("a", b"1");
        assert!(matches!(thread.join().unwrap(), Some(BrokerEvent::Message { .. })));
    }
}
