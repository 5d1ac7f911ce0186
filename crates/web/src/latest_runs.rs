//! The latest result of each server, and whether this host has measured it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use linerate_archive::{ArchiveError, Filter, Store};
use linerate_model::{Body, CaveatKind, Event, RunHead, World};
use linerate_runner::{log_if_archived, unix_seconds};
use linerate_sock::thread::locked;

use crate::problem::HttpProblem;

/// Runs that are searched.
const MAX_SEARCHED: u32 = 1000;
/// Runs whose source is remembered.
const MAX_REMEMBERED: usize = 4096;

/// The last run of each server on real hosts that has ended, the latest first, without those that `left_out` is true for.
///
/// An archive lists runs in the order in which they were stored. An imported one, and one that had to wait until the
/// archive could be written, is older than its place.
pub(crate) fn latest_runs(
    archive: &dyn Store,
    left_out: &mut dyn FnMut(&RunHead) -> Result<bool, HttpProblem>,
) -> Result<Vec<RunHead>, HttpProblem> {
    let filter = Filter { whole: true, world: Some(World::Hosts.name().to_owned()), ..Filter::default() };
    let runs = archive.page(&filter, None, MAX_SEARCHED)?.runs.into_iter();
    let mut ended: Vec<RunHead> = runs.filter(|run| !run.is_plan && run.outcome.is_some()).collect();
    let started = |run: &RunHead| run.started_at.as_deref().and_then(unix_seconds).unwrap_or(f64::MIN);
    ended.sort_by(|a, b| started(b).total_cmp(&started(a)));
    let (mut servers, mut latest) = (BTreeSet::new(), Vec::new());
    for run in ended {
        let Some(server) = run.target.clone() else { continue };
        if !servers.contains(&server) && !left_out(&run)? {
            servers.insert(server);
            latest.push(run);
        }
    }
    Ok(latest)
}

/// Which runs this host has measured, as their logs say. The log of a run that has ended does not change, so each is read
/// once.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunSources(Arc<Mutex<BTreeMap<String, bool>>>);

impl RunSources {
    /// Whether a run that has ended was measured by `host`. One that was deleted meanwhile was not.
    pub(crate) fn is_own(&self, archive: &dyn Store, run: &str, host: &str) -> Result<bool, ArchiveError> {
        if let Some(known) = locked(&self.0).get(run) {
            return Ok(*known);
        }
        let own = log_if_archived(archive, run)?.is_some_and(|log| is_measured_by(&log, host));
        let mut sources = locked(&self.0);
        if sources.len() >= MAX_REMEMBERED {
            sources.clear();
        }
        sources.insert(run.to_owned(), own);
        Ok(own)
    }
}

/// Whether a log is that of a test from this host. What a client of another program has measured against it has the
/// client as its target, and its directions are those of the client. Of a test that reached nobody no host is known.
fn is_measured_by(log: &[Event], host: &str) -> bool {
    let mut client = None;
    for event in log {
        match &event.body {
            Body::Host { info } if event.host == 0 => client = Some(&*info.name),
            Body::Caveat { caveat, .. } if caveat.kind == CaveatKind::Imported => return false,
            _ => {}
        }
    }
    client.is_none_or(|client| client == host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_archive::{Archive, EventStore};
    use linerate_model::{Caveat, HostInfo, Outcome, RunStart, TestSpec};
    use linerate_units::Timestamp;

    /// A test from `client` to `target`.
    fn log(run: &str, target: &str, day: &str, client: Option<&str>, world: World) -> Vec<Event> {
        let start = RunStart {
            schema: "linerate.event/2".into(),
            started_at: format!("2026-11-{day}T10:00:00Z").into(),
            world,
            linerate: "0.1.0".into(),
            target: target.into(),
            spec: TestSpec::default(),
        };
        let host = |name: &str| Body::Host { info: HostInfo { name: name.into(), ..HostInfo::default() } };
        let imported = Caveat { kind: CaveatKind::Imported, text: "a file".into() };
        let said = match client {
            Some(name) => host(name),
            None => Body::Caveat { flow: None, caveat: imported },
        };
        let end = Body::RunEnded { outcome: Outcome::Completed, reason: None };
        let bodies = [Body::RunStarted(Box::new(start)), said, end];
        (0..)
            .zip(bodies)
            .map(|(seq, body)| Event { run: run.into(), host: 0, seq, at: Timestamp::START, body })
            .collect()
    }

    #[test]
    fn the_last_result_of_a_server_is_neither_an_import_nor_of_a_lab_nor_of_another_host() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(&folder.path().join("runs.db")).unwrap();
        for (run, day, client, world) in [
            ("new", "25", Some("ams-1"), World::Hosts),
            // It had to wait until the archive could be written.
            ("late", "24", Some("ams-1"), World::Hosts),
            ("lab", "26", Some("ams-1"), World::Lab),
            ("import", "27", None, World::Hosts),
            ("other", "28", Some("lund-2"), World::Hosts),
        ] {
            archive.append(&log(run, "oslo", day, client, world)).unwrap();
        }
        let sources = RunSources::default();
        let mut is_other =
            |run: &RunHead| -> Result<bool, HttpProblem> { Ok(!sources.is_own(&archive, &run.id, "ams-1")?) };
        let ids = |runs: Vec<RunHead>| runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(latest_runs(&archive, &mut is_other).unwrap()), ["new"]);
        // The second time no log is read.
        archive.delete("new").unwrap();
        assert!(sources.is_own(&archive, "new", "ams-1").unwrap());
        assert_eq!(ids(latest_runs(&archive, &mut |_| Ok(false)).unwrap()), ["other"]);
    }

    #[test]
    fn what_a_client_has_measured_is_no_result_of_its_server() {
        let mut run = log("r", "192.0.2.7 (iperf3)", "25", Some("192.0.2.7"), World::Hosts);
        let server = HostInfo { name: "ams-1".into(), ..HostInfo::default() };
        run.push(Event { host: 1, seq: 9, body: Body::Host { info: server }, ..run[0].clone() });
        assert!(!is_measured_by(&run, "ams-1"));
        assert!(is_measured_by(&run, "192.0.2.7"));
        run.retain(|event| !matches!(event.body, Body::Host { .. }));
        assert!(is_measured_by(&run, "ams-1"), "it reached nobody");
    }
}
