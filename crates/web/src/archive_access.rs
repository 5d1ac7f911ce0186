//! The archive, for handlers that must not block: everything is done by the service's second thread.

use std::sync::{Arc, Mutex};

use linerate_archive::{ArchiveError, SqliteArchive};
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
    /// Why the last access failed; absent if it did not.
    trouble: Mutex<Option<String>>,
}

impl ArchiveAccess {
    pub(crate) fn new(location: Option<String>) -> Self {
        Self(Arc::new(SharedArchive { location, trouble: Mutex::default() }))
    }

    /// The location, as the user gave it.
    pub(crate) fn location(&self) -> Option<&str> {
        self.0.location.as_deref()
    }

    /// Why the archive cannot be used; absent if it can.
    pub(crate) fn trouble(&self) -> Option<String> {
        locked(&self.0.trouble).clone()
    }

    /// Remembers why a run was not archived, or with `None` that one was.
    pub(crate) fn set_trouble(&self, trouble: Option<String>) {
        *locked(&self.0.trouble) = trouble;
    }

    /// Executes `work` with the archive.
    pub(crate) async fn with<T, E>(
        &self,
        work: impl FnOnce(&mut SqliteArchive) -> Result<T, E> + Send + 'static,
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
        work: impl FnOnce(&mut SqliteArchive) -> Result<T, E>,
    ) -> Result<T, HttpProblem> {
        // Opened each time, which takes about a millisecond: the file may have been replaced since.
        let done = work(&mut self.open()?).map_err(Into::into);
        if let Err(problem) = &done
            && problem.is_of_archive()
        {
            self.set_trouble(Some("the archive cannot be read".to_owned()));
        } else if done.is_ok() {
            // A read that works says nothing about writing.
            locked(&self.0.trouble).take_if(|trouble| trouble.contains("read"));
        }
        done
    }

    fn open(&self) -> Result<SqliteArchive, HttpProblem> {
        archive_to_read(self.location()).map_err(|error| {
            self.set_trouble(Some(format!("the archive cannot be read: {}", cause(&error))));
            error.into()
        })
    }
}

/// The cause of an error without the path of the file.
fn cause(error: &ArchiveError) -> String {
    std::error::Error::source(error).map_or_else(|| "it is not usable".to_owned(), ToString::to_string)
}
