//! Developer tasks, run as `cargo xtask NAME`. Each task is one row of [`TASKS`].

mod bench;
mod cargo;
mod gen_reference;
mod honest_files;
mod intervals;
mod metadata;
mod netns;
mod process;
mod rust_text;
mod skips;
mod speed_tables;
mod temp_folder;
mod tidy;
mod tree;
mod verdicts;
mod walk;
mod words;

use std::process::ExitCode;

/// A task: its name, its arguments, its help text and its function.
struct Task {
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const TASKS: &[Task] = &[
    Task {
        name: "tidy",
        arguments: "",
        help: "check the house rules that the compiler cannot: edges, sizes, names, words, tables",
        run: tidy::run,
    },
    Task {
        name: "walk",
        arguments: "NAME [--budget N] | --check",
        help: "list the files in which a knob or metric is written by hand",
        run: walk::run,
    },
    Task {
        name: "gen",
        arguments: "[--check]",
        help: "write docs/reference from the program itself, and the tables of speed from bench/results.json; --check only compares",
        run: gen_reference::run,
    },
    Task {
        name: "skips",
        arguments: "",
        help: "list the tests that are not run by default, with their reasons",
        run: skips::run,
    },
    Task {
        name: "bench",
        arguments: "[--quick] [--only NAME]",
        help: "compare with the installed peers, side by side; NAME is a figure or how its name begins",
        run: bench::run,
    },
    Task {
        name: "verdicts",
        arguments: "[--world lab|kernel] [--only …]",
        help: "plant every cause, in the emulated lab or with the kernel's own means, and count what the verdicts call it",
        run: verdicts::run,
    },
    Task {
        name: "honest-files",
        arguments: "",
        help: "make some 320 files with the real programs, as root, and let check judge them: none is impossible",
        run: honest_files::run,
    },
    Task {
        name: "intervals",
        arguments: "[--runs N] [--loads 0,4,16]",
        help: "hold printed shares and intervals against the counters of a token bucket of the kernel (root)",
        run: intervals::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprint!("xtask: no task named {name:?}\n\n{}", usage());
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("usage: cargo xtask TASK\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        text.push_str(&format!("  {call:<34} {}\n", task.help));
    }
    text
}
