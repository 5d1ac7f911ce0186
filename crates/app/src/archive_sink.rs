//! Writes runs into the archive.

use linerate_archive::{ArchiveError, ForeignRunLimits, Recorder, SqliteArchive, default_path, open};
use linerate_control::Sink;
use linerate_model::{Body, CaveatKind, Event};

use crate::print;

/// The archive as a sink. If it fails, a warning is printed and the measurement continues.
pub(crate) struct ArchiveSink {
    recorder: Recorder<SqliteArchive>,
    broken: bool,
    /// The run of an unknown client, and the limits for such runs. The archive is trimmed after the
    /// measurement: writers of an archive wait for each other, and clients must not wait for them.
    foreign_client: Option<(String, ForeignRunLimits)>,
}

impl ArchiveSink {
    /// Opens the archive; absent, with a warning, if that fails.
    pub(crate) fn open(location: Option<&str>) -> Option<Self> {
        Self::of(archive_at(location))
    }

    /// As [`Self::open`], for a run that an unknown client requested from a server.
    pub(crate) fn open_for_unknown_client(
        location: Option<&str>,
        run: &str,
        limits: &ForeignRunLimits,
    ) -> Option<Self> {
        let sink = Self::of(archive_at(location))?;
        Some(Self { foreign_client: Some((run.to_owned(), limits.clone())), ..sink })
    }

    fn of(opened: Result<SqliteArchive, ArchiveError>) -> Option<Self> {
        match opened {
            Ok(archive) => {
                Some(Self { recorder: Recorder::new(archive), broken: false, foreign_client: None })
            }
            Err(error) => {
                print::warning(format!("this run was not archived: {}", describe(&error)));
                None
            }
        }
    }

    /// Writes the pending events; whether the run is in the archive.
    pub(crate) fn close(&mut self) -> bool {
        if !self.broken
            && let Err(error) = self.recorder.flush()
        {
            print::warning(format!("the end of this run was not archived: {}", describe(&error)));
            self.broken = true;
        }
        !self.broken
    }
}

impl Sink for ArchiveSink {
    fn on(&mut self, event: &Event) -> Result<(), String> {
        self.recorder.on(event).map_err(|error| {
            self.broken = true;
            format!("this run was not archived: {}", describe(&error))
        })?;
        if matches!(event.body, Body::RunEnded { .. })
            && let Some((run, limits)) = self.foreign_client.take()
            && let Err(error) = self.recorder.store_mut().admit_unknown_client(&run, &limits)
        {
            print::warning(format!("old runs could not be removed from the archive: {}", describe(&error)));
        }
        Ok(())
    }

    fn failed(&self) -> CaveatKind {
        CaveatKind::NotArchived
    }
}

fn archive_at(location: Option<&str>) -> Result<SqliteArchive, ArchiveError> {
    match location {
        Some(location) => open(location),
        None => default_path().and_then(|path| SqliteArchive::open(&path)),
    }
}

fn describe(error: &ArchiveError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error} ({source})"),
        None => error.to_string(),
    }
}
