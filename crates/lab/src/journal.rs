//! The journal of a lab: every resource is recorded before it is created.
//!
//! One JSON object per line, each on disk before the resource it names exists. From the journal alone a later
//! process removes everything, whenever the switch was killed: a resource in the journal may not exist yet, but
//! none exists that is not in the journal.

use std::io;
use std::path::{Path, PathBuf};

use linerate_sock::journal;
use serde::{Deserialize, Serialize};

use crate::LabResourceError;

const NAME: &str = "journal";
/// Incremented when an entry changes its meaning.
const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum LabJournalEntry {
    /// The first line.
    Opening(LabJournalHeader),
    /// A name under `/run/netns` is about to be taken.
    Name {
        /// The name.
        name: String,
    },
    /// The name was already taken, so it is not part of this lab.
    NotOurs {
        /// The name.
        name: String,
    },
    /// A namespace has been created, and its `lo` has the token as its alias. It contains nothing else yet.
    Namespace {
        /// The name that it is about to get, if any.
        name: Option<String>,
        /// Its identity, valid while it exists.
        device: u64,
        /// See `device`.
        inode: u64,
    },
    /// A system-wide setting is about to be changed temporarily.
    Sysctl {
        /// Its name.
        name: String,
        /// Its current value.
        before: String,
        /// The value that it is about to get.
        ours: String,
    },
}

/// The facts that all other lines depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LabJournalHeader {
    format: u32,
    /// Identifies the boot: no resource of a lab survives a reboot.
    pub(super) boot_id: String,
    /// Namespaces of this lab have this token as the alias of their `lo`.
    pub(super) token: String,
    /// Number of the process that creates the lab.
    pub(super) switch_pid: u32,
}

impl LabJournalHeader {
    pub(super) fn new(boot_id: String, token: String, switch_pid: u32) -> Self {
        Self { format: FORMAT, boot_id, token, switch_pid }
    }
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct LabJournal {
    lines: journal::Journal,
    path: PathBuf,
}

impl LabJournal {
    /// Starts a journal in a folder that has none.
    pub(super) fn create(folder: &Path) -> Result<Self, LabResourceError> {
        let path = folder.join(NAME);
        let lines = journal::Journal::create(&path);
        let lines = lines.map_err(LabResourceError::folder(&path, "creating the journal"))?;
        Ok(Self { lines, path })
    }

    /// Writes a line and waits until it is on disk.
    pub(super) fn note(&mut self, entry: &LabJournalEntry) -> Result<(), LabResourceError> {
        let line = serde_json::to_string(entry).map_err(io::Error::from);
        let written = line.and_then(|line| self.lines.note(&line));
        written.map_err(LabResourceError::folder(&self.path, "writing the journal"))
    }
}

/// A journal as read from disk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LabJournalContent(pub(super) Vec<LabJournalEntry>);

impl LabJournalContent {
    /// The first line; without it nothing has been created.
    pub(super) fn opening(&self) -> Option<&LabJournalHeader> {
        match self.0.first()? {
            LabJournalEntry::Opening(opening) => Some(opening),
            _ => None,
        }
    }
}

/// Reads the journal of a folder; a missing one is empty. An incomplete last line is ignored: what it names has
/// not been created.
pub(super) fn read(folder: &Path) -> Result<LabJournalContent, LabResourceError> {
    let path = folder.join(NAME);
    let lines = journal::lines(&path).map_err(LabResourceError::folder(&path, "reading the journal"))?;
    let entries = lines.iter().flatten().enumerate().map(|(index, line)| {
        serde_json::from_str(line).map_err(|source| LabResourceError::Journal {
            path: path.clone(),
            line: index + 1,
            source,
        })
    });
    let found = LabJournalContent(entries.collect::<Result<_, _>>()?);
    check_format(&found, &path)?;
    Ok(found)
}

fn check_format(found: &LabJournalContent, path: &Path) -> Result<(), LabResourceError> {
    match found.opening() {
        Some(opening) if opening.format != FORMAT => {
            let text = format!("format {} is not {FORMAT}", opening.format);
            let source = serde::de::Error::custom(text);
            Err(LabResourceError::Journal { path: path.to_owned(), line: 1, source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fs;

    fn entries() -> Vec<LabJournalEntry> {
        vec![
            LabJournalEntry::Opening(LabJournalHeader::new("b".into(), "t".into(), 7)),
            LabJournalEntry::Name { name: "linerate-x-a".into() },
            LabJournalEntry::Namespace { name: Some("linerate-x-a".into()), device: 4, inode: 5 },
            LabJournalEntry::Namespace { name: None, device: 4, inode: 6 },
            LabJournalEntry::NotOurs { name: "linerate-x-b".into() },
            LabJournalEntry::Sysctl { name: "net.x".into(), before: "1".into(), ours: "1 2".into() },
        ]
    }

    #[test]
    fn what_is_written_is_read_and_its_form_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), LabJournalContent::default());
        let mut journal = LabJournal::create(folder.path()).unwrap();
        for entry in entries() {
            journal.note(&entry).unwrap();
        }
        assert_eq!(read(folder.path()).unwrap().0, entries());
        expect![[r#"
            {"entry":"opening","format":1,"boot_id":"b","token":"t","switch_pid":7}
            {"entry":"name","name":"linerate-x-a"}
            {"entry":"namespace","name":"linerate-x-a","device":4,"inode":5}
            {"entry":"namespace","name":null,"device":4,"inode":6}
            {"entry":"not-ours","name":"linerate-x-b"}
            {"entry":"sysctl","name":"net.x","before":"1","ours":"1 2"}
        "#]]
        .assert_eq(&fs::read_to_string(folder.path().join(NAME)).unwrap());
        assert!(LabJournal::create(folder.path()).is_err(), "an old journal is never written over");
    }

    #[test]
    fn a_cut_off_line_is_left_out_and_a_strange_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let line = r#"{"entry":"name","name":"a"}"#;
        for cut in 0..=line.len() {
            fs::write(&path, format!("{line}\n{}", &line[..cut])).unwrap();
            assert_eq!(read(folder.path()).unwrap().0, [LabJournalEntry::Name { name: "a".into() }], "{cut}");
        }
        for strange in ["{}", "", "\u{0}", r#"{"entry":"roof"}"#, r#"{"entry":"name","name":"a","why":1}"#] {
            fs::write(&path, format!("{line}\n{strange}\n{line}\n")).unwrap();
            let error = read(folder.path()).unwrap_err();
            assert!(error.to_string().contains("journal line 2"), "{error}");
        }
        fs::write(
            &path,
            r#"{"entry":"opening","format":2,"boot_id":"","token":"","switch_pid":1}"#.to_owned() + "\n",
        )
        .unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("the version that created it"));
    }
}
