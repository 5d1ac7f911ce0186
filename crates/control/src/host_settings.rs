//! Settings of this host that are changed for a coordinator. They are restored at its end, after an error, or,
//! after a kill, at the next start.
//!
//! Every change is recorded in an undo journal before it is made (`journal`). One process at a time may change
//! settings of a network namespace (`held_journal`). A setting that has neither its original value nor the one
//! that was set here was changed by another process and is left alone.

mod asked;
mod held_journal;
mod journal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use linerate_model::ForeignText;
use linerate_sock::host_setting::{HostSetting, HostSettingRequest};
use linerate_sock::{SockError, iface, routing};

use crate::error::ControlError;
use crate::restored::{Guardian, Guardians, Leftovers, Restored};
pub use asked::SETTINGS;
use held_journal::{HeldJournal, JournalDir, boot_id};
pub(crate) use journal::JournaledInterface;
use journal::{JournalError, PendingSetting, SettingsJournal, SettingsJournalContent, SettingsJournalEntry};

/// The content of an agent's journal in `folder` for this network namespace; absent if nothing is changed.
///
/// # Errors
/// The journal cannot be read.
pub fn leftovers(folder: &Path) -> Result<Option<Leftovers>, ControlError> {
    let place = JournalDir::here(folder);
    let found = journal::read(&place.journal)?;
    let Some(found) = found.filter(|found| found.boot_id.as_deref() == Some(&boot_id())) else {
        return Ok(None);
    };
    let settings: Vec<String> = found.slots.iter().map(describe).collect();
    let is_alive = place.is_taken();
    Ok((!settings.is_empty()).then_some(Leftovers { pid: found.pid, is_alive, settings }))
}

/// Restores the settings that a dead agent left changed in this network namespace, by its journal in `folder`.
/// Does nothing if there is no journal or the agent is alive.
///
/// # Errors
/// The journal cannot be read or written.
pub fn restore_leftovers(folder: &Path) -> Result<Restored, ControlError> {
    let place = JournalDir::here(folder);
    if !place.is_used() {
        return Ok(Restored::default());
    }
    match place.take()? {
        Some(held_journal) => Ok(Changes::take_over(held_journal)?.finish()),
        None => Ok(Restored::default()),
    }
}

/// The settings of this network namespace that this process, and no other, has changed.
#[derive(Debug)]
pub(crate) struct Changes {
    held_journal: HeldJournal,
    /// Absent before the first change.
    journal: Option<SettingsJournal>,
    slots: Vec<PendingSetting>,
    /// The value last requested for each setting. Settings that already have it are left alone.
    requested: Vec<(HostSettingRequest, Option<JournaledInterface>)>,
    guardians: Option<Arc<dyn Guardians>>,
    /// Exists from the first change on. It is dropped last, when the namespace is released and nothing is left
    /// to restore.
    guardian: Option<Box<dyn Guardian>>,
}

impl Changes {
    /// Takes the lock of the namespace and first restores what a killed agent has left changed.
    ///
    /// # Errors
    /// Another agent holds the lock, the journal cannot be written, or a leftover cannot be restored.
    pub(crate) fn begin(folder: &Path) -> Result<(Self, Restored), String> {
        let place = JournalDir::here(folder);
        let other = journal::read(&place.journal).ok().flatten().and_then(|found| found.pid);
        let held_journal = place.take().map_err(|error| error.to_string())?;
        let mut changes = held_journal
            .ok_or_else(|| taken(other))
            .and_then(|held_journal| Self::take_over(held_journal).map_err(|e| e.to_string()))?;
        let restored = changes.undo_all();
        if changes.slots.is_empty() { Ok((changes, restored)) } else { Err(restored.left.join("; ")) }
    }

