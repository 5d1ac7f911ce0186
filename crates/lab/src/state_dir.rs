//! The labs of this user, up or killed, as seen from other processes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_config::hint;
use linerate_sock::clock;

use crate::client::{AskError, ask};
use crate::control_protocol::{Answer, Ask, PortHistory, Status};
use crate::host_names::hosts_file;
use crate::kernel;
use crate::{LabName, LabResourceError, Swept, folder_of, is_up, labs, run_dir, sweep, switch_pid, undo};
use linerate_emu::topology::Topology;

/// The control socket in a lab's folder.
const SOCKET: &str = "control";
/// The host names in a lab's folder, in the form of `/etc/hosts`.
const NAMES: &str = "hosts";
/// The error logs of switches, next to the parent folder of labs: the folder of a lab is empty when it is
/// created.
const LOGS: &str = "logs";
/// How often creating a file there is retried when another lab interferes.
const MAX_CREATE_ATTEMPTS: u32 = 100;
/// How long a switch may take to answer: it does so before it removes anything.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a switch may take to remove everything: programs that do not end get a few seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// The folder with the state of this user's labs.
#[derive(Debug, Clone)]
pub struct StateDir {
    run_dir: PathBuf,
}

impl StateDir {
    /// The default folder of this user, or the one given.
    ///
    /// # Errors
    /// The default folder is accessible to others.
    pub fn open(given: Option<&Path>) -> Result<Self, LabResourceError> {
        let run_dir = match given {
            Some(given) => std::path::absolute(given).map_err(LabResourceError::folder(given, "finding"))?,
            None => run_dir()?,
        };
        Ok(Self { run_dir })
    }

    /// The folder.
    #[must_use]
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// The labs that have a folder there, in the order of their names.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn labs(&self) -> Result<Vec<LabHandle>, LabResourceError> {
        Ok(labs(&self.run_dir)?.into_iter().map(|name| self.lab(name)).collect())
    }

    /// The lab of that name, whether it exists or not.
    #[must_use]
    pub fn lab(&self, name: LabName) -> LabHandle {
        LabHandle { run_dir: self.run_dir.clone(), name }
    }

    /// Removes the leftovers of killed labs; returns one line for each.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn sweep(&self) -> Result<Vec<String>, LabResourceError> {
        Ok(sweep(&self.run_dir)?.into_iter().flat_map(describe_swept).collect())
    }

    /// Removes the error logs of labs that no longer exist.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn remove_dead_logs(&self) -> Result<(), LabResourceError> {
        let path = self.run_dir.join(LOGS);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(LabResourceError::folder(&path, "reading the folder"))?,
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse().ok());
            if let Some(name) = name {
                self.lab(name).remove_log();
            }
        }
        Ok(())
    }

    /// A file for the error messages of a lab's switch.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn log(&self, name: &LabName) -> Result<File, LabResourceError> {
        let path = self.lab(name.clone()).log();
        let folder = self.run_dir.join(LOGS);
        let open = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            OpenOptions::new().create(true).append(true).mode(0o600).open(&path)
        };
        // Another lab that ends may remove the folder meanwhile, because it is empty.
        let raced = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
        };
        let mut opened = open();
        for _ in 0..MAX_CREATE_ATTEMPTS {
            if opened.as_ref().is_err_and(raced) {
                opened = open();
            }
        }
        opened.map_err(LabResourceError::folder(&path, "opening"))
    }
}

/// True for a socket's error after a timeout.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The outcome for a killed lab, as text for users.
fn describe_swept(swept: Swept) -> Vec<String> {
    let lab = swept.lab;
    match swept.outcome {
        Ok(left) => std::iter::once(format!("removed the remains of the killed lab {lab}"))
            .chain(left.into_iter().map(|name| {
                format!(
                    "not removed, because it belongs to another program: \
                                                        {name}"
                )
            }))
            .collect(),
        Err(error) => vec![format!("the killed lab {lab} could not be removed: {error}")],
    }
}

/// Why no lab is chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabChoiceError {
    /// There is none.
    #[error("no lab is up; start one with: linerate lab up pair")]
    NoLab,
    /// None has the name.
    #[error("no lab '{name}' is up{}", hint(name, names.iter().map(String::as_str)))]
    NoSuchLab {
        /// The name.
        name: String,
        /// The labs.
        names: Vec<String>,
    },
    /// No name was given.
    #[error("several labs are up; name one of: {}", .0.join(", "))]
    SeveralLabs(Vec<String>),
}

/// A lab, as seen from another process.
#[derive(Debug, Clone)]
pub struct LabHandle {
    run_dir: PathBuf,
    name: LabName,
}

