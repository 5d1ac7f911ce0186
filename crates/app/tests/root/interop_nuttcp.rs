//! nuttcp 6.1.2 and ours in all pairs of roles: both ends report what one end sent.

use crate::support::{
    Done, LinkSide, NUTTCP, Net, Netns, Process, Program, ServeProcess, TIMEOUT, again_when_busy, before,
    form,
};

use Program::{Ours, Real};

const HOST: &str = "127.0.0.1";
const CONTROL: u16 = 5000;

/// A test with a known number of bytes and datagrams.
struct KnownTest {
    args: &'static [&'static str],
    megabytes: &'static str,
    datagrams: Option<u64>,
}

const fn tcp(args: &'static [&'static str], megabytes: &'static str) -> KnownTest {
    KnownTest { args, megabytes, datagrams: None }
}

const fn udp(args: &'static [&'static str], megabytes: &'static str, datagrams: u64) -> KnownTest {
    KnownTest { args, megabytes, datagrams: Some(datagrams) }
}

/// 100,000 bytes are 0.0954 MB of 1,048,576.
const KNOWN: [KnownTest; 15] = [
    tcp(&["-n1m", "-l8k", "-R20m"], "1.0000"),
    tcp(&["-r", "-n1m", "-l8k", "-R20m"], "1.0000"),
    tcp(&["-F", "-n1m", "-l8k", "-R20m"], "1.0000"),
    tcp(&["-r", "-F", "-n1m", "-l8k", "-R20m"], "1.0000"),
    tcp(&["-N3", "-n96", "-l8192"], "0.7500"),
    tcp(&["-r", "-N3", "-n96", "-l8192"], "0.7500"),
    tcp(&["-n100", "-l1000", "-w64", "-D", "-M1000", "-c8"], "0.0954"),
    tcp(&["-r", "-n100", "-l1000", "-w64", "-ws64", "-p5301"], "0.0954"),
    tcp(&["-n1m", "-l8k", "-R20m", "-i0.1"], "1.0000"),
    tcp(&["-r", "-n1m", "-l8k", "-R20m", "-i0.1"], "1.0000"),
    udp(&["-u", "-n100", "-l1000", "-R2m"], "0.0954", 100),
    udp(&["-u", "-r", "-n100", "-l1000", "-R2m"], "0.0954", 100),
    udp(&["-u", "-N2", "-n100", "-l1000", "-Ri2m"], "0.0954", 100),
    udp(&["-u", "-n100", "-l1000", "-R2m", "-i0.25"], "0.0954", 100),
    // 6.1.2 fails after an interval without data, also with its own server.
    udp(&["-u", "-r", "-n100", "-l1000", "-R1m", "-i2", "-T5"], "0.0954", 100),
];

/// What 6.1.2 says when it gives up after an interval without data, of which a busy machine makes some.
const NO_DATA: &str = "Error: not receiving data from server";

/// A server for one client, which is listening.
fn serve_one(server: Program, on: &Netns) -> Process {
    let process = NUTTCP.start(server, on, &["-1"]);
    on.await_listener(CONTROL);
    process
}

/// Runs a client and a server that must both succeed; returns the client's output.
fn both(client: Program, server: Program, on: &Netns, args: &[&str]) -> String {
    let pair = || {
        let serving = serve_one(server, on);
        let done = NUTTCP.ask(client, on, &[args, &[HOST]].concat());
        (done, serving.finish(TIMEOUT))
    };
    let goes_on = |(done, _): &(Done, Done)| client == Ours || !done.stdout.contains(NO_DATA);
    let (done, served) = again_when_busy(pair, goes_on);
    assert_eq!(served.code, Some(0), "{args:?} {served:?}");
    assert_eq!(done.code, Some(0), "{args:?} {done:?}");
    assert_eq!(done.stderr, "", "{args:?} {done:?}");
    done.stdout
}

/// The result line of one end (`t` or `r`) in a verbose report.
fn result_of(end: char, report: &str) -> &str {
    let start = format!("nuttcp-{end}: ");
    let found = report.lines().find(|line| line.starts_with(&start) && line.contains(" real seconds = "));
    assert!(found.is_some(), "no result of {start}in {report}");
    found.unwrap_or_default()
}

