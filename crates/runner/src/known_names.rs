//! Names that a user can give, for completions and lists to choose from. What cannot be read has no names.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_archive::{Archive, Filter, Store, default_path};
use linerate_emu::topology;
#[cfg(target_os = "linux")]
use linerate_lab::StateDir;
use linerate_model::RunHead;
use linerate_sock::proc;

use crate::local_time;

/// Newest runs that are looked at.
const MAX_RUNS: u32 = 200;

/// What names are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// Runs, by their names and ids, and `latest`.
    Run,
    /// Names that a user gave to runs.
    Label,
    /// Such names, and servers of runs.
    LabelOrServer,
    /// Servers of runs.
    Server,
    /// Bundled plans.
    Plan,
    /// Bundled topologies.
    Topology,
    /// This user's labs, running or killed.
    Lab,
    /// Congestion control algorithms of this kernel.
    CongestionControl,
}

/// A name, and what it means, one line or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownName {
    /// The name.
    pub name: String,
    /// What it means.
    pub about: String,
}

impl KnownName {
    fn new(name: &str, about: &str) -> Self {
        Self { name: name.to_owned(), about: about.to_owned() }
    }

    /// The known names of a kind; of runs those of the newest ones in the archive at a location or the default one.
    #[must_use]
    pub fn all(kind: NameKind, archive: Option<&Path>) -> Vec<Self> {
        match kind {
            NameKind::Run => Self::runs(archive),
            NameKind::Label => Self::labels(archive),
            NameKind::LabelOrServer => {
                Self::labels(archive).into_iter().chain(Self::servers(archive)).collect()
            }
            NameKind::Server => Self::servers(archive),
            NameKind::Plan => Self::plans(),
            NameKind::Topology => Self::topologies(),
            NameKind::Lab => Self::labs(),
            NameKind::CongestionControl => Self::congestion_controls(),
        }
    }

    fn runs(location: Option<&Path>) -> Vec<Self> {
        let Some((archive, heads)) = newest_runs(location) else { return Vec::new() };
        let mut found = vec![Self::new("latest", "the newest run")];
        for head in &heads {
            let started = head.started_at.as_deref().map(local_time).unwrap_or_default();
            let about = format!("{started} {}", head.target.as_deref().unwrap_or_default());
            found.extend(head.name.iter().map(|name| Self::new(name, &about)));
            found.extend(archive.short_name(&head.id).iter().map(|id| Self::new(id, &about)));
        }
        let mut seen = BTreeSet::new();
        found.retain(|one| seen.insert(one.name.clone()));
        found
    }

    fn labels(location: Option<&Path>) -> Vec<Self> {
        let heads = newest_runs(location).map(|(_, heads)| heads).unwrap_or_default();
        let names: BTreeSet<&str> = heads.iter().filter_map(|run| run.name.as_deref()).collect();
        names.into_iter().map(|name| Self::new(name, "")).collect()
    }

    fn servers(location: Option<&Path>) -> Vec<Self> {
        let heads = newest_runs(location).map(|(_, heads)| heads).unwrap_or_default();
        let targets = heads.iter().filter(|run| !run.is_plan).filter_map(|run| run.target.as_deref());
        targets.collect::<BTreeSet<_>>().into_iter().map(|target| Self::new(target, "")).collect()
    }

    fn plans() -> Vec<Self> {
        linerate_plan::bundled().iter().map(|plan| Self::new(plan.name, plan.about)).collect()
    }

    fn topologies() -> Vec<Self> {
        topology::bundled().iter().map(|known| Self::new(known.name, known.about)).collect()
    }

    #[cfg(not(target_os = "linux"))]
    const fn labs() -> Vec<Self> {
        Vec::new()
    }

    #[cfg(target_os = "linux")]
    fn labs() -> Vec<Self> {
        let labs = StateDir::open(None).and_then(|state| state.labs()).unwrap_or_default();
        labs.iter().map(|lab| Self::new(lab.name(), "")).collect()
    }

    fn congestion_controls() -> Vec<Self> {
        let available = proc::sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
        available.split_whitespace().map(|name| Self::new(name, "")).collect()
    }
}

/// Nothing is written: an archive that is not there is not created, and one of an earlier version is not converted.
fn newest_runs(location: Option<&Path>) -> Option<(Archive, Vec<RunHead>)> {
    let path = location.map_or_else(|| default_path().ok(), |path| Some(path.to_owned()))?;
    let archive = path.is_file().then(|| Archive::open_to_read(&path).ok())??;
    let heads = archive.runs(&Filter { limit: Some(MAX_RUNS), whole: true, ..Filter::default() }).ok()?;
    Some((archive, heads))
}
