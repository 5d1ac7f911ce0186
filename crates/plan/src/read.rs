//! Turns the text of a plan into a checked plan.

mod assertions;
mod check;
mod flows;
mod series;

use std::collections::{BTreeMap, BTreeSet};

use linerate_config::{ConfigContent, ConfigEntry, ConfigTable, Mistakes, SourcePosition, check_name, hint};
use linerate_units::Span;
use twox_hash::XxHash64;

use crate::axis::{AxisTable, Names};
use crate::error::{PlanError, Source};
use crate::include::{self, Surroundings};
use crate::keys::{Fields, HEAD, HOST, LAB, SETTINGS, TABLES, named_tables};
use crate::kind::SettingValue;
use crate::knobs::read_knobs;
use crate::method::Method;
use crate::plan::{Host, Plan, PlanLab, TrialOrder};
use crate::sweep::Grid;

/// Largest number of hosts, flows or axes in a plan.
const MAX_PER_KIND: usize = 256;

/// Reads a plan.
///
/// `settings` are those of the command line, such as `test.duration=5s`; they override the file.
///
/// # Errors
/// All mistakes, each with file, line and column, or with the setting that caused it.
pub fn read(plan: Source, settings: &[String], around: &dyn Surroundings) -> Result<Plan, PlanError> {
    let mut mistakes = Mistakes::default();
    let (document, sources) = include::load(plan, around, &mut mistakes);
    let read = document.map(|mut document| {
        let changed = include::apply(&mut document, settings, &mut mistakes);
        PlanReader { document: &document, sources: &sources, around, changed, mistakes: &mut mistakes }.plan()
    });
    match read {
        Some(plan) if mistakes.is_empty() => Ok(plan),
        _ => Err(PlanError::new(mistakes.in_order(), &sources)),
    }
}

struct PlanReader<'r> {
    document: &'r ConfigTable,
    pub(crate) sources: &'r [Source],
    around: &'r dyn Surroundings,
    /// Axes that settings of the command line changed: references to their values in the file may be void.
    pub(crate) changed: BTreeSet<String>,
    pub(crate) mistakes: &'r mut Mistakes,
}

impl<'r> PlanReader<'r> {
    fn plan(&mut self) -> Plan {
        let head = Fields::read(self.document, "", &[HEAD], TABLES, self.mistakes);
        let mut plan = Plan {
            name: head.text("name").unwrap_or_else(|| self.name_of_file()),
            about: head.text("about").unwrap_or_default(),
            notes: self.notes(),
            files: self.sources.to_vec(),
            hosts: Vec::new(),
            lab: self.lab(),
            topology_digest: None,
            flows: Vec::new(),
            test: self.test(),
            axes: Vec::new(),
            grid: Grid::default(),
            search: None,
            repeats: head.whole("repeats").unwrap_or(1) as u32,
            until: match head.setting("until") {
                Some(SettingValue::Share(share)) => Some(*share),
                _ => None,
            },
            max_repeats: head.whole("max_repeats").unwrap_or(30) as u32,
            method: head.text("method").as_deref().and_then(Method::named),
            order: match head.text("order").as_deref() {
                Some("sequential") => TrialOrder::Sequential,
                Some("shuffled") => TrialOrder::Shuffled,
                _ => TrialOrder::Interleaved,
            },
            seed: head.whole("seed").unwrap_or(1),
            pause: head.span("pause").unwrap_or(Span::from_secs(1)),
            distance_km: head.whole("distance"),
            max_time: head.span("max_time"),
            assertions: Vec::new(),
            left_out: Vec::new(),
        };
        plan.hosts = self.hosts(plan.lab.as_ref());
        plan.topology_digest = plan.lab.as_ref().and_then(|lab| self.topology_digest(lab));
        plan.flows = self.flows(&plan.hosts);
        let before = self.mistakes.len();
        self.axes(&mut plan);
        if self.mistakes.len() == before {
            let entry = |key: &str| self.document.get(key);
            plan.grid = Grid::read(&plan.axes, &self.changed, entry("zip"), entry("exclude"), self.mistakes);
        }
        if self.mistakes.len() == before && !plan.grid.is_empty() {
            assertions::read(self, self.document.get("assert"), &mut plan);
            self.check(&plan);
        }
        plan
    }

