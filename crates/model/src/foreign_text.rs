//! Text from outside: from a peer, another program or a file.
//!
//! A terminal interprets control characters, and direction marks reorder the text around them. A name, a reason
//! or a line of another program can contain either and so clear the user's screen, change the window title or
//! forge a second line of a log. [`ForeignText`] cannot contain them: its constructors replace them.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};

/// Foreign text that is safe to print: one line, without control characters, of limited length.
///
/// Line ends and tabs become spaces, every other forbidden character ([`is_forbidden`]) becomes a question
/// mark.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ForeignText(String);

impl ForeignText {
    /// Maximum length in characters; the rest is cut and replaced by an ellipsis.
    pub const MAX_CHARS: usize = 2000;

    /// Makes `text` safe to print.
    ///
    /// ```
    /// use linerate_model::ForeignText;
    /// assert_eq!(ForeignText::new("up\x1b[2J\nlinerate: ok").as_str(), "up?[2J linerate: ok");
    /// ```
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = without_error_numbers(text);
        let mut safe: String = text.chars().take(Self::MAX_CHARS).map(in_one_line).collect();
        if text.chars().nth(Self::MAX_CHARS).is_some() {
            safe.push('…');
        }
        Self(safe)
    }

    /// The text, safe to print; the original is not kept.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends `text`, made safe to print as well.
    pub fn push_str(&mut self, text: &str) {
        self.0.push_str(&one_line(text));
    }

    /// As [`Self::as_str`].
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<'de> Deserialize<'de> for ForeignText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

impl From<&str> for ForeignText {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for ForeignText {
    fn from(text: String) -> Self {
        // Most texts are clean and short and need no copy.
        let clean = text.len() <= Self::MAX_CHARS
            && text.chars().all(|c| in_one_line(c) == c)
            && !text.contains(ERROR_NUMBER);
        if clean { Self(text) } else { Self::new(&text) }
    }
}

impl From<ForeignText> for String {
    fn from(text: ForeignText) -> Self {
        text.0
    }
}

impl Deref for ForeignText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ForeignText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Maps with foreign names as keys are searched by `str`.
impl Borrow<str> for ForeignText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// As for a string, because names of imported runs are made from it.
impl fmt::Debug for ForeignText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ForeignText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

macro_rules! compared_with {
    ($($Text:ty),+) => {$(
        impl PartialEq<$Text> for ForeignText {
            fn eq(&self, other: &$Text) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<ForeignText> for $Text {
            fn eq(&self, other: &ForeignText) -> bool {
                *self == other.0
            }
        }
    )+};
}

compared_with!(str, &str, String);

/// Foreign text of several lines and any length, such as a file stored in a log: without forbidden characters
/// except line ends and tabs.
///
/// It has no `Display`: callers choose between [`Self::as_str`], which keeps the lines, and [`Self::one_line`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ForeignLines(String);

impl ForeignLines {
    /// The text with its line ends.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As [`Self::as_str`].
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// The text with spaces for line ends and tabs.
    #[must_use]
    pub fn one_line(&self) -> String {
        one_line(&self.0)
    }
}

impl From<&str> for ForeignLines {
    fn from(text: &str) -> Self {
        // A byte order mark at the start has no meaning in the text.
        Self(lines(text.strip_prefix('\u{feff}').unwrap_or(text)))
    }
}

impl From<String> for ForeignLines {
    fn from(text: String) -> Self {
        // Most are plain, and long.
        let plain = text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'));
        if plain && !text.contains(ERROR_NUMBER) { Self(text) } else { Self::from(text.as_str()) }
    }
}

impl<'de> Deserialize<'de> for ForeignLines {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

/// In the schema they are ordinary strings.
#[cfg(feature = "schema")]
macro_rules! string_schema {
    ($($Text:ident),+) => {$(
        impl schemars::JsonSchema for $Text {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    )+};
}

#[cfg(feature = "schema")]
string_schema!(ForeignText, ForeignLines);

/// Whether a terminal, a log or a document may do something other than display `c`: control characters (C0,
/// DEL, C1), line and paragraph separators, direction marks and overrides (UAX 9), invisible tag characters,
/// and characters that are not allowed in documents (XML 1.0, section 2.2).
#[must_use]
pub fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{fffe}'
                | '\u{ffff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` in one line, without forbidden characters and with its full length.
#[must_use]
pub fn one_line(text: &str) -> String {
    without_error_numbers(text).chars().map(in_one_line).collect()
}

/// What is before the number that the standard library appends to errors of the operating system.
const ERROR_NUMBER: &str = " (os error ";

/// `text` without the numbers of errors of the operating system, such as `No such file or directory (os error 2)`:
/// they say nothing to a person that the words do not say.
///
/// ```
/// use linerate_model::foreign_text::without_error_numbers;
/// let error = std::io::Error::from_raw_os_error(2);
/// assert_eq!(without_error_numbers(&error.to_string()), "No such file or directory");
/// ```
#[must_use]
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    if !text.contains(ERROR_NUMBER) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(ERROR_NUMBER);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(')') {
            Some(rest) => kept.push_str(rest),
            None => kept.extend([ERROR_NUMBER, part]),
        }
    }
    Cow::Owned(kept)
}

/// `text` without forbidden characters except line ends and tabs: the output of another program.
///
/// A carriage return before a line end is kept. Any other becomes a line end, because it would overwrite the
/// line.
#[must_use]
pub fn lines(text: &str) -> String {
    let text = without_error_numbers(text);
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        safe.push(match c {
            '\n' | '\t' => c,
            '\r' if rest.peek() == Some(&'\n') => c,
            '\r' => '\n',
            c => in_one_line(c),
        });
    }
    safe
}

fn in_one_line(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if is_forbidden(c) => '?',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        let shown = |text: &str| ForeignText::new(text).into_string();
        assert_eq!(shown("\x1b]0;owned\x07"), "?]0;owned?");
        assert_eq!(shown("a\u{9b}2Jb"), "a?2Jb");
        assert_eq!(shown("exe\u{202e}gpj.a\u{2066}b\u{200f}c\u{61c}"), "exe?gpj.a?b?c?");
        assert_eq!(shown("one\r\ntwo\u{2028}three\tfour"), "one  two three four");
        assert_eq!(shown("Zürich 東京 🙂"), "Zürich 東京 🙂");
        assert_eq!(shown("tag\u{e0041}\u{feff}"), "tag??");
    }

