//! Checks that require the complete description.

use std::collections::BTreeMap;

use linerate_config::{Mistakes, SourcePosition, hint};
use linerate_units::Bytes;

use super::address::{network_v4, network_v6};
use super::graph::{self, GraphFault};
use super::read::{ParsedTopology, Places};
use super::{Topology, TopologyLink};
use crate::link_direction::{Bucket, LinkDirection, QueueDiscipline};
use crate::packet_batch::Framing;

/// Ethernet header: two addresses and a type.
const ETHERNET: u32 = 14;

/// Bytes of a frame with an IP packet of `mtu` bytes, as a buffer counts them.
pub(super) fn frame(mtu: u32, tags: u8) -> u64 {
    Framing { tags }.frame(mtu.saturating_add(ETHERNET))
}

/// Runs every check.
pub(super) fn all(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    names(draft, mistakes);
    addresses(draft, mistakes);
    ends(draft, mistakes);
    ports(draft, mistakes);
    loops(draft, mistakes);
    check_directions(draft, mistakes);
    shared_buffers(draft, mistakes);
    mtus(draft, mistakes);
}

fn names(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    let Topology { hosts, switches, .. } = &draft.topology;
    if hosts.is_empty() && mistakes.is_empty() {
        let top = SourcePosition::START;
        mistakes.add(&top, "the topology has no host; add one with [host.NAME]");
    }
    for (switch, places) in switches.iter().zip(&draft.switches) {
        if let Some(host) = hosts.iter().position(|host| host.name == switch.name) {
            let later = places.at.clone().max(draft.hosts[host].at.clone());
            let text = format!("'{}' is a host and a switch; rename one of them", switch.name);
            mistakes.add(&later, text);
        }
    }
}

fn addresses(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    let hosts = &draft.topology.hosts;
    let v4 = |host: usize| (hosts[host].v4.0.to_string(), network_v4(hosts[host].v4));
    let v6 = |host: usize| (hosts[host].v6.0.to_string(), network_v6(hosts[host].v6));
    addresses_of(draft, "address", v4, mistakes);
    addresses_of(draft, "address6", v6, mistakes);
}

/// `parts` returns the address of a host, and its network.
fn addresses_of(
    draft: &ParsedTopology,
    key: &str,
    parts: impl Fn(usize) -> (String, String),
    mistakes: &mut Mistakes,
) {
    let hosts = &draft.topology.hosts;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, (host, places)) in hosts.iter().zip(&draft.hosts).enumerate().filter(|(_, (_, p))| p.sound) {
        let (address, network) = parts(index);
        let (_, first) = parts(0);
        let place = places.of(&[key]);
        let path = format!("host.{}.{key}", host.name);
        if network != first && draft.hosts[0].sound {
            let text = format!(
                "{path}: {address} is in {network}, but host '{}' is in {first}; there is no router between \
                 the hosts, so give all of them addresses of one network",
                hosts[0].name
            );
            mistakes.add(place, text);
        }
        if let Some(earlier) = seen.insert(address.clone(), index) {
            let other = &hosts[earlier].name;
            mistakes.add(
                place,
                format!(
                    "{path}: {address} is already the address of host '{other}'; use \
                                         another one"
                ),
            );
        }
    }
}

fn ends(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    let Topology { hosts, switches, links, .. } = &draft.topology;
    let nodes = || hosts.iter().map(|host| &*host.name).chain(switches.iter().map(|switch| &*switch.name));
    for (link, places) in links.iter().zip(&draft.links) {
        for (end, place) in link.ends.iter().zip(&places.ends) {
            if !nodes().any(|node| node == end) {
                let hint = hint(end, nodes());
                mistakes
                    .add(place, format!("link.{}.ends: no host or switch is named '{end}'{hint}", link.name));
            }
        }
        if link.ends[0] == link.ends[1] {
            let text =
                format!("link.{}.ends: both ends are '{}'; a link joins two nodes", link.name, link.ends[0]);
            mistakes.add(&places.ends[1], text);
        }
    }
}