    /// Reads the existing journal, if any.
    fn take_over(held_journal: HeldJournal) -> Result<Self, JournalError> {
        let path = &held_journal.place.journal;
        let found = journal::read(path)?;
        let (journal, slots) = match found {
            Some(SettingsJournalContent { boot_id: Some(id), slots, .. }) if id == boot_id() => {
                (Some(SettingsJournal::reopen(path)?), slots)
            }
            // The system has been rebooted since, which reset every setting; or the journal has no entries.
            Some(_) => {
                std::fs::remove_file(path).map_err(journal::failed(path))?;
                (None, Vec::new())
            }
            None => (None, Vec::new()),
        };
        Ok(Self { held_journal, journal, slots, requested: Vec::new(), guardians: None, guardian: None })
    }

    /// From now on a guardian is started before the first change.
    pub(crate) fn guarded_by(mut self, guardians: Option<Arc<dyn Guardians>>) -> Self {
        self.guardians = guardians;
        self
    }

    /// Applies the requested settings and restores all others. If anything fails, everything is restored.
    ///
    /// # Errors
    /// What failed. No setting is changed then.
    pub(crate) fn apply(
        &mut self,
        requested: &[(HostSettingRequest, Option<JournaledInterface>)],
    ) -> Result<(), Vec<String>> {
        let wanted = |slot: &PendingSetting| {
            requested.iter().any(|(request, iface)| slot.is_about(request.setting(), iface.as_ref()))
        };
        let mut troubles = Vec::new();
        for at in (0..self.slots.len()).rev() {
            if !wanted(&self.slots[at]) {
                troubles.extend(self.undo(at).left);
            }
        }
        for (request, iface) in requested {
            if !troubles.is_empty() {
                break;
            }
            troubles.extend(self.make(request, iface.as_ref()).err());
        }
        if troubles.is_empty() {
            return Ok(());
        }
        troubles.extend(self.undo_all().left);
        Err(troubles)
    }

    /// Restores everything and releases the namespace. What cannot be restored stays in the journal.
    pub(crate) fn finish(mut self) -> Restored {
        let mut restored = self.undo_all();
        if self.slots.is_empty() {
            restored.left.extend(self.held_journal.clear().err().map(|error| error.to_string()));
        }
        restored
    }

