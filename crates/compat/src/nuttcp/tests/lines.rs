use linerate_units::Span;

use crate::nuttcp::delays::OneWay;
use crate::nuttcp::marks::{Marked, TransmitterCounts};
use crate::nuttcp::report::{Counted, Setup, count_lines, setup_lines};
use crate::nuttcp::summary::{
    Brief, FreshRanges, LineContents, ReceiverCounts, interval_line, loss_line, with_own_counts,
};
use crate::nuttcp::{NuttcpFormat, NuttcpResults};
use crate::stand_in::Opened;
use crate::stand_in::ResourceUsage;

const UDP: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v612-udp-tx.txt");
const JITTER: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-udp-jitter-owd.txt");
const TCP: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-tx-interval.txt");

/// The lines of a transcript's server from its report on.
fn report(transcript: &str) -> Vec<&str> {
    transcript.lines().filter_map(|line| line.strip_prefix("S ")).skip(2).collect()
}

#[test]
fn the_lines_after_a_test_are_those_of_a_real_receiver() {
    // 3663 datagrams of 1024 bytes; the time is chosen so that all four printed figures match.
    let counted = Counted {
        bytes: 3663 * 1024,
        span: Span::from_ns(3_000_923_000),
        calls: 3667,
        retrans: None,
        cwnd: None,
        user: Span::from_ns(6_670_000),
        system: Span::from_ns(20_000_000),
        usage: Some(ResourceUsage {
            max_resident_kib: 1640,
            minor_faults: 1,
            voluntary_switches: 3658,
            involuntary_switches: 3,
            ..ResourceUsage::default()
        }),
        ..Counted::default()
    };
    let lines = count_lines(&counted, false, "nuttcp-r: ", false, true);
    let real = report(UDP);
    let real = &real[real.len() - 4..];
    assert_eq!(lines[0].trim_end(), real[0]);
    assert_eq!(lines[1].split(" = ").next(), real[1].split(" = ").next());
    assert_eq!(lines[2].trim_end(), real[2]);
    assert_eq!(lines[3].trim_end(), real[3]);
    let parse = count_lines(&counted, false, "", true, true);
    assert!(parse[3].ends_with(" cpu=0% memory=0i+0d-820maxrss io=0+1pf swaps=3658+3csw\n"), "{}", parse[3]);
    let unknown = count_lines(&Counted { usage: None, ..counted }, false, "", false, true);
    assert_eq!(unknown[3], "0.0user 0.0sys 0:03real 0%\n");
}

#[test]
fn the_lines_before_a_test_are_those_of_a_real_receiver() {
    let setup = Setup {
        length: 65_536,
        streams: 1,
        port: 5101,
        interval: Span::from_secs(1),
        peer: Some(([127, 0, 0, 1], 40_000).into()),
        mss: Some(1448),
        snd_buf: 69_120,
        rcv_buf: 131_072,
        ..Setup::default()
    };
    assert_eq!(setup_lines(&setup, "nuttcp-r: ", false).lines().collect::<Vec<_>>(), report(TCP)[..6]);
    let udp = Setup { udp: true, length: 1024, snd_buf: 212_992, rcv_buf: 212_992, ..setup };
    assert_eq!(setup_lines(&udp, "nuttcp-r: ", false).lines().collect::<Vec<_>>(), report(JITTER)[..5]);
}

/// From `nuttcp -vv -T2` and `nuttcp -fparse -v -u -n100 -l1000 -R500p` of 8.2.2.
#[test]
fn the_lines_before_a_test_are_those_of_a_real_transmitter() {
    let setup = Setup {
        transmit: true,
        connected: true,
        length: 65_536,
        streams: 1,
        port: 5101,
        time: Span::from_secs(2),
        peer: Some(([127, 0, 0, 1], 5101).into()),
        mss: Some(1448),
        rtt: Some(Span::from_ns(73_000)),
        snd_buf: 69_120,
        rcv_buf: 131_072,
        ..Setup::default()
    };
    let real = "\
nuttcp-t: v8.2.2: socket
nuttcp-t: buflen=65536, nstream=1, port=5101 tcp -> 127.0.0.1
nuttcp-t: time limit = 2.00 seconds
nuttcp-t: connect to 127.0.0.1 with mss=1448, RTT=0.073 ms af=inet
nuttcp-t: send window size = 69120, receive window size = 131072
nuttcp-t: available send window = 34560, available receive window = 65536
";
    assert_eq!(setup_lines(&setup, "nuttcp-t: ", false), real);
    let udp = Setup {
        udp: true,
        length: 1000,
        blocks: Some(100),
        port: 26_010,
        time: Span::from_secs(1),
        rate_kbps: Some(4000),
        snd_buf: 212_992,
        rcv_buf: 212_992,
        ..setup
    };
    let real = "\
nuttcp-t: v8.2.2: socket
nuttcp-t: buflen=1000 nbuf=100 nstream=1 port=26010 mode=udp host=127.0.0.1 af=inet
nuttcp-t: time_limit=1.00
nuttcp-t: rate_limit=4.000 rate_unit=Mbps rate_mode=aggregate pps_rate=500
nuttcp-t: send_window_size=212992 receive_window_size=212992
nuttcp-t: send_window_avail=106496 receive_window_avail=106496
";
    assert_eq!(setup_lines(&udp, "nuttcp-t: ", true), real);
}

