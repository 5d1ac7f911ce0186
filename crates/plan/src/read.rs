//! From the text of a plan to a checked plan.

use std::collections::{BTreeMap, BTreeSet};

use linerate_document::{Content, Entry, Mistakes, Place, Table, check_name, hint};
use linerate_units::Span;

use crate::axis::{Draft, Names};
use crate::error::{PlanError, Source};
use crate::include::{self, Surroundings};
use crate::keys::{FLOW, Fields, HEAD, HOST, LAB, SETTINGS, TABLES};
use crate::kind::{Setting, texts};
use crate::knobs::knob;
use crate::order::MOST_TRIALS;
use crate::plan::{Flow, Host, Lab, Order, Plan};
use crate::read_assert;
use crate::sweep::Grid;

/// The most hosts or flows of a plan.
const MOST_OF_A_KIND: usize = 256;
/// The most tests, one a flow at a point, that a plan may describe.
const MOST_TESTS: usize = 100_000;

/// Reads a plan.
///
/// `settings` are those of the command line, as `test.duration=5s`; they hold over the file.
///
/// # Errors
/// Everything that is wrong with it, each mistake with file, line and column, or with the setting that made it.
pub fn read(plan: Source, settings: &[String], around: &dyn Surroundings) -> Result<Plan, PlanError> {
    let mut mistakes = Mistakes::default();
    let (document, sources) = include::load(plan, around, &mut mistakes);
    let read = document.map(|mut document| {
        include::apply(&mut document, settings, &mut mistakes);
        Reader { document: &document, sources: &sources, around, mistakes: &mut mistakes }.plan()
    });
    match read {
        Some(plan) if mistakes.is_empty() => Ok(plan),
        _ => Err(PlanError::new(mistakes.in_order(), &sources)),
    }
}

pub(crate) struct Reader<'r> {
    document: &'r Table,
    pub(crate) sources: &'r [Source],
    around: &'r dyn Surroundings,
    pub(crate) mistakes: &'r mut Mistakes,
}

impl<'r> Reader<'r> {
    fn plan(&mut self) -> Plan {
        let head = Fields::read(self.document, "", &[HEAD], TABLES, self.mistakes);
        let mut plan = Plan {
            name: head.text("name").unwrap_or_else(|| self.name_of_file()),
            about: head.text("about").unwrap_or_default(),
            notes: self.notes(),
            files: self.sources.iter().map(|source| source.name.clone()).collect(),
            hosts: Vec::new(),
            lab: self.lab(),
            flows: Vec::new(),
            test: self.test(),
            axes: Vec::new(),
            grid: Grid::default(),
            search: None,
            repeats: head.whole("repeats").unwrap_or(1) as u32,
            order: match head.text("order").as_deref() {
                Some("sequential") => Order::Sequential,
                Some("shuffled") => Order::Shuffled,
                _ => Order::Interleaved,
            },
            seed: head.whole("seed").unwrap_or(1),
            pause: head.span("pause").unwrap_or(Span::from_secs(1)),
            max_time: head.span("max_time"),
            assertions: Vec::new(),
        };
        plan.hosts = self.hosts(plan.lab.as_ref());
        plan.flows = self.flows(&plan.hosts);
        let before = self.mistakes.len();
        self.axes(&mut plan);
        if self.mistakes.len() == before {
            let entry = |key: &str| self.document.get(key);
            plan.grid = Grid::read(&plan.axes, entry("zip"), entry("exclude"), self.mistakes);
        }
        if self.mistakes.len() == before && !plan.grid.is_empty() {
            read_assert::read(self, self.document.get("assert"), &mut plan);
            self.check(&plan);
        }
        plan
    }

