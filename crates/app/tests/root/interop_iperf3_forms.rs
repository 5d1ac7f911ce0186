//! The structure of iperf3's JSON: ours has every key of the real one with the same type, and no others except
//! those of later versions.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Both, Iperf3, at_once, both, shape};

use Iperf3::{Ours, Real};

/// Suffixes of the keys added after 3.12, the real version here: iperf3's documentation of 3.13 to 3.21.
const LATER: [&str; 8] = ["timemillisecs", "bidir", "fq_rate", "fqrate", "interval", "gso", "gro", "reorder"];

const TESTS: [&[&str]; 12] = [
    &["-b", "1M"],
    &["-b", "1M", "-P", "2", "-M", "1000"],
    &["-b", "1M", "-R"],
    &["-b", "1M", "-R", "-O", "1"],
    &["-b", "1M", "--bidir"],
    &["-n", "150K", "-l", "10K", "-b", "1M", "-T", "a title", "--extra-data", "more"],
    &["-b", "1M", "--get-server-output"],
    &["-u", "-b", "1M"],
    &["-u", "-b", "1M", "-P", "2", "-O", "1"],
    &["-u", "-b", "1M", "-R"],
    &["-u", "-b", "1M", "--bidir"],
    &["-u", "-b", "1M", "-R", "-l", "1000", "--get-server-output"],
];

/// Compares two structures.
fn same(ours: &Value, real: &Value, what: &str) {
    let (ours, real) = (shape(ours), shape(real));
    let missing: Vec<_> = real.difference(&ours).collect();
    assert!(missing.is_empty(), "{what}: lacks {missing:?}");
    let later = |path: &&String| {
        let key = path.split_whitespace().next().unwrap_or_default();
        LATER.contains(&key.rsplit('.').next().unwrap_or_default())
    };
    let unknown: BTreeSet<_> = ours.difference(&real).filter(|path| !later(path)).collect();
    assert!(unknown.is_empty(), "{what}: has {unknown:?} too many");
}

/// Runs all tests in parallel, and compares the documents selected by `pick`.
fn each(tests: &[&'static [&'static str]], ours: (Iperf3, Iperf3), pick: impl Fn(&Both) -> Value + Sync) {
    at_once(tests, |args| {
        let ended = if args.contains(&"-n") { &["-J"][..] } else { &["-J", "-t", "1"] };
        let args = [args, ended].concat();
        let run = |(client, server)| pick(&both(client, &args, server, &["-J"]));
        same(&run(ours), &run((Real, Real)), &args.join(" "));
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn our_client_writes_the_keys_of_the_real_one() {
    each(&TESTS, (Ours, Real), |both| both.client.json());
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn our_server_writes_the_keys_of_the_real_one() {
    each(&TESTS, (Real, Ours), |both| both.server.json());
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_real_client_writes_the_same_keys_with_our_server() {
    // Additional keys of our server's own document are covered above.
    let tests: Vec<_> = TESTS.iter().copied().filter(|args| !args.contains(&"--get-server-output")).collect();
    each(&tests, (Real, Ours), |both| both.client.json());
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_events_of_a_stream_have_the_keys_of_the_object() {
    for args in [&["-b", "1M", "-t", "1"][..], &["-u", "-b", "1M", "-t", "1", "--bidir"]] {
        let stream = both(Ours, &[args, &["--json-stream"]].concat(), Real, &[]).client.stdout;
        let mut object = serde_json::Map::new();
        for line in stream.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let (name, data) = (event["event"].as_str().unwrap(), event["data"].clone());
            let data = if name == "interval" { Value::Array(vec![data]) } else { data };
            let name = if name == "interval" { "intervals" } else { name };
            object.insert(name.to_owned(), data);
        }
        let real = both(Real, &[args, &["-J"]].concat(), Real, &[]).client.json();
        same(&Value::Object(object), &real, &args.join(" "));
    }
}
