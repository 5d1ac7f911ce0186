//! The user that runs PostgreSQL where root starts it: PostgreSQL refuses to run as root.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::LocalServerError;

/// Users that root may run a server as, the best one first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// A user of this host that is not root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerUser {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl ServerUser {
    /// The user that runs the server of a data folder; absent if that is the user of this process, who is not root.
    /// It is the owner of the folder if there is one, so that root can start what another user has made.
    pub(super) fn of_data(data: &Path) -> Result<Option<Self>, LocalServerError> {
        if effective_user() != Some(0) {
            return Ok(None);
        }
        let text = fs::read("/etc/passwd").unwrap_or_default();
        let users = users(&String::from_utf8_lossy(&text));
        if let Some(owner) = data.metadata().ok().filter(|owner| owner.uid() != 0) {
            let known = users.into_iter().find(|user| user.uid == owner.uid());
            let unknown = || Self { name: owner.uid().to_string(), uid: owner.uid(), gid: owner.gid() };
            return Ok(Some(known.unwrap_or_else(unknown)));
        }
        let named = |name: &&str| users.iter().find(|user| user.name == **name && user.uid != 0);
        let user = UNPRIVILEGED.iter().find_map(named).cloned();
        user.map(Some).ok_or(LocalServerError::NoUser)
    }

    /// Makes a command run as this user. The standard library then drops the groups of root as well.
    pub(super) fn run(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Checks that this user can enter a folder, with a program that it can run.
    pub(super) fn check_access(&self, program: &Path, folder: &Path) -> Result<(), LocalServerError> {
        let mut command = Command::new(program);
        command.arg("--version").current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.run(&mut command);
        match command.status() {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let closed = self.first_closed(folder).unwrap_or_else(|| folder.to_owned());
                let own = closed == folder;
                Err(LocalServerError::Closed { user: self.name.clone(), closed, own })
            }
            Err(source) => Err(super::programs::cannot_run(program, Some(self), source)),
            Ok(_) => Ok(()),
        }
    }

    /// The first folder of a path whose permissions keep this user out.
    fn first_closed(&self, folder: &Path) -> Option<PathBuf> {
        let mut folders: Vec<&Path> = folder.ancestors().collect();
        folders.reverse();
        let closed = |folder: &&&Path| folder.metadata().is_ok_and(|metadata| !self.may_enter(&metadata));
        folders.iter().find(closed).map(|folder| (*folder).to_owned())
    }

    fn may_enter(&self, folder: &Metadata) -> bool {
        let bit = if folder.uid() == self.uid {
            0o100
        } else if folder.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        folder.mode() & bit != 0
    }
}

/// The user whose rights this process has. Systems without /proc do not say it.
pub(crate) fn effective_user() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// The users of a file as `/etc/passwd`.
fn users(text: &str) -> Vec<ServerUser> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(ServerUser { name, uid, gid })
    };
    text.lines().filter_map(user).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_and_other_lines_are_not() {
        let text =
            "root:x:0:0:root:/:/bin/sh\n# a comment\n+::::::\npostgres:x:101:104:a, b:/var/lib:/bin/sh\n";
        let found = users(text);
        let names: Vec<_> = found.iter().map(|user| (&*user.name, user.uid, user.gid)).collect();
        assert_eq!(names, [("root", 0, 0), ("postgres", 101, 104)]);
    }
}