/// From `nuttcp -v -c5p -T1 -Ri1m/4 -l1000 -xc0/1 -p5300:5301 localhost` of 8.2.2.
#[test]
fn the_lines_before_a_test_tell_most_options() {
    let udp = Setup {
        transmit: true,
        udp: true,
        length: 1000,
        streams: 1,
        port: 5301,
        time: Span::from_secs(1),
        peer: Some(([127, 0, 0, 1], 5301).into()),
        snd_buf: 212_992,
        rcv_buf: 212_992,
        source_port: Some(5300),
        affinity: Some(0),
        tos: 0xa0,
        burst: 4,
        instantaneous: true,
        rate_kbps: Some(1000),
        host: Some("localhost".to_owned()),
        ..Setup::default()
    };
    let real = "\
nuttcp-t: v8.2.2: socket
nuttcp-t: affinity = CPU 0
nuttcp-t: buflen=1000, nstream=1, port=5301, srcport=5300 udp -> localhost af=inet ip=127.0.0.1
nuttcp-t: time limit = 1.00 second
nuttcp-t: rate limit = 1.000 Mbps (instantaneous), packet burst = 4, 125 pps, tos = 0xA0
nuttcp-t: send window size = 212992, receive window size = 212992
nuttcp-t: available send window = 106496, available receive window = 106496
";
    assert_eq!(setup_lines(&udp, "nuttcp-t: ", false), real);
    let parse = setup_lines(&udp, "nuttcp-t: ", true);
    let limits =
        "rate_limit=1.000 rate_unit=Mbps rate_mode=instantaneous packet_burst=4 pps_rate=125 tos=0xA0\n";
    assert!(parse.contains(limits), "{parse}");
    assert!(
        parse.contains("cpu_affinity=0\n") && parse.contains(" port=5301 srcport=5300 mode=udp "),
        "{parse}"
    );
    let receiver = setup_lines(&Setup { transmit: false, ..udp }, "nuttcp-r: ", false);
    assert!(receiver.contains(" srcport=5300 udp af=inet\nnuttcp-r: tos = 0xA0\n"), "{receiver}");
}

fn amount(bytes: u64, ns: u64, sent: u64, lost: u64) -> ReceiverCounts {
    ReceiverCounts { bytes, span: Span::from_ns(ns), sent, lost, ..ReceiverCounts::default() }
}

fn with_format(bits: u32) -> LineContents {
    LineContents { format: NuttcpFormat(bits), ..LineContents::default() }
}

#[test]
fn interval_lines_are_those_of_the_real_programs() {
    let none = with_format(0);
    // 360 blocks of 64 KiB.
    let tcp = amount(360 * 65_536, 1_000_020_000, 0, 0);
    let bare = report(TCP)[6];
    assert_eq!(interval_line(tcp, tcp, None, none), bare);
    let marked = |retrans, cwnd| Marked { retrans, of_host: false, cwnd };
    let counts = |cwnd| Some(TransmitterCounts { interval: marked(0, cwnd), total: marked(3, cwnd) });
    let line = |counts, bits| interval_line(tcp, tcp, counts, with_format(bits));
    assert_eq!(line(counts(Some(234)), 0), format!("{bare}     0 retrans    234 KB-cwnd"));
    assert_eq!(line(counts(None), 0), format!("{bare}     0 retrans"));
    assert_eq!(line(counts(None), NuttcpFormat::NO_RETRANS), bare);
    assert!(line(counts(Some(217)), NuttcpFormat::PARSE).ends_with(" retrans=0 cwnd=217"));
    let sums = line(counts(None), NuttcpFormat::RUNNING_TOTAL);
    assert_eq!(sums, format!("{bare}     0 retrans Tot: {bare}     3 retrans"));
    let udp = amount(1220 * 1024, 1_000_007_000, 1220, 0);
    let lossy = LineContents { lossy: Some(1024), ..none };
    assert_eq!(interval_line(udp, udp, None, lossy), report(UDP)[5].replace("9.9941", "9.9942"));
}

