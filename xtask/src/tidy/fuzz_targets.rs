//! Every protocol is fuzzed, and every foreign tool is in the table.

use std::collections::BTreeSet;

use super::Problem;
use crate::rust_text::line_of;
use crate::tree::Tree;
use crate::words::has_word;

/// Our own protocols, and foreign tools.
const FOLDERS: [&str; 2] = ["crates/proto/src/", TOOLS];
const TOOLS: &str = "crates/compat/src/";
const TABLE_FILE: &str = "crates/compat/src/tool.rs";
const TARGETS: &str = "fuzz/fuzz_targets/";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let (table_line, table) = all_table(tree);
    let mut problems = Vec::new();
    for (start, protocol) in protocol_folders(tree) {
        if start == TOOLS && !has_word(&table, &protocol) {
            let what = format!("tool {protocol:?} is not in the table ALL");
            let remedy = "add one line to ALL; sniffing and help follow from it";
            problems.push(Problem::new(TABLE_FILE, table_line, what, remedy));
        }
        if !has_target(tree, &protocol) {
            let what = format!("protocol {protocol:?} has no fuzz target");
            let place = format!("{start}{protocol}/mod.rs");
            let remedy = "add fuzz/fuzz_targets/<protocol>.rs that feeds its decoder with arbitrary bytes";
            problems.push(Problem::new(&place, 1, what, remedy));
        }
    }
    problems
}

/// Folders of protocols and where they are. A folder next to a file of the same name is a part of that module and not a
/// protocol.
fn protocol_folders(tree: &Tree) -> BTreeSet<(&'static str, String)> {
    let folder = |path: &str| {
        let (start, rest) = FOLDERS.iter().find_map(|start| Some((*start, path.strip_prefix(start)?)))?;
        Some((start, rest.split_once('/')?.0.to_owned()))
    };
    let folders = tree.files.iter().filter_map(|file| folder(&file.path));
    folders.filter(|(start, folder)| tree.file(&format!("{start}{folder}.rs")).is_none()).collect()
}

/// A target is named after its protocol, alone or with the decoded type: `native.rs`, `native_datagram.rs`.
fn has_target(tree: &Tree, protocol: &str) -> bool {
    tree.files.iter().filter_map(|file| file.path.strip_prefix(TARGETS)).any(|name| {
        let rest = name.strip_prefix(protocol);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('_'))
    })
}

/// The line and text of the static or constant `ALL`.
fn all_table(tree: &Tree) -> (usize, String) {
    let code = tree.file(TABLE_FILE).and_then(|file| file.rust.as_ref()).map_or("", |views| &views.code);
    let start = ["static ALL", "const ALL"].iter().find_map(|item| code.find(item));
    start.map_or((1, String::new()), |start| {
        let end = code[start..].find("];").map_or(code.len(), |length| start + length);
        (line_of(code, start), code[start..end].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const TABLE: (&str, &str) = (
        TABLE_FILE,
        "pub mod ttcp;\npub static ALL: &[&Tool] = &[\n  &ttcp::TTCP,\n];\nfn after() { netpipe(); }\n",
    );

    #[test]
    fn a_registered_and_fuzzed_tool_passes_and_our_own_protocols_need_no_row() {
        let samples = [
            TABLE,
            ("crates/compat/src/ttcp/mod.rs", ""),
            ("fuzz/fuzz_targets/ttcp_argv.rs", ""),
            ("crates/proto/src/native/mod.rs", ""),
            ("fuzz/fuzz_targets/native_datagram.rs", ""),
        ];
        assert!(found(check, &samples).is_empty());
    }

    #[test]
    fn a_folder_outside_the_table_or_without_a_target_is_found() {
        let samples =
            [TABLE, ("crates/compat/src/netpipe/wire.rs", ""), ("crates/proto/src/native/mod.rs", "")];
        assert_eq!(
            found(check, &samples),
            [
                "crates/compat/src/tool.rs:2",
                "crates/compat/src/netpipe/mod.rs:1",
                "crates/proto/src/native/mod.rs:1"
            ]
        );
    }

    #[test]
    fn the_rest_of_a_module_is_no_protocol() {
        let samples =
            [TABLE, ("crates/compat/src/stand_in.rs", ""), ("crates/compat/src/stand_in/flow.rs", "")];
        assert!(found(check, &samples).is_empty());
    }

    #[test]
    fn a_target_of_a_longer_name_does_not_count() {
        let samples =
            [TABLE, ("crates/proto/src/native/mod.rs", ""), ("fuzz/fuzz_targets/nativeness.rs", "")];
        assert_eq!(found(check, &samples), ["crates/proto/src/native/mod.rs:1"]);
    }
}
