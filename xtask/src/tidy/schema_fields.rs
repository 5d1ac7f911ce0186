//! A field that is left out of JSON when it is empty may not be required by the published schema. The schemas of what
//! we write require every field that has neither `Option` nor a default, whatever leaves it out.

use super::Problem;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, rust) in tree.rust_files() {
        if file.is_test || file.crate_name().is_none() {
            continue;
        }
        let mut item = SchemaItem::default();
        for (line, text) in numbered(&rust.code) {
            if item.requires_what_it_leaves_out(text) && !rust.is_test_line(line) {
                let remedy = "add `default` to the field's serde attribute, or make it an Option";
                problems.push(Problem::new(
                    &file.path,
                    line,
                    "a field that may be left out, and that the schema requires",
                    remedy,
                ));
            }
        }
    }
    problems
}

/// What is known of the item that is read, line by line.
#[derive(Default)]
struct SchemaItem {
    /// Attributes before the item, or before the field or variant.
    attributes: String,
    /// Brackets that are open within an attribute.
    open: usize,
    /// Whether the item is being read; it ends at its brace in the first column.
    within: bool,
    has_schema: bool,
    has_default: bool,
}

impl SchemaItem {
    fn requires_what_it_leaves_out(&mut self, text: &str) -> bool {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return false;
        }
        if self.within && text.starts_with('}') {
            *self = Self::default();
            return false;
        }
        if self.open > 0 || trimmed.starts_with("#[") {
            self.attributes.push_str(trimmed);
            let count = |bracket: char| trimmed.matches(bracket).count();
            self.open = (self.open + count('[')).saturating_sub(count(']'));
            return false;
        }
        let attributes = std::mem::take(&mut self.attributes);
        if !self.within {
            self.has_schema = has_word(&attributes, "JsonSchema");
            // `Default` is another word.
            self.has_default = has_word(&attributes, "default");
            self.within = trimmed.ends_with('{');
            return false;
        }
        let kind = trimmed.split_once(": ").map_or("", |(_, kind)| kind);
        self.has_schema
            && !self.has_default
            && has_word(&attributes, "skip_serializing_if")
            && !has_word(&attributes, "default")
            && !kind.starts_with("Option<")
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn what_is_left_out_when_it_is_empty_is_not_required() {
        let text = "#[derive(Serialize)]\n#[cfg_attr(feature = \"schema\", derive(schemars::JsonSchema))]\npub struct A {\n    \
                    #[serde(skip_serializing_if = \"Vec::is_empty\")]\n    pub bad: Vec<u8>,\n    \
                    #[serde(\n        default,\n        skip_serializing_if = \"Vec::is_empty\",\n    )]\n    pub good: Vec<u8>,\n    \
                    #[serde(skip_serializing_if = \"Option::is_none\")]\n    pub absent: Option<Vec<u8>>,\n    pub plain: Vec<u8>,\n}\n\
                    #[derive(Serialize)]\nstruct NoSchema {\n    #[serde(skip_serializing_if = \"Vec::is_empty\")]\n    a: Vec<u8>,\n}\n\
                    #[derive(JsonSchema)]\n#[serde(default)]\nstruct AllDefault {\n    #[serde(skip_serializing_if = \"Vec::is_empty\")]\n    a: Vec<u8>,\n}\n\
                    #[derive(JsonSchema)]\nenum E {\n    V {\n        #[serde(skip_serializing_if = \"Vec::is_empty\")]\n        a: Vec<u8>,\n    },\n}\n";
        assert_eq!(
            found(check, &[("crates/model/src/a.rs", text)]),
            ["crates/model/src/a.rs:5", "crates/model/src/a.rs:30"]
        );
        assert!(found(check, &[("crates/model/tests/it/a.rs", text)]).is_empty());
    }
}
