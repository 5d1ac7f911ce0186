//! What bash completes after `source <(linerate completions bash)`.

use std::process::Command;

use serde_json::json;

use crate::support::{TestDir, fixtures};

/// What bash completes for the last of these words, in `place` with its archive.
fn completed(place: &TestDir, words: &[&str]) -> Vec<String> {
    const SCRIPT: &str = r#"
        PATH="${PROGRAM%/*}:$PATH"
        source <(linerate completions bash) || exit 1
        COMP_WORDS=(linerate "$@") COMP_CWORD=$# COMP_TYPE=9
        _clap_complete_linerate linerate "${!#}" ""
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", SCRIPT, "bash"])
        .args(words)
        .current_dir(place.folder.path())
        .env("PROGRAM", env!("CARGO_BIN_EXE_linerate"))
        .env("LINERATE_ARCHIVE", place.folder.file("archive.sqlite"))
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn runs_servers_and_result_files_are_completed_from_the_archive() {
    let place = TestDir::new();
    let options = completed(&place, &["show", ""]);
    assert!(options.iter().all(|option| option.starts_with("--")), "nothing but options: {options:?}");
    assert!(
        !place.folder.path().join("archive.sqlite").exists(),
        "an archive is not created by asking for its runs"
    );
    let results = fixtures().join("results/iperf3/v321-udp-loss.json").display().to_string();
    let imported = place.run(&["import", "--json", &results]).json();
    let id = imported["runs"][0]["id"].as_str().unwrap().to_owned();
    let target = place.json(&["history", "--json"])["runs"][0]["target"].as_str().unwrap().to_owned();
    std::fs::write(place.folder.file("before.json"), "{}").unwrap();

    assert_eq!(completed(&place, &["show", ""])[..2], ["latest", &id[..4]]);
    assert_eq!(completed(&place, &["report", &id[..2]]), [&id[..4]]);
    assert_eq!(completed(&place, &["compare", "x,bef"]), ["x,before.json"]);
    assert_eq!(completed(&place, &["compare", &format!("x,{}", &id[..2])]), [format!("x,{}", &id[..4])]);
    assert_eq!(completed(&place, &["test", &target[..1]]), [target.as_str()]);

    // A name is never more than one word for the shell, and never a command.
    let log = place.run(&["export", &id, "--format", "jsonl"]).stdout;
    for (number, name) in ["two words", "x;touch y", "$(touch y)", "*", "good-name"].iter().enumerate() {
        let other = format!("{number:016x}");
        let label = json!({"run": other, "host": 0, "seq": 100_000, "at_ns": 0, "body": {"kind": "labelled", "name": name}});
        std::fs::write(place.folder.file("log.jsonl"), format!("{}{label}\n", log.replace(&id, &other)))
            .unwrap();
        assert_eq!(place.run(&["import", "log.jsonl"]).code, Some(0));
    }
    let names = completed(&place, &["history", ""]);
    assert!(names.contains(&"good-name".into()), "{names:?}");
    assert!(names.iter().all(|name| !name.contains([' ', ';', '$', '*'])), "{names:?}");
}

#[test]
fn what_the_program_and_the_kernel_know_is_completed() {
    let place = TestDir::new();
    std::fs::write(place.folder.file("window-own.toml"), "").unwrap();
    let plans = completed(&place, &["run", "window-"]);
    assert!(plans.contains(&"window-sweep".into()) && plans.contains(&"window-own.toml".into()), "{plans:?}");
    assert_eq!(completed(&place, &["lab", "up", "science-"]), ["science-dmz"]);
    let kernel = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let mut known: Vec<&str> = kernel.split_whitespace().collect();
    let mut found = completed(&place, &["test", "server", "-C", ""]);
    known.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, known);
    assert_eq!(completed(&place, &["hist"]), ["history"]);
    assert_eq!(completed(&place, &["test", "server", "--para"]), ["--parallel"]);
}

#[test]
fn an_archive_that_is_named_in_the_line_is_the_one_whose_runs_are_completed() {
    let (place, elsewhere) = (TestDir::new(), TestDir::new());
    let results = fixtures().join("results/iperf3/v321-udp-loss.json").display().to_string();
    let imported = elsewhere.run(&["import", "--json", &results]).json();
    let id = &imported["runs"][0]["id"].as_str().unwrap()[..4];
    let file = elsewhere.folder.file("archive.sqlite");
    assert_eq!(completed(&place, &["show", "--archive", &file, ""])[..2], ["latest", id]);
    assert_eq!(completed(&place, &["show", &format!("--archive={file}"), ""])[..2], ["latest", id]);
    assert!(!completed(&place, &["show", ""]).contains(&id.to_owned()), "its own archive is empty");
    // Arguments after the run are not completed in its place.
    for words in [["archive", "tag"], ["archive", "untag"], ["archive", "delete"]] {
        let words = [&words[..], &["--archive", &file, ""]].concat();
        assert_eq!(completed(&place, &words)[..2], ["latest", id], "{words:?}");
    }
}

#[test]
fn fish_completes_what_bash_completes() {
    let place = TestDir::new();
    let script = "linerate completions fish | source; complete -C 'linerate lab up science-'";
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_linerate"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("fish")
        .args(["--no-config", "-c", script])
        .env("PATH", path)
        .env("HOME", place.folder.path())
        .output()
        .expect("fish is installed by scripts/test-deps.sh");
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(found.starts_with("science-dmz\t") && found.lines().count() == 1, "{output:?}");
}
