//! Whole words in a line, and the spellings of one name.

use crate::rust_text::is_name_byte;

/// Whether `line` contains `word` without a letter, digit or underscore directly before or after it.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| stands_alone(line, start, start + word.len()))
}

fn stands_alone(line: &str, start: usize, end: usize) -> bool {
    let bytes = line.as_bytes();
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    let after = bytes.get(end);
    !before.copied().is_some_and(is_name_byte) && !after.copied().is_some_and(is_name_byte)
}

/// The spellings of a name in Rust, on the command line and in JSON: `tcp.srtt` gives `tcp_srtt`, `TCP_SRTT`,
/// `TcpSrtt`, `tcp-srtt`, `tcp.srtt` and `tcp::SRTT`; a single word has three spellings.
pub(crate) fn spellings(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split(['.', '-', '_']).filter(|part| !part.is_empty()).collect();
    let snake = parts.join("_");
    let camel: String = parts.iter().map(|part| capitalised(part)).collect();
    let mut all = vec![snake.to_ascii_uppercase(), camel, parts.join("-"), snake];
    if let Some((module, entry)) = lower.split_once('.') {
        all.push(format!("{module}::{}", entry.to_ascii_uppercase()));
    }
    all.push(lower);
    all.sort();
    all.dedup();
    all
}

fn capitalised(part: &str) -> String {
    let mut letters = part.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_not_part_of_a_longer_one() {
        assert!(has_word("let window = 3;", "window"));
        assert!(has_word("\"window\"", "window"));
        assert!(has_word("windows, window", "window"));
        assert!(!has_word("windows window_clamp", "window"));
        assert!(!has_word("max_window", "window"));
    }

    #[test]
    fn a_name_has_one_spelling_for_each_language() {
        assert_eq!(spellings("window"), ["WINDOW", "Window", "window"]);
        assert_eq!(
            spellings("tcp.snd_buf"),
            ["TCP_SND_BUF", "TcpSndBuf", "tcp-snd-buf", "tcp.snd_buf", "tcp::SND_BUF", "tcp_snd_buf"]
        );
    }
}
