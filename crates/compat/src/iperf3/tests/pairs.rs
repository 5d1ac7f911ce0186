//! Our client against our server.

use linerate_model::{Direction, Side};
use linerate_units::{Bytes, Span, Timestamp};
use serde_json::Value;

use super::world::{DELAY, SERVER, client, new_world, server};
use crate::iperf3::settings::{EndCondition, Iperf3Settings};
use crate::stand_in::{Input, Pattern, Transport};
use crate::virtual_hosts::VirtualHosts;

/// Settings of a client: one second, 4,096-byte blocks at 1,024,000 bit/s: 31.25 blocks per second and stream.
fn settings(change: impl FnOnce(&mut Iperf3Settings)) -> Iperf3Settings {
    let mut settings = Iperf3Settings::client("server");
    settings.common.json = true;
    settings.client.end = EndCondition::Time(1);
    settings.client.length = Some(4096);
    settings.client.bitrate = 1_024_000;
    change(&mut settings);
    settings
}

fn one_off() -> Iperf3Settings {
    let mut settings = Iperf3Settings::default();
    settings.server.one_off = true;
    settings
}

/// Runs a complete test; returns the final world and the client's JSON.
fn run(settings: Iperf3Settings) -> (VirtualHosts, Value) {
    let mut world = new_world(server(one_off()), vec![client(settings)]);
    world.pass(Span::from_secs(20));
    let json = check_end(&world);
    (world, json)
}

fn check_end(world: &VirtualHosts) -> Value {
    let (server, client) = (&world.hosts[SERVER], &world.hosts[1]);
    // Long datagrams are used here on purpose.
    let errors: Vec<&str> = client.err.lines().filter(|line| !line.contains("exceeds TCP MSS")).collect();
    assert_eq!((errors.join("\n").as_str(), server.err.as_str()), ("", ""));
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{}", client.out);
    assert_eq!((&client.runs[..], &server.runs[..]), (&[None][..], &[None][..]));
    serde_json::from_str(&client.out).unwrap()
}

/// Bytes of the sums at the end: sent and received.
fn sums(json: &Value, suffix: &str) -> (u64, u64) {
    let bytes = |sum: &str| json["end"][format!("{sum}{suffix}")]["bytes"].as_u64().unwrap();
    (bytes("sum_sent"), bytes("sum_received"))
}

#[test]
fn an_upload_of_a_second() {
    let (world, json) = run(settings(|_| {}));
    // The first block immediately, then 31 in the second.
    assert_eq!(sums(&json, ""), (32 * 4096, 32 * 4096));
    assert_eq!(json["intervals"].as_array().unwrap().len(), 1);
    assert_eq!(json["end"]["sum_sent"]["retransmits"], 3);
    assert_eq!(world.hosts[SERVER].peer_bytes(), [32 * 4096]);
    assert!(world.hosts[SERVER].out.contains("Accepted connection from 10.0.0.2"));
    assert!(world.hosts[SERVER].out.contains("receiver"));
    let task = &world.hosts[1].tasks[0];
    assert_eq!((task.side, task.direction, task.length), (Side::Sender, Direction::Upload, Bytes::new(4096)));
    let planned = &world.hosts[SERVER].plans[0];
    assert_eq!((planned.client, planned.tool, planned.expected), (false, "iperf3", Some(Span::from_secs(1))));
    assert!(planned.spec.traffic.upload && planned.spec.traffic.streams == 1);
}

