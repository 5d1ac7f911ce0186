//! Messages, lost connections and limits.

use std::time::Duration;

use linerate_broker::{
    Broker, BrokerEvent, NotSent, agent_subject, centre_subject, centre_subjects, name_in_subject,
};
use linerate_sock::clock;

use crate::events::{
    DEADLINE, config, connected, next_message, send_until_received, wait_connected, wait_disconnected,
    wait_for,
};
use crate::nats_server::NatsServer;

#[test]
#[ignore = "needs nats-server"]
fn messages_go_both_ways_whatever_they_contain() {
    let server = NatsServer::open();
    let centre = connected(config(&server.url(), &[&centre_subjects("campus")]));
    let (to_agent, to_centre) =
        (agent_subject("campus", "rome.example"), centre_subject("campus", "rome.example"));
    let agent = connected(config(&server.url(), &[&to_agent]));
    send_until_received(&centre, &to_agent, b"warm", &agent);
    let all_bytes: Vec<u8> = (0..=255).collect();
    let contents = [Vec::new(), all_bytes, b"\r\nPUB x 1\r\n+OK\r\n".to_vec(), vec![7; 512 << 10]];
    for content in &contents {
        agent.send(&to_centre, content).unwrap();
        let (subject, payload) = next_message(&centre);
        assert_eq!(name_in_subject("campus", &subject).as_deref(), Some("rome.example"));
        assert!(payload == *content, "{} bytes", payload.len());
        centre.send(&to_agent, content).unwrap();
        // Copies of the first message may still come.
        wait_for(&agent, |event| matches!(event, BrokerEvent::Message { payload, .. } if payload == content));
    }
    let too_large = centre.send(&to_agent, &vec![0; (512 << 10) + 1]);
    assert_eq!(too_large, Err(NotSent::TooLarge { bytes: (512 << 10) + 1, limit: 512 << 10 }));
    assert_eq!(centre.send("linerate.*", b""), Err(NotSent::Subject));
}

#[test]
#[ignore = "needs nats-server"]
fn the_limit_of_the_broker_counts_too() {
    let server = NatsServer::start("max_payload: 1000", |_| ());
    let client = connected(config(&server.url(), &["a"]));
    assert_eq!(client.send("a", &[0; 1001]), Err(NotSent::TooLarge { bytes: 1001, limit: 1000 }));
    client.send("a", &[0; 1000]).unwrap();
    assert_eq!(next_message(&client).1.len(), 1000);
}

#[test]
#[ignore = "needs nats-server"]
fn a_broker_that_was_killed_is_found_again_and_gets_nothing_old() {
    let mut server = NatsServer::open();
    let (centre, agent) =
        (connected(config(&server.url(), &["up.*"])), connected(config(&server.url(), &["down.>"])));
    send_until_received(&centre, "down.a.b", b"before", &agent);
    server.kill();
    wait_disconnected(&centre);
    wait_disconnected(&agent);
    assert!(!agent.is_connected());
    for _ in 0..100 {
        assert_eq!(agent.send("up.a", b"while away"), Err(NotSent::NotConnected));
    }
    server.restart();
    wait_connected(&centre);
    wait_connected(&agent);
    send_until_received(&centre, "down.a.b", b"after", &agent);
    agent.send("up.a", b"present").unwrap();
    assert_eq!(next_message(&centre), ("up.a".to_owned(), b"present".to_vec()));
}

#[test]
#[ignore = "needs nats-server"]
fn a_broker_that_comes_later_is_found() {
    let mut server = NatsServer::open();
    server.kill();
    let client = Broker::connect(config(&server.url(), &["a"])).unwrap();
    wait_disconnected(&client);
    server.restart();
    wait_connected(&client);
    send_until_received(&client, "a", b"hello", &client);
}

#[test]
#[ignore = "needs nats-server"]
fn a_stopped_broker_is_noticed_and_what_waited_for_it_is_never_delivered() {
    let mut server = NatsServer::open();
    let sender = connected(config(&server.url(), &[]));
    server.signal("STOP");
    // More than sockets hold.
    let until = clock::now() + DEADLINE;
    let mut sent = 0_u32;
    while sender.send("a", &[1; 256 << 10]) != Err(NotSent::NotConnected) {
        sent += 1;
        assert!(!until.has_passed(), "the silence is not noticed");
        clock::sleep_until(clock::now() + Duration::from_millis(1));
    }
    assert!(sent > 100);
    wait_disconnected(&sender);
    server.restart();
    let receiver = connected(config(&server.url(), &["a"]));
    wait_connected(&sender);
    send_until_received(&receiver, "a", b"ready", &receiver);
    sender.send("a", b"new").unwrap();
    let (_, payload) = next_message(&receiver);
    assert!(payload == b"new" || payload == b"ready", "{} bytes of the past", payload.len());
}

#[test]
#[ignore = "needs nats-server"]
fn a_caller_that_does_not_read_loses_messages_and_no_memory() {
    const DROPPED: u64 = 1000;
    let server = NatsServer::open();
    let (sender, receiver) =
        (connected(config(&server.url(), &[])), connected(config(&server.url(), &["a"])));
    send_until_received(&sender, "a", b"ready", &receiver);
    let until = clock::now() + DEADLINE;
    let mut sent = 0;
    while receiver.dropped_messages() < DROPPED {
        assert!(!until.has_passed(), "{}", receiver.dropped_messages());
        // The queue to the broker is full from time to time, and a busy machine may lose the connection.
        match sender.send("a", b"more") {
            Ok(()) => sent += 1,
            Err(_) => clock::sleep_until(clock::now() + Duration::from_millis(1)),
        }
    }
    let received = std::iter::from_fn(|| receiver.receive(Duration::ZERO));
    let received =
        received.filter(|event| matches!(event, BrokerEvent::Message { payload, .. } if payload == b"more"));
    // In a burst the client library drops messages too, before they reach the queue. The bound of that queue has a test of
    // its own.
    let received = received.count() as u64;
    assert!(received > 0 && received + DROPPED <= sent, "{received} of {sent}");
    send_until_received(&sender, "a", b"again", &receiver);
}

#[test]
#[ignore = "needs nats-server"]
fn what_was_sent_before_the_end_still_goes() {
    let server = NatsServer::open();
    let receiver = connected(config(&server.url(), &["a"]));
    send_until_received(&receiver, "a", b"ready", &receiver);
    let sender = connected(config(&server.url(), &[]));
    for n in 0..1000_u32 {
        sender.send("a", &n.to_le_bytes()).unwrap();
    }
    drop(sender);
    let last = 999_u32.to_le_bytes();
    wait_for(&receiver, |event| matches!(event, BrokerEvent::Message { payload, .. } if *payload == last));
}