    fn name_of_file(&mut self) -> String {
        let name = self.sources.first().map_or("", |source| source.name.as_str());
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".toml").unwrap_or(name);
        if check_name(name).is_err() {
            let text = format!("the plan has no name, and '{name}' cannot be one; write name = \"my-plan\"");
            self.mistakes.add(&Place::START, text);
        }
        name.to_owned()
    }

    /// The table at a key, noting it if something else is there.
    fn table(&mut self, key: &str) -> Option<(&'r Entry, &'r Table)> {
        let entry = self.document.get(key)?;
        if let Content::Table(table) = &entry.value.content {
            return Some((entry, table));
        }
        let what = entry.value.content.describe();
        self.mistakes.add(&entry.value.at, format!("{key}: {what} is not a table; write [{key}]"));
        None
    }

    /// The tables `[kind.NAME]`.
    fn named(&mut self, kind: &str) -> Vec<(&'r Entry, &'r Table)> {
        let Some((entry, tables)) = self.table(kind) else { return Vec::new() };
        if tables.0.len() > MOST_OF_A_KIND {
            let text = format!("{} of them; a plan has at most {MOST_OF_A_KIND}", tables.0.len());
            self.mistakes.add(&entry.at, format!("{kind}: {text}"));
            return Vec::new();
        }
        let mut found = Vec::new();
        for entry in &tables.0 {
            if let Err(text) = check_name(&entry.key) {
                self.mistakes.add(&entry.at, text);
            }
            match &entry.value.content {
                Content::Table(table) => found.push((entry, table)),
                other => {
                    let what = other.describe();
                    self.mistakes
                        .add(&entry.at, format!("{kind}.{} is {what}; write [{kind}.NAME]", entry.key));
                }
            }
        }
        found
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

    fn lab(&mut self) -> Option<Lab> {
        let (entry, table) = self.table("lab")?;
        let fields = Fields::read(table, "lab.", &[LAB], &[], self.mistakes);
        let Some(topology) = fields.text("topology") else {
            if table.get("topology").is_none() {
                self.mistakes
                    .add(&entry.at, "the lab has no topology; add topology = \"pair\", or a file's name");
            }
            return None;
        };
        let mut set = BTreeMap::new();
        if let Some(value) = fields.value("set") {
            match &value.content {
                Content::Table(table) => self.lab_settings(table, "", &mut set),
                other => {
                    let text = format!(
                        "lab.set: {} is not a table such as {{ buffer = \"1MB\" }}",
                        other.describe()
                    );
                    self.mistakes.add(&value.at, text);
                }
            }
        }
        Some(Lab { topology, set })
    }

    fn lab_settings(&mut self, table: &Table, prefix: &str, set: &mut BTreeMap<String, String>) {
        for entry in &table.0 {
            let key = format!("{prefix}{}", entry.key);
            match &entry.value.content {
                Content::Table(inner) => self.lab_settings(inner, &format!("{key}."), set),
                Content::Flag(flag) => drop(set.insert(key, flag.to_string())),
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

    fn hosts(&mut self, lab: Option<&Lab>) -> Vec<Host> {
        let mut hosts = Vec::new();
        for (entry, table) in self.named("host") {
            let path = format!("host.{}.", entry.key);
            let fields = Fields::read(table, &path, &[HOST, SETTINGS], &[], self.mistakes);
            let settings = SETTINGS
                .iter()
                .filter_map(|key| Some((key.name.to_owned(), fields.setting(key.name)?.clone())));
            hosts.push(Host {
                name: entry.key.clone(),
                address: fields.text("address"),
                port: fields.whole("port").unwrap_or(5201) as u16,
                interface: fields.text("interface"),
                settings: settings.collect(),
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
        hosts
    }

    /// The hosts of the lab's topology.
    fn lab_hosts(&mut self, lab: &Lab) -> Vec<String> {
        let set: Vec<(&str, &str)> =
            lab.set.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let beside = self.sources.first().map_or("", |source| source.name.as_str());
        match self.around.hosts(&lab.topology, &set, beside) {
            Ok(hosts) => hosts,
            Err(text) => {
                let place = self.document.find("lab.topology").map_or(&Place::START, |entry| &entry.value.at);
                self.mistakes.add(place, format!("lab: {text}"));
                Vec::new()
            }
        }
    }

    fn test(&mut self) -> BTreeMap<String, Setting> {
        let table = self.table("test");
        table.map(|(_, table)| self.knobs(table, "test.")).unwrap_or_default()
    }

    fn knobs(&mut self, table: &Table, path: &str) -> BTreeMap<String, Setting> {
        let mut settings = BTreeMap::new();
        for entry in &table.0 {
            match knob(&entry.key).map(|knob| knob.kind.read_or_default(&entry.value)) {
                Ok(Ok(setting)) => drop(settings.insert(entry.key.clone(), setting)),
                Ok(Err(text)) => self.mistakes.add(&entry.value.at, format!("{path}{}: {text}", entry.key)),
                Err(hint) => {
                    self.mistakes.add(&entry.at, format!("there is no knob {path}{}{hint}", entry.key))
                }
            }
        }
        settings
    }

    fn flows(&mut self, hosts: &[Host]) -> Vec<Flow> {
        let mut flows = Vec::new();
        let tables = self.named("flow");
        for (entry, table) in &tables {
            let path = format!("flow.{}.", entry.key);
            let fields = Fields::read(table, &path, &[FLOW], &[], self.mistakes);
            let end = |reader: &mut Self, key: &str| {
                let Some(value) = fields.value(key) else {
                    if table.get(key).is_none() {
                        reader.mistakes.add(&entry.at, format!("{path}{key} is missing; name a host"));
                    }
                    return String::new();
                };
                let name = fields.text(key).unwrap_or_default();
                if !hosts.iter().any(|host| host.name == name) {
                    let hint = hint(&name, hosts.iter().map(|host| host.name.as_str()));
                    reader.mistakes.add(&value.at, format!("{path}{key}: there is no host '{name}'{hint}"));
                }
                name
            };
            let (from, to) = (end(self, "from"), end(self, "to"));
            let after = fields.value("after").map(|value| (value, texts(value)));
            let after = match after {
                Some((value, Err(text))) => {
                    self.mistakes.add(&value.at, format!("{path}after: {text}"));
                    Vec::new()
                }
                Some((_, Ok(names))) => names,
                None => Vec::new(),
            };
            let test = match fields.value("test").map(|value| (value, &value.content)) {
                Some((_, Content::Table(table))) => self.knobs(table, &format!("{path}test.")),
                Some((value, other)) => {
                    self.mistakes
                        .add(&value.at, format!("{path}test: {} is not a table of knobs", other.describe()));
                    BTreeMap::new()
                }
                None => BTreeMap::new(),
            };
            flows.push(Flow {
                name: entry.key.clone(),
                from,
                to,
                at: fields.span("at").unwrap_or_default(),
                after,
                background: fields.flag("background"),
                test,
            });
        }
        if tables.is_empty() && self.document.get("flow").is_none() {
            flows.extend(self.only_flow(hosts));
        }
        self.check_flows(&flows);
        flows
    }

    /// A plan with two hosts needs no flow: from the first to the second.
    fn only_flow(&mut self, hosts: &[Host]) -> Option<Flow> {
        if let [from, to] = hosts {
            return Some(Flow {
                name: format!("{}-{}", from.name, to.name).chars().take(32).collect(),
                from: from.name.clone(),
                to: to.name.clone(),
                at: Span::ZERO,
                after: Vec::new(),
                background: false,
                test: BTreeMap::new(),
            });
        }
        // A lab that could not be read has been named as the mistake already.
        if self.mistakes.is_empty() {
            let text = match hosts.len() {
                0 => {
                    "the plan names no hosts; add [host.NAME] with address = \"…\", or [lab] with topology = \"…\""
                }
                1 => "the plan has one host; add the other one",
                _ => {
                    "with more than two hosts, say what is measured; add [flow.NAME] with from = \"…\" and to = \"…\""
                }
            };
            self.mistakes.add(&Place::START, text);
        }
        None
    }

    /// Flows that wait for each other, or for what never ends by itself.
    fn check_flows(&mut self, flows: &[Flow]) {
        let place = |name: &str, key: &str| {
            let table = self.document.table("flow").and_then(|flows| flows.get(name));
            let own = table.and_then(|entry| match &entry.value.content {
                Content::Table(table) => table.get(key).map(|entry| entry.value.at.clone()),
                _ => None,
            });
            own.or_else(|| table.map(|entry| entry.at.clone())).unwrap_or(Place::START)
        };
        let mut found = Vec::new();
        for flow in flows {
            if !flow.from.is_empty() && flow.from == flow.to {
                let text = format!("flow.{}: it goes from a host to itself; name another one", flow.name);
                found.push((place(&flow.name, "to"), text));
            }
            for name in &flow.after {
                let path = format!("flow.{}.after", flow.name);
                match flows.iter().find(|other| other.name == *name) {
                    None => {
                        let hint = hint(name, flows.iter().map(|flow| flow.name.as_str()));
                        found.push((
                            place(&flow.name, "after"),
                            format!("{path}: there is no flow '{name}'{hint}"),
                        ));
                    }
                    Some(other) if other.background => {
                        let text = format!(
                            "{path}: '{name}' runs in the background until the others have ended; wait for another one"
                        );
                        found.push((place(&flow.name, "after"), text));
                    }
                    Some(_) => {}
                }
            }
        }
        if let Some(flow) = in_a_circle(flows) {
            let text =
                format!("flow.{}.after: these flows wait for each other; let one of them begin", flow.name);
            found.push((place(&flow.name, "after"), text));
        }
        if let Some(flow) = flows.first().filter(|_| flows.iter().all(|flow| flow.background)) {
            let text =
                "every flow runs in the background, so none of them ever ends; leave background out of one";
            found.push((place(&flow.name, "background"), text.to_owned()));
        }
        for (place, text) in found {
            self.mistakes.add(&place, text);
        }
    }

    fn axes(&mut self, plan: &mut Plan) {
        let Some((_, table)) = self.table("axis") else { return };
        let names = Names {
            hosts: plan.hosts.iter().map(|host| host.name.clone()).collect(),
            flows: plan.flows.iter().map(|flow| flow.name.clone()).collect(),
            lab: plan.lab.is_some(),
        };
        let mut taken: BTreeMap<_, String> = BTreeMap::new();
        let mut searches = Vec::new();
        for entry in &table.0 {
            let Some(draft) = Draft::read(entry, &names, self.mistakes) else { continue };
            for target in &draft.targets {
                if let Some(other) = taken.insert(target.clone(), draft.name.clone()) {
                    let text =
                        format!("axis.{}: axis '{other}' sweeps that already; use one of them", draft.name);
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
                let text = format!("axis.{}: a plan searches one axis; sweep the others", draft.name);
                self.mistakes.add(&draft.at, text);
            }
            plan.search = read_assert::search(self, &draft, &plan.axes);
        }
    }

    /// What only shows when all is put together.
    fn check(&mut self, plan: &Plan) {
        let points = plan.grid.len();
        let trials = points.saturating_mul(plan.repeats as usize);
        if trials > MOST_TRIALS {
            let text = format!(
                "{points} points, {} times each, are {trials} trials; at most are {MOST_TRIALS}",
                plan.repeats
            );
            self.mistakes.add(&Place::START, text);
        }
        let tests = points.saturating_mul(plan.flows.len());
        if tests > MOST_TESTS {
            let text = format!(
                "{points} points of {} flows are {tests} tests; at most are {MOST_TESTS}",
                plan.flows.len()
            );
            self.mistakes.add(&Place::START, text);
            return;
        }
        for number in 0..points {
            if let Err(error) = plan.point(number) {
                let place = self.place_of_knob(plan, &error.flow, error.knob.as_deref());
                self.mistakes.add(&place, error.to_string());
                // The others would say the same.
                break;
            }
        }
        self.check_lab(plan);
    }

    /// Where a knob of a flow is set: by an axis, by the flow, by the plan.
    fn place_of_knob(&self, plan: &Plan, flow: &str, knob: Option<&str>) -> Place {
        let knob = knob.unwrap_or_default();
        let search = plan.search.iter().map(|search| (&search.name, &search.targets));
        let axes = plan.axes.iter().map(|axis| (&axis.name, &axis.targets)).chain(search);
        let sweeps = |targets: &[crate::axis::Target]| {
            targets.iter().any(|target| match target {
                crate::axis::Target::Test(name) => name == knob,
                crate::axis::Target::Flow { flow: of, knob: name } => of == flow && name == knob,
                _ => false,
            })
        };
        let axis = axes.filter(|(_, targets)| sweeps(targets)).map(|(name, _)| format!("axis.{name}"));
        let paths = axis.chain([format!("flow.{flow}.test.{knob}"), format!("test.{knob}")]);
        let mut found = paths.filter_map(|path| self.document.find(&path));
        found.next().map_or(Place::START, |entry| entry.at.clone())
    }

    /// Every value that an axis gives the lab must make a network.
    fn check_lab(&mut self, plan: &Plan) {
        let mut seen = BTreeSet::new();
        for number in 0..plan.grid.len() {
            let Some(lab) = plan.point(number).ok().and_then(|point| point.lab) else { return };
            // What no axis changes was tried when the hosts were looked for.
            if plan.lab.as_ref() == Some(&lab) || !seen.insert(lab.set.clone()) || seen.len() > 1000 {
                continue;
            }
            let set: Vec<(&str, &str)> =
                lab.set.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let beside = self.sources.first().map_or("", |source| source.name.as_str());
            if let Err(text) = self.around.hosts(&lab.topology, &set, beside) {
                let swept = |axis: &&crate::axis::Axis| {
                    axis.targets.iter().any(|target| matches!(target, crate::axis::Target::Lab(_)))
                };
                let axis = plan.axes.iter().find(swept).map(|axis| format!("axis.{}", axis.name));
                let entry = axis.and_then(|path| self.document.find(&path));
                let place = entry.map_or(Place::START, |entry| entry.at.clone());
                self.mistakes.add(&place, format!("the lab cannot be made with this: {text}"));
                return;
            }
        }
    }
}

/// A flow that waits for itself, through others.
fn in_a_circle(flows: &[Flow]) -> Option<&Flow> {
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    loop {
        let free = |flow: &&Flow| {
            let waits = |name: &String| {
                flows.iter().any(|other| other.name == *name) && !placed.contains(name.as_str())
            };
            !placed.contains(flow.name.as_str()) && !flow.after.iter().any(waits)
        };
        let next: Vec<&str> = flows.iter().filter(free).map(|flow| flow.name.as_str()).collect();
        if next.is_empty() {
            return flows.iter().find(|flow| !placed.contains(flow.name.as_str()));
        }
        placed.extend(next);
    }
}
