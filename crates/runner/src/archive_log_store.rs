//! Stores runs of stand-ins in the archive.

use linerate_control::{LogStore, Planned, Sink, StoredRun};
use linerate_model::Calibration;

use crate::archive_sink::{ArchiveSink, ArchiveWarning};
use crate::naming::{now, run_name};
use crate::retention::Retention;

/// Stores runs in an archive, with the calibration of this host.
#[derive(Debug)]
pub struct ArchiveLogStore {
    /// Location of the archive; `None` for the default one.
    pub location: Option<String>,
    /// What is kept of runs that unknown clients request from a server; absent for the user's own runs.
    pub foreign_clients: Option<Retention>,
    /// The stored calibration of this host; absent if it was never calibrated.
    pub calibration: Option<Box<Calibration>>,
    /// Gets every failure. A run takes place without the archive too.
    pub warn: fn(ArchiveWarning),
}

impl LogStore for ArchiveLogStore {
    fn open(&self, _: &Planned) -> Option<StoredRun> {
        let location = self.location.as_deref();
        let name = run_name().map_err(|error| (self.warn)(ArchiveWarning::NoName(error))).ok()?;
        let sink = match &self.foreign_clients {
            Some(quota) => ArchiveSink::open_for_unknown_client(location, &name, quota.limits(), self.warn),
            None => ArchiveSink::open(location, self.warn),
        };
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(sink.map_err(self.warn).ok()?)];
        Some(StoredRun { name, started_at: now(), sinks, calibration: self.calibration.clone() })
    }
}
