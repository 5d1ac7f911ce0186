//! The terms of GLOSSARY.md: one name per thing.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::{SourceFile, Tree};
use crate::words::has_word;

/// A banned word, its permitted uses, and what to write instead.
struct Banned {
    /// Whole words, compared in lower case.
    words: &'static [&'static str],
    /// A line that contains one of these, in lower case, uses the word in its proper sense.
    allowed_with: &'static [&'static str],
    instead: &'static str,
}

const TABLE: &[Banned] = &[
    Banned {
        words: &["bandwidth", "bandwidths", "max_bandwidth", "bandwidth_bps"],
        allowed_with: &["bottleneck", "delay", "bdp", "memory bandwidth", "--bandwidth", "avpkt"],
        instead: "write `bitrate` for what flowed, `capacity` for what a link or path can carry",
    },
    Banned {
        words: &["master", "slave"],
        // The keyword of `ip link` for a port's bridge.
        allowed_with: &["master br0"],
        instead: "write `client` and `server` for who connects, `sender` and `receiver` for where data goes",
    },
    Banned {
        words: &["warmup", "warm_up", "warm-up"],
        allowed_with: &[],
        instead: "write `omit` for the start that is left out of a result",
    },
    Banned {
        words: &["drop_pct", "drop_percent", "loss_pct", "loss_percent", "packet_loss_rate"],
        allowed_with: &[],
        instead: "write `loss_ratio`, a number from 0 to 1 (RFC 7680)",
    },
    Banned {
        words: &["one_way_latency", "one-way latency", "path_latency"],
        allowed_with: &[],
        instead: "write `one_way_delay`: a path has delay, a device has latency (RFC 7679, RFC 1242)",
    },
    Banned {
        words: &["peak_rate", "peak_bitrate", "effective_rate", "effective_bitrate", "real_rate"],
        allowed_with: &[],
        instead: "write `goodput`, or `max_ip_capacity` for the best sub-interval (RFC 2647, RFC 9097)",
    },
    Banned {
        words: &["tcp_window", "window_size", "quality_score", "test_case", "job_id"],
        allowed_with: &[],
        instead: "see GLOSSARY.md: `window`, `snd_buf`, `rcv_buf`, `cwnd`, `rwnd`; `point`, `trial`, `run`",
    },
];

/// Files that must contain foreign or banned words: the glossary, this table, the protocols of other tools.
fn is_exempt(file: &SourceFile) -> bool {
    let foreign = file.path.strip_prefix("crates/compat/src/").and_then(|rest| rest.split_once('/'));
    let is_prose_or_code =
        file.path.ends_with(".rs") || file.path.ends_with(".md") || file.path.ends_with(".sh");
    !is_prose_or_code
        || file.path == "GLOSSARY.md"
        || file.path == "docs/reference/stand-in-options.md"
        || file.path.starts_with("crates/app/tests/") && file.path.contains("/interop_")
        || file.path == "xtask/src/tidy/vocabulary.rs"
        || foreign.is_some_and(|(folder, _)| folder != "stand_in")
}

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.files.iter().filter(|file| !is_exempt(file)) {
        for (line, text) in numbered(&file.text) {
            let text = text.to_lowercase();
            for entry in TABLE {
                let right = entry.allowed_with.iter().any(|context| text.contains(context));
                if let Some(word) = entry.words.iter().find(|word| !right && has_word(&text, word)) {
                    problems.push(Problem::new(
                        &file.path,
                        line,
                        format!("the word {word:?}"),
                        entry.instead,
                    ));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn words_are_found_in_code_comments_and_documents() {
        let code = "/// The bandwidth of a link.\nlet loss_pct = 3;\n";
        assert_eq!(
            found(check, &[("crates/model/src/a.rs", code), ("docs/a.md", "after a warm-up\n")]),
            ["crates/model/src/a.rs:1", "crates/model/src/a.rs:2", "docs/a.md:1"]
        );
    }

    #[test]
    fn our_own_protocol_speaks_our_language() {
        let samples = [
            ("crates/proto/src/native/wire.rs", "// target bandwidth\n"),
            ("crates/compat/src/stand_in/run.rs", "// target bandwidth\n"),
        ];
        assert_eq!(found(check, &samples).len(), 2);
    }

    #[test]
    fn proper_senses_and_foreign_tongues_pass() {
        let code =
            "/// RFC 6349 bottleneck bandwidth; bandwidth-delay product.\nlet bottleneck_bandwidth = 1;\n";
        let samples = [
            ("crates/theory/src/a.rs", code),
            ("crates/compat/src/iperf3/argv.rs", "// -b: target bandwidth\n"),
            ("GLOSSARY.md", "| bitrate | bandwidth |\n"),
        ];
        assert!(found(check, &samples).is_empty());
    }
}
