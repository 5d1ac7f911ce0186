//! What measurements share, and what each holds of it.

use serde::{Deserialize, Serialize};

use crate::ForeignText;

use super::{CalendarRunState, UnixTime};

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A host that measures.
    Host,
    /// A network interface of one or several hosts, for example of virtual ones.
    Nic,
    /// A link that the tests between several pairs of hosts cross.
    Link,
    /// Links that are used as one. Its capacity is the number of its members.
    Lag,
    /// Hosts of which only some may measure at the same time.
    Group,
}

impl ResourceKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 5] = [Self::Host, Self::Nic, Self::Link, Self::Lag, Self::Group];

    /// Its name, in files and databases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Nic => "nic",
            Self::Link => "link",
            Self::Lag => "lag",
            Self::Group => "group",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Something that measurements share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resource {
    /// Its kind and its name, such as `host.a` or `link.uplink`.
    pub name: ForeignText,
    /// What it is.
    pub kind: ResourceKind,
    /// How many shared measurements may use it at the same time; at least 1.
    pub capacity: u32,
}

impl Resource {
    /// The resource of this kind and name.
    #[must_use]
    pub fn new(kind: ResourceKind, name: &str, capacity: u32) -> Self {
        Self { name: format!("{}.{name}", kind.name()).into(), kind, capacity: capacity.max(1) }
    }
}

/// How a measurement uses a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceUse {
    /// Name of the resource.
    pub resource: String,
    /// Its capacity.
    pub capacity: u32,
    /// Whether no other measurement may use it at the same time.
    pub exclusive: bool,
}

impl ResourceUse {
    /// How many units of the capacity the use needs, side by side.
    #[must_use]
    pub fn units(&self) -> u32 {
        if self.exclusive { self.capacity.max(1) } else { 1 }
    }
}

/// A part of a resource for a time. Two of them never have a unit in common at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceReservation {
    /// Name of the resource.
    pub resource: String,
    /// The first unit of its capacity.
    pub first_unit: u32,
    /// The last unit.
    pub last_unit: u32,
    /// When it begins, set-up included.
    pub starts: UnixTime,
    /// The first moment at which it is over.
    pub ends: UnixTime,
    /// The run that holds it.
    pub run: String,
    /// The schedule of that run.
    pub schedule: String,
    /// Its priority.
    pub priority: u8,
    /// What that run does.
    pub state: CalendarRunState,
    /// Whether an agent may carry it out although it has ended here.
    pub handed: bool,
}

impl ResourceReservation {
    /// Whether two reservations have a unit in common at the same time.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.resource == other.resource
            && self.first_unit <= other.last_unit
            && other.first_unit <= self.last_unit
            && self.starts < other.ends
            && other.starts < self.ends
    }
}
