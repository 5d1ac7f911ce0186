//! The hosts of a fleet, what they share, and the meshes between them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use linerate_model::TestSpec;
use linerate_model::calendar::{
    AlarmLimits, FleetPreview, MeshPreview, QuietHours, Recurrence, Resource, ResourceKind, ResourceLoad,
    ResourceUse, Schedule, UnixTime,
};
use linerate_units::Span;
use serde::{Deserialize, Serialize};

use crate::coordinator::run_length;
use crate::error::FleetError;
use crate::recurrence::offset_in_period;

/// A fleet, as its file describes it. It is stored in the calendar, so that every program sees the same one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its name.
    pub name: String,
    /// Time zone of schedules that have none of their own, by its IANA name.
    pub zone: String,
    /// Time before the traffic of a run for connecting and preparing.
    #[serde(rename = "set_up_ns")]
    pub set_up: Span,
    /// Time after the traffic of a run for what still arrives.
    #[serde(rename = "settle_ns")]
    pub settle: Span,
    /// How far ahead agents get their calendars, and how long they measure without being told anything.
    #[serde(rename = "ahead_ns", default = "default_ahead")]
    pub ahead: Span,
    /// Days after which runs that have ended are removed from the calendar.
    pub keep_days: u32,
    /// The hosts, in the order of the file.
    pub hosts: Vec<FleetHost>,
    /// What tests share besides the hosts.
    pub shared: Vec<SharedResource>,
    /// The meshes, in the order of the file.
    pub meshes: Vec<Mesh>,
    /// Who is told about alarms.
    #[serde(default)]
    pub notify: Notify,
}

/// How far ahead agents get their calendars if the file does not say.
pub(crate) const AHEAD: Span = Span::from_secs(12 * 3600);

fn default_ahead() -> Span {
    AHEAD
}

/// A host of a fleet: a `linerate serve --agent-token-file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetHost {
    /// Its name.
    pub name: String,
    /// Name or address at which the coordinator reaches its agent.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// Address to which the other hosts measure, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_address: Option<String>,
    /// Labels, by which meshes choose their hosts.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How many shared tests it may make at the same time.
    pub capacity: u32,
}

/// A NIC, link, LAG or group that several hosts share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedResource {
    /// The resource.
    pub resource: Resource,
    /// The hosts on one side of a link or LAG, or those that share a NIC or form a group.
    pub hosts: Vec<String>,
    /// Pairs of hosts between which tests use it, in either direction.
    pub pairs: Vec<(String, String)>,
}

impl SharedResource {
    /// Whether tests between two hosts use it.
    fn is_used_between(&self, from: &str, to: &str) -> bool {
        let listed = self.pairs.iter().any(|(a, b)| (a == from && b == to) || (a == to && b == from));
        let (from, to) =
            (self.hosts.iter().any(|host| host == from), self.hosts.iter().any(|host| host == to));
        let crossed = match self.resource.kind {
            // A test between two hosts on the same side does not cross the link.
            ResourceKind::Link | ResourceKind::Lag => from != to,
            ResourceKind::Host | ResourceKind::Nic | ResourceKind::Group => from || to,
        };
        listed || crossed
    }
}

/// Which pairs of its hosts a mesh measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshTemplate {
    /// Every host to every other one.
    Full,
    /// The center to every other host, and every other host to the center.
    Star,
    /// Only the pairs that are listed.
    Pairs,
    /// Every host to every host with another label.
    BetweenLabels,
}

impl MeshTemplate {
    /// The names of the templates.
    pub(crate) const NAMES: &[&str] = &["full", "star", "pairs", "between-labels"];

    pub(crate) fn named(name: &str) -> Self {
        match name {
            "star" => Self::Star,
            "pairs" => Self::Pairs,
            "between-labels" => Self::BetweenLabels,
            _ => Self::Full,
        }
    }
}

