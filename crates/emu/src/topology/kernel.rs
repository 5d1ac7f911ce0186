//! The same network by the means of the kernel alone: namespaces, veth, bridges, and the queueing disciplines tbf,
//! netem, red and codel. Pure: the commands are only said, for `ip` and `tc` of iproute2 and for `sysctl`.
//!
//! Each node is a namespace `linerate-LAB-NODE`. A host has the device `eth0`, a switch a bridge `br0` with the ports
//! `p1`, `p2`, … in the order of the links.

mod gaps;
mod queueing;

use std::fmt;

use super::{Link, SharedBuffer, Sharing, Topology};
use crate::way::{Discipline, Loss, Way};

/// One command: a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program first.
    pub argv: Vec<String>,
}

impl fmt::Display for Command {
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

/// Makes a command of words that hold no spaces, and of whole arguments after them.
fn command(words: &str, arguments: &[&str]) -> Command {
    Command { argv: words.split_whitespace().chain(arguments.iter().copied()).map(str::to_owned).collect() }
}

/// How a kernel builds a network, and takes it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// Builds it, in this order.
    pub up: Vec<Command>,
    /// Removes all of it, also when only a part was built; then some of these fail.
    pub down: Vec<Command>,
    /// What will differ from the description, one sentence each.
    pub cannot: Vec<String>,
}

/// The commands for a network in the lab of that name.
#[must_use]
pub fn commands(topology: &Topology, lab: &str) -> Commands {
    let nodes = || {
        let hosts = topology.hosts.iter().map(|host| &host.name);
        hosts.chain(topology.switches.iter().map(|switch| &switch.name))
    };
    let mut up = Vec::new();
    for node in nodes() {
        up.push(command(&format!("ip netns add {}", namespace(lab, node)), &[]));
    }
    for switch in &topology.switches {
        let ns = namespace(lab, &switch.name);
        up.push(command(&format!("ip -n {ns} link add br0 type bridge stp_state 0 mcast_snooping 0"), &[]));
        up.push(command(&format!("ip -n {ns} link set br0 up"), &[]));
    }
    for link in &topology.links {
        up.extend(cable(topology, lab, link));
    }
    for host in &topology.hosts {
        up.extend(settle(topology, lab, host));
    }
    for link in &topology.links {
        for (side, way) in link.ways.iter().enumerate() {
            let [ns, device] = port(topology, lab, link, side);
            up.extend(queueing::commands(&ns, &device, &as_one_queue(topology, link, side, way)));
        }
    }
    let down =
        nodes().map(|node| command(&format!("ip netns delete {}", namespace(lab, node)), &[])).collect();
    Commands { up, down, cannot: gaps::of(topology) }
}

fn namespace(lab: &str, node: &str) -> String {
    format!("linerate-{lab}-{node}")
}

/// Namespace and device of one end of a link.
fn port(topology: &Topology, lab: &str, link: &Link, side: usize) -> [String; 2] {
    let node = &link.ends[side];
    let device = if topology.host(node).is_some() {
        "eth0".to_owned()
    } else {
        let ports = topology.links.iter().filter(|other| other.ends.contains(node));
        format!("p{}", ports.take_while(|other| other.name != link.name).count() + 1)
    };
    [namespace(lab, node), device]
}

/// A pair of devices, and the ports of switches among them.
fn cable(topology: &Topology, lab: &str, link: &Link) -> Vec<Command> {
    let ends = [0, 1].map(|side| port(topology, lab, link, side));
    let [[ns, device], [peer_ns, peer]] = &ends;
    let pair = format!("ip link add name {device} netns {ns} type veth peer name {peer} netns {peer_ns}");
    let mut commands = vec![command(&pair, &[])];
    for (side, [ns, device]) in ends.iter().enumerate() {
        let is_host = topology.host(&link.ends[side]).is_some();
        let mut set = format!("ip -n {ns} link set dev {device} mtu {}", link.ways[side].mtu);
        if !is_host {
            set.push_str(" master br0");
        } else if needs_single_packets(topology) {
            set.push_str(" gso_max_segs 1");
        }
        commands.push(command(&(set + " up"), &[]));
    }
    commands
}

/// Addresses and settings of a host.
fn settle(topology: &Topology, lab: &str, host: &super::Host) -> Vec<Command> {
    /// RFC 8200 section 5.
    const LEAST_MTU_V6: u32 = 1280;
    let ns = namespace(lab, &host.name);
    let mut commands = vec![command(&format!("ip -n {ns} link set lo up"), &[])];
    let sysctl = |setting: String| command(&format!("ip netns exec {ns} sysctl -q -w"), &[&setting]);
    commands
        .extend(host.congestion.iter().map(|name| sysctl(format!("net.ipv4.tcp_congestion_control={name}"))));
    commands.extend(host.sysctl.iter().map(|(key, value)| sysctl(format!("net.{key}={value}"))));
    if let Some(link) = topology.links.iter().find(|link| link.ends.contains(&host.name)) {
        let (v4, v6) = (host.v4, host.v6);
        commands.push(command(&format!("ip -n {ns} address add {}/{} dev eth0", v4.0, v4.1), &[]));
        if link.ways[0].mtu >= LEAST_MTU_V6 {
            commands.push(command(&format!("ip -n {ns} address add {}/{} dev eth0 nodad", v6.0, v6.1), &[]));
        }
    }
    commands
}

/// True if a super-frame must not travel as one: the kernel would drop, mark or repeat all of it at once, and forwards it
/// over a link whose MTU its packets exceed.
fn needs_single_packets(topology: &Topology) -> bool {
    let mut ways = topology.links.iter().flat_map(|link| &link.ways);
    let mtu = ways.clone().map(|way| way.mtu).max();
    ways.any(|way| {
        Some(way.mtu) != mtu
            || way.police.is_some()
            || way.loss != Loss::None
            || way.discipline != Discipline::TailDrop
            || way.duplicate.get() > 0.0
            || way.reorder.probability.get() > 0.0
    })
}

/// A direction as one device can have it: a trunk as one fast line, a shared buffer as a part for each port.
fn as_one_queue(topology: &Topology, link: &Link, side: usize, way: &Way) -> Way {
    let node = &link.ends[side];
    let mut way = way.clone();
    let shared =
        topology.switches.iter().find(|switch| switch.name == *node).and_then(|switch| switch.shared);
    if let Some(SharedBuffer { capacity, policy }) = shared {
        let ports: u64 = topology
            .links
            .iter()
            .filter(|other| other.ends.contains(node))
            .map(|other| u64::from(other.members))
            .sum();
        let part = match policy {
            Sharing::Static => 1.0 / ports.max(1) as f64,
            // What one port may take while no other holds anything: x = alpha (1 - x).
            Sharing::Dynamic { alpha } => alpha / (1.0 + alpha),
        };
        way.buffer = linerate_units::Bytes::new((capacity.get() as f64 * part) as u64);
    }
    if link.members > 1 {
        let members = u64::from(link.members);
        way.buffer = linerate_units::Bytes::new(way.buffer.get().saturating_mul(members));
        way.rate = way.rate.and_then(|rate| linerate_units::Bitrate::from_bps(rate.bps() * members as f64));
    }
    if !link.card && topology.host(node).is_some() {
        way.rate = None;
    }
    way
}

#[cfg(test)]
mod tests;
