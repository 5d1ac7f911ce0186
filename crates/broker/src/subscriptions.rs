//! The subscriptions of a connection: what comes goes to the inbox.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, SubscribeError};
use futures_util::StreamExt;
use linerate_sock::clock::{self, Mono};
use tokio::task::JoinHandle;

use crate::inbox::BrokerInbox;

/// When a refused subscription is tried again: brokers do not say that permissions were given.
const RENEW_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Subscriptions {
    client: Client,
    inbox: Arc<BrokerInbox>,
    active: Vec<ActiveSubscription>,
    renew_at: Option<Mono>,
}

#[derive(Debug)]
struct ActiveSubscription {
    subject: String,
    reader: JoinHandle<()>,
    refused: bool,
}

impl Subscriptions {
    /// Subscribes to `subjects`. What is published through `client` later follows after the subscriptions.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) async fn start(
        client: Client,
        inbox: Arc<BrokerInbox>,
        subjects: &[String],
    ) -> Result<Self, SubscribeError> {
        let mut started = Self { client, inbox, active: Vec::new(), renew_at: None };
        for subject in subjects {
            let reader = started.subscribe(subject).await?;
            started.active.push(ActiveSubscription { subject: subject.clone(), reader, refused: false });
        }
        Ok(started)
    }

    async fn subscribe(&self, subject: &str) -> Result<JoinHandle<()>, SubscribeError> {
        let mut messages = self.client.subscribe(subject.to_owned()).await?;
        let inbox = Arc::clone(&self.inbox);
        Ok(tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                inbox.push_message(&message.subject, &message.payload);
            }
        }))
    }

    /// Whether the broker refuses a subject in `text`. If it is one of these, it is tried again later.
    pub(crate) fn note_refusal(&mut self, text: &str) -> bool {
        if !text.to_lowercase().starts_with("permissions violation") {
            return false;
        }
        for active in &mut self.active {
            if text.contains(&format!("\"{}\"", active.subject)) {
                active.refused = true;
                self.renew_at.get_or_insert_with(|| clock::now() + RENEW_INTERVAL);
            }
        }
        true
    }

    /// Waits until [`Self::renew`] has something to do.
    pub(crate) async fn renewal(&self) {
        match self.renew_at {
            Some(at) => tokio::time::sleep(at.remaining()).await,
            None => pending().await,
        }
    }

    /// Subscribes to refused subjects again, if it is time.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) async fn renew(&mut self) -> Result<(), SubscribeError> {
        if !self.renew_at.is_some_and(Mono::has_passed) {
            return Ok(());
        }
        self.renew_at = None;
        for at in 0..self.active.len() {
            if self.active[at].refused {
                self.active[at].reader.abort();
                self.active[at].reader = self.subscribe(&self.active[at].subject).await?;
                self.active[at].refused = false;
            }
        }
        Ok(())
    }
}
