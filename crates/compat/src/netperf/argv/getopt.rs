//! Options of one letter, as getopt(3) reads them.

/// Reads arguments one option at a time.
#[derive(Debug)]
pub(super) struct Getopt<'a> {
    /// The letters, each followed by a colon if it takes a value.
    letters: &'static str,
    arguments: &'a [String],
    /// The index of the current argument, and the bytes of it that were read.
    at: usize,
    within: usize,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GetoptOption {
    pub(super) letter: char,
    /// Its value; empty if it takes none.
    pub(super) value: String,
}

impl<'a> Getopt<'a> {
    pub(super) fn new(letters: &'static str, arguments: &'a [String]) -> Self {
        Self { letters, arguments, at: 0, within: 0 }
    }

    /// The same arguments after an option `--`, with other options.
    pub(super) fn continued(self, letters: &'static str) -> Self {
        Self { letters, ..self }
    }

    /// The next argument as the value of the option that was just read, for options whose value is optional.
    pub(super) fn optional(&mut self, is_value: impl FnOnce(&str) -> bool) -> Option<&'a str> {
        let value = self.arguments.get(self.at).filter(|next| self.within == 0 && is_value(next))?;
        self.at += 1;
        Some(value)
    }

    /// The first argument that is no option.
    pub(super) fn rest(&self) -> Option<&'a str> {
        self.arguments.get(self.at).map(String::as_str)
    }

    /// The next option; absent at the first argument that is none.
    ///
    /// # Errors
    /// What getopt(3) prints after the name of the program.
    pub(super) fn next(&mut self) -> Result<Option<GetoptOption>, String> {
        let Some(argument) = self.arguments.get(self.at) else { return Ok(None) };
        if self.within == 0 {
            if argument == "--" {
                self.at += 1;
                return Ok(None);
            }
            if !argument.starts_with('-') || argument.len() < 2 {
                return Ok(None);
            }
            self.within = 1;
        }
        let Some(letter) = argument.get(self.within..).and_then(|rest| rest.chars().next()) else {
            return Err(format!("invalid option -- '{argument}'"));
        };
        let after = self.within + letter.len_utf8();
        let known = self.letters.find(letter).filter(|_| letter != ':');
        let Some(known) = known else { return Err(format!("invalid option -- '{letter}'")) };
        let takes_value = self.letters[known + 1..].starts_with(':');
        let rest = argument.get(after..).unwrap_or_default();
        let mut value = String::new();
        if takes_value {
            if rest.is_empty() {
                let next = self.arguments.get(self.at + 1);
                value = next.ok_or_else(|| format!("option requires an argument -- '{letter}'"))?.clone();
                self.at += 1;
            } else {
                rest.clone_into(&mut value);
            }
        }
        if takes_value || rest.is_empty() {
            (self.at, self.within) = (self.at + 1, 0);
        } else {
            self.within = after;
        }
        Ok(Some(GetoptOption { letter, value }))
    }
}
