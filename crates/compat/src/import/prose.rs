//! Detects prose, in which a result is only an example.

/// Fewest words of a sentence.
const WORDS: usize = 6;
/// Number of sentences that make a text with a fenced Markdown code block prose.
const MIN_SENTENCES_WITH_CODE_BLOCK: usize = 3;
/// Number of sentences that make any text prose, if at least half of its lines are sentences.
const MIN_SENTENCES: usize = 10;

/// Line number, from 1, of the first sentence of a text that is prose; absent for the output of a program.
pub(super) fn prose(text: &str) -> Option<u32> {
    let (mut sentences, mut others, mut first, mut fenced, mut fences) = (0, 0, None, false, 0);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            fences += 1;
        } else if !fenced && is_sentence(line) {
            sentences += 1;
            first = first.or(Some(number));
        } else if !line.is_empty() {
            others += 1;
        }
    }
    let prose = (fences > 0 && sentences >= MIN_SENTENCES_WITH_CODE_BLOCK)
        || (sentences >= MIN_SENTENCES && sentences >= others);
    first.filter(|_| prose)
}

/// Whether a line consists of words with a punctuation mark at its end.
fn is_sentence(line: &str) -> bool {
    let ends = line.ends_with(['.', ':', '!', '?', '|']);
    let word = |word: &&str| {
        let bare = word.trim_matches(|c: char| c.is_ascii_punctuation());
        bare.chars().count() > 1 && bare.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'')
    };
    ends && line.split_whitespace().filter(word).count() >= WORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "[  5]   0.00-10.02  sec   199 MBytes   167 Mbits/sec                  receiver\n";

    #[test]
    fn an_example_in_prose_is_no_result_and_a_result_is_no_prose() {
        let readme = format!(
            "# linerate\n\nIt measures how fast a network really is.\nThis is what one of its examples looks like:\n\n\
             ```console\n$ iperf3 -c b\n{EXAMPLE}```\n\nThe figure is that of the receiver, and it is true.\n"
        );
        assert_eq!(prose(&readme), Some(3));
        assert_eq!(prose(EXAMPLE), None);
        assert_eq!(
            prose(&format!("```\n{EXAMPLE}```\n")),
            None,
            "a fence alone, as it is copied from a chat"
        );
        let log = "Nov 22 host app[1]: the application has nothing at all to say about this.\n";
        assert_eq!(prose(&format!("{}{}", log.repeat(5), EXAMPLE.repeat(3))), None, "a log of many programs");
    }

    #[test]
    fn results_of_all_programs_are_no_prose() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/results");
        for tool in
            std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
        {
            for file in std::fs::read_dir(tool).unwrap().map(|entry| entry.unwrap().path()) {
                let bytes = std::fs::read(&file).unwrap();
                assert_eq!(prose(&String::from_utf8_lossy(&bytes)), None, "{}", file.display());
            }
        }
    }
}
