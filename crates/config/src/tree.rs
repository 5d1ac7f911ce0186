//! The TOML of a file as a tree in which every key and value has its position.

use toml::de::{DeTable, DeValue};

use crate::mistake::{LineIndex, Mistakes, SourcePosition};

/// A table, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigTable(pub Vec<ConfigEntry>);

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigEntry {
    /// The key; for a dotted key, one part of it.
    pub key: String,
    /// Position of the key.
    pub at: SourcePosition,
    /// Its value.
    pub value: ConfigValue,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigValue {
    /// Position of the value.
    pub at: SourcePosition,
    /// The value.
    pub content: ConfigContent,
}

/// Content of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigContent {
    /// A string.
    Text(String),
    /// A number as written, because conversion to binary floating point would round it.
    Number(String),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<ConfigValue>),
    /// A table.
    Table(ConfigTable),
    /// A date or time, which no key accepts.
    Date,
    /// A value from the command line, which has no quotes.
    Typed(String),
}

impl ConfigContent {
    /// Description for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) | Self::Typed(text) => format!("'{text}'"),
            Self::Number(number) => number.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Date => "a date".to_owned(),
        }
    }
}

impl ConfigValue {
    /// The text of a string, a number or a command-line value.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            ConfigContent::Text(text) | ConfigContent::Number(text) | ConfigContent::Typed(text) => {
                Some(text)
            }
            _ => None,
        }
    }
}

impl ConfigTable {
    /// The entry with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ConfigEntry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut ConfigEntry> {
        self.0.iter_mut().find(|entry| entry.key == key)
    }

    /// The table at `key`, if there is one.
    #[must_use]
    pub fn table(&self, key: &str) -> Option<&Self> {
        match &self.get(key)?.value.content {
            ConfigContent::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Like [`ConfigTable::table`], but mutable.
    pub fn table_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.get_mut(key)?.value.content {
            ConfigContent::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The entry at a dotted key.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&ConfigEntry> {
        match path.split_once('.') {
            None => self.get(path),
            Some((first, rest)) => self.table(first)?.find(rest),
        }
    }

    /// Removes the entry at a dotted key.
    pub fn remove(&mut self, path: &str) {
        match path.split_once('.') {
            None => self.0.retain(|entry| entry.key != path),
            Some((first, rest)) => {
                if let Some(table) = self.table_mut(first) {
                    table.remove(rest);
                }
            }
        }
    }

    /// Sets the value at a path of keys. Replaces an existing value, and creates missing tables on the path.
    pub fn set(&mut self, path: &[&str], value: ConfigValue) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = value.at.clone();
        if rest.is_empty() {
            self.remove(first);
            self.0.push(ConfigEntry { key: (*first).to_owned(), at, value });
        } else if let Some(table) = self.table_mut(first) {
            table.set(rest, value);
        } else {
            let mut table = Self::default();
            table.set(rest, value);
            let value = ConfigValue { at: at.clone(), content: ConfigContent::Table(table) };
            self.remove(first);
            self.0.push(ConfigEntry { key: (*first).to_owned(), at, value });
        }
    }
}

/// Largest file that is read, bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// Parses TOML. If it is not valid, returns `None` and adds every error to the mistakes.
///
/// `file` is the index of the file for positions.
pub fn parse(text: &str, file: usize, mistakes: &mut Mistakes) -> Option<ConfigTable> {
    if text.len() > MAX_FILE_BYTES {
        let text = format!(
            "{} bytes; a plan or topology has at most {MAX_FILE_BYTES}. Check that this is the right file, \
             or split it",
            text.len()
        );
        mistakes.add(&SourcePosition::File { file, line: 1, column: 1 }, text);
        return None;
    }
    let lines = LineIndex::new(text, file);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        let message = if error.message() == "duplicate key" {
            let name = text.get(span.clone()).unwrap_or_default();
            format!("'{name}' is declared twice; remove one of the declarations")
        } else {
            format!("not TOML: {}; see toml.io for the syntax", error.message())
        };
        mistakes.add(&lines.place(span.start), message);
    }
    errors.is_empty().then(|| table(document.into_inner(), &lines))
}

