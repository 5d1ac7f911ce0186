//! What a person sees in a terminal: lists, hints and messages.

use crate::support::TestDir;

#[test]
fn a_history_without_a_match_says_how_many_runs_there_are() {
    let place = TestDir::in_fixtures("results");
    assert_eq!(place.run(&["history", "server"]).stdout, "no runs are archived yet\n");
    assert_eq!(place.run(&["import", "linerate/loopback.jsonl"]).code, Some(0));
    let done = place.run(&["history", "nowhere.example.org"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let output = done.stdout.replace('\n', " ");
    assert!(
        output.contains("the only archived run is not named or against 'nowhere.example.org'"),
        "{output}"
    );
    assert!(!output.contains("no runs are archived"), "{output}");
    let later = place.run(&["history", "--since", "2999-01-01"]).stdout;
    assert!(later.contains("is not from 2999-01-01 or later"), "{later}");
    assert_eq!(place.json(&["history", "nowhere.example.org", "--json"])["runs"], serde_json::json!([]));
}

/// Command lines that fail, with a part of what they have to say.
const FAILING: &[(&[&str], &str)] = &[
    (&["test", "127.0.0.1", "-p", "9", "-t", "1"], "is `linerate serve` running on that host"),
    (&["test", "10.0.0.1/24"], "give only the host: 10.0.0.1"),
    (&["test", "http://far.example.org/"], "give only its host: far.example.org"),
    (&["run", "swich-buffer"], "did you mean 'switch-buffer'?"),
    (&["lab", "up", "piar"], "did you mean 'pair'?"),
    (&["check", "/no/file"], "/no/file"),
    (&["import", "/no/file"], "/no/file"),
    (&["history", "--archive", "/dev/null/archive.sqlite"], "/dev/null"),
    (&["plan", "/no/plan.toml"], "/no/plan.toml"),
    (&["export", "--archive", "/dev/null/archive.sqlite"], "/dev/null"),
    (&["serve", "--agent-token-file", "/no/token"], "/no/token"),
    (&["install-links", "/dev/null/links"], "the folder /dev/null/links cannot be created"),
];

#[test]
fn a_message_has_the_words_of_an_error_and_not_its_number() {
    let place = TestDir::new();
    for (args, message) in FAILING {
        let done = place.run(args);
        assert_ne!(done.code, Some(0), "{args:?}: {done:?}");
        assert!(done.stderr.contains(message), "{args:?}: {done:?}");
        assert!(!done.stderr.contains("os error") && !done.stdout.contains("os error"), "{args:?}: {done:?}");
        assert!(done.stderr.lines().count() <= 2, "one message is enough: {done:?}");
    }
}

#[test]
fn json_may_be_quiet() {
    let place = TestDir::new();
    let done = place.run(&["test", "127.0.0.1", "-p", "9", "-t", "1", "-J", "-q"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(done.json()["run"]["outcome"], "failed");
}

#[test]
fn links_are_made_in_a_folder_that_was_not_there() {
    let place = TestDir::new();
    let done = place.run(&["install-links", "a/b", "iperf3"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(std::path::Path::new(&place.folder.file("a/b/iperf3")).is_symlink());
}

/// Every command has the archive in a variable of the environment here.
#[test]
fn a_usage_line_does_not_demand_what_the_environment_has() {
    let place = TestDir::new();
    for args in
        [&["test", "h", "--wrong"][..], &["test"], &["history", "--wrong"], &["show", "--json", "--explain"]]
    {
        let done = place.run(args);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains("Usage: linerate "), "{done:?}");
        assert!(!done.stderr.contains("--archive"), "{done:?}");
    }
}

/// A part of a command line may come from somebody else, as in a script that measures to hosts of a list.
#[test]
fn what_was_typed_is_never_printed_raw() {
    const NASTY: &str = "x\u{1b}[2J\u{1b}]0;title\u{7}y\u{202e}z";
    let option = format!("--{NASTY}");
    let lines: [&[&str]; 15] = [
        &[NASTY],
        &["test", "host", "-P", NASTY],
        &["test", "host", "--until", NASTY],
        &["test", "host", &option],
        &["test", NASTY],
        &["show", NASTY],
        &["run", NASTY],
        &["lab", "up", NASTY],
        &["check", "--rate", NASTY],
        &["iperf3", "-c", "host", "-l", NASTY],
        &["iperf", "-c", "host", &option],
        &["nuttcp", "-l", NASTY, "host"],
        &["ttcp", "-t", "-l", NASTY, "host"],
        &["ntttcp", "-s", "-b", NASTY],
        &["netperf", "-H", "host", "-l", NASTY],
    ];
    let place = TestDir::new();
    for args in lines {
        // As in a terminal, where the parser's own texts have styles.
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(args)
            .env("CLICOLOR_FORCE", "1")
            .env("XDG_DATA_HOME", place.folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!text.is_empty(), "{args:?}");
        for raw in ["\u{1b}[2J", "\u{1b}]", "\u{7}", "\u{202e}"] {
            assert!(!text.contains(raw), "{args:?}: {text:?}");
        }
    }
}
