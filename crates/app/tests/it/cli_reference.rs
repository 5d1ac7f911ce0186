//! Completions, manual pages and schemas as the program prints them, and output to a closed pipe.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn linerate(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).args(line.split_whitespace()).output().unwrap()
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let lines = [
        "envelope --link 1G --rtt 1ms",
        "doctor --json",
        "completions bash",
        "man",
        "metrics-reference",
        "cli-reference",
    ];
    for line in lines {
        let mut program = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(program.stdout.take());
        let output = program.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), message.as_ref()), (Some(0), ""), "{line}");
    }
}

#[test]
fn an_unknown_manual_page_lists_the_commands() {
    let output = linerate("man nothing");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("envelope, check, doctor"));
}

#[test]
fn every_generated_reference_is_there() {
    for which in ["result", "event", "spec", "topology", "check"] {
        let document: Value = serde_json::from_slice(&linerate(&format!("schema {which}")).stdout).unwrap();
        assert!(document["$schema"].is_string(), "{which}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = linerate(&format!("completions {shell}"));
        assert!(
            script.status.success() && String::from_utf8_lossy(&script.stdout).contains("envelope"),
            "{shell}"
        );
    }
    let manual = linerate("man lab up");
    assert!(String::from_utf8_lossy(&manual.stdout).contains(".TH linerate-lab-up 1"));
    let manual = linerate("man envelope");
    assert!(String::from_utf8_lossy(&manual.stdout).contains(".TH linerate-envelope 1"));
}
