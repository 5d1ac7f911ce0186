//! The description of an emulated network: hosts, switches and the links between them.
//!
//! [`read`] converts a file to a checked [`Topology`], or reports every mistake in it. The keys of such a file
//! are declared once, in `keys`: parsing, overrides on the command line ([`Override`]), changes while a lab
//! runs ([`change_direction`]), the [`schema`] and the [`reference`](fn@reference) are derived from that table.
//! [`bundled`] topologies are part of the program; [`kernel`] lists the commands that build a described network
//! with the kernel alone.

mod address;
mod bundled;
mod check;
mod direction_keys;
mod graph;
pub mod kernel;
mod keys;
mod kind;
mod live;
mod mistake;
mod overrides;
mod parameters;
mod read;
mod reference;
mod schema;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_units::Bytes;

use crate::link_direction::LinkDirection;
use crate::packet_batch::HashFields;

pub use bundled::bundled;
pub use linerate_config::Bundled;
pub use live::{ChangeTarget, SetError, TargetError, change_direction, parse_target};
pub use mistake::{Mistake, SourcePosition, TopologyError};
pub use overrides::{Override, OverrideError};
pub use read::read;
pub use reference::reference;
pub use schema::schema;

/// A checked description: every link ends at existing nodes, there is no loop, and names are unique.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Name of the description.
    pub name: String,
    /// Its purpose, in one line.
    pub about: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Hosts, in the order of the file.
    pub hosts: Vec<TopologyHost>,
    /// Switches, in the order of the file.
    pub switches: Vec<TopologySwitch>,
    /// Links, in the order of the file.
    pub links: Vec<TopologyLink>,
}

/// A host: a network namespace with one interface per link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyHost {
    /// Its name.
    pub name: String,
    /// Its IPv4 address and the length of the network's prefix.
    pub v4: (Ipv4Addr, u8),
    /// Its IPv6 address and the length of the network's prefix.
    pub v6: (Ipv6Addr, u8),
    /// Default congestion control of its TCP; absent: the system's default.
    pub congestion: Option<String>,
    /// Settings below `net.`, for example `ipv4.tcp_rmem` set to `4096 131072 6291456`.
    pub sysctl: BTreeMap<String, String>,
}

/// A switch that learns addresses.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologySwitch {
    /// Its name.
    pub name: String,
    /// Memory shared by its ports; absent: each port has the buffer of its link.
    pub shared: Option<SharedBuffer>,
}

/// One memory for all ports of a switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedBuffer {
    /// Total size.
    pub capacity: Bytes,
    /// How much of it one port may use.
    pub policy: BufferSharing,
}

/// How much of a shared buffer one port may use.
///
/// # Source
/// Choudhury and Hahne 1998 for the dynamic threshold
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BufferSharing {
    /// An equal part for each port.
    Static,
    /// `alpha` times the memory that is free at that time.
    Dynamic {
        /// The factor.
        alpha: f64,
    },
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologyLink {
    /// Its name.
    pub name: String,
    /// Names of the two nodes.
    pub ends: [String; 2],
    /// The direction from each of the two ends.
    pub directions: [LinkDirection; 2],
    /// Number of equal members; 1 unless it is a LAG. Each member has its own queue and line.
    pub members: u32,
    /// Header fields that determine the member.
    pub hash: HashFields,
    /// True if a host at its end sends no faster than the link rate, as a NIC does; false if packets from the
    /// host reach the switch immediately.
    pub nic: bool,
}

impl Topology {
    /// The links on the path between two nodes; absent if there is none.
    #[must_use]
    pub fn path(&self, from: &str, to: &str) -> Option<Vec<&TopologyLink>> {
        let links = graph::path_between(&self.links, from, to)?;
        Some(links.into_iter().filter_map(|at| self.links.get(at)).collect())
    }

    /// The most bytes that can wait at an end of a link, in the queues of all its members together, while no other
    /// port uses the shared buffer of a switch.
    #[must_use]
    pub fn buffer_alone(&self, link: &TopologyLink, end: usize) -> Bytes {
        let node = &link.ends[end];
        let members = f64::from(link.members);
        let shared =
            self.switches.iter().find(|switch| switch.name == *node).and_then(|switch| switch.shared);
        let bytes = match shared {
            None => link.directions[end].buffer.get() as f64 * members,
            Some(SharedBuffer { capacity, policy: BufferSharing::Static }) => {
                let links = self.links.iter().filter(|other| other.ends.contains(node));
                let ports: u32 = links.map(|other| other.members).sum();
                capacity.get() as f64 * members / f64::from(ports)
            }
            // x = n alpha (1 - x).
            Some(SharedBuffer { capacity, policy: BufferSharing::Dynamic { alpha } }) => {
                capacity.get() as f64 * (members * alpha / (1.0 + members * alpha))
            }
        };
        Bytes::new(bytes as u64)
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&TopologyHost> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

#[cfg(test)]
mod tests;
