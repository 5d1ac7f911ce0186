//! The archive as a sink, with a warning if it cannot be opened.

use linerate_runner::{ArchiveSink, ArchiveWarning};

use crate::print;

/// Opens the archive; absent, with a warning, if that fails.
pub(crate) fn open(location: Option<&str>) -> Option<ArchiveSink> {
    or_warning(ArchiveSink::open(location))
}

/// Writes the pending events; whether the run is in the archive. Prints a warning if the last events are not.
pub(crate) fn close(sink: &mut ArchiveSink) -> bool {
    or_warning(sink.close()).unwrap_or(false)
}

/// Prints the warning of an archive that failed.
pub(crate) fn or_warning<T>(done: Result<T, ArchiveWarning>) -> Option<T> {
    done.map_err(print::warning).ok()
}