#[test]
fn streams_are_numbered_alike_at_both_ends() {
    let (world, json) = run(settings(|s| s.client.parallel = 3));
    let streams = json["end"]["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 3);
    for stream in streams {
        assert_eq!(stream["sender"]["bytes"], 32 * 4096);
        assert_eq!(stream["receiver"]["bytes"], 32 * 4096);
    }
    assert_eq!(world.hosts[1].tasks[0].links.len(), 3);
}

#[test]
fn the_client_says_how_the_servers_streams_are_set() {
    let (world, _) = run(settings(|s| {
        (s.client.tos, s.client.window, s.client.parallel) = (0x20, Some(65_536), 2);
        s.client.congestion = Some("reno".to_owned());
    }));
    assert_eq!(world.hosts[SERVER].tuned.len(), 2);
    let tuned = &world.hosts[SERVER].tuned[1];
    assert_eq!((tuned.tos, tuned.snd_buf, tuned.rcv_buf), (Some(0x20), Some(65_536), Some(65_536)));
    assert_eq!(tuned.congestion.as_deref(), Some("reno"));
}

#[test]
fn the_tick_of_the_pacing_is_the_clients_at_both_ends() {
    for (us, tick) in [(1000, Some(Span::from_ms(1))), (2000, Some(Span::from_ms(2))), (0, None)] {
        let (world, _) = run(settings(|s| s.client.pacing_timer_us = us));
        assert_eq!(world.hosts[1].tasks[0].pacing_tick, tick);
    }
    let (world, _) = run(settings(|s| (s.client.reverse, s.client.pacing_timer_us) = (true, 2000)));
    assert_eq!(world.hosts[SERVER].tasks[0].pacing_tick, Some(Span::from_ms(2)));
}

#[test]
fn in_reverse_the_server_sends_until_it_is_stopped() {
    let (world, json) = run(settings(|s| s.client.reverse = true));
    let (sent, received) = sums(&json, "");
    assert!(received >= 31 * 4096 && sent >= received && sent <= received + 2 * 4096, "{sent} {received}");
    assert_eq!(json["end"]["streams"][0]["sender"]["sender"], false);
    assert_eq!(json["end"]["sum_sent"]["retransmits"], 3);
    let task = &world.hosts[SERVER].tasks[0];
    assert_eq!((task.side, task.direction, task.time), (Side::Sender, Direction::Download, None));
    assert_eq!(world.hosts[1].tasks[0].time, Some(Span::from_secs(1)));
}

#[test]
fn both_directions_at_once() {
    let (world, json) = run(settings(|s| (s.client.bidir, s.client.parallel) = (true, 2)));
    assert_eq!(sums(&json, ""), (64 * 4096, 64 * 4096));
    let (sent, received) = sums(&json, "_bidir_reverse");
    assert!(received >= 62 * 4096 && sent >= received, "{sent} {received}");
    assert_eq!(json["end"]["streams"].as_array().unwrap().len(), 4);
    for sum in ["sum_received", "sum_sent_bidir_reverse"] {
        // The server measures one round trip longer, plus the millisecond in which the client's sender stops.
        // The 30 ms in which its receivers stop do not count.
        let seconds = json["end"][sum]["seconds"].as_f64().unwrap();
        assert!((seconds - 1.021).abs() < 1e-6, "{sum}: {seconds}");
    }
    let sides: Vec<Side> = world.hosts[1].tasks.iter().map(|task| task.side).collect();
    assert_eq!(sides, [Side::Receiver, Side::Sender], "a receiver reads before anybody may send");
    assert!(world.hosts[SERVER].out.contains("[RX-S]") && world.hosts[SERVER].out.contains("[TX-S]"));
}

#[test]
fn datagrams_are_greeted_and_losses_are_counted() {
    let settings = settings(|s| {
        (s.client.udp, s.client.parallel) = (true, 2);
        s.client.udp_counters_64bit = true;
        s.client.repeating_payload = true;
    });
    let mut world = new_world(server(one_off()), vec![client(settings)]);
    let mut sent = 0;
    world.loss = Box::new(move |_, datagram| {
        sent += u64::from(datagram.len() > 4);
        // The two streams take turns.
        datagram.len() > 4 && [3, 12].contains(&(sent % 16))
    });
    world.pass(Span::from_secs(20));
    let json = check_end(&world);
    // 32 datagrams per stream, of which 4 are lost.
    assert_eq!(sums(&json, ""), (64 * 4096, 56 * 4096));
    assert_eq!(json["end"]["sum"]["lost_packets"], 8);
    assert_eq!(json["end"]["sum"]["packets"], 64);
    let task = &world.hosts[SERVER].tasks[0];
    assert_eq!((task.transport, task.payload.pattern), (Transport::Udp, Pattern::Digits));
    assert_eq!(task.stamp.length, 16);
}

#[test]
fn datagrams_in_both_directions() {
    let (_, json) = run(settings(|s| (s.client.udp, s.client.bidir) = (true, true)));
    assert_eq!(sums(&json, ""), (32 * 4096, 32 * 4096));
    let packets = json["end"]["sum_bidir_reverse"]["packets"].as_u64().unwrap();
    assert!((31..=34).contains(&packets), "{packets}");
}

#[test]
fn a_datagram_fits_a_segment_of_the_control_connection() {
    let (world, _) = run(settings(|s| (s.client.udp, s.client.length) = (true, None)));
    assert_eq!(world.hosts[SERVER].tasks[0].length, Bytes::new(1448));
}

#[test]
fn a_goal_ends_the_test_exactly_and_in_whole_blocks() {
    // 10,000 bytes need three blocks of 4,096.
    let (world, json) = run(settings(|s| s.client.end = EndCondition::Bytes(10_000)));
    assert_eq!(sums(&json, ""), (3 * 4096, 3 * 4096));
    assert_eq!(world.hosts[SERVER].plans[0].expected, None);
    let (_, json) = run(settings(|s| (s.client.end, s.client.parallel) = (EndCondition::Blocks(7), 3)));
    assert_eq!(sums(&json, ""), (7 * 4096, 7 * 4096));
}

#[test]
fn a_goal_of_a_download_ends_by_the_receivers_count() {
    let (world, json) = run(settings(|s| {
        (s.client.end, s.client.reverse) = (EndCondition::Bytes(8 * 4096), true);
    }));
    assert_eq!(world.hosts[SERVER].tasks[0].bytes, None, "the server does not end by its own count");
    let (sent, received) = sums(&json, "");
    assert_eq!(received, 8 * 4096);
    assert!(sent >= received);
}

#[test]
fn an_omitted_part_counts_for_nothing() {
    let (_, json) = run(settings(|s| (s.client.omit, s.client.end) = (2, EndCondition::Time(3))));
    let omitted: Vec<bool> =
        json["intervals"].as_array().unwrap().iter().map(|i| i["sum"]["omitted"] == true).collect();
    assert_eq!(omitted, [true, true, false, false, false]);
    assert_eq!(json["intervals"][2]["sum"]["start"], 0);
    let (sent, received) = sums(&json, "");
    // 31.25 blocks per second for 3 seconds.
    assert!((93 * 4096..=95 * 4096).contains(&sent) && received <= sent + 4096, "{sent} {received}");
}

#[test]
fn the_servers_report_comes_to_the_client() {
    let (world, json) = run(settings(|s| s.client.get_server_output = true));
    let text = json["server_output_text"].as_str().unwrap();
    assert!(text.contains("Accepted connection from 10.0.0.2") && text.ends_with("receiver\n"), "{text}");
    assert!(world.hosts[SERVER].out.contains(text));
}

#[test]
fn a_second_client_is_turned_away_and_the_first_is_not_disturbed() {
    let mut later = settings(|_| {});
    later.common.json = false;
    let mut world = new_world(server(one_off()), vec![client(settings(|_| {})), client(later)]);
    world.pass(Span::from_secs(20));
    assert_eq!(world.hosts[2].exit, Some(1));
    let busy = "iperf3: error - the server is busy running a test. try again later\n";
    assert_eq!(world.hosts[2].err, busy);
    world.hosts.truncate(2);
    check_end(&world);
}

#[test]
fn a_shared_server_distinguishes_clients() {
    let mut config = server(Iperf3Settings::default());
    config.shared = true;
    let each = |udp| {
        let host = crate::iperf3::report::Iperf3SystemInfo::default();
        let seed = [u8::from(udp); 32];
        let settings = settings(|s| (s.client.udp, s.client.parallel) = (udp, 2));
        let config =
            crate::iperf3::client::Iperf3ClientConfig { settings, host, unix_ms: 0, seed, login: None };
        Box::new(crate::iperf3::client::Iperf3Client::new(config)) as Box<dyn crate::stand_in::StandIn>
    };
    let mut world = new_world(config, vec![each(true), each(false)]);
    world.pass(Span::from_secs(20));
    for end in &world.hosts[1..] {
        assert_eq!(end.exit, Some(0), "{}", end.out);
        let json: Value = serde_json::from_str(&end.out).unwrap();
        assert_eq!(sums(&json, ""), (64 * 4096, 64 * 4096));
    }
    assert_eq!(world.hosts[SERVER].exit, None);
    assert_eq!(world.hosts[SERVER].runs, [None, None]);
}

#[test]
fn a_server_that_may_not_begin_says_that_it_is_busy() {
    let mut world = new_world(server(Iperf3Settings::default()), vec![]);
    world.hosts[SERVER].admits = false;
    assert_eq!(world.add_host(), 1);
    world.dial(1, 1);
    world.send_as(1, 1, &[b'a'; 37]);
    world.send_as(1, 1, &super::world::message("{\"tcp\":true,\"time\":1,\"len\":4096}"));
    world.pass(Span::from_secs(1));
    assert_eq!(world.received(1, 1), [9, 0xff]);
    assert!(world.hosts[SERVER].runs.is_empty());
}

#[test]
fn a_signal_at_the_client_shows_what_there_is_and_the_server_goes_on() {
    let mut settings = settings(|s| s.client.end = EndCondition::Time(10));
    settings.common.json = false;
    let mut world = new_world(server(Iperf3Settings::default()), vec![client(settings)]);
    world.pass(Span::from_ms(1600));
    world.feed(1, Input::Signal(2));
    world.pass(Span::from_secs(1));
    let (client, server) = (&world.hosts[1], &world.hosts[SERVER]);
    assert_eq!(client.exit, Some(0));
    assert!(client.err.contains("interrupt - the client has terminated by signal Interrupt(2)"));
    assert!(client.out.contains("sender"), "{}", client.out);
    assert_eq!(server.runs, [Some("the client has terminated".to_owned())]);
    assert!(server.out.contains("receiver") && server.out.contains("(test #2)"));
    assert_eq!(server.exit, None);
}

#[test]
fn a_signal_at_the_server_ends_both() {
    let mut settings = settings(|s| s.client.end = EndCondition::Time(10));
    settings.common.json = false;
    let mut world = new_world(server(Iperf3Settings::default()), vec![client(settings)]);
    world.pass(Span::from_ms(1600));
    world.feed(SERVER, Input::Signal(15));
    world.pass(Span::from_secs(3));
    let (client, server) = (&world.hosts[1], &world.hosts[SERVER]);
    assert_eq!((client.exit, server.exit), (Some(1), Some(0)));
    assert!(client.err.contains("error - the server has terminated"), "{}", client.err);
    assert!(client.out.contains("receiver"), "a summary is shown");
}

#[test]
fn intervals_end_where_they_should() {
    let (_, json) = run(settings(|s| {
        s.common.interval = Span::from_ms(400);
        s.client.end = EndCondition::Time(2);
    }));
    let ends: Vec<f64> =
        json["intervals"].as_array().unwrap().iter().map(|i| i["sum"]["end"].as_f64().unwrap()).collect();
    assert_eq!(ends.len(), 5);
    for (end, expected) in ends.iter().zip([0.4, 0.8, 1.2, 1.6, 2.0]) {
        // The last one waits until the sender has finished its block, here 1 ms.
        assert!((end - expected).abs() < 0.0011, "{end} for {expected}");
    }
}

#[test]
fn no_deadline_is_left_when_all_is_over() {
    let (mut world, _) = run(settings(|_| {}));
    let before = world.now;
    world.pass(DELAY);
    assert!(world.now > before && before > Timestamp::START);
}

#[test]
fn datagrams_of_a_stream_wait_until_the_others_are_open() {
    let held = |change: fn(&mut Iperf3Settings)| {
        let (world, _) = run(settings(|s| {
            (s.client.udp, s.client.parallel) = (true, 2);
            change(s);
        }));
        world.hosts[1].held_back.iter().map(|link| link.0).collect::<Vec<_>>()
    };
    // The control connection is link 1. With both directions, the client's own streams come first.
    assert_eq!(held(|s| s.client.reverse = true), [2, 3]);
    assert_eq!(held(|s| s.client.bidir = true), [4, 5]);
    assert_eq!(held(|_| {}), [] as [u32; 0]);
}