/// Checks that a verbose report has the known values at both ends, and that each rate matches its bytes and
/// time.
fn check_report(known: &KnownTest, report: &str) {
    let args = known.args;
    for end in ['t', 'r'] {
        let line = result_of(end, report);
        let start = format!("nuttcp-{end}: {} MB in ", known.megabytes);
        assert!(line.starts_with(&start), "{args:?}: {start} in {report}");
        let (kilobytes, megabits) = (before(line, " KB/sec"), before(line, " Mbps"));
        // The last digits of both are rounded.
        let rounding = 0.005 * 8192e-6 + 0.00005;
        assert!((megabits - kilobytes * 8192e-6).abs() <= rounding * 1.01, "{args:?}: {line}");
    }
    if let Some(datagrams) = known.datagrams {
        let drops = format!("nuttcp-r: 0 / {datagrams} drop/pkt 0.00% data loss\n");
        assert!(report.contains(&drops), "{args:?}: {drops} in {report}");
    }
}

fn check_known_tests(client: Program, server: Program) {
    let netns = Netns::new();
    for known in &KNOWN {
        check_report(known, &both(client, server, &netns, &[known.args, &["-v"]].concat()));
    }
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn our_client_and_the_real_server_report_what_was_sent() {
    check_known_tests(Ours, Real);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn the_real_client_and_our_server_report_what_was_sent() {
    check_known_tests(Real, Ours);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn our_two_ends_report_what_was_sent() {
    check_known_tests(Ours, Ours);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn the_real_client_and_a_server_for_all_tools_report_what_was_sent() {
    // On separate hosts: the server holds the ports of other tools, which 6.1.2 wants for its data.
    let net = Net::pair();
    let mut server = ServeProcess::start_in(&net, LinkSide::A, &["--classic"]);
    for known in &KNOWN {
        // With several streams, 6.1.2 would also use NetPIPE's port.
        let several = known.args.iter().any(|arg| arg.starts_with("-N"));
        let data: &[&str] = if several { &["-p5101"] } else { &[] };
        let args = [known.args, data, &["-v", LinkSide::A.address()]].concat();
        let ask = || Process::start(net.exec(LinkSide::B, NUTTCP.program, &args)).finish(TIMEOUT);
        let done = again_when_busy(ask, |done| !done.stdout.contains(NO_DATA));
        assert_eq!(done.code, Some(0), "{args:?} {done:?}");
        check_report(known, &done.stdout);
    }
    assert!(server.running(), "{}", server.stderr());
}

/// Megabytes in both ends' results of a test limited by time.
fn moved(client: Program, server: Program, on: &Netns, args: &[&str]) -> [String; 2] {
    let report = both(client, server, on, &[args, &["-v"]].concat());
    ['t', 'r'].map(|end| {
        let megabytes = before(result_of(end, &report), " MB in ");
        assert!(megabytes > 0.0, "{report}");
        format!("{megabytes:.4}")
    })
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn what_is_under_way_when_the_time_is_over_still_counts_at_both_ends() {
    let netns = Netns::new();
    for (client, server) in [(Ours, Real), (Real, Ours)] {
        // A real receiver of several streams ends with the first stream that ends.
        for args in
            [&["-T1", "-R8m", "-l8k"][..], &["-T1", "-r", "-R8m", "-l8k"], &["-T0.5"], &["-T0.5", "-r"]]
        {
            let [sent, received] = moved(client, server, &netns, args);
            assert_eq!(sent, received, "{client:?} {server:?} {args:?}");
        }
    }
}

/// The interval lines of a report, and its last line.
fn lines(report: &str) -> (Vec<&str>, &str) {
    let (intervals, last) = report.split_once("\n\n").unwrap_or(("", report));
    (intervals.lines().collect(), last.trim_end_matches('\n'))
}

/// Interval lines and last line with normalized numbers; the intervals must not exceed the total.
fn forms(report: &str) -> (Vec<String>, String) {
    let (intervals, last) = lines(report);
    let sum: f64 = intervals.iter().map(|line| before(line, " MB /")).sum();
    let whole = before(last, " MB /");
    // Each figure is rounded to four decimals.
    assert!(sum <= whole + 0.0001 * (intervals.len() + 1) as f64, "{report}");
    let mut kinds: Vec<String> = intervals.iter().map(|line| form(line)).collect();
    kinds.dedup();
    (kinds, form(last))
}

const INTERVALS: [&[&str]; 4] = [
    &["-i0.5", "-T1.8", "-R8m", "-l8k"],
    &["-r", "-i0.5", "-T1.8", "-R8m", "-l8k"],
    &["-u", "-i0.5", "-T1.8", "-R1m", "-l1000"],
    &["-u", "-r", "-i1", "-T2.5", "-R1m", "-l1000"],
];

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn the_real_client_prints_with_our_server_the_lines_that_it_prints_with_its_own() {
    let netns = Netns::new();
    for args in INTERVALS {
        let (ours, theirs) = (both(Real, Ours, &netns, args), both(Real, Real, &netns, args));
        assert!(lines(&theirs).0.len() >= 2, "{theirs}");
        assert_eq!(forms(&ours), forms(&theirs), "{args:?}\n{ours}\n{theirs}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn our_client_prints_the_lines_of_the_real_one() {
    let netns = Netns::new();
    for args in INTERVALS {
        // Newer versions add the congestion window.
        let args = [args, &["-f-cwnd"]].concat();
        let ours = both(Ours, Real, &netns, &args);
        let theirs = both(Real, Real, &netns, &args[..args.len() - 1]);
        assert_eq!(forms(&ours), forms(&theirs), "{args:?}\n{ours}\n{theirs}");
    }
}

/// Keys of a line of `key=value` pairs, in order.
fn keys(line: &str) -> Vec<&str> {
    line.split_whitespace().map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key)).collect()
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn lines_for_programs_have_the_keys_of_the_real_ones() {
    let netns = Netns::new();
    let tests: [&[&str]; 5] = [
        &["-fparse", "-f-cwnd", "-n64", "-l8k"],
        // The real client does not find the round-trip time in its server's machine-readable lines.
        &["-fparse", "-f-cwnd", "-f-rtt", "-r", "-n64", "-l8k", "-Iwest"],
        &["-fparse", "-f-cwnd", "-u", "-n50", "-l1000", "-R2m"],
        &["-fparse", "-f-cwnd", "-i0.5", "-T1.8", "-R8m", "-l8k"],
        // From 6.2.8 on, a client that transmits shows no retransmissions in totals.
        &["-fparse", "-f-retrans", "-i0.5", "-T1.8", "-R8m", "-l8k", "-frunningtotal"],
    ];
    for args in tests {
        // 6.1.2 reports no congestion window and does not know that option.
        let old: Vec<&str> = args.iter().copied().filter(|arg| *arg != "-f-cwnd").collect();
        let theirs = both(Real, Real, &netns, &old);
        for (client, server) in [(Ours, Real), (Real, Ours)] {
            let args = if client == Ours { args } else { &old[..] };
            let ours = both(client, server, &netns, args);
            let all = |report: &str| -> Vec<Vec<String>> {
                let mut lines: Vec<Vec<String>> =
                    report.lines().map(|line| keys(line).into_iter().map(str::to_owned).collect()).collect();
                lines.dedup();
                lines
            };
            assert_eq!(all(&ours), all(&theirs), "{client:?} {args:?}\n{ours}\n{theirs}");
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn delays_one_way_are_measured_in_both_directions() {
    let netns = Netns::new();
    for direction in ["-t", "-r"] {
        let report = both(Ours, Ours, &netns, &[direction, "-u", "-o", "-i0.5", "-T1.8", "-R1m", "-l1000"]);
        let (intervals, last) = lines(&report);
        for line in intervals.iter().chain([&last]) {
            // Both ends use the same clock.
            assert!(before(line, " msAvgOWD") >= 0.0, "{report}");
        }
        assert!(intervals.len() >= 2, "{report}");
    }
    // 6.1.2 does not support the option: a client reports that and measures the rest.
    let serving = serve_one(Real, &netns);
    let done = NUTTCP.ask(Ours, &netns, &["-r", "-u", "-o", "-n50", "-l1000", "-R1m", HOST]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("one-way delay option not supported by server version 6.1.2"), "{done:?}");
    assert!(done.stdout.contains(" 0 / 50 drop/pkt") && !done.stdout.contains("OWD"), "{done:?}");
    assert_eq!(serving.finish(TIMEOUT).code, Some(0));
}