/// A host has one port; every node has at least one.
fn ports(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    let Topology { hosts, switches, links, .. } = &draft.topology;
    for host in hosts {
        let mut ports = links.iter().zip(&draft.links).flat_map(|(link, places)| {
            link.ends
                .iter()
                .zip(&places.ends)
                .filter(|(end, _)| **end == host.name)
                .map(move |(_, at)| (link, at))
        });
        let Some((first, _)) = ports.next() else { continue };
        for (link, place) in
            ports.filter(|(link, _)| !same_nodes(first, link) && link.ends[0] != link.ends[1])
        {
            let text = format!(
                "link.{}.ends: the port of host '{}' is already used by link '{}'; put a switch between them",
                link.name, host.name, first.name
            );
            mistakes.add(place, text);
        }
    }
    let Some(joined) = &draft.ends else { return };
    let nodes = hosts.iter().map(|host| ("host", &host.name)).zip(&draft.hosts);
    let nodes = nodes.chain(switches.iter().map(|switch| ("switch", &switch.name)).zip(&draft.switches));
    for ((kind, name), places) in nodes.filter(|((_, name), _)| !joined.contains(*name)) {
        let text =
            format!("no link ends at {kind} '{name}'; add one with ends = [\"{name}\", \"…\"] or remove it");
        mistakes.add(&places.at, text);
    }
}

fn same_nodes(one: &TopologyLink, other: &TopologyLink) -> bool {
    let [a, b] = &one.ends;
    other.ends.contains(a) && other.ends.contains(b)
}

fn loops(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    let links = &draft.topology.links;
    for fault in graph::faults(links) {
        match fault {
            GraphFault::Parallel { link, first } => {
                let (link, first, place) = (&links[link], &links[first], &draft.links[link].link);
                let text = format!(
                    "link.{}.ends: link '{}' already joins '{}' and '{}'; use one link with members = 2",
                    link.name, first.name, link.ends[0], link.ends[1]
                );
                mistakes.add(place.of(&["ends"]), text);
            }
            GraphFault::Loop { link, others } => {
                let round: Vec<String> =
                    others.iter().map(|other| format!("'{}'", links[*other].name)).collect();
                let text = format!(
                    "link.{}.ends: this closes a loop with {}, in which packets would circulate forever; \
                     remove one link, or write parallel links as one link with members",
                    links[link].name,
                    round.join(", ")
                );
                mistakes.add(draft.links[link].link.of(&["ends"]), text);
            }
        }
    }
}

fn check_directions(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    for (link, places) in draft.topology.links.iter().zip(&draft.links) {
        for ((direction, places), from) in link.directions.iter().zip(&places.directions).zip(&link.ends) {
            let shared = draft.topology.switches.iter().any(|s| s.name == *from && s.shared.is_some());
            for WayFault { keys, text } in direction_faults(direction).into_iter().filter(|_| places.sound) {
                if !(shared && keys[0] == "buffer") {
                    mistakes.add(places.of(&keys), format!("link.{}: {text}", link.name));
                }
            }
        }
    }
}

