//! Turns the text of a fleet's file into an inventory.

use linerate_config::{
    ConfigContent, ConfigEntry, ConfigTable, ConfigValue, Mistakes, SourcePosition, check_name, hint,
};
use linerate_model::TestSpec;
use linerate_model::calendar::{AlarmLimits, QuietHours, Resource, ResourceKind};
use linerate_plan::file_keys::{Fields, named_tables, read_test, texts};
use linerate_plan::{PlanError, SettingValue, Source};
use linerate_units::{Bitrate, Ratio, Span};

use super::keys::{ALARM, HEAD, HOST, MESH, NOTIFY, SHARED, TABLES};
use crate::inventory::{AHEAD, FleetHost, Inventory, Mesh, MeshTemplate, Notify, SharedResource};
use crate::recurrence::{MAX_SLIP, zone};

/// Largest number of hosts of a fleet, of each kind of resource, and of meshes.
const MAX_PER_KIND: usize = 20_000;
/// How much later than due a test of a crontab expression may begin.
const CRON_SLIP: Span = Span::from_secs(3600);

/// A link of a topology, for fleets whose file names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyPath {
    /// The hosts at the ends of the path.
    pub hosts: (String, String),
    /// Names of the links on it, and the number of members of each.
    pub links: Vec<(String, u32)>,
}

/// Reads a fleet's file. `paths` gives the paths between all hosts of a topology, for a file that names one.
///
/// # Errors
/// All mistakes, each with line and column.
pub fn read(
    file: &Source,
    paths: &dyn Fn(&str) -> Result<Vec<TopologyPath>, String>,
) -> Result<Inventory, PlanError> {
    let mut mistakes = Mistakes::default();
    let document = linerate_config::parse(&file.text, 0, &mut mistakes);
    let read = document.map(|document| {
        FleetReader { document: &document, mistakes: &mut mistakes }.fleet(&file.name, paths)
    });
    match read {
        Some(fleet) if mistakes.is_empty() => Ok(fleet),
        _ => Err(PlanError::of(mistakes, std::slice::from_ref(file))),
    }
}

pub(super) struct FleetReader<'r> {
    document: &'r ConfigTable,
    pub(super) mistakes: &'r mut Mistakes,
}

impl<'r> FleetReader<'r> {
    fn fleet(&mut self, file: &str, paths: &dyn Fn(&str) -> Result<Vec<TopologyPath>, String>) -> Inventory {
        let head = Fields::read(self.document, "", &[HEAD], TABLES, self.mistakes);
        let mut fleet = Inventory {
            name: head.text("name").unwrap_or_else(|| name_of_file(file)),
            zone: head.text("zone").unwrap_or_else(|| "UTC".to_owned()),
            set_up: head.span("set_up").unwrap_or(Span::from_secs(3)),
            settle: head.span("settle").unwrap_or(Span::from_secs(2)),
            ahead: head.span("ahead").unwrap_or(AHEAD),
            keep_days: head.whole("keep_days").unwrap_or(90) as u32,
            hosts: self.hosts(),
            shared: Vec::new(),
            meshes: Vec::new(),
            notify: Notify::default(),
        };
        if let (Some(value), Err(error)) = (head.value("zone"), zone(&fleet.zone)) {
            self.mistakes.add(&value.at, format!("zone: {error}"));
            fleet.zone = "UTC".to_owned();
        }
        // A coordinator looks at its calendar about twice a second.
        for (key, least, most) in [("set_up", 1, 3600), ("settle", 0, 3600), ("ahead", 60, 24 * 3600)] {
            let (least, most) = (Span::from_secs(least), Span::from_secs(most));
            if let (Some(value), Some(span)) = (head.value(key), head.span(key))
                && !(least..=most).contains(&span)
            {
                self.mistakes
                    .add(&value.at, format!("{key}: {span} is not possible; give {least} to {most}"));
            }
        }
        for kind in [ResourceKind::Nic, ResourceKind::Link, ResourceKind::Lag, ResourceKind::Group] {
            let shared = self.shared(kind, &fleet.hosts);
            fleet.shared.extend(shared);
        }
        if let (Some(value), Some(topology)) = (head.value("topology"), head.text("topology")) {
            self.add_topology(value, &topology, paths, &mut fleet);
        }
        fleet.meshes = self.meshes(&fleet);
        fleet.notify = self.notify();
        self.check_pairs(&fleet);
        fleet
    }

