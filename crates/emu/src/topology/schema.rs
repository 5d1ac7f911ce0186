//! The JSON Schema of a description, for editors that validate TOML.

use serde_json::{Map, Value, json};

use super::direction_keys::WAY;
use super::keys::{HEAD, HOST, LINK, SWITCH, TopologyKey};
use super::kind::TopologyValueKind;

/// The pattern of names.
const NAME: &str = "^[a-z0-9][a-z0-9-]{0,31}$";
/// A number as quantities parse it; a unit follows.
const NUMBER: &str = r"^ *\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *";

/// The schema of a description, JSON Schema draft 2020-12.
#[must_use]
pub fn schema() -> Value {
    let link = {
        let mut properties = properties(LINK);
        properties.append(&mut self::properties(WAY));
        let directions = json!({ "type": "object", "propertyNames": { "pattern": NAME }, "additionalProperties": { "$ref": "#/$defs/way" },
            "description": "Keys for the direction away from that node only." });
        properties.insert("from".to_owned(), directions);
        let mut link = object(&properties);
        link["required"] = json!(["ends"]);
        link
    };
    let mut top = properties(HEAD);
    for kind in ["host", "switch", "link"] {
        let named = json!({ "type": "object", "propertyNames": { "pattern": NAME },
            "additionalProperties": { "$ref": format!("#/$defs/{kind}") } });
        top.insert(kind.to_owned(), named);
    }
    let parameters = json!({ "type": "object", "propertyNames": { "pattern": NAME },
        "additionalProperties": { "type": ["string", "number", "boolean", "array"] },
        "description": "Values that can be used as \"$name\" and set on the command line." });
    top.insert("parameters".to_owned(), parameters);
    let mut schema = object(&top);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("linerate topology");
    schema["description"] = json!("A network that linerate emulates: hosts, switches and links.");
    schema["required"] = json!(["host"]);
    schema["$defs"] = json!({
        "host": object(&properties(HOST)),
        "switch": object(&properties(SWITCH)),
        "link": link,
        "way": object(&properties(WAY)),
        "parameter": { "type": "string", "pattern": "^\\$", "description": "A parameter, written \
                                                                            \"$buffer\"." },
    });
    schema
}

#[expect(clippy::needless_pass_by_value, reason = "it becomes part of the returned value")]
fn or_parameter(shape: Value) -> Value {
    json!({ "anyOf": [shape, { "$ref": "#/$defs/parameter" }] })
}

fn object(properties: &Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The keys of a table; a dot in a name denotes a nested table.
fn properties<T>(keys: &[TopologyKey<T>]) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in keys {
        let mut property = or_parameter(shape(&key.kind));
        property["description"] = json!(key.help);
        if let Ok(default) = serde_json::from_str::<Value>(key.default) {
            property["default"] = default;
        }
        match key.name.split_once('.') {
            None => {
                properties.insert(key.name.to_owned(), property);
            }
            Some((table, name)) => {
                let inner = properties.entry(table).or_insert_with(|| object(&Map::new()));
                inner["properties"][name] = property;
            }
        }
    }
    properties
}

/// The schema of a value of that kind.
fn shape<T>(kind: &TopologyValueKind<T>) -> Value {
    match kind {
        TopologyValueKind::Text(_) => json!({ "type": "string" }),
        TopologyValueKind::Name(_) => json!({ "type": "string", "pattern": NAME }),
        TopologyValueKind::Ends(_) => {
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 })
        }
        TopologyValueKind::Several(words, _) => {
            json!({ "type": "array", "items": or_parameter(json!({ "enum": words })), "minItems": 1 })
        }
        TopologyValueKind::Choice(words, _) => json!({ "enum": words }),
        TopologyValueKind::Flag(_) => json!({ "type": "boolean" }),
        TopologyValueKind::Whole(from, u64::MAX, _) => json!({ "type": "integer", "minimum": from }),
        TopologyValueKind::Whole(from, to, _) => json!({ "type": "integer", "minimum": from, "maximum": to }),
        TopologyValueKind::Factor(_) => json!({ "type": "number", "exclusiveMinimum": 0 }),
        TopologyValueKind::Rate(_) => {
            let unit = "([kKmMgGtT]?(b/s|bit/s|bits/s|bps|bit)?|([kKMG]B|[KMG]iB|B)/s)";
            quantity(unit, 1e3, Some(1e12), Some("^none$"))
        }
        TopologyValueKind::Memory(_) => quantity("([bB]|[kKmMgGtT]|[KMGT]i|[kKMGT]i?B)?", 0.0, None, None),
        TopologyValueKind::Time(_) => time(),
        TopologyValueKind::Instants(_) => json!({ "type": "array", "items": or_parameter(time()) }),
        TopologyValueKind::Probability(_) => quantity("%?", 0.0, Some(1.0), None),
        TopologyValueKind::Address4(_) | TopologyValueKind::Address6(_) => {
            json!({ "type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]+$" })
        }
        TopologyValueKind::Settings(_) => json!({ "type": "object" }),
    }
}

fn time() -> Value {
    quantity("(ns|us|µs|ms|s|sec|m|min|h)?", 0.0, Some(3600.0), None)
}

/// A number, or text with a unit.
fn quantity(unit: &str, least: f64, most: Option<f64>, also: Option<&str>) -> Value {
    let pattern = format!("{NUMBER}{unit}$");
    let pattern = also.map_or(pattern.clone(), |also| format!("{pattern}|{also}"));
    let mut number = json!({ "type": "number", "minimum": least });
    if let Some(most) = most {
        number["maximum"] = json!(most);
    }
    json!({ "anyOf": [number, { "type": "string", "pattern": pattern }] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::bundled;

    /// Validates a document against the schema: every key must be allowed at its position.
    fn walk(schema: &Value, at: &Value, document: &toml::Table, path: &str) {
        for (key, value) in document {
            let path = format!("{path}.{key}");
            let property = at["properties"].get(key).or_else(|| at.get("additionalProperties"));
            let property = property.filter(|property| property.is_object());
            let property = property.unwrap_or_else(|| panic!("{path} is not in the schema"));
            let property = match property["$ref"].as_str() {
                Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap(),
                None => property,
            };
            match value {
                toml::Value::Table(inner) if property.get("anyOf").is_none() => {
                    walk(schema, property, inner, &path)
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_key_of_a_bundled_file_is_in_the_schema() {
        let schema = schema();
        for bundled in bundled() {
            walk(&schema, &schema, &bundled.text.parse().unwrap(), bundled.name);
        }
    }

    #[test]
    #[should_panic(expected = "x.link.a.dely is not in the schema")]
    fn an_unknown_key_is_not_in_the_schema() {
        let schema = schema();
        walk(&schema, &schema, &"[link.a]\ndely = 1\n".parse().unwrap(), "x");
    }
}
