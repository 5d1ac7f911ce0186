//! `linerate import`: files of other programs become runs for `history`, `show` and `export`.

use serde_json::Value;

use crate::support::{TestDir, fixtures};

#[test]
fn a_file_becomes_a_run_once() {
    let place = TestDir::in_fixtures("results");
    let first = place.json(&["import", "--json", "iperf3/v321-udp-loss.json"]);
    assert_eq!(first["runs"].as_array().unwrap().len(), 1, "{first}");
    assert_eq!((&first["runs"][0]["new"], &first["runs"][0]["tool"]), (&true.into(), &"iperf3".into()));
    let again = place.run(&["import", "iperf3/v321-udp-loss.json"]);
    assert!(again.stdout.contains("was already archived as"), "{}", again.stdout);
    let listed = place.json(&["history", "--json"]);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["runs"][0]["started_at"], "2026-11-21T19:26:43Z");
    let shown = place.json(&["show", "--json"]);
    let flow = &shown["flows"][0];
    assert_eq!(flow["receiver"]["bytes"], 1_922_000, "{flow}");
    assert_eq!((&flow["udp"]["lost"], &flow["udp"]["packets"]), (&80.into(), &2002.into()));
    // Values that the file does not contain are absent.
    assert_eq!((&flow["udp"]["duplicates"], &flow["receiver"]["tail_bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(flow["cpu"]["sender_seconds"], Value::Null);
    assert_eq!(flow["caveats"][0]["kind"], "imported");
}

#[test]
fn a_run_of_a_sender_shows_its_count_as_what_it_is() {
    let place = TestDir::in_fixtures("results");
    assert_eq!(place.run(&["import", "ttcp/pcattcp-transmit.txt"]).code, Some(0));
    let text = place.run(&["show"]).stdout;
    assert!(text.contains("imported by linerate"), "{text}");
    assert!(text.contains("780.3 Mb/s sent") && text.contains("not measured here"), "{text}");
    let rows = place.run(&["export", "--format", "jsonl"]).stdout;
    assert!(rows.lines().count() >= 5 && rows.contains("\"imported\""), "{rows}");
}

#[test]
fn our_own_log_comes_back_as_the_run_that_it_was() {
    let place = TestDir::in_fixtures("results");
    let imported = place.json(&["import", "--json", "linerate/loopback.jsonl"]);
    let log = std::fs::read_to_string(fixtures().join("results/linerate/loopback.jsonl"));
    let run: Value = serde_json::from_str(log.as_ref().unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(imported["runs"][0]["id"], run["run"]);
    let exported = place.run(&["export", "--format", "jsonl"]);
    assert_eq!(exported.stdout, log.unwrap());
}

#[test]
fn what_cannot_be_read_is_named_with_its_line_and_the_rest_is_kept() {
    let place = TestDir::in_fixtures("results");
    let text = "Throughput 5 Gbits/sec\nttcp-r: 5000 bytes in 1.00 real seconds = 4.88 KB/sec +++\n";
    let output = place.run_with(&["import", "-"], text.as_bytes());
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.contains("-: line 1"), "{}", output.stderr);
    assert!(output.stdout.contains("ttcp imported as"), "{}", output.stdout);
    let output = place.run_with(&["import", "-", "no such file"], b"\nnothing of the kind\n");
    assert_eq!(output.code, Some(1));
    let words = output.stderr;
    assert!(words.contains("-: line 2: ") && words.contains("no such file: it cannot be read"), "{words}");
    assert_eq!(place.run(&["import", "--tool", "qperf", "-"]).code, Some(2));
    assert_eq!(place.run(&["import"]).code, Some(2));
}

#[test]
fn an_example_in_prose_is_no_run() {
    let place = TestDir::in_fixtures("results");
    // A page with the output of iperf3 in it.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/lab.md");
    let output = place.run(&["import", page]);
    let message = output.stderr;
    assert_eq!(output.code, Some(1), "{message}");
    assert!(message.contains("prose") && message.contains("--tool"), "{message}");
    assert!(output.stdout.is_empty());
    // --tool declares the file to be a result.
    assert_eq!(place.run(&["import", page, "--tool", "iperf3"]).code, Some(0));
}

#[test]
fn a_log_whose_run_is_named_in_another_way_gets_a_name_of_ours_the_same_every_time() {
    let place = TestDir::in_fixtures("results");
    let log = std::fs::read_to_string(fixtures().join("results/linerate/loopback.jsonl"));
    let log = log.unwrap();
    let id = serde_json::from_str::<Value>(log.lines().next().unwrap()).unwrap()["run"].to_string();
    for hostile in [r#""../../../tmp/x\u001b[2J""#, r#""=cmd()""#, r#""D35CEC482146F2BF""#, r#""""#] {
        let log = log.replace(&id, hostile);
        let import = || place.run_with(&["import", "--json", "-"], log.as_bytes()).json();
        let (first, again) = (import(), import());
        let name = first["runs"][0]["id"].as_str().unwrap().to_owned();
        assert!(name.len() == 16 && name.bytes().all(|c| c.is_ascii_hexdigit()), "{hostile}: {name}");
        assert_eq!(again["runs"][0]["id"], name.as_str());
        assert_eq!(
            (first["runs"][0]["new"].as_bool(), again["runs"][0]["new"].as_bool()),
            (Some(true), Some(false))
        );
    }
}

#[test]
fn a_figure_of_three_hundred_digits_is_named_and_not_kept() {
    let place = TestDir::in_fixtures("results");
    let digits = "9".repeat(300);
    let text = format!("ttcp-r: {digits} bytes in 1.00 real seconds = 4.88 KB/sec +++\n");
    let output = place.run_with(&["import", "-"], text.as_bytes());
    let words = output.stderr;
    assert!(words.contains("a number of 300 characters is out of range"), "{words}");
    assert!(!output.stdout.contains(&digits));
}
