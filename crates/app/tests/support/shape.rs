//! The keys of a JSON document, and the types of their values.

use std::collections::BTreeSet;

use serde_json::Value;

/// Paths and types of all values in a document, such as `intervals[].sum.bytes number`. The elements of a list
/// are merged.
pub(crate) fn shape(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(document, "", &mut found);
    found
}

fn walk(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        // A float with an integral value is printed as an integer.
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(elements) => {
            elements.iter().for_each(|element| walk(element, &format!("{path}[]"), found));
            "list"
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(value, &path, found);
            }
            "object"
        }
    };
    found.insert(format!("{path} {kind}"));
}
