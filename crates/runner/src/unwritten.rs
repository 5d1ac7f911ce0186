//! Events that an archive could not take: they wait in files until it can.

use std::io;
use std::path::{Path, PathBuf};

use linerate_archive::{Archive, ArchiveError, EventStore, data_file, default_path};
use linerate_model::Event;
use sha2::{Digest, Sha256};

use crate::whole_file;

/// The files for one archive, in the user's data directory.
#[derive(Debug)]
pub(crate) struct UnwrittenEvents {
    folder: PathBuf,
}

impl UnwrittenEvents {
    /// Those for the archive at a location, or for the default one of this user; absent if this user has no data
    /// directory.
    pub(crate) fn of(location: Option<&str>) -> Option<Self> {
        let default = default_path().ok()?;
        let location = location.map_or_else(|| default.as_os_str().as_encoded_bytes(), str::as_bytes);
        // A URL may have a password, which must not become a name.
        let digest = Sha256::digest(location);
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { folder: data_file("unwritten").ok()?.join(name) })
    }

    /// Keeps events; the file, which has the name of their last run.
    pub(crate) fn keep(&self, run: &str, events: &[Event]) -> io::Result<PathBuf> {
        std::fs::create_dir_all(&self.folder)?;
        // The last events of a run may come in two pieces.
        let first = events.first().map_or(0, |event| event.seq);
        let path = self.folder.join(format!("{run}-{first}.jsonl"));
        whole_file(&path, |out| {
            for event in events {
                serde_json::to_writer(&mut *out, event)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        Ok(path)
    }

    /// Moves what waits into the archive, which can take events again. A file that cannot be read stays where it is.
    pub(crate) fn move_into(&self, archive: &mut Archive) -> Result<(), ArchiveError> {
        for file in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = file.path();
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            match events_in(&path) {
                Ok(events) => {
                    archive.append(&events)?;
                    // Another program may have done the same at this moment.
                    let _ = std::fs::remove_file(&path);
                }
                Err(error) => tracing::warn!(%error, path = %path.display(), "events that wait are damaged"),
            }
        }
        let _ = std::fs::remove_dir(&self.folder);
        Ok(())
    }
}

fn events_in(path: &Path) -> io::Result<Vec<Event>> {
    let text = std::fs::read_to_string(path)?;
    let events = text.lines().map(Event::read).collect::<Result<_, _>>();
    events.map_err(io::Error::other)
}
