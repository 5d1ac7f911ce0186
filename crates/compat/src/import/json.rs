//! JSON as found in log files: truncated, several documents in sequence, with `nan` as a number.
//!
//! Of a truncated document, everything before the break is kept. Each value has its line number.

/// A value with the line in which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonNode {
    pub(crate) line: u32,
    pub(crate) value: JsonContent,
}

/// The content of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonContent {
    Null,
    Flag(bool),
    /// The digits as written; may be `nan`.
    Number(String),
    Text(String),
    List(Vec<JsonNode>),
    /// In the order of the file; keys may repeat.
    Object(Vec<(String, JsonNode)>),
}

/// The position and reason of a syntax error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonSyntaxError {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) why: String,
}

/// A document found in a text.
#[derive(Debug)]
pub(crate) struct JsonDocument {
    pub(crate) root: JsonNode,
    /// Absent if the document is complete.
    pub(crate) broken: Option<JsonSyntaxError>,
    /// Number of bytes of the text that belong to it.
    pub(crate) length: usize,
    /// Number of lines after its first.
    pub(crate) lines: u32,
}

impl JsonNode {
    /// The value of a key; the last one if the key repeats.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let JsonContent::Object(members) = &self.value else { return None };
        members.iter().rev().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The elements of a list; empty for other values.
    pub(crate) fn items(&self) -> &[Self] {
        if let JsonContent::List(items) = &self.value { items } else { &[] }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let JsonContent::Text(text) = &self.value { Some(text) } else { None }
    }

    /// A number as written, or a text: some programs write numbers as texts.
    pub(crate) fn written(&self) -> Option<&str> {
        if let JsonContent::Number(text) | JsonContent::Text(text) = &self.value { Some(text) } else { None }
    }

    /// A non-negative integer.
    pub(crate) fn count(&self) -> Option<u64> {
        self.written()?.parse().ok()
    }

    /// The truth of a value: `true`, or a number other than 0.
    pub(crate) fn flag(&self) -> Option<bool> {
        match &self.value {
            JsonContent::Flag(flag) => Some(*flag),
            JsonContent::Number(text) => Some(text != "0"),
            _ => None,
        }
    }
}

/// Deepest nesting; the documents of these programs have up to seven levels.
const MAX_DEPTH: usize = 48;

/// Most values of a document. A value may need a hundred times its size in the file as memory.
const MAX_VALUES: usize = 1_000_000;

/// Parses the document at the start of a text; `first` is the number of its first line.
pub(crate) fn parse(text: &str, first: u32) -> JsonDocument {
    let mut parser = JsonParser { values: 0, text, at: 0, line: first, line_start: 0, depth: 0 };
    let mut root = JsonNode { line: first, value: JsonContent::Null };
    let broken = parser.value(&mut root).err();
    JsonDocument { root, broken, length: parser.at, lines: parser.line - first }
}

struct JsonParser<'a> {
    values: usize,
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    depth: usize,
}

impl JsonParser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn broken<T>(&self, why: &str) -> Result<T, JsonSyntaxError> {
        let why = match self.peek() {
            None => format!("the document is incomplete: {why}"),
            Some(_) => why.to_owned(),
        };
        // Columns count characters.
        let before = self.text.get(self.line_start..self.at).unwrap_or_default();
        Err(JsonSyntaxError { line: self.line, column: before.chars().count() as u32 + 1, why })
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.line_start = self.at + 1;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Parses into `node`, so that the complete parts are kept if an error follows.
    fn value(&mut self, node: &mut JsonNode) -> Result<(), JsonSyntaxError> {
        self.space();
        node.line = self.line;
        self.values += 1;
        if self.values > MAX_VALUES {
            return self.broken(&format!("it has more than {MAX_VALUES} values; the rest is ignored"));
        }
        match self.peek() {
            // Every program indents nested objects, so a brace in the first column begins the next document.
            Some(b'{') if self.depth > 0 && self.at == self.line_start => {
                self.broken("another document begins inside it")
            }
            Some(b'{') => self.object(node),
            Some(b'[') => self.list(node),
            Some(b'"') => {
                node.value = JsonContent::Text(linerate_model::foreign_text::lines(&self.string()?));
                Ok(())
            }
            _ => {
                node.value = self.literal()?;
                Ok(())
            }
        }
    }

    fn enter(&mut self) -> Result<(), JsonSyntaxError> {
        if self.depth >= MAX_DEPTH {
            return self.broken("it is nested too deeply for a result");
        }
        self.depth += 1;
        self.at += 1;
        self.space();
        Ok(())
    }

