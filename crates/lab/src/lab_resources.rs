//! Laying the ground of a lab: a namespace for each host, and the interfaces in it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use linerate_sock::netns::{self, Named, NetnsId, with_netns_fd};
use linerate_sock::{clock, proc};

use crate::folder::Folder;
use crate::host::{HostGround, HostTap, create_interfaces, mark};
use crate::journal::{Entry, Journal, Opening};
use crate::{GroundError, LabName, Privilege, congestion, kernel, undo};
use linerate_emu::topology::Topology;

/// Where a lab is made, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Folder in which labs keep theirs: [`super::run_dir`].
    pub run_dir: PathBuf,
    /// What this process may make: [`Privilege::acquire`].
    pub privilege: Privilege,
}

/// The ground of a lab: namespaces, interfaces and addresses, and the folder with the journal of them.
///
/// Dropping it leaves everything as after a kill; [`LabResources::remove`] removes it.
#[derive(Debug)]
pub struct LabResources {
    /// Hosts, in the order of the topology.
    pub hosts: Vec<HostGround>,
    /// Their interfaces, in the order of hosts and then of links.
    pub taps: Vec<HostTap>,
    /// What this system could not do, for people.
    pub notes: Vec<String>,
    folder: Folder,
}

/// Texts for people, each said once.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    pub(super) fn add(&mut self, text: &str) {
        if !self.0.iter().any(|known| known == text) {
            self.0.push(text.to_owned());
        }
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }
}

/// Writes an entry into the journal, or fails.
pub(super) type Record<'a> = dyn FnMut(&Entry) -> Result<(), GroundError> + 'a;

impl LabResources {
    /// Makes everything that the hosts of a topology are made of. What a killed predecessor of the same name left behind
    /// is removed first; on an error everything made so far is.
    ///
    /// # Errors
    /// When a lab of that name is up, a name is taken, the system does not permit it, or does not take a setting.
    pub fn create(topology: &Topology, lab: &LabName, site: &Site) -> Result<Self, GroundError> {
        let folder = Folder::claim(&site.run_dir, lab)?;
        if kernel::stands(folder.path()) {
            return Err(GroundError::Running(lab.clone()));
        }
        undo::clear(&folder)?;
        let mut journal = Journal::create(folder.path())?;
        match Built::make(topology, lab, site, &mut |entry| journal.note(entry)) {
            Ok(Built { hosts, taps, notes }) => Ok(Self { hosts, taps, notes: notes.0, folder }),
            Err(error) => {
                // The first error says why; what could not be removed now, the next call finds in the journal.
                let _ = undo::clear(&folder).and_then(|_| folder.remove());
                Err(error)
            }
        }
    }

    /// The lab's own folder, for the switch's socket and the like; it goes with the lab.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends the programs in the lab and removes everything. Returns what was left alone because it is somebody else's.
    ///
    /// # Errors
    /// When something cannot be removed; the journal is kept then.
    pub fn remove(self) -> Result<Vec<String>, GroundError> {
        drop(self.taps);
        // The namespaces stay open meanwhile: their numbers cannot pass to others.
        let left = undo::clear(&self.folder)?;
        drop(self.hosts);
        self.folder.remove()?;
        Ok(left)
    }
}

#[derive(Debug, Default)]
struct Built {
    hosts: Vec<HostGround>,
    taps: Vec<HostTap>,
    notes: Notes,
}

impl Built {
    fn make(
        topology: &Topology,
        lab: &LabName,
        site: &Site,
        record: &mut Record<'_>,
    ) -> Result<Self, GroundError> {
        let token = open_journal(lab, record)?;
        let mut built = Self::default();
        for (number, host) in topology.hosts.iter().enumerate() {
            let netns_name = (site.privilege == Privilege::Root).then(|| lab.netns(&host.name));
            let netns = make_netns(&host.name, netns_name.as_deref(), &token, record)?;
            let notes = &mut built.notes;
            let taps = with_netns_fd(&netns, || create_interfaces(topology, number, lab, notes));
            built.taps.extend(taps.map_err(GroundError::host(&host.name, "entering its namespace"))??);
            congestion::set_default(host, &netns, site.privilege, record, notes)?;
            built.hosts.push(HostGround {
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

/// Begins a journal; the token by which the lab knows what is its own.
pub(super) fn open_journal(lab: &LabName, record: &mut Record<'_>) -> Result<String, GroundError> {
    let boot_id = proc::sysctl(undo::BOOT_ID).unwrap_or_default();
    let pid = std::process::id();
    // Nobody else has this process's number at this moment of this boot.
    let token = format!("linerate {lab} {boot_id} {pid} {}", clock::now().as_ns());
    record(&Entry::Opening(Opening::new(boot_id, token.clone(), pid)))?;
    Ok(token)
}

/// A namespace that carries the token before it has a name: a name whose namespace does not is never ours.
pub(super) fn make_netns(
    node: &str,
    name: Option<&str>,
    token: &str,
    record: &mut Record<'_>,
) -> Result<OwnedFd, GroundError> {
    let failed = |what| GroundError::host(node, what);
    if let Some(name) = name {
        let Named::Free = netns::open_named(name).map_err(failed("looking at the name of its namespace"))?
        else {
            return Err(GroundError::NameTaken { name: name.to_owned() });
        };
        record(&Entry::Name { name: name.to_owned() })?;
    }
    let netns = netns::create().map_err(failed("making its namespace"))?;
    with_netns_fd(&netns, || mark(node, token)).map_err(failed("entering its namespace"))??;
    let NetnsId { device, inode } = NetnsId::of(&netns).map_err(failed("looking at its namespace"))?;
    record(&Entry::Namespace { name: name.map(str::to_owned), device, inode })?;
    if let Some(name) = name
        && let Err(error) = netns::pin(&netns, name)
    {
        // Somebody took it since we looked.
        if error.source.kind() == std::io::ErrorKind::AlreadyExists {
            record(&Entry::NotOurs { name: name.to_owned() })?;
            return Err(GroundError::NameTaken { name: name.to_owned() });
        }
        return Err(failed("naming its namespace")(error));
    }
    Ok(netns)
}

#[cfg(test)]
mod tests;
