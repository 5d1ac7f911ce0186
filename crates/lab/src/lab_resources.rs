//! Creation of the resources of a lab: a namespace for each host, and the interfaces in it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use linerate_sock::netns::{self, NameState, NetnsId, with_netns_fd};
use linerate_sock::{clock, proc};

use crate::folder::LabFolder;
use crate::host::{HostTap, LabHostResources, create_interfaces, mark};
use crate::journal::{LabJournal, LabJournalEntry, LabJournalHeader};
use crate::{LabName, LabResourceError, Privilege, congestion, kernel, undo};
use linerate_emu::topology::Topology;

/// The folder and the privilege with which a lab is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Parent folder of labs: [`super::run_dir`].
    pub run_dir: PathBuf,
    /// What this process may create: [`Privilege::acquire`].
    pub privilege: Privilege,
}

/// The resources of a lab: namespaces, interfaces and addresses, and the folder with their journal.
///
/// Dropping it leaves everything in place, as after a kill; [`LabResources::remove`] removes it.
#[derive(Debug)]
pub struct LabResources {
    /// Hosts, in the order of the topology.
    pub hosts: Vec<LabHostResources>,
    /// Their interfaces, in the order of hosts and then of links.
    pub taps: Vec<HostTap>,
    /// What this system does not support, as text for users.
    pub notes: Vec<String>,
    folder: LabFolder,
}

/// Texts for users, without duplicates.
#[derive(Debug, Default)]
pub(super) struct UserNotes(Vec<String>);

impl UserNotes {
    pub(super) fn add(&mut self, text: &str) {
        if !self.0.iter().any(|known| known == text) {
            self.0.push(text.to_owned());
        }
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }
}

/// Writes an entry to the journal, or fails.
pub(super) type JournalWriter<'a> = dyn FnMut(&LabJournalEntry) -> Result<(), LabResourceError> + 'a;

impl LabResources {
    /// Creates everything that the hosts of a topology need. The leftovers of a killed lab of the same name are
    /// removed first; after an error everything created so far is removed.
    ///
    /// # Errors
    /// A lab of that name is up, a name is taken, permission is missing, or a setting is rejected.
    pub fn create(topology: &Topology, lab: &LabName, site: &Site) -> Result<Self, LabResourceError> {
        let folder = LabFolder::claim(&site.run_dir, lab)?;
        if kernel::stands(folder.path()) {
            return Err(LabResourceError::Running(lab.clone()));
        }
        undo::clear(&folder)?;
        let mut journal = LabJournal::create(folder.path())?;
        match Built::make(topology, lab, site, &mut |entry| journal.note(entry)) {
            Ok(Built { hosts, taps, notes }) => Ok(Self { hosts, taps, notes: notes.0, folder }),
            Err(error) => {
                // The first error is reported; whatever could not be removed now is in the journal for the next
                // call.
                let _ = undo::clear(&folder).and_then(|_| folder.remove());
                Err(error)
            }
        }
    }

    /// The lab's own folder, for the switch's socket and similar files; it is removed with the lab.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends the programs in the lab and removes everything. Returns what was left in place because it belongs
    /// to somebody else.
    ///
    /// # Errors
    /// Something cannot be removed; the journal is then kept.
    pub fn remove(self) -> Result<Vec<String>, LabResourceError> {
        drop(self.taps);
        // The namespaces stay open meanwhile, so that their inode numbers are not reused.
        let left = undo::clear(&self.folder)?;
        drop(self.hosts);
        self.folder.remove()?;
        Ok(left)
    }
}

#[derive(Debug, Default)]
struct Built {
    hosts: Vec<LabHostResources>,
    taps: Vec<HostTap>,
    notes: UserNotes,
}

impl Built {
    fn make(
        topology: &Topology,
        lab: &LabName,
        site: &Site,
        record: &mut JournalWriter<'_>,
    ) -> Result<Self, LabResourceError> {
        let token = open_journal(lab, record)?;
        let mut built = Self::default();
        for (number, host) in topology.hosts.iter().enumerate() {
            let netns_name = (site.privilege == Privilege::Root).then(|| lab.netns(&host.name));
            let netns = make_netns(&host.name, netns_name.as_deref(), &token, record)?;
            let notes = &mut built.notes;
            let taps = with_netns_fd(&netns, || create_interfaces(topology, number, lab, notes));
            built.taps.extend(taps.map_err(LabResourceError::host(&host.name, "entering its namespace"))??);
            congestion::set_default(host, &netns, site.privilege, record, notes)?;
            built.hosts.push(LabHostResources {
                name: host.name.clone(),
                v4: host.v4,
                v6: host.v6,
                netns,
                netns_name,
            });
        }
        Ok(built)
    }
}

/// Starts a journal; returns the token that identifies the lab's namespaces.
pub(super) fn open_journal(
    lab: &LabName,
    record: &mut JournalWriter<'_>,
) -> Result<String, LabResourceError> {
    let boot_id = proc::sysctl(undo::BOOT_ID).unwrap_or_default();
    let pid = std::process::id();
    // Unique: no other process has this number at this time of this boot.
    let token = format!("linerate {lab} {boot_id} {pid} {}", clock::now().as_ns());
    record(&LabJournalEntry::Opening(LabJournalHeader::new(boot_id, token.clone(), pid)))?;
    Ok(token)
}

/// Creates a namespace that has the token before it has a name: a named namespace without the token never
/// belongs to the lab.
pub(super) fn make_netns(
    node: &str,
    name: Option<&str>,
    token: &str,
    record: &mut JournalWriter<'_>,
) -> Result<OwnedFd, LabResourceError> {
    let failed = |what| LabResourceError::host(node, what);
    if let Some(name) = name {
        let NameState::Free =
            netns::open_named(name).map_err(failed("checking the name of its namespace"))?
        else {
            return Err(LabResourceError::NameTaken { name: name.to_owned() });
        };
        record(&LabJournalEntry::Name { name: name.to_owned() })?;
    }
    let netns = netns::create().map_err(failed("creating its namespace"))?;
    with_netns_fd(&netns, || mark(node, token)).map_err(failed("entering its namespace"))??;
    let NetnsId { device, inode } = NetnsId::of(&netns).map_err(failed("checking its namespace"))?;
    record(&LabJournalEntry::Namespace { name: name.map(str::to_owned), device, inode })?;
    if let Some(name) = name
        && let Err(error) = netns::pin(&netns, name)
    {
        // Another process has taken the name since the check.
        if error.source.kind() == std::io::ErrorKind::AlreadyExists {
            record(&LabJournalEntry::NotOurs { name: name.to_owned() })?;
            return Err(LabResourceError::NameTaken { name: name.to_owned() });
        }
        return Err(failed("naming its namespace")(error));
    }
    Ok(netns)
}

#[cfg(test)]
mod tests;
