//! The parts of a description that the kernel cannot model.

use crate::link_direction::{LinkDirection, Loss, QueueDiscipline, TooBig};
use crate::topology::{BufferSharing, Topology, TopologyLink};

/// One sentence for every difference.
pub(super) fn of(topology: &Topology) -> Vec<String> {
    let mut gaps = vec![
        "hosts send single packets instead of GSO super-packets, so that each is counted and dropped \
         individually; this costs CPU time and lowers the maximum rate"
            .to_owned(),
    ];
    for switch in &topology.switches {
        if let Some(BufferSharing::Dynamic { .. }) = switch.shared.map(|shared| shared.policy) {
            gaps.push(format!(
                "switch '{}': ports do not share a buffer; each port has the most that a single busy port \
                 could use",
                switch.name
            ));
        }
    }
    for link in &topology.links {
        if link.members > 1 {
            gaps.push(format!(
                "link '{}': the LAG is a single link of {} times the rate, so one flow can use all of it \
                 and nothing is hashed",
                link.name, link.members
            ));
        }
        let directions = [0, 1].map(|side| of_direction(topology, link, &link.directions[side]));
        let [there, back] = &directions;
        for gap in there {
            let direction =
                if back.contains(gap) { String::new() } else { format!(" from '{}'", link.ends[0]) };
            gaps.push(format!("link '{}'{direction}: {gap}", link.name));
        }
        for gap in back.iter().filter(|gap| !there.contains(gap)) {
            gaps.push(format!("link '{}' from '{}': {gap}", link.name, link.ends[1]));
        }
    }
    if topology.links.iter().flat_map(|link| &link.directions).any(is_random) {
        gaps.push("the seed is not used: losses differ from run to run".to_owned());
    }
    gaps
}

fn is_random(direction: &LinkDirection) -> bool {
    direction.jitter.most.as_ns() > 0
        || matches!(direction.loss, Loss::Random(_) | Loss::Burst(_))
        || matches!(direction.discipline, QueueDiscipline::Red(_))
        || direction.duplicate.get() > 0.0
        || direction.reorder.probability.get() > 0.0
}

fn of_direction(topology: &Topology, link: &TopologyLink, direction: &LinkDirection) -> Vec<&'static str> {
    let mut gaps = Vec::new();
    let delayed = direction.delay.as_ns() > 0 || direction.jitter.most.as_ns() > 0;
    let waits = direction.rate.is_some() || direction.shape.is_some();
    if delayed && waits {
        gaps.push(
            "packets are delayed before the queue, not after the line: a drop happens later by the delay",
        );
    }
    if direction.jitter.most.as_ns() > 0 && !direction.jitter.may_overtake {
        gaps.push("jitter changes the order of packets");
    }
    match direction.loss {
        Loss::EveryNth(_) => gaps.push("no packet is lost: netem cannot drop every nth packet"),
        Loss::AtTimes(_) => gaps.push("no packet is lost: netem cannot drop packets at given times"),
        Loss::None | Loss::Random(_) | Loss::Burst(_) => {}
    }
    if direction.reorder.probability.get() > 0.0 && delayed {
        gaps.push("no packet is reordered: with netem a reordered packet would skip the whole delay");
    }
    match direction.discipline {
        QueueDiscipline::TailDrop => {}
        _ if !waits => gaps.push("a line of unlimited rate has no queue for RED or CoDel"),
        QueueDiscipline::Red(_) => gaps.push(
            "RED drops everything above red_max, and its weight is the power of two that tc computes from its burst",
        ),
        QueueDiscipline::CoDel(_) => gaps.push("CoDel's buffer is counted in packets, not in bytes"),
    }
    if let (Some(_), Some(_)) = (direction.shape, direction.rate) {
        gaps.push("the shaper also counts preamble and gap, so it passes less than shape_rate in frames");
    }
    if direction.too_big == TooBig::Icmp && narrower(topology, link) {
        gaps.push("a bridge drops packets that are too big and sends no ICMP message");
    }
    if direction.buffer.get() > u64::from(u32::MAX) {
        gaps.push("the buffer is limited to 4 GiB, the maximum of tc");
    }
    gaps
}

/// True if another link carries larger packets.
fn narrower(topology: &Topology, link: &TopologyLink) -> bool {
    topology.links.iter().any(|other| other.directions[0].mtu > link.directions[0].mtu)
}