    /// The settings in force: name, interface, original value, current value.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = (HostSetting, Option<&str>, String, String)> {
        self.requested.iter().map(|(request, iface)| {
            let setting = request.setting();
            let interface = iface.as_ref().map(|iface| iface.name.as_str());
            let slot = self.slots.iter().find(|slot| slot.is_about(setting, iface.as_ref()));
            let now = setting.read(interface.unwrap_or_default()).unwrap_or_default();
            let found = slot.map_or(&now, |slot| &slot.found);
            (setting, interface, short(setting, found), short(setting, &now))
        })
    }

    /// Applies one setting after recording it in the journal.
    fn make(
        &mut self,
        request: &HostSettingRequest,
        iface: Option<&JournaledInterface>,
    ) -> Result<(), String> {
        let setting = request.setting();
        let what = name_of(setting, iface);
        let name = interface_of(iface).ok_or_else(|| format!("{what}: the interface is gone"))?;
        let failed = |error: SockError| format!("{what}: {}", ControlError::from(error));
        let now = setting.read(&name).map_err(failed)?;
        let slot = self.slots.iter().find(|slot| slot.is_about(setting, iface));
        let is_ours =
            |slot: &PendingSetting| slot.ours.last().is_some_and(|ours| setting.is_same(&now, ours));
        if slot.is_some_and(|slot| !is_ours(slot)) {
            return Err(format!("{what}: somebody else has made it {} meanwhile", short(setting, &now)));
        }
        let latest = (request.clone(), iface.cloned());
        let becoming = request.becomes(&name, &now).map_err(failed)?;
        if setting.is_same(&now, &becoming) || (slot.is_some() && self.requested.contains(&latest)) {
            self.set_requested(latest);
            return Ok(());
        }
        self.ensure_guardian().map_err(|why| format!("{what}: {why}"))?;
        let (interface, found, ours) = (iface.cloned(), now.clone(), becoming.clone());
        self.note(&SettingsJournalEntry::Change {
            setting: setting.name().to_owned(),
            interface,
            found,
            ours,
        })?;
        match self.slots.iter_mut().find(|slot| slot.is_about(setting, iface)) {
            Some(slot) => slot.ours.push(becoming.clone()),
            None => {
                let ours = vec![becoming.clone()];
                self.slots.push(PendingSetting { setting, iface: iface.cloned(), found: now, ours });
            }
        }
        request.set(&name, &becoming).map_err(failed)?;
        let now = setting.read(&name).map_err(failed)?;
        if !setting.is_same(&now, &becoming) {
            let (asked, became) = (short(setting, &becoming), short(setting, &now));
            return Err(format!(
                "{what}: it was set to {asked} and became {became}; the kernel or the NIC refuses it"
            ));
        }
        self.set_requested(latest);
        Ok(())
    }

    /// A killed process cannot restore anything, so another process must exist before anything is changed.
    fn ensure_guardian(&mut self) -> Result<(), String> {
        if let (None, Some(guardians)) = (&self.guardian, &self.guardians) {
            let none = "no process can be started that puts it back if this agent is killed";
            self.guardian = Some(guardians.start().map_err(|why| format!("{none}: {why}"))?);
        }
        Ok(())
    }

    fn set_requested(&mut self, latest: (HostSettingRequest, Option<JournaledInterface>)) {
        self.requested
            .retain(|(request, iface)| request.setting() != latest.0.setting() || *iface != latest.1);
        self.requested.push(latest);
    }

    /// Appends an entry; creates the journal with the first change.
    fn note(&mut self, entry: &SettingsJournalEntry) -> Result<(), String> {
        let place = &self.held_journal.place;
        let journal = match &mut self.journal {
            Some(journal) => Ok(journal),
            none => SettingsJournal::create(&place.journal, &boot_id()).map(|journal| none.insert(journal)),
        };
        journal.and_then(|journal| journal.note(entry)).map_err(|error| error.to_string())
    }

    /// Restores everything that can be restored, the last change first.
    pub(crate) fn undo_all(&mut self) -> Restored {
        let mut all = Restored::default();
        for at in (0..self.slots.len()).rev() {
            let one = self.undo(at);
            all.put_back.extend(one.put_back);
            all.left.extend(one.left);
        }
        self.requested.clear();
        all
    }

    /// Restores one setting. It stays in the journal only if restoring failed.
    fn undo(&mut self, at: usize) -> Restored {
        let slot = self.slots[at].clone();
        let mut restored = Restored::default();
        match put_back(&slot) {
            Ok(Undoing::Done) => restored.put_back.push(describe(&slot)),
            Ok(Undoing::Unchanged) => {}
            Ok(Undoing::NotOurs(why)) => restored.left.push(why),
            Err(why) => {
                restored.left.push(why);
                return restored;
            }
        }
        self.slots.remove(at);
        self.requested.retain(|(request, iface)| !slot.is_about(request.setting(), iface.as_ref()));
        let undone =
            SettingsJournalEntry::Undone { setting: slot.setting.name().to_owned(), interface: slot.iface };
        // The setting is restored even if this entry cannot be written; a second restore would find nothing to
        // do.
        restored.left.extend(self.note(&undone).err());
        restored
    }
}

/// The result of restoring a setting.
enum Undoing {
    Done,
    /// It still has its original value, because it was journaled but never changed.
    Unchanged,
    /// It was changed by another process or no longer exists; the text says why nothing was restored.
    NotOurs(String),
}

fn put_back(slot: &PendingSetting) -> Result<Undoing, String> {
    let (setting, what) = (slot.setting, name_of(slot.setting, slot.iface.as_ref()));
    let Some(name) = interface_of(slot.iface.as_ref()) else {
        return Ok(Undoing::NotOurs(format!("{what}: the interface is gone, so nothing was put back")));
    };
    let failed = |error: SockError| {
        format!(
            "{what}: it could not be put back to {}: {}",
            short(setting, &slot.found),
            ControlError::from(error)
        )
    };
    let now = setting.read(&name).map_err(failed)?;
    if setting.is_same(&now, &slot.found) {
        return Ok(Undoing::Unchanged);
    }
    if !slot.ours.iter().any(|ours| setting.is_same(&now, ours)) {
        let (now, found) = (short(setting, &now), short(setting, &slot.found));
        let why = format!(
            "{what}: somebody else has made it {now} meanwhile, so it was left alone; it was {found} before"
        );
        return Ok(Undoing::NotOurs(why));
    }
    setting.put_back(&name, &slot.found).map_err(failed)?;
    let now = setting.read(&name).map_err(failed)?;
    if setting.is_same(&now, &slot.found) {
        Ok(Undoing::Done)
    } else {
        let (now, found) = (short(setting, &now), short(setting, &slot.found));
        Err(format!("{what}: it was put back to {found} and became {now}"))
    }
}