/// `nuttcp -i.3 -T1 -frunningtotal -o` of 8.2.2: the transmitter's own counts stand after the rate of the interval,
/// and not in the total.
#[test]
fn a_transmitter_adds_its_counts_after_the_rate() {
    let own = |cwnd| Some(Marked { retrans: 2, of_host: false, cwnd });
    let format = NuttcpFormat(0);
    let received =
        "  1.0 MB /   0.30 sec =    8.7371 Mbps 0.1000 msAvgOWD Tot:   1.0 MB /   0.30 sec =    8.7371 Mbps";
    let line = with_own_counts(received, own(Some(543)), format);
    let real = "  1.0 MB /   0.30 sec =    8.7371 Mbps     2 retrans    543 KB-cwnd 0.1000 msAvgOWD \
                Tot:   1.0 MB /   0.30 sec =    8.7371 Mbps";
    assert_eq!(line, real);
    assert_eq!(with_own_counts(received, None, format), received);
    assert_eq!(with_own_counts(received, own(None), NuttcpFormat(NuttcpFormat::NO_RETRANS)), received);
    let parse = "megabytes=1.0 real_sec=0.30 rate_Mbps=8.7 total_megabytes=1.0";
    let line = with_own_counts(parse, own(None), NuttcpFormat(NuttcpFormat::PARSE));
    assert_eq!(line, "megabytes=1.0 real_sec=0.30 rate_Mbps=8.7 retrans=2 total_megabytes=1.0");
    assert_eq!(with_own_counts("?", own(None), format), "?     2 retrans");
}

/// `nuttcp -u -R250M -l1400 -i1 -T2 -w4m -fxmitstats -frunningtotal` of 6.1.2 over 200 Mbit/s.
#[test]
fn a_line_with_everything_is_that_of_the_real_program() {
    let format = NuttcpFormat(NuttcpFormat::XMIT_STATS | NuttcpFormat::RUNNING_TOTAL);
    let interval = amount(17_336 * 1400, 1_000_007_000, 22_321, 4985);
    let total = amount((17_336 + 17_382) * 1400, 2_000_030_000, 43_469, 8751);
    let line =
        interval_line(interval, total, None, LineContents { lossy: Some(1400), ..with_format(format.0) });
    let real = "   23.1461 MB /   1.00 sec =  194.1618 Mbps  4985 / 22321 ~drop/pkt 22.33 ~%loss \
                Tot:    46.3535 MB /   2.00 sec =  194.4179 Mbps  8751 / 43469 ~drop/pkt 20.13 ~%loss \
                Trans:    29.8018 MB Tot:    58.0374 MB";
    assert_eq!(line, real);
}

#[test]
fn parsable_lines_have_the_keys_of_the_real_program() {
    let format = NuttcpFormat(NuttcpFormat::PARSE | NuttcpFormat::XMIT_STATS | NuttcpFormat::RUNNING_TOTAL);
    let all = amount(45_000, 100_042_000, 45, 0);
    let real = "megabytes=0.0429 real_sec=0.10 rate_Mbps=3.5985 drop=0 pkt=45 data_loss=0.00000 \
                total_megabytes=0.0429 total_real_sec=0.10 total_rate_Mbps=3.5985 drop=0 pkt=45 data_loss=0.00000 \
                tx_megabytes=0.0429 tx_total_megabytes=0.0429";
    assert_eq!(
        interval_line(all, all, None, LineContents { lossy: Some(1000), ..with_format(format.0) }),
        real
    );
}

