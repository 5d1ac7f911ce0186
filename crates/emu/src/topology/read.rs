//! Converts the text of a file to a checked topology.

use std::collections::{BTreeMap, BTreeSet};

use linerate_config::{
    ConfigContent, ConfigEntry, ConfigTable, Mistakes, SourcePosition, check_name, hint, parse,
};

use super::direction_keys::{LOSS_MODELS, WAY};
use super::keys::{HEAD, HOST, LINK, SWITCH, TopologyKey};
use super::kind::RejectedValue;
use super::mistake::TopologyError;
use super::overrides::{self, Override};
use super::{Topology, TopologyHost, TopologyLink, TopologySwitch, address, check, parameters};
use crate::link_direction::LinkDirection;
use crate::packet_batch::HashFields;

/// Reads a description. `file_name` is used in mistakes, and as the default name of the network.
///
/// # Errors
/// Every mistake in it, each with line and column, or with the setting that caused it.
pub fn read(text: &str, file_name: &str, overrides: &[Override]) -> Result<Topology, TopologyError> {
    let mut mistakes = Mistakes::default();
    let Some(mut document) = parse(text, 0, &mut mistakes) else {
        return Err(TopologyError::new(file_name, mistakes));
    };
    parameters::check(&document, &mut mistakes);
    overrides::apply(&mut document, overrides, &mut mistakes);
    parameters::resolve(&mut document, &mut mistakes);
    let draft = parse_topology(&document, file_name, &mut mistakes);
    check::all(&draft, &mut mistakes);
    if mistakes.is_empty() { Ok(draft.topology) } else { Err(TopologyError::new(file_name, mistakes)) }
}

/// A parsed topology, with the position of each part.
pub(super) struct ParsedTopology {
    pub(super) topology: Topology,
    /// Parallel to the hosts of the topology.
    pub(super) hosts: Vec<Places>,
    /// Parallel to the switches of the topology.
    pub(super) switches: Vec<Places>,
    /// Parallel to the links of the topology.
    pub(super) links: Vec<LinkPlaces>,
    /// Every name that a link ends at; absent if the ends of some link are not readable.
    pub(super) ends: Option<BTreeSet<String>>,
}

/// Positions of the keys of one table.
pub(super) struct Places {
    /// Position of the table's name.
    pub(super) at: SourcePosition,
    /// Positions of the values that were given.
    pub(super) given: BTreeMap<&'static str, SourcePosition>,
    /// False if a value was wrong and its default is used instead.
    pub(super) sound: bool,
}

/// Positions of a link's keys.
pub(super) struct LinkPlaces {
    pub(super) link: Places,
    pub(super) ends: [SourcePosition; 2],
    pub(super) directions: [Places; 2],
}

impl Places {
    fn new(at: &SourcePosition) -> Self {
        Self { at: at.clone(), given: BTreeMap::new(), sound: true }
    }

    /// Position of the first of these keys that was given, or of the table.
    pub(super) fn of(&self, keys: &[&str]) -> &SourcePosition {
        keys.iter().find_map(|key| self.given.get(*key)).unwrap_or(&self.at)
    }
}

impl LinkPlaces {
    /// True if all its values could be read.
    pub(super) fn sound(&self) -> bool {
        self.link.sound && self.directions.iter().all(|direction| direction.sound)
    }
}

fn parse_topology(document: &ConfigTable, file_name: &str, mistakes: &mut Mistakes) -> ParsedTopology {
    let top = SourcePosition::START;
    let mut draft = ParsedTopology {
        topology: Topology {
            name: String::new(),
            about: String::new(),
            seed: 1,
            hosts: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
        },
        hosts: Vec::new(),
        switches: Vec::new(),
        links: Vec::new(),
        ends: Some(BTreeSet::new()),
    };
    let head = apply(HEAD, &[("", document)], &mut draft.topology, &top, mistakes);
    let known = HEAD.iter().map(|key| key.name).chain(["parameters", "host", "switch", "link"]);
    refuse_unknown(document, "", &known.collect::<Vec<_>>(), mistakes);
    if !head.given.contains_key("name") && document.get("name").is_none() {
        draft.topology.name = name_of_file(file_name, &top, mistakes);
    }
    for (entry, table) in described(document, "host", mistakes) {
        read_host(&mut draft, entry, table, mistakes);
    }
    for (entry, table) in described(document, "switch", mistakes) {
        read_switch(&mut draft, entry, table, mistakes);
    }
    for (entry, table) in described(document, "link", mistakes) {
        read_link(&mut draft, entry, table, mistakes);
    }
    draft
}

fn name_of_file(file_name: &str, top: &SourcePosition, mistakes: &mut Mistakes) -> String {
    let name = file_name.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if check_name(name).is_err() {
        mistakes.add(
            top,
            format!(
                "the network has no name, and the file name '{name}' cannot serve as one; write name = \
                     \"my-network\""
            ),
        );
    }
    name.to_owned()
}

