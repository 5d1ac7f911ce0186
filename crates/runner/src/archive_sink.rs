//! Writes runs into the archive.

use linerate_archive::{Archive, ArchiveError, Recorder, RunLimits, default_path, open, open_to_read};
use linerate_control::{Sink, SinkError};
use linerate_model::{Body, CaveatKind, Event};

use crate::RunnerError;

/// Opens the archive at a location, or the default one of this user.
///
/// # Errors
/// It cannot be opened.
pub fn archive_at(location: Option<&str>) -> Result<Archive, ArchiveError> {
    match location {
        Some(location) => open(location),
        None => default_path().and_then(|path| Archive::open(&path)),
    }
}

/// As [`archive_at`], for callers that only read: an archive that this user cannot write is opened too.
///
/// # Errors
/// It cannot be read.
pub fn archive_to_read(location: Option<&str>) -> Result<Archive, ArchiveError> {
    let Some(location) = location else {
        let path = default_path()?;
        return match Archive::open(&path) {
            Err(ArchiveError::ReadOnly { .. } | ArchiveError::Open { .. }) => Archive::open_to_read(&path),
            opened => opened,
        };
    };
    open_to_read(location)
}

/// What the archive lacks. It never ends a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveWarning {
    /// The run has no name.
    #[error("this run was not archived: {0}")]
    NoName(RunnerError),
    /// The archive could not be opened.
    #[error("this run was not archived: {}", with_cause(.0))]
    NotArchived(ArchiveError),
    /// The last events could not be written.
    #[error("the end of this run was not archived: {}", with_cause(.0))]
    EndNotArchived(ArchiveError),
    /// Older runs of unknown clients could not be removed.
    #[error("old runs could not be removed from the archive: {}", with_cause(.0))]
    NotTrimmed(ArchiveError),
}

/// The archive as a sink. If it fails, the run gets a caveat and the measurement continues.
#[derive(Debug)]
pub struct ArchiveSink {
    recorder: Recorder<Archive>,
    broken: bool,
    foreign_client: Option<ForeignClient>,
}

/// The run of an unknown client. The archive is trimmed after the measurement: writers of an archive wait for each
/// other, and clients must not wait for them.
struct ForeignClient {
    run: String,
    limits: RunLimits,
    warn: Box<dyn FnMut(ArchiveWarning)>,
}

impl ArchiveSink {
    /// Opens the archive at a location, or the default one of this user.
    ///
    /// # Errors
    /// It cannot be opened. The run may take place without it.
    pub fn open(location: Option<&str>) -> Result<Self, ArchiveWarning> {
        let archive = archive_at(location).map_err(ArchiveWarning::NotArchived)?;
        Ok(Self { recorder: Recorder::new(archive), broken: false, foreign_client: None })
    }

    /// As [`Self::open`], for the run `run` that an unknown client requested from a server. At its end, older such
    /// runs are removed; `warn` is called if that fails.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for_unknown_client(
        location: Option<&str>,
        run: &str,
        limits: RunLimits,
        warn: impl FnMut(ArchiveWarning) + 'static,
    ) -> Result<Self, ArchiveWarning> {
        let foreign_client = Some(ForeignClient { run: run.to_owned(), limits, warn: Box::new(warn) });
        Ok(Self { foreign_client, ..Self::open(location)? })
    }

    /// Writes the pending events; whether the run is in the archive. It is not if the archive failed before, which
    /// the run's caveats say.
    ///
    /// # Errors
    /// The events cannot be written. Later calls return `false`.
    pub fn close(&mut self) -> Result<bool, ArchiveWarning> {
        if !self.broken
            && let Err(error) = self.recorder.flush()
        {
            self.broken = true;
            return Err(ArchiveWarning::EndNotArchived(error));
        }
        Ok(!self.broken)
    }
}

impl Sink for ArchiveSink {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.recorder.on(event).map_err(|error| {
            self.broken = true;
            SinkError {
                kind: CaveatKind::NotArchived,
                what: "this run was not archived",
                source: Box::new(error),
            }
        })?;
        if matches!(event.body, Body::RunEnded { .. })
            && let Some(mut client) = self.foreign_client.take()
            && let Err(error) = self.recorder.store_mut().admit_unknown_client(&client.run, &client.limits)
        {
            (client.warn)(ArchiveWarning::NotTrimmed(error));
        }
        Ok(())
    }
}

impl std::fmt::Debug for ForeignClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignClient").field("run", &self.run).finish_non_exhaustive()
    }
}

fn with_cause(error: &ArchiveError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error} ({source})"),
        None => error.to_string(),
    }
}
