//! Splits Rust source into code, literals and comments, without parsing it.
//!
//! The checks search for words, and only need to know whether a word is code, literal or comment. Every view
//! keeps the line structure of the file, so line numbers are the same in all views.

use std::ops::RangeInclusive;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceTextKind {
    Code,
    Literal,
    Comment,
}

/// The views of one Rust file. Parts that a view omits are replaced by spaces.
pub(crate) struct RustText {
    /// Code without comments and without contents of string and character literals.
    pub(crate) code: String,
    /// Code and literals, without comments.
    pub(crate) code_and_literals: String,
    /// Lines (from 1) of items that are compiled only for tests.
    test_lines: Vec<RangeInclusive<usize>>,
}

impl RustText {
    pub(crate) fn new(text: &str) -> Self {
        let kinds = classify(text.as_bytes());
        let code = keep(text, &kinds, &[SourceTextKind::Code]);
        let test_lines = find_test_items(&code);
        Self {
            code_and_literals: keep(text, &kinds, &[SourceTextKind::Code, SourceTextKind::Literal]),
            code,
            test_lines,
        }
    }

    /// Test-only modules in files of their own: `#[cfg(test)] mod name;`.
    pub(crate) fn test_modules(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.code.lines().collect();
        let declares = |range: &RangeInclusive<usize>| lines.get(range.end() - 1)?.trim().strip_suffix(';');
        let declarations = self.test_lines.iter().filter_map(declares);
        declarations.filter_map(|text| Some(text.rsplit_once("mod ")?.1)).collect()
    }

    /// Whether the line (from 1) is part of a test-only item.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }
}

/// Numbers lines from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn keep(text: &str, kinds: &[SourceTextKind], wanted: &[SourceTextKind]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (byte, kind) in bytes.iter_mut().zip(kinds) {
        if *byte != b'\n' && !wanted.contains(kind) {
            *byte = b' ';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn classify(source: &[u8]) -> Vec<SourceTextKind> {
    let mut kinds = vec![SourceTextKind::Code; source.len()];
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let (kind, length) = if rest.starts_with(b"//") {
            (SourceTextKind::Comment, line_length(rest))
        } else if rest.starts_with(b"/*") {
            (SourceTextKind::Comment, block_comment_length(rest))
        } else if let Some(length) = raw_string_length(source, at) {
            (SourceTextKind::Literal, length)
        } else if rest[0] == b'"' {
            (SourceTextKind::Literal, quoted_length(rest, b'"'))
        } else if is_character_literal(rest) {
            (SourceTextKind::Literal, quoted_length(rest, b'\''))
        } else {
            (SourceTextKind::Code, 1)
        };
        let end = (at + length).min(source.len());
        kinds[at..end].fill(kind);
        at = end;
    }
    kinds
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

/// Block comments nest in Rust.
fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Length of `r"…"`, `r#"…"#` and so on, if one starts at `at`.
fn raw_string_length(source: &[u8], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|i| source[i]);
    let follows_a_name = before.is_some_and(|byte| byte != b'b' && byte != b'c' && is_name_byte(byte));
    if source[at] != b'r' || follows_a_name {
        return None;
    }
    let rest = &source[at + 1..];
    let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = &rest[hashes + 1..];
    let length = body.windows(end.len()).position(|part| part == end).unwrap_or(body.len());
    Some(1 + hashes + 1 + length + end.len())
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Distinguishes `'x'` and `'\n'` from the lifetime `'x`.
fn is_character_literal(rest: &[u8]) -> bool {
    if rest[0] != b'\'' || rest.len() < 3 {
        return false;
    }
    let character_length = match rest[1] {
        b'\\' => return true,
        first if first < 0x80 => 1,
        first if first < 0xe0 => 2,
        first if first < 0xf0 => 3,
        _ => 4,
    };
    rest.get(1 + character_length) == Some(&b'\'')
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Finds items under `#[cfg(test)]` or `#[cfg(all(test, …))]`, up to their closing brace or semicolon.
fn find_test_items(code: &str) -> Vec<RangeInclusive<usize>> {
    let mut found = Vec::new();
    for marker in ["#[cfg(test)]", "#[cfg(all(test,"] {
        for (start, _) in code.match_indices(marker) {
            let end = start + marker.len() + item_length(&code.as_bytes()[start + marker.len()..]);
            found.push(line_of(code, start)..=line_of(code, end));
        }
    }
    found
}

fn item_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at,
            _ => {}
        }
    }
    rest.len()
}

/// The line (from 1) that contains the byte at `offset`.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_code_literals_and_comments() {
        let text = "let a = \"in // quotes\"; // remark \"q\"\nlet b = 'x'; /* one /* two */ end */ c";
        let views = RustText::new(text);
        assert_eq!(
            views.code.split_whitespace().collect::<Vec<_>>(),
            ["let", "a", "=", ";", "let", "b", "=", ";", "c"]
        );
        assert!(views.code_and_literals.contains("\"in // quotes\";"));
        assert!(!views.code_and_literals.contains("remark"));
        assert_eq!(views.code.lines().count(), 2);
    }

    #[test]
    fn raw_strings_escapes_and_lifetimes_do_not_confuse_it() {
        let views = RustText::new("f(r#\"a \" b\"#, \"\\\"\", '\\'', 'é'); fn g<'a>(x: &'a str) {} var\"s\"");
        let code: String = views.code.split_whitespace().collect();
        assert_eq!(code, "f(,,,);fng<'a>(x:&'astr){}var");
    }

    #[test]
    fn finds_test_modules_by_their_braces() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { \"}\"; }\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}";
        let views = RustText::new(text);
        let lines: Vec<usize> = (1..=9).filter(|&line| views.is_test_line(line)).collect();
        assert_eq!(lines, [2, 3, 4, 5, 7, 8]);
        assert_eq!(views.test_modules(), ["more"]);
    }
}
