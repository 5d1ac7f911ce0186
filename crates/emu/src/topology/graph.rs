//! The graph of a description: ports, loops, networks.

use std::collections::{BTreeMap, BTreeSet};

use super::TopologyLink;

/// Faults found while links are added one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GraphFault {
    /// The link connects two nodes that another link already connects.
    Parallel {
        /// The later link.
        link: usize,
        /// The earlier one.
        first: usize,
    },
    /// The link closes a loop.
    Loop {
        /// The link that closes it.
        link: usize,
        /// The others, in the order along the loop.
        others: Vec<usize>,
    },
}

/// Adds the links and returns the invalid ones, which are ignored from then on.
pub(super) fn faults(links: &[TopologyLink]) -> Vec<GraphFault> {
    let mut laid: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let mut faults = Vec::new();
    for (index, link) in links.iter().enumerate() {
        let [one, other] = [link.ends[0].as_str(), link.ends[1].as_str()];
        match path(&laid, one, other).as_deref() {
            None => {
                laid.entry(one).or_default().push((other, index));
                laid.entry(other).or_default().push((one, index));
            }
            // A link from a node to itself is another mistake.
            Some([]) => {}
            Some([first]) => faults.push(GraphFault::Parallel { link: index, first: *first }),
            Some(others) => faults.push(GraphFault::Loop { link: index, others: others.to_vec() }),
        }
    }
    faults
}

/// The links of the path between two nodes of a description without faults, if there is one.
pub(super) fn path_between(links: &[TopologyLink], from: &str, to: &str) -> Option<Vec<usize>> {
    let mut laid: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (index, link) in links.iter().enumerate() {
        let [one, other] = [link.ends[0].as_str(), link.ends[1].as_str()];
        laid.entry(one).or_default().push((other, index));
        laid.entry(other).or_default().push((one, index));
    }
    path(&laid, from, to)
}

/// The links of the path between two nodes, if there is one.
fn path(laid: &BTreeMap<&str, Vec<(&str, usize)>>, from: &str, to: &str) -> Option<Vec<usize>> {
    // For each node reached: the previous node, and the link from there.
    let mut came: BTreeMap<&str, Option<(&str, usize)>> = BTreeMap::from([(from, None)]);
    let mut open = vec![from];
    while let Some(node) = open.pop().filter(|_| !came.contains_key(to)) {
        for &(next, link) in laid.get(node).into_iter().flatten() {
            came.entry(next).or_insert_with(|| {
                open.push(next);
                Some((node, link))
            });
        }
    }
    let mut direction = Vec::new();
    let mut step = came.get(to)?;
    while let Some((before, link)) = step {
        direction.push(*link);
        step = came.get(before)?;
    }
    direction.reverse();
    Some(direction)
}

/// The links of each network: those connected through any nodes.
pub(super) fn networks(links: &[TopologyLink]) -> Vec<Vec<usize>> {
    let mut networks: Vec<(BTreeSet<&str>, Vec<usize>)> = Vec::new();
    for (index, link) in links.iter().enumerate() {
        let mut nodes: BTreeSet<&str> = link.ends.iter().map(String::as_str).collect();
        let mut members = Vec::new();
        networks.retain_mut(|(theirs, indices)| {
            let apart = nodes.is_disjoint(theirs);
            if !apart {
                nodes.append(theirs);
                members.append(indices);
            }
            apart
        });
        members.push(index);
        networks.push((nodes, members));
    }
    networks.into_iter().map(|(_, members)| members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_direction::LinkDirection;
    use crate::packet_batch::HashFields;

    fn links(ends: &[[&str; 2]]) -> Vec<TopologyLink> {
        let link = |ends: &[&str; 2]| TopologyLink {
            name: ends.concat(),
            ends: ends.map(str::to_owned),
            directions: [LinkDirection::default(), LinkDirection::default()],
            members: 1,
            hash: HashFields::default(),
            nic: true,
        };
        ends.iter().map(link).collect()
    }

    #[test]
    fn loops_are_named_link_by_link() {
        let ring = links(&[["a", "s"], ["s", "t"], ["t", "u"], ["u", "s"], ["u", "b"], ["b", "u"]]);
        assert_eq!(
            faults(&ring),
            [GraphFault::Loop { link: 3, others: vec![2, 1] }, GraphFault::Parallel { link: 5, first: 4 }]
        );
        assert_eq!(faults(&links(&[["a", "s"], ["s", "b"], ["s", "c"]])), []);
    }

    #[test]
    fn networks_are_what_hangs_together() {
        let two = links(&[["a", "s"], ["c", "d"], ["b", "t"], ["t", "s"]]);
        let mut networks = networks(&two);
        networks.iter_mut().for_each(|members| members.sort_unstable());
        networks.sort();
        assert_eq!(networks, [vec![0, 2, 3], vec![1]]);
    }
}
