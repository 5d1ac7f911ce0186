//! Writes runs into the archive.

use std::path::{Path, PathBuf};

use linerate_archive::{Archive, ArchiveError, EventStore, Recorder, RetentionLimits, default_path, open};
use linerate_control::{Sink, SinkError};
use linerate_model::{Body, CaveatKind, Event};

use crate::RunnerError;
use crate::unwritten::UnwrittenEvents;

/// Opens the archive at a location, or the default one of this user. What could not be written earlier is written now.
///
/// # Errors
/// It cannot be opened.
pub fn archive_at(location: Option<&str>) -> Result<Archive, ArchiveError> {
    let mut archive = match location {
        Some(location) => open(location)?,
        None => default_path().and_then(|path| Archive::open(&path))?,
    };
    if let Some(unwritten) = UnwrittenEvents::of(location)
        && let Err(error) = unwritten.move_into(&mut archive)
    {
        tracing::warn!(%error, "events of earlier runs still wait for the archive");
    }
    Ok(archive)
}

/// As [`archive_at`], for callers that only read: an archive that this user cannot write is opened too.
///
/// # Errors
/// It cannot be read.
pub fn archive_to_read(location: Option<&str>) -> Result<Archive, ArchiveError> {
    match archive_at(location) {
        Err(error @ (ArchiveError::ReadOnly { .. } | ArchiveError::Open { .. })) => match location {
            Some(url) if url.contains("://") => Err(error),
            Some(path) => Archive::open_to_read(Path::new(path)),
            None => Archive::open_to_read(&default_path()?),
        },
        opened => opened,
    }
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
    /// The last events could not be written, and wait.
    #[error(
        "this run is not in the archive yet: {}; it waits in {} and is archived when the archive is opened again",
        with_cause(.error), file.display()
    )]
    Waiting {
        /// Why.
        error: ArchiveError,
        /// The file with the events.
        file: PathBuf,
    },
    /// The archive failed for so long that readings were dropped.
    #[error("{0}")]
    Gap(ArchiveError),
    /// Older runs of unknown clients could not be removed.
    #[error("old runs could not be removed from the archive: {}", with_cause(.0))]
    NotTrimmed(ArchiveError),
}

/// An archive that may be away when a run begins.
#[derive(Debug)]
struct LateArchive {
    location: Option<String>,
    archive: Option<Archive>,
}

impl LateArchive {
    fn get(&mut self) -> Result<&mut Archive, ArchiveError> {
        match self.archive.take() {
            Some(archive) => Ok(self.archive.insert(archive)),
            None => Ok(self.archive.insert(archive_at(self.location.as_deref())?)),
        }
    }
}

impl EventStore for LateArchive {
    fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError> {
        self.get()?.append(events)
    }
}

/// The archive as a sink. If it fails, the measurement continues: events wait for an archive that is away or full, in a
/// file after the end of the run; otherwise the run gets a caveat.
#[derive(Debug)]
pub struct ArchiveSink {
    recorder: Recorder<LateArchive>,
    broken: bool,
    foreign_client: Option<ForeignClient>,
    /// Gets what goes wrong after the last event, where nobody closes the sink.
    warn: fn(ArchiveWarning),
}

/// The run of an unknown client. The archive is trimmed after the measurement: writers of an archive wait for each
/// other, and clients must not wait for them.
#[derive(Debug)]
struct ForeignClient {
    run: String,
    limits: RetentionLimits,
}

impl ArchiveSink {
    /// Opens the archive at a location, or the default one of this user. `warn` is called if the last events cannot be
    /// written, unless [`Self::close`] says so.
    ///
    /// # Errors
    /// It cannot be opened. The run may take place without it.
    pub fn open(location: Option<&str>, warn: fn(ArchiveWarning)) -> Result<Self, ArchiveWarning> {
        let archive = match archive_at(location) {
            Err(error) if may_return(&error) => None,
            opened => Some(opened.map_err(ArchiveWarning::NotArchived)?),
        };
        let archive = LateArchive { location: location.map(str::to_owned), archive };
        Ok(Self { recorder: Recorder::new(archive), broken: false, foreign_client: None, warn })
    }

    /// As [`Self::open`], for the run `run` that an unknown client requested from a server. At its end, older such
    /// runs are removed; `warn` is called if that fails.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for_unknown_client(
        location: Option<&str>,
        run: &str,
        limits: RetentionLimits,
        warn: fn(ArchiveWarning),
    ) -> Result<Self, ArchiveWarning> {
        let mut sink = Self::open(location, warn)?;
        sink.foreign_client = Some(ForeignClient { run: run.to_owned(), limits });
        Ok(sink)
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
            return Err(self.keep_waiting(error));
        }
        match self.recorder.take_dropped() {
            0 => {}
            events => (self.warn)(ArchiveWarning::Gap(ArchiveError::Dropped { events })),
        }
        Ok(!self.broken)
    }

    /// Writes the events that the archive could not take into files.
    fn keep_waiting(&mut self, error: ArchiveError) -> ArchiveWarning {
        let events = self.recorder.take_waiting();
        let location = self.recorder.store().location.as_deref();
        let (Some(unwritten), Some(last)) = (UnwrittenEvents::of(location), events.last()) else {
            return ArchiveWarning::EndNotArchived(error);
        };
        match unwritten.keep(&last.run, &events) {
            Ok(file) => ArchiveWarning::Waiting { error, file },
            Err(_) => ArchiveWarning::EndNotArchived(error),
        }
    }
}

impl Sink for ArchiveSink {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        match self.recorder.on(event) {
            Ok(()) => {}
            // The recorder keeps the events and tries again.
            Err(error) if may_return(&error) => return Ok(()),
            Err(error) => {
                self.broken = true;
                return Err(SinkError {
                    kind: CaveatKind::NotArchived,
                    what: "this run was not archived",
                    source: Box::new(error),
                });
            }
        }
        if matches!(event.body, Body::RunEnded { .. })
            && let Some(client) = self.foreign_client.take()
            && let Err(error) = self
                .recorder
                .store_mut()
                .get()
                .and_then(|archive| archive.admit_unknown_client(&client.run, &client.limits))
        {
            (self.warn)(ArchiveWarning::NotTrimmed(error));
        }
        Ok(())
    }
}

impl Drop for ArchiveSink {
    /// A log that owns its sinks does not close them.
    fn drop(&mut self) {
        if let Err(warning) = self.close() {
            (self.warn)(warning);
        }
    }
}

/// Whether the archive may be usable later, without a change of the command: a server that is away, a lock, a full disk.
fn may_return(error: &ArchiveError) -> bool {
    error.is_passing() || matches!(error, ArchiveError::Full { .. })
}

fn with_cause(error: &ArchiveError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error} ({source})"),
        None => error.to_string(),
    }
}
