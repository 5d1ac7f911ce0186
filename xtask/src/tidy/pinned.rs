//! Documents that repeat parts of the code are pinned to it: when the code changes, they must be reviewed.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::{SourceFile, Tree};
use crate::words::has_word;

/// A document and the code that it explains. The document contains `<!-- pinned: NAME HASH -->`.
struct Pin {
    document: &'static str,
    name: &'static str,
    /// Prefixes of the files' paths.
    files: &'static [&'static str],
    part: PinnedPart,
}

/// The part of a file that the document repeats, always without comments, spacing and tests.
#[derive(Clone, Copy)]
enum PinnedPart {
    /// Constants only.
    Constants,
    /// All code, without the contents of literals.
    Code,
    /// Code and literals.
    CodeAndLiterals,
}

const PROTOCOL: &str = "docs/reference/native-protocol.md";
const AGENT_PROTOCOL: &str = "docs/reference/agent-protocol.md";

const PINS: &[Pin] = &[
    Pin {
        document: "METHODOLOGY.md",
        name: "rules",
        files: &["crates/theory/src/rules/"],
        part: PinnedPart::Constants,
    },
    Pin {
        document: PROTOCOL,
        name: "bytes",
        files: &[
            "crates/proto/src/native/datagram.rs",
            "crates/proto/src/native/frame.rs",
            "crates/proto/src/native/message.rs",
            "crates/proto/src/native/mod.rs",
            "crates/proto/src/native/preface.rs",
            "crates/proto/src/session.rs",
        ],
        part: PinnedPart::CodeAndLiterals,
    },
    Pin {
        document: PROTOCOL,
        name: "dialogue",
        files: &[
            "crates/proto/src/native/client.rs",
            "crates/proto/src/native/link.rs",
            "crates/proto/src/native/phase.rs",
            "crates/proto/src/native/server.rs",
            "crates/proto/src/watch.rs",
        ],
        part: PinnedPart::Code,
    },
    Pin {
        document: AGENT_PROTOCOL,
        name: "agent_bytes",
        files: &[
            "crates/proto/src/agent/dialogue.rs",
            "crates/proto/src/agent/message.rs",
            "crates/proto/src/agent/mod.rs",
            "crates/proto/src/agent/proof.rs",
            "crates/proto/src/agent/settings.rs",
            "crates/proto/src/ticket.rs",
        ],
        part: PinnedPart::CodeAndLiterals,
    },
    Pin {
        document: AGENT_PROTOCOL,
        name: "agent_dialogue",
        files: &[
            "crates/proto/src/agent/agent_end.rs",
            "crates/proto/src/agent/coordinator_end.rs",
            "crates/proto/src/agent/link.rs",
            "crates/proto/src/watch.rs",
        ],
        part: PinnedPart::Code,
    },
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for pin in PINS {
        let repeated = repeated(tree, pin.files, pin.part);
        if repeated.is_empty() {
            continue;
        }
        let marker = format!("<!-- pinned: {} {:016x} -->", pin.name, fingerprint(&repeated));
        let text = tree.file(pin.document).map_or("", |file| &file.text);
        if text.lines().any(|line| line == marker) {
            continue;
        }
        let start = format!("<!-- pinned: {} ", pin.name);
        let line = numbered(text).find(|(_, line)| line.starts_with(&start)).map_or(1, |(number, _)| number);
        let what = format!("{} changed since this was read; now it is {marker}", pin.files.join(", "));
        let remedy = "compare the document with the code, then put the new marker here";
        problems.push(Problem::new(pin.document, line, what, remedy));
    }
    problems
}

/// The repeated parts, by file.
fn repeated(tree: &Tree, files: &[&str], part: PinnedPart) -> String {
    let mut all = String::new();
    let ours = |file: &SourceFile| !file.is_test && files.iter().any(|start| file.path.starts_with(start));
    for (file, rust) in tree.rust_files().filter(|(file, _)| ours(file)) {
        let view =
            if matches!(part, PinnedPart::CodeAndLiterals) { &rust.code_and_literals } else { &rust.code };
        let mut inside = false;
        for (_, text) in numbered(view).filter(|(line, _)| !rust.is_test_line(*line)) {
            // A function may be `const` too, but is not a constant.
            inside |= has_word(text, "const") && !has_word(text, "fn");
            let words: Vec<&str> = text.split_whitespace().collect();
            if !words.is_empty() && (inside || !matches!(part, PinnedPart::Constants)) {
                all.push_str(&format!("{} {}\n", file.path, words.join(" ")));
            }
            inside &= !text.trim_end().ends_with(';');
        }
    }
    all
}

/// FNV-1a: short, and platform-independent.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const RULE: &str = "/// Enough.\nconst ENOUGH: f64 = 0.25;\nconst fn rule() {\n    half()\n}\nconst LIST: [Rule; 1] = [\n    a::rule,\n];\n";

    fn document(rule: &str) -> String {
        let constants = repeated(
            &Tree::of(&[("crates/theory/src/rules/a.rs", rule)]),
            &["crates/"],
            PinnedPart::Constants,
        );
        format!("# Title\n<!-- pinned: rules {:016x} -->\n", fingerprint(&constants))
    }

    fn places(rule: &str, document: &str) -> Vec<String> {
        found(check, &[("METHODOLOGY.md", document), ("crates/theory/src/rules/a.rs", rule)])
    }

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // Test vectors of the algorithm's authors.
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fingerprint("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_changed_threshold_or_order_asks_for_a_reader() {
        let read = document(RULE);
        assert!(places(RULE, &read).is_empty());
        assert_eq!(places(&RULE.replace("0.25", "0.30"), &read), ["METHODOLOGY.md:2"]);
        assert_eq!(places(&RULE.replace("a::rule", "b::rule"), &read), ["METHODOLOGY.md:2"]);
        assert_eq!(places(RULE, "# Title\n"), ["METHODOLOGY.md:1"]);
    }

    #[test]
    fn words_spacing_and_tests_do_not() {
        let read = document(RULE);
        let other = RULE
            .replace("Enough.", "Plenty.")
            .replace("= 0.25", "=  0.25")
            .replace("fn rule", "fn law")
            .replace("half", "third");
        let other = format!("{other}#[cfg(test)]\nmod tests {{ const X: u8 = 1; }}\n");
        assert!(places(&other, &read).is_empty());
    }

    #[test]
    fn quotes_count_only_where_others_read_them() {
        let text =
            |code: &str, part| repeated(&Tree::of(&[("crates/a/src/b.rs", code)]), &["crates/a"], part);
        let (one, other) = ("fn a() {\n    say(\"no\"); // now\n}\n", "fn a() {\n    say(\"we\");\n}\n");
        assert_eq!(text(one, PinnedPart::Code), text(other, PinnedPart::Code));
        assert_ne!(text(one, PinnedPart::CodeAndLiterals), text(other, PinnedPart::CodeAndLiterals));
        assert_ne!(text(one, PinnedPart::Code), text("fn a() {\n    cry(\"no\");\n}\n", PinnedPart::Code));
        assert!(text(one, PinnedPart::Constants).is_empty());
    }
}
