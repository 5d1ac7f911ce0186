//! Peers that are not iperf3, and peers of other versions.

use linerate_units::{Span, Timestamp};

use super::world::{COOKIE, SERVER, client, creating, message, new_world, server};
use crate::iperf3::settings::{EndCondition, Iperf3Settings};
use crate::stand_in::{Input, Link, Opened, Output};
use crate::virtual_hosts::VirtualHosts;

/// The server's answer to a client that sends its cookie and then these bytes; the server must keep running.
fn answer(settings: Iperf3Settings, after_cookie: &[u8]) -> Vec<u8> {
    let mut world = new_world(server(settings), vec![]);
    let end = world.add_host();
    world.dial(end, 1);
    world.send_as(end, 1, &COOKIE);
    world.send_as(end, 1, after_cookie);
    world.pass(Span::from_secs(35));
    assert_eq!(world.hosts[SERVER].exit, None);
    world.received(end, 1).to_vec()
}

fn refusal(number: u8) -> Vec<u8> {
    vec![9, 0xfe, 0, 0, 0, number, 0, 0, 0, 0]
}

fn one_off() -> Iperf3Settings {
    let mut settings = Iperf3Settings::default();
    settings.server.one_off = true;
    settings
}

#[test]
fn bad_parameters_are_refused_by_number() {
    let long = format!("{{\"tcp\":true,\"title\":\"{}\"}}", "x".repeat(9100));
    for (json, number) in [
        (long.as_str(), 114),
        ("{\"tcp\":true,\"parallel\":200}", 6),
        ("{\"udp\":true,\"len\":8}", 20),
        ("{\"udp\":true}", 20),
        ("{\"tcp\":tr", 114),
        ("[]", 114),
        ("{\"omit\":601}", 12),
        ("{\"time\":86401}", 5),
        ("{\"num\":-1}", 114),
        ("{\"num\":18446744073709551615}", 114),
        ("{\"MSS\":32768}", 10),
        ("{\"window\":536870913}", 8),
        ("{\"len\":0}", 7),
        ("{\"len\":1048577}", 7),
        ("{\"burst\":0}", 15),
        ("{\"TOS\":256}", 21),
        ("{\"flowlabel\":0}", 127),
        ("{\"server_affinity\":1025}", 132),
        // Of several errors the one that is checked last is reported.
        ("{\"omit\":601,\"TOS\":256}", 21),
    ] {
        assert_eq!(answer(one_off(), &message(json)), refusal(number), "{json:.60}");
    }
}

#[test]
fn lengths_beyond_reason_are_refused_at_once() {
    for length in [[0x80, 0, 0, 0], [0, 0, 0, 0], [0xff; 4], [0, 0, 0x20, 1]] {
        assert_eq!(answer(one_off(), &length), refusal(114));
    }
}

#[test]
fn a_server_has_limits_of_its_own() {
    let limited = |change: fn(&mut Iperf3Settings)| {
        let mut settings = Iperf3Settings::default();
        change(&mut settings);
        settings
    };
    let rate = |s: &mut Iperf3Settings| s.server.bitrate_limit = Some(1_000_000);
    let asked = message("{\"tcp\":true,\"parallel\":2,\"bandwidth\":600000}");
    assert_eq!(answer(limited(rate), &asked), refusal(27));
    let duration = |s: &mut Iperf3Settings| s.server.max_duration = Some(Span::from_secs(3));
    assert_eq!(answer(limited(duration), &message("{\"time\":2,\"omit\":2}")), refusal(37));
    assert_eq!(answer(limited(duration), &message("{\"time\":0,\"num\":1000}")), refusal(37));
}

#[test]
fn the_smallest_parameters_make_a_test() {
    // The client never opens its streams, and the server gives up after two minutes.
    assert_eq!(answer(Iperf3Settings::default(), &message("{}")), [9, 10]);
    let mut patient = Iperf3Settings::default();
    patient.common.rcv_timeout = Span::from_secs(20);
    let answers = answer(patient, &message("{\"TCP\":1,\"reverse\":false}"));
    assert_eq!(answers, [9, 10, 0xfe, 0, 0, 0, 144, 0, 0, 0, 0]);
}

