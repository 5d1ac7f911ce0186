//! The parts of a description that the kernel cannot model.

use crate::link_direction::{Discipline, LinkDirection, Loss, TooBig};
use crate::topology::{Link, Sharing, Topology};

/// One sentence for every difference.
pub(super) fn of(topology: &Topology) -> Vec<String> {
    let mut gaps = vec![
        "hosts hand over single packets instead of super-frames, so that each is counted and dropped alone: it costs \
         processor time and lowers the highest rate"
            .to_owned(),
    ];
    for switch in &topology.switches {
        if let Some(Sharing::Dynamic { .. }) = switch.shared.map(|shared| shared.policy) {
            gaps.push(format!(
                "switch '{}': ports do not share their buffer; each has what a single busy port could take",
                switch.name
            ));
        }
    }
    for link in &topology.links {
        if link.members > 1 {
            gaps.push(format!(
                "link '{}': the LAG is one line of {} times the rate, so one flow gets all of it and nothing is hashed",
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
        gaps.push("the seed is not used: every run draws other losses".to_owned());
    }
    gaps
}

fn is_random(direction: &LinkDirection) -> bool {
    direction.jitter.most.as_ns() > 0
        || matches!(direction.loss, Loss::Random(_) | Loss::Burst(_))
        || matches!(direction.discipline, Discipline::Red(_))
        || direction.duplicate.get() > 0.0
        || direction.reorder.probability.get() > 0.0
}

fn of_direction(topology: &Topology, link: &Link, direction: &LinkDirection) -> Vec<&'static str> {
    let mut gaps = Vec::new();
    let delayed = direction.delay.as_ns() > 0 || direction.jitter.most.as_ns() > 0;
    let waits = direction.rate.is_some() || direction.shape.is_some();
    if delayed && waits {
        gaps.push(
            "packets are delayed before they queue, not behind the line: a drop happens one delay later",
        );
    }
    if direction.jitter.most.as_ns() > 0 && !direction.jitter.may_overtake {
        gaps.push("jitter changes the order of packets");
    }
    match direction.loss {
        Loss::EveryNth(_) => gaps.push("no packet is lost: netem does not lose every nth"),
        Loss::AtTimes(_) => gaps.push("no packet is lost: netem does not lose at given times"),
        Loss::None | Loss::Random(_) | Loss::Burst(_) => {}
    }
    if direction.reorder.probability.get() > 0.0 && delayed {
        gaps.push("no packet is reordered: netem would let it skip the whole delay");
    }
    match direction.discipline {
        Discipline::TailDrop => {}
        _ if !waits => gaps.push("an infinitely fast line has no queue that RED or CoDel could look at"),
        Discipline::Red(_) => gaps.push(
            "RED drops everything above red_max, and its weight is the power of two that tc computes from its burst",
        ),
        Discipline::CoDel(_) => gaps.push("CoDel's buffer is counted in packets, not in bytes"),
    }
    if let (Some(_), Some(_)) = (direction.shape, direction.rate) {
        gaps.push("the shaper counts preamble and gap too, so it passes less than shape_rate in frames");
    }
    if direction.too_big == TooBig::Icmp && narrower(topology, link) {
        gaps.push("a bridge drops what is too big and tells nobody");
    }
    if direction.buffer.get() > u64::from(u32::MAX) {
        gaps.push("the buffer is 4 GiB: tc counts no further");
    }
    gaps
}

/// True if another link carries larger packets.
fn narrower(topology: &Topology, link: &Link) -> bool {
    topology.links.iter().any(|other| other.directions[0].mtu > link.directions[0].mtu)
}
