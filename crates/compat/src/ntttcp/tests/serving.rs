//! A receiver that serves, in the order in which the real sender connects: synchronization, query, time, data
//! connections, start.

use crate::stand_in::RunId;
use linerate_units::{Span, Timestamp};

use super::NtttcpWorld;
use crate::ntttcp::{NTTTCP, NtttcpReceiver, NtttcpSender};
use crate::stand_in::{FlowCounts, Input, Link, Opened, Output, StandIn};
use crate::{EmbeddedServerConfig, ntttcp};

const SYNC: Link = Link(0);
const SENDER: [u8; 4] = [192, 0, 2, 1];
const OTHER: [u8; 4] = [192, 0, 2, 9];

/// A server, and the time that its sender sees.
struct ServedReceiver {
    tool: Box<dyn StandIn>,
    now: Timestamp,
}

impl ServedReceiver {
    fn new() -> Self {
        let config = EmbeddedServerConfig::at(5000);
        let mut server = Self { tool: (NTTTCP.embedded_server)(&config), now: Timestamp::START };
        server.input(Input::Begin);
        server
    }

    fn input(&mut self, input: Input<'_>) -> Vec<Output> {
        self.tool.input(self.now, input);
        std::iter::from_fn(|| self.tool.output()).collect()
    }

    fn accept(&mut self, listener: Link, link: u32, host: [u8; 4]) -> Vec<Output> {
        let opened = Opened::new(([192, 0, 2, 2], 5000).into(), Some((host, 40_000).into()));
        self.input(Input::Accepted { listener, link: Link(link), opened })
    }

    fn send(&mut self, link: u32, number: u8) -> Vec<Output> {
        self.input(Input::Bytes { link: Link(link), bytes: &[0, 0, 0, number] })
    }

    /// What happens when its deadline has passed.
    fn wait(&mut self) -> Vec<Output> {
        self.now = self.tool.deadline().expect("a deadline");
        self.input(Input::Tick)
    }

    /// A sender that has connected, and has a place.
    fn with_place() -> Self {
        let mut server = Self::new();
        server.accept(SYNC, 100, SENDER);
        server.send(100, b'X');
        assert_eq!(sent(&server.input(Input::Admitted { run: RunId(0) })), [(100, 11)]);
        server
    }

    /// A sender whose test of two seconds, with one connection, is running.
    fn with_running_test() -> Self {
        let mut server = Self::with_place();
        server.send(100, 2);
        server.accept(Link(3), 101, SENDER);
        server.send(100, b'R');
        server.wait();
        server.input(Input::Admitted { run: RunId(0) });
        server
    }
}

/// The numbers that were sent, and to whom.
fn sent(outputs: &[Output]) -> Vec<(u32, i32)> {
    let number = |output: &Output| match output {
        Output::Send { link, bytes } => {
            Some((link.0, i32::from_be_bytes(bytes.as_slice().try_into().unwrap())))
        }
        _ => None,
    };
    outputs.iter().filter_map(number).collect()
}

fn resets(outputs: &[Output], number: u32) -> bool {
    outputs.iter().any(|output| matches!(output, Output::Reset { link } if link.0 == number))
}

