//! `linerate plan` as a program: output, refusals and exit codes.

use crate::support::{Done, Folder, Process, TIMEOUT, linerate};

/// `linerate plan` with these arguments.
fn plan(arguments: &[&str]) -> Done {
    let mut command = linerate();
    command.arg("plan").args(arguments);
    Process::start(command).finish(TIMEOUT)
}

#[test]
fn plans_that_come_along_are_listed_shown_and_described() {
    let list = plan(&[]);
    assert!(list.code == Some(0) && list.stdout.contains("window-sweep"));
    let file = plan(&["window-sweep", "--show"]);
    assert!(file.stdout.contains("name = \"window-sweep\""));
    let described = plan(&["window-sweep"]);
    assert!(described.code == Some(0), "{}", described.stderr);
    let described = described.stdout;
    for part in ["13 points, 6 times each", "goodput >= 0.9 ceiling", "window=64K", "in the lab"] {
        assert!(described.contains(part), "{part} in\n{described}");
    }
}

#[test]
fn the_document_has_every_point_and_the_order_of_the_trials() {
    let output = plan(&["window-sweep", "--json", "--set", "axis.window=64K,1M", "--set", "repeats=2"]);
    assert!(output.code == Some(0), "{}", output.stderr);
    let found = output.json();
    assert_eq!(found["schema"], "linerate.plan/2");
    assert_eq!(found["points"].as_array().unwrap().len(), 2);
    assert_eq!(found["points"][1]["flows"][0]["spec"]["socket"]["window_bytes"], 1 << 20);
    assert_eq!(found["trials"], serde_json::json!([[0, 1], [1, 1], [1, 2], [0, 2]]));
    assert_eq!(found["estimate"]["trials"], 4);
    // The file has an assertion about the window "default", which --set removed; the others are evaluated.
    assert_eq!(found["left_out"], serde_json::json!(["goodput >= 0.9 ceiling"]));
    assert_eq!(found["assertions"].as_array().unwrap().len(), 4);
}

#[test]
fn a_mistake_is_shown_with_its_line_and_as_a_document() {
    let folder = Folder::new();
    let file = folder.file("wrong.toml");
    std::fs::write(&file, "[host.a]\n[host.b]\n[test]\nwidnow = \"64K\"\n").unwrap();
    let name = file.as_str();
    let output = plan(&[name]);
    assert_eq!((output.code, output.stdout), (Some(2), String::new()));
    let errors = output.stderr;
    assert!(
        errors.contains(&format!("{name}:4:1: unknown knob test.widnow; did you mean 'window'?")),
        "{errors}"
    );
    assert!(errors.contains("\n    widnow = \"64K\"\n    ^\n"), "{errors}");
    let output = plan(&[name, "--json"]);
    assert_eq!(output.code, Some(2));
    let found = output.json();
    assert_eq!((&found["mistakes"][0]["line"], &found["mistakes"][0]["column"]), (&4.into(), &1.into()));
}

#[test]
fn a_plan_that_takes_too_long_is_refused_with_its_estimate() {
    // 78 trials of 12 s, the idle latency before each, and the overhead.
    let output = plan(&["window-sweep", "--max-time", "10m"]);
    assert_eq!(output.code, Some(2));
    let errors = output.stderr;
    assert!(errors.contains("would take 22 min, but --max-time is 10 min"), "{errors}");
    assert!(plan(&["window-sweep", "--max-time", "1h"]).code == Some(0));
    let own = plan(&["window-sweep", "--set", "max_time=10m"]);
    assert!(own.stderr.contains("max_time of the plan"), "{}", own.stderr);
}
