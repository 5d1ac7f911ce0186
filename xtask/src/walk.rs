//! `cargo xtask walk NAME`: how many files a knob or metric occurs in.
//!
//! Changing a name that occurs in many files needs a change in each of them, and one is easily forgotten. The
//! walk counts the files; budgets limit their number.

use std::collections::BTreeMap;

use crate::rust_text::numbered;
use crate::tree::{self, SourceFile, Tree};
use crate::words::{has_word, spellings};

/// Representative names, and the number of files outside protocol folders that may contain them.
const BUDGETS: &[(&str, usize)] = &[
    ("fq_rate", KNOB),
    ("read_rate", KNOB),
    ("skip_rx_copy", KNOB),
    ("mss", LINK_KNOB),
    ("zerocopy", READ_BACK_KNOB),
    ("window", CALCULATED_KNOB),
    ("tcp.rttvar", METRIC),
    ("tcp.delivery_rate", METRIC),
    ("host.steal", METRIC),
    ("tcp.srtt", SHOWN_METRIC),
    ("tcp.cwnd", SHOWN_METRIC),
];

/// The declaration, the order for the flow of a stand-in, the setup of a flow at both ends, the place where it
/// takes effect, the place that refuses it or reports that it had no effect, and two in reserve.
const KNOB: usize = 8;
/// In addition: read back from the kernel, stored as granted, shown in two formats, judged by rules.
const READ_BACK_KNOB: usize = 12;
/// In addition: requested for the links of stand-ins, and applied to them when a link is open; a quantity
/// printed in the results of others, an argument of `check` with its figure, a quantity that assertions of
/// plans may use, the place that reports that it had no effect, the list of quantities that are shown in bytes, the
/// links that listen, and a field of the page that checks.
const LINK_KNOB: usize = READ_BACK_KNOB + 10;
/// As a knob that is read back, and in addition: an argument and a result of `envelope`, an argument of
/// `check`, a check of `doctor`, a statistic with that name, the name of a bundled plan, and two methods of
/// plans with their tables, the sentence about the limit of a test, and a statistic of pages; in the web pages, the
/// form, its values, what a result granted, the kiosk, and a field of the pages that calculate an envelope and that
/// check.
const CALCULATED_KNOB: usize = 29;
/// Catalogue entry, probe, and one rule that uses it.
const METRIC: usize = 3;
/// In addition: a column of the terminal's table, one of a method's table of seconds, and a line of a chart.
const SHOWN_METRIC: usize = 6;

/// The hits of one name, by crate, then by file.
type Walk = BTreeMap<String, BTreeMap<String, Vec<usize>>>;

/// Lists the hits of one name, or checks all budgets.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let tree = Tree::read(&tree::root()?)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--check"] => check(&tree, BUDGETS),
        [name] if !name.starts_with('-') => list(&tree, name, None),
        [name, "--budget", budget] => {
            let budget = budget.parse().map_err(|_| format!("--budget takes a number, got {budget:?}"))?;
            list(&tree, name, Some(budget))
        }
        _ => Err("takes NAME, NAME --budget N, or --check".to_owned()),
    }
}

fn list(tree: &Tree, name: &str, budget: Option<usize>) -> Result<(), String> {
    let walk = walk_of(tree, name);
    for (room, files) in &walk {
        println!("{room}");
        for (path, lines) in files {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            println!("  {path}: {}", lines.join(" "));
        }
    }
    println!(
        "walk: {name} passes {} rooms in {} files, {} of them outside protocol folders",
        walk.len(),
        walk.values().map(BTreeMap::len).sum::<usize>(),
        files_outside_protocols(&walk)
    );
    budget.map_or(Ok(()), |budget| within(name, files_outside_protocols(&walk), budget))
}

fn check(tree: &Tree, budgets: &[(&str, usize)]) -> Result<(), String> {
    let mut exceeded = Vec::new();
    for (name, budget) in budgets {
        match files_outside_protocols(&walk_of(tree, name)) {
            0 => println!("walk: {name} does not exist yet"),
            files => {
                println!("walk: {name} is written in {files} files, budget {budget}");
                exceeded.extend(within(name, files, *budget).err());
            }
        }
    }
    if exceeded.is_empty() {
        return Ok(());
    }
    Err(exceeded.join("\n"))
}

