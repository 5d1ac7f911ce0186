//! Stores runs of stand-ins in the archive.

use linerate_archive::RunLimits;

use linerate_control::{LogStore, Planned, Sink, StoredRun};
use linerate_model::Calibration;
use linerate_units::{Bytes, Span};

use crate::archive_sink::{ArchiveSink, ArchiveWarning};
use crate::naming::{now, run_name, time_ago};

/// What the archive keeps of the runs of unknown clients.
#[derive(Debug, Clone, Copy)]
pub struct ForeignRunQuota {
    /// Largest number of runs.
    pub runs: u32,
    /// Largest size of their logs.
    pub bytes: Bytes,
    /// Age of the oldest run.
    pub age: Span,
}

impl ForeignRunQuota {
    /// The limits for a run that starts now. A run of the last day that has no end may be active.
    fn limits(self) -> RunLimits {
        const ACTIVE: Span = Span::from_secs(86_400);
        let Self { runs, bytes, age } = self;
        RunLimits {
            runs: Some(runs),
            bytes: Some(bytes.get()),
            oldest: Some(time_ago(age)),
            under_way: time_ago(ACTIVE),
        }
    }
}

/// Stores runs in an archive, with the calibration of this host.
#[derive(Debug)]
pub struct ArchiveLogStore {
    /// Location of the archive; `None` for the default one.
    pub location: Option<String>,
    /// What is kept of runs that unknown clients request from a server; absent for the user's own runs.
    pub foreign_clients: Option<ForeignRunQuota>,
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
            None => ArchiveSink::open(location),
        };
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(sink.map_err(self.warn).ok()?)];
        Some(StoredRun { name, started_at: now(), sinks, calibration: self.calibration.clone() })
    }
}
