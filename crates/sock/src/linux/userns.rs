//! User namespaces: root rights over one's own namespaces.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use crate::SockError;
use crate::linux::call::check;

/// Id of the effective user of this process; 0 is root.
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes this process root in new user and mount namespaces: it may then create network namespaces, and
/// interfaces and mounts in them, but change nothing outside. Requires a process with a single thread.
///
/// Files that it creates belong to the original user, who is root inside and the only user there.
///
/// # Errors
/// `EINVAL` in a process with several threads; `EPERM`, `EACCES`, `ENOSPC` or `EUSERS` where the system denies
/// user namespaces to its users.
pub fn become_root_in_user_namespace() -> Result<(), SockError> {
    // SAFETY: both take no arguments and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: takes flags and accesses none of our memory.
    let ret = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) };
    check("create a user namespace", ret)?;
    // Without this, only root may map groups (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write(path: &str, text: &str) -> Result<(), SockError> {
    fs::write(path, text).map_err(|source| SockError::new("become root in a user namespace", source))
}

/// Opens the user namespace of a process.
///
/// # Errors
/// `ENOENT` if there is no such process, `EACCES` if it belongs to another user.
pub fn of_process(pid: u32) -> Result<OwnedFd, SockError> {
    File::open(Path::new("/proc").join(pid.to_string()).join("ns/user"))
        .map(OwnedFd::from)
        .map_err(|source| SockError::new("open a user namespace", source))
}

/// Moves this process, which must have a single thread, into an open user namespace, with all capabilities
/// there.
///
/// The mount namespace and the working directory stay the same, so a program started afterwards can use
/// [`crate::mount::fresh_sys`].
///
/// # Errors
/// `EINVAL` in a process with several threads or already in that namespace, `EPERM` if the namespace belongs to
/// another user.
pub fn enter(fd: &OwnedFd) -> Result<(), SockError> {
    // SAFETY: takes a descriptor and a flag and accesses none of our memory.
    let ret = unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWUSER) };
    check("enter a user namespace", ret).map(|_| ())
}