#[test]
fn silence_is_bounded_and_the_server_stays_up() {
    let mut world = new_world(server(one_off()), vec![]);
    let (dumb, partial) = (world.add_host(), world.add_host());
    world.dial(dumb, 1);
    world.send_as(dumb, 1, b"abcd");
    world.dial(partial, 1);
    world.send_as(partial, 1, &COOKIE);
    world.pass(Span::from_secs(12));
    assert_eq!(&world.received(dumb, 1)[..5], [0xfe, 0, 0, 0, 106]);
    assert_eq!(&world.received(partial, 1)[..6], [9, 0xfe, 0, 0, 0, 114]);
    world.pass(Span::from_secs(3));
    assert_eq!(world.hosts[SERVER].exit, None);
    // None of them was the one client of this server.
    let mut settings = Iperf3Settings::client("server");
    settings.client.end = EndCondition::Time(1);
    assert_eq!(world.hosts[SERVER].runs.len(), 0);
}

/// A scripted peer with a running test: returns the world and the peer's end. Link 1 is the control connection,
/// link 2 the stream.
fn running(json: &str, one_off: bool) -> (VirtualHosts, usize) {
    let mut settings = Iperf3Settings::default();
    settings.server.one_off = one_off;
    let (mut world, end) = creating(new_world(server(settings), vec![]), json);
    world.dial(end, 2);
    world.send_as(end, 2, &COOKIE);
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 1), [9, 10, 1, 2]);
    (world, end)
}

const ONE_SECOND: &str = "{\"tcp\":true,\"time\":1,\"len\":4096}";
const RESULTS: &str = "{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\"sender_has_retransmits\":1,\
    \"streams\":[{\"id\":1,\"bytes\":4096,\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0}]}";

#[test]
fn a_busy_server_says_so_without_waiting_for_a_cookie() {
    let (mut world, end) = running(ONE_SECOND, false);
    world.dial(end, 9);
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 9), [0xff]);
}

#[test]
fn an_unknown_state_ends_the_test_and_not_the_server() {
    let (mut world, end) = running(ONE_SECOND, true);
    world.send_as(end, 1, &[0x63]);
    world.pass(Span::from_secs(3));
    assert_eq!(world.received(end, 1)[4..9], [0xfe, 0, 0, 0, 110]);
    assert_eq!(world.hosts[SERVER].exit, None);
    assert_eq!(world.hosts[SERVER].runs.len(), 1);
}

#[test]
fn results_of_old_clients_are_taken() {
    let (mut world, end) = running(ONE_SECOND, true);
    world.pass(Span::from_secs(1));
    world.send_as(end, 1, &[4]);
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 1)[4..], [13]);
    world.send_as(end, 1, &message(RESULTS));
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 1).last(), Some(&14));
    world.send_as(end, 1, &[16]);
    world.hang_up(end, 1);
    world.pass(Span::from_ms(100));
    assert_eq!(world.hosts[SERVER].exit, Some(0));
    assert_eq!(world.hosts[SERVER].runs, [None]);
    assert_eq!(world.hosts[SERVER].peer_bytes(), [4096]);
}

#[test]
fn the_default_pacing_tick_is_a_millisecond_and_none_is_longer_than_a_second() {
    let too_long = ONE_SECOND.replace('}', ",\"pacing_timer\":9000000000}");
    for (json, tick) in [(ONE_SECOND, Span::from_ms(1)), (&too_long, Span::from_secs(1))] {
        let (world, _) = running(json, false);
        assert_eq!(world.hosts[SERVER].tasks[0].pacing_tick, Some(tick), "{json}");
    }
}

#[test]
fn results_of_streams_that_do_not_exist_fail_the_test() {
    for (json, number) in [(RESULTS.replace("\"id\":1", "\"id\":2"), 208), ("{}".to_owned(), 117)] {
        let (mut world, end) = running(ONE_SECOND, false);
        world.send_as(end, 1, &[4]);
        world.pass(Span::from_ms(100));
        world.send_as(end, 1, &message(&json));
        world.pass(Span::from_ms(100));
        assert_eq!(world.received(end, 1)[5..10], [0xfe, 0, 0, 0, number]);
    }
}

