//! The knobs of a test, derived from the schema of the specification: a new knob needs no change here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use linerate_config::{ConfigTable, Mistakes, SourcePosition, hint};
use linerate_model::{SizeList, Sweep, TestSpec};
use serde::Deserialize;
use serde_json::Value;

use crate::kind::{PlanValueKind, SettingValue};

/// One knob of a test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Knob {
    /// Name in a plan: the serialised name without the unit, which is part of the value.
    pub(crate) name: String,
    /// The table of the specification that contains it.
    group: String,
    /// Its serialised name.
    key: String,
    /// Kind of its value.
    pub(crate) kind: PlanValueKind,
    /// Its meaning.
    pub(crate) help: String,
}

impl Knob {
    /// Whether it describes the traffic, not sockets or hosts.
    pub(crate) fn is_traffic(&self) -> bool {
        self.group == "traffic"
    }
}

/// All knobs, in alphabetical order.
pub(crate) fn knobs() -> &'static [Knob] {
    static KNOBS: LazyLock<Vec<Knob>> = LazyLock::new(|| {
        let mut knobs = find(&Value::from(schemars::schema_for!(TestSpec)));
        knobs.sort_by(|a, b| a.name.cmp(&b.name));
        knobs
    });
    &KNOBS
}

/// The knobs of a series over message sizes, in alphabetical order.
pub(crate) fn series_knobs() -> &'static [Knob] {
    static KNOBS: LazyLock<Vec<Knob>> = LazyLock::new(|| {
        let schema = Value::from(schemars::schema_for!(Sweep));
        let mut knobs: Vec<Knob> = of_table(&schema, "sweep", &schema).collect();
        knobs.sort_by(|a, b| a.name.cmp(&b.name));
        knobs
    });
    &KNOBS
}

/// The series with these knobs set.
///
/// # Errors
/// The mistake in one of them.
pub(crate) fn series<'s>(
    settings: impl IntoIterator<Item = (&'s Knob, &'s SettingValue)>,
) -> Result<Sweep, String> {
    let mut json = serde_json::to_value(Sweep::default()).unwrap_or_default();
    let Some(table) = json.as_object_mut() else { return Ok(Sweep::default()) };
    for (knob, setting) in settings {
        let value = match setting {
            // Sizes are written as on the command line and stored as a list.
            SettingValue::Text(text) if knob.kind == PlanValueKind::Text => {
                serde_json::to_value(text.parse::<SizeList>().map_err(|error| error.to_string())?).ok()
            }
            other => other.json(),
        };
        match value {
            Some(value) => table.insert(knob.key.clone(), value),
            None => table.remove(&knob.key),
        };
    }
    Sweep::deserialize(&json).map_err(|error| error.to_string())
}

/// Whether there is a knob with this name.
pub(crate) fn is_knob(name: &str) -> bool {
    knobs().iter().any(|knob| knob.name == name)
}

/// The knob with this name.
///
/// # Errors
/// A text to append to the name, with the most similar names.
pub(crate) fn knob(name: &str) -> Result<&'static Knob, String> {
    if let Some(found) = knobs().iter().find(|knob| knob.name == name) {
        return Ok(found);
    }
    if let Some(found) = knobs().iter().find(|knob| knob.key == name) {
        return Err(format!("; write '{}', and the unit in its value", found.name));
    }
    Err(hint(name, knobs().iter().map(|knob| knob.name.as_str())))
}

/// The words of an enumeration in the schema.
pub(crate) fn enum_values(definition: &Value) -> Vec<String> {
    let listed = definition["enum"].as_array().into_iter().flatten();
    let single = definition["oneOf"].as_array().into_iter().flatten();
    let single = single
        .flat_map(|one| one.get("const").into_iter().chain(one["enum"].as_array().into_iter().flatten()));
    listed.chain(single).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn find(schema: &Value) -> Vec<Knob> {
    let mut knobs = Vec::new();
    for (group, table) in properties(schema) {
        let Some(definition) = table["$ref"].as_str().and_then(|name| resolve(schema, name)) else {
            continue;
        };
        knobs.extend(of_table(schema, group, definition));
    }
    knobs
}

/// The knobs of one table of the specification.
fn of_table<'s>(
    schema: &'s Value,
    group: &'s str,
    definition: &'s Value,
) -> impl Iterator<Item = Knob> + use<'s> {
    properties(definition).map(move |(key, property)| {
        let name = ["_bytes", "_bps", "_ns"].iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
        Knob {
            name: name.to_owned(),
            group: group.to_owned(),
            key: key.clone(),
            kind: kind(schema, property),
            help: property["description"].as_str().unwrap_or_default().to_owned(),
        }
    })
}

fn properties(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of["properties"].as_object().into_iter().flatten()
}

