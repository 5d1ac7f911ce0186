//! The undo journal: the original states, written to disk before a setting is changed.
//!
//! It has one JSON object per line. A later process can restore everything from it alone, at whatever point the
//! previous one was killed: a journaled change may not have been made, but no change is made that is not
//! journaled.

use std::io;
use std::path::{Path, PathBuf};

use linerate_sock::host_setting::HostSetting;
use linerate_sock::journal;
use serde::{Deserialize, Serialize};

/// Incremented when an entry changes its meaning.
const FORMAT: u32 = 1;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum SettingsJournalEntry {
    /// The first line.
    Opening {
        /// See [`FORMAT`].
        format: u32,
        /// Id of the boot in which the journal was written. Settings do not survive a reboot.
        boot_id: String,
        /// The process that changes settings.
        pid: u32,
    },
    /// A setting is about to be changed.
    Change {
        /// Name of the setting.
        setting: String,
        /// Its interface; absent for a setting of the whole namespace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interface: Option<JournaledInterface>,
        /// The state before.
        found: String,
        /// The state after the change.
        ours: String,
    },
    /// The setting was restored, or was left alone because another process changed it.
    Undone {
        /// Name of the setting.
        setting: String,
        /// See `Change`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interface: Option<JournaledInterface>,
    },
}

/// An interface with its name and index at the time of the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournaledInterface {
    pub(crate) name: String,
    /// Its index, which stays the same when it is renamed.
    pub(crate) index: u32,
}

/// A setting that is not yet restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingSetting {
    pub(super) setting: HostSetting,
    pub(super) iface: Option<JournaledInterface>,
    /// The state before the first change.
    pub(super) found: String,
    /// Every state that was journaled since, in order.
    pub(super) ours: Vec<String>,
}

impl PendingSetting {
    pub(super) fn is_about(&self, setting: HostSetting, iface: Option<&JournaledInterface>) -> bool {
        self.setting == setting
            && self.iface.as_ref().map(|iface| iface.index) == iface.map(|iface| iface.index)
    }
}

/// An error while reading or writing the journal.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    #[error("the undo journal {path}: {source}; no setting is changed without it", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the undo journal {path}, line {line}: {why}; restore the settings with the version of linerate \
         that wrote it, or restore them manually and remove the file",
        path = path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        why: String,
    },
}

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    |source| JournalError::Io { path, source }
}

/// A journal that is open for writing.
#[derive(Debug)]
pub(super) struct SettingsJournal {
    lines: journal::Journal,
    path: PathBuf,
}

impl SettingsJournal {
    /// Creates a new journal.
    pub(super) fn create(path: &Path, boot_id: &str) -> Result<Self, JournalError> {
        let lines = journal::Journal::create(path).map_err(failed(path))?;
        let mut journal = Self { lines, path: path.to_owned() };
        let opening = SettingsJournalEntry::Opening {
            format: FORMAT,
            boot_id: boot_id.to_owned(),
            pid: std::process::id(),
        };
        // A file without its first line would be in the way once there is room on the disk again.
        journal.note(&opening).inspect_err(|_| drop(std::fs::remove_file(path)))?;
        Ok(journal)
    }

    /// Continues an existing journal.
    pub(super) fn reopen(path: &Path) -> Result<Self, JournalError> {
        let lines = journal::Journal::reopen(path).map_err(failed(path))?;
        Ok(Self { lines, path: path.to_owned() })
    }

    /// Writes an entry and waits until it is on disk.
    pub(super) fn note(&mut self, entry: &SettingsJournalEntry) -> Result<(), JournalError> {
        let line = serde_json::to_string(entry).map_err(io::Error::from);
        line.and_then(|line| self.lines.note(&line)).map_err(failed(&self.path))
    }
}

/// The content of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SettingsJournalContent {
    /// The boot in which it was written; absent for an empty journal.
    pub(super) boot_id: Option<String>,
    /// The process that wrote it.
    pub(super) pid: Option<u32>,
    /// The settings that are not yet restored, in the order of their changes.
    pub(super) slots: Vec<PendingSetting>,
}

/// Reads a journal; absent if there is none. An incomplete last line is ignored, because its change was not
/// made.
pub(super) fn read(path: &Path) -> Result<Option<SettingsJournalContent>, JournalError> {
    let Some(lines) = journal::lines(path).map_err(failed(path))? else { return Ok(None) };
    let mut found = SettingsJournalContent::default();
    for (line, text) in (1..).zip(&lines) {
        let taken = serde_json::from_str(text).map_err(|error| error.to_string());
        let taken = taken.and_then(|entry| found.take(entry));
        taken.map_err(|why| JournalError::Unreadable { path: path.to_owned(), line, why })?;
    }
    Ok(Some(found))
}