fn table(from: DeTable<'_>, lines: &LineIndex<'_>) -> ConfigTable {
    let mut entries: Vec<_> = from.into_iter().collect();
    // The parser sorts by name.
    entries.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (toml::Spanned<_>, toml::Spanned<_>)| {
        let at = lines.place(key.span().start);
        let place = lines.place(value.span().start);
        let key: std::borrow::Cow<'_, str> = key.into_inner();
        ConfigEntry {
            key: key.into_owned(),
            at,
            value: ConfigValue { at: place, content: content(value.into_inner(), lines) },
        }
    };
    ConfigTable(entries.into_iter().map(entry).collect())
}

fn content(from: DeValue<'_>, lines: &LineIndex<'_>) -> ConfigContent {
    match from {
        DeValue::String(text) => ConfigContent::Text(text.into_owned()),
        DeValue::Integer(number) => ConfigContent::Number(decimal(number.as_str(), number.radix())),
        DeValue::Float(number) => ConfigContent::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => ConfigContent::Flag(flag),
        DeValue::Datetime(_) => ConfigContent::Date,
        DeValue::Array(list) => ConfigContent::List(
            list.into_iter()
                .map(|value| ConfigValue {
                    at: lines.place(value.span().start),
                    content: content(value.into_inner(), lines),
                })
                .collect(),
        ),
        DeValue::Table(inner) => ConfigContent::Table(table(inner, lines)),
    }
}

/// A whole number in decimal; unchanged if it exceeds the range.
fn decimal(digits: &str, radix: u32) -> String {
    match u128::from_str_radix(digits, radix) {
        Ok(number) if radix != 10 => number.to_string(),
        _ => digits.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ConfigTable {
        parse(text, 0, &mut Mistakes::default()).unwrap()
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_by_its_size() {
        let mut mistakes = Mistakes::default();
        assert!(parse(&"a".repeat(MAX_FILE_BYTES + 1), 3, &mut mistakes).is_none());
        let ordered = mistakes.in_order();
        assert_eq!(ordered.len(), 1);
        assert!(
            ordered[0].text.starts_with("1048577 bytes; a plan or topology has at most 1048576"),
            "{ordered:?}"
        );
        assert_eq!(ordered[0].place, SourcePosition::File { file: 3, line: 1, column: 1 });
    }

    #[test]
    fn entries_stand_in_the_order_of_the_file() {
        let table = parsed("z = 1\nm.y = 2\na = 3\nm.b = 4\n");
        let keys: Vec<&str> = table.0.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["z", "m", "a"]);
        assert_eq!(table.find("m.b").unwrap().at, SourcePosition::File { file: 0, line: 4, column: 3 });
        assert_eq!(table.find("m.b").unwrap().value.at, SourcePosition::File { file: 0, line: 4, column: 7 });
    }

    #[test]
    fn numbers_keep_their_digits() {
        let table = parsed("a = 1_000\nb = 0x1F\nc = 1e-4\nd = 99999999999999999999999\n");
        let text = |key: &str| table.get(key).unwrap().value.text().unwrap().to_owned();
        assert_eq!(text("a"), "1000");
        assert_eq!(text("b"), "31");
        assert_eq!(text("c"), "1e-4");
        assert_eq!(text("d"), "99999999999999999999999");
    }

    #[test]
    fn what_is_set_replaces_what_was_there() {
        let typed = |text: &str| ConfigValue {
            at: SourcePosition::Override(text.to_owned()),
            content: ConfigContent::Typed(text.to_owned()),
        };
        let mut table = parsed("[a]\nb = 1\n");
        table.set(&["a", "b"], typed("2"));
        table.set(&["a", "c", "d"], typed("3"));
        table.set(&["a", "b", "e"], typed("4"));
        assert_eq!(table.find("a.c.d").unwrap().value.text(), Some("3"));
        assert_eq!(table.find("a.b.e").unwrap().value.text(), Some("4"));
        table.remove("a.c.d");
        assert!(table.find("a.c.d").is_none());
    }
}
