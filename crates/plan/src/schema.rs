//! The JSON Schema of a plan, for editors that check TOML during editing.

use serde_json::{Map, Value, json};

use crate::keys::{ASSERT, AXIS, FLOW, HEAD, HOST, LAB, PlanKey, SETTINGS};
use crate::kind::{DEFAULT, PlanValueKind};
use crate::knobs::{Knob, knobs, series_knobs};

/// Pattern of a name.
pub const NAME_PATTERN: &str = "^[a-z0-9][a-z0-9-]{0,31}$";
/// Pattern of an axis name.
const AXIS_NAME: &str = "^[a-z0-9][a-z0-9_]{0,31}$";
/// A number in the format of the quantities; a unit follows.
const NUMBER: &str = r"^ *\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *";

/// The schema of a plan, JSON Schema draft 2020-12.
#[must_use]
pub fn schema() -> Value {
    let named = |name: &str, pattern: &str, shape: Value, about: &str| {
        json!({ "type": "object", "propertyNames": { "pattern": pattern }, "additionalProperties": shape,
            "description": about, "title": name })
    };
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let mut top = properties(&[HEAD]);
    let scalars = json!({ "type": "object", "additionalProperties": { "type": ["string", "number"] },
        "description": "Notes of the author, for example the tester's name or the device." });
    top.insert("notes".to_owned(), scalars);
    top.insert("host".to_owned(), named("hosts", NAME_PATTERN, reference("host"), "The hosts."));
    top.insert(
        "flow".to_owned(),
        named("flows", NAME_PATTERN, reference("flow"), "Knobs of the test in every trial."),
    );
    let lists = json!({ "anyOf": [{ "type": "array", "minItems": 1 }, reference("axis")] });
    top.insert("axis".to_owned(), named("axes", AXIS_NAME, lists, "Values to sweep or search."));
    top.insert("lab".to_owned(), reference("lab"));
    top.insert("test".to_owned(), reference("test"));
    let mut schema = object(&top);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("linerate plan");
    schema["description"] = json!("A measurement plan: hosts, flows, axes, order and assertions.");
    let mut lab = object(&properties(&[LAB]));
    lab["required"] = json!(["topology"]);
    let mut flow = object(&properties(&[FLOW]));
    flow["required"] = json!(["from", "to"]);
    let mut assertion = object(&properties(&[ASSERT]));
    assertion["required"] = json!(["that"]);
    schema["$defs"] = json!({
        "host": object(&properties(&[HOST, SETTINGS])),
        "lab": lab,
        "flow": flow,
        "axis": object(&properties(&[AXIS])),
        "assertion": assertion,
        "test": test_schema(),
        "series": object(&test(series_knobs())),
        "part": { "type": "object", "description": "Axes and the value or values to match for each." },
    });
    schema
}

/// The schema of a table with these properties and no others.
#[must_use]
pub fn object(properties: &Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// The schemas of the keys of some tables.
#[must_use]
pub fn properties(tables: &[&[PlanKey]]) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in tables.iter().flat_map(|keys| keys.iter()) {
        let mut property = shape(&key.kind);
        property["description"] = json!(key.help);
        if let Ok(default) = serde_json::from_str::<Value>(key.default) {
            property["default"] = default;
        }
        properties.insert(key.name.to_owned(), property);
    }
    properties
}

/// The schema of a table of knobs of a test.
#[must_use]
pub fn test_schema() -> Value {
    object(&test(knobs()))
}

/// The knobs: each takes a value of its kind or the word for its default.
fn test(knobs: &[Knob]) -> Map<String, Value> {
    let mut properties = Map::new();
    for knob in knobs {
        let property =
            json!({ "anyOf": [shape(&knob.kind), { "const": DEFAULT }], "description": knob.help });
        properties.insert(knob.name.clone(), property);
    }
    properties
}

/// The schema of a kind's values.
fn shape(kind: &PlanValueKind) -> Value {
    match kind {
        PlanValueKind::Text | PlanValueKind::ThreeSizes | PlanValueKind::FlowNames(_) => {
            json!({ "type": "string" })
        }
        PlanValueKind::Name => json!({ "type": "string", "pattern": NAME_PATTERN }),
        PlanValueKind::Texts => {
            json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
        }
        PlanValueKind::Choice(words) => json!({ "enum": words }),
        PlanValueKind::Words(words) => json!({ "enum": words }),
        PlanValueKind::Flag => json!({ "type": "boolean" }),
        PlanValueKind::Whole(from, u64::MAX) => json!({ "type": "integer", "minimum": from }),
        PlanValueKind::Whole(from, to) => json!({ "type": "integer", "minimum": from, "maximum": to }),
        PlanValueKind::Rate => quantity("([kKmMgGtT]?(b/s|bit/s|bits/s|bps|bit)?|([kKMG]B|[KMG]iB|B)/s)"),
        PlanValueKind::Memory => quantity("([bB]|[kKmMgGtT]|[KMGT]i|[kKMGT]i?B)?"),
        PlanValueKind::Time => quantity("(ns|us|µs|ms|s|sec|m|min|h)?"),
        PlanValueKind::Share => quantity("%?"),
        PlanValueKind::Dscp => json!({ "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": 63 },
            { "type": "string" },
        ] }),
        // The tables contain valid JSON, as a test checks.
        PlanValueKind::Special(_, shape) => serde_json::from_str(shape).unwrap_or_default(),
    }
}

/// A number, or a text with a unit.
fn quantity(unit: &str) -> Value {
    json!({ "anyOf": [
        { "type": "number", "minimum": 0 },
        { "type": "string", "pattern": format!("{NUMBER}{unit}$") },
    ] })
}
