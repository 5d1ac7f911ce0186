//! The few mounts that namespaces need.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null;

use crate::SockError;
use crate::call::check;

/// Gives the calling thread a file system of its own in which `/sys` shows the network namespace that the thread is in,
/// as `ip netns exec` does: `/sys/class/net` shows the namespace in which it was mounted. Programs that the thread starts
/// see it, the rest of the process does not.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, or in a container that hides parts of `/sys`.
pub fn fresh_sys() -> Result<(), SockError> {
    // SAFETY: takes a flag, touches no memory of ours.
    check("create a mount namespace", unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // What is mounted here must not show outside; what is mounted outside may show here.
    mount("keep mounts private", None, Path::new("/"), None, libc::MS_SLAVE | libc::MS_REC)?;
    mount("mount a /sys", Some(Path::new("sysfs")), Path::new("/sys"), Some("sysfs"), SYS_FLAGS)
}

/// What a file system without programs needs not permit; a user namespace requires the flags of the /sys that is there,
/// and these are the usual ones.
const SYS_FLAGS: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Shows a file in the place of another one, to this process and those it starts, if it has a file system of its own
/// ([`fresh_sys`]).
///
/// # Errors
/// `ENOENT` when one of them is not there, `EPERM` without `CAP_SYS_ADMIN`.
pub fn show(file: &Path, place: &Path) -> Result<(), SockError> {
    mount("show a file in the place of another", Some(file), place, None, libc::MS_BIND)
}

/// Shows `source` at `place` too.
pub(crate) fn bind(source: &Path, place: &Path) -> Result<(), SockError> {
    mount("mount a network namespace", Some(source), place, None, libc::MS_BIND)
}

/// Lets all mount namespaces see what is mounted below `place`, which must be a mount.
pub(crate) fn share(place: &Path) -> Result<(), SockError> {
    mount("share a mount", None, place, None, libc::MS_SHARED | libc::MS_REC)
}

/// Takes the topmost mount off `place`; it goes when nobody uses it any more.
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
    // SAFETY: the kernel reads C strings that live until it returns, and no data.
    let ret = unsafe { libc::mount(pointer(&source), place.as_ptr(), pointer(&kind), flags, null()) };
    check(op, ret).map(|_| ())
}

fn c_string(op: &'static str, path: &Path) -> Result<CString, SockError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|source| SockError::new(op, io::Error::new(io::ErrorKind::InvalidInput, source)))
}