/// Requested settings, each with its interface, in the order in which they are applied.
pub(crate) type SettingRequests = Vec<(HostSettingRequest, Option<JournaledInterface>)>;

/// Parses requested settings of a plan, finds the interface of each, and checks them.
///
/// # Errors
/// Everything that is not understood or cannot be set. Nothing is changed.
pub(crate) fn check(
    values: &BTreeMap<ForeignText, ForeignText>,
    interface: impl FnOnce() -> Result<String, String>,
) -> Result<SettingRequests, Vec<String>> {
    let requested = asked::setting_requests(values)?;
    let mut iface = None;
    if requested.iter().any(|request| request.setting().is_of_interface()) {
        let name = interface().map_err(|why| vec![why])?;
        let index = routing::index_of(&name)
            .map_err(|error| vec![format!("interface {name}: {}", ControlError::from(error))])?;
        iface = Some(JournaledInterface { name, index });
    }
    let name = iface.as_ref().map(|iface| iface.name.clone()).unwrap_or_default();
    let troubles: Vec<String> =
        requested.iter().flat_map(|request| request.obstacles(&name)).map(|obstacle| obstacle.0).collect();
    if !troubles.is_empty() {
        return Err(troubles);
    }
    let with_card = |request: HostSettingRequest| {
        let iface = iface.clone().filter(|_| request.setting().is_of_interface());
        (request, iface)
    };
    Ok(requested.into_iter().map(with_card).collect())
}

fn taken(pid: Option<u32>) -> String {
    let who = pid.map_or_else(|| "another agent".to_owned(), |pid| format!("another agent (process {pid})"));
    format!("{who} is changing settings of this host; end its run, or that agent")
}

/// The current name of the interface; absent if it is gone, empty for a setting that has no interface.
fn interface_of(iface: Option<&JournaledInterface>) -> Option<String> {
    match iface {
        None => Some(String::new()),
        Some(iface) => iface::name_of(iface.index),
    }
}

fn name_of(setting: HostSetting, iface: Option<&JournaledInterface>) -> String {
    let of = iface.map_or_else(String::new, |iface| format!(" of {}", iface.name));
    format!("{}{of}", setting.name())
}

fn describe(slot: &PendingSetting) -> String {
    let what = name_of(slot.setting, slot.iface.as_ref());
    let ours = slot.ours.last().map(|ours| short(slot.setting, ours)).unwrap_or_default();
    format!("{what}: {ours}, before {}", short(slot.setting, &slot.found))
}

/// A readable state: without the bytes of a qdisc, and with one word for offloads if possible.
fn short(setting: HostSetting, state: &str) -> String {
    match setting {
        HostSetting::RootDiscipline => {
            let mut words = state.split(' ');
            match (words.next(), words.next()) {
                (Some("default"), Some(kind)) => format!("{kind} (the kernel's own)"),
                (Some(kind), _) => kind.to_owned(),
                _ => String::new(),
            }
        }
        HostSetting::Tso | HostSetting::Gso | HostSetting::Gro | HostSetting::Lro => {
            let all = |end: &str| !state.is_empty() && state.split(' ').all(|word| word.ends_with(end));
            match (all("=on"), all("=off")) {
                (true, _) => "on".to_owned(),
                (_, true) => "off".to_owned(),
                _ => state.to_owned(),
            }
        }
        _ => state.to_owned(),
    }
}

impl From<JournalError> for ControlError {
    fn from(error: JournalError) -> Self {
        Self::Local(error.to_string())
    }
}