    fn object(&mut self, node: &mut JsonNode) -> Result<(), JsonSyntaxError> {
        self.enter()?;
        node.value = JsonContent::Object(Vec::new());
        let JsonContent::Object(members) = &mut node.value else { return Ok(()) };
        if self.closes(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.broken("a name in quotes was expected");
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.broken("a colon was expected");
            }
            self.at += 1;
            let mut inner = JsonNode { line: self.line, value: JsonContent::Null };
            let outcome = self.value(&mut inner);
            if outcome.is_ok() || matches!(inner.value, JsonContent::List(_) | JsonContent::Object(_)) {
                members.push((key, inner));
            }
            outcome?;
            if !self.has_next(b'}')? {
                return Ok(());
            }
        }
    }

    fn list(&mut self, node: &mut JsonNode) -> Result<(), JsonSyntaxError> {
        self.enter()?;
        node.value = JsonContent::List(Vec::new());
        let JsonContent::List(items) = &mut node.value else { return Ok(()) };
        if self.closes(b']') {
            return Ok(());
        }
        loop {
            let mut inner = JsonNode { line: self.line, value: JsonContent::Null };
            let outcome = self.value(&mut inner);
            if outcome.is_ok() || matches!(inner.value, JsonContent::List(_) | JsonContent::Object(_)) {
                items.push(inner);
            }
            outcome?;
            if !self.has_next(b']')? {
                return Ok(());
            }
        }
    }

    fn closes(&mut self, end: u8) -> bool {
        let closes = self.peek() == Some(end);
        if closes {
            self.at += 1;
            self.depth -= 1;
        }
        closes
    }

    /// Whether another element follows.
    fn has_next(&mut self, end: u8) -> Result<bool, JsonSyntaxError> {
        self.space();
        if self.closes(end) {
            return Ok(false);
        }
        if self.peek() != Some(b',') {
            return self.broken(if end == b'}' {
                "a comma or } was expected"
            } else {
                "a comma or ] was expected"
            });
        }
        self.at += 1;
        self.space();
        Ok(true)
    }

    fn string(&mut self) -> Result<String, JsonSyntaxError> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = start;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => {
                    self.at = end.min(bytes.len());
                    return self.broken("a text has no closing quote");
                }
                Some(_) => end += 1,
            }
        }
        let quoted = self.text.get(self.at..=end).unwrap_or_default();
        // Some programs write tabs inside a string, which is not valid JSON.
        let string = match serde_json::from_str(quoted) {
            Ok(string) => string,
            Err(_) => self.text.get(start..end).unwrap_or_default().to_owned(),
        };
        self.at = end + 1;
        Ok(string)
    }

    fn literal(&mut self) -> Result<JsonContent, JsonSyntaxError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let part = |c: char| c.is_ascii_alphanumeric() || "+-.#()".contains(c);
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        if word.is_empty() {
            return self.broken("a value was expected");
        }
        if length == rest.len() {
            // The value may have been cut off.
            self.at += length;
            return self.broken("a value has no end");
        }
        let value = match word {
            "true" => JsonContent::Flag(true),
            "false" => JsonContent::Flag(false),
            "null" => JsonContent::Null,
            number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                JsonContent::Number(number.to_owned())
            }
            other if super::number::is_no_number(other) => JsonContent::Number(other.to_owned()),
            _ => return self.broken("this is not a value"),
        };
        self.at += length;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_too_many_values_is_read_as_far_as_that() {
        let text = format!("[{}1]", "1,".repeat(MAX_VALUES + 5));
        let document = parse(&text, 1);
        // The list itself is one of them.
        assert_eq!(document.root.items().len(), MAX_VALUES - 1);
        assert!(document.broken.unwrap().why.contains("more than 1000000 values"));
    }

    #[test]
    fn a_whole_document_is_read_with_its_lines() {
        let document = parse("{\n\"a\": [1, -nan, \"x\\u0041\"],\n \"b\": {\"c\": true}, \"b\": 7}\nrest", 5);
        assert_eq!(document.broken, None);
        assert_eq!(document.lines, 2);
        let a = document.root.get("a").unwrap();
        assert_eq!((a.line, a.items().len()), (6, 3));
        assert_eq!(a.items()[1].written(), Some("-nan"));
        assert_eq!(a.items()[2].text(), Some("xA"));
        assert_eq!(document.root.get("b").unwrap().count(), Some(7), "the last of two");
    }

    #[test]
    fn a_document_that_breaks_off_keeps_what_was_whole() {
        let text = "{ \"a\": {\n\t\"b\": 1,\n\t\"c\": [2, 34";
        let document = parse(text, 1);
        let broken = document.broken.unwrap();
        assert_eq!((broken.line, broken.column), (3, 13));
        assert!(broken.why.contains("incomplete"), "{}", broken.why);
        let a = document.root.get("a").unwrap();
        assert_eq!(a.get("b").unwrap().count(), Some(1));
        // 34 may be the beginning of 345.
        assert_eq!(a.get("c").unwrap().items().len(), 1);
    }

    #[test]
    fn a_brace_in_the_first_column_begins_the_next_document() {
        let document = parse("{ \"a\":\n{ \"b\": 1 }", 1);
        assert_eq!(document.broken.unwrap().line, 2);
    }

    #[test]
    fn depth_is_bounded() {
        let document = parse(&"[".repeat(1_000_000), 1);
        assert!(document.broken.unwrap().why.contains("nested"));
    }
}
