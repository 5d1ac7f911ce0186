//! Documents that repeat numbers of the code are pinned to them: when the numbers change, somebody reads the document.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

/// A document and the folder whose constants it explains. The document holds `<!-- pinned: NAME HASH -->`.
struct Pin {
    document: &'static str,
    name: &'static str,
    folder: &'static str,
}

const PINS: &[Pin] = &[Pin { document: "METHODOLOGY.md", name: "rules", folder: "crates/theory/src/rules/" }];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for pin in PINS {
        let constants = constants_below(tree, pin.folder);
        if constants.is_empty() {
            continue;
        }
        let marker = format!("<!-- pinned: {} {:016x} -->", pin.name, fingerprint(&constants));
        let text = tree.file(pin.document).map_or("", |file| &file.text);
        if text.lines().any(|line| line == marker) {
            continue;
        }
        let start = format!("<!-- pinned: {} ", pin.name);
        let line = numbered(text).find(|(_, line)| line.starts_with(&start)).map_or(1, |(number, _)| number);
        let what = format!("constants of {} changed since this was read; now it is {marker}", pin.folder);
        let remedy = "compare the numbers below with the code, then put the new marker here";
        problems.push(Problem::new(pin.document, line, what, remedy));
    }
    problems
}

/// Every constant below a folder, by file, as written; tests and spacing do not count.
fn constants_below(tree: &Tree, folder: &str) -> String {
    let mut all = String::new();
    for (file, rust) in tree.rust_files().filter(|(file, _)| !file.is_test && file.path.starts_with(folder)) {
        let mut inside = false;
        for (_, text) in numbered(&rust.code).filter(|(line, _)| !rust.is_test_line(*line)) {
            // A function may be `const` too; what it computes is not a number to be read.
            inside |= has_word(text, "const") && !has_word(text, "fn");
            if inside {
                let words: Vec<&str> = text.split_whitespace().collect();
                all.push_str(&format!("{} {}\n", file.path, words.join(" ")));
            }
            inside &= !text.trim_end().ends_with(';');
        }
    }
    all
}

/// FNV-1a: short, and the same everywhere.
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
        let constants = constants_below(&Tree::of(&[("crates/theory/src/rules/a.rs", rule)]), "crates/");
        format!("# Title\n<!-- pinned: rules {:016x} -->\n", fingerprint(&constants))
    }

    fn places(rule: &str, document: &str) -> Vec<String> {
        found(check, &[("METHODOLOGY.md", document), ("crates/theory/src/rules/a.rs", rule)])
    }

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // Test values of the algorithm's authors.
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
}
