//! What a user says about a run: its name and notes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// A run's name and notes. They change nothing about the measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunLabels {
    /// Name, which repeats of one configuration may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ForeignText>,
    /// Notes by their keys, such as the tester's name or the device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<ForeignText, ForeignText>,
}

impl RunLabels {
    /// Labels from elsewhere, without those that the options refuse: other commands could not take them.
    #[must_use]
    pub fn checked(self) -> Self {
        let name = self.name.filter(|name| LabelOptions::checked_name(name).as_deref() == Ok(name));
        let entry = |(key, note): &(ForeignText, ForeignText)| {
            let key_holds = !key.contains('=') && checked_word("a key", key).as_deref() == Ok(key);
            key_holds && LabelOptions::checked_note(note).as_deref() == Ok(note)
        };
        Self { name, notes: self.notes.into_iter().filter(entry).take(MAX_NOTES).collect() }
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.notes.is_empty()
    }
}

/// The options that label a run.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct LabelOptions {
    /// Name of this run, by which history, show and compare find it; repeats of one configuration may share it
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_parser = Self::checked_name, help_heading = "Labels"))]
    pub name: Option<String>,
    /// Store this note with the result
    #[cfg_attr(feature = "clap", arg(long, value_name = "TEXT", value_parser = Self::checked_note, help_heading = "Labels"))]
    pub note: Option<String>,
    /// Store a note under this key with the result, such as notes.switch=SG350
    #[cfg_attr(
        feature = "clap",
        arg(long = "set", value_name = "notes.KEY=TEXT", value_parser = Self::checked_entry, help_heading = "Labels")
    )]
    pub set: Vec<(String, String)>,
}

/// The key of the note of `--note`.
const NOTE_KEY: &str = "note";
/// Largest number of characters of a name or of a key, so that they fit into a table.
const MAX_NAME_CHARS: usize = 64;
/// Largest number of characters of the title of a page.
const MAX_TITLE_CHARS: usize = 200;
/// Largest number of notes that are taken from elsewhere.
const MAX_NOTES: usize = 64;
/// Number of hexadecimal digits of the id of a run.
const ID_DIGITS: usize = 16;
/// Largest number of characters of a note: what a [`ForeignText`] holds.
const MAX_NOTE_CHARS: usize = ForeignText::MAX_CHARS;

impl LabelOptions {
    /// The labels. Of several notes with one key, the last one counts.
    #[must_use]
    pub fn labels(&self) -> RunLabels {
        let note = self.note.iter().map(|text| (NOTE_KEY, text.as_str()));
        let set = self.set.iter().map(|(key, text)| (key.as_str(), text.as_str()));
        RunLabels {
            name: self.name.as_deref().map(ForeignText::new),
            notes: note.chain(set).map(|(key, text)| (key.into(), text.into())).collect(),
        }
    }

    /// A name that `show`, `history` and `compare` can take: it is not empty and not too long, and has no meaning
    /// of its own there.
    ///
    /// # Errors
    /// If it is none.
    pub fn checked_name(text: &str) -> Result<String, LabelError> {
        let fail = |why: String| Err(LabelError(why));
        let name = checked_word("a name", text)?;
        if let Some(sign) = name.chars().find(|c| [',', '=', '/'].contains(c)) {
            return fail(format!(
                "a name cannot contain '{sign}', which has a meaning in `linerate compare`; use a space or '-' instead"
            ));
        }
        if name.starts_with('-') || name == "latest" {
            return fail(
                "this has a meaning of its own where a run is named; choose another name".to_owned(),
            );
        }
        if name.len() == ID_DIGITS && name.chars().all(|c| c.is_ascii_hexdigit()) {
            return fail("this looks like the id of a run; choose another name".to_owned());
        }
        Ok(name)
    }

    /// A title that a page can have.
    ///
    /// # Errors
    /// If it is empty, too long or not printable.
    pub fn checked_title(text: &str) -> Result<String, LabelError> {
        checked_text("a title", text, MAX_TITLE_CHARS)
    }

    /// A note that can be stored whole.
    ///
    /// # Errors
    /// If it is empty, too long or not printable.
    pub fn checked_note(text: &str) -> Result<String, LabelError> {
        checked_text("a note", text, MAX_NOTE_CHARS)
    }

    /// Splits `notes.KEY=TEXT` into key and text.
    ///
    /// # Errors
    /// If it is not of this form, or the key or the text cannot be stored.
    pub fn checked_entry(text: &str) -> Result<(String, String), LabelError> {
        let entry = text.strip_prefix("notes.").and_then(|entry| entry.split_once('='));
        let Some((key, note)) = entry else {
            let remedy = "only notes can be set here; give notes.KEY=TEXT, such as notes.switch=SG350";
            return Err(LabelError(remedy.to_owned()));
        };
        Ok((checked_word("a key", key)?, Self::checked_note(note)?))
    }
}

