//! The archive: opened to read it, and as a sink with warnings, because a run takes place without it too.

use linerate_archive::{Archive, ArchiveError, Store};
use linerate_model::ArchiveOptions;
use linerate_runner::{ArchiveLogStore, ArchiveSink, ArchiveWarning, Retention, archive_to_read};

use crate::{calibration, print};

/// Opens the archive to read it.
pub(crate) fn open(args: &ArchiveOptions) -> Result<Archive, ArchiveError> {
    archive_to_read(args.archive.as_deref())
}

/// As [`open`], for callers that need no more than the common methods of archives.
pub(crate) fn store(args: &ArchiveOptions) -> Result<Box<dyn Store>, ArchiveError> {
    open(args).map(|found| Box::new(found) as Box<dyn Store>)
}

/// Opens the archive for a run; absent, with a warning, if that fails.
pub(crate) fn sink(location: Option<&str>) -> Option<ArchiveSink> {
    or_warning(ArchiveSink::open(location, print::warning))
}

/// Writes the pending events; whether the run is in the archive. Prints a warning if the last events are not.
pub(crate) fn close(sink: &mut ArchiveSink) -> bool {
    or_warning(sink.close()).unwrap_or(false)
}

/// Stores runs of stand-ins, with the calibration of this host; those of unknown clients within a quota.
pub(crate) fn log_store(location: Option<String>, quota: Option<Retention>) -> ArchiveLogStore {
    let (calibration, warn) = (calibration::stored(), print::warning);
    ArchiveLogStore { location, foreign_clients: quota, without_addresses: false, calibration, warn }
}

/// Prints the warning of an archive that failed.
fn or_warning<T>(done: Result<T, ArchiveWarning>) -> Option<T> {
    done.map_err(print::warning).ok()
}
