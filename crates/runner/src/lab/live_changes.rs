//! The changes that make a running network the one of another point of a plan.

use std::collections::{BTreeMap, BTreeSet};

use linerate_emu::link_direction::Loss;
use linerate_emu::topology::{self, Topology};
use linerate_lab::control_protocol::Ask;
use linerate_plan::Source;

use super::read_topology;

/// Settings of a plan's network, by key.
type PlanSettings = BTreeMap<String, String>;

/// The settings as for `--set`.
pub(super) fn settings_of(set: &PlanSettings) -> Vec<String> {
    set.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// The requests that make a running network of `source` with the settings `old` equal to one that is created
/// with the settings `new`. Absent if requests cannot do that, so that a new network is necessary.
///
/// A key that changes at runtime leaves what depends on it as it is: a bucket keeps its depth, RED its
/// thresholds, and what the file says about a discipline is forgotten while the link has another one. In a new
/// network all of this follows from the file and the settings. So the requests are tried on a description of
/// the running network first.
pub(super) fn live_changes(source: &Source, old: &PlanSettings, new: &PlanSettings) -> Option<Vec<Ask>> {
    let read = |set: &PlanSettings| read_topology(source, &settings_of(set)).ok();
    let (mut running, wanted) = (read(old)?, read(new)?);
    if has_new_loss_times(&running, &wanted) {
        return None;
    }
    let changed: BTreeSet<&String> =
        old.keys().chain(new.keys()).filter(|key| old.get(*key) != new.get(*key)).collect();
    // The keys of one target are checked together, because they may bound each other.
    let mut targets: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for key in changed {
        let (target, name) = key.rsplit_once('.')?;
        targets.entry(target).or_default().push((name.to_owned(), new.get(key)?.clone()));
    }
    for (target, changes) in &targets {
        change(&mut running, target, changes)?;
    }
    let ask =
        |(target, changes): (&str, Vec<(String, String)>)| Ask::Set { target: target.to_owned(), changes };
    (running == wanted).then(|| targets.into_iter().map(ask).collect())
}

/// True if a direction gets other times of losses. They count from the start of the network.
fn has_new_loss_times(running: &Topology, wanted: &Topology) -> bool {
    let losses = |network: &Topology| -> Vec<Loss> {
        let directions = network.links.iter().flat_map(|link| &link.directions);
        directions.map(|direction| direction.loss.clone()).collect()
    };
    let timed = |(is, becomes): (Loss, Loss)| is != becomes && matches!(becomes, Loss::AtTimes(_));
    losses(running).into_iter().zip(losses(wanted)).any(timed)
}

/// Changes a description as the switch changes the network; absent if it would refuse.
fn change(network: &mut Topology, target: &str, changes: &[(String, String)]) -> Option<()> {
    let (number, sides) = topology::parse_target(target).ok()?.find(network).ok()?;
    for &side in sides {
        let changes = changes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        topology::change_direction(&mut network.links[number].directions[side], changes).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CABLE: &str = "host.a = {}\nhost.b = {}\nswitch.s = {}\nlink.a.ends = [\"a\", \"s\"]\nlink.b.ends = [\"s\", \"b\"]\n";

    fn source(more: &str) -> Source {
        Source { name: "cable.toml".to_owned(), text: format!("{CABLE}{more}") }
    }

    fn set(typed: &str) -> PlanSettings {
        let split = |one: &str| one.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        typed.split_whitespace().filter_map(split).collect()
    }

    fn live(more: &str, old: &str, new: &str) -> Option<Vec<Ask>> {
        live_changes(&source(more), &set(old), &set(new))
    }

    /// The network after those requests.
    fn after(more: &str, old: &str, asks: &[Ask]) -> Topology {
        let mut network = read_topology(&source(more), &settings_of(&set(old))).unwrap();
        for ask in asks {
            let Ask::Set { target, changes } = ask else { panic!("{ask:?}") };
            change(&mut network, target, changes).unwrap();
        }
        network
    }

    #[test]
    fn a_change_whose_result_would_depend_on_the_points_before_needs_a_new_network() {
        let codel = "link.b.discipline = \"codel\"\nlink.b.ecn = true\nlink.b.codel_target = \"20ms\"\n";
        let red = "link.b.discipline = \"red\"\n";
        for (more, old, new) in [
            // The bucket would keep the depth of 10 ms at the slower rate.
            ("", "link.b.police_rate=10M", "link.b.police_rate=100M"),
            ("", "link.b.shape_rate=100M", "link.b.shape_rate=10M"),
            (
                "link.b.police_rate = \"10M\"\nlink.b.police_burst = 9000\n",
                "link.b.police_rate=none",
                "link.b.police_rate=1M",
            ),
            // The target of the file and ECN would be forgotten.
            (codel, "link.b.discipline=tail-drop", "link.b.discipline=codel"),
            // The thresholds would stay those of the smaller buffer.
            (red, "link.b.buffer=100kB", "link.b.buffer=1MB"),
            // Of two models of loss, the one that is set last counts.
            ("", "link.b.loss=0.1 link.b.loss_every=9", "link.b.loss=0.2 link.b.loss_every=9"),
            ("", "link.b.delay=1ms link.b.from.s.delay=5ms", "link.b.delay=2ms link.b.from.s.delay=5ms"),
            ("", "link.b.loss_times=5s", "link.b.loss_times=9s"),
            ("", "link.b.loss=0", "link.b.loss_times=5s link.b.loss=0"),
            ("", "link.b.mtu=1500 link.a.mtu=1500", "link.b.mtu=9000 link.a.mtu=9000"),
            ("", "link.b.delay=1ms", ""),
            ("", "host.a.congestion=cubic", "host.a.congestion=reno"),
            ("", "seed=1", "seed=2"),
        ] {
            assert_eq!(live(more, old, new), None, "{more}{old} to {new}");
        }
    }

    #[test]
    fn a_network_that_changes_at_runtime_is_the_one_of_its_point() {
        for (more, old, new, asks) in [
            ("", "link.b.delay=1ms", "link.b.delay=2ms", 1),
            ("", "", "link.a.rate=1G", 1),
            ("", "link.a.delay=1ms link.b.delay=1ms", "link.a.delay=2ms link.b.delay=2ms", 2),
            ("link.b.rate = \"20M\"\n", "link.b.discipline=tail-drop", "link.b.discipline=codel", 1),
            ("", "link.b.from.s.loss=0", "link.b.from.s.loss=1%", 1),
            ("", "link.b.from.s.loss=1% link.b.rate=1G", "link.b.from.s.loss=1% link.b.rate=2G", 1),
            (
                "link.b.discipline = \"red\"\n",
                "link.b.red_min=30kB link.b.red_max=90kB",
                "link.b.red_min=100kB link.b.red_max=300kB",
                1,
            ),
            ("link.b.police_rate = \"1M\"\nlink.b.police_burst = 9000\n", "", "link.b.police_rate=5M", 1),
        ] {
            let found = live(more, old, new).unwrap_or_else(|| panic!("{more}{old} to {new}"));
            assert_eq!(found.len(), asks, "{found:?}");
            let wanted = read_topology(&source(more), &settings_of(&set(new))).unwrap();
            assert_eq!(after(more, old, &found), wanted, "{old} to {new}");
        }
    }
}
