//! Stores runs of stand-ins in the archive.

use std::net::IpAddr;

use linerate_control::{LogStore, Planned, Sink, StoredRun, UnstoredRun};
use linerate_model::{Calibration, RunLabels};

use crate::archive_sink::{ArchiveSink, ArchiveWarning};
use crate::error::RunnerError;
use crate::naming::{now, run_name};
use crate::retention::Retention;
use crate::without_address::WithoutAddress;

/// Stores runs in an archive, with the calibration of this host.
#[derive(Debug)]
pub struct ArchiveLogStore {
    /// Location of the archive; `None` for the default one.
    pub location: Option<String>,
    /// What is kept of runs that unknown clients request from a server; absent for the user's own runs.
    pub foreign_clients: Option<Retention>,
    /// Whether the addresses of clients are left out.
    pub without_addresses: bool,
    /// The stored calibration of this host; absent if it was never calibrated.
    pub calibration: Option<Box<Calibration>>,
    /// Gets every failure. A run takes place without the archive too.
    pub warn: fn(ArchiveWarning),
}

impl LogStore for ArchiveLogStore {
    fn open(&self, _: &Planned, peer: Option<IpAddr>) -> Option<StoredRun> {
        let location = self.location.as_deref();
        let name = run_name().map_err(|error| (self.warn)(ArchiveWarning::NoName(error))).ok()?;
        let sink = match &self.foreign_clients {
            Some(quota) => ArchiveSink::open_for_unknown_client(location, &name, quota.limits(), self.warn),
            None => ArchiveSink::open(location, self.warn),
        };
        let sink = sink.map_err(self.warn).ok()?;
        let sink: Box<dyn Sink> = match peer.filter(|_| self.without_addresses) {
            Some(address) => Box::new(WithoutAddress::new(sink, address)),
            None => Box::new(sink),
        };
        let (sinks, calibration) = (vec![sink], self.calibration.clone());
        Some(StoredRun { name, started_at: now(), labels: RunLabels::default(), sinks, calibration })
    }
}

impl ArchiveLogStore {
    /// A run for which there is no archive.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub fn unstored(&self) -> Result<UnstoredRun, RunnerError> {
        Ok(UnstoredRun { name: run_name()?, started_at: now(), calibration: self.calibration.clone() })
    }
}