#[test]
fn a_stream_with_another_cookie_or_too_many_is_turned_away() {
    let mut world = new_world(server(Iperf3Settings::default()), vec![]);
    let end = world.add_host();
    world.dial(end, 1);
    world.send_as(end, 1, &COOKIE);
    world.send_as(end, 1, &message(ONE_SECOND));
    world.pass(Span::from_ms(100));
    world.dial(end, 2);
    world.send_as(end, 2, &[b'x'; 37]);
    world.pass(Span::from_ms(100));
    assert_eq!((world.received(end, 2), world.received(end, 1)), (&[0xff][..], &[9, 10][..]));
    world.dial(end, 3);
    world.send_as(end, 3, &COOKIE);
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 1), [9, 10, 1, 2]);
    world.dial(end, 4);
    world.send_as(end, 4, &COOKIE);
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 4), [0xff]);
}

#[test]
fn a_client_may_vanish_in_every_state() {
    for until in 0..6 {
        let mut world = new_world(server(Iperf3Settings::default()), vec![]);
        let end = world.add_host();
        world.dial(end, 1);
        let params = message(ONE_SECOND);
        let steps: [(u32, &[u8]); 5] = [(1, &COOKIE), (1, &params), (2, &COOKIE), (1, &[4]), (1, &params)];
        for (link, bytes) in steps.iter().take(until) {
            if *link == 2 {
                world.dial(end, 2);
            }
            world.send_as(end, *link, bytes);
            world.pass(Span::from_ms(100));
        }
        world.hang_up(end, 1);
        world.pass(Span::from_secs(3));
        // The next client is served.
        let next = world.add_host();
        world.dial(next, 1);
        world.send_as(next, 1, &COOKIE);
        world.send_as(next, 1, &message(ONE_SECOND));
        world.pass(Span::from_ms(100));
        assert_eq!(world.received(next, 1), [9, 10], "after {until} steps");
    }
}

#[test]
fn a_client_that_does_not_end_its_test_is_ended() {
    let (mut world, end) = running("{\"tcp\":true,\"time\":1,\"len\":4096,\"reverse\":true}", false);
    world.pass(Span::from_secs(40));
    assert_eq!(world.received(end, 1).len(), 4);
    world.pass(Span::from_secs(2));
    assert_eq!(world.received(end, 1)[4..9], [0xfe, 0, 0, 0, 160]);
}

#[test]
fn a_client_that_gets_the_order_to_end_gets_the_number_back() {
    let (mut world, end) = running(ONE_SECOND, false);
    world.send_as(end, 1, &[12]);
    world.pass(Span::from_ms(100));
    assert_eq!(world.received(end, 1)[4..9], [0xfe, 0, 0, 0, 119]);
    assert!(world.hosts[SERVER].out.contains("receiver"));
}

#[test]
fn an_idle_server_ends_or_listens_anew() {
    let idle = |one_off| {
        let mut settings = Iperf3Settings::default();
        (settings.server.one_off, settings.server.idle_timeout) = (one_off, Some(Span::from_secs(2)));
        let mut world = new_world(server(settings), vec![]);
        world.pass(Span::from_secs(3));
        world.hosts[SERVER].exit
    };
    assert_eq!((idle(true), idle(false)), (Some(0), None));
}

mod clients {
    //! Our client against scripted servers.

    use linerate_units::{Span, Timestamp};

    use super::{client, message};
    use crate::iperf3::settings::{EndCondition, Iperf3Settings};
    use crate::stand_in::{CpuTime, FlowCounts, Input, Link, Output, StandIn, StreamCounts, SystemError};
    use crate::virtual_hosts::opened;

    /// A client and its actions.
    struct Played {
        client: Box<dyn StandIn>,
        now: Timestamp,
        sent: Vec<u8>,
        out: String,
        err: String,
        exit: Option<i32>,
    }

    impl Played {
        fn new(change: impl FnOnce(&mut Iperf3Settings)) -> Self {
            let mut settings = Iperf3Settings::client("server");
            settings.client.end = EndCondition::Time(1);
            change(&mut settings);
            let now = Timestamp::START;
            let (sent, out, err) = (Vec::new(), String::new(), String::new());
            let mut played = Self { client: client(settings), now, sent, out, err, exit: None };
            played.feed(Input::Begin);
            played
        }

