//! `linerate doctor` as a program: its findings depend on the host, its format does not.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Done, run};

fn doctor(line: &str) -> Done {
    run(&format!("doctor {line}"))
}

fn json(line: &str) -> Value {
    let output = doctor(line);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    output.json()
}

fn ids(document: &Value) -> BTreeSet<String> {
    let checks = document["checks"].as_array().unwrap();
    checks.iter().map(|check| check["id"].as_str().unwrap().to_owned()).collect()
}

fn find<'a>(document: &'a Value, id: &str) -> &'a Value {
    document["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
}

#[test]
fn the_document_has_its_form() {
    let found = json("--json");
    assert_eq!(found["schema"], "linerate.doctor/1");
    let checks = found["checks"].as_array().unwrap();
    for check in checks {
        assert!(["good", "note", "bad"].contains(&check["status"].as_str().unwrap()), "{check}");
        for field in ["id", "value", "text"] {
            assert!(!check[field].as_str().unwrap().is_empty(), "{field} of {check}");
        }
        assert!(check.get("remedy").is_none_or(Value::is_string), "{check}");
    }
    assert_eq!(ids(&found).len(), checks.len(), "every name occurs once");
    for always in ["net.ipv4.tcp_rmem", "cpu.cores", "lo.mtu"] {
        assert!(ids(&found).contains(always), "{always}");
    }
    assert_eq!(found["features"]["TCP_INFO"]["available"], true);
}

#[test]
fn windows_are_judged_for_the_path_that_is_stated() {
    let near = json("--json --link 1M --rtt 1ms");
    assert_eq!(near["judged_for"]["bdp_bytes"], 125);
    assert_eq!(find(&near, "net.ipv4.tcp_rmem")["status"], "good");
    let far = json("--json --link 100T --rtt 10s");
    let window = find(&far, "net.ipv4.tcp_rmem");
    assert_eq!(window["status"], "bad");
    let remedy = window["remedy"].as_str().unwrap();
    assert!(remedy.starts_with("sysctl -w net.ipv4.tcp_rmem="), "{window}");
    let largest = remedy.trim_end_matches('\'').rsplit(' ').next().unwrap();
    assert_eq!(largest, "2147483647", "{window}: the kernel stores it in a signed integer");
    assert!(window["text"].as_str().unwrap().contains("several streams"), "{window}");
}

#[test]
fn the_way_to_a_host_is_looked_at() {
    let found = json("--json 127.0.0.1");
    assert_eq!(find(&found, "route.address")["value"], "127.0.0.1");
    assert_eq!(find(&found, "route.interface")["value"], "lo");
    assert!(!ids(&json("--json")).contains("route.address"));
}

#[test]
fn a_host_that_cannot_be_found_leaves_the_rest() {
    // RFC 6761 §6.4: this name never resolves.
    let output = doctor("--json nowhere.invalid");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("nowhere.invalid"));
    let found = output.json();
    assert!(ids(&found).contains("cpu.cores"));
}

#[test]
fn bad_values_are_refused_by_name() {
    for (flags, named) in [
        ("--link 0", "--link"),
        ("--link -1G", "--link"),
        ("--rtt 0", "--rtt"),
        ("--rtt soon", "--rtt"),
        ("--rtt 2h", "--rtt"),
        ("--link 1001T", "--link"),
        ("a b", "'b'"),
    ] {
        let output = doctor(flags);
        let message = output.stderr;
        assert_eq!(output.code, Some(2), "{flags}: {message}");
        assert!(message.contains(named), "{flags}: {message}");
    }
}

#[test]
fn text_has_its_headings_and_no_colour_when_piped() {
    let output = doctor("-v");
    let text = output.stdout;
    assert_eq!(output.code, Some(0));
    for heading in ["\nTCP windows\n", "\nInterface lo (loopback)\n", "\nMachine\n", "\nKernel features\n"] {
        assert!(text.contains(heading), "{heading}{text}");
    }
    assert!(!text.contains('\u{1b}'));
}