#[test]
fn a_sender_has_its_place_before_it_opens_connections_to_ports_of_other_tools() {
    let mut server = ServedReceiver::new();
    server.accept(SYNC, 100, SENDER);
    let asked = server.send(100, b'X');
    assert!(matches!(asked[..], [Output::Reserve { run: RunId(0), link: Link(100), .. }]), "{asked:?}");
    assert_eq!(sent(&server.input(Input::Admitted { run: RunId(0) })), [(100, 11)], "idle");
    assert_eq!(sent(&server.send(100, 2)), [(100, 2)]);
    // Ports 5001, 5002 and 5003, two connections each. They say nothing.
    for link in 101..107 {
        assert!(!resets(&server.accept(Link((link - 99) / 2), link, SENDER), link));
    }
    assert!(sent(&server.send(100, b'R')).is_empty());
    // One more is still in the queue of another thread when the sender says that it is ready.
    server.accept(Link(3), 107, SENDER);
    let asked = server.wait();
    let [Output::Ask(planned)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((planned.run, planned.spec.traffic.streams), (RunId(0), 7));
    assert_eq!(planned.expected, Some(Span::from_secs(2)));
    let begun = server.input(Input::Admitted { run: RunId(0) });
    assert_eq!(sent(&begun), [(100, i32::from(b'R'))]);
    let links = begun.iter().find_map(|output| match output {
        Output::Start(task) => Some(task.links.clone()),
        _ => None,
    });
    assert_eq!(links.unwrap(), (101..108).map(Link).collect::<Vec<_>>());
}

#[test]
fn connections_without_a_place_and_of_other_hosts_are_no_part_of_a_test() {
    let mut server = ServedReceiver::new();
    assert!(resets(&server.accept(Link(3), 99, SENDER), 99), "nobody has a place");
    let mut server = ServedReceiver::with_place();
    assert!(resets(&server.accept(Link(3), 101, OTHER), 101));
    assert!(!resets(&server.accept(Link(3), 102, SENDER), 102));
}

#[test]
fn a_second_sender_learns_that_a_test_is_running_before_it_opens_connections() {
    let mut server = ServedReceiver::with_place();
    server.accept(SYNC, 200, OTHER);
    assert_eq!(sent(&server.send(200, b'X')), [(200, 12)]);
    // Whoever goes on nevertheless changes nothing.
    assert!(sent(&server.send(200, 60)).is_empty());
    assert_eq!(sent(&server.send(100, 2)), [(100, 2)]);
    // The place may also be another tool's.
    let mut server = ServedReceiver::new();
    server.accept(SYNC, 100, SENDER);
    server.send(100, b'X');
    let refused = server.input(Input::Refused {
        run: RunId(0),
        why: "another run is in progress".to_owned(),
        may_retry: true,
    });
    assert_eq!(sent(&refused), [(100, 12)]);
    assert!(refused.iter().any(|output| matches!(output, Output::Close { link: Link(100) })));
}

#[test]
fn a_sender_that_leaves_or_is_silent_gives_its_place_back() {
    let gives_back = |outputs: &[Output]| {
        outputs.iter().any(|output| matches!(output, Output::RunOver { run: RunId(0), trouble: Some(_) }))
    };
    let mut server = ServedReceiver::with_place();
    server.accept(Link(3), 101, SENDER);
    let left = server.input(Input::Closed { link: Link(100), reason: None });
    assert!(gives_back(&left) && resets(&left, 101), "{left:?}");
    // Otherwise each sender would leave a descriptor behind.
    assert!(left.iter().any(|output| matches!(output, Output::Close { link: Link(100) })), "{left:?}");
    let mut server = ServedReceiver::with_place();
    assert!(gives_back(&server.wait()));
    assert_eq!(server.tool.deadline(), None, "it is idle again");
    // It may leave before it has its place.
    let mut server = ServedReceiver::new();
    server.accept(SYNC, 100, SENDER);
    server.send(100, b'X');
    server.input(Input::Closed { link: Link(100), reason: None });
    assert!(gives_back(&server.input(Input::Admitted { run: RunId(0) })));
}

#[test]
fn a_sender_of_datagrams_gets_the_message_that_there_is_no_test() {
    let mut server = ServedReceiver::with_place();
    server.send(100, 2);
    server.send(100, b'R');
    let refused = server.wait();
    assert_eq!(sent(&refused), [(100, i32::from(b'E'))]);
    let why = refused.iter().find_map(|output| match output {
        Output::RunOver { run: RunId(0), trouble } => trouble.clone(),
        _ => None,
    });
    assert!(why.unwrap().contains("ntttcp -r -u"));
    assert_eq!(server.tool.deadline(), None, "it is idle again");
}

#[test]
fn senders_one_after_another_are_served() {
    let mut world = NtttcpWorld::new();
    let options = |line| super::options(line);
    let served = ntttcp::NtttcpOptions { seconds: 1, quiet: true, ..options("-r") };
    world.add(NtttcpReceiver::new(served, true, Span::ZERO), Timestamp::START);
    for at in [0, 4_000, 8_000] {
        let sender = NtttcpSender::new(options("-s 127.0.0.1 -P 2 -n 2 -t 2"), Span::ZERO);
        world.add(sender, Timestamp::START + Span::from_ms(at));
    }
    let seen = world.run(Span::from_secs(60));
    for sender in &seen[1..] {
        assert_eq!(sender.exit, Some(0), "{sender:?}");
    }
    assert_eq!(seen[0].tasks.len(), 3, "each test has all its connections in one flow");
    assert!(seen[0].tasks.iter().all(|task| task.links.len() == 4));
}

#[test]
fn a_sender_that_is_early_for_the_next_test_waits_for_the_end_of_the_last() {
    let mut server = ServedReceiver::with_running_test();
    server.now = server.now + Span::from_ms(1_900);
    // The sender's time is over a little earlier than ours.
    server.input(Input::Closed { link: Link(100), reason: None });
    server.accept(SYNC, 200, SENDER);
    assert!(sent(&server.send(200, b'X')).is_empty());
    for _ in 0..100 {
        let outputs = server.wait();
        if let Some(flow) = outputs.iter().find_map(|output| match output {
            Output::Stop { flow, .. } => Some(*flow),
            _ => None,
        }) {
            server.input(Input::Ended { counts: &FlowCounts { flow, ..FlowCounts::default() } });
        }
        if outputs
            .iter()
            .any(|output| matches!(output, Output::Reserve { run: RunId(1), link: Link(200), .. }))
        {
            assert!(server.now < Timestamp::START + Span::from_secs(3));
            return;
        }
    }
    panic!("it was forgotten");
}

/// The dialogue ends a test with `E` also on a second connection. That of another host ends nothing.
#[test]
fn only_a_host_that_takes_part_ends_a_test() {
    let mut server = ServedReceiver::with_running_test();
    server.accept(SYNC, 200, OTHER);
    let outputs = server.send(200, b'E');
    assert_eq!(sent(&outputs), [(200, 12)], "a test is running");
    let stops = |outputs: &[Output]| outputs.iter().any(|output| matches!(output, Output::Stop { .. }));
    assert!(!stops(&outputs), "{outputs:?}");
    server.accept(SYNC, 201, SENDER);
    let outputs = server.send(201, b'E');
    assert_eq!(sent(&outputs), [(201, 13)]);
    assert!(stops(&outputs), "{outputs:?}");
}