#[test]
fn the_last_line_is_that_of_the_real_programs() {
    let want = NuttcpFormat::default();
    let tcp = Brief {
        megabytes: 69.6362,
        seconds: 3.09,
        mbps: 188.9152,
        tx_cpu: Some(0),
        rx_cpu: Some(4),
        retrans: Some(0),
        cwnd: Some(247),
        rtt_ms: Some(0.08),
        ..Brief::default()
    };
    let real = "   69.6362 MB /   3.09 sec =  188.9152 Mbps 0 %TX 4 %RX 0 retrans 247 KB-cwnd 0.08 msRTT";
    assert_eq!(tcp.line(want), real);
    let real = "megabytes=69.6362 real_seconds=3.09 rate_Mbps=188.9152 tx_cpu=0 rx_cpu=4 retrans=0 cwnd=247 rtt_ms=0.08";
    assert_eq!(tcp.line(NuttcpFormat(want.0 | NuttcpFormat::PARSE)), real);
    let real = "   69.6362 MB /   3.09 sec =  188.9152 Mbps 0 %TX 4 %RX";
    assert_eq!(tcp.line(NuttcpFormat(NuttcpFormat::NO_RETRANS)), real);
    let udp = Brief {
        megabytes: 47.5712,
        seconds: 2.05,
        mbps: 194.4093,
        tx_cpu: Some(97),
        rx_cpu: Some(5),
        drops: Some((9013, 44_643)),
        sent_megabytes: Some(59.6048),
        ..Brief::default()
    };
    let real = "   47.5712 MB /   2.05 sec =  194.4093 Mbps 97 %TX 5 %RX 9013 / 44643 drop/pkt 20.19 %loss";
    assert_eq!(udp.line(want), real);
    let with = NuttcpFormat(want.0 | NuttcpFormat::XMIT_STATS);
    assert_eq!(udp.line(with), format!("{real} Trans: 59.6048 MB"));
    assert_eq!(
        Brief { drops: Some((0, 2)), ..udp.clone() }
            .line(NuttcpFormat(NuttcpFormat::NO_DROPS))
            .split("%RX ")
            .nth(1),
        Some("0.00 %loss")
    );
    assert_eq!(
        Brief { drops: Some((1, 3000)), ..udp }
            .line(NuttcpFormat(NuttcpFormat::NO_DROPS))
            .split("%RX ")
            .nth(1),
        Some("0.03333 %loss")
    );
    assert_eq!(loss_line(0, 77, false), "0 / 77 drop/pkt 0.00% data loss");
    assert_eq!(loss_line(0, 100, true), "drop=0 pkt=100 data_loss=0.00000");
}

#[test]
fn a_report_is_read_by_its_words() {
    let mut results = NuttcpResults::default();
    for line in report(JITTER) {
        results.line(line);
    }
    assert_eq!((results.megabytes, results.seconds, results.mbps), (Some(1.7852), Some(3.0), Some(4.9983)));
    assert_eq!(
        (results.jitter_ms.map(|ms| ms[2]), results.one_way_ms.map(|ms| ms[1]), results.cpu_percent),
        (Some(3.8576), Some(0.0491), Some(0))
    );
    let mut sender = NuttcpResults::default();
    for line in [
        "nuttcp-t: 0.0user 0.0sys 0:02real 12% 0i+0d 7086maxrss 0+0pf 74+10csw",
        "nuttcp-t: retrans = 7 cwnd = 223 KB",
        "nuttcp-t: connect to 127.0.0.1 with mss=1448, RTT=0.073 ms af=inet",
        "nuttcp-t: 46.0846 MB in 0.01 CPU seconds = 5958410.27 KB/cpu sec",
        "nuttcp-t: 46.0846 MB in 2.00 real seconds = 23592.98 KB/sec = 193.2737 Mbps",
    ] {
        sender.line(line);
    }
    let expected = NuttcpResults {
        megabytes: Some(46.0846),
        seconds: Some(2.0),
        mbps: Some(193.2737),
        cpu_percent: Some(12),
        retrans: Some(7),
        cwnd: Some(223),
        rtt_ms: Some(0.073),
        ..NuttcpResults::default()
    };
    assert_eq!(sender, expected);
    let mut parsable = NuttcpResults::default();
    for line in [
        "nuttcp-t: connect=127.0.0.1 mss=1448 rtt_ms=0.073",
        "nuttcp-r: megabytes=46.0846 real_seconds=2.00 rate_KBps=23592.98 rate_Mbps=193.2737",
        "nuttcp-r: stats=cpu user=0.0 system=0.1 elapsed=0:02 cpu=12% memory=0i+0d-872maxrss io=0+16pf swaps=17874+9csw",
        "nuttcp-t: retrans=7 cwnd=223",
    ] {
        parsable.line(line);
    }
    assert_eq!(parsable, expected);
}

/// The reported buffers are printed unchanged, and half of them as available.
#[test]
fn an_opened_link_has_what_the_report_needs() {
    let opened = Opened { snd_buf: 2, rcv_buf: 4, ..Opened::new(([0, 0, 0, 0], 0).into(), None) };
    let terms = crate::nuttcp::plan::Terms::of(&crate::nuttcp::NuttcpRequest::default(), 1, 5101);
    let setup = terms.setup(Some(&opened), Some(([192, 0, 2, 7], 1).into()));
    assert_eq!((setup.snd_buf, setup.rcv_buf, setup.peer.map(|peer| peer.port())), (2, 4, Some(1)));
}

