//! netperf 2.7.0 and ours in all pairs of roles: both ends count what one of them sent, and the output has the
//! same form. netperf is not in Debian's main section, so tests with it are skipped where it is missing.

use crate::support::{
    Done, Folder, NETPERF, NETSERVER, Netns, Process, Program, TIMEOUT, caveats, form, linerate, skipped,
    test_json,
};

use Program::{Ours, Real};

const PORT: u16 = 12_865;

/// Whether the real programs are installed.
fn installed(test: &str) -> bool {
    let missing = [NETPERF, NETSERVER].into_iter().find(|tool| !tool.is_installed());
    if let Some(tool) = missing {
        skipped(test, &format!("{} is not installed", tool.program));
    }
    missing.is_none()
}

/// A host with an address besides those of loopback, without which the real programs find no address at all.
fn host() -> Netns {
    let netns = Netns::new();
    let added = netns.exec("ip", &["address", "add", "192.0.2.1/32", "dev", "lo"]).status().unwrap();
    assert!(added.success(), "{added}");
    netns
}

fn serve(server: Program, on: &Netns) -> Process {
    let process = NETSERVER.start(server, on, &["-D", "-4"]);
    on.await_listener(PORT);
    process
}

/// Runs a client that must succeed.
fn ask(client: Program, on: &Netns, line: &str) -> Done {
    let args: Vec<&str> = ["-H", "127.0.0.1"].into_iter().chain(line.split_whitespace()).collect();
    let done = NETPERF.ask(client, on, &args);
    assert_eq!(done.code, Some(0), "{line}: {done:?}");
    assert_eq!(done.stderr, "", "{line}: {done:?}");
    done
}

/// The values of a `-k` output, in the order of their names.
fn values(done: &Done, names: &[&str]) -> Vec<f64> {
    let of = |name: &&str| {
        let start = format!("{name}=");
        let value = done.stdout.lines().find_map(|line| line.strip_prefix(&start));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {done:?}"))
    };
    names.iter().map(of).collect()
}

/// Tests, and whether the client sends.
const STREAMS: [(&str, bool); 6] = [
    ("-t TCP_STREAM -l 1 --", true),
    ("-t TCP_MAERTS -l 1 --", false),
    ("-t TCP_STREAM -l -3000000 -- -m 3000 -D", true),
    ("-t omni -l 1 -- -d send -s 65536 -S 65536", true),
    ("-t omni -l 1 -- -d recv", false),
    ("-t UDP_STREAM -l 1 -- -m 1000", true),
];

/// More than a block of a stream.
const BLOCK: f64 = 131_072.0;

fn streams_are_counted(client: Program, server: Program) {
    const NAMES: [&str; 6] = [
        "LOCAL_BYTES_SENT",
        "LOCAL_BYTES_RECVD",
        "REMOTE_BYTES_SENT",
        "REMOTE_BYTES_RECVD",
        "ELAPSED_TIME",
        "THROUGHPUT",
    ];
    let netns = host();
    let _server = serve(server, &netns);
    for (line, sends) in STREAMS {
        let done = ask(client, &netns, &format!("-P 0 -f k {line} -k {}", NAMES.join(",")));
        let all = values(&done, &NAMES);
        let (sent, received) = if sends { (all[0], all[3]) } else { (all[2], all[1]) };
        let sender = if sends { client } else { server };
        // The real sender does not count the block that its timer interrupts.
        let cut = if sender == Real { BLOCK } else { 0.0 };
        assert!(received > 1e5 && received <= sent + cut, "{client:?} {server:?} {line}: {done:?}");
        // What is under way when a receiver stops does not count, and datagrams are lost.
        if sends && !line.contains("UDP") {
            assert!(received >= sent, "{client:?} {server:?} {line}: {done:?}");
        }
        // The time has two decimals.
        let time = received * 8e-3 / all[5];
        assert!((time - all[4]).abs() < 0.0051, "{client:?} {server:?} {line}: {time} s, {done:?}");
    }
}

const TRANSACTIONS: [&str; 6] = [
    "-t TCP_RR -l 1 -- -r 10,200",
    "-t TCP_RR -l -500 -- -r 10,200 -D",
    "-t TCP_RR -l 1 -- -r 10,200 -b 4",
    "-t TCP_CRR -l 1 -- -r 10,200",
    "-t UDP_RR -l 1 -- -r 10,200",
    "-t omni -l 1 -- -d rr -T udp -r 10,200",
];

