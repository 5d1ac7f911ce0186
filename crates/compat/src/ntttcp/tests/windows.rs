//! The dialogue of the Windows tool between our own ends; there is no capture of it.

use std::ffi::OsString;

use linerate_units::{Span, Timestamp};

use super::{NtttcpObserved, NtttcpWorld, options, refused};
use crate::ntttcp::{NtttcpRole, parse, stand_in};
use crate::stand_in::Stop;

/// Both ends with the same options. The receiver starts `late` milliseconds after the sender.
fn pair(line: &str, late: u64) -> NtttcpWorld {
    let mut world = NtttcpWorld::new();
    for (role, begins) in [("-r", late), ("-s", 0)] {
        let arguments: Vec<OsString> =
            format!("--windows {role} {line}").split_whitespace().map(OsString::from).collect();
        let options = parse(&arguments).unwrap_or_else(|usage| panic!("{line}: {usage:?}"));
        world.add(stand_in(options, Span::ZERO), Timestamp::START + Span::from_ms(begins));
    }
    world
}

fn run(line: &str) -> Vec<NtttcpObserved> {
    pair(line, 0).run(Span::from_secs(60))
}

#[test]
fn a_port_for_each_thread_and_a_token_a_thousand_above() {
    let seen = run("-m 2,*,127.0.0.1 1,1,127.0.0.1 -t 2");
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert_eq!(seen[0].ports, [5001, 6001, 5002, 6002, 5003, 6003]);
    let mut dialed = seen[1].ports.clone();
    dialed.sort_unstable();
    dialed.dedup();
    assert_eq!(dialed, [5001, 5002, 5003, 6001, 6002, 6003]);
    for end in &seen {
        let tokens = [6001, 6002, 6003].map(|port| (port, b"X".to_vec()));
        assert_eq!(end.sent, tokens);
        assert_eq!(end.tasks[0].links.len(), 3);
        assert_eq!(end.tasks[0].length.get(), 65_536);
    }
    assert_eq!(seen[1].stops, [Stop::Abort], "the receiver takes an orderly end before its own for an error");
    // 3 streams of 1 MB/s for 2 s are 6 MB, 5.722 MiB, 2.861 MiB/s.
    assert!(seen[1].printed.contains("        5.722046       2.000 "), "{}", seen[1].printed);
    assert!(seen[1].printed.contains("            2.861\n"), "{}", seen[1].printed);
    assert!(
        seen[1].printed.contains("     2    2.000          976.562     65536.000\n"),
        "{}",
        seen[1].printed
    );
}

#[test]
fn without_tokens_the_connections_are_enough() {
    let seen = run("-m 2,*,127.0.0.1 -t 1 -ns");
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert_eq!(seen[0].ports, [5001, 5002]);
    assert!(seen[0].sent.is_empty() && seen[1].sent.is_empty());
}

#[test]
fn the_receiver_sends_the_ports_in_little_endian() {
    let seen = run("-m 2,*,127.0.0.1 -t 1 -sp -ns");
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert_eq!(seen[0].ports, [5001, 5002, 5003]);
    // 5002 is 0x138a.
    let announced = [(5001, vec![0x8a, 0x13, 0, 0]), (5001, vec![0x8b, 0x13, 0, 0])];
    assert_eq!(seen[0].sent, announced);
    assert_eq!(seen[1].ports.iter().filter(|port| **port == 5001).count(), 2);
}

#[test]
fn a_sender_waits_for_a_receiver_that_is_late() {
    let seen = pair("-m 4,*,127.0.0.1 -t 1", 3_000).run(Span::from_secs(60));
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    let seen = pair("-m 4,*,127.0.0.1 -t 1", 20_000).run(Span::from_secs(15));
    assert_eq!(seen[1].exit, Some(24));
    let lasted = seen[1].exit_at.since(Timestamp::START);
    assert!(
        lasted >= Span::from_secs(9) && lasted < Span::from_secs(12),
        "100 tries, 100 ms apart: {lasted}"
    );
}

