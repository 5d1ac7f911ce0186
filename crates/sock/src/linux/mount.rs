//! The few mounts that namespaces require.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use crate::SockError;
use crate::linux::call::check;

/// Gives the calling thread its own mount namespace in which `/sys` shows the network namespace of the thread,
/// as `ip netns exec` does. Otherwise `/sys/class/net` shows the namespace in which it was mounted. Programs
/// that the thread starts see the new mount, the rest of the process does not.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, or in a container that hides parts of `/sys`.
pub fn fresh_sys() -> Result<(), SockError> {
    // SAFETY: takes a flag and accesses none of our memory.
    check("create a mount namespace", unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // One-way propagation: mounts made here stay hidden outside, mounts made outside still appear here.
    mount("keep mounts private", None, Path::new("/"), None, libc::MS_SLAVE | libc::MS_REC)?;
    mount("mount a /sys", Some(Path::new("sysfs")), Path::new("/sys"), Some("sysfs"), SYS_FLAGS)
}

/// Flags of a file system without programs and devices. A user namespace must use the flags of the existing
/// /sys, and these are the usual ones.
const SYS_FLAGS: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Bind-mounts `file` over `place`, for this thread and the programs it starts, if it has a mount namespace of
/// its own ([`fresh_sys`]).
///
/// # Errors
/// `ENOENT` if one of the files does not exist, `EPERM` without `CAP_SYS_ADMIN`.
pub fn show(file: &Path, place: &Path) -> Result<(), SockError> {
    mount("show a file in the place of another", Some(file), place, None, libc::MS_BIND)
}

/// Bind-mounts `source` at `place`.
pub(crate) fn bind(source: &Path, place: &Path) -> Result<(), SockError> {
    mount("mount a network namespace", Some(source), place, None, libc::MS_BIND)
}

/// Makes mounts below `place`, which must be a mount, appear in all mount namespaces.
pub(crate) fn share(place: &Path) -> Result<(), SockError> {
    mount("share a mount", None, place, None, libc::MS_SHARED | libc::MS_REC)
}

/// Unmounts the topmost mount at `place` lazily: it disappears when it is no longer in use.
pub(crate) fn unmount(place: &Path) -> Result<(), SockError> {
    const OP: &str = "unmount a network namespace";
    let place = c_string(OP, place)?;
    // SAFETY: the kernel reads one C string.
    check(OP, unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }).map(|_| ())
}

fn mount(
    op: &'static str,
    source: Option<&Path>,
    place: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
) -> Result<(), SockError> {
    let source = source.map(|path| c_string(op, path)).transpose()?;
    let kind = kind.map(|name| c_string(op, Path::new(name))).transpose()?;
    let place = c_string(op, place)?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |text| text.as_ptr());
    // SAFETY: the kernel reads C strings that outlive the call, and no data.
    let ret = unsafe { libc::mount(pointer(&source), place.as_ptr(), pointer(&kind), flags, null()) };
    check(op, ret).map(|_| ())
}

fn c_string(op: &'static str, path: &Path) -> Result<CString, SockError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|source| SockError::new(op, io::Error::new(io::ErrorKind::InvalidInput, source)))
}
