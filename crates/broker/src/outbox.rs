//! Messages that wait to be sent over the present connection.

use std::collections::VecDeque;
use std::sync::Mutex;

use linerate_sock::thread::locked;
use tokio::sync::Notify;

use crate::subjects::is_subject;

/// Limits of what waits. A broker that does not read for a moment costs no more memory than this.
const MAX_MESSAGES: usize = 4096;
const MAX_BYTES: usize = 4 << 20;

/// Why a message was not sent. Nothing of it is kept; callers repeat what still matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSent {
    /// There is no connection at present.
    #[error("there is no connection to the broker")]
    NotConnected,
    /// The broker reads more slowly than messages are sent.
    #[error("too many messages wait for the broker")]
    Full,
    /// The message is larger than this client or the broker permits.
    #[error("the message has {bytes} bytes, and {limit} are permitted")]
    TooLarge {
        /// Size of the message.
        bytes: usize,
        /// Size that is permitted.
        limit: usize,
    },
    /// The subject is empty, too long, or has wildcards, spaces or empty parts.
    #[error("the broker cannot carry this subject; use letters, digits, - and _ in its parts")]
    Subject,
}

/// A message on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutgoingMessage {
    pub(crate) subject: String,
    pub(crate) payload: Vec<u8>,
}

/// The queue between callers and the thread of the connection. It is empty whenever there is no connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    added: Notify,
    max_message_bytes: usize,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// Size that the broker permits; absent without a connection.
    broker_limit: Option<usize>,
    queue: VecDeque<OutgoingMessage>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn new(max_message_bytes: usize) -> Self {
        Self { state: Mutex::default(), added: Notify::new(), max_message_bytes }
    }

    pub(crate) fn is_open(&self) -> bool {
        locked(&self.state).broker_limit.is_some()
    }

    /// There is a connection to a broker that permits messages of `broker_limit` bytes.
    pub(crate) fn open(&self, broker_limit: usize) {
        *locked(&self.state) = OutboxState { broker_limit: Some(broker_limit), ..OutboxState::default() };
    }

    /// The connection is lost, and with it what waited: the next connection must not deliver old messages.
    pub(crate) fn close(&self) {
        *locked(&self.state) = OutboxState::default();
    }

    pub(crate) fn push(&self, subject: &str, payload: &[u8]) -> Result<(), NotSent> {
        if !is_subject(subject) {
            return Err(NotSent::Subject);
        }
        let mut state = locked(&self.state);
        let limit = state.broker_limit.ok_or(NotSent::NotConnected)?.min(self.max_message_bytes);
        if payload.len() > limit {
            return Err(NotSent::TooLarge { bytes: payload.len(), limit });
        }
        let bytes = subject.len() + payload.len();
        // A single message is always possible, whatever its size.
        let fits = state.queue.is_empty() || state.bytes + bytes <= MAX_BYTES;
        if !fits || state.queue.len() >= MAX_MESSAGES {
            return Err(NotSent::Full);
        }
        state.bytes += bytes;
        state.queue.push_back(OutgoingMessage { subject: subject.to_owned(), payload: payload.to_vec() });
        drop(state);
        self.added.notify_one();
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<OutgoingMessage> {
        let mut state = locked(&self.state);
        let message = state.queue.pop_front()?;
        state.bytes -= message.subject.len() + message.payload.len();
        Some(message)
    }

    /// Waits until a message may have been added since the last wait.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_connection_nothing_is_taken_and_nothing_is_kept() {
        let outbox = Outbox::new(100);
        assert_eq!(outbox.push("a", b"1"), Err(NotSent::NotConnected));
        outbox.open(1000);
        outbox.push("a", b"2").unwrap();
        outbox.close();
        assert_eq!(outbox.push("a", b"3"), Err(NotSent::NotConnected));
        outbox.open(1000);
        assert_eq!(outbox.pop(), None);
        outbox.push("a", b"4").unwrap();
        assert_eq!(outbox.pop().unwrap().payload, b"4");
    }

    #[test]
    fn large_and_misaddressed_messages_are_refused_by_the_lower_limit() {
        let outbox = Outbox::new(100);
        outbox.open(1000);
        assert_eq!(outbox.push("a", &[0; 101]), Err(NotSent::TooLarge { bytes: 101, limit: 100 }));
        outbox.open(50);
        assert_eq!(outbox.push("a", &[0; 51]), Err(NotSent::TooLarge { bytes: 51, limit: 50 }));
        assert_eq!(outbox.push("a.*", b""), Err(NotSent::Subject));
        outbox.push("a", &[0; 50]).unwrap();
    }

    #[test]
    fn the_queue_is_bounded_in_messages_and_in_bytes() {
        let outbox = Outbox::new(MAX_BYTES);
        outbox.open(MAX_BYTES * 2);
        let taken = (0..2 * MAX_MESSAGES).take_while(|_| outbox.push("a", b"x").is_ok()).count();
        assert_eq!(taken, MAX_MESSAGES);
        outbox.close();
        outbox.open(MAX_BYTES * 2);
        let taken = (0..100).take_while(|_| outbox.push("a", &[0; MAX_BYTES / 8]).is_ok()).count();
        assert_eq!(taken, 7);
        while outbox.pop().is_some() {}
        outbox.push("a", &[0; MAX_BYTES]).unwrap();
        assert_eq!(outbox.push("a", b""), Err(NotSent::Full));
    }
}
