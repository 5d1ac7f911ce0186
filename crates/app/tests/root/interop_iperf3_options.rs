//! Every option of iperf3's client that shows in its output, against the real programs: exit code, lines and
//! keys are those that the real program has with itself.

use std::collections::BTreeSet;

use linerate_compat::iperf3::IPERF3;

use crate::support::{
    Done, Iperf3, Netns, OutputShape, Process, TIMEOUT, assert_known, assert_no_differences,
    form_without_units, options_in_help, shape, skipped,
};

use Iperf3::{Newer, Ours, Real};

/// Most tests at the same time.
const AT_ONCE: usize = 16;

/// Options of one test, as a line, and whether the installed version (3.12) has them.
#[derive(Debug, Clone, Copy)]
struct Iperf3Case {
    line: &'static str,
    old: bool,
}

const fn old(line: &'static str) -> Iperf3Case {
    Iperf3Case { line, old: true }
}

const fn new(line: &'static str) -> Iperf3Case {
    Iperf3Case { line, old: false }
}

/// In text and with -J. The time and rate of a test are added. iperf3 prints the warning of `--no-fq-socket-pacing`
/// on standard output, where it would spoil an object, so that option is not among them.
const OPTIONS: &[Iperf3Case] = &[
    old(""),
    old("-V"),
    old("-u"),
    old("-u -V"),
    old("-R"),
    old("-R -V"),
    old("-R -i 0"),
    old("-i 0"),
    old("-i 0.3"),
    old("-f k"),
    old("-f M"),
    old("-P 2"),
    old("-P 2 -R"),
    old("--bidir"),
    old("--bidir -P 2 -V"),
    old("-u -R"),
    old("-u --bidir"),
    old("-u -P 2"),
    old("-u -l 40000"),
    old("-u -w 4K -l 8000"),
    old("-l 10K"),
    old("-w 64K"),
    old("-M 1000"),
    old("-M 1000 -V"),
    old("-N"),
    old("-S 8 -V"),
    old("--dscp ef -V"),
    old("-L 5"),
    old("-L 5 -u"),
    old("-Z"),
    old("-O 1"),
    old("-O 1 -u -R"),
    old("-T title"),
    old("-T title --get-server-output"),
    old("--extra-data more"),
    old("--get-server-output"),
    old("--udp-counters-64bit -u"),
    old("--repeating-payload"),
    old("--dont-fragment -u -l 1000"),
    old("-C reno -V"),
    old("-C nonsense"),
    old("--cport 6000"),
    old("--fq-rate 1M"),
    old("--fq-rate 1M -V"),
    old("--pacing-timer 500"),
    old("-A 0"),
    old("-A 0,0"),
    old("-4"),
    old("-B 127.0.0.1"),
    old("--bind-dev lo"),
    old("--connect-timeout 3000"),
    old("--rcv-timeout 3000 -R"),
    old("--snd-timeout 3000"),
    old("--forceflush"),
    new("--cntl-ka=10/2/3"),
    new("-m"),
    new("--skip-rx-copy"),
    new("--skip-rx-copy -u"),
    new("--gsro -u -l 1000"),
    new("--json-stream"),
    new("--json-stream --json-stream-full-output"),
];

/// Ends that are reached by other means than time.
const GOALS: &[Iperf3Case] = &[old("-n 150K"), old("-k 3"), old("-u -k 20 -l 1000"), old("-n 150K -R")];

/// Keys and lines that versions after 3.12 have added.
const LATER: [&str; 8] = ["timemillisecs", "bidir", "fq_rate", "fqrate", "interval", "gso", "gro", "reorder"];

/// Both ends of a test.
#[derive(Debug)]
struct OptionRun {
    client: Done,
    server: Done,
}

fn run(client: Iperf3, server: Iperf3, args: &[&str], json: bool) -> OptionRun {
    let netns = Netns::new();
    let format: &[&str] = if json { &["-J"] } else { &[] };
    let server = server.serve(&netns, &[&["-1", "--idle-timeout", "4"], format].concat());
    let client = client.ask(&netns, &[args, format].concat());
    OptionRun { client, server: server.finish(TIMEOUT) }
}

/// A line with what differs from run to run or from version to version replaced.
fn form_of_line(line: &str) -> String {
    if line.trim_start().starts_with("iperf 3.") {
        return "VERSION".to_owned();
    }
    if let Some((before, _)) = line.split_once("Cookie: ") {
        return format!("{before}Cookie: …");
    }
    // A rate such as 1e+02; and a number of fewer digits has a blank before it.
    form_without_units(line).replace("#e+#", "#").replace("[ ", "[").replace("( ", "(")
}