/// A name or a note that cannot be stored: what is wrong with it, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelError(String);

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LabelError {}

/// Letters that are not seen, so that two names that look the same would be different: soft hyphens, joiners, spaces
/// without width, variation selectors. [`is_forbidden`](crate::foreign_text::is_forbidden) has those that also steer a terminal.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{fe00}'..='\u{fe0f}')
}

/// A text of few letters that is compared or shown in a table: all of them are seen.
fn checked_word(what: &str, text: &str) -> Result<String, LabelError> {
    if text.contains(is_invisible) {
        return Err(LabelError(format!(
            "{what} has an invisible character, which would make it another one; leave it out"
        )));
    }
    checked_text(what, text, MAX_NAME_CHARS)
}

/// A text without spaces around it, if it can be stored as it is.
fn checked_text(what: &str, text: &str, max_chars: usize) -> Result<String, LabelError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(LabelError(format!("{what} cannot be empty; leave the option out, or give a text")));
    }
    let chars = text.chars().count();
    if chars > max_chars {
        return Err(LabelError(format!(
            "{what} has at most {max_chars} characters; shorten it from {chars}"
        )));
    }
    if ForeignText::new(text).as_str() != text {
        return Err(LabelError(format!("{what} is one line without control characters; leave them out")));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_note_of_a_key_counts_and_a_plain_note_has_its_own() {
        let options = LabelOptions {
            name: Some("before".into()),
            note: Some("old cable".into()),
            set: [("switch", "A"), ("switch", "B")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        };
        let json = serde_json::to_value(options.labels()).unwrap();
        let notes = serde_json::json!({"note": "old cable", "switch": "B"});
        assert_eq!(json, serde_json::json!({"name": "before", "notes": notes}));
        assert!(LabelOptions::default().labels().is_empty());
    }

    #[test]
    fn a_name_is_one_that_other_commands_can_take() {
        assert_eq!(LabelOptions::checked_name(" after the switch ").unwrap(), "after the switch");
        for (name, culprit) in [
            ("", "empty"),
            ("  ", "empty"),
            ("a,b", "','"),
            ("a=b", "'='"),
            ("results/a", "'/'"),
            ("-a", "meaning of its own"),
            ("latest", "meaning of its own"),
            ("a\nb", "one line"),
            ("\u{202e}a", "one line"),
            ("a\u{200b}b", "invisible"),
            ("89f1b0d6e9ee9e32", "id of a run"),
            (&"x".repeat(65), "at most 64"),
        ] {
            let error = LabelOptions::checked_name(name).unwrap_err().to_string();
            assert!(error.contains(culprit), "{name:?}: {error}");
        }
    }

    #[test]
    fn labels_from_elsewhere_keep_what_the_options_would_take() {
        let labels = |name: &str| RunLabels {
            name: Some(name.into()),
            notes: (0..100).map(|at| (format!("k{at:02}").into(), "x".into())).collect(),
        };
        assert_eq!(labels("before").checked().name.as_deref(), Some("before"));
        for name in ["latest", "a,b", "--archive=x", "", &"n".repeat(65)] {
            assert_eq!(labels(name).checked().name, None, "{name}");
        }
        assert_eq!(labels("before").checked().notes.len(), MAX_NOTES);
        let notes = [("a=b", "x"), ("", "x"), ("key", " x"), ("cable", "30 m = new")];
        let notes = notes.map(|(key, note)| (key.into(), note.into())).into();
        let kept = RunLabels { name: None, notes }.checked().notes;
        assert_eq!(kept.keys().map(ForeignText::as_str).collect::<Vec<_>>(), ["cable"]);
    }

    #[test]
    fn only_notes_can_be_set() {
        let entry = LabelOptions::checked_entry("notes.cable=Cat 6, 30 m = new").unwrap();
        assert_eq!(entry, ("cable".to_owned(), "Cat 6, 30 m = new".to_owned()));
        for (entry, culprit) in [
            ("window=64K", "only notes"),
            ("notes.cable", "only notes"),
            ("notes.=x", "a key cannot be empty"),
            ("notes.cable=", "a note cannot be empty"),
            ("notes.cable=\u{1b}[2J", "one line"),
        ] {
            let error = LabelOptions::checked_entry(entry).unwrap_err().to_string();
            assert!(error.contains(culprit), "{entry}: {error}");
        }
        assert!(LabelOptions::checked_note(&"x".repeat(2001)).is_err());
    }
}