fn resolve<'s>(schema: &'s Value, reference: &str) -> Option<&'s Value> {
    schema.pointer(reference.trim_start_matches('#'))
}

/// The kind of a property, from the quantity that it refers to or from its type.
fn kind(schema: &Value, property: &Value) -> PlanValueKind {
    let optional = property["anyOf"].as_array().and_then(|shapes| shapes.first());
    let property = optional.unwrap_or(property);
    if let Some(reference) = property["$ref"].as_str() {
        return match reference.rsplit('/').next() {
            Some("Bytes") => PlanValueKind::Memory,
            Some("Span") => PlanValueKind::Time,
            Some("Bitrate") => PlanValueKind::Rate,
            Some("Ratio") => PlanValueKind::Share,
            Some("Dscp") => PlanValueKind::Dscp,
            Some("SizeList") => PlanValueKind::Text,
            _ => PlanValueKind::Words(resolve(schema, reference).map(enum_values).unwrap_or_default()),
        };
    }
    let names = &property["type"];
    let is = |name: &str| {
        names.as_str() == Some(name) || names.as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    if is("boolean") {
        PlanValueKind::Flag
    } else if is("integer") {
        let least = property["minimum"].as_u64().unwrap_or(0);
        let format = property["format"].as_str();
        let most = match format {
            Some("uint8") => u64::from(u8::MAX),
            Some("uint16") => u64::from(u16::MAX),
            Some("uint32") => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        PlanValueKind::Whole(least, property["maximum"].as_u64().unwrap_or(most))
    } else {
        PlanValueKind::Text
    }
}

/// The knobs that a table sets. Mistakes are noted with `path`, and left out.
pub(crate) fn read_knobs(
    table: &ConfigTable,
    path: &str,
    mistakes: &mut Mistakes,
) -> BTreeMap<String, SettingValue> {
    let mut settings = BTreeMap::new();
    for entry in &table.0 {
        if mistakes.is_full() && !is_knob(&entry.key) {
            // It is only counted, because finding similar names takes long.
            mistakes.add(&entry.at, String::new());
            continue;
        }
        match knob(&entry.key).map(|knob| knob.kind.read_or_default(&entry.value)) {
            Ok(Ok(setting)) => drop(settings.insert(entry.key.clone(), setting)),
            Ok(Err(text)) => mistakes.add(&entry.value.at, format!("{path}{}: {text}", entry.key)),
            Err(hint) => mistakes.add(&entry.at, format!("unknown knob {path}{}{hint}", entry.key)),
        }
    }
    settings
}

/// The test that a table of knobs describes; absent if it has mistakes, which are noted with `path`.
pub fn read_test(table: &ConfigTable, path: &str, mistakes: &mut Mistakes) -> Option<TestSpec> {
    let before = mistakes.len();
    let settings = read_knobs(table, path, mistakes);
    match spec(settings.iter().map(|(name, setting)| (name.as_str(), setting))) {
        Ok(spec) if mistakes.len() == before => Some(spec),
        Ok(_) => None,
        Err((name, text)) => {
            let at =
                table.get(&name).or(table.0.first()).map_or(&SourcePosition::START, |entry| &entry.value.at);
            mistakes.add(at, format!("{path}{name}: {text}"));
            None
        }
    }
}

/// The specification with these knobs set; later ones override earlier ones.
///
/// # Errors
/// The name of a knob and the mistake in its value.
pub(crate) fn spec<'s>(
    settings: impl IntoIterator<Item = (&'s str, &'s SettingValue)>,
) -> Result<TestSpec, (String, String)> {
    static DEFAULT: LazyLock<Value> =
        LazyLock::new(|| serde_json::to_value(TestSpec::default()).unwrap_or_default());
    let mut json = DEFAULT.clone();
    let last: BTreeMap<&str, &SettingValue> = settings.into_iter().collect();
    for (name, setting) in last {
        let knob =
            knob(name).map_err(|hint| (name.to_owned(), format!("there is no knob '{name}'{hint}")))?;
        // Groups with nothing but defaults may be missing too.
        let Some(groups) = json.as_object_mut() else { continue };
        let group = groups.entry(&knob.group).or_insert_with(|| Value::Object(Default::default()));
        let Some(table) = group.as_object_mut() else { continue };
        // What is missing in the JSON has its default.
        match setting.json() {
            Some(value) => table.insert(knob.key.clone(), value),
            None => table.remove(&knob.key),
        };
        // Parsed at once, so that the message can name the knob.
        if matches!(knob.kind, PlanValueKind::Text) {
            parse(&json).map_err(|text| (name.to_owned(), format!("{setting}: {text}")))?;
        }
    }
    parse(&json).map_err(|text| (String::new(), text))
}

fn parse(json: &Value) -> Result<TestSpec, String> {
    TestSpec::deserialize(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{Bitrate, Bytes, Span};

    #[test]
    fn every_knob_has_one_name_a_kind_and_a_meaning() {
        let names: Vec<&str> = knobs().iter().map(|knob| knob.name.as_str()).collect();
        let mut once = names.clone();
        once.dedup();
        assert_eq!(names, once);
        for knob in knobs() {
            assert!(!knob.help.is_empty(), "{}", knob.name);
            assert_ne!(knob.kind, PlanValueKind::Words(Vec::new()), "{}", knob.name);
        }
        let kind = |name: &str| knob(name).unwrap().kind.clone();
        assert_eq!(kind("window"), PlanValueKind::Memory);
        assert_eq!(kind("duration"), PlanValueKind::Time);
        assert_eq!(kind("rate"), PlanValueKind::Rate);
        assert_eq!(kind("until"), PlanValueKind::Share);
        assert_eq!(kind("udp"), PlanValueKind::Flag);
        assert_eq!(kind("streams"), PlanValueKind::Whole(0, u64::from(u32::MAX)));
        assert_eq!(kind("tos"), PlanValueKind::Whole(0, 255));
        assert_eq!(kind("dscp"), PlanValueKind::Dscp);
        assert_eq!(kind("congestion"), PlanValueKind::Text);
        assert_eq!(
            kind("io"),
            PlanValueKind::Words(
                ["auto", "copy", "splice", "sendfile", "zerocopy"].map(str::to_owned).to_vec()
            )
        );
    }

    /// Every knob of the specification can be set, and `default` resets it.
    #[test]
    fn what_is_set_arrives_and_the_default_takes_it_away() {
        for knob in knobs() {
            let setting = match &knob.kind {
                PlanValueKind::Flag => SettingValue::Flag(true),
                PlanValueKind::Whole(..) => SettingValue::Whole(7),
                PlanValueKind::Time => SettingValue::Time(Span::from_ms(7)),
                PlanValueKind::Rate => SettingValue::Rate(Bitrate::from_bps(7.0).unwrap()),
                PlanValueKind::Memory => SettingValue::Memory(Bytes::new(7)),
                PlanValueKind::Share => SettingValue::Share("7%".parse().unwrap()),
                PlanValueKind::Dscp => SettingValue::Dscp("ef".parse().unwrap()),
                // The first may be the default, which a group of defaults leaves out.
                PlanValueKind::Words(words) => SettingValue::Text(words[words.len() - 1].clone()),
                _ => SettingValue::Text("192.0.2.1".to_owned()),
            };
            let set = spec([(knob.name.as_str(), &setting)]).unwrap();
            let json = serde_json::to_value(&set).unwrap();
            assert_eq!(Some(&json[&knob.group][&knob.key]), setting.json().as_ref(), "{}", knob.name);
            let unset = spec([(knob.name.as_str(), &SettingValue::Default)]).unwrap();
            assert_eq!(unset, TestSpec::default(), "{}", knob.name);
        }
    }

    /// Every knob of a series can be set, and `default` resets it.
    #[test]
    fn knobs_of_a_series_arrive_as_those_of_a_test() {
        for knob in series_knobs() {
            let setting = match &knob.kind {
                PlanValueKind::Flag => SettingValue::Flag(true),
                PlanValueKind::Whole(..) => SettingValue::Whole(5),
                PlanValueKind::Time => SettingValue::Time(Span::from_ms(7)),
                PlanValueKind::Memory => SettingValue::Memory(Bytes::new(7)),
                PlanValueKind::Share => SettingValue::Share("7%".parse().unwrap()),
                PlanValueKind::Words(words) => SettingValue::Text(words[1].clone()),
                PlanValueKind::Text => SettingValue::Text("1..4".to_owned()),
                other => panic!("{}: {other:?}", knob.name),
            };
            assert_ne!(series([(knob, &setting)]).unwrap(), Sweep::default(), "{}", knob.name);
            assert_eq!(series([(knob, &SettingValue::Default)]).unwrap(), Sweep::default(), "{}", knob.name);
        }
        let sizes = series_knobs().iter().find(|knob| knob.name == "sizes").unwrap();
        let found = series([(sizes, &SettingValue::Text("64,1..4".to_owned()))]).unwrap().sizes.unwrap();
        assert_eq!(found.0, [1, 2, 4, 64].map(Bytes::new));
    }

    #[test]
    fn an_unknown_knob_and_a_wrong_text_are_named() {
        assert_eq!(knob("widnow").unwrap_err(), "; did you mean 'window'?");
        assert_eq!(knob("window_bytes").unwrap_err(), "; write 'window', and the unit in its value");
        let (name, text) = spec([("bind_address", &SettingValue::Text("here".to_owned()))]).unwrap_err();
        assert_eq!(name, "bind_address");
        assert!(text.contains("invalid IP address"), "{text}");
    }
}
