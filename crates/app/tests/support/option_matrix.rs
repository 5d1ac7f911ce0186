//! Matrices of options: what an option changes in the output is the same with a real tool and with its stand-in.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Mutex;

use linerate_compat::Tool;
use linerate_compat::option_table::ToolOption;

use super::{Done, again_when_busy, at_once, form};

/// Exit code and lines of an end, without what differs between two tests with the same options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputShape {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<String>,
    pub(crate) errors: Vec<String>,
}

impl OutputShape {
    /// The shape of an output whose lines are made comparable by a function.
    pub(crate) fn of(done: &Done, lines: impl Fn(&str) -> Vec<String>) -> Self {
        Self { code: done.code, lines: lines(&done.stdout), errors: lines(&done.stderr) }
    }
}

/// A line without numbers, and with units that do not depend on the amount.
pub(crate) fn form_without_units(line: &str) -> String {
    let words = form(line);
    let words = words.split(' ').map(|word| match word {
        "Byte" | "KByte" | "MByte" | "KBytes" | "MBytes" | "GBytes" => "Bytes",
        "Kbits/sec" | "Mbits/sec" | "Gbits/sec" => "bits/sec",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The options in the help text of a tool that begins a line with the spellings of an option.
pub(crate) fn options_in_help(help: &str) -> BTreeSet<String> {
    let lines = help.lines().filter(|line| line.starts_with("  "));
    let words = lines.flat_map(|line| line.split_whitespace().take_while(|word| word.starts_with('-')));
    let names = words.map(|word| word.trim_end_matches(',').split(['<', '=', '[']).next().unwrap_or(word));
    names.map(str::to_owned).collect()
}

/// Fails unless all of these options have an entry in the table of the tool.
pub(crate) fn assert_known(tool: &Tool, options: &BTreeSet<String>) {
    let known: BTreeSet<&str> = tool.every_option().flat_map(ToolOption::names).collect();
    let unknown: Vec<&String> = options.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "{}: {unknown:?}", tool.name);
}

/// Checks all cases, some at a time, and fails with the differences of all of them.
pub(crate) fn assert_no_differences<T: Copy + Debug + Send + Sync>(
    cases: &[T],
    most_at_once: usize,
    differences: impl Fn(T) -> Vec<String> + Sync,
) {
    let found = Mutex::new(Vec::new());
    for some in cases.chunks(most_at_once) {
        at_once(some.iter().copied(), |case| {
            // Where other programs delay one of the ends, it prints an interval more, or two real programs wait for
            // each other for ever.
            let differs = again_when_busy(|| differences(case), Vec::is_empty);
            found.lock().unwrap().extend(differs);
        });
    }
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