/// `nuttcp -u -Ri5m -j -o -i1 -T3` between two 8.2.2, without the jitter.
#[test]
fn delays_are_printed_as_by_the_real_program() {
    let delays = OneWay { datagrams: 1828, sum_us: 89_755, min_us: 4, max_us: 3391 };
    let counted = Counted { one_way: Some(delays), ..Counted::default() };
    let lines = count_lines(&counted, false, "nuttcp-r: ", false, true);
    let real = "nuttcp-r: min-OWD = 0.0040 ms, avg-OWD = 0.0491 ms, max-OWD = 3.3910 ms\n";
    assert_eq!(lines[1], real);
    assert!(count_lines(&counted, true, "", false, true).iter().all(|line| !line.contains("OWD")));
    // 610 datagrams in the first second with a mean of 75.7 us, and as many in the second.
    let first = ReceiverCounts {
        delays: Some(OneWay { datagrams: 610, sum_us: 46_177, ..delays }),
        ..amount(624_640, 1_000_000_000, 610, 0)
    };
    let second = ReceiverCounts {
        delays: Some(OneWay { datagrams: 1220, sum_us: 64_721, ..delays }),
        ..amount(1_249_280, 2_000_000_000, 1220, 0)
    };
    let contents = LineContents { lossy: Some(1024), one_way: 2, ..with_format(0) };
    let line = |interval: ReceiverCounts| interval_line(interval, second, None, contents);
    assert!(
        line(first).ends_with("     0 /   610 ~drop/pkt  0.00 ~%loss 0.0757 msAvgOWD"),
        "{}",
        line(first)
    );
    assert!(
        line(second.since(first, FreshRanges::default())).ends_with(" 0.0304 msAvgOWD"),
        "{}",
        line(second.since(first, FreshRanges::default()))
    );
}

#[test]
fn a_client_reads_delays_below_zero() {
    let mut results = NuttcpResults::default();
    results.line("nuttcp-r: min-OWD = -0.5000 ms, avg-OWD = -0.2500 ms, max-OWD = 0.1000 ms");
    assert_eq!(results.one_way_ms, Some([-0.5, -0.25, 0.1]));
    results.line("msminOWD=-3.0000 msavgOWD=2.0000 msmaxOWD=4.0000");
    assert_eq!(results.one_way_ms, Some([-3.0, 2.0, 4.0]));
}

/// `-br -bc` of 8.2.2 with two streams, and the report from which the figures come.
#[test]
fn the_counts_of_several_streams_are_written_and_parsed() {
    let counted = Counted {
        retrans: Some(5),
        cwnd: Some(1086),
        stream_retrans: vec![3, 2],
        stream_cwnd: vec![543, 543],
        ..Counted::default()
    };
    let line = |counted: &Counted, parse| count_lines(counted, true, "nuttcp-t: ", parse, false)[1].clone();
    let text = line(&counted, false);
    assert_eq!(text, "nuttcp-t: retrans = 5 ( 3+2 ) cwnd = 1086 KB ( 543+543 )\n");
    let parse = line(&counted, true);
    assert_eq!(parse, "nuttcp-t: retrans=5 retrans_by_stream=3+2 cwnd=1086 cwnd_by_stream=543+543\n");
    for report in [text, parse] {
        let mut results = NuttcpResults::default();
        results.line(&report);
        assert_eq!((results.retrans, results.cwnd), (Some(5), Some(1086)), "{report}");
        assert_eq!((results.stream_retrans, results.stream_cwnd), (vec![3, 2], vec![543, 543]), "{report}");
    }
    let none = Counted { retrans: Some(0), stream_retrans: vec![0, 0], ..counted };
    assert_eq!(line(&none, false), "nuttcp-t: retrans = 0 cwnd = 1086 KB ( 543+543 )\n");
    let brief = Brief {
        retrans: Some(5),
        cwnd: Some(1086),
        stream_retrans: vec![3, 2],
        stream_cwnd: vec![543, 543],
        ..Brief::default()
    };
    let line = brief.line(NuttcpFormat(0));
    assert!(line.ends_with(" 5 = 3+2 retrans 1086 = 543+543 KB-cwnd"), "{line}");
    let line = brief.line(NuttcpFormat(NuttcpFormat::PARSE));
    assert!(line.ends_with(" retrans=5 retrans_by_stream=3+2 cwnd=1086 cwnd_by_stream=543+543"), "{line}");
}