#[test]
fn buffers_instead_of_a_time() {
    let seen = run("-m 2,*,127.0.0.1 -n 10 -l 100000");
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert_eq!(seen[1].tasks[0].bytes.unwrap().get(), 2_000_000);
    // 10 buffers of 100000 bytes for each of two threads, at 1 MB/s each.
    assert!(seen[1].printed.contains("        20.000"), "{}", seen[1].printed);
    assert!(seen[1].printed.contains("       1.000 "), "{}", seen[1].printed);
}

#[test]
fn tokens_at_one_end_only_are_reported() {
    let mut world = NtttcpWorld::new();
    for (line, begins) in [("-r -m 1,*,127.0.0.1 -t 1 -ns", 0), ("-s -m 1,*,127.0.0.1 -t 1", 1)] {
        let options = options(&format!("--windows {line}"));
        world.add(stand_in(options, Span::ZERO), Timestamp::START + Span::from_ms(begins));
    }
    let seen = world.run(Span::from_secs(60));
    assert_eq!(seen[1].exit, Some(24));
    assert!(seen[1].printed.contains("ERR : cannot connect to the receiver"), "{}", seen[1].printed);
}

#[test]
fn datagrams_have_128_bytes_and_the_xml_binary_units() {
    let seen = run("-m 1,*,127.0.0.1 -t 2 -u -xml out.xml");
    assert_eq!((seen[0].exit, seen[1].exit), (Some(0), Some(0)), "{seen:?}");
    assert_eq!(seen[1].tasks[0].length.get(), 128);
    let xml = &seen[1].files["out.xml"];
    assert!(xml.starts_with("<ntttcps computername=\"\" version=\"5.40\">"), "{xml}");
    // 2 MB in 2 s: 1.907 MiB, 0.954 MiB/s, 8 mbps
    assert!(xml.contains("<total_bytes metric=\"MB\">1.907349</total_bytes>"), "{xml}");
    assert!(xml.contains("<throughput metric=\"MB/s\">0.954</throughput>"), "{xml}");
    assert!(xml.contains("<throughput metric=\"mbps\">8.000</throughput>"), "{xml}");
    assert!(xml.contains("<num_processors>2</num_processors>"), "{xml}");
}

#[test]
fn command_lines_of_the_windows_tool() {
    let seen = options("--windows -s -m 8,*,10.0.0.2 4,1,10.0.0.2 -p 6000 -wu 1 -cd 2 -t 30");
    assert_eq!((seen.ports, seen.threads, seen.role, seen.base), (12, 1, NtttcpRole::Sender, 6000));
    assert_eq!((seen.omit, seen.cooldown, seen.seconds), (1, 2, 30));
    assert_eq!(options("--windows -r -m 1,*,x").buffers(), Some(20_480));
    for wrong in [
        "-s",
        "-m 1,*,x",
        "-s -m 1000,*,x",
        "-s -m 1,*,x 1,*,y",
        "-s -m 0,*,x",
        "-s -m 1,*,x -rt",
        "-s -m 1,*,x -p 64600",
        "-s -m 1,*",
        "-r -m 1,*,x -t",
        "-r -m 1,*,x -t 4000000000",
    ] {
        assert_eq!(refused(&format!("--windows {wrong}")).code, 255, "{wrong}");
    }
    assert_eq!(options("--windows -s -m 1000,*,x -ns -t 1").ports, 1000);
    let seen = options("--windows -s -m 2,*,x -sb 64K -rb -1 -thr 1000 -l 1M -ndl -xml -hpt");
    // 1000 KiB/s for each of two threads.
    assert_eq!(seen.rate.unwrap().bps(), 16_384_000.0);
    assert_eq!((seen.data_link().snd_buf, seen.data_link().rcv_buf), (Some(65_536), None));
    assert_eq!((seen.length, seen.no_delay, seen.xml.as_deref()), (Some(1 << 20), true, Some("xml.txt")));
    assert!(refused("--windows -s -m 1,*,x -x 4").error.contains("TransmitPackets"));
}
