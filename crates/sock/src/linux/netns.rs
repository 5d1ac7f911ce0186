//! Network namespaces: creating, entering and distinguishing them.

mod name;

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::SockError;
use crate::linux::call::{check, get};

pub use name::{NameState, enter, open_named, path_of, pin, unpin, with_netns};

/// Identity of a namespace, unique among existing ones. The kernel reuses the numbers of deleted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetnsId {
    /// The kernel's device for namespaces.
    pub device: u64,
    /// Inode number of the namespace on it.
    pub inode: u64,
}

impl NetnsId {
    /// The identity of an open namespace.
    ///
    /// # Errors
    /// None is expected for a valid descriptor.
    pub fn of(fd: &impl AsFd) -> Result<Self, SockError> {
        const OP: &str = "read the state of a network namespace";
        let fail = |source| SockError::new(OP, source);
        let file = File::from(fd.as_fd().try_clone_to_owned().map_err(fail)?);
        file.metadata().map(|about| Self::from_metadata(&about)).map_err(fail)
    }

    /// The identity of the namespace of a process; `None` if the process has ended or access is denied.
    #[must_use]
    pub fn of_process(pid: u32) -> Option<Self> {
        let about = Path::new("/proc").join(pid.to_string()).join("ns/net").metadata().ok()?;
        Some(Self::from_metadata(&about))
    }

    fn from_metadata(about: &std::fs::Metadata) -> Self {
        Self { device: about.dev(), inode: about.ino() }
    }
}

/// Cookie of the calling thread's network namespace, unique since the system started. `None` before Linux 5.14.
#[must_use]
pub fn cookie() -> Option<u64> {
    const SO_NETNS_COOKIE: i32 = 71;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    get("read SO_NETNS_COOKIE", &socket, libc::SOL_SOCKET, SO_NETNS_COOKIE).ok()
}

/// Creates a network namespace. Its only interface is `lo`, which is down. It lives as long as the descriptor,
/// a process in it, or a name ([`pin`]).
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `ENOSPC` at the user's limit (`user.max_net_namespaces`).
pub fn create() -> Result<OwnedFd, SockError> {
    on_a_thread(|| {
        // SAFETY: takes a flag and accesses none of our memory; the thread ends in its new namespace.
        check("create a network namespace", unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        of_this_thread()
    })
}

/// The network namespace of the calling thread.
///
/// # Errors
/// `/proc` is not mounted, or the process is out of descriptors.
pub fn of_this_thread() -> Result<OwnedFd, SockError> {
    open(Path::new("/proc/thread-self/ns/net"))
}

/// The network namespace of a process.
///
/// # Errors
/// `ENOENT` if there is no such process, `EACCES` if access is denied.
pub fn of_process(pid: u32) -> Result<OwnedFd, SockError> {
    open(&Path::new("/proc").join(pid.to_string()).join("ns/net"))
}

fn open(path: &Path) -> Result<OwnedFd, SockError> {
    File::open(path).map(OwnedFd::from).map_err(|source| SockError::new("open a network namespace", source))
}

/// Moves the calling thread into an open namespace permanently: the sockets it opens from now on are there.
/// Other threads are not affected.
///
/// # Errors
/// `EINVAL` if the descriptor is not a network namespace, `EPERM` without `CAP_SYS_ADMIN`.
pub fn enter_fd(fd: &impl AsFd) -> Result<(), SockError> {
    // SAFETY: takes a descriptor and a flag and accesses none of our memory.
    let ret = unsafe { libc::setns(fd.as_fd().as_raw_fd(), libc::CLONE_NEWNET) };
    check("enter a network namespace", ret).map(|_| ())
}

/// Runs `work` inside an open namespace, on a new thread, so that the caller stays where it is.
///
/// # Errors
/// As [`enter_fd`]; then `work` has not run.
pub fn with_netns_fd<T: Send>(
    fd: &(impl AsFd + Sync),
    work: impl FnOnce() -> T + Send,
) -> Result<T, SockError> {
    on_a_thread(|| enter_fd(fd).map(|()| work()))
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, SockError> + Send) -> Result<T, SockError> {
    std::thread::scope(|scope| {
        let worker = crate::thread::spawn_scoped(scope, "netns", work)?;
        match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_this_thread_are_in_one_namespace() {
        let here = of_this_thread().unwrap();
        assert_eq!(NetnsId::of_process(std::process::id()), Some(NetnsId::of(&here).unwrap()));
        let same = of_process(std::process::id()).unwrap();
        assert_eq!(NetnsId::of(&same).unwrap(), NetnsId::of(&here).unwrap());
        assert_eq!(NetnsId::of_process(u32::MAX), None);
        assert_eq!(of_process(u32::MAX).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn the_number_of_a_namespace_stays() {
        assert!(cookie().is_some_and(|number| number != 0));
        assert_eq!(cookie(), cookie());
    }

    #[test]
    fn a_descriptor_of_something_else_is_not_entered() {
        let error = enter_fd(&File::open("/proc/self/stat").unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
