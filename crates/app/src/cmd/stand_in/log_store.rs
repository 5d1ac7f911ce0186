//! Runs of other tools in the archive.

use linerate_control::{LogStore, Sink, StoredRun};
use linerate_model::Calibration;
use linerate_proto::stand_in::Planned;

use crate::archive_sink::ArchiveSink;
use crate::args::ArchiveLimits;
use crate::naming::{now, run_name};
use crate::{calibration, print};

/// The environment variable that says where runs are kept.
const ARCHIVE: &str = "LINERATE_ARCHIVE";

/// Keeps every run in the user's archive, with what this host measured of itself.
#[derive(Debug, Default)]
pub(crate) struct ArchiveKeeper {
    location: Option<String>,
    /// Absent where the runs are the user's own.
    strangers: Option<ArchiveLimits>,
    calibration: Option<Box<Calibration>>,
}

impl ArchiveKeeper {
    /// The archive at a location; absent for the usual one.
    pub(crate) fn at(location: Option<String>) -> Self {
        Self { location, strangers: None, calibration: calibration::stored() }
    }

    /// The archive at a location, for runs that others ask a server for.
    pub(in crate::cmd) fn for_strangers(location: Option<String>, limits: &ArchiveLimits) -> Self {
        Self { strangers: Some(limits.clone()), ..Self::at(location) }
    }

    /// The archive that the environment names, or the usual one: a tool's own command line has no option for it.
    pub(crate) fn from_environment() -> Self {
        Self::at(std::env::var(ARCHIVE).ok().filter(|location| !location.is_empty()))
    }
}

impl LogStore for ArchiveKeeper {
    fn open(&self, _: &Planned) -> Option<StoredRun> {
        let name = run_name().map_err(print::warning).ok()?;
        let location = self.location.as_deref();
        let sink = match &self.strangers {
            Some(limits) => ArchiveSink::open_for_unknown_client(location, &name, &limits.now())?,
            None => ArchiveSink::open(location)?,
        };
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(sink)];
        Some(StoredRun { name, started_at: now(), sinks, calibration: self.calibration.clone() })
    }
}