        fn feed(&mut self, input: Input<'_>) {
            self.client.input(self.now, input);
            while let Some(output) = self.client.output() {
                match output {
                    Output::Connect { link, .. } => {
                        let opened = opened(([10, 0, 0, 1], 5201), ([10, 0, 0, 1], 5201));
                        self.feed(Input::Opened { link, opened });
                    }
                    Output::Send { link: Link(1), bytes } => self.sent.extend(bytes),
                    Output::Look => {
                        let streams = vec![StreamCounts { bytes: 4096, ..StreamCounts::default() }];
                        let counts = FlowCounts { streams, ..FlowCounts::default() };
                        self.feed(Input::Counts { cpu: CpuTime::default(), flows: &[counts] });
                    }
                    Output::Stop { flow, .. } => {
                        let counts = FlowCounts { flow, ..FlowCounts::default() };
                        self.feed(Input::Ended { counts: &counts });
                    }
                    Output::Print(text) => self.out += &text,
                    Output::PrintError(text) => self.err += &text,
                    Output::Exit(code) => self.exit = Some(code),
                    _ => {}
                }
            }
        }

        fn receive(&mut self, bytes: &[u8]) {
            self.feed(Input::Bytes { link: Link(1), bytes });
        }

        fn pass(&mut self, span: Span) {
            let until = self.now + span;
            while let Some(due) = self.client.deadline().filter(|due| *due <= until && self.exit.is_none()) {
                self.now = due;
                self.feed(Input::Tick);
            }
            self.now = until;
        }
    }

    fn results(wrapped: &str) -> Vec<u8> {
        message(&format!(
            "{{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\"sender_has_retransmits\":{wrapped},\
             \"streams\":[{{\"id\":1,\"bytes\":4096,\"retransmits\":{wrapped},\"jitter\":0,\"errors\":0,\"packets\":0}}]}}"
        ))
    }

    #[test]
    fn states_may_come_in_one_segment_and_negatives_wrapped() {
        let mut played = Played::new(|s| s.common.json = true);
        played.receive(&[9]);
        played.receive(&[10, 1, 2]);
        played.pass(Span::from_secs(2));
        assert_eq!(played.sent.last(), Some(&4));
        let reply = [&[13][..], &results("18446744073709551615"), &[14]].concat();
        for byte in reply {
            played.receive(&[byte]);
        }
        assert_eq!(played.sent.last(), Some(&16));
        played.feed(Input::Closed { link: Link(1), reason: None });
        assert_eq!((played.exit, played.err.as_str()), (Some(0), ""));
        let json: serde_json::Value = serde_json::from_str(&played.out).unwrap();
        assert_eq!(json["end"]["sum_received"]["bytes"], 4096);
        assert!(json["end"]["streams"][0]["receiver"].get("retransmits").is_none());
    }

    #[test]
    fn a_server_that_fails_says_why_in_two_words_one_or_none() {
        for (words, text) in [
            (&[0, 0, 0, 27, 0, 0, 0, 0][..], "total required bandwidth is larger than server limit"),
            (&[0, 0, 0, 142][..], "test authorization failed"),
            (&[][..], "int_errno=0"),
        ] {
            let mut played = Played::new(|_| {});
            played.receive(&[9]);
            played.receive(&[&[0xfe], words].concat());
            played.feed(Input::Closed { link: Link(1), reason: None });
            assert_eq!(played.exit, Some(1));
            assert!(played.err.contains(&format!("error - {text}")), "{}", played.err);
        }
    }

    #[test]
    fn the_words_of_a_failed_server_are_not_waited_for_without_end() {
        let mut played = Played::new(|_| {});
        played.receive(&[9, 0xfe, 0, 0, 0, 142]);
        played.pass(Span::from_secs(10));
        assert_eq!(played.exit, Some(1));
        assert!(played.err.contains("test authorization failed"));
    }