/// Tests between many pairs of hosts that only differ in their hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mesh {
    /// Its name.
    pub name: String,
    /// Which pairs it measures.
    pub template: MeshTemplate,
    /// Its hosts, in the order of the file.
    pub hosts: Vec<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// The host in the center of a star.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub center: Option<String>,
    /// Listed pairs, from the first host to the second.
    pub pairs: Vec<(String, String)>,
    /// The crontab expression, instead of a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Time between two tests of a pair.
    #[serde(rename = "every_ns")]
    pub every: Span,
    /// Mean of the delay of each test.
    #[serde(rename = "jitter_ns")]
    pub jitter: Span,
    /// How much later than due a test may begin.
    #[serde(rename = "slip_ns")]
    pub slip: Span,
    /// Hours in which it does not measure.
    pub quiet: Vec<QuietHours>,
    /// The higher one comes first; 0 to 9.
    pub priority: u8,
    /// Whether other shared tests may use the same hosts and links at the same time.
    pub shared: bool,
    /// What it measures.
    pub spec: TestSpec,
    /// Limits of its results.
    pub alarm: AlarmLimits,
}

/// Who is told about alarms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// A program and its arguments; it gets the alarm as JSON on its standard input.
    pub command: Vec<String>,
    /// An HTTP address that the alarm is posted to as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// Addresses that get a mail, by the local sendmail.
    pub mail: Vec<String>,
}

impl Inventory {
    /// The host with this name.
    ///
    /// # Errors
    /// There is none; the error has the most similar name.
    pub fn host(&self, name: &str) -> Result<&FleetHost, FleetError> {
        let found = self.hosts.iter().find(|host| host.name == name);
        found.ok_or_else(|| FleetError::NoHost {
            name: name.to_owned(),
            hint: linerate_plan::hint(name, self.hosts.iter().map(|host| host.name.as_str())),
        })
    }

    /// All resources: the hosts, and what they share.
    #[must_use]
    pub fn resources(&self) -> Vec<Resource> {
        let hosts =
            self.hosts.iter().map(|host| Resource::new(ResourceKind::Host, &host.name, host.capacity));
        hosts.chain(self.shared.iter().map(|shared| shared.resource.clone())).collect()
    }

    /// What a test from one host to another uses, by name.
    ///
    /// # Errors
    /// The fleet has no such host.
    pub fn uses(&self, from: &str, to: &str, shared: bool) -> Result<Vec<ResourceUse>, FleetError> {
        let of = |resource: &Resource| ResourceUse {
            resource: resource.name.to_string(),
            capacity: resource.capacity,
            // A group limits how many of its hosts measure: each test is one of them.
            exclusive: !shared && resource.kind != ResourceKind::Group,
        };
        let hosts = [self.host(from)?, self.host(to)?];
        let mut uses: Vec<ResourceUse> = hosts
            .map(|host| of(&Resource::new(ResourceKind::Host, &host.name, host.capacity)))
            .into_iter()
            .chain(
                self.shared.iter().filter(|one| one.is_used_between(from, to)).map(|one| of(&one.resource)),
            )
            .collect();
        uses.sort();
        Ok(uses)
    }

