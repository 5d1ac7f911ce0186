//! The archive, for handlers that must not block: everything is done by the service's second thread.

use std::sync::{Arc, Mutex};

use linerate_archive::{Archive, ArchiveError};
use linerate_runner::archive_to_read;
use linerate_sock::thread::locked;

use crate::problem::{HttpProblem, INTERNAL};

/// The archive of the service.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveAccess(Arc<SharedArchive>);

#[derive(Debug)]
struct SharedArchive {
    /// The archive; absent for the default one of this user.
    location: Option<String>,
    /// The connection to a server, which is used again.
    connected: Mutex<Option<Archive>>,
    trouble: Mutex<ArchiveTrouble>,
}

/// Why the archive cannot be used. One that can be read need not be writable.
#[derive(Debug, Default)]
struct ArchiveTrouble {
    /// Why the last access failed; absent if it did not.
    read: Option<String>,
    /// Why the last run was not archived; absent if it was.
    write: Option<String>,
}

impl ArchiveAccess {
    pub(crate) fn new(location: Option<String>) -> Self {
        Self(Arc::new(SharedArchive { location, connected: Mutex::default(), trouble: Mutex::default() }))
    }

    /// The location, as the user gave it.
    pub(crate) fn location(&self) -> Option<&str> {
        self.0.location.as_deref()
    }

    /// Why the archive cannot be used; absent if it can.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = locked(&self.0.trouble);
        trouble.write.as_ref().or(trouble.read.as_ref()).cloned()
    }

    /// Remembers why a run was not archived, or with `None` that one was.
    pub(crate) fn set_write_trouble(&self, trouble: Option<String>) {
        locked(&self.0.trouble).write = trouble;
    }

    /// Executes `work` with the archive.
    pub(crate) async fn with<T, E>(
        &self,
        work: impl FnOnce(&mut Archive) -> Result<T, E> + Send + 'static,
    ) -> Result<T, HttpProblem>
    where
        T: Send + 'static,
        E: Into<HttpProblem> + Send + 'static,
    {
        let access = self.clone();
        let done = tokio::task::spawn_blocking(move || access.with_blocking(work)).await;
        done.unwrap_or_else(|error| {
            tracing::error!(%error, "a request has failed");
            Err(HttpProblem::new(INTERNAL, "the request failed; the log of the server says why"))
        })
    }

    fn with_blocking<T, E: Into<HttpProblem>>(
        &self,
        work: impl FnOnce(&mut Archive) -> Result<T, E>,
    ) -> Result<T, HttpProblem> {
        let connected = locked(&self.0.connected).take();
        // A file is opened each time, as it may have been replaced since.
        let opened = connected.map_or_else(|| archive_to_read(self.location()), Ok);
        locked(&self.0.trouble).read = opened.as_ref().err().map(cause);
        let mut archive = opened?;
        let done = work(&mut archive).map_err(Into::into);
        *locked(&self.0.connected) = Some(archive).filter(Archive::is_on_a_server);
        if done.as_ref().is_err_and(HttpProblem::is_of_archive) {
            locked(&self.0.trouble).read = Some("the archive cannot be read".to_owned());
        }
        done
    }
}

/// Why the archive cannot be opened, without the path of its file.
fn cause(error: &ArchiveError) -> String {
    let cause =
        std::error::Error::source(error).map_or_else(|| "it is not usable".to_owned(), ToString::to_string);
    format!("the archive cannot be read: {cause}")
}