    #[test]
    fn a_file_keeps_its_lines_and_loses_a_mark_at_its_start() {
        let file = ForeignLines::from("\u{feff}a = 1\n\tb\u{1b}[2J = 2\n");
        assert_eq!(file.as_str(), "a = 1\n\tb?[2J = 2\n");
        assert_eq!(file.one_line(), "a = 1  b?[2J = 2 ");
        let read: ForeignLines = serde_json::from_str(r#""a\nb\u202ec""#).unwrap();
        assert_eq!(read.as_str(), "a\nb?c");
    }

    #[test]
    fn an_error_has_no_number() {
        let text = "a.toml: No such file or directory (os error 2); b: Connection refused (os error 111)";
        let plain = "a.toml: No such file or directory; b: Connection refused";
        assert_eq!(ForeignText::from(text), *plain);
        assert_eq!(ForeignText::from(text.to_owned()), *plain);
        assert_eq!((one_line(text), lines(text)), (plain.to_owned(), plain.to_owned()));
        assert_eq!(without_error_numbers("what (os error means)"), "what (os error means)");
        assert_eq!(without_error_numbers("cut (os error 12"), "cut (os error 12");
    }

    #[test]
    fn a_map_by_foreign_names_is_asked_for_our_own() {
        let read: std::collections::BTreeMap<ForeignText, ForeignText> =
            serde_json::from_str(r#"{"tcp_rmem":"4096\t6291456","x\u001b":"1"}"#).unwrap();
        assert_eq!(read["tcp_rmem"], "4096 6291456");
        assert_eq!(read["x?"], "1");
    }

    #[test]
    fn its_length_is_bounded() {
        let long = "é".repeat(ForeignText::MAX_CHARS + 1);
        let shown = ForeignText::from(long);
        assert_eq!(shown.chars().count(), ForeignText::MAX_CHARS + 1);
        assert!(shown.ends_with('…'));
        let just = "é".repeat(ForeignText::MAX_CHARS);
        assert_eq!(ForeignText::from(just.clone()), *just.as_str());
    }

    #[test]
    fn lines_of_another_program_stay_lines() {
        assert_eq!(lines("a\tb\r\nc\rd\x1b[1m\n"), "a\tb\r\nc\nd?[1m\n");
    }

    proptest! {
        #[test]
        fn nothing_forbidden_is_left(text in "(?s).{0,80}") {
            let shown = ForeignText::new(&text);
            prop_assert!(!shown.chars().any(is_forbidden));
            prop_assert_eq!(ForeignText::new(&shown), shown.clone());
            prop_assert_eq!(ForeignText::from(text.clone()), shown);
            prop_assert_eq!(ForeignLines::from(text.clone()), ForeignLines::from(text.as_str()));
            prop_assert!(!lines(&text).chars().any(|c| is_forbidden(c) && !matches!(c, '\n' | '\r' | '\t')));
        }
    }
}