/// Contradictory settings of one direction.
pub(super) struct WayFault {
    /// The keys that may be wrong, the most likely first.
    pub(super) keys: [&'static str; 2],
    /// What is wrong, and what to do.
    pub(super) text: String,
}

/// The contradictions in one direction.
pub(super) fn direction_faults(direction: &LinkDirection) -> Vec<WayFault> {
    let full = Bytes::new(frame(direction.mtu, direction.framing.tags));
    let mut faults = Vec::new();
    let mut add = |keys, text| faults.push(WayFault { keys, text });
    let too_small = |what: &str, bytes: Bytes| {
        let (bytes, full) = (bytes.get(), full.get());
        format!(
            "{what} of {bytes} B is smaller than one frame of MTU {}; make it at least {full}",
            direction.mtu
        )
    };
    if direction.buffer < full {
        add(["buffer", "mtu"], too_small("buffer", direction.buffer));
    }
    let depth = |bucket: Option<Bucket>| bucket.map(|bucket| bucket.burst).filter(|burst| *burst < full);
    if let Some(burst) = depth(direction.police) {
        add(["police_burst", "mtu"], too_small("police_burst", burst));
    }
    if let Some(burst) = depth(direction.shape) {
        add(["shape_burst", "mtu"], too_small("shape_burst", burst));
    }
    match direction.discipline {
        QueueDiscipline::Red(red) if red.min >= red.max => {
            let text = format!(
                "red_min ({}) is not below red_max ({}); red_max is usually three times red_min",
                red.min, red.max
            );
            add(["red_min", "red_max"], text);
        }
        QueueDiscipline::Red(red) if red.weight.get() == 0.0 => {
            add(
                ["red_weight", "red_weight"],
                "a red_weight of 0 ignores the queue; 0.002 is usual".to_owned(),
            );
        }
        QueueDiscipline::CoDel(codel) if codel.target >= codel.interval => {
            let text = format!(
                "codel_target ({}) is not below codel_interval ({}); it is usually 5 to 10 % of it",
                codel.target, codel.interval
            );
            add(["codel_target", "codel_interval"], text);
        }
        _ => {}
    }
    faults
}

/// A shared buffer must hold a frame for each port.
fn shared_buffers(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    for (switch, places) in draft.topology.switches.iter().zip(&draft.switches) {
        let Some(shared) = switch.shared else { continue };
        let links = draft.topology.links.iter().filter(|link| link.ends.contains(&switch.name));
        let frames = links.flat_map(|link| {
            let side = usize::from(link.ends[1] == switch.name);
            let direction = &link.directions[side];
            (0..link.members).map(|_| frame(direction.mtu, direction.framing.tags))
        });
        let needed: u64 = frames.sum();
        if shared.capacity.get() < needed {
            let text = format!(
                "switch.{}.buffer: {} B is less than one frame per port; make it at least {needed}",
                switch.name,
                shared.capacity.get()
            );
            mistakes.add(places.of(&["buffer"]), text);
        }
    }
}

/// Both directions of a link have the same MTU; one smaller than that of the hosts must be intended.
fn mtus(draft: &ParsedTopology, mistakes: &mut Mistakes) {
    let Topology { links, hosts, .. } = &draft.topology;
    for (link, places) in links.iter().zip(&draft.links).filter(|(_, places)| places.sound()) {
        let [one, other] = [&link.directions[0], &link.directions[1]];
        if one.mtu != other.mtu {
            let text = format!(
                "link.{}: the MTU is {} from '{}' and {} from '{}'; both directions of a link must have the \
                 same",
                link.name, one.mtu, link.ends[0], other.mtu, link.ends[1]
            );
            let place = |direction: &Places| direction.of(&["mtu"]).clone();
            mistakes.add(&place(&places.directions[0]).max(place(&places.directions[1])), text);
        }
    }
    if !draft.links.iter().all(super::read::LinkPlaces::sound) {
        return;
    }
    for network in graph::networks(links) {
        let access = network.iter().flat_map(|link| {
            let link = &links[*link];
            let ends = hosts.iter().filter(|host| link.ends.contains(&host.name));
            ends.map(|host| (link.directions[0].mtu, &host.name))
        });
        let Some((largest, host)) = access.max_by_key(|(mtu, _)| *mtu) else { continue };
        for link in network {
            let (link, places) = (&links[link], &draft.links[link]);
            let meant = places.directions.iter().all(|direction| direction.given.contains_key("too_big"));
            if link.directions[0].mtu < largest && !meant {
                let text = format!(
                    "link.{}: MTU {}, but host '{host}' sends packets of up to {largest} bytes; make them \
                     equal, or set too_big to choose what happens to larger packets",
                    link.name, link.directions[0].mtu
                );
                mistakes.add(places.directions[0].of(&["mtu"]), text);
            }
        }
    }
}
