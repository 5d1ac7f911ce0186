//! The files of a plan: the plan, its includes, and settings of the command line.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::io;

use linerate_config::{
    ConfigContent, ConfigEntry, ConfigTable, ConfigValue, Mistakes, SourcePosition, hint, parse,
};

use crate::axis::{DIVISION_KEYS, RANGE_KEYS};
use crate::error::Source;
use crate::keys::{HEAD, TABLES};
use crate::kind::texts;

/// Access to what a plan refers to.
pub trait Surroundings {
    /// The text of the file `name`, which the plan file `relative_to` includes, with its name for messages.
    ///
    /// # Errors
    /// It cannot be read.
    fn include(&self, name: &str, relative_to: &str) -> Result<Source, SurroundingsError>;

    /// The text of the topology that `topology` names in the plan file `relative_to`.
    ///
    /// # Errors
    /// It cannot be read.
    fn topology(&self, topology: &str, relative_to: &str) -> Result<Source, SurroundingsError>;

    /// The hosts of a topology with these keys set.
    ///
    /// # Errors
    /// There is no such network.
    fn hosts(
        &self,
        topology: &str,
        set: &[(&str, &str)],
        relative_to: &str,
    ) -> Result<Vec<String>, SurroundingsError>;
}

/// Why something that a plan refers to cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurroundingsError {
    /// A file cannot be read.
    #[error("{file} cannot be read")]
    File {
        /// The file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A topology is neither bundled nor a file that can be read.
    #[error(
        "there is no bundled topology '{topology}'{}; {file} cannot be read either",
        linerate_config::hint(topology, bundled.iter().copied())
    )]
    Topology {
        /// The topology, as the plan names it.
        topology: String,
        /// The bundled ones.
        bundled: Vec<&'static str>,
        /// The file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The topology does not describe a network with these keys, in one line.
    #[error(transparent)]
    Network(Box<dyn Error + Send + Sync>),
}

