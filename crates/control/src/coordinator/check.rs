//! Checks a group before the first packet.

use linerate_proto::agent::About;

use super::test_bed::{HostError, HostState, RunGroup, TestBed};
use crate::setup::expected_time;

/// Reports servers that appear under two names: such a server would wait for itself.
pub(super) fn one_server_one_name(test_bed: &TestBed, host_states: &[Option<HostState>]) -> Vec<HostError> {
    let mut troubles = Vec::new();
    for (at, state) in host_states.iter().enumerate() {
        let Some(state) = state else { continue };
        let same = |other: &&Option<HostState>| {
            other.as_ref().is_some_and(|other| other.about.identity == state.about.identity)
        };
        let first = host_states.iter().position(|other| same(&other));
        if let Some(first) = first.filter(|first| *first < at) {
            let what =
                format!("it is the same server as {}; use one name for each host", name(test_bed, first));
            troubles.push(HostError { host: name(test_bed, at), what });
        }
    }
    troubles
}

/// Whether these runs end before the run that waits for them: each exists, none is cross traffic, and there is no
/// cycle.
fn can_end(flows: &[usize], group: &RunGroup) -> bool {
    let mut reached = flows.to_vec();
    // A chain that is longer than the number of runs contains a cycle.
    for _ in 0..=group.flows.len() {
        let jobs: Option<Vec<_>> = reached.iter().map(|at| group.flows.get(*at)).collect();
        let Some(jobs) = jobs.filter(|jobs| jobs.iter().all(|job| !job.cross_traffic)) else { return false };
        reached = jobs.iter().flat_map(|job| &job.after).flat_map(|after| after.flows.clone()).collect();
        reached.sort_unstable();
        reached.dedup();
        if reached.is_empty() {
            return true;
        }
    }
    false
}

/// Checks every flow against the descriptions of its two ends.
pub(super) fn group(test_bed: &TestBed, group: &RunGroup, abouts: &[Option<&About>]) -> Vec<HostError> {
    let mut troubles = Vec::new();
    for (number, flow) in (1_u32..).zip(&group.flows) {
        let mut report = |host: String, what: String| {
            troubles.push(HostError { host, what: format!("flow {number}: {what}") })
        };
        if let Err(error) = flow.spec.check() {
            report(String::new(), error.to_string());
        }
        if flow.after.as_ref().is_some_and(|after| !can_end(&after.flows, group)) {
            let what = "it waits for a run that does not exist, is cross traffic, or waits for it in turn";
            report(String::new(), what.to_owned());
        }
        let ends = [Some(flow.from), flow.to.host()];
        if let Some(unknown) = ends.into_iter().flatten().find(|at| *at >= test_bed.hosts.len()) {
            report(
                String::new(),
                format!("host number {unknown} is not in the test bed of {}", test_bed.hosts.len()),
            );
            continue;
        }
        for at in ends.into_iter().flatten() {
            let Some(about) = abouts.get(at).copied().flatten() else { continue };
            let asked = flow.spec.socket.congestion.as_ref();
            if let Some(unknown) = asked.filter(|name| !about.congestion.contains(name)) {
                let has = about.congestion.join(", ");
                report(
                    name(test_bed, at),
                    format!(
                        "its kernel does not have the congestion control '{unknown}' (available: {has}); \
                         load it with modprobe"
                    ),
                );
            }
            let length = expected_time(&flow.spec);
            if let Some(longest) = about.longest_ns.filter(|longest| length > *longest) {
                report(
                    name(test_bed, at),
                    format!(
                        "the run would take {length}, but the host allows {longest}; give a shorter -t, or \
                         raise --limit-time on the host"
                    ),
                );
            }
        }
    }
    troubles
}

pub(super) fn name(test_bed: &TestBed, at: usize) -> String {
    test_bed.hosts.get(at).map(|host| host.name.clone()).unwrap_or_default()
}
