//! JSON as iperf3's parser (cJSON) accepts it: keys ignore case, the first of duplicate keys counts, numbers
//! may have any form.

use std::fmt;

use linerate_model::foreign_text::{lines, one_line};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Iperf3Json {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Iperf3Json>),
    Object(Vec<(String, Iperf3Json)>),
}

impl Iperf3Json {
    /// Parses a complete message.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The value of a key; also absent if this is not an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(entries) = self else { return None };
        entries.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
    }

    /// Whether a key exists: iperf3 takes that as true, whatever its value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The integer of a key. Versions write integers differently: `1e+15`, or -1 as 2^64 - 1.
    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        match *self.get(key)? {
            Self::Integer(value) => Some(value),
            // 3.12 and 3.13 write negative numbers as unsigned; others additionally round them to doubles.
            Self::Float(value) if (TWO_POW_63..=2.0 * TWO_POW_63).contains(&value) => {
                Some(((value - 2.0 * TWO_POW_63) as i64).min(-1))
            }
            Self::Float(value) => Some(value as i64),
            _ => None,
        }
    }

    /// The number of a key.
    pub(super) fn float(&self, key: &str) -> Option<f64> {
        match *self.get(key)? {
            Self::Integer(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a key, on one line.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        if let Self::Text(text) = self.get(key)? { Some(one_line(text)) } else { None }
    }

    /// The text of a key, with several lines.
    pub(super) fn page(&self, key: &str) -> Option<&str> {
        if let Self::Text(text) = self.get(key)? { Some(text) } else { None }
    }

    /// The list of a key.
    pub(super) fn list(&self, key: &str) -> Option<&[Self]> {
        if let Self::List(list) = self.get(key)? { Some(list) } else { None }
    }

    /// Converts to a `serde_json` value.
    pub(super) fn to_value(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.iter().map(Self::to_value).collect(),
            Self::Object(entries) => {
                entries.iter().map(|(key, value)| (one_line(key), value.to_value())).collect()
            }
        }
    }
}

const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;

/// Keeps the order of keys. Texts are made safe to print.
impl Serialize for Iperf3Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(&lines(text)),
            Self::List(list) => serializer.collect_seq(list),
            Self::Object(entries) => {
                serializer.collect_map(entries.iter().map(|(key, value)| (one_line(key), value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Iperf3Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Iperf3Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Iperf3Json, E> {
        Ok(Iperf3Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Iperf3Json, E> {
        Ok(Iperf3Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Iperf3Json, E> {
        Ok(Iperf3Json::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Iperf3Json, E> {
        Ok(Iperf3Json::Integer(value as i64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Iperf3Json, E> {
        Ok(Iperf3Json::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Iperf3Json, E> {
        Ok(Iperf3Json::Text(lines(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Iperf3Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Iperf3Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Iperf3Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Iperf3Json::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(json: &str) -> Option<i64> {
        Iperf3Json::parse(format!("{{\"k\":{json}}}").as_bytes()).unwrap().integer("k")
    }

    #[test]
    fn integers_come_in_many_forms() {
        assert_eq!(integer("17"), Some(17));
        assert_eq!(integer("-1"), Some(-1));
        assert_eq!(integer("1e+15"), Some(1_000_000_000_000_000));
        assert_eq!(integer("131072.9"), Some(131_072));
        assert_eq!(integer("18446744073709551615"), Some(-1));
        assert_eq!(integer("18446744073709551614"), Some(-2));
        assert_eq!(integer("1.8446744073709552e+19"), Some(-1));
        assert_eq!(integer("1e300"), Some(i64::MAX));
        assert_eq!(integer("\"17\""), None);
        assert_eq!(integer("null"), None);
    }

    #[test]
    fn keys_have_no_case_and_the_first_counts() {
        let node = Iperf3Json::parse(br#"{"Len":1,"LEN":2,"flag":false}"#).unwrap();
        assert_eq!(node.integer("len"), Some(1));
        assert!(node.has("FLAG"));
        assert!(!node.has("other"));
        assert!(Iperf3Json::parse(b"[1]").unwrap().get("len").is_none());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for wrong in ["", "{", "{\"jitter\":-nan}", "{} {}", "{\"a\":1,}"] {
            assert_eq!(Iperf3Json::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Iperf3Json::parse("[".repeat(100_000).as_bytes()), None);
    }
}