    #[test]
    fn a_busy_server_whose_word_was_lost_resets_the_connection() {
        let mut played = Played::new(|_| {});
        let reason = SystemError { errno: 104, text: "Connection reset by peer".to_owned() };
        played.feed(Input::Closed { link: Link(1), reason: Some(reason) });
        assert_eq!(played.exit, Some(1));
        assert!(played.err.contains("unable to receive control message"), "{}", played.err);
        assert!(played.err.contains("Connection reset by peer"));
    }

    #[test]
    fn a_server_that_closes_or_talks_nonsense_is_an_error() {
        let mut played = Played::new(|_| {});
        played.receive(&[9]);
        played.feed(Input::Closed { link: Link(1), reason: None });
        assert!(played.err.contains("control socket has closed unexpectedly"));
        let mut played = Played::new(|_| {});
        played.receive(&[0x63]);
        assert!(played.err.contains("received an unknown control message"));
        assert_eq!(played.exit, Some(1));
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let mut played = Played::new(|_| {});
        played.pass(Span::from_secs(60));
        assert_eq!(played.exit, Some(1));
        assert!(played.err.contains("unable to receive control message"));
    }

    #[test]
    fn a_hello_is_answered_by_any_version_and_data_may_overtake_it() {
        for reply in [*b"6789", [0xb1, 0x68, 0xde, 0x3a]] {
            let mut played = Played::new(|s| (s.client.udp, s.client.reverse) = (true, true));
            played.receive(&[9]);
            played.receive(&[10]);
            let from = "10.0.0.1:5201".parse().unwrap();
            played.feed(Input::Datagram { link: Link(2), from, bytes: &[0; 1448] });
            played.receive(&[1, 2]);
            assert_eq!(played.exit, None);
            played.feed(Input::Datagram { link: Link(2), from, bytes: &reply });
            played.pass(Span::from_secs(2));
            assert_eq!(played.sent.last(), Some(&4), "the test has run and ended");
        }
    }

    #[test]
    fn a_hello_without_an_answer_is_given_up() {
        let mut played = Played::new(|s| s.client.udp = true);
        played.receive(&[9]);
        played.receive(&[10]);
        played.pass(Span::from_secs(31));
        assert_eq!(played.exit, Some(1));
        assert!(played.err.contains("unable to read from stream socket"), "{}", played.err);
    }

    #[test]
    fn a_receiver_that_hears_nothing_gives_up() {
        let mut played = Played::new(|s| {
            (s.client.reverse, s.client.end) = (true, EndCondition::Time(60));
            s.common.rcv_timeout = Span::from_secs(5);
        });
        played.receive(&[9]);
        played.receive(&[10, 1, 2]);
        played.pass(Span::from_secs(4));
        assert_eq!(played.exit, None);
        played.pass(Span::from_secs(2));
        assert_eq!(played.exit, Some(1));
        assert!(played.err.contains("idle timeout for receiving data"));
    }
}

#[test]
fn a_client_does_not_keep_what_a_server_sends_without_end() {
    let mut tool = client(Iperf3Settings::client("server"));
    let ends = |port| std::net::SocketAddr::from(([192, 0, 2, 1], port));
    let opened = Opened::new(ends(40_000), Some(ends(5201)));
    tool.input(Timestamp::START, Input::Begin);
    tool.input(Timestamp::START, Input::Opened { link: Link(1), opened });
    // The requests of the parameters and of the streams, and then an early start and nonsense.
    tool.input(Timestamp::START, Input::Bytes { link: Link(1), bytes: &[9, 10] });
    while tool.output().is_some() {}
    tool.input(Timestamp::START, Input::Bytes { link: Link(1), bytes: &[1; 4096] });
    assert!(tool.output().is_none(), "an early start waits");
    tool.input(Timestamp::START, Input::Bytes { link: Link(1), bytes: &[1; 1 << 20] });
    let outputs: Vec<Output> = std::iter::from_fn(|| tool.output()).collect();
    let said = |output: &Output| matches!(output, Output::PrintError(text) if text.contains("unknown control message"));
    assert!(outputs.iter().any(said), "{outputs:?}");
    assert!(matches!(outputs.last(), Some(Output::Exit(1))), "{outputs:?}");
}