/// The tables `[kind.NAME]`.
fn described<'d>(
    document: &'d ConfigTable,
    kind: &str,
    mistakes: &mut Mistakes,
) -> Vec<(&'d ConfigEntry, &'d ConfigTable)> {
    let Some(entry) = document.get(kind) else { return Vec::new() };
    let ConfigContent::Table(tables) = &entry.value.content else {
        let what = entry.value.content.describe();
        mistakes.add(&entry.at, format!("{kind} is {what}; write [{kind}.NAME] for each {kind}"));
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in &tables.0 {
        if let Err(error) = check_name(&entry.key) {
            mistakes.add(&entry.at, error.to_string());
        }
        match &entry.value.content {
            ConfigContent::Table(table) => found.push((entry, table)),
            other => {
                let text = format!("{kind}.{} is {}; write [{kind}.NAME]", entry.key, other.describe());
                mistakes.add(&entry.at, text);
            }
        }
    }
    found
}

fn read_host(draft: &mut ParsedTopology, entry: &ConfigEntry, table: &ConfigTable, mistakes: &mut Mistakes) {
    let number = draft.topology.hosts.len() + 1;
    let mut host = TopologyHost {
        name: entry.key.clone(),
        v4: address::default_v4(number),
        v6: address::default_v6(number),
        congestion: None,
        sysctl: BTreeMap::new(),
    };
    let path = format!("host.{}.", entry.key);
    draft.hosts.push(apply(HOST, &[(&path, table)], &mut host, &entry.at, mistakes));
    refuse_unknown(table, &path, &names(HOST), mistakes);
    draft.topology.hosts.push(host);
}

fn read_switch(
    draft: &mut ParsedTopology,
    entry: &ConfigEntry,
    table: &ConfigTable,
    mistakes: &mut Mistakes,
) {
    let mut switch = TopologySwitch { name: entry.key.clone(), shared: None };
    let path = format!("switch.{}.", entry.key);
    draft.switches.push(apply(SWITCH, &[(&path, table)], &mut switch, &entry.at, mistakes));
    refuse_unknown(table, &path, &names(SWITCH), mistakes);
    draft.topology.switches.push(switch);
}

fn read_link(draft: &mut ParsedTopology, entry: &ConfigEntry, table: &ConfigTable, mistakes: &mut Mistakes) {
    let path = format!("link.{}.", entry.key);
    let mut link = TopologyLink {
        name: entry.key.clone(),
        ends: [String::new(), String::new()],
        directions: [LinkDirection::default(), LinkDirection::default()],
        members: 1,
        hash: HashFields { mac: false, ip: true, ports: true },
        nic: true,
    };
    let places = apply(LINK, &[(&path, table)], &mut link, &entry.at, mistakes);
    let known = names(LINK).into_iter().chain(names(WAY)).chain(["from"]);
    refuse_unknown(table, &path, &known.collect::<Vec<_>>(), mistakes);

    let has_ends = places.given.contains_key("ends");
    refuse_unknown_directions(table, &path, has_ends.then_some(&link.ends), mistakes);
    let directions = [0, 1].map(|side| {
        let from = format!("{path}from.{}.", link.ends[side]);
        let one_way = table.table("from").and_then(|directions| directions.table(&link.ends[side]));
        read_direction(
            &mut link.directions[side],
            (&path, table),
            one_way.map(|direction| (&*from, direction)),
            &entry.at,
            mistakes,
        )
    });
    if !has_ends {
        if table.get("ends").is_none() {
            let what = format!("link '{}' has no ends; add ends = [\"…\", \"…\"]", entry.key);
            mistakes.add(&entry.at, what);
        }
        draft.ends = None;
        return;
    }
    if let Some(seen) = &mut draft.ends {
        seen.extend(link.ends.iter().cloned());
    }
    draft.links.push(LinkPlaces { link: places, ends: ends_places(table, &entry.at), directions });
    draft.topology.links.push(link);
}

/// Positions of the two names in `ends`.
fn ends_places(table: &ConfigTable, at: &SourcePosition) -> [SourcePosition; 2] {
    let value = table.get("ends").map(|entry| &entry.value);
    let whole = value.map_or(at, |value| &value.at);
    [0, 1].map(|side| match value.map(|value| &value.content) {
        Some(ConfigContent::List(items)) => items.get(side).map_or(whole, |item| &item.at).clone(),
        _ => whole.clone(),
    })
}

/// Reports directions that the link does not have, and keys that no direction has.
fn refuse_unknown_directions(
    link: &ConfigTable,
    path: &str,
    ends: Option<&[String; 2]>,
    mistakes: &mut Mistakes,
) {
    let Some(entry) = link.get("from") else { return };
    let ConfigContent::Table(directions) = &entry.value.content else {
        let text = format!("{path}from is {}; write [{path}from.NODE]", entry.value.content.describe());
        mistakes.add(&entry.at, text);
        return;
    };
    for entry in &directions.0 {
        if let Some([one, other]) = ends.filter(|ends| !ends.contains(&entry.key)) {
            let text =
                format!("{path}from.{}: the link joins '{one}' and '{other}'; name one of them", entry.key);
            mistakes.add(&entry.at, text);
        }
        match &entry.value.content {
            ConfigContent::Table(direction) => {
                let whole = |entry: &&ConfigEntry| LINK.iter().any(|key| key.name == entry.key);
                for ConfigEntry { key, at, .. } in direction.0.iter().filter(whole) {
                    let link = path.trim_end_matches('.');
                    mistakes.add(at, format!("{key} applies to the whole link; write it in [{link}]"));
                }
                let known = [names(WAY), names(LINK)].concat();
                refuse_unknown(direction, &format!("{path}from.{}.", entry.key), &known, mistakes);
            }
            other => {
                let text =
                    format!("{path}from.{} is {}; write [{path}from.NODE]", entry.key, other.describe());
                mistakes.add(&entry.at, text);
            }
        }
    }
}

/// Reads one direction: its own settings take precedence over those of the link.
fn read_direction(
    direction: &mut LinkDirection,
    link: (&str, &ConfigTable),
    one_way: Option<(&str, &ConfigTable)>,
    at: &SourcePosition,
    mistakes: &mut Mistakes,
) -> Places {
    let mut whole = link.1.clone();
    if one_way.is_some_and(|(_, table)| LOSS_MODELS.iter().any(|model| table.get(model).is_some())) {
        LOSS_MODELS.iter().for_each(|model| whole.remove(model));
    }
    let layers: Vec<(&str, &ConfigTable)> = one_way.into_iter().chain([(link.0, &whole)]).collect();
    for (path, table) in &layers {
        let given: Vec<&ConfigEntry> = LOSS_MODELS.iter().filter_map(|model| table.get(model)).collect();
        if let [_, _, ..] = given[..] {
            let keys: Vec<String> = given.iter().map(|entry| format!("'{}'", entry.key)).collect();
            let last = given.iter().map(|entry| &entry.at).max().unwrap_or(at);
            let path = path.trim_end_matches('.');
            mistakes
                .add(last, format!("{path}: {} are alternative loss models; keep one", keys.join(" and ")));
        }
    }
    apply(WAY, &layers, direction, at, mistakes)
}

/// Reads the keys of a table, each from the first layer that has it.
fn apply<T>(
    keys: &[TopologyKey<T>],
    layers: &[(&str, &ConfigTable)],
    target: &mut T,
    at: &SourcePosition,
    mistakes: &mut Mistakes,
) -> Places {
    let mut places = Places::new(at);
    for key in keys {
        let Some((layer, entry)) = winner(layers, key.name) else { continue };
        let is_table = matches!(entry.value.content, ConfigContent::Table(_));
        let place = if is_table { &entry.at } else { &entry.value.at };
        match key.kind.apply(target, &entry.value) {
            Ok(()) => {
                places.given.insert(key.name, place.clone());
            }
            // The required setting may be the one that was wrong.
            Err(RejectedValue::Needs(_)) if !places.sound => {}
            // A layer that removes a setting also removes refinements of it in other layers.
            Err(RejectedValue::Needs(needs))
                if winner(layers, needs.key())
                    .is_some_and(|(other, needed)| other < layer || is_typed(needed) && !is_typed(entry)) => {
            }
            Err(refusal) => {
                places.sound &= matches!(refusal, RejectedValue::Needs(_));
                mistakes.add(place, format!("{}{}: {refusal}", layers[layer].0, key.name));
            }
        }
    }
    places
}

/// The first layer that has a key, and the entry there.
fn winner<'t>(layers: &[(&str, &'t ConfigTable)], key: &str) -> Option<(usize, &'t ConfigEntry)> {
    layers.iter().enumerate().find_map(|(layer, (_, table))| Some((layer, table.find(key)?)))
}

fn is_typed(entry: &ConfigEntry) -> bool {
    matches!(entry.value.at, SourcePosition::Override(_))
}

fn names<T>(keys: &'static [TopologyKey<T>]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// Reports unknown keys. A name with a dot denotes a nested table.
fn refuse_unknown(table: &ConfigTable, path: &str, known: &[&str], mistakes: &mut Mistakes) {
    for entry in &table.0 {
        if known.contains(&entry.key.as_str()) {
            continue;
        }
        let prefix = format!("{}.", entry.key);
        let inner: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(&prefix)).collect();
        let path_here = format!("{path}{}", entry.key);
        if inner.is_empty() {
            mistakes.add_with(&entry.at, || {
                let firsts: BTreeSet<&str> = known.iter().filter_map(|name| name.split('.').next()).collect();
                format!("unknown key {path_here}{}", hint(&entry.key, firsts))
            });
        } else if let ConfigContent::Table(table) = &entry.value.content {
            refuse_unknown(table, &format!("{path_here}."), &inner, mistakes);
        } else {
            let what = entry.value.content.describe();
            mistakes
                .add(&entry.value.at, format!("{path_here}: {what} is not a table of {}", inner.join(", ")));
        }
    }
}
