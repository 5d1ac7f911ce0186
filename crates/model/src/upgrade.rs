//! Reads what an earlier version wrote: renames in a parsed JSON value, given as a table.
//!
//! A format whose names have changed has a module `v1` with its table. The old names occur only there. The new names
//! have never meant anything else, so a table can be applied to every value, whichever version wrote it.

use serde_json::Value;

/// One rename in a JSON value.
#[derive(Debug, Clone, Copy)]
pub struct Rename {
    /// Leads to the object: keys separated by dots, `*` for each item of a list; empty for the value itself.
    path: &'static str,
    change: FormatChange,
}

#[derive(Debug, Clone, Copy)]
enum FormatChange {
    Key { from: &'static str, to: &'static str },
    Text { key: &'static str, from: &'static str, to: &'static str },
}

/// The key `from` of the objects at `path` is now called `to`.
#[must_use]
pub const fn key(path: &'static str, from: &'static str, to: &'static str) -> Rename {
    Rename { path, change: FormatChange::Key { from, to } }
}

/// The text `from` under `key`, alone or in a list, is now `to`.
#[must_use]
pub const fn text(path: &'static str, key: &'static str, from: &'static str, to: &'static str) -> Rename {
    Rename { path, change: FormatChange::Text { key, from, to } }
}

/// Applies `renames` in their order. What is not there, or of another shape, stays as it is.
pub fn upgrade(value: &mut Value, renames: &[Rename]) {
    for rename in renames {
        rename.apply(rename.path, value);
    }
}

impl Rename {
    fn apply(&self, path: &str, value: &mut Value) {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        match (first, value) {
            ("", Value::Object(fields)) => self.change.apply(fields),
            ("*", Value::Array(items)) => items.iter_mut().for_each(|item| self.apply(rest, item)),
            (key, Value::Object(fields)) => {
                if let Some(field) = fields.get_mut(key) {
                    self.apply(rest, field);
                }
            }
            _ => {}
        }
    }
}

impl FormatChange {
    fn apply(self, fields: &mut serde_json::Map<String, Value>) {
        match self {
            Self::Key { from, to } => {
                if !fields.contains_key(to)
                    && let Some(value) = fields.remove(from)
                {
                    fields.insert(to.to_owned(), value);
                }
            }
            Self::Text { key, from, to } => match fields.get_mut(key) {
                Some(Value::Array(items)) => {
                    items.iter_mut().filter(|item| *item == from).for_each(|item| *item = to.into());
                }
                Some(value) if value == from => *value = to.into(),
                _ => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_and_texts_are_renamed_where_the_path_leads() {
        let renames = [
            key("", "old", "new"),
            key("new.*", "a", "b"),
            text("new.*.deep", "word", "trouble", "error"),
            text("", "words", "x", "y"),
        ];
        let mut value = json!({ "old": [{ "a": 1, "deep": { "word": "trouble" } }, { "a": 2 }, 7], "words": ["x", "z", 1] });
        upgrade(&mut value, &renames);
        let upgraded = json!({ "new": [{ "b": 1, "deep": { "word": "error" } }, { "b": 2 }, 7], "words": ["y", "z", 1] });
        assert_eq!(value, upgraded);
        upgrade(&mut value, &renames);
        assert_eq!(value, upgraded, "a second time changes nothing");
    }

    #[test]
    fn a_value_of_another_shape_and_a_key_that_is_already_there_stay() {
        let renames = [key("a.*.b", "old", "new"), key("", "old", "new")];
        for value in [json!(null), json!([1]), json!({ "a": 1 }), json!({ "a": [[{}]], "old": 1, "new": 2 })]
        {
            let mut upgraded = value.clone();
            upgrade(&mut upgraded, &renames);
            assert_eq!(upgraded, value);
        }
    }
}