fn within(name: &str, files: usize, budget: usize) -> Result<(), String> {
    if files <= budget {
        return Ok(());
    }
    Err(format!(
        "{name} is written by hand in {files} files, budget {budget}; \
         `cargo xtask walk {name}` lists them: derive it from the declaration instead of passing it on"
    ))
}

/// Finds the name, in all its spellings, in the code and literals of every crate. Comments and tests do not
/// count.
fn walk_of(tree: &Tree, name: &str) -> Walk {
    let spellings = spellings(name);
    let mut walk = Walk::new();
    for file in tree.files.iter().filter(|file| !file.is_test && !file.path.ends_with(".test.ts")) {
        let Some(room) = crate_of(file) else { continue };
        let rust = file.rust.as_ref();
        let text = rust.map_or(&file.text, |rust| &rust.code_and_literals);
        let lines: Vec<usize> = numbered(text)
            .filter(|(line, text)| match rust {
                Some(rust) => !rust.is_test_line(*line),
                None => !is_script_comment(text),
            })
            .filter(|(_, text)| spellings.iter().any(|spelling| has_word(text, spelling)))
            .map(|(line, _)| line)
            .collect();
        if !lines.is_empty() {
            walk.entry(room).or_default().insert(file.path.clone(), lines);
        }
    }
    walk
}

/// Whether a line of the front end is a comment.
fn is_script_comment(line: &str) -> bool {
    ["//", "/*", "*"].iter().any(|start| line.trim_start().starts_with(start))
}

/// The crate of a source file; each protocol folder counts as a crate.
fn crate_of(file: &SourceFile) -> Option<String> {
    if file.path.starts_with("ui/src/") {
        return Some("ui".to_owned());
    }
    let room = file.rust.as_ref().and(file.crate_name())?;
    // The variables of formulas are physical quantities, not knobs. Rules do refer to knobs.
    if room == "theory" && !file.path.contains("/rules/") {
        return None;
    }
    let inside =
        ["crates/proto/src/", "crates/compat/src/"].iter().find_map(|start| file.path.strip_prefix(start));
    let protocol = inside.and_then(|rest| rest.split_once('/'));
    Some(protocol.map_or_else(|| room.to_owned(), |(folder, _)| format!("{room}/{folder}")))
}

fn files_outside_protocols(walk: &Walk) -> usize {
    walk.iter().filter(|(room, _)| !room.contains('/')).map(|(_, files)| files.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree {
        Tree::of(&[
            ("crates/model/src/spec/socket.rs", "/// The window.\npub window: Option<Bytes>,\n"),
            (
                "crates/sock/src/options.rs",
                "// window\nfn set(\n  window: u64) { for w in x.windows(2) {} }\n",
            ),
            ("crates/compat/src/iperf3/params.rs", "key(\"window\")\n"),
            ("crates/theory/src/rules/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests { fn window() {} }\n"),
            ("crates/sock/tests/window.rs", "fn window() {}\n"),
            ("crates/theory/src/formulas/bdp.rs", "fn rate(window: Bytes) {}\n"),
            ("ui/src/form.ts", "// window\n/** The window. */\n * window\n  window: string;\n"),
            ("ui/src/form.test.ts", "window\n"),
            ("xtask/src/walk.rs", "\"window\"\n"),
        ])
    }

    #[test]
    fn finds_code_and_quotes_but_not_comments_or_tests() {
        let walk = walk_of(&sample(), "window");
        let rooms: Vec<&str> = walk.keys().map(String::as_str).collect();
        assert_eq!(rooms, ["compat/iperf3", "model", "sock", "ui"]);
        assert_eq!(walk["ui"], [("ui/src/form.ts".to_owned(), vec![4])].into());
        assert_eq!(walk["sock"]["crates/sock/src/options.rs"], [3]);
        assert_eq!(walk["model"]["crates/model/src/spec/socket.rs"], [2]);
    }

    #[test]
    fn protocol_folders_are_outside_the_budget() {
        let tree = sample();
        assert!(check(&tree, &[("window", 3)]).is_ok());
        let message = check(&tree, &[("window", 2)]).unwrap_err();
        assert!(message.contains("window is written by hand in 3 files, budget 2"), "{message}");
    }

    #[test]
    fn a_name_that_does_not_exist_yet_is_within_any_budget() {
        assert!(check(&sample(), &[("flow_label", 0)]).is_ok());
    }
}
