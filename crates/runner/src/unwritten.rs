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

    /// Moves what waits into the archive, which can take events again. A damaged file gets another name: its events stay
    /// for the user, and it is not read and reported whenever the archive is opened.
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
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let kept = path.with_extension("damaged");
                    // Another program may have done the same at this moment.
                    let _ = std::fs::rename(&path, &kept);
                    tracing::warn!(%error, path = %kept.display(), "events that waited for the archive are damaged");
                }
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "events that wait cannot be read")
                }
            }
        }
        let _ = std::fs::remove_dir(&self.folder);
        Ok(())
    }
}

fn events_in(path: &Path) -> io::Result<Vec<Event>> {
    let text = std::fs::read_to_string(path)?;
    let events = text.lines().map(Event::read).collect::<Result<_, _>>();
    events.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_archive::Store;
    use linerate_model::{Body, Outcome};
    use linerate_units::Timestamp;

    #[test]
    fn a_damaged_file_of_events_is_reported_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let waiting = UnwrittenEvents { folder: folder.path().join("waiting") };
        let body = Body::RunEnded { outcome: Outcome::Completed, reason: None };
        let event = Event { run: "good".into(), host: 0, seq: 0, at: Timestamp::START, body };
        waiting.keep("good", &[event]).unwrap();
        let damaged = waiting.folder.join("bad-0.jsonl");
        for content in [&b"{\"run\":"[..], b"\xff\xfe"] {
            std::fs::write(&damaged, content).unwrap();
            let mut archive = crate::archive_at(Some(":memory:")).unwrap();
            waiting.move_into(&mut archive).unwrap();
            assert!(!damaged.exists(), "it is read again at the next opening");
            assert_eq!(std::fs::read(waiting.folder.join("bad-0.damaged")).unwrap(), content);
        }
        assert!(!waiting.folder.join("good-0.jsonl").exists());
        let mut archive = crate::archive_at(Some(":memory:")).unwrap();
        waiting.move_into(&mut archive).unwrap();
        assert!(archive.find("good").is_err(), "nothing is archived twice");
    }
}
