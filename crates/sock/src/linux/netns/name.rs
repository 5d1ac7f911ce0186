//! Named namespaces in a folder, as `ip netns` keeps them (ip-netns(8)): each name is a file on which the
//! namespace is mounted.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use super::{enter_fd, on_a_thread};
use crate::SockError;
use crate::mount::{bind, share, unmount};

const FOLDER: &str = "/run/netns";

/// State of a name.
#[derive(Debug)]
pub enum NameState {
    /// Not in use.
    Free,
    /// A file on which no namespace is mounted.
    Unmounted,
    /// A namespace.
    Namespace(OwnedFd),
}

/// The file of a name.
///
/// # Errors
/// `InvalidInput` if it is not a single path component: a slash would leave the folder of namespaces.
pub fn path_of(name: &str) -> Result<PathBuf, SockError> {
    let mut parts = Path::new(name).components();
    if matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        return Ok(Path::new(FOLDER).join(name));
    }
    let text = format!("\"{name}\" is not a valid name of a network namespace");
    Err(SockError::new("name a network namespace", io::Error::new(io::ErrorKind::InvalidInput, text)))
}

/// Opens a name.
///
/// # Errors
/// The name is invalid, or the file cannot be opened.
pub fn open_named(name: &str) -> Result<NameState, SockError> {
    let path = path_of(name)?;
    let fail = |source| SockError::new("open a network namespace", source);
    match File::open(&path) {
        Ok(file) if is_namespace(&file).map_err(fail)? => Ok(NameState::Namespace(file.into())),
        Ok(_) => Ok(NameState::Unmounted),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(NameState::Free),
        Err(error) => Err(fail(error)),
    }
}

fn is_namespace(file: &File) -> io::Result<bool> {
    // SAFETY: all zero is a valid statfs, which consists of integers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one statfs to `about`.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // The types of both differ between architectures.
    Ok(about.f_type as u64 == libc::NSFS_MAGIC as u64)
}

/// Gives a namespace a name, under which `ip netns` and other programs find it.
///
/// # Errors
/// `AlreadyExists` if the name is in use; then nothing has changed. `EPERM` without `CAP_SYS_ADMIN`.
pub fn pin(fd: &impl AsFd, name: &str) -> Result<(), SockError> {
    let path = path_of(name)?;
    prepare_folder()?;
    // The file is only a mount point, which needs no access rights.
    let place = OpenOptions::new().write(true).create_new(true).mode(0o000).open(&path);
    place.map_err(|source| SockError::new("reserve a name for a network namespace", source))?;
    let source = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    bind(Path::new(&source), &path).inspect_err(|_| {
        // The first error is the more informative one.
        let _ = fs::remove_file(&path);
    })
}

/// Removes a name: unmounts the namespace, if one is mounted, and removes the file. The namespace itself ends
/// with the last process in it and the last descriptor of it. It is not an error if the name is not in use.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`.
pub fn unpin(name: &str) -> Result<(), SockError> {
    let path = path_of(name)?;
    while matches!(open_named(name)?, NameState::Namespace(_)) {
        unmount(&path)?;
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(SockError::new("remove the name of a network namespace", error))
        }
        _ => Ok(()),
    }
}

/// Makes the folder a shared mount, as `ip netns` does. Otherwise, adding or removing a name would not affect
/// other mount namespaces. As with `ip netns`, the mount is never removed.
fn prepare_folder() -> Result<(), SockError> {
    const OP: &str = "prepare the folder of network namespaces";
    let fail = |source| SockError::new(OP, source);
    DirBuilder::new().recursive(true).mode(0o755).create(FOLDER).map_err(fail)?;
    let folder = File::open(FOLDER).map_err(fail)?;
    // Two concurrent preparations would mount the folder twice; `ip netns` takes this lock too.
    folder.lock().map_err(fail)?;
    let path = Path::new(FOLDER);
    match share(path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            bind(path, path)?;
            share(path)
        }
        other => other,
    }
}

/// Moves the calling thread into a named namespace permanently: the sockets it opens from now on are there.
/// Other threads are not affected.
///
/// # Errors
/// `NotFound` if there is no such name, `EPERM` without `CAP_SYS_ADMIN`.
pub fn enter(name: &str) -> Result<(), SockError> {
    let file = File::open(path_of(name)?).map_err(|source| {
        let text = format!("\"{name}\": {source} (`ip netns list` shows the existing ones)");
        SockError::new("enter a network namespace", io::Error::new(source.kind(), text))
    })?;
    enter_fd(&file)
}

/// Runs `work` inside a named namespace, on a new thread, so that the caller stays where it is.
///
/// # Errors
/// As [`enter`]; then `work` has not run.
pub fn with_netns<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, SockError> {
    on_a_thread(|| enter(name).map(|()| work()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_namespace_is_named_and_a_path_is_no_name() {
        let error = with_netns("linerate-nosuch", || ()).unwrap_err();
        assert!(error.source.to_string().contains("ip netns list"), "{}", error.source);
        assert!(matches!(open_named("linerate-nosuch").unwrap(), NameState::Free));
        for name in ["", ".", "..", "../x", "a/b", "/proc/self/ns/net"] {
            let error = with_netns(name, || ()).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput, "{name}");
            assert!(open_named(name).is_err() && unpin(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_of_the_namespace_file_system_is_distinguished_from_others() {
        assert!(is_namespace(&File::open("/proc/self/ns/net").unwrap()).unwrap());
        assert!(!is_namespace(&File::open("/proc/self/stat").unwrap()).unwrap());
    }
}
