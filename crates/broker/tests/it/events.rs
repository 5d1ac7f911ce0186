//! What tests expect of a connection.

use std::time::Duration;

use linerate_broker::{Broker, BrokerConfig, BrokerEvent, BrokerLogin};
use linerate_sock::clock;

/// Much longer than anything takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) fn config(url: &str, subscribe: &[&str]) -> BrokerConfig {
    let mut config = BrokerConfig::new([url], "test");
    config.subscribe = subscribe.iter().map(|subject| (*subject).to_owned()).collect();
    config
}

/// A connected client.
pub(crate) fn connected(config: BrokerConfig) -> Broker {
    let broker = Broker::connect(config).unwrap();
    wait_connected(&broker);
    broker
}

/// A connected client with a key.
pub(crate) fn connected_with(url: &str, seed: &str, subscribe: &[&str]) -> Broker {
    let mut config = config(url, subscribe);
    config.login = BrokerLogin::Key(seed.to_owned());
    connected(config)
}

/// Receives until `wanted` is true, and returns that event.
pub(crate) fn wait_for(broker: &Broker, wanted: impl Fn(&BrokerEvent) -> bool) -> BrokerEvent {
    let until = clock::now() + DEADLINE;
    let mut others = Vec::new();
    while let Some(event) = broker.receive(until.remaining()) {
        if wanted(&event) {
            return event;
        }
        others.push(event);
    }
    others.truncate(20);
    panic!("it did not come, but {others:?}");
}

pub(crate) fn wait_connected(broker: &Broker) {
    wait_for(broker, |event| matches!(event, BrokerEvent::Connected { .. }));
    assert!(broker.is_connected());
}

pub(crate) fn wait_disconnected(broker: &Broker) {
    wait_for(broker, |event| matches!(event, BrokerEvent::Disconnected { .. }));
}

/// Waits for a refusal, and returns what it says.
pub(crate) fn wait_refused(broker: &Broker) -> String {
    match wait_for(broker, |event| matches!(event, BrokerEvent::Refused { .. })) {
        BrokerEvent::Refused { why } => why.into_string(),
        _ => unreachable!(),
    }
}

/// The next message, whatever else comes before.
pub(crate) fn next_message(broker: &Broker) -> (String, Vec<u8>) {
    match wait_for(broker, |event| matches!(event, BrokerEvent::Message { .. })) {
        BrokerEvent::Message { subject, payload } => (subject, payload),
        _ => unreachable!(),
    }
}

/// Sends until `receiver` gets the message, as callers do. Earlier copies of it may follow.
pub(crate) fn send_until_received(sender: &Broker, subject: &str, payload: &[u8], receiver: &Broker) {
    let until = clock::now() + DEADLINE;
    while !until.has_passed() {
        let _ = sender.send(subject, payload);
        let event = receiver.receive(Duration::from_millis(200));
        if matches!(event, Some(BrokerEvent::Message { payload: received, .. }) if received == payload) {
            return;
        }
    }
    panic!("{subject} did not arrive");
}
