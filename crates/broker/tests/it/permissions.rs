//! What a key may send and read.

use linerate_broker::{Broker, BrokerEvent, agent_subject, centre_subject, centre_subjects, users_file};
use nkeys::KeyPair;

use crate::events::{connected_with, next_message, send_until_received, wait_refused};
use crate::nats_server::NatsServer;

struct CampusBroker {
    server: NatsServer,
    centre: KeyPair,
    rome: KeyPair,
    oslo: KeyPair,
}

impl CampusBroker {
    fn start() -> Self {
        let (centre, rome, oslo) = (KeyPair::new_user(), KeyPair::new_user(), KeyPair::new_user());
        let agents =
            [("rome", &*rome.public_key()), ("oslo", &*oslo.public_key())].map(|(a, b)| (a, b.to_owned()));
        let agents: Vec<_> = agents.iter().map(|(name, key)| (*name, key.as_str())).collect();
        let users = users_file("campus", &centre.public_key(), &agents).unwrap();
        let server = NatsServer::start("include \"users.conf\"", |folder| {
            std::fs::write(folder.join("users.conf"), users).unwrap();
        });
        Self { server, centre, rome, oslo }
    }

    fn connect(&self, key: &KeyPair, subscribe: &[&str]) -> Broker {
        connected_with(&self.server.url(), &key.seed().unwrap(), subscribe)
    }
}

#[test]
#[ignore = "needs nats-server"]
fn an_agent_cannot_send_as_another_one() {
    let campus = CampusBroker::start();
    let centre = campus.connect(&campus.centre, &[&centre_subjects("campus")]);
    let rome = campus.connect(&campus.rome, &[&agent_subject("campus", "rome")]);
    send_until_received(&centre, &agent_subject("campus", "rome"), b"ready", &rome);
    let forbidden =
        [centre_subject("campus", "oslo"), agent_subject("campus", "oslo"), centre_subject("other", "rome")];
    for subject in &forbidden {
        rome.send(subject, b"forged").unwrap();
        let why = wait_refused(&rome);
        assert!(why.contains(subject) && why.contains("Permissions Violation for Publish"), "{why}");
    }
    // It reported each refusal once, and goes on with what is permitted.
    rome.send(&forbidden[0], b"forged").unwrap();
    rome.send(&centre_subject("campus", "rome"), b"own").unwrap();
    assert_eq!(next_message(&centre), (centre_subject("campus", "rome"), b"own".to_vec()));
    assert!(rome.is_connected());
}

#[test]
#[ignore = "needs nats-server"]
fn an_agent_cannot_read_what_is_for_another_one() {
    let campus = CampusBroker::start();
    let to_oslo = agent_subject("campus", "oslo");
    let rome_reads = [&*to_oslo, "linerate.campus.agent.*", ">", &agent_subject("campus", "rome")];
    let rome = campus.connect(&campus.rome, &rome_reads);
    for _ in 0..3 {
        let why = wait_refused(&rome);
        assert!(why.contains("Permissions Violation for Subscription"), "{why}");
    }
    let centre = campus.connect(&campus.centre, &[&centre_subjects("campus")]);
    let oslo = campus.connect(&campus.oslo, &[&to_oslo]);
    send_until_received(&centre, &to_oslo, b"secret", &oslo);
    centre.send(&agent_subject("campus", "rome"), b"for rome").unwrap();
    assert_eq!(next_message(&rome).1, b"for rome");
}

#[test]
#[ignore = "needs nats-server"]
fn a_subscription_that_is_permitted_later_works_without_a_new_connection() {
    let campus = CampusBroker::start();
    let to_paris = agent_subject("campus", "paris");
    let agent = campus.connect(&campus.rome, &[&to_paris]);
    wait_refused(&agent);
    let renamed = [("paris", &*campus.rome.public_key()), ("oslo", &*campus.oslo.public_key())]
        .map(|(name, key)| (name, key.to_owned()));
    let renamed: Vec<_> = renamed.iter().map(|(name, key)| (*name, key.as_str())).collect();
    campus.server.write("users.conf", &users_file("campus", &campus.centre.public_key(), &renamed).unwrap());
    campus.server.reload();
    let centre = campus.connect(&campus.centre, &[]);
    send_until_received(&centre, &to_paris, b"hello", &agent);
    let refusals = std::iter::from_fn(|| agent.receive(std::time::Duration::ZERO));
    assert!(!refusals.into_iter().any(|event| matches!(event, BrokerEvent::Refused { .. })));
}
