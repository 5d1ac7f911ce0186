//! Completions and manual pages as the program prints them, and output to a closed pipe.

use crate::support::{linerate, run};

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let lines = [
        "envelope --link 1G --rtt 1ms",
        "doctor --json",
        "completions bash",
        "man",
        "plan --json",
        "lab show pair",
    ];
    for line in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = linerate().args(line.split_whitespace()).stdout(writer).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), message.as_ref()), (Some(0), ""), "{line}");
    }
}

#[test]
fn an_unknown_manual_page_lists_the_commands() {
    let output = run("man nothing");
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("envelope, check, doctor"));
}

#[test]
fn every_shell_and_command_has_its_page() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&format!("completions {shell}"));
        assert!(script.code == Some(0) && script.stdout.contains("LINERATE_COMPLETE"), "{shell}");
    }
    let manual = run("man lab up");
    assert!(manual.stdout.contains(".TH linerate-lab-up 1"));
    let sections: Vec<&str> = manual.stdout.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    for section in ["EXIT STATUS", "FILES", "EXAMPLES"] {
        assert!(sections.iter().any(|one| one.trim_matches('"') == section), "{section}: {sections:?}");
    }
    let manual = run("man envelope");
    assert!(manual.stdout.contains(".TH linerate-envelope 1"));
}

#[test]
fn the_last_of_several_equal_options_counts() {
    let last = run("envelope --link 1G --rtt 1ms --link 2G");
    let alone = run("envelope --rtt 1ms --link 2G");
    assert_eq!((last.code, &last.stdout), (Some(0), &alone.stdout));
}
