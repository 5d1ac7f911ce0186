//! Places in server queues: held, waited for, refused.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_control::{Coordinator, Log, ServerEvent};
use linerate_model::{HostInfo, Outcome};
use linerate_proto::Ticket;
use linerate_proto::agent::{AgentDialogue, AgentInput, AgentOutput, CoordinatorEnd};
use linerate_proto::native::{Framer, Preface};
use linerate_sock::clock;
use linerate_units::{Span, Timestamp};

use super::hosts::{LoopbackAgent, TIMEOUT, flow, group, spec, test_bed, token, unknown_client};

#[test]
fn places_are_kept_from_group_to_group_and_who_waits_gets_its_turn() {
    let (a, b) = (LoopbackAgent::start(), LoopbackAgent::start());
    let (group, stop) = (group(vec![flow(0, 1, 100)]), AtomicBool::new(false));
    let mut coordinator = Coordinator::connect(test_bed([&a, &b]), &stop).unwrap();
    let run = |coordinator: &mut Coordinator| {
        let mut logs = [Log::new("run".to_owned(), Vec::new())];
        coordinator.run_group(&group, &mut logs, &stop, &mut |_| ()).unwrap().remove(0).outcome
    };
    let place = |event| match event {
        ServerEvent::Held { .. } => Some("held"),
        ServerEvent::Waiting { .. } => Some("waits"),
        ServerEvent::Begun { name, .. } if !name.is_empty() => Some("begun"),
        _ => None,
    };
    assert_eq!(run(&mut coordinator), Outcome::Completed);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| unknown_client(&b));
        let so_far = [b.wait_for(place), b.wait_for(place), b.wait_for(place)];
        assert_eq!(so_far, ["held", "begun", "waits"], "the place is kept after the group");
        // Longer than the grace time: the next group first lets the other client in.
        clock::sleep_until(clock::now() + Duration::from_millis(1200));
        assert_eq!(run(&mut coordinator), Outcome::Completed);
        let before: Vec<_> =
            std::iter::from_fn(|| Some(b.wait_for(place))).take_while(|event| *event != "held").collect();
        assert!(before.contains(&"begun"), "{before:?}");
        assert_eq!(b.wait_for(place), "begun");
        assert_eq!(waiting.join().unwrap().outcome, Some(Outcome::Completed));
        let waiting = scope.spawn(|| unknown_client(&b));
        assert_eq!(b.wait_for(place), "waits");
        coordinator.release_places();
        assert_eq!(waiting.join().unwrap().outcome, Some(Outcome::Completed));
    });
    coordinator.finish();
}

#[test]
fn a_ticket_that_nobody_gave_out_is_refused() {
    let server = LoopbackAgent::start();
    let mut client = TcpStream::connect(server.address).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    let hello = serde_json::json!({
        "type": "hello", "versions": [2, 2], "capabilities": ["tcp"], "host": HostInfo::default(),
        "spec": spec(100), "ticket": "07".repeat(16),
    });
    client.write_all(&Preface::CONTROL.encode()).unwrap();
    client.write_all(&Framer::encode(&hello).unwrap()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("refused") && answer.contains("the coordinator held for this run"), "{answer}");
}

/// A coordinator that only holds a place and whose connection can be dropped.
fn hold(agent: &LoopbackAgent) -> (TcpStream, Ticket) {
    let mut stream = TcpStream::connect(agent.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let now = Timestamp::START;
    let mut end = CoordinatorEnd::new(now, token(), [9; 16], "mortal".to_owned());
    let mut bytes = [0; 16 << 10];
    loop {
        while let Some(output) = end.output() {
            match output {
                AgentOutput::Send(bytes) => stream.write_all(&bytes).unwrap(),
                AgentOutput::Welcomed(_) => {
                    end.input(now, AgentInput::Hold { expected: Span::ZERO }).unwrap()
                }
                AgentOutput::Held(ticket) => return (stream, ticket),
                _ => {}
            }
        }
        let count = stream.read(&mut bytes).unwrap();
        end.input(now, AgentInput::Bytes(&bytes[..count])).unwrap();
    }
}

#[test]
fn who_is_measured_in_a_coordinators_place_leaves_with_it() {
    let server = LoopbackAgent::start();
    let (coordinator, ticket) = hold(&server);
    let mut guest = TcpStream::connect(server.address).unwrap();
    guest.set_read_timeout(Some(TIMEOUT)).unwrap();
    let hello = serde_json::json!({
        "type": "hello", "versions": [2, 2], "capabilities": ["tcp"], "host": HostInfo::default(),
        "spec": spec(100), "ticket": ticket,
    });
    guest.write_all(&Preface::CONTROL.encode()).unwrap();
    guest.write_all(&Framer::encode(&hello).unwrap()).unwrap();
    let mut received = Vec::new();
    let mut wait_for = |words: &str| {
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&received).contains(words) {
            let count = guest.read(&mut piece).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&received));
            received.extend_from_slice(&piece[..count]);
        }
    };
    wait_for("\"welcome\"");
    drop(coordinator);
    wait_for("the coordinator of this run has disconnected");
    // The next client is measured.
    assert_eq!(unknown_client(&server).outcome, Some(Outcome::Completed));
}
