//! Tests of whole pages of text.

use super::*;
use crate::samples_of_runs as runs;
use expect_test::{Expect, expect};
use linerate_model::flow::FlowId;
use linerate_model::{Event, Limit};

fn check(log: &[Event], width: usize, expected: &Expect) {
    let view =
        TextLayout { width, colour: false, kept: Some("7f3a".into()), explain: false, all_streams: false };
    let text = text(&RunRecord::fold(log), &view);
    assert!(text.is_ascii(), "{text}");
    assert!(text.lines().all(|line| line.len() <= width && line.trim_end() == line), "{text}");
    expected.assert_eq(&text);
}

#[test]
fn both_directions_over_a_full_link() {
    check(
        &runs::tcp_run(),
        110,
        &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500   2026-11-21T10:00:00Z
            idle latency   p50 210 us   p95 420 us   p99 630 us   (UDP, 200 probes, 0 lost)

                           bitrate   ceiling     received   retr   loaded p50 / p95   cpu here/there
            download    941.4 Mb/s   100.0 %     1.10 GiB     17   900 us / 1.80 ms       12 % / 8 %
            upload      600.0 Mb/s    63.7 %   715.26 MiB     17   900 us / 1.80 ms       8 % / 12 %

            Evidence
              download    evidence  ceiling 941.5 Mb/s, interval variation 0.00421, min rtt 210 us, snd wnd 3 MiB
                          ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
                          steady    941.5 Mb/s (938.6 to 944.3), 95 % interval, after a ramp-up of 120 ms
                          bytes     written 1.10 GiB, delivered 1.10 GiB, never sent 3 MiB, unaccounted 0 B
              upload      evidence  ceiling 941.5 Mb/s, interval variation 0.00421, min rtt 210 us, snd wnd 3 MiB
                          ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps
              both        settings  1 stream, window 4 MiB asked (granted 8 MiB send, 6 MiB receive), MSS 1448, congestion
                                    control cubic (asked bbr)

            Caveats
              upload      bbr was asked for and the kernel has only cubic; load the module tcp_bbr

            Verdict
              download    The link is full: this is the maximum of 1000BASE-T at MTU 1500.
                          cause     link, rule V02, confirmed, 98 % of the time
              upload      The send buffer holds less than the path.
                          cause     sender_window, rule V06, probable, 98 % of the time
                          remedy    Raise net.ipv4.tcp_wmem or leave -w out.
                          also      Latency rises under load. (congestion, rule V22, confirmed, 98 % of the time)

            archived as 7f3a (linerate show 7f3a)
            download 941.4 Mb/s, upload 600.0 Mb/s, latency 210 -> 900 us under load; download held by the link
            (confirmed), upload held by the send buffer (probable)
        "#]],
    );
}

