//! One line of a file, without terminal sequences and logger prefixes.

use std::borrow::Cow;

use linerate_model::ForeignText;

/// A line with its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberedLine<'a> {
    /// Line number, from 1.
    pub(crate) number: u32,
    /// Text without colour sequences and carriage returns.
    pub(crate) text: &'a str,
}

impl<'a> NumberedLine<'a> {
    /// The line as quoted in a claim.
    pub(crate) fn quote(self) -> ForeignText {
        ForeignText::new(self.text.trim())
    }

    /// Column, from 1, at which this part of the line begins.
    pub(crate) fn column(self, part: &str) -> Option<u32> {
        let offset = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        self.text.get(..offset).map(|before| before.chars().count() as u32 + 1)
    }

    /// The rest of the line after `word`.
    pub(crate) fn after(self, word: &str) -> Option<&'a str> {
        self.text.split_once(word).map(|(_, rest)| rest)
    }

    /// The first word after `word`.
    pub(crate) fn word_after(self, word: &str) -> Option<&'a str> {
        self.after(word)?.split_whitespace().next()
    }
}

/// Removes the colour sequences of a terminal from a line.
pub(crate) fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, sequence)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        // ECMA-48 §5.4: parameters and intermediates, then one byte from @ to ~.
        rest = match sequence.strip_prefix('[') {
            Some(control) => {
                let end = control.find(|c: char| ('@'..='~').contains(&c)).map_or(control.len(), |at| at + 1);
                control.get(end..).unwrap_or_default()
            }
            None => sequence,
        };
    }
    text.push_str(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(plain("\u{1b}[1;32m[  5]\u{1b}[0m 1"), "[  5] 1");
        assert_eq!(plain("a\u{1b}[31"), "a");
        assert_eq!(plain("a\u{1b}b"), "ab");
    }

    #[test]
    fn columns_count_characters() {
        let line = NumberedLine { number: 1, text: "ä 12" };
        assert_eq!(line.column(line.text.split(' ').nth(1).unwrap()), Some(3));
    }
}
