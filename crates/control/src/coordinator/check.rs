//! Checks a group before the first packet.

use linerate_proto::agent::About;
use linerate_units::Span;

use super::test_bed::{FlowJob, HostError, HostState, RunGroup, TestBed};
use crate::setup::expected_time;

/// How much longer than its longest run a host has to keep the place of a group. Agents grant twice as much, of which the
/// preparation of the group takes a part.
const PLACE_GRACE: Span = Span::from_secs(20);

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
    troubles.extend(places(test_bed, group, abouts));
    troubles
}

/// When each run has ended, from the start of the group, if nothing takes longer than usual. Cross traffic ends with
/// the others.
pub(super) fn ends(group: &RunGroup) -> Vec<Span> {
    let mut ends = vec![Span::ZERO; group.flows.len()];
    // Each round reaches the runs that wait for those of the round before.
    for _ in 0..group.flows.len() {
        let end = |job: &FlowJob| {
            let before = job.after.as_ref().map(|after| {
                let ends = after.flows.iter().filter_map(|at| ends.get(*at)).copied();
                ends.max().unwrap_or_default() + after.pause
            });
            before.unwrap_or(job.start_after) + job.spec.idle_time() + expected_time(&job.spec)
        };
        let next: Vec<Span> = group.flows.iter().map(end).collect();
        if ends == next {
            break;
        }
        ends = next;
    }
    let others = group.flows.iter().zip(&ends).filter(|(job, _)| !job.cross_traffic).map(|(_, end)| *end);
    if let Some(last) = others.max() {
        for (_, end) in group.flows.iter().zip(&mut ends).filter(|(job, _)| job.cross_traffic) {
            *end = last.min(*end);
        }
    }
    ends
}

/// Hosts that would end the place of a group before its last run there has ended.
fn places(test_bed: &TestBed, group: &RunGroup, abouts: &[Option<&About>]) -> Vec<HostError> {
    let ends = ends(group);
    let mut troubles = Vec::new();
    for at in group.hosts() {
        let about = abouts.get(at).copied().flatten();
        let Some(longest) = about.and_then(|about| about.longest_ns) else { continue };
        let runs_there = |(job, _): &(&FlowJob, &Span)| job.from == at || job.to.host() == Some(at);
        let runs: Vec<(&FlowJob, &Span)> = group.flows.iter().zip(&ends).filter(runs_there).collect();
        let needed = runs.iter().map(|(_, end)| **end).max().unwrap_or_default();
        // A run that is too long by itself is reported by its number.
        let is_too_long = |(job, _): &(&FlowJob, &Span)| expected_time(&job.spec) > longest;
        if needed > longest + PLACE_GRACE && !runs.iter().any(is_too_long) {
            let what = format!(
                "its runs would take {needed} in all, but the host keeps a place hardly longer than {longest}; \
                 make them shorter, or raise --limit-time on the host"
            );
            troubles.push(HostError { host: name(test_bed, at), what });
        }
    }
    troubles
}

pub(super) fn name(test_bed: &TestBed, at: usize) -> String {
    test_bed.hosts.get(at).map(|host| host.name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::{After, RunServer};
    use super::*;

    /// One direction of this many seconds, which takes two more.
    fn job(secs: u64, start_after: u64) -> FlowJob {
        let mut spec = linerate_model::TestSpec::default();
        spec.traffic.duration = Some(Span::from_secs(secs));
        (spec.traffic.upload, spec.traffic.no_latency) = (true, true);
        FlowJob {
            from: 0,
            to: RunServer::Host(1),
            spec,
            start_after: Span::from_secs(start_after),
            after: None,
            cross_traffic: false,
            plan: None,
        }
    }

    #[test]
    fn runs_in_a_chain_end_one_after_the_other_and_cross_traffic_with_the_last_one() {
        let after = |flows: Vec<usize>, pause| Some(After { flows, pause: Span::from_secs(pause) });
        // What waits for others does not start by the estimate.
        let last = FlowJob { after: after(vec![2, 1], 1), ..job(10, 600) };
        let middle = FlowJob { after: after(vec![1], 0), ..job(20, 600) };
        let cross_traffic = FlowJob { cross_traffic: true, ..job(3600, 2) };
        let flows = vec![last, job(5, 3), middle, cross_traffic];
        let group = RunGroup { flows, ..RunGroup::default() };
        assert_eq!(ends(&group), [10 + 22 + 1 + 12, 10, 10 + 22, 45].map(Span::from_secs));
        let alone =
            RunGroup { flows: vec![FlowJob { cross_traffic: true, ..job(8, 0) }], ..RunGroup::default() };
        assert_eq!(ends(&alone), [Span::from_secs(10)]);
        // A circle is refused elsewhere, and has an end here.
        let circle = vec![FlowJob { after: after(vec![0], 0), ..job(1, 0) }];
        assert_eq!(ends(&RunGroup { flows: circle, ..RunGroup::default() }).len(), 1);
    }
}
