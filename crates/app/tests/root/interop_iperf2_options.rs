//! The options of iperf 2: the real help knows no other ones, and what they change in the output is the same.

use linerate_compat::iperf2::IPERF2;

use crate::support::{
    Iperf2, Netns, OutputShape, Process, TIMEOUT, assert_known, assert_no_differences, at_once, await_server,
    eventually, form_without_units, options_in_help, pair, retried_when_busy, signal,
};

use Iperf2::{Ours, Real};

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn every_option_of_the_real_help_has_an_entry() {
    let help = Process::start(Real.command(&Netns::new(), &["--help"])).finish(TIMEOUT);
    let mut options = options_in_help(&(help.stdout + &help.stderr));
    assert!(options.len() > 80, "{options:?}");
    // These print a text and end.
    options.retain(|name| !["-h", "--help", "-v", "--version"].contains(&name.as_str()));
    assert_known(&IPERF2, &options);
}

/// A line without numbers, and without what linerate does not print: the interface, and the distribution of
/// the lengths of reads.
fn shape_of(line: &str) -> String {
    let mut text = line.replace("%lo ", " ").replace("Reads=Dist", "Reads");
    if let Some((front, reads)) = text.rsplit_once(' ')
        && let Some((count, bins)) = reads.split_once('=')
        && bins.matches(':').count() == 7
    {
        text = format!("{front} {count}");
    }
    form_without_units(&text)
}

fn shapes_of_lines(text: &str) -> Vec<String> {
    // Other threads and other ports may be faster, a server of 2.1.8 may have a thread left, and on a busy machine
    // its last report may come too late for its client.
    let by_chance = ["out-of-order", "Waiting for server threads", "ack of last datagram failed"];
    let printed = text.lines().filter(|line| !by_chance.iter().any(|chance| line.contains(chance)));
    let mut lines: Vec<String> = printed.map(shape_of).collect();
    lines.sort();
    // Between the lines of several threads, heads are printed any number of times.
    lines.dedup_by(|one, other| one == other && one.starts_with("[ ID]"));
    lines
}

/// The shapes of client and server.
fn shapes(client: Iperf2, server: Iperf2, args: (&[&str], &[&str])) -> [OutputShape; 2] {
    let netns = Netns::new();
    let udp: &[&str] = if args.0.contains(&"-u") { &["-u"] } else { &[] };
    let serving = Process::start(server.command(&netns, &[&["-s"], udp, args.1].concat()));
    await_server(&netns, !udp.is_empty());
    let client = client.ask(&netns, args.0);
    // The server's last line is about the whole test; its banner has none.
    let silent = args.1.contains(&"-x") || args.0.contains(&"--connect-only=1");
    if !silent {
        eventually("the server has reported the test", || {
            let output = serving.stdout();
            let whole =
                output.lines().filter(|line| line.contains(" 0.0000-") || line.contains(",0.0-")).count();
            let expected = if args.0.contains(&"-P") && !args.1.contains(&"--sum-only") { 3 } else { 1 };
            (whole >= expected).then_some(())
        });
    }
    signal(serving.pid(), "INT");
    let server = serving.finish(TIMEOUT);
    [&client, &server].map(|done| OutputShape::of(done, shapes_of_lines))
}

/// The arguments of client and server.
const MATRIX: &[(&[&str], &[&str])] = &[
    (&[], &[]),
    (&["-e"], &["-e"]),
    (&["-i", "0.5"], &["-i", "0.5"]),
    (&["-P", "2"], &[]),
    (&["-P", "2", "--sum-only"], &["--sum-only"]),
    (&["--sum-only"], &["--sum-only"]),
    (&["-R"], &[]),
    (&["-N"], &[]),
    (&["-S", "0x10"], &[]),
    (&["-S", "af41", "-e", "-N"], &["-e", "-S", "0x8"]),
    (&["-S", "0x10", "-R", "-u"], &[]),
    (&["-T", "5"], &[]),
    (&["-m"], &["-m"]),
    (&["-M", "1000"], &[]),
    (&["-Z", "cubic"], &[]),
    (&["-B", "127.0.0.1:6000"], &["-B", "127.0.0.1"]),
    (&["-x", "C"], &["-x", "C"]),
    (&["-x", "S"], &["-x", "S"]),
    (&["-f", "K"], &["-f", "K"]),
    (&["-y", "C"], &["-y", "C"]),
    (&["-X"], &[]),
    (&["-C", "-n", "50000"], &[]),
    // A server of 2.1.8 crashes with it.
    (&["--hide-ips"], &[]),
    (&["--trip-times"], &["-e"]),
    (&["--local-only"], &[]),
    (&["--fq-rate", "5m"], &[]),
    (&["--txdelay-time", "0.3"], &[]),
    (&["--no-udp-fin", "-u"], &[]),
    (&["-u"], &[]),
    (&["-u", "-e"], &["-e"]),
    (&["-u", "-i", "0.5"], &["-i", "0.5"]),
    (&["-u", "-P", "2"], &[]),
    (&["-u", "--sum-only", "-P", "2"], &["--sum-only"]),
    (&["-u", "-R"], &[]),
    (&["-u", "-b", "50pps"], &[]),
    (&["-u", "-y", "C"], &["-y", "C"]),
    (&[], &["-1"]),
];

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn options_have_the_same_effect_on_the_output() {
    assert_no_differences(MATRIX, 6, |(more, server)| {
        let basic: &[&str] = if more.contains(&"-n") {
            &["-l", "1000"]
        } else if more.contains(&"-b") {
            &["-t", "1.3", "-l", "1000"]
        } else {
            &["-t", "1.3", "-b", "400k", "-l", "1000"]
        };
        let client = [basic, more].concat();
        let both = (&client[..], server);
        let [real_client, real_server] = shapes(Real, Real, both);
        let [our_client, _] = shapes(Ours, Real, both);
        let [_, our_server] = shapes(Real, Ours, both);
        let ends = [(real_client, our_client), (real_server, our_server)];
        let different = ends.into_iter().filter(|(real, ours)| real != ours);
        different.map(|(real, ours)| format!("{both:?}\nreal: {real:#?}\nours: {ours:#?}")).collect()
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn connections_from_several_addresses_are_timed_from_their_beginning() {
    retried_when_busy(|| {
        at_once([Real, Ours], |client| {
            let args = ["-t", "2", "-b", "1m", "-l", "1000", "-P", "2", "--incr-srcip", "-B", "127.0.0.9"];
            let pair = pair(client, &args, (Ours, &[]), 2);
            for label in ["1", "2"] {
                // The server waits for half a second for the other connection, which has another address. The client
                // sends for two seconds on each, and on a busy machine it may end one of them later.
                let (_, far) = pair.whole(label, label);
                assert!(far.to > 1.75, "{pair:?}");
                assert!(far.bits_per_second < 1.15e6, "{pair:?}");
            }
        });
    });
}
