//! Runs of other tools in the archive.

use linerate_control::{Keeper, Kept, Sink};
use linerate_model::Calibration;
use linerate_proto::stand_in::Planned;

use crate::archive_sink::ArchiveSink;
use crate::naming::{now, run_name};
use crate::{calibration, say};

/// The environment variable that says where runs are kept.
const ARCHIVE: &str = "LINERATE_ARCHIVE";

/// Keeps every run in the user's archive, with what this host measured of itself.
#[derive(Debug, Default)]
pub(crate) struct ArchiveKeeper {
    location: Option<String>,
    calibration: Option<Box<Calibration>>,
}

impl ArchiveKeeper {
    /// The archive at a location; absent for the usual one.
    pub(crate) fn at(location: Option<String>) -> Self {
        Self { location, calibration: calibration::stored() }
    }

    /// The archive that the environment names, or the usual one: a tool's own command line has no option for it.
    pub(crate) fn from_environment() -> Self {
        Self::at(std::env::var(ARCHIVE).ok().filter(|location| !location.is_empty()))
    }
}

impl Keeper for ArchiveKeeper {
    fn open(&self, _: &Planned) -> Option<Kept> {
        let name = run_name().map_err(say::warning).ok()?;
        let sink = ArchiveSink::open(self.location.as_deref())?;
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(sink)];
        Some(Kept { name, started_at: now(), sinks, calibration: self.calibration.clone() })
    }
}