/// An error and its cause in one line, for the list of mistakes.
pub(crate) fn with_cause(error: &SurroundingsError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Deeper includes are circular.
const MAX_DEPTH: usize = 8;
/// Largest number of files of a plan.
const MAX_FILES: usize = 64;

/// Reads a plan and its includes. The table is `None` if a file cannot be read or is not valid TOML.
pub(crate) fn load(
    plan: Source,
    around: &dyn Surroundings,
    mistakes: &mut Mistakes,
) -> (Option<ConfigTable>, Vec<Source>) {
    let mut sources = Vec::new();
    let document = add(plan, around, &mut sources, 0, mistakes);
    (document, sources)
}

fn add(
    source: Source,
    around: &dyn Surroundings,
    sources: &mut Vec<Source>,
    depth: usize,
    mistakes: &mut Mistakes,
) -> Option<ConfigTable> {
    let number = sources.len();
    let name = source.name.clone();
    let parsed = parse(&source.text, number, mistakes);
    sources.push(source);
    let mut document = parsed?;
    let Some(entry) = document.get("include").cloned() else { return Some(document) };
    let names = match texts(&entry.value) {
        Ok(names) => names,
        Err(text) => {
            mistakes.add(&entry.value.at, format!("include: {text}"));
            return None;
        }
    };
    if depth == MAX_DEPTH {
        mistakes.add(
            &entry.value.at,
            format!("include: files are nested deeper than {MAX_DEPTH}; check whether one includes itself"),
        );
        return None;
    }
    let mut sound = true;
    // Later includes override earlier ones, and this file overrides both.
    for included in names.iter().rev() {
        if sources.len() >= MAX_FILES {
            mistakes.add(&entry.value.at, format!("include: more than {MAX_FILES} files"));
            return None;
        }
        match around.include(included, &name) {
            Ok(source) => match add(source, around, sources, depth + 1, mistakes) {
                Some(mut below) => {
                    remove_replaced_values(&document, &mut below);
                    underlay(&mut document, below);
                }
                None => sound = false,
            },
            Err(error) => {
                mistakes.add(&entry.value.at, format!("include: {}", with_cause(&error)));
                sound = false;
            }
        }
    }
    sound.then_some(document)
}

/// Removes the values of included axes that this file gives in another form: its list replaces a range, its range a list,
/// and its `points` a `step`.
fn remove_replaced_values(document: &ConfigTable, included: &mut ConfigTable) {
    let (Some(own), Some(included)) = (document.table("axis"), included.table_mut("axis")) else { return };
    for entry in &own.0 {
        let ConfigContent::Table(axis) = &entry.value.content else { continue };
        let Some(below) = included.table_mut(&entry.key) else { continue };
        let sets = |keys: &[&str]| keys.iter().any(|key| axis.get(key).is_some());
        let mut remove = |keys: &[&str]| keys.iter().for_each(|key| below.remove(key));
        if sets(&["values"]) {
            remove(RANGE_KEYS);
            remove(&["labels"]);
        } else if sets(RANGE_KEYS) {
            remove(&["values", "labels"]);
        }
        if sets(DIVISION_KEYS) {
            remove(DIVISION_KEYS);
        }
    }
}

/// Adds the entries of `lower` that `upper` does not have.
fn underlay(upper: &mut ConfigTable, lower: ConfigTable) {
    let places: HashMap<String, usize> =
        upper.0.iter().enumerate().map(|(at, own)| (own.key.clone(), at)).collect();
    for entry in lower.0 {
        match places.get(&entry.key).and_then(|at| upper.0.get_mut(*at)) {
            None => upper.0.push(entry),
            Some(own) => {
                if let (ConfigContent::Table(own), ConfigContent::Table(below)) =
                    (&mut own.value.content, entry.value.content)
                {
                    underlay(own, below);
                }
            }
        }
    }
}

/// Applies settings of the command line to a plan: `test.duration=5s`, `repeats=3`, `host.a.address=192.0.2.1`,
/// `axis.window=64K,1M`, `lab.set.buffer=1MB`, `notes.nic=x`. A setting of a knob of `test` replaces an axis over that knob,
/// and the settings of single flows. Returns the axes that lost values.
pub(crate) fn apply(
    document: &mut ConfigTable,
    settings: &[String],
    mistakes: &mut Mistakes,
) -> BTreeSet<String> {
    let mut changed = BTreeSet::new();
    for typed in settings {
        let place = SourcePosition::Override(typed.clone());
        let Some((path, value)) = typed.split_once('=') else {
            mistakes.add(&place, "it does not have the form key=value, as in test.duration=5s");
            continue;
        };
        let value = ConfigValue { at: place.clone(), content: ConfigContent::Typed(value.trim().to_owned()) };
        let path: Vec<&str> = path.trim().split('.').collect();
        if let ["axis", name, ..] = path[..] {
            changed.insert(name.to_owned());
        }
        match put(document, &path, value) {
            Ok(forgotten) => changed.extend(forgotten),
            Err(text) => mistakes.add(&place, text),
        }
    }
    changed
}

/// Applies one setting. Returns the axes that it replaces.
fn put(document: &mut ConfigTable, path: &[&str], value: ConfigValue) -> Result<Vec<String>, String> {
    let names = |document: &ConfigTable, kind: &str| -> Vec<String> {
        let table = document.table(kind);
        table.into_iter().flat_map(|table| table.0.iter().map(|entry| entry.key.clone())).collect()
    };
    match path {
        // The files of a plan are read before its settings.
        ["include"] => return Err("a setting cannot include a file; name it in the plan".to_owned()),
        [name] if HEAD.iter().any(|key| key.name == *name) => document.set(path, value),
        ["test", knob] => {
            for entry in document.table_mut("flow").into_iter().flat_map(|flows| &mut flows.0) {
                if let ConfigContent::Table(flow) = &mut entry.value.content {
                    flow.remove(&format!("test.{knob}"));
                }
            }
            document.set(path, value);
            return Ok(remove_axis(document, knob));
        }
        ["lab", "set", key @ ..] if !key.is_empty() => document.set(&["lab", "set", &key.join(".")], value),
        ["lab", key] => document.set(&["lab", key], value),
        ["notes", _] => document.set(path, value),
        [kind @ ("host" | "flow" | "axis"), name, rest @ ..] => {
            let known = names(document, kind);
            // The hosts of a lab are those of its topology, which is read later.
            let may_be_in_lab = *kind == "host" && document.table("lab").is_some();
            if !may_be_in_lab && !known.iter().any(|one| one == name) {
                let hint = hint(name, known.iter().map(String::as_str));
                return Err(format!("the plan has no {kind} '{name}'{hint}"));
            }
            match rest {
                [] | ["values"] if *kind == "axis" => set_values(document, name, value),
                [key] if *kind == "axis" && RANGE_KEYS.contains(key) => {
                    set_range(document, name, key, value)?;
                }
                [] => return Err(format!("add the key of {kind}.{name} to set")),
                _ => document.set(path, value),
            }
        }
        _ => {
            let known = HEAD.iter().map(|key| key.name).chain(TABLES.iter().copied());
            return Err(format!("unknown key '{}'{}", path.join("."), hint(path[0], known)));
        }
    }
    Ok(Vec::new())
}

/// Replaces the values of an axis by a list: the short form, or the list of the long form.
fn set_values(document: &mut ConfigTable, name: &str, value: ConfigValue) {
    match document.table_mut("axis").and_then(|axes| axes.table_mut(name)) {
        Some(axis) => {
            RANGE_KEYS.iter().chain(&["labels"]).for_each(|key| axis.remove(key));
            axis.set(&["values"], value);
        }
        None => document.set(&["axis", name], value),
    }
}

/// Sets a key of the range of an axis. One key without the others cannot replace a list.
fn set_range(document: &mut ConfigTable, name: &str, key: &str, value: ConfigValue) -> Result<(), String> {
    let axis = document.table_mut("axis").and_then(|axes| axes.table_mut(name));
    let Some(axis) = axis.filter(|axis| axis.get("values").is_none()) else {
        return Err(format!(
            "axis '{name}' has a list of values and no range; give another list, as in axis.{name}=1,2,4"
        ));
    };
    if DIVISION_KEYS.contains(&key) {
        DIVISION_KEYS.iter().for_each(|other| axis.remove(other));
    }
    axis.set(&[key], value);
    Ok(())
}

/// Removes an axis that sweeps only this knob of all flows.
fn remove_axis(document: &mut ConfigTable, knob: &str) -> Vec<String> {
    let over = |entry: &ConfigEntry| {
        let key = match &entry.value.content {
            ConfigContent::Table(table) => {
                table.get("key").map(|entry| texts(&entry.value).unwrap_or_default())
            }
            _ => None,
        };
        match key {
            None => entry.key == knob,
            Some(keys) => keys == [format!("test.{knob}")],
        }
    };
    let Some(axes) = document.table_mut("axis") else { return Vec::new() };
    let forgotten = axes.0.iter().filter(|entry| over(entry)).map(|entry| entry.key.clone()).collect();
    axes.0.retain(|entry| !over(entry));
    forgotten
}
