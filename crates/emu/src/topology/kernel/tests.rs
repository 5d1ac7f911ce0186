use expect_test::{Expect, expect};

use super::*;
use crate::topology::{bundled, read};

fn bundled_topology(name: &str) -> Topology {
    let found = bundled().iter().find(|bundled| bundled.name == name).unwrap();
    read(found.text, name, &[]).unwrap()
}

/// The commands that build a network, and what they cannot do.
fn check(topology: &Topology, expected: &Expect) {
    let Commands { up, cannot, .. } = commands(topology, "t");
    let up = up.iter().map(|command| format!("{command}\n"));
    let cannot = cannot.iter().map(|gap| format!("# {gap}\n"));
    expected.assert_eq(&up.chain(cannot).collect::<String>());
}
