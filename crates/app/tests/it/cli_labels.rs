//! Names and notes of runs: what is measured under a name is found and compared by it.

use crate::support::{Done, ServeProcess, TestDir};

/// A short test against the server, with labels.
fn measure(place: &TestDir, server: &ServeProcess, labels: &[&str]) -> Done {
    let target = format!("127.0.0.1:{}", server.port);
    let test = ["test", &target, "--upload", "-t", "0.3", "--no-latency", "-J"];
    place.run(&[&test, labels].concat())
}

#[test]
fn runs_are_listed_shown_and_compared_by_their_names() {
    let (place, server) = (TestDir::new(), ServeProcess::start(&[]));
    let notes = ["--note", "short cable", "--set", "notes.switch=A", "--set", "notes.switch=SG350 = new"];
    for name in ["before", "before", "after it"] {
        let done = measure(&place, &server, &[&["--name", name][..], &notes].concat());
        let run = &done.json()["run"];
        assert_eq!(run["name"], name, "{run}");
        assert_eq!(run["notes"], serde_json::json!({"note": "short cable", "switch": "SG350 = new"}));
    }
    // A document that is imported keeps them.
    let document = measure(&place, &server, &["--name", "imported", "--set", "notes.cable=new"]).stdout;
    let other = TestDir::new();
    std::fs::write(other.folder.file("result.json"), document).unwrap();
    assert_eq!(other.run(&["import", "result.json"]).code, Some(0));
    let shown = other.run(&["show", "imported", "-J"]).json();
    assert_eq!(shown["run"]["notes"]["cable"], "new", "{shown}");
    let unnamed = measure(&place, &server, &[]).json();
    assert!(unnamed["run"].get("name").is_none() && unnamed["run"].get("notes").is_none(), "{unnamed}");

    let listed = place.run(&["history", "before", "--json"]).json();
    let names: Vec<_> = listed["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str()).collect();
    assert_eq!(names, [Some("before"); 2]);
    let shown = place.run(&["show", "after it"]);
    let first_line = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first_line.contains("after it") && first_line.contains("switch: SG350 = new"), "{first_line}");
    let several = place.run(&["show", "before"]);
    assert!(
        several.code == Some(1) && several.stderr.contains("several runs have the name 'before'"),
        "{several:?}"
    );
    // Which is which, the newest first.
    let [newest, oldest] = [0, 1].map(|row| {
        let run = &listed["runs"][row];
        format!("{} of {}", &run["id"].as_str().unwrap()[..4], run["started_at"].as_str().unwrap())
    });
    assert!(several.stderr.contains(&format!("{newest}, {oldest}")), "{newest}, {oldest}: {several:?}");

    let both = place.run(&["compare", "before", "x=before"]);
    assert!(both.code == Some(2) && both.stderr.contains("a run of both before and x"), "{both:?}");
    let none = place.run(&["compare", "before", "x="]);
    assert!(none.code == Some(2) && none.stderr.contains("'x=' names no run"), "{none:?}");
    // However often a run is named, it is one repeat.
    let id = listed["runs"][0]["id"].as_str().unwrap();
    let twice = place.run(&["compare", "--json", &format!("x=before,before,{id}"), "after it"]).json();
    assert_eq!(twice["comparisons"][0]["base"]["repeats"], 2, "{twice}");

    for name in ["before", "never"] {
        let failed = place.run(&["test", "127.0.0.1:1", "--name", name]);
        assert_eq!(failed.code, Some(1), "{failed:?}");
    }
    let never = place.run(&["compare", "never", "before"]);
    assert!(
        never.code == Some(1) && never.stderr.contains("none of the runs with the name 'never'"),
        "{never:?}"
    );
    let text = place.run(&["compare", "before", "after it"]).stdout;
    assert!(text.contains("before: 1 run was not completed and not compared"), "{text}");
    let compared = place.run(&["compare", "--json", "before", "after it"]).json();
    let repeats = |side: &str| compared["comparisons"][0][side]["repeats"].as_u64();
    assert_eq!((repeats("base"), repeats("other")), (Some(2), Some(1)), "{compared}");
}

#[test]
fn a_title_that_no_page_can_have_is_refused() {
    let place = TestDir::new();
    for title in ["", "  ", "a\u{1b}[2Jb", &"x".repeat(201)] {
        let done = place.run(&["report", "--title", title]);
        assert!(done.code == Some(2) && done.stderr.contains("a title"), "{title:?}: {done:?}");
    }
}

#[test]
fn a_label_that_cannot_be_stored_is_refused_before_anything_is_measured() {
    let place = TestDir::new();
    for (labels, culprit) in [
        (["--name", "a,b"], "','"),
        (["--name", "latest"], "choose another name"),
        (["--note", ""], "a note cannot be empty"),
        (["--set", "window=64K"], "give notes.KEY=TEXT"),
    ] {
        for command in ["test", "sweep"] {
            let done = place.run(&[&[command, "127.0.0.1:1"], &labels[..]].concat());
            assert_eq!(done.code, Some(2), "{command} {labels:?}: {}", done.stderr);
            assert!(done.stderr.contains(culprit) && done.stderr.contains(labels[0]), "{}", done.stderr);
        }
    }
}