fn transactions_are_counted(client: Program, server: Program) {
    const NAMES: [&str; 6] = [
        "TRANSACTION_RATE",
        "ELAPSED_TIME",
        "MEAN_LATENCY",
        "MIN_LATENCY",
        "REMOTE_BYTES_RECVD",
        "REMOTE_BYTES_SENT",
    ];
    let netns = host();
    let _server = serve(server, &netns);
    for line in TRANSACTIONS {
        let done = ask(client, &netns, &format!("-P 0 {line} -k {}", NAMES.join(",")));
        let all = values(&done, &NAMES);
        let counted = all[0] * all[1];
        // The time has two decimals; some transactions are under way at the end.
        let rounded = all[0] * 0.006 + 6.0;
        for (bytes, size) in [(all[4], 10.0), (all[5], 200.0)] {
            let transactions = bytes / size;
            assert!(
                (transactions - counted).abs() <= rounded,
                "{client:?} {server:?} {line}: {transactions}: {done:?}"
            );
        }
        assert!(all[2] >= all[3] && all[3] >= 0.0, "{client:?} {server:?} {line}: {done:?}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, netperf"]
fn our_client_and_the_real_server_count_the_same() {
    if installed("our_client_and_the_real_server_count_the_same") {
        streams_are_counted(Ours, Real);
        transactions_are_counted(Ours, Real);
    }
}

#[test]
#[ignore = "needs root and network namespaces, netperf"]
fn the_real_client_and_our_server_count_the_same() {
    if installed("the_real_client_and_our_server_count_the_same") {
        streams_are_counted(Real, Ours);
        transactions_are_counted(Real, Ours);
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn our_two_ends_count_the_same() {
    streams_are_counted(Ours, Ours);
    transactions_are_counted(Ours, Ours);
}

/// Command lines whose output must have the form of netperf's.
const FORMS: [&str; 24] = [
    "-l 1",
    "-l 1 -f M -v 0",
    "-l 1 -v 2",
    "-l 1 -P 0 -B brand",
    "-t TCP_MAERTS -l 1 -v 2",
    "-t TCP_MAERTS -l 1 -c -C",
    "-t UDP_STREAM -l 1 -- -m 1000",
    "-t UDP_STREAM -l 1 -c -C -- -m 1000",
    "-t TCP_RR -l 1 -v 2",
    "-t TCP_RR -l 1 -f m -- -r 10,20",
    "-t TCP_RR -l 1 -c -C",
    "-t TCP_CRR -l 1",
    "-t TCP_CRR -l 1 -c -C -v 2",
    "-t UDP_RR -l 1",
    "-t UDP_RR -l 1 -c -v 0",
    "-t TCP_STREAM -l 1 -C -v 0",
    "-t omni -l 1",
    "-t omni -l 1 -c -C -- -d recv -O",
    "-t omni -l 1 -- -d rr -O",
    "-t omni -l 1 -P 0 -- -o THROUGHPUT,RESULT_BRAND,DIRECTION",
    "-t TCP_STREAM -l 1 -- -o",
    "-t TCP_STREAM -l 1 -- -K cubic -k LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL,THROUGHPUT_UNITS,DIRECTION",
    "-t TCP_RR -l 1 -j -- -k MEAN_LATENCY,SOURCE_ADDR,DEST_ADDR,DEST_FAMILY,BURST_SIZE,SD_UNITS",
    "-t UDP_STREAM -l 1 -- -m 1000 -k LOCAL_SOCKET_TOS,TRANSPORT_MSS,SOCKET_TYPE,LOCAL_CPU_UTIL,CONFIDENCE_LEVEL",
];

#[test]
#[ignore = "needs root and network namespaces, netperf"]
fn our_client_prints_the_lines_of_the_real_one() {
    if !installed("our_client_prints_the_lines_of_the_real_one") {
        return;
    }
    let netns = host();
    let _server = serve(Real, &netns);
    for line in FORMS {
        let (ours, theirs) = (ask(Ours, &netns, line), ask(Real, &netns, line));
        assert_eq!(form(&ours.stdout), form(&theirs.stdout), "{line}\n{}\n{}", ours.stdout, theirs.stdout);
    }
}

/// The selectors and their values, where these do not depend on the run.
#[test]
#[ignore = "needs root and network namespaces, netperf"]
fn all_selectors_have_the_headings_of_the_real_client() {
    if !installed("all_selectors_have_the_headings_of_the_real_client") {
        return;
    }
    let netns = host();
    let _server = serve(Real, &netns);
    let lists = [Ours, Real].map(|whose| NETPERF.ask(whose, &netns, &["--", "-O", "?"]));
    assert_eq!(lists[0].stdout, lists[1].stdout);
    assert_eq!([lists[0].code, lists[1].code], [Some(1), Some(1)]);
    let heading = |whose: Program| {
        let done = ask(whose, &netns, "-P 1 -t TCP_RR -l 1 -B brand -- -o all");
        done.stdout.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(heading(Ours), heading(Real));
}

#[test]
#[ignore = "needs root and network namespaces, netperf"]
fn interim_results_have_the_form_of_the_real_ones() {
    if !installed("interim_results_have_the_form_of_the_real_ones") {
        return;
    }
    let netns = host();
    let _server = serve(Real, &netns);
    for line in [
        "-t TCP_STREAM -l 1 -D -0.2 -P 0",
        "-t TCP_MAERTS -l 1 -D -0.2 -P 0 -v 0 -- -k THROUGHPUT",
        "-t UDP_RR -l 1 -D -0.2 -P 0 -v 0 -- -e 5 -k THROUGHPUT",
        "-t TCP_RR -l 1 -D -0.2 -P 0 -- -o THROUGHPUT",
    ] {
        let kinds = [Ours, Real].map(|client| {
            let done = ask(client, &netns, line);
            let mut kinds: Vec<String> = done.stdout.lines().map(form).collect();
            assert!(kinds.len() > 5, "{line}: {done:?}");
            kinds.sort();
            kinds.dedup();
            kinds
        });
        assert_eq!(kinds[0], kinds[1], "{line}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_stream_is_archived_with_the_counts_of_both_ends() {
    let (netns, folder) = (host(), Folder::new());
    let archive = folder.file("archive.sqlite");
    let _server = serve(Ours, &netns);
    let line = ["-H", "127.0.0.1", "-P", "0", "-l", "-3000000", "--", "-m", "3000"];
    let mut client = NETPERF.command(Ours, &netns, &line);
    client.env("LINERATE_ARCHIVE", &archive);
    let done = Process::start(client).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut show = linerate();
    show.args(["show", "--json", "--archive", &archive]);
    let kept = test_json(show);
    let flow = &kept["flows"][0];
    assert_eq!(kept["run"]["outcome"], "completed", "{kept}");
    assert_eq!(
        (&flow["sender"]["bytes"], &flow["receiver"]["bytes"]),
        (&3_000_000.into(), &3_000_000.into())
    );
    assert!(caveats(&kept).contains(&"foreign_peer".to_owned()), "{kept}");
}
