//! Every option of nuttcp 6.1.2: it has an entry in our table, and both ends print with it what the real ends
//! print.

use std::collections::BTreeSet;

use crate::support::{
    NUTTCP, Netns, OutputShape, Program, TIMEOUT, assert_known, assert_no_differences, at_once, form, skipped,
};

use Program::{Ours, Real};

const HOST: &str = "127.0.0.1";
const CONTROL: u16 = 5000;

/// The options at the start of lines of the real help, without their values.
fn options_of(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.map(|line| line.split(['\t', ' ', '#', '[', '<']).next().unwrap_or_default());
    let words = words.map(|word| word.trim_end_matches("xxx").to_owned());
    // What is only in the lines about usage.
    words.chain(["-h", "-V", "-xt", "-t", "-r", "-S", "-1"].map(str::to_owned)).collect()
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn every_option_of_the_real_help_has_its_entry() {
    let help = NUTTCP.ask(Real, &Netns::new(), &["-h"]).stdout;
    let options = options_of(&help);
    assert!(options.len() >= 40, "{options:?}");
    assert_known(&linerate_compat::nuttcp::NUTTCP, &options);
}

/// Command lines of a client, each with an option that changes what is printed.
const LINES: [&[&str]; 46] = [
    &["-n32", "-l8k"],
    &["-r", "-n32", "-l8k"],
    &["-v", "-n32", "-l8k"],
    &["-vv", "-n32", "-l8k"],
    &["-r", "-v", "-n32", "-l8k"],
    &["-v", "-b", "-n32"],
    &["-n32", "-Iwest"],
    &["-v", "-n32", "-Iwest"],
    &["-fparse", "-n32"],
    &["-fparse", "-v", "-n32"],
    &["-f-retrans", "-n32"],
    &["-f-rtt", "-n32"],
    &["-f-beta", "-n32"],
    &["-F", "-n32"],
    &["-r", "-F", "-v", "-n32"],
    // From 7.1 on, there are retransmissions of several streams.
    &["-N2", "-n32", "-f-retrans"],
    &["-r", "-N2", "-n32", "-f-retrans"],
    &["-w64", "-v", "-n32"],
    &["-ws64", "-r", "-v", "-n32"],
    &["-wb", "-w64", "-v", "-n32"],
    &["-c8", "-v", "-n32"],
    &["-c0x20t", "-v", "-n32"],
    &["-M1000", "-v", "-n32"],
    &["-D", "-v", "-n32"],
    &["-B", "-d", "-n32"],
    &["-4", "-v", "-n32"],
    &["-p", "5301", "-v", "-n", "32"],
    &["-R20m", "-n512k", "-v"],
    &["-T1", "-v", "-R2m", "-l8k"],
    &["-n32", "-T1", "-v"],
    &["-l31", "-n32", "-v"],
    &["-a", "-n32"],
    &["-i0.4", "-T1.5", "-R2m", "-l8k"],
    // 8.2.2 shows no retransmissions in totals.
    &["-i0.4", "-T1.5", "-R2m", "-l8k", "-frunningtotal", "-v", "-f-retrans"],
    // 6.1.2 does not find the round-trip time in its server's report.
    &["-r", "-i0.4", "-T1.5", "-R2m", "-l8k", "-fparse", "-f-rtt"],
    &["-i1", "-T1", "-R2m", "-l8k"],
    &["-N2", "-i0.4", "-T1.5", "-R2m", "-l8k", "-f-retrans"],
    &["-u", "-n50", "-l1000", "-R2m", "-v"],
    &["-u", "-r", "-n50", "-l1000", "-R2m", "-v"],
    &["-u", "-n50", "-l1000", "-R200p", "-f-drops"],
    &["-u", "-n50", "-l1000", "-Ri2m", "-f-percentloss"],
    &["-u", "-i0.4", "-T1.5", "-l1000", "-R1m", "-fxmitstats", "-frunningtotal"],
    &["-u", "-i0.4", "-T1.5", "-l1000", "-R1m", "-fxmitstats", "-fparse"],
    &["-u", "-N2", "-i0.4", "-T1.5", "-l1000", "-R1m"],
    &["-u", "-n50", "-l3", "-R2m"],
    &["-uu", "-n50", "-l1000"],
];

/// Command lines that end before a test, without a server.
const MISTAKES: [&[&str]; 9] = [
    &["-N0"],
    &["-l0"],
    &["-p100"],
    &["-fzzz"],
    &["-P5001", "-p5001"],
    &["-u", "-i0.5", "-T1"],
    &["-i0.5", "-T1"],
    &["-F", "-T1"],
    &["-c64"],
];

/// The form of an output, without what versions from 6.2.8 on add and without repeated lines.
fn printed(text: &str) -> Vec<String> {
    let added = [" # KB-cwnd", " cwnd = # KB", " cwnd=#", " with af=inet", " af=inet"];
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| added.iter().fold(form(line), |line, added| line.replace(added, "")))
        .collect();
    lines.dedup();
    lines
}

fn shape_of(client: Program, server: Program, args: &[&str]) -> (OutputShape, String) {
    let netns = Netns::new();
    let serving = NUTTCP.start(server, &netns, &["-1"]);
    netns.await_listener(CONTROL);
    let done = NUTTCP.ask(client, &netns, &[args, &[HOST]].concat());
    let served = serving.finish(TIMEOUT);
    (OutputShape::of(&done, printed), format!("{}{}{}", done.stdout, done.stderr, served.stderr))
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn with_every_option_both_ends_print_what_the_real_ones_print() {
    // Each pacing loop of the real program keeps a core busy.
    assert_no_differences(&LINES, 6, |args| {
        let (real, text) = shape_of(Real, Real, args);
        if shape_of(Real, Real, args).0 != real {
            let test = "with_every_option_both_ends_print_what_the_real_ones_print";
            skipped(test, &format!("{args:?}: the real program does not agree with itself"));
            return Vec::new();
        }
        let pairs = [(Ours, Real), (Real, Ours)].into_iter();
        let different = pairs.filter_map(|(client, server)| {
            let (ours, printed) = shape_of(client, server, args);
            (ours != real).then(|| format!("{client:?} {server:?} {args:?}\n{printed}\n{text}"))
        });
        different.collect()
    });
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn without_a_test_we_end_as_the_real_program() {
    at_once(MISTAKES, |args| {
        let netns = Netns::new();
        let [real, ours] = [Real, Ours].map(|whose| NUTTCP.ask(whose, &netns, &[args, &[HOST]].concat()));
        let [ours_shape, real_shape] = [&ours, &real].map(|done| OutputShape::of(done, printed));
        assert_eq!(ours_shape, real_shape, "{args:?}\n{ours:?}\n{real:?}");
    });
}