    /// The tables `[kind.NAME]`.
    fn named(&mut self, kind: &str) -> Vec<(&'r ConfigEntry, &'r ConfigTable)> {
        let Some(entry) = self.document.get(kind) else { return Vec::new() };
        let ConfigContent::Table(tables) = &entry.value.content else {
            let what = entry.value.content.describe();
            self.mistakes.add(&entry.value.at, format!("{kind}: {what} is not a table; write [{kind}.NAME]"));
            return Vec::new();
        };
        named_tables(entry, tables, (MAX_PER_KIND, "a fleet"), self.mistakes)
    }

    fn hosts(&mut self) -> Vec<FleetHost> {
        let mut hosts = Vec::new();
        for (entry, table) in self.named("host") {
            let path = format!("host.{}.", entry.key);
            let fields = Fields::read(table, &path, &[HOST], &[], self.mistakes);
            let address = fields.text("address");
            if address.is_none() && table.get("address").is_none() {
                self.mistakes.add(
                    &entry.at,
                    format!("{path}address is missing; give the name or address of its agent"),
                );
            }
            hosts.push(FleetHost {
                name: entry.key.clone(),
                address: address.unwrap_or_default(),
                port: fields.whole("port").unwrap_or(5201) as u16,
                test_address: fields.text("test_address"),
                labels: self.texts(&fields, "labels", &path),
                capacity: fields.whole("capacity").unwrap_or(1) as u32,
            });
        }
        if hosts.is_empty() && self.mistakes.is_empty() {
            self.mistakes
                .add(&SourcePosition::START, "the fleet has no hosts; add [host.NAME] with address = \"…\"");
        }
        hosts
    }

    fn shared(&mut self, kind: ResourceKind, hosts: &[FleetHost]) -> Vec<SharedResource> {
        let mut all = Vec::new();
        for (entry, table) in self.named(kind.name()) {
            let path = format!("{}.{}.", kind.name(), entry.key);
            let fields = Fields::read(table, &path, &[SHARED], &[], self.mistakes);
            let shared = SharedResource {
                resource: Resource::new(kind, &entry.key, fields.whole("capacity").unwrap_or(1) as u32),
                hosts: self.known_hosts(&fields, "hosts", &path, hosts),
                pairs: self.pairs(&fields, &path, hosts),
            };
            if fields.sound && shared.hosts.is_empty() && shared.pairs.is_empty() && self.mistakes.is_empty()
            {
                let text = format!(
                    "{} has no hosts, so no test uses it; add hosts = [\"…\"]",
                    path.trim_end_matches('.')
                );
                self.mistakes.add(&entry.at, text);
            }
            all.push(shared);
        }
        all
    }

    /// Adds the links of a topology, each with the pairs whose path it is on.
    fn add_topology(
        &mut self,
        value: &ConfigValue,
        topology: &str,
        paths: &dyn Fn(&str) -> Result<Vec<TopologyPath>, String>,
        fleet: &mut Inventory,
    ) {
        let paths = match paths(topology) {
            Ok(paths) => paths,
            Err(error) => {
                self.mistakes.add(&value.at, format!("topology: {error}"));
                return;
            }
        };
        let known = |name: &str| fleet.hosts.iter().any(|host| host.name == name);
        let mut links: Vec<SharedResource> = Vec::new();
        for path in paths.iter().filter(|path| known(&path.hosts.0) && known(&path.hosts.1)) {
            for (name, members) in &path.links {
                let kind = if *members > 1 { ResourceKind::Lag } else { ResourceKind::Link };
                let resource = Resource::new(kind, name, *members);
                match links.iter_mut().find(|link| link.resource == resource) {
                    Some(link) => link.pairs.push(path.hosts.clone()),
                    None => links.push(SharedResource {
                        resource,
                        hosts: Vec::new(),
                        pairs: vec![path.hosts.clone()],
                    }),
                }
            }
        }
        if links.is_empty() {
            let text =
                format!("topology: the hosts of '{topology}' have other names than those of the fleet");
            self.mistakes.add(&value.at, text);
        }
        for link in links {
            match fleet.shared.iter().find(|one| one.resource.name == link.resource.name) {
                Some(twice) => {
                    let text = format!(
                        "topology: it has a {}, and so has this file; rename one of them",
                        twice.resource.name
                    );
                    self.mistakes.add(&value.at, text);
                }
                None => fleet.shared.push(link),
            }
        }
    }

    fn meshes(&mut self, fleet: &Inventory) -> Vec<Mesh> {
        let tables = self.named("mesh");
        tables.into_iter().map(|(entry, table)| self.mesh(entry, table, fleet)).collect()
    }

