//! `linerate check` as a program: verdicts, exit codes, and refusals that name their argument.

use serde_json::Value;

use crate::support::{Process, TIMEOUT, fixtures, linerate, run};

fn json(line: &str) -> (Value, Option<i32>) {
    let output = run(&format!("check --json {line}"));
    (output.json(), output.code)
}

/// A typed figure, by name.
fn figure(document: &Value, name: &str) -> Value {
    let figures = document["inputs"][0]["readings"][0]["tests"][0]["lines"][0]["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["quantity"] == name).unwrap().clone()
}

fn close(got: &Value, want: f64) {
    let got = got.as_f64().unwrap();
    assert!((got / want - 1.0).abs() < 1e-6, "got {got}, want {want}");
}

const PATH: &str = "--link 1G --mtu 1500 --rtt 21ms --duration 10s";

#[test]
fn full_gigabit_nationwide_at_966_megabits_is_impossible() {
    let (document, code) = json(&format!("--rate 966.5M --pps 83000 {PATH}"));
    assert_eq!(code, Some(4));
    assert_eq!(
        (&document["schema"], &document["verdict"]),
        (&"linerate.check/1".into(), &"impossible".into())
    );
    let rate = figure(&document, "bitrate");
    // 1460 of 1538 bytes at 1 Gb/s.
    close(&rate["reasons"][0]["evidence"]["ceiling_bps"], 1e9 * 1460.0 / 1538.0);
    close(&rate["reasons"][0]["evidence"]["excess_bps"], 966.5e6 - 1e9 * 1460.0 / 1538.0);
    let causes = rate["reasons"][0]["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause["kind"] == "larger_mtu"));
    let packets = figure(&document, "packet_rate");
    assert_eq!(packets["verdict"], "impossible");
    // Per packet, 966.5e6 / 8 / 83000 bytes of payload and 78 bytes of overhead.
    close(&packets["reasons"][0]["evidence"]["wire_needed_bps"], 966.5e6 + 78.0 * 8.0 * 83e3);
}

#[test]
fn the_ceiling_itself_is_recognised() {
    let (document, code) = json(&format!("--rate 941.48M {PATH}"));
    assert_eq!((code, &document["verdict"]), (Some(0), &"at_ceiling".into()));
    let (document, code) = json("--rate 941.48M");
    assert_eq!(code, Some(0));
    let because = figure(&document, "bitrate")["ceiling"]["because"].clone();
    assert_eq!(because, "1000BASE-T, MTU 1500, IPv4, TCP timestamps");
}

#[test]
fn a_window_and_a_round_trip_forbid_what_they_forbid() {
    let (document, code) = json("--rate 100M --window 64K --rtt 21ms");
    assert_eq!(code, Some(4));
    // 65536 * 8 / 0.021.
    close(&figure(&document, "bitrate")["ceiling"]["bitrate_bps"], 65536.0 * 8.0 / 0.021);
    assert_eq!(json("--rate 24.9M --window 64K --rtt 21ms").1, Some(0));
}

#[test]
fn a_line_that_contradicts_itself_needs_no_path() {
    assert_eq!(json("--rate 941M --bytes 1250000000 --duration 10.00s").1, Some(4));
    assert_eq!(json("--rate 1G --bytes 1250000000 --duration 10.00s").1, Some(0));
    assert_eq!(json("--packets 1000 --lost 1010").1, Some(4));
}

#[test]
fn an_amount_is_typed_as_it_is_printed() {
    // 6.57 GiB * 8 / 60 s = 940.6 Mb/s; as decimal gigabytes it would be 876.
    assert_eq!(json("-n 6.57GiB -t 60s --rate 941M --link 1G --mtu 1500").1, Some(0));
    assert_eq!(json("-n 6.57GB -t 60s --rate 941M --link 1G --mtu 1500").1, Some(4));
}

#[test]
fn flags_change_the_headers_that_they_name() {
    let verdict = |flags: &str| json(&format!("--link 1G --mtu 1500 {flags}")).0["verdict"].clone();
    assert_eq!(verdict("--rate 949.2M"), "at_ceiling");
    assert_eq!(verdict("--rate 949.2M -6"), "impossible");
    assert_eq!(verdict("--rate 949.2M --vlan 1"), "impossible");
    assert_eq!(verdict("--rate 949.2M --encap vxlan4"), "impossible");
    assert_eq!(verdict("--rate 949.2M --mss 1448"), "impossible");
    assert_eq!(verdict("--rate 957.08M --udp"), "at_ceiling");
    assert_eq!(verdict("--rate 957.08M --udp --length 512"), "impossible");
}

#[test]
fn what_no_reader_knows_is_named_and_nothing_read_is_exit_code_1() {
    let mut command = linerate();
    command.args(["check", "-", "/nowhere/at/all"]);
    let output = Process::start_with(command, b"the quick brown fox\n\xff\xfe").finish(TIMEOUT);
    let message = output.stderr;
    assert_eq!(output.code, Some(1), "{message}");
    assert!(message.contains("standard input: ") && message.contains("/nowhere/at/all: "), "{message}");
}

#[test]
fn an_unreadable_file_does_not_stop_what_was_typed() {
    let (document, code) = json("/nowhere/at/all --rate 966.5M --link 1G --mtu 1500");
    assert_eq!(code, Some(4));
    assert!(document["inputs"][1]["error"].as_str().unwrap().contains("could not be read"));
    assert_eq!(json("/nowhere/at/all --rate 900M --link 1G --mtu 1500").1, Some(0));
}

#[test]
fn bad_values_are_refused_by_name() {
    let nines = "9".repeat(400);
    let long = format!("--rate {nines}M");
    let table = [
        ("", "nothing to check"),
        ("--link 1G", "nothing to check"),
        ("--rate 0", "--rate"),
        ("--rate -1M", "--rate"),
        ("--rate fast", "--rate"),
        ("--rate 941", "G or T"),
        ("--rate 941M --rtt 21", "ms or s"),
        ("--rate 941M --link 1", "G or T"),
        ("--rate nan", "--rate"),
        (long.as_str(), "--rate"),
        ("--pps -1", "--pps"),
        ("--pps 1e400", "--pps"),
        ("--pps inf", "--pps"),
        ("--bytes 1.5", "--bytes"),
        ("--duration 0", "--duration"),
        ("--retransmits many", "--retransmits"),
        ("--cpu -1%", "--cpu"),
        ("--rate 1M --link 1001T", "--link"),
        ("--rate 1M --mtu 67", "--mtu"),
        ("--rate 1M --mtu 68 --encap vxlan6", "--mtu"),
        ("--rate 1M --rtt 2h", "--rtt"),
        ("--rate 1M --loss 1", "--loss"),
        ("--rate 1M --window 64K", "--rtt"),
        ("--rate 1M --window 0 --rtt 1ms", "--window"),
        ("--rate 1M --distance 1000", "--rtt"),
        ("--rate 1M --streams 0", "--streams"),
        ("--rate 1M --udp --mss 1448", "--mss"),
        ("--rate 1M --tool qperf", "--tool"),
        ("--rate 1M --counted-by nobody", "--counted-by"),
    ];
    for (flags, named) in table {
        let output = run(&format!("check {flags}"));
        let message = output.stderr;
        assert_eq!(output.code, Some(2), "{flags}: {message}");
        assert!(message.contains(named), "{flags}: {message}");
        assert!(output.stdout.is_empty(), "{flags}");
    }
}

#[test]
fn a_slower_link_is_suspected_by_its_figure() {
    let (document, code) = json("--rate 11MiB/s --link 1G --mtu 1500");
    assert_eq!(code, Some(0));
    let text = figure(&document, "bitrate")["reasons"][0]["text"].as_str().unwrap().to_owned();
    // 92.27 of 94.15 Mb/s.
    assert!(text.starts_with("98.0 % of the 94.1482 Mb/s that 100BASE-TX carries"), "{text}");
}

#[test]
fn text_names_ceiling_cause_and_remedy_without_colour() {
    let output = run(&format!("check --rate 966.5M {PATH}"));
    let text = output.stdout;
    for part in ["impossible", "949.285 Mb/s", "an effective MTU of at least 2291 bytes", "1 possible"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

/// Impossible lines in files of results: bugs of the programs themselves.
const FAULTS: [(&str, u64); 2] = [
    // iperf 2.1.8 wraps below zero with an old server.
    ("iperf2/v218-client-v206-server-udp.txt", 24),
    // iperf 2.2.1 counts packets over a time other than the printed one.
    ("iperf2/v221-udp.txt", 11),
];

/// The impossible lines of a file.
fn impossible_lines(document: &Value) -> Vec<u64> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let readings = list(document, "inputs").into_iter().flat_map(|input| list(&input, "readings"));
    let tests = readings.flat_map(|reading| list(&reading, "tests"));
    let lines = tests.flat_map(|test| list(&test, "lines"));
    let impossible = |line: &Value| list(line, "figures").iter().any(|f| f["verdict"] == "impossible");
    lines.filter(impossible).map(|line| line["line"].as_u64().unwrap()).collect()
}

#[test]
fn honest_results_of_every_program_are_possible_but_for_two_faults_of_their_own() {
    let root = fixtures().join("results");
    let (mut checked, mut found) = (0, Vec::new());
    for tool in std::fs::read_dir(&root).unwrap().map(Result::unwrap).filter(|e| e.path().is_dir()) {
        for file in std::fs::read_dir(tool.path()).unwrap().map(Result::unwrap) {
            let output = run(&format!("check --json {}", file.path().display()));
            // A file in which a program only reports that the server was missing has no figures.
            if output.code == Some(1) {
                continue;
            }
            checked += 1;
            let path = file.path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let document = output.json();
            found.extend(impossible_lines(&document).into_iter().map(|line| (name.clone(), line)));
        }
    }
    found.sort();
    assert_eq!(found, FAULTS.map(|(file, line)| (file.to_owned(), line)));
    assert!(checked > 70, "{checked} files");
}

#[test]
fn acceptance_is_listed_by_criterion_and_a_script_learns_it_from_the_exit_code() {
    let shown = "--rate 941.48M --duration 10s --retransmits 0 --streams 1 --link 1G --counted-by receiver";
    let cases = [
        (shown.to_owned(), Some(0), "passed"),
        (shown.replace("--link 1G", ""), Some(3), "missing"),
        (shown.replace("941.48M", "930M"), Some(3), "failed"),
        (shown.replace("--retransmits 0", "--retransmits 1"), Some(3), "failed"),
        // What cannot be comes first.
        (shown.replace("941.48M", "987M --mtu 1500"), Some(4), "failed"),
    ];
    for (line, code, verdict) in cases {
        let (document, exit) = json(&format!("{line} --acceptance gigabit"));
        let accepted = &document["inputs"][0]["readings"][0]["tests"][0]["acceptance"];
        assert_eq!((exit, accepted["verdict"].as_str()), (code, Some(verdict)), "{line}: {accepted}");
        assert_eq!(accepted["criteria"].as_array().unwrap().len(), 6, "{accepted}");
        assert!(json(&line).0["inputs"][0]["readings"][0]["tests"][0]["acceptance"].is_null());
    }
    let text = run(&format!("check {shown} --acceptance gigabit")).stdout;
    assert!(text.contains("Accepted.") && text.contains("passed         One TCP connection."), "{text}");
    let unknown = run("check --rate 1M --acceptance terabit");
    assert!(unknown.code == Some(2) && unknown.stderr.contains("--acceptance"), "{unknown:?}");
}