    /// What the description means: how many tests there are, and how busy they keep what they share.
    #[must_use]
    pub fn preview(&self) -> FleetPreview {
        let mut loads: BTreeMap<String, f64> = BTreeMap::new();
        let mut meshes = Vec::new();
        for mesh in &self.meshes {
            let schedules: Vec<Schedule> = mesh.schedules(self).collect();
            let length = schedules.first().and_then(|one| run_length(one, self)).unwrap_or_default();
            if let Recurrence::Every { period, .. } =
                &schedules.first().map_or(Recurrence::Once(UnixTime::MAX), |one| one.recurrence.clone())
            {
                let share = length.as_secs_f64() / period.as_secs_f64();
                let uses = schedules.iter().filter_map(|one| self.uses(&one.from, &one.to, one.shared).ok());
                for used in uses.flatten() {
                    let units = f64::from(used.units()) / f64::from(used.capacity.max(1));
                    *loads.entry(used.resource).or_default() += share * units;
                }
            }
            let pairs = schedules.len();
            meshes.extend(schedules.into_iter().next().map(|example| MeshPreview {
                name: mesh.name.clone(),
                pairs,
                example,
                length,
            }));
        }
        let mut loads: Vec<ResourceLoad> =
            loads.into_iter().map(|(resource, share)| ResourceLoad { resource, share }).collect();
        loads.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.resource.cmp(&b.resource)));
        FleetPreview { name: self.name.clone(), hosts: self.hosts.len(), meshes, loads }
    }

    /// The schedules of the meshes.
    #[must_use]
    pub fn mesh_schedules(&self) -> Vec<Schedule> {
        self.meshes.iter().flat_map(|mesh| mesh.schedules(self)).collect()
    }

    /// The mesh with this name.
    ///
    /// # Errors
    /// There is none; the error has the most similar name.
    pub fn mesh(&self, name: &str) -> Result<&Mesh, FleetError> {
        let found = self.meshes.iter().find(|mesh| mesh.name == name);
        found.ok_or_else(|| FleetError::NoMesh {
            name: name.to_owned(),
            hint: linerate_plan::hint(name, self.meshes.iter().map(|mesh| mesh.name.as_str())),
        })
    }
}