impl SettingsJournalContent {
    fn take(&mut self, entry: SettingsJournalEntry) -> Result<(), String> {
        let known = |name: &str| HostSetting::named(name).ok_or_else(|| format!("unknown setting '{name}'"));
        match entry {
            SettingsJournalEntry::Opening { format, .. } if format != FORMAT => {
                return Err(format!("format {format} is not {FORMAT}"));
            }
            SettingsJournalEntry::Opening { boot_id, pid, .. } => {
                (self.boot_id, self.pid) = (Some(boot_id), Some(pid))
            }
            SettingsJournalEntry::Change { setting, interface, found, ours } => {
                let setting = known(&setting)?;
                match self.slots.iter_mut().find(|slot| slot.is_about(setting, interface.as_ref())) {
                    Some(slot) => slot.ours.push(ours),
                    None => {
                        self.slots.push(PendingSetting { setting, iface: interface, found, ours: vec![ours] })
                    }
                }
            }
            SettingsJournalEntry::Undone { setting, interface } => {
                let setting = known(&setting)?;
                self.slots.retain(|slot| !slot.is_about(setting, interface.as_ref()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fs;

    fn change(setting: &str, found: &str, ours: &str) -> SettingsJournalEntry {
        let interface = Some(JournaledInterface { name: "eth0".to_owned(), index: 4 });
        let (setting, found, ours) = (setting.to_owned(), found.to_owned(), ours.to_owned());
        SettingsJournalEntry::Change { setting, interface, found, ours }
    }

    fn undone(setting: &str) -> SettingsJournalEntry {
        // The interface has been renamed meanwhile.
        let interface = Some(JournaledInterface { name: "wan".to_owned(), index: 4 });
        SettingsJournalEntry::Undone { setting: setting.to_owned(), interface }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        (folder, path)
    }

    #[test]
    fn what_is_not_undone_is_found_with_the_first_state_and_every_later_one() {
        let (_folder, path) = place();
        assert_eq!(read(&path).unwrap(), None);
        let mut journal = SettingsJournal::create(&path, "b").unwrap();
        for entry in [
            change("mtu", "1500", "9000"),
            change("gro", "rx-gro=off", "rx-gro=on"),
            change("mtu", "9000", "4000"),
            undone("gro"),
        ] {
            journal.note(&entry).unwrap();
        }
        let found = read(&path).unwrap().unwrap();
        assert_eq!((found.boot_id.as_deref(), found.pid), (Some("b"), Some(std::process::id())));
        let [slot] = &found.slots[..] else { panic!("{found:?}") };
        assert_eq!((slot.setting, slot.found.as_str()), (HostSetting::Mtu, "1500"));
        assert_eq!(slot.ours, ["9000", "4000"]);
        let text = fs::read_to_string(&path).unwrap();
        expect![[r#"
            {"entry":"change","setting":"mtu","interface":{"name":"eth0","index":4},"found":"1500","ours":"9000"}
            {"entry":"change","setting":"gro","interface":{"name":"eth0","index":4},"found":"rx-gro=off","ours":"rx-gro=on"}
            {"entry":"change","setting":"mtu","interface":{"name":"eth0","index":4},"found":"9000","ours":"4000"}
            {"entry":"undone","setting":"gro","interface":{"name":"wan","index":4}}
        "#]]
        .assert_eq(text.split_once('\n').unwrap().1);
        assert!(SettingsJournal::create(&path, "b").is_err(), "an old journal is never written over");
    }

    #[test]
    fn a_truncated_line_is_left_out_and_the_next_one_is_kept() {
        let (_folder, path) = place();
        let line = serde_json::to_string(&change("mtu", "1500", "9000")).unwrap();
        let last = serde_json::to_string(&change("gro", "a", "b")).unwrap();
        for cut in 0..=last.len() {
            fs::write(&path, format!("{line}\n{}", &last[..cut])).unwrap();
            assert_eq!(read(&path).unwrap().unwrap().slots.len(), 1, "{cut}");
            let mut journal = SettingsJournal::reopen(&path).unwrap();
            journal.note(&undone("mtu")).unwrap();
            assert_eq!(read(&path).unwrap().unwrap().slots, [], "{cut}");
        }
    }

    #[test]
    fn a_strange_line_is_named_and_nothing_is_guessed() {
        let (_folder, path) = place();
        let line = serde_json::to_string(&change("mtu", "1500", "9000")).unwrap();
        for strange in [
            "{}",
            "",
            "\u{0}",
            r#"{"entry":"undone","setting":"colour"}"#,
            r#"{"entry":"undone","setting":"mtu","x":1}"#,
        ] {
            fs::write(&path, format!("{line}\n{strange}\n{line}\n")).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains("manually"), "{error}");
        }
        fs::write(&path, "{\"entry\":\"opening\",\"format\":2,\"boot_id\":\"\",\"pid\":1}\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("format 2"));
    }
}
