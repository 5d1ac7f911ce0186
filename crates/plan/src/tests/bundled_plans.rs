//! Tests of the bundled plans.

use crate::{Source, Surroundings, SurroundingsError, bundled, read, schema};

/// The topologies of the bundled plans have these hosts. Settings of topologies are tested elsewhere.
struct BundledTopologies;

impl Surroundings for BundledTopologies {
    fn include(&self, name: &str, _: &str) -> Result<Source, SurroundingsError> {
        panic!("no bundled plan includes {name}")
    }

    fn topology(&self, topology: &str, _: &str) -> Result<Source, SurroundingsError> {
        Ok(Source { name: topology.to_owned(), text: String::new() })
    }

    fn hosts(&self, topology: &str, _: &[(&str, &str)], _: &str) -> Result<Vec<String>, SurroundingsError> {
        let count = if ["gigabit-switch-4", "science-dmz"].contains(&topology) { 4 } else { 2 };
        Ok(["a", "b", "c", "d"][..count].iter().map(|name| (*name).to_owned()).collect())
    }
}

fn plans() -> impl Iterator<Item = crate::Plan> {
    bundled().iter().map(|known| {
        let source = Source { name: format!("{}.toml", known.name), text: known.text.to_owned() };
        read(source, &[], &BundledTopologies).unwrap_or_else(|error| panic!("{error}"))
    })
}

#[test]
fn every_bundled_plan_reads_and_says_what_the_list_says() {
    for (plan, known) in plans().zip(bundled()) {
        assert_eq!((plan.name.as_str(), plan.about.as_str()), (known.name, known.about));
        assert!(known.text.starts_with('#') && known.text.contains("What to look for"), "{}", known.name);
    }
}

/// Counted by hand from the comments of the files.
#[test]
fn bundled_plans_have_the_points_that_they_describe() {
    let counts: Vec<(String, usize, u32)> =
        plans().map(|plan| (plan.name.clone(), plan.grid.len(), plan.repeats)).collect();
    let count = |name: &str| {
        counts.iter().find(|(one, ..)| one == name).map(|(_, points, repeats)| (*points, *repeats))
    };
    assert_eq!(count("window-sweep"), Some((13, 6)));
    assert_eq!(count("block-size"), Some((1, 6)));
    assert_eq!(count("bufferbloat"), Some((2 * 2, 6)));
    assert_eq!(count("switch-matrix"), Some((3 * 3 * 2, 3)));
    assert_eq!(count("switch-buffer"), Some((5 * 2 - 4, 6)));
    assert_eq!(count("buffer-burst"), Some((2, 20)));
    assert_eq!(count("buffer-step"), Some((4, 6)));
    assert_eq!(count("nic-roundup"), Some((4 * 2, 7)));
    assert_eq!(count("rfc6349"), Some((4 * 2 * 2, 3)));
    assert_eq!(count("rfc2544"), Some((6, 1)));
    assert_eq!(count("rfc2544-bursts"), Some((6, 5)));
    assert_eq!(count("rrul"), Some((1, 1)));
    assert_eq!(count("fan-in"), Some((3 * 2, 3)));
    assert_eq!(count("fan-out"), Some((3 * 2, 3)));
    assert_eq!(count("multicast"), Some((3, 3)));
}

/// Every key of a bundled plan is in the schema, at its position.
#[test]
fn every_key_of_a_bundled_plan_is_in_the_schema() {
    let schema = schema();
    for known in bundled() {
        let mut mistakes = linerate_config::Mistakes::default();
        let document = linerate_config::parse(known.text, 0, &mut mistakes).unwrap();
        for entry in &document.0 {
            assert!(schema["properties"].get(&entry.key).is_some(), "{}.{}", known.name, entry.key);
            let below = match entry.key.as_str() {
                "flow" | "axis" | "host" => format!("/$defs/{}/properties", entry.key),
                "test" | "lab" => format!("/$defs/{}/properties", entry.key),
                _ => continue,
            };
            let known_keys = schema.pointer(&below).unwrap();
            let linerate_config::ConfigContent::Table(table) = &entry.value.content else { continue };
            for inner in &table.0 {
                let keys: Vec<&str> = match &inner.value.content {
                    linerate_config::ConfigContent::Table(keys) if entry.key != "lab" => {
                        keys.0.iter().map(|key| key.key.as_str()).collect()
                    }
                    _ if entry.key == "axis" => Vec::new(),
                    _ => vec![&inner.key],
                };
                for key in keys {
                    assert!(known_keys.get(key).is_some(), "{}.{}.{key}", known.name, entry.key);
                }
            }
        }
    }
}