    fn mesh(&mut self, entry: &ConfigEntry, table: &ConfigTable, fleet: &Inventory) -> Mesh {
        let path = format!("mesh.{}.", entry.key);
        let fields = Fields::read(table, &path, &[MESH], &[], self.mistakes);
        let template = MeshTemplate::named(fields.text("template").as_deref().unwrap_or("full"));
        let every = fields.span("every");
        let labels = self.texts(&fields, "labels", &path);
        let named = self.known_hosts(&fields, "hosts", &path, &fleet.hosts);
        let pairs = self.pairs(&fields, &path, &fleet.hosts);
        let member = |host: &&FleetHost| match (named.is_empty(), template, labels.is_empty()) {
            (false, ..) => named.contains(&host.name),
            (true, MeshTemplate::Pairs, _) => pairs.iter().any(|(a, b)| *a == host.name || *b == host.name),
            (true, _, false) => host.labels.iter().any(|label| labels.contains(label)),
            (true, _, true) => true,
        };
        let mesh = Mesh {
            name: entry.key.clone(),
            template,
            hosts: fleet.hosts.iter().filter(member).map(|host| host.name.clone()).collect(),
            labels,
            center: fields.text("center"),
            pairs,
            cron: fields.text("cron"),
            every: every.unwrap_or(CRON_SLIP),
            jitter: fields.span("jitter").unwrap_or_default(),
            slip: fields.span("slip").or(every.map(|every| every.min(MAX_SLIP))).unwrap_or(CRON_SLIP),
            quiet: self.quiet(&fields, &path),
            priority: fields.whole("priority").unwrap_or(0) as u8,
            shared: fields.flag("shared"),
            spec: self.test(&fields, &path),
            alarm: self.alarm(&fields, &path),
        };
        self.check_mesh(entry, &fields, &mesh, fleet);
        mesh
    }

    /// The knobs of a mesh. Without a direction, they are for the one from the client to the server: the other one is
    /// another pair.
    fn test(&mut self, fields: &Fields<'_>, path: &str) -> TestSpec {
        let mut spec = match fields.value("test") {
            None => TestSpec::default(),
            Some(value) => match &value.content {
                ConfigContent::Table(table) => {
                    let read = read_test(table, &format!("{path}test."), self.mistakes);
                    read.and_then(|spec| match spec.check().and_then(|()| spec.agree()) {
                        Ok(()) => Some(spec),
                        Err(error) => {
                            self.mistakes.add(&value.at, format!("{path}test: {error}"));
                            None
                        }
                    })
                    .unwrap_or_default()
                }
                other => {
                    self.mistakes
                        .add(&value.at, format!("{path}test: {} is not a table of knobs", other.describe()));
                    TestSpec::default()
                }
            },
        };
        let traffic = &mut spec.traffic;
        if !(traffic.upload || traffic.download || traffic.bidir) {
            traffic.upload = true;
        }
        spec
    }

    fn alarm(&mut self, fields: &Fields<'_>, path: &str) -> AlarmLimits {
        let Some(value) = fields.value("alarm") else { return AlarmLimits::default() };
        let ConfigContent::Table(table) = &value.content else {
            let what = value.content.describe();
            self.mistakes
                .add(&value.at, format!("{path}alarm: {what} is not a table such as {{ below = \"900M\" }}"));
            return AlarmLimits::default();
        };
        let limits = Fields::read(table, &format!("{path}alarm."), &[ALARM], &[], self.mistakes);
        let share = |key: &str| -> Option<Ratio> {
            match limits.setting(key) {
                Some(SettingValue::Share(share)) => Some(*share),
                _ => None,
            }
        };
        let below: Option<Bitrate> = match limits.setting("below") {
            Some(SettingValue::Rate(rate)) => Some(*rate),
            _ => None,
        };
        AlarmLimits {
            below,
            latency: limits.span("latency"),
            loss: share("loss"),
            change: share("change"),
            failure: limits.flag("failure"),
        }
    }

    fn notify(&mut self) -> Notify {
        let Some(entry) = self.document.get("notify") else { return Notify::default() };
        let ConfigContent::Table(table) = &entry.value.content else {
            self.mistakes.add(&entry.value.at, "notify is not a table; write [notify]");
            return Notify::default();
        };
        let fields = Fields::read(table, "notify.", &[NOTIFY], &[], self.mistakes);
        let notify = Notify {
            command: self.texts(&fields, "command", "notify."),
            webhook: fields.text("webhook"),
            mail: self.texts(&fields, "mail", "notify."),
        };
        let is_address = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if let Some(value) =
            fields.value("webhook").filter(|_| !notify.webhook.as_ref().is_some_and(is_address))
        {
            let text = "notify.webhook: it is no address; write http://HOST/PATH or https://HOST/PATH";
            self.mistakes.add(&value.at, text);
        }
        let odd = notify.mail.iter().find(|mail| !is_mail_address(mail));
        if let (Some(odd), Some(value)) = (odd, fields.value("mail")) {
            self.mistakes.add(&value.at, format!("notify.mail: '{odd}' is no mail address"));
        }
        notify
    }