impl Mesh {
    /// Its pairs, from the client to the server, each once.
    pub fn pairs<'m>(&'m self, inventory: &'m Inventory) -> impl Iterator<Item = (&'m str, &'m str)> {
        let labels: BTreeMap<&str, &[String]> =
            inventory.hosts.iter().map(|host| (host.name.as_str(), host.labels.as_slice())).collect();
        let labels = move |host: &String| {
            let all = labels.get(host.as_str()).copied().unwrap_or_default();
            all.iter().filter(|one| self.labels.contains(one)).collect::<Vec<_>>()
        };
        let hosts: Vec<(&String, Vec<&String>)> = match self.template {
            MeshTemplate::BetweenLabels => self.hosts.iter().map(|host| (host, labels(host))).collect(),
            MeshTemplate::Pairs => Vec::new(),
            MeshTemplate::Full | MeshTemplate::Star => {
                self.hosts.iter().map(|host| (host, Vec::new())).collect()
            }
        };
        let hosts = Rc::new(hosts);
        let of_template = (0..hosts.len()).flat_map(move |at| {
            let (hosts, center) = (Rc::clone(&hosts), self.center.as_ref());
            (0..hosts.len()).filter_map(move |other| {
                let ((from, from_labels), (to, to_labels)) = (&hosts[at], &hosts[other]);
                let wanted = match self.template {
                    MeshTemplate::Star => center == Some(*from) || center == Some(*to),
                    MeshTemplate::BetweenLabels => {
                        from_labels.iter().any(|one| to_labels.iter().any(|other| other != one))
                    }
                    MeshTemplate::Full | MeshTemplate::Pairs => true,
                };
                (at != other && wanted).then_some((from.as_str(), to.as_str()))
            })
        });
        let mut known = BTreeSet::new();
        let listed = self.pairs.iter().filter(|_| self.template == MeshTemplate::Pairs);
        let listed = listed.map(|(from, to)| (from.as_str(), to.as_str()));
        of_template.chain(listed.filter(move |pair| pair.0 != pair.1 && known.insert(*pair)))
    }

    /// The name of the schedule of a pair. Names of users have no dots.
    #[must_use]
    pub fn schedule_name(&self, from: &str, to: &str) -> String {
        format!("{}.{from}.{to}", self.name)
    }

    /// A schedule for each pair. Those with a period are spread over it.
    pub(crate) fn schedules<'m>(&'m self, inventory: &'m Inventory) -> impl Iterator<Item = Schedule> {
        self.pairs(inventory).map(move |(from, to)| {
            let name = self.schedule_name(from, to);
            let recurrence = match &self.cron {
                Some(expression) => Recurrence::Cron(expression.as_str().into()),
                None => Recurrence::Every {
                    period: self.every,
                    jitter: self.jitter,
                    anchor: UnixTime::from_ms(0).after(offset_in_period(&name, self.every)),
                },
            };
            Schedule {
                name: name.into(),
                mesh: Some(self.name.as_str().into()),
                from: from.into(),
                to: to.into(),
                spec: self.spec.clone(),
                recurrence,
                zone: inventory.zone.as_str().into(),
                slip: self.slip,
                quiet: self.quiet.clone(),
                priority: self.priority,
                shared: self.shared,
                until: None,
                alarm: self.alarm.clone(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::inventory;

    fn names(uses: &[ResourceUse]) -> Vec<(&str, bool)> {
        uses.iter().map(|one| (one.resource.as_str(), one.exclusive)).collect()
    }

    #[test]
    fn tests_that_cross_an_uplink_share_it_and_those_on_one_side_do_not() {
        let fleet = inventory(
            "host.a.address = \"a\"\nhost.b.address = \"b\"\nhost.c.address = \"c\"\nhost.d.address = \"d\"\n\
             link.uplink.hosts = [\"a\", \"b\"]\n\
             [group.site]\nhosts = [\"a\", \"b\"]\ncapacity = 2\n",
        );
        let uses = |from, to| fleet.uses(from, to, false).unwrap();
        assert_eq!(
            names(&uses("a", "c")),
            [("group.site", false), ("host.a", true), ("host.c", true), ("link.uplink", true)]
        );
        assert_eq!(names(&uses("a", "b")), [("group.site", false), ("host.a", true), ("host.b", true)]);
        assert_eq!(names(&uses("c", "d")), [("host.c", true), ("host.d", true)]);
        let error = fleet.uses("a", "e", false).unwrap_err().to_string();
        assert!(error.contains("'e'"), "{error}");
    }

    #[test]
    fn a_mesh_has_the_pairs_of_its_template() {
        let hosts = "host.a = { address = \"a\", labels = [\"core\"] }\nhost.b = { address = \"b\", labels = [\"core\"] }\n\
                     host.c = { address = \"c\", labels = [\"edge\"] }\n";
        let pairs = |mesh: &str| -> Vec<String> {
            let fleet = inventory(&format!("{hosts}[mesh.m]\nevery = \"1h\"\n{mesh}"));
            fleet.meshes[0].pairs(&fleet).map(|(from, to)| format!("{from}{to}")).collect()
        };
        assert_eq!(pairs(""), ["ab", "ac", "ba", "bc", "ca", "cb"]);
        assert_eq!(pairs("template = \"star\"\ncenter = \"b\""), ["ab", "ba", "bc", "cb"]);
        assert_eq!(pairs("template = \"pairs\"\npairs = [[\"c\", \"a\"]]"), ["ca"]);
        assert_eq!(
            pairs("template = \"between-labels\"\nlabels = [\"core\", \"edge\"]"),
            ["ac", "bc", "ca", "cb"]
        );
        assert_eq!(pairs("labels = [\"core\"]"), ["ab", "ba"]);
    }

    #[test]
    fn the_pairs_of_a_mesh_are_spread_over_the_period() {
        let hosts: String = (0..10).map(|host| format!("host.h{host}.address = \"h{host}\"\n")).collect();
        let fleet = inventory(&format!("{hosts}[mesh.m]\nevery = \"1h\"\n"));
        let mut minutes: Vec<i64> = fleet
            .mesh_schedules()
            .iter()
            .map(|schedule| match schedule.recurrence {
                Recurrence::Every { anchor, .. } => anchor.as_ms() / 60_000,
                _ => -1,
            })
            .collect();
        minutes.sort_unstable();
        assert_eq!(minutes.len(), 90);
        assert!(minutes[0] >= 0 && minutes[89] < 60);
        minutes.dedup();
        // 90 balls in 60 boxes leave (59/60)^90 = 22 % of them empty.
        assert!(minutes.len() > 35, "{minutes:?}");
    }
}
