//! JSON of somebody else: read so that no string in it can steer a terminal.
//!
//! The fields of a message are many and new ones come. So the whole document is cleaned where it is decoded, and what is
//! printed of it later, anywhere, is safe.

use linerate_model::foreign_text::{is_forbidden, lines, one_line};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Replaces forbidden characters, and line ends and tabs, in every string and key of a document.
pub fn clean(document: &mut Value) {
    walk(document, one_line);
}

/// Reads a document of somebody else: every string and key in it is in one line and without forbidden characters.
///
/// # Errors
/// It is not the JSON of a `T`.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    read(bytes, one_line)
}

/// As [`from_slice`], but line ends and tabs within a string stay: an event log holds whole files.
///
/// # Errors
/// It is not the JSON of a `T`.
pub fn lines_from_slice<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    read(bytes, lines)
}

fn read<T: DeserializeOwned>(bytes: &[u8], safe: fn(&str) -> String) -> serde_json::Result<T> {
    // Forbidden characters come escaped or as bytes that are not ASCII; without either there are none.
    if bytes.iter().all(|byte| *byte != b'\\' && byte.is_ascii()) {
        return serde_json::from_slice(bytes);
    }
    let mut document = serde_json::from_slice(bytes)?;
    walk(&mut document, safe);
    serde_json::from_value(document)
}

fn walk(document: &mut Value, safe: fn(&str) -> String) {
    match document {
        Value::String(text) if text.chars().any(is_forbidden) => *text = safe(text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, safe)),
        Value::Object(members) => {
            if members.keys().any(|key| key.chars().any(is_forbidden)) {
                let all = std::mem::take(members);
                members.extend(all.into_iter().map(|(key, value)| (one_line(&key), value)));
            }
            members.values_mut().for_each(|value| walk(value, safe));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escaped_and_plain_characters_of_a_document_are_replaced_alike() {
        let read = |text: &str| from_slice::<Value>(text.as_bytes()).unwrap().to_string();
        assert_eq!(
            read(r#"{"a\u001b":["x\u009by","\u202e",{"n":"1\n2"}]}"#),
            r#"{"a?":["x?y","?",{"n":"1 2"}]}"#
        );
        assert_eq!(read("{\"a\":\"x\u{9b}y\u{202e}\"}"), r#"{"a":"x?y?"}"#);
        // An escaped backslash is no escape.
        assert_eq!(read(r#""C:\\u001b""#), r#""C:\\u001b""#);
        assert_eq!(read("[1.5,18446744073709551615,-3,\"\\\\\"]"), r#"[1.5,18446744073709551615,-3,"\\"]"#);
    }

    #[test]
    fn a_file_in_a_log_keeps_its_lines() {
        let read: Value = lines_from_slice(br#"["a\tb\nc\u001b"]"#).unwrap();
        assert_eq!(read, serde_json::json!(["a\tb\nc?"]));
    }

    proptest! {
        #[test]
        fn nothing_forbidden_is_left(key in "(?s).{0,20}", text in "(?s).{0,40}") {
            let document = serde_json::json!({ &key: [text.clone()] });
            let read: Value = from_slice(&serde_json::to_vec(&document).unwrap()).unwrap();
            prop_assert_eq!(read, serde_json::json!({ one_line(&key): [one_line(&text)] }));
        }
    }
}