#[test]
fn a_narrow_page_stacks_the_columns() {
    check(
        &runs::tcp_run()[..12],
        48,
        &expect![[r#"
            linerate 0.1.0
            laptop (10.0.0.1) -> server (10.0.0.2)
            eth0, 1 Gb/s, MTU 1500   2026-11-21T10:00:00Z
            idle latency   p50 210 us   p95 420 us
            p99 630 us   (UDP, 200 probes, 0 lost)

                        bitrate   retr   loaded p50 / p95
            download          -     17   900 us / 1.80 ms

            Evidence
              download    settings  1 stream, window 4 MiB
                                    asked (granted 8 MiB
                                    send, 6 MiB receive),
                                    MSS 1448, congestion
                                    control cubic (asked
                                    bbr)

            Caveats
              download    the receiver reported no count
                          before the flow ended

            Verdict
              download    not judged: the flow ended before
                          there was enough data.

            not finished: the log has no end; the run is
            still in progress or was killed
            archived as 7f3a (linerate show 7f3a)
            download not measured, latency 210 -> 900 us
            under load; not judged
        "#]],
    );
}

#[test]
fn a_run_in_the_lab_shows_the_ports_that_carried_something() {
    check(
        &runs::lab_run(),
        100,
        &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500   lab
            2026-11-21T10:00:00Z

                           bitrate   ceiling   received   cpu here/there
            upload      941.0 Mb/s    99.9 %   1.10 GiB         - / 12 %

            port   during         rate      busy   packets   dropped   largest queue
            s>b    upload   1.000 Gb/s   100.0 %    162702       160      488.28 KiB
            s>a    upload   20.00 Mb/s     2.0 %      3243         0        9.77 KiB

            Evidence
              upload      ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps

            Caveats
              upload      3 packets left late

            Verdict
              upload      not judged: the flow ended before there was enough data.

            archived as 7f3a (linerate show 7f3a)
            upload 941.0 Mb/s; not judged
        "#]],
    );
}

#[test]
fn datagrams_show_loss_and_jitter() {
    check(
        &runs::udp_run(),
        90,
        &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
            2026-11-21T10:00:00Z

                           bitrate   received               lost    jitter   cpu here/there
            upload      1.000 Mb/s   1.19 MiB   25/10000 (0.2 %)   54.7 us      12 % / 12 %

            Evidence
              upload      copies    15 duplicate datagrams; the rate contains them
                          settings  1 stream, window 4 MiB asked (granted 8 MiB send, - receive),
                                    datagrams of 1448 bytes, 44 per send call, TOS 184

            Verdict
              upload      not judged: the flow ended before there was enough data.

            archived as 7f3a (linerate show 7f3a)
            upload 1.000 Mb/s, 0.2 % lost; not judged
        "#]],
    );
}

#[test]
fn a_killed_run_shows_what_was_counted() {
    check(
        &runs::killed_run(),
        90,
        &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
            2026-11-21T10:00:00Z

                           bitrate     received
            download    800.0 Mb/s   238.42 MiB
            upload               -            -

            Caveats
              download    the receiver's final count is missing; the figures are its last sample,
                          2.5 s after its first read
              upload      the receiver reported no count before the flow ended

            Verdict
              download    not judged: the flow ended before there was enough data.
              upload      not judged: the flow ended before there was enough data.

            not finished: the log has no end; the run is still in progress or was killed
            archived as 7f3a (linerate show 7f3a)
            download 800.0 Mb/s, upload not measured; not judged
        "#]],
    );
}

#[test]
fn an_impossible_figure_is_never_printed_plainly() {
    check(
        &runs::impossible_run(),
        90,
        &expect![[r#"
            linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
            2026-11-21T10:00:00Z

                                       bitrate   received   cpu here/there
            download    impossible: 1.200 Gb/s   1.40 GiB         12 % / -

            Evidence
              download    ceiling   941.5 Mb/s: 1000BASE-T, MTU 1500, IPv4, TCP timestamps

            Verdict
              download    not judged: the flow ended before there was enough data.
                          figure    impossible: it exceeds what the path can carry, or the sender's
                                    own count.

            archived as 7f3a (linerate show 7f3a)
            download impossible: 1.200 Gb/s; not judged
        "#]],
    );
}

#[test]
fn an_empty_log_is_a_text_all_the_same() {
    check(
        &[],
        40,
        &expect![[r#"
            linerate

            not finished: the log has no end; the
            run is still in progress or was killed
            archived as 7f3a (linerate show 7f3a)
        "#]],
    );
}

#[test]
fn colour_only_adds_escape_sequences() {
    let record = RunRecord::fold(&runs::impossible_run());
    let plain = text(
        &record,
        &TextLayout { width: 90, colour: false, kept: None, explain: false, all_streams: false },
    );
    let coloured = text(
        &record,
        &TextLayout { width: 90, colour: true, kept: None, explain: false, all_streams: false },
    );
    assert!(coloured.contains("\u{1b}["));
    let mut stripped = String::new();
    for (number, part) in coloured.split("\u{1b}[").enumerate() {
        let visible = if number == 0 { Some(part) } else { part.split_once('m').map(|(_, rest)| rest) };
        stripped.push_str(visible.unwrap());
    }
    assert_eq!(stripped, plain);
}

#[test]
fn names_from_elsewhere_cannot_steer_the_terminal() {
    let mut log = runs::impossible_run();
    for event in &mut log {
        if let linerate_model::Body::Host { info } = &mut event.body {
            info.name = "\u{1b}]0;owned\u{7}\u{202e}\n".into();
        }
    }
    let text = text(&RunRecord::fold(&log), &TextLayout::default());
    assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text:?}");
    assert!(text.starts_with("linerate 0.1.0   ?]0;owned?? "), "{text}");
}

#[test]
fn a_series_shows_what_it_comes_to_and_a_row_for_each_size() {
    let page = text(&RunRecord::fold(&runs::sweep_run()), &TextLayout::default());
    expect![[r#"
        linerate 0.1.0   laptop (10.0.0.1) -> server (10.0.0.2)   eth0, 1 Gb/s, MTU 1500
        2026-11-21T10:00:00Z

          ping-pong   9 sizes from 1 B to 64 KiB; times: half the round trip of one message
          latency     20.0 us for 1 B
          highest     6.129 Gb/s at 64 KiB
          saturated   from 64 KiB on: all larger sizes reach 90 % of the highest rate
          line        start-up 20 us, then 8.000 Gb/s; half of that rate at 19.53 KiB (Hockney; largest
                      deviation of a size 1 %)
          interval    none for sizes with fewer than six trials: their median has no 95 % interval
          settings    1 stream, window 4 MiB asked (granted 8 MiB send, - receive), MSS 1448, congestion
                      control cubic (asked bbr)

        bytes    trials      best    median        95 % interval      bitrate
            1   7 x 500   19.0 us   20.0 us   19.0 us .. 22.0 us   400.0 kb/s
            4   7 x 500   19.0 us   20.0 us   19.0 us .. 22.0 us   1.600 Mb/s
           16   7 x 500   19.0 us   20.0 us   19.0 us .. 22.0 us   6.395 Mb/s
           64   7 x 500   19.1 us   20.1 us   19.1 us .. 22.1 us   25.52 Mb/s
          256   7 x 500   19.3 us   20.3 us   19.3 us .. 22.3 us   101.1 Mb/s
         1024   7 x 500   20.0 us   21.0 us   20.0 us .. 23.0 us   389.6 Mb/s
         4096   7 x 500   23.1 us   24.1 us   23.1 us .. 26.1 us   1.360 Gb/s
        16384   7 x 500   35.4 us   36.4 us   35.4 us .. 38.4 us   3.602 Gb/s
        65536   2 x 500   84.5 us   85.5 us                    -   6.129 Gb/s
    "#]]
    .assert_eq(&page);
}

#[test]
fn the_ceilings_show_what_binds_what_is_next_and_where_the_rate_lies() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    let new = |limit: Limit, bitrate_bps: f64, because: &str| linerate_model::Ceiling {
        limit,
        bitrate_bps,
        because: because.into(),
        slack_bps: 0.0,
    };
    // The upload's 600 Mb/s are between the first and the second ceiling.
    record.flows[1].ceilings = vec![
        new(Limit::SendBuffer, 598e6, "128 KiB, RTT 1.75 ms"),
        new(Limit::Link, 941.5e6, "1000BASE-T"),
        new(Limit::CpuSender, 1.6e9, "sending thread took 38 % of a core"),
    ];
    record.flows[0].ceilings.clear();
    let view = TextLayout { width: 110, colour: false, kept: None, explain: true, all_streams: false };
    let page = text(&record, &view);
    let shown = [
        "              ceilings  598.0 Mb/s  send buffer: 128 KiB, RTT 1.75 ms <- binds",
        "                        600.0 Mb/s  measured",
        "                        941.5 Mb/s  link: 1000BASE-T <- next",
        "                        1.600 Gb/s  cpu sender: sending thread took 38 % of a core",
    ];
    assert!(page.contains(&shown.join("\n")), "{page}");
    assert!(page.contains("no ceiling is known"), "{page}");
    let plain = text(&record, &TextLayout { explain: false, ..view });
    assert!(!plain.contains("<- binds"), "only when asked for");
}

#[test]
fn what_was_received_is_next_to_its_interval() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    record.flows[0].uncertainty = Some(runs::uncertainty());
    let view = TextLayout { width: 130, colour: false, kept: None, explain: true, all_streams: false };
    let page = text(&record, &view);
    assert!(page.contains("download    941.4 Mb/s (941.0 to 941.8)"), "{page}");
    assert!(page.contains("600.0 Mb/s    63.7 %"), "nothing is stated of it: {page}");
    let known =
        "known to  941.0 to 941.8 Mb/s (95 % interval), mainly variation: 99 steady intervals in 10 batches";
    assert!(page.contains(known), "{page}");
    assert!(page.contains("wake up 54.00 kb/s (threads"), "{page}");
    let plain = text(&record, &TextLayout { explain: false, ..view });
    assert!(!plain.contains("budget") && !plain.contains("known to"), "only when asked for: {plain}");
    record.flows[0].verdict.as_mut().unwrap().cause = linerate_model::Cause::Impossible;
    let struck = text(
        &record,
        &TextLayout { explain: false, kept: None, ..TextLayout { width: 110, ..TextLayout::default() } },
    );
    assert!(!struck.contains("known to"), "an impossible figure is known to nothing: {struck}");
}

#[test]
fn the_overhead_of_the_run_raises_the_upper_end_and_is_named() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    let overhead = |bps| Some(linerate_units::Bitrate::from_bps(bps).unwrap());
    let view = TextLayout { width: 160, explain: true, ..TextLayout::default() };
    let mut page = |overhead_bps| {
        record.flows[0].uncertainty =
            Some(linerate_model::Uncertainty { overhead_bps, ..runs::uncertainty() });
        text(&record, &view)
    };
    let raised = page(overhead(2e6));
    assert!(raised.contains("941.4 Mb/s (941.0 to 943.8)"), "{raised}");
    assert!(raised.contains("in 10 batches; probes and the control connection used"), "{raised}");
    // 5 % of the half-width is not reported.
    assert!(!page(overhead(1.9e4)).contains("probes and control"));
}

#[test]
fn a_question_that_further_runs_answered_is_with_its_runs_below_the_verdict() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    record.flows[1].follow_ups.push(linerate_model::FollowUp {
        question: "sizes".into(),
        because: "full-size segments are lost: from which size on?".into(),
        runs: vec!["0123456789abcdef".into(), "fedcba9876543210".into()],
        answer: "packets of 1400 bytes pass, packets of 1401 bytes are lost".into(),
        evidence: std::collections::BTreeMap::new(),
    });
    let view = TextLayout { width: 200, colour: false, kept: None, explain: false, all_streams: false };
    let line = "              follow-up full-size segments are lost: from which size on? packets of 1400 \
                bytes pass, packets of 1401 bytes are lost (runs 01234567, fedcba98)";
    let page = text(&record, &view);
    assert_eq!(page.lines().filter(|found| *found == line).count(), 1, "{page}");
    assert!(!text(&RunRecord::fold(&runs::tcp_run()), &view).contains("follow-up"));
}

/// A step that counted 1 MiB more than was explained, and a step that is fully explained.
fn steps() -> Vec<linerate_model::AccountingStep> {
    use linerate_model::{AccountingPoint, AccountingStep};
    let step = |point, counter: &str, counted: u64, residual_bytes| AccountingStep {
        point,
        host: "server".into(),
        counter: counter.into(),
        counted_bytes: linerate_units::Bytes::new(counted),
        min_bytes: linerate_units::Bytes::new(4 << 20),
        max_bytes: linerate_units::Bytes::new(4 << 20),
        residual_bytes,
        unaccounted: residual_bytes != 0,
        because: "4 MiB of payload".into(),
    };
    vec![
        step(AccountingPoint::ReceiverInterface, "eth0", 5 << 20, 1 << 20),
        step(AccountingPoint::ReceiverSocket, "the connections", 4 << 20, 0),
    ]
}

#[test]
fn counts_on_the_way_to_the_wire_are_below_the_ceilings_when_asked_for() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    record.flows[0].steps = steps();
    let view = TextLayout { width: 110, colour: false, kept: None, explain: true, all_streams: false };
    let page = text(&record, &view);
    let shown = [
        "              counts    5 MiB     +1 MiB  receiver interface, eth0 of server <- unaccounted: 4 MiB of payload",
        "                        4 MiB  explained  receiver socket, the connections of server: 4 MiB of payload",
    ];
    assert!(page.contains(&shown.join("\n")), "{page}");
    assert!(!text(&record, &TextLayout { explain: false, ..view }).contains("counts"), "only when asked for");
    record.flows[0].steps[0].residual_bytes = -(1 << 20);
    assert!(
        text(&record, &TextLayout { width: 110, explain: true, ..TextLayout::default() })
            .contains("  -1 MiB  ")
    );
}

#[test]
fn a_document_has_the_counts_with_the_byte_accounting_and_for_datagrams_too() {
    for mut log in [runs::tcp_run(), runs::udp_run()] {
        let reconciled = linerate_model::Body::Reconciled { flow: FlowId(0), steps: steps() };
        log.push(Event { body: reconciled, ..log[0].clone() });
        let record = RunRecord::fold(&log);
        let accounting =
            serde_json::to_value(crate::document(&record)).unwrap()["flows"][0]["byte_accounting"].clone();
        assert_eq!(accounting["steps"][0]["point"], "receiver_interface");
        assert_eq!(accounting["steps"][0]["residual_bytes"], 1 << 20);
        let tcp = record.flows[0].plan.transport == linerate_model::Transport::Tcp;
        assert_eq!(accounting.get("written_bytes").is_some(), tcp, "{accounting}");
    }
}

#[test]
fn the_last_screen_of_a_small_terminal_has_the_answer_and_every_verdict() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    for flow in &mut record.flows {
        flow.uncertainty = Some(runs::uncertainty());
    }
    let view = TextLayout { width: 80, kept: Some("7f3a".into()), ..TextLayout::default() };
    let page = text(&record, &view);
    let lines: Vec<&str> = page.lines().collect();
    // The last of 24 lines is the prompt's.
    let screen = &lines[lines.len() - 23..];
    let verdict = screen.iter().position(|line| *line == "Verdict").unwrap();
    for flow in &record.flows {
        let text = flow.verdict.as_ref().unwrap().text.as_str();
        assert!(screen[verdict..].iter().any(|line| line.contains(text)), "{page}");
    }
    let expected = wrap(&answer(&record).unwrap(), 80);
    assert!(expected.len() <= 3, "{expected:?}");
    assert_eq!(lines[lines.len() - expected.len()..], expected);
    let archived = lines.iter().position(|line| line.starts_with("archived as")).unwrap();
    assert!(archived < lines.len() - expected.len(), "{page}");
}

#[test]
fn the_results_with_their_intervals_fit_into_eighty_columns_without_stacking() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    for flow in &mut record.flows {
        flow.uncertainty = Some(runs::uncertainty());
    }
    for width in [80, 100] {
        let page = text(&record, &TextLayout { width, ..TextLayout::default() });
        for (name, shown) in
            [("download", "941.4 Mb/s (941.0 to 941.8)"), ("upload", "600.0 Mb/s (599.6 to 600.4)")]
        {
            let row = page.lines().find(|line| line.starts_with(name)).unwrap();
            assert!(row.contains(shown) && row.contains("900 us / 1.80 ms"), "{page}");
            assert!(row.len() <= width, "{page}");
        }
    }
}

#[test]
fn settings_that_both_directions_share_are_listed_once() {
    let record = RunRecord::fold(&runs::tcp_run());
    let page = text(&record, &TextLayout { width: 120, ..TextLayout::default() });
    assert_eq!(page.matches("1 stream, window").count(), 1, "{page}");
}

#[test]
fn a_caveat_about_the_clocks_is_not_shown_where_no_one_way_delay_is() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    let text_of =
        |record: &RunRecord| text(record, &TextLayout::default()) + &crate::markdown::report(record);
    let before = text_of(&record);
    record.flows[0].caveats.push(linerate_model::Caveat {
        kind: linerate_model::CaveatKind::OffsetUncertain,
        text: "the clocks' offset is known to +/- 1 ms".into(),
    });
    assert_eq!(text_of(&record), before);
    let json = serde_json::to_string(&crate::document(&record)).unwrap();
    assert!(json.contains("offset_uncertain"), "{json}");
}