impl LabHandle {
    /// The lab with this name, or the only one.
    ///
    /// # Errors
    /// There is none of that name, or there are none or several.
    pub fn choose(mut labs: Vec<Self>, name: Option<&str>) -> Result<Self, LabChoiceError> {
        let names: Vec<String> = labs.iter().map(|lab| lab.name().to_owned()).collect();
        let found = match name {
            Some(name) => names.iter().position(|lab| lab == name),
            None if names.len() == 1 => Some(0),
            None => None,
        };
        match (found, name) {
            (Some(found), _) => Ok(labs.swap_remove(found)),
            _ if names.is_empty() => Err(LabChoiceError::NoLab),
            (None, Some(name)) => Err(LabChoiceError::NoSuchLab { name: name.to_owned(), names }),
            (None, None) => Err(LabChoiceError::SeveralLabs(names)),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The state folder of this lab and the others.
    #[must_use]
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// True if its switch runs, or the kernel runs it.
    #[must_use]
    pub fn is_up(&self) -> bool {
        is_up(&self.run_dir, &self.name) || kernel::stands(&self.folder())
    }

    /// Its control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder().join(SOCKET)
    }

    /// Names and addresses of its hosts, after this machine's own names.
    #[must_use]
    pub fn names(&self) -> PathBuf {
        self.folder().join(NAMES)
    }

    /// Its folder, which is removed with the lab, with everything in it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        folder_of(&self.run_dir, &self.name)
    }

    /// The error log of its switch, if there is one.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.run_dir.join(LOGS).join(format!("{}.log", self.name))
    }

    /// Sends a request to its switch.
    ///
    /// # Errors
    /// See [`ask`].
    pub fn ask(&self, question: &Ask, timeout: Duration) -> Result<Answer, AskError> {
        if kernel::stands(&self.folder()) {
            return Err(AskError::Kernel);
        }
        ask(&self.socket(), question, timeout)
    }

    /// Its status.
    ///
    /// # Errors
    /// See [`ask`].
    pub fn status(&self, timeout: Duration) -> Result<Status, AskError> {
        if let Some(status) = kernel::status(&self.folder()) {
            return Ok(status);
        }
        match self.ask(&Ask::Status, timeout)? {
            Answer::Status(status) => Ok(*status),
            _ => Err(AskError::Strange),
        }
    }

    /// The counters of its ports over the last `range`, as far back as its switch remembers.
    ///
    /// # Errors
    /// See [`ask`]; there is no switch.
    pub fn history(&self, range: Duration, timeout: Duration) -> Result<PortHistory, AskError> {
        let to_ns = clock::now().as_ns();
        let from_ns = to_ns.saturating_sub(u64::try_from(range.as_nanos()).unwrap_or(u64::MAX));
        match self.ask(&Ask::PortHistory { from_ns, to_ns }, timeout)? {
            Answer::PortHistory(history) => Ok(history),
            _ => Err(AskError::Strange),
        }
    }

    /// Removes it, up or killed, with all processes in it. Returns what was left in place because it belongs to
    /// somebody else.
    ///
    /// # Errors
    /// Something cannot be removed, or the switch does not end.
    pub fn down(&self) -> Result<Vec<String>, LabResourceError> {
        self.stop_switch()?;
        let left = undo(&self.run_dir, &self.name)?;
        self.remove_log();
        Ok(left.unwrap_or_default())
    }

    /// Stops its switch, which removes everything, and waits for it. A missing or killed switch is not an
    /// error.
    fn stop_switch(&self) -> Result<(), LabResourceError> {
        let deadline = clock::now() + SHUTDOWN_TIMEOUT;
        let mut stop_requested = false;
        while is_up(&self.run_dir, &self.name) {
            if !stop_requested {
                stop_requested = match self.ask(&Ask::Down, ANSWER_TIMEOUT) {
                    Ok(_) => true,
                    Err(AskError::Gone(error)) if is_timeout(&error) => return Err(self.not_answering()),
                    // It is still creating the lab and does not listen yet, or is about to end.
                    Err(_) => false,
                };
            }
            if deadline.has_passed() {
                return Err(self.not_answering());
            }
            clock::sleep_until(clock::now() + Duration::from_millis(2));
        }
        Ok(())
    }

    fn not_answering(&self) -> LabResourceError {
        LabResourceError::Deaf {
            lab: self.name.clone(),
            pid: switch_pid(&self.run_dir, &self.name).unwrap_or(0),
        }
    }

    /// Removes the error log of a lab that was never created; that of one that is up is kept.
    pub fn remove_log(&self) {
        if !self.is_up() {
            let _ = fs::remove_file(self.log());
            let _ = fs::remove_dir(self.run_dir.join(LOGS));
        }
    }

    /// Writes the file of host names: those of the lab's hosts, and this machine's own ones.
    pub(super) fn write_names(&self, topology: &Topology) -> Result<(), LabResourceError> {
        let own = fs::read_to_string("/etc/hosts").unwrap_or_default();
        let text = hosts_file(&own, topology);
        let path = self.names();
        fs::write(&path, text).map_err(LabResourceError::folder(&path, "writing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_labs_have_their_own_error_files() {
        let run = tempfile::tempdir().unwrap();
        let place = StateDir::open(Some(run.path())).unwrap();
        let come_and_go = |name: &str| {
            let name: LabName = name.parse().unwrap();
            for _ in 0..500 {
                place.log(&name).unwrap();
                place.lab(name.clone()).remove_log();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| come_and_go("a"));
            come_and_go("b");
        });
        assert!(!run.path().join(LOGS).exists());
    }
}