    fn name_of_file(&mut self) -> String {
        let name = self.sources.first().map_or("", |source| source.name.as_str());
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".toml").unwrap_or(name);
        if check_name(name).is_err() {
            let text = format!(
                "the plan has no name, and the file name '{name}' cannot serve as one; write \
                                name = \"my-plan\""
            );
            self.mistakes.add(&SourcePosition::START, text);
        }
        name.to_owned()
    }

    /// The table at a key. Notes a mistake if it is not a table.
    fn table(&mut self, key: &str) -> Option<(&'r ConfigEntry, &'r ConfigTable)> {
        let entry = self.document.get(key)?;
        if let ConfigContent::Table(table) = &entry.value.content {
            return Some((entry, table));
        }
        let what = entry.value.content.describe();
        self.mistakes.add(&entry.value.at, format!("{key}: {what} is not a table; write [{key}]"));
        None
    }

    /// The tables `[kind.NAME]`.
    fn named(&mut self, kind: &str) -> Vec<(&'r ConfigEntry, &'r ConfigTable)> {
        let Some((entry, tables)) = self.table(kind) else { return Vec::new() };
        named_tables(entry, tables, (MAX_PER_KIND, "a plan"), self.mistakes)
    }

    fn notes(&mut self) -> BTreeMap<String, String> {
        let Some((_, table)) = self.table("notes") else { return BTreeMap::new() };
        let mut notes = BTreeMap::new();
        for entry in &table.0 {
            match entry.value.text() {
                Some(text) => drop(notes.insert(entry.key.clone(), text.to_owned())),
                None => {
                    let what = entry.value.content.describe();
                    self.mistakes.add(&entry.value.at, format!("notes.{}: {what} is not a text", entry.key));
                }
            }
        }
        notes
    }

    fn lab(&mut self) -> Option<PlanLab> {
        let (entry, table) = self.table("lab")?;
        let fields = Fields::read(table, "lab.", &[LAB], &[], self.mistakes);
        let Some(topology) = fields.text("topology") else {
            if table.get("topology").is_none() {
                self.mistakes.add(
                    &entry.at,
                    "the lab has no topology; add topology = \"pair\", or the name of a file",
                );
            }
            return None;
        };
        let mut set = BTreeMap::new();
        if let Some(value) = fields.value("set") {
            match &value.content {
                ConfigContent::Table(table) => self.lab_settings(table, "", &mut set),
                other => {
                    let text = format!(
                        "lab.set: {} is not a table such as {{ buffer = \"1MB\" }}",
                        other.describe()
                    );
                    self.mistakes.add(&value.at, text);
                }
            }
        }
        Some(PlanLab { topology, set })
    }

    fn lab_settings(&mut self, table: &ConfigTable, prefix: &str, set: &mut BTreeMap<String, String>) {
        for entry in &table.0 {
            let key = format!("{prefix}{}", entry.key);
            match &entry.value.content {
                ConfigContent::Table(inner) => self.lab_settings(inner, &format!("{key}."), set),
                ConfigContent::Flag(flag) => drop(set.insert(key, flag.to_string())),
                other => match entry.value.text() {
                    Some(text) => drop(set.insert(key, text.to_owned())),
                    None => {
                        let text = format!("lab.set.{key}: {} is not a value", other.describe());
                        self.mistakes.add(&entry.value.at, text);
                    }
                },
            }
        }
    }

    fn hosts(&mut self, lab: Option<&PlanLab>) -> Vec<Host> {
        let mut hosts = Vec::new();
        for (entry, table) in self.named("host") {
            let path = format!("host.{}.", entry.key);
            let fields = Fields::read(table, &path, &[HOST, SETTINGS], &[], self.mistakes);
            let settings = SETTINGS
                .iter()
                .filter_map(|key| Some((key.name.to_owned(), fields.setting(key.name)?.clone())));
            let settings: Vec<_> = settings.collect();
            let address = fields.text("address");
            let typed = table.get("address").zip(address.as_deref());
            if let Some((entry, (alone, port))) =
                typed.and_then(|(entry, text)| Some((entry, with_port(text)?)))
            {
                let text = format!(
                    "{path}address: the port is a separate key; write address = \"{alone}\" and port = {port}"
                );
                self.mistakes.add(&entry.value.at, text);
            }
            hosts.push(Host {
                name: entry.key.clone(),
                address,
                port: fields.whole("port").unwrap_or(5201) as u16,
                interface: fields.text("interface"),
                settings: settings.into_iter().collect(),
                in_lab: false,
            });
        }
        for name in lab.map(|lab| self.lab_hosts(lab)).unwrap_or_default() {
            match hosts.iter_mut().find(|host| host.name == name) {
                Some(host) => host.in_lab = true,
                None => hosts.push(Host {
                    name,
                    address: None,
                    port: 5201,
                    interface: None,
                    settings: BTreeMap::new(),
                    in_lab: true,
                }),
            }
        }
        self.check_typed_hosts(&hosts);
        hosts
    }

    /// A host that only `--set` names has to be one of the lab.
    fn check_typed_hosts(&mut self, hosts: &[Host]) {
        for (entry, _) in self.named("host") {
            let is_typed = matches!(entry.at, SourcePosition::Override(_));
            if is_typed && !hosts.iter().any(|host| host.in_lab && host.name == entry.key) {
                let others = hosts.iter().map(|host| host.name.as_str()).filter(|name| *name != entry.key);
                let text = format!("the plan has no host '{}'{}", entry.key, hint(&entry.key, others));
                self.mistakes.add(&entry.at, text);
            }
        }
    }

    /// The hosts of the lab's topology.
    fn lab_hosts(&mut self, lab: &PlanLab) -> Vec<String> {
        let set: Vec<(&str, &str)> =
            lab.set.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let relative_to = self.sources.first().map_or("", |source| source.name.as_str());
        match self.around.hosts(&lab.topology, &set, relative_to) {
            Ok(hosts) => hosts,
            Err(error) => {
                let place = self
                    .document
                    .find("lab.topology")
                    .map_or(&SourcePosition::START, |entry| &entry.value.at);
                self.mistakes.add(place, format!("lab: {}", include::with_cause(&error)));
                Vec::new()
            }
        }
    }

    /// Digest of the text of the lab's topology. If that cannot be read, its hosts could not be read either.
    fn topology_digest(&self, lab: &PlanLab) -> Option<u64> {
        let relative_to = self.sources.first().map_or("", |source| source.name.as_str());
        let topology = self.around.topology(&lab.topology, relative_to).ok()?;
        Some(XxHash64::oneshot(0, topology.text.as_bytes()))
    }

    fn test(&mut self) -> BTreeMap<String, SettingValue> {
        let table = self.table("test");
        table.map(|(_, table)| self.knobs(table, "test.")).unwrap_or_default()
    }

    fn knobs(&mut self, table: &ConfigTable, path: &str) -> BTreeMap<String, SettingValue> {
        read_knobs(table, path, self.mistakes)
    }

    fn axes(&mut self, plan: &mut Plan) {
        let Some((at, table)) = self.table("axis") else { return };
        if table.0.len() > MAX_PER_KIND {
            let text = format!("axis: {} axes; a plan has at most {MAX_PER_KIND}", table.0.len());
            self.mistakes.add(&at.at, text);
            return;
        }
        let names = Names {
            hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: plan.flows.iter().map(|flow| flow.name.clone()).collect(),
            lab: plan.lab.is_some(),
        };
        let mut taken: BTreeMap<_, String> = BTreeMap::new();
        let mut searches = Vec::new();
        for entry in &table.0 {
            let Some(draft) = AxisTable::read(entry, &names, self.mistakes) else { continue };
            for target in &draft.targets {
                if let Some(other) = taken.insert(target.clone(), draft.name.clone()) {
                    let text = format!(
                        "axis.{}: axis '{other}' already sweeps this key; remove one of them",
                        draft.name
                    );
                    self.mistakes.add(&draft.at, text);
                }
            }
            if draft.is_search() {
                searches.push(draft);
            } else {
                plan.axes.extend(draft.into_axis(self.mistakes));
            }
        }
        for (number, draft) in searches.into_iter().enumerate() {
            if number > 0 {
                let text = format!("axis.{}: a plan can search only one axis; sweep the others", draft.name);
                self.mistakes.add(&draft.at, text);
            }
            plan.search = assertions::search(self, &draft, &plan.axes);
        }
    }
}

/// Splits an address from a port after it, as in `192.0.2.1:5202`, `name:5202` or `[2001:db8::1]:5202`.
fn with_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    // An IPv6 address contains colons.
    let alone = bare.or_else(|| (!host.contains(':')).then_some(host)).filter(|host| !host.is_empty())?;
    Some((alone, port.parse().ok()?))
}
