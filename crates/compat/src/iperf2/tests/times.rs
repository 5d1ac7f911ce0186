//! Trip times: stamps, echoed headers and reports.

use super::hosts;
use crate::iperf2::datagram::{Generation, ServerReport, TransitReport};
use crate::stand_in::Transit;
use linerate_model::flow::{BlockLength, SeqField, TimeField, TimeForm};
use linerate_units::Bytes;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn over_tcp_each_buffer_contains_number_time_and_length() {
    let mut hosts = hosts("-t 1 -l 10000 --trip-times", "-P 1");
    hosts.run(10);
    let [client, server] = hosts.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)));
    let (_, header) = &client.sent[0];
    assert_eq!((header.len(), word(header, 0)), (80, 0x4001_00a0), "as captured of 2.1.8");
    let (sender, receiver) = (&client.tasks[0], &server.tasks[0]);
    for task in [sender, receiver] {
        assert_eq!(task.stamp.seq, SeqField::Narrow { at: 44, first: 1 });
        assert_eq!(task.stamp.time, Some(TimeField { at: 20, form: TimeForm::Wall }));
        assert_eq!(task.stamp.length, 92);
        let Transit::Blocks(blocks) = &task.transit else { panic!("{:?}", task.transit) };
        assert_eq!((blocks.length, blocks.skipped), (BlockLength::At(48), 0));
    }
    let head = &sender.payload.head;
    assert_eq!((head.len(), word(head, 48), word(head, 12)), (92, 10_000, word(header, 64)));
    // A server prints more for such a client, without -e.
    assert!(server.out.contains("Burst Latency avg/min/max/stdev (cnt/size) inP NetPwr"), "{}", server.out);
    assert!(!client.out.contains("Write/Err"), "{}", client.out);
    assert_eq!(server.sent[0].1.len(), 52, "the answer with times");
}

#[test]
fn stamped_buffers_are_never_cut() {
    let mut hosts = hosts("-n 25000 -l 10000 --trip-times -y C", "-P 1 -y C");
    hosts.run(10);
    for host in &hosts.hosts {
        // As 2.1.8 counts: three buffers and the header.
        assert_eq!(host.out.trim().split(',').nth(7), Some("30080"), "{}", host.out);
    }
}

#[test]
fn what_comes_back_on_the_clients_link_begins_with_a_header() {
    for (mode, flags, skipped) in [("-R", 0x4001_00a0_u32, 80), ("--full-duplex", 0x4401_00a0, 80)] {
        let mut hosts = hosts(&format!("-t 1 -l 10000 --trip-times {mode}"), "-P 1");
        hosts.run(10);
        let [client, server] = hosts.pair();
        assert_eq!(client.exit, Some(0), "{mode}");
        let (_, echo) = &server.sent[0];
        assert_eq!((echo.len(), word(echo, 0)), (80, flags), "{mode}: as captured of 2.1.8");
        let receives = client.tasks.iter().find(|task| task.side == linerate_model::Side::Receiver);
        let Transit::Blocks(blocks) = &receives.unwrap().transit else { panic!("{mode}") };
        assert_eq!(blocks.skipped, skipped);
        assert!(client.out.contains("Burst Latency"), "{}", client.out);
    }
    let mut hosts = hosts("-u -t 1 --trip-times -R", "-u -P 1");
    hosts.run(10);
    let head = &hosts.hosts[1].tasks[0].payload.head;
    // After number and time: flags, and trip times without an answer to the last datagram.
    assert_eq!((head.len(), word(head, 16), word(head, 48)), (128, 0x6801_00d8, 0x0018_0000));
}

#[test]
fn datagrams_are_timed_where_somebody_wants_to_know() {
    for (client, server, timed) in [
        ("-u -t 1", "-u", false),
        ("-u -t 1", "-u -e", true),
        ("-u -t 1 --trip-times", "-u", true),
        ("-u -t 1 -e", "-u", false),
    ] {
        let mut hosts = hosts(client, server);
        hosts.run(10);
        let asked = hosts.hosts[1].tasks[0].transit.clone();
        assert_eq!(asked == Transit::Datagrams, timed, "{client}, {server}: {asked:?}");
    }
}

#[test]
fn a_rate_of_tcp_is_sent_without_its_bit_and_applied() {
    let mut hosts = hosts("-t 1 -b 10m -l 10000 -R", "-P 1");
    hosts.run(10);
    assert_eq!(word(&hosts.hosts[0].sent[0].1, 32), 0x0400_0000, "as captured of 2.1.8");
    let task = &hosts.hosts[1].tasks[0];
    assert_eq!(task.offered.map(linerate_units::Bitrate::bps), Some(1e7));
    assert_eq!(task.length, Bytes::new(10_000));
}

#[test]
fn a_servers_report_of_delays_reads_as_it_was_written() {
    let transit = TransitReport {
        min_us: 2,
        max_us: 67,
        mean_us: 9,
        stdev_us: 6,
        packets: 854,
        packets_per_second: 426,
    };
    let report = ServerReport { transit: Some(transit), ..ServerReport::default() };
    let bytes = report.encode(Generation::New, &[]);
    assert_eq!((bytes.len(), word(&bytes, 16)), (128, 0xc800_0000));
    assert_eq!(ServerReport::decode(&bytes), Some(report));
    // The old layout has no room for transit times.
    let old = report.encode(Generation::Old, &[0xff; 100]);
    assert_eq!(ServerReport::decode(&old), Some(ServerReport::default()));
}
