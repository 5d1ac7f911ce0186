//! The same network built with the kernel alone: namespaces, veth, bridges, and the queueing disciplines tbf,
//! netem, red and codel. Pure: the commands for `ip` and `tc` of iproute2 and for `sysctl` are only generated,
//! not run.
//!
//! Each node is a namespace `linerate-LAB-NODE`. A host has the device `eth0`, a switch a bridge `br0` with the ports
//! `p1`, `p2`, … in the order of the links.

mod gaps;
mod queueing;

use std::fmt;

use linerate_units::{Bitrate, Bytes};

use super::{Topology, TopologyHost, TopologyLink};
use crate::link_direction::{Bucket, LinkDirection, QueueDiscipline, RedSettings};

/// One command: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelCommand {
    /// The program first.
    pub argv: Vec<String>,
}

impl fmt::Display for KernelCommand {
    /// A line for a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+".contains(c);
        for (index, word) in self.argv.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            if !word.is_empty() && word.chars().all(plain) {
                write!(f, "{gap}{word}")?;
            } else {
                write!(f, "{gap}'{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

/// Creates a command from words without spaces, and from whole arguments after them.
fn command(words: &str, arguments: &[&str]) -> KernelCommand {
    KernelCommand {
        argv: words.split_whitespace().chain(arguments.iter().copied()).map(str::to_owned).collect(),
    }
}

/// The commands with which a kernel builds a network, and removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// Creates its namespaces and sets their congestion control: a lab does this itself, to know which are its
    /// own.
    pub resources: Vec<KernelCommand>,
    /// Builds the rest, in this order.
    pub up: Vec<KernelCommand>,
    /// Removes all of it, even if only a part was built; some of these commands fail then.
    pub down: Vec<KernelCommand>,
    /// Differences from the description, one sentence each.
    pub cannot: Vec<String>,
}

/// The commands for a network in the lab of that name.
#[must_use]
pub fn commands(topology: &Topology, lab: &str) -> Commands {
    let nodes = || {
        let hosts = topology.hosts.iter().map(|host| &host.name);
        hosts.chain(topology.switches.iter().map(|switch| &switch.name))
    };
    let mut resources: Vec<KernelCommand> =
        nodes().map(|node| command(&format!("ip netns add {}", namespace(lab, node)), &[])).collect();
    for host in &topology.hosts {
        let congestion = host.congestion.iter().map(|name| format!("net.ipv4.tcp_congestion_control={name}"));
        resources.extend(congestion.map(|setting| sysctl(&namespace(lab, &host.name), &setting)));
    }
    let mut up = Vec::new();
    for switch in &topology.switches {
        let ns = namespace(lab, &switch.name);
        up.push(command(&format!("ip -n {ns} link add br0 type bridge stp_state 0 mcast_snooping 0"), &[]));
        up.push(command(&format!("ip -n {ns} link set br0 up"), &[]));
    }
    for link in &topology.links {
        up.extend(cable(topology, lab, link));
    }
    for host in &topology.hosts {
        up.extend(host_commands(topology, lab, host));
    }
    for link in &topology.links {
        for side in 0..link.ends.len() {
            let [ns, device] = port(topology, lab, link, side);
            up.extend(queueing::commands(&ns, &device, &as_one_queue(topology, link, side)));
        }
    }
    let down =
        nodes().map(|node| command(&format!("ip netns delete {}", namespace(lab, node)), &[])).collect();
    Commands { resources, up, down, cannot: gaps::of(topology) }
}

fn namespace(lab: &str, node: &str) -> String {
    format!("linerate-{lab}-{node}")
}

/// Namespace and device of one end of a link.
fn port(topology: &Topology, lab: &str, link: &TopologyLink, side: usize) -> [String; 2] {
    let node = &link.ends[side];
    let device = if topology.host(node).is_some() {
        "eth0".to_owned()
    } else {
        let ports = topology.links.iter().filter(|other| other.ends.contains(node));
        format!("p{}", ports.take_while(|other| other.name != link.name).count() + 1)
    };
    [namespace(lab, node), device]
}

/// A veth pair, with the ports of switches among its ends.
fn cable(topology: &Topology, lab: &str, link: &TopologyLink) -> Vec<KernelCommand> {
    let ends = [0, 1].map(|side| port(topology, lab, link, side));
    let [[ns, device], [peer_ns, peer]] = &ends;
    let pair = format!("ip link add name {device} netns {ns} type veth peer name {peer} netns {peer_ns}");
    let mut commands = vec![command(&pair, &[])];
    for (side, [ns, device]) in ends.iter().enumerate() {
        let mut set = format!("ip -n {ns} link set dev {device} mtu {}", link.directions[side].mtu);
        // A GSO frame would be counted as one frame, dropped and marked as a whole, and pass an MTU that its
        // packets exceed.
        let is_host = topology.host(&link.ends[side]).is_some();
        set.push_str(if is_host { " gso_max_segs 1" } else { " master br0" });
        commands.push(command(&(set + " up"), &[]));
    }
    commands
}

fn sysctl(ns: &str, setting: &str) -> KernelCommand {
    command(&format!("ip netns exec {ns} sysctl -q -w"), &[setting])
}

/// Addresses and settings of a host.
fn host_commands(topology: &Topology, lab: &str, host: &TopologyHost) -> Vec<KernelCommand> {
    /// RFC 8200 section 5.
    const MIN_MTU_V6: u32 = 1280;
    let ns = namespace(lab, &host.name);
    let mut commands = vec![command(&format!("ip -n {ns} link set lo up"), &[])];
    commands.extend(host.sysctl.iter().map(|(key, value)| sysctl(&ns, &format!("net.{key}={value}"))));
    if let Some(link) = topology.links.iter().find(|link| link.ends.contains(&host.name)) {
        let (v4, v6) = (host.v4, host.v6);
        commands.push(command(&format!("ip -n {ns} address add {}/{} dev eth0", v4.0, v4.1), &[]));
        if link.directions[0].mtu >= MIN_MTU_V6 {
            commands.push(command(&format!("ip -n {ns} address add {}/{} dev eth0 nodad", v6.0, v6.1), &[]));
        }
    }
    commands
}

/// A direction as a single device can model it: a LAG as one fast line, a shared buffer as a part for each
/// port. What each member of a LAG has for itself is multiplied: line, shaper, buffer, and thresholds of its
/// queue in bytes. The policer is in front of all members.
fn as_one_queue(topology: &Topology, link: &TopologyLink, side: usize) -> LinkDirection {
    let immediate = !link.nic && topology.host(&link.ends[side]).is_some();
    let direction = link.directions[side].clone();
    let members = link.members.max(1);
    let rate_of_all = |rate: Bitrate| Bitrate::from_bps(rate.bps() * f64::from(members));
    let bytes_of_all = |bytes: Bytes| Bytes::new(bytes.get().saturating_mul(u64::from(members)));
    let discipline = match direction.discipline {
        QueueDiscipline::Red(red) => QueueDiscipline::Red(RedSettings {
            min: bytes_of_all(red.min),
            max: bytes_of_all(red.max),
            ..red
        }),
        QueueDiscipline::TailDrop | QueueDiscipline::CoDel(_) => direction.discipline,
    };
    let shape = direction
        .shape
        .and_then(|shape| Some(Bucket { rate: rate_of_all(shape.rate)?, burst: bytes_of_all(shape.burst) }));
    LinkDirection {
        rate: direction.rate.filter(|_| !immediate).and_then(rate_of_all),
        buffer: topology.buffer_alone(link, side),
        discipline,
        shape,
        ..direction
    }
}

#[cfg(test)]
mod tests;