/// Lines without repetitions: how many intervals there are depends on timers.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(form_of_line) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn keys(done: &Done, real_is_old: bool) -> BTreeSet<String> {
    let document = done.json();
    // The real program also has the buffers of a socket that it does not connect.
    let unconnected = |path: &String| {
        document.get("error").is_some()
            && ["start.sock_bufsize", "start.sndbuf_actual", "start.rcvbuf_actual"]
                .iter()
                .any(|key| path.starts_with(key))
    };
    let later = |path: &String| {
        let key = path.split_whitespace().next().unwrap_or_default();
        LATER.contains(&key.rsplit('.').next().unwrap_or_default())
    };
    let known = |path: &String| !(real_is_old && later(path) || unconnected(path));
    shape(&document).into_iter().filter(known).collect()
}

/// The events of --json-stream in their order.
fn event_names(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("{\"event\":\"")?.split('"').next()).collect();
    names.dedup();
    names
}

/// Whether one end has printed what the real program prints.
fn same(ours: &Done, real: &Done, json: bool, real_is_old: bool) -> bool {
    let [our_shape, real_shape] = [ours, real].map(|done| OutputShape::of(done, lines));
    // 3.11 to 3.13 end with 0 if the error is in an object.
    let error_in_object = json && real_is_old && real.stdout.contains("\"error\":");
    let same_output = if real.stdout.contains("{\"event\":") {
        event_names(&ours.stdout) == event_names(&real.stdout)
    } else if json && !ours.stdout.is_empty() {
        keys(ours, real_is_old) == keys(real, real_is_old)
    } else if json {
        real.stdout.is_empty()
    } else {
        our_shape.lines == real_shape.lines
    };
    (our_shape.code == real_shape.code || error_in_object)
        && our_shape.errors == real_shape.errors
        && same_output
}

/// What differs from the real program with these options, in either role.
fn differences(options: Iperf3Case, real: Iperf3, json: bool) -> Vec<String> {
    let goal = GOALS.iter().any(|goal| goal.line == options.line);
    let length: &[&str] = if goal { &[] } else { &["-t", "1"] };
    let rate: &[&str] = if options.line.contains("--fq-rate") { &[] } else { &["-b", "1M"] };
    let args = [&options.line.split_whitespace().collect::<Vec<_>>()[..], length, rate].concat();
    let expected = run(real, real, &args, json);
    let client = run(Ours, real, &args, json).client;
    let server = run(real, Ours, &args, json);
    let mut ends = vec![
        ("our client", &client, &expected.client),
        ("real client of our server", &server.client, &expected.client),
    ];
    // Whether a server tells that its client has given up differs between the versions.
    if expected.client.code == Some(0) && !expected.client.stdout.contains("\"error\":") {
        ends.push(("our server", &server.server, &expected.server));
    }
    ends.retain(|(_, ours, expected)| !same(ours, expected, json, real == Real));
    let text = |(end, ours, expected): (&str, &Done, &Done)| {
        format!("{end}, {} with {real:?}, json {json}\nours: {ours:#?}\nreal: {expected:#?}", args.join(" "))
    };
    ends.into_iter().map(text).collect()
}

fn all_agree(real: Iperf3, json: bool) {
    // With -V -J, the real program prints lines before its object.
    let comparable = |case: &Iperf3Case| !(json && case.line.contains("-V"));
    let all: Vec<Iperf3Case> = OPTIONS
        .iter()
        .chain(GOALS)
        .copied()
        .filter(|case| (case.old || real == Newer) && comparable(case))
        .collect();
    assert_no_differences(&all, AT_ONCE, |case| differences(case, real, json));
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn options_give_the_lines_of_the_installed_program() {
    all_agree(Real, false);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn options_give_the_keys_of_the_installed_program() {
    all_agree(Real, true);
}

#[test]
#[ignore = "needs root and network namespaces, and scripts/newer-iperf3.sh"]
fn options_give_the_lines_and_keys_of_a_newer_program() {
    if !Newer.is_there() {
        return skipped("options_give_the_lines_and_keys_of_a_newer_program", "scripts/newer-iperf3.sh");
    }
    all_agree(Newer, false);
    all_agree(Newer, true);
}

#[test]
#[ignore = "needs iperf3"]
fn every_option_in_the_help_of_the_real_program_has_an_entry() {
    let netns = Netns::new();
    for real in [Real, Newer].into_iter().filter(|real| real.is_there()) {
        let help = Process::start(real.command(&netns, &["--help"])).finish(TIMEOUT).stdout;
        let options = options_in_help(&help);
        assert!(options.len() > 80, "{real:?}: {help}");
        assert_known(&IPERF3, &options);
    }
}
