//! User namespaces: being root over what one has made oneself.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use crate::SockError;
use crate::call::check;

/// Number of the effective user of this process; 0 is root.
#[must_use]
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// Makes this process root in a user namespace of its own, with a mount namespace of its own: it may then make network
/// namespaces, and interfaces and mounts in them, and nothing outside. Only for a process with a single thread.
///
/// Files that it makes belong to the user that it was before, who is root inside and the only user there.
///
/// # Errors
/// `EINVAL` in a process of several threads; `EPERM`, `EACCES`, `ENOSPC` or `EUSERS` where the system keeps user
/// namespaces from its users.
pub fn become_root_in_user_namespace() -> Result<(), SockError> {
    // SAFETY: take nothing, cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: takes flags, touches no memory of ours.
    let ret = unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) };
    check("create a user namespace", ret)?;
    // Without this the kernel lets nobody but root map a group (user_namespaces(7)).
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
/// `ENOENT` when there is no such process, `EACCES` when it is another user's.
pub fn of_process(pid: u32) -> Result<OwnedFd, SockError> {
    File::open(Path::new("/proc").join(pid.to_string()).join("ns/user"))
        .map(OwnedFd::from)
        .map_err(|source| SockError::new("open a user namespace", source))
}

/// Moves this process, which must have a single thread, into an open user namespace, with all capabilities there.
///
/// The mount namespace stays, and with it the working directory: a program to be started there can have a
/// [`crate::mount::fresh_sys`].
///
/// # Errors
/// `EINVAL` in a process of several threads or one that is in that namespace already, `EPERM` when the namespace is
/// another user's.
pub fn enter(fd: &OwnedFd) -> Result<(), SockError> {
    // SAFETY: takes a descriptor and a flag, touches no memory of ours.
    let ret = unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWUSER) };
    check("enter a user namespace", ret).map(|_| ())
}