    fn texts(&mut self, fields: &Fields<'_>, key: &str, path: &str) -> Vec<String> {
        let Some(value) = fields.value(key) else { return Vec::new() };
        texts(value).unwrap_or_else(|text| {
            self.mistakes.add(&value.at, format!("{path}{key}: {text}"));
            Vec::new()
        })
    }

    fn known_hosts(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        path: &str,
        hosts: &[FleetHost],
    ) -> Vec<String> {
        let names = self.texts(fields, key, path);
        for name in names.iter().filter(|name| !hosts.iter().any(|host| host.name == **name)) {
            if let Some(value) = fields.value(key) {
                let hint = hint(name, hosts.iter().map(|host| host.name.as_str()));
                self.mistakes.add(&value.at, format!("{path}{key}: there is no host '{name}'{hint}"));
            }
        }
        names
    }

    fn pairs(&mut self, fields: &Fields<'_>, path: &str, hosts: &[FleetHost]) -> Vec<(String, String)> {
        let Some(value) = fields.value("pairs") else { return Vec::new() };
        let ConfigContent::List(items) = &value.content else {
            self.mistakes.add(&value.at, format!("{path}pairs: write a list such as [[\"a\", \"b\"]]"));
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for item in items {
            match texts(item).as_deref() {
                Ok([from, to]) => {
                    for name in [from, to] {
                        if !hosts.iter().any(|host| host.name == *name) {
                            let hint = hint(name, hosts.iter().map(|host| host.name.as_str()));
                            self.mistakes
                                .add(&item.at, format!("{path}pairs: there is no host '{name}'{hint}"));
                        }
                    }
                    if from == to {
                        self.mistakes
                            .add(&item.at, format!("{path}pairs: '{from}' cannot measure to itself"));
                    }
                    pairs.push((from.clone(), to.clone()));
                }
                _ => self
                    .mistakes
                    .add(&item.at, format!("{path}pairs: a pair has two hosts, as in [\"a\", \"b\"]")),
            }
        }
        pairs
    }

    fn quiet(&mut self, fields: &Fields<'_>, path: &str) -> Vec<QuietHours> {
        let mut hours = Vec::new();
        for text in self.texts(fields, "quiet", path) {
            match (text.parse(), fields.value("quiet")) {
                (Ok(one), _) => hours.push(one),
                (Err(error), Some(value)) => self.mistakes.add(&value.at, format!("{path}quiet: {error}")),
                (Err(_), None) => {}
            }
        }
        hours
    }
}

/// The schedule of the first pair.
/// Whether a text is a mail address and nothing else: it becomes a line in the head of a mail.
fn is_mail_address(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-@".contains(c);
    text.len() <= 254
        && text.chars().all(plain)
        && text.split('@').count() == 2
        && text.split('@').all(|part| !part.is_empty() && !part.starts_with('-'))
}

fn name_of_file(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if check_name(name).is_ok() { name.to_owned() } else { "fleet".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::source;

    fn mistakes(text: &str) -> Vec<String> {
        let error = read(&source(text), &|_| Ok(Vec::new())).unwrap_err();
        error
            .mistakes
            .iter()
            .map(|one| format!("{}:{}: {}", one.line.unwrap(), one.column.unwrap(), one.text))
            .collect()
    }

    const TWO: &str = "host.a.address = \"a\"\nhost.b.address = \"b\"\n";

    #[test]
    fn every_mistake_is_found_with_its_position() {
        let text = "zone = \"Mars/Base\"\nhost.a.adress = \"a\"\n[link.up]\nhosts = [\"x\"]\n[mesh.m]\nevery = \"1s\"\ncron = \"* * * * *\"\n\
                    test = { duraton = \"5s\" }\nquiet = \"never\"\npairs = [[\"a\"]]\n[notify]\nmail = \"a b\"\nwebhook = \"x\"\n";
        let found = mistakes(text);
        let expected = [
            "1:8: zone: there is no time zone 'Mars/Base'",
            "2:6: host.a.address is missing",
            "2:8: unknown key host.a.adress; did you mean 'address'?",
            "4:9: link.up.hosts: there is no host 'x'",
            "7:8: mesh.m has both every and cron",
            "8:10: unknown knob mesh.m.test.duraton; did you mean 'duration'?",
            "9:9: mesh.m.quiet: 'never' cannot be quiet hours",
            "10:10: mesh.m.pairs: a pair has two hosts",
            "12:8: notify.mail: 'a b' is no mail address",
            "13:11: notify.webhook: it is no address",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
    }

    #[test]
    fn a_mesh_that_can_never_run_is_refused_with_the_reason() {
        let mesh = |keys: &str| mistakes(&format!("{TWO}[mesh.m]\n{keys}\n")).join("\n");
        assert!(
            mesh("every = \"1s\"").contains("mesh.m: a period of 1 s is not possible"),
            "{}",
            mesh("every = \"1s\"")
        );
        assert!(mesh("cron = \"0 0 30 2 *\"").contains("is never due"));
        assert!(mesh("cron = \"0 3 * * *\"\nquiet = \"00:00-06:00\"").contains("in its quiet hours"));
        assert!(mesh("").contains("has no times"));
        assert!(mesh("every = \"1h\"\nlabels = \"none\"").contains("no host has the label 'none'"));
        assert!(mesh("every = \"1h\"\nhosts = \"a\"").contains("has no pair of hosts"));
        assert!(mesh("every = \"1h\"\ncenter = \"a\"").contains("only a star has a center"));
        let listed = "every = \"1h\"\ntemplate = \"pairs\"\npairs = [[\"a\", \"b\"]]\nhosts = [\"a\"]";
        assert!(mesh(listed).contains("its pairs say which hosts it has"));
        // A test of five minutes in one minute.
        let night = "cron = \"0 0 * * *\"\nquiet = \"00:01-24:00\"\n";
        assert!(
            mesh(&format!("{night}test.duration = \"300s\"")).contains("no time outside its quiet hours")
        );
        let short = format!("{TWO}[mesh.m]\n{night}test = {{ duration = \"30s\", no_latency = true }}\n");
        assert_eq!(read(&source(&short), &|_| Ok(Vec::new())).unwrap().meshes.len(), 1);
        // H is another hour for each pair, and some of them are in the quiet hours.
        let spread = mesh("cron = \"0 H * * *\"\nquiet = \"00:00-23:00\"");
        assert!(spread.contains(": it never runs"), "{spread}");
        assert!(mesh("every = \"1h\"\nslip = \"200h\"").contains("up to 168h"));
        assert!(mesh("every = \"1h\"\ntemplate = \"star\"").contains("star without a center"));
        assert!(mesh("every = \"1h\"\ntest.bytes = \"1G\"").contains("depends on the network"));
        assert!(mesh("every = \"1h\"\njitter = \"2h\"").contains("longer than the period"));
        assert!(mistakes("[mesh.m]\nevery = \"1h\"\n")[0].contains("the fleet has no hosts"));
        let found = mistakes(&format!("set_up = \"0s\"\n{TWO}"));
        assert!(found[0].starts_with("1:10: set_up: ") && found[0].contains("is not possible"), "{found:?}");
    }

    #[test]
    fn a_mesh_of_more_pairs_than_anybody_waits_for_is_refused_at_once() {
        let hosts: String = (0..20_000).map(|host| format!("host.h{host}.address = \"h\"\n")).collect();
        let found = mistakes(&format!("{hosts}[mesh.m]\nevery = \"1h\"\n"));
        assert!(found[0].contains("more than 200000 pairs"), "{found:?}");
    }

    #[test]
    fn links_of_a_topology_are_shared_by_the_pairs_whose_path_they_are_on() {
        let paths = vec![
            TopologyPath {
                hosts: ("a".to_owned(), "b".to_owned()),
                links: vec![("up".to_owned(), 1), ("core".to_owned(), 2)],
            },
            TopologyPath { hosts: ("a".to_owned(), "other".to_owned()), links: vec![("up".to_owned(), 1)] },
        ];
        let fleet = read(&source(&format!("topology = \"net\"\n{TWO}")), &|name| {
            assert_eq!(name, "net");
            Ok(paths.clone())
        });
        let uses = fleet.unwrap().uses("b", "a", false).unwrap();
        let names: Vec<(String, u32)> = uses.into_iter().map(|one| (one.resource, one.capacity)).collect();
        let expected = [("host.a", 1), ("host.b", 1), ("lag.core", 2), ("link.up", 1)];
        assert_eq!(names, expected.map(|(name, capacity)| (name.to_owned(), capacity)));
    }
}
