//! What a lab would consist of.

use linerate_emu::topology::Topology;

/// The namespaces and ports of a lab with this name, one a line.
#[must_use]
pub fn overview(topology: &Topology, name: &str) -> String {
    let mut text = format!("lab {name}, topology {}, seed {}\n", topology.name, topology.seed);
    for host in &topology.hosts {
        let (v4, v6) = (host.v4, host.v6);
        text += &format!(
            "network namespace linerate-{name}-{}: {}/{} {}/{}\n",
            host.name, v4.0, v4.1, v6.0, v6.1
        );
    }
    for link in &topology.links {
        for (side, direction) in link.directions.iter().enumerate() {
            let rate = direction.rate.map_or_else(|| "endless".to_owned(), |rate| rate.to_string());
            text += &format!(
                "port {}>{}: {rate}, buffer {}, delay {}, MTU {}\n",
                link.ends[side],
                link.ends[1 - side],
                direction.buffer,
                direction.delay,
                direction.mtu
            );
        }
    }
    text
}
