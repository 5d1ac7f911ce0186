//! Stores runs of stand-ins in the archive.

use linerate_compat::stand_in::Planned;
use linerate_control::{LogStore, Sink, StoredRun};
use linerate_model::Calibration;
use linerate_runner::{ArchiveSink, now, run_name};

use crate::args::ArchiveLimits;
use crate::{archive, calibration, print};

/// The environment variable with the location of the archive.
const ARCHIVE: &str = "LINERATE_ARCHIVE";

/// Stores runs in the user's archive, with the calibration of this host.
#[derive(Debug, Default)]
pub(crate) struct ArchiveKeeper {
    location: Option<String>,
    /// Limits for runs of unknown clients; absent for the user's own runs.
    foreign_clients: Option<ArchiveLimits>,
    calibration: Option<Box<Calibration>>,
}

impl ArchiveKeeper {
    /// The archive at a location; `None` for the default one.
    pub(crate) fn at(location: Option<String>) -> Self {
        Self { location, foreign_clients: None, calibration: calibration::stored() }
    }

    /// The archive at a location, for runs that unknown clients request from a server.
    pub(crate) fn for_foreign_clients(location: Option<String>, limits: &ArchiveLimits) -> Self {
        Self { foreign_clients: Some(limits.clone()), ..Self::at(location) }
    }

    /// The archive named by the environment, or the default one: the tools' command lines have no option for
    /// it.
    pub(crate) fn from_environment() -> Self {
        Self::at(std::env::var(ARCHIVE).ok().filter(|location| !location.is_empty()))
    }
}

impl LogStore for ArchiveKeeper {
    fn open(&self, _: &Planned) -> Option<StoredRun> {
        let name = run_name().map_err(print::warning).ok()?;
        let location = self.location.as_deref();
        let sink = archive::or_warning(match &self.foreign_clients {
            Some(limits) => {
                ArchiveSink::open_for_unknown_client(location, &name, limits.now(), print::warning)
            }
            None => ArchiveSink::open(location),
        })?;
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(sink)];
        Some(StoredRun { name, started_at: now(), sinks, calibration: self.calibration.clone() })
    }
}
