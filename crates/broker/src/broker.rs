//! A connection to the broker, for callers without an async runtime.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::ForeignText;
use linerate_sock::{clock, thread};
use tokio::sync::watch;

use crate::config::{BrokerConfig, BrokerError, DialOptions};
use crate::inbox::BrokerInbox;
use crate::outbox::{NotSent, Outbox};
use crate::reconnect_delay::ReconnectDelay;
use crate::session::BrokerThread;

/// What came from the broker, or became of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerEvent {
    /// There is a connection, and the subscriptions are on their way.
    Connected {
        /// URL of the server.
        server: ForeignText,
    },
    /// There is no connection: it was lost, or the broker cannot be reached. It is tried again for ever. The same
    /// reason is reported once.
    Disconnected {
        /// Why, as far as it is known.
        why: ForeignText,
    },
    /// A message for one of the subscriptions.
    Message {
        /// Its subject, which the broker has checked.
        subject: String,
        /// What it contains: anything.
        payload: Vec<u8>,
    },
    /// The broker refuses the key of this client, a message or a subscription, or its certificate cannot be trusted. A
    /// person must act. It is tried again slowly, so that nothing has to be restarted afterwards.
    Refused {
        /// What is refused, and the remedy if it is known.
        why: ForeignText,
    },
}

/// The connection of a coordinator or an agent to the broker.
///
/// It connects in a thread of its own, again and again, until it is dropped. Messages may be lost at any time, and come
/// twice or late if callers repeat them; a lost connection is noticed within 15 seconds.
#[derive(Debug)]
pub struct Broker {
    inbox: Arc<BrokerInbox>,
    outbox: Arc<Outbox>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Broker {
    /// Starts to connect, and returns at once, also if no server can be reached. The first attempt is immediate, later
    /// ones follow after random times of up to 30 seconds.
    ///
    /// # Errors
    /// The configuration can never work: a wrong URL, key or subject, or an unusable file. Or this host refuses a
    /// thread.
    pub fn connect(config: BrokerConfig) -> Result<Self, BrokerError> {
        let outbox = Arc::new(Outbox::new(config.max_message_bytes));
        let inbox = Arc::new(BrokerInbox::default());
        let delay = if config.is_centre {
            ReconnectDelay::of_centre(random_seed())
        } else {
            ReconnectDelay::new(random_seed())
        };
        let options = DialOptions::check(config)?;
        let (stop, stopped) = watch::channel(false);
        let connection = BrokerThread::new(options, Arc::clone(&inbox), Arc::clone(&outbox), stopped, delay);
        let thread = Some(thread::spawn("broker", move || connection.run())?);
        Ok(Self { inbox, outbox, stop, thread })
    }

    /// Sends a message, without waiting. It may be lost nevertheless: callers repeat what is not answered.
    ///
    /// # Errors
    /// Why it was not sent. It is not sent later either.
    pub fn send(&self, subject: &str, payload: &[u8]) -> Result<(), NotSent> {
        self.outbox.push(subject, payload)
    }

    /// Waits for the next event, at most for `timeout`.
    #[must_use]
    pub fn receive(&self, timeout: Duration) -> Option<BrokerEvent> {
        self.inbox.pop(timeout)
    }

    /// Whether there is a connection. A broker that fell silent counts as connected for up to 15 seconds.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.outbox.is_open()
    }

    /// How many messages were received and dropped, because [`Self::receive`] was called too rarely.
    #[must_use]
    pub fn dropped_messages(&self) -> u64 {
        self.inbox.dropped()
    }
}

/// Sends what waits for at most a second, and disconnects.
impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has printed it.
            let _ = thread.join();
        }
    }
}

/// A different number for every agent, also for those that were started at the same moment.
fn random_seed() -> u64 {
    getrandom::u64().unwrap_or_else(|_| clock::wall_ns() ^ u64::from(std::process::id()).rotate_left(32))
}
