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
