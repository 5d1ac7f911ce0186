//! The host's counters and description, from `/proc`, and from `/sys` where `/proc` has none.
//!
//! Each file has a reader and a parser of its text, which never panics and skips unknown parts. Readers of
//! network counters see the network namespace of the calling thread.

pub mod cgroup;
pub mod cpu;
pub mod host;
pub mod interrupts;
pub mod net;
pub mod nic;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::SockError;
use crate::system::error_codes::NOT_FOUND;

/// A sysctl by its dotted name (`net.ipv4.tcp_rmem`), without the final newline; `None` if it does not exist.
///
/// For names that contain a dot, slashes may replace the dots (`net/ipv4/conf/eth0.5/mtu`).
#[must_use]
pub fn sysctl(name: &str) -> Option<String> {
    text(sysctl_path(name)?)
}

/// Changes a sysctl, named as for [`sysctl`]. Network settings are those of the calling thread's network
/// namespace.
///
/// # Errors
/// `ENOENT` if it does not exist, `EINVAL` if it does not accept the value, `EPERM` or `EACCES` without
/// permission.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), SockError> {
    const OP: &str = "change a kernel setting";
    let path = sysctl_path(name).ok_or_else(|| SockError::errno(OP, NOT_FOUND))?;
    // Opens without O_CREAT, which would return a misleading EACCES for a sysctl that does not exist.
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|source| SockError::new(OP, source))
}

/// Waits until no other process holds the lock of a sysctl, and holds it until the returned file is dropped.
///
/// The lock is advisory: it excludes only programs that take it too.
///
/// # Errors
/// `ENOENT` if it does not exist.
pub fn lock_sysctl(name: &str) -> Result<fs::File, SockError> {
    const OP: &str = "lock a kernel setting";
    let path = sysctl_path(name).ok_or_else(|| SockError::errno(OP, NOT_FOUND))?;
    let locked = fs::File::open(path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|source| SockError::new(OP, source))
}

/// Whether this process may change a sysctl: opens it for writing and writes nothing.
///
/// # Errors
/// As [`set_sysctl`], except for `EINVAL`.
pub fn can_set_sysctl(name: &str) -> Result<(), SockError> {
    const OP: &str = "change a kernel setting";
    let path = sysctl_path(name).ok_or_else(|| SockError::errno(OP, NOT_FOUND))?;
    fs::OpenOptions::new().write(true).open(path).map(drop).map_err(|source| SockError::new(OP, source))
}

/// `None` for a name that would leave the directory.
fn sysctl_path(name: &str) -> Option<PathBuf> {
    let relative = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    let inside = relative.split('/').all(|part| !part.is_empty() && part != "..");
    inside.then(|| Path::new("/proc/sys").join(relative))
}

/// Content of a small text file, trimmed; `None` if it does not exist or is not readable.
fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_is_read_by_either_spelling_and_a_missing_one_is_none() {
        let dotted = sysctl("net.ipv4.tcp_rmem").unwrap();
        assert_eq!(dotted.split_whitespace().count(), 3);
        assert_eq!(sysctl("net/ipv4/tcp_rmem"), Some(dotted));
        assert_eq!(sysctl("net.ipv4.no_such_setting"), None);
        assert_eq!(sysctl("net/../kernel/ostype"), None);
    }

    #[test]
    fn a_setting_that_is_not_there_cannot_be_changed() {
        for name in ["net.ipv4.no_such_setting", "net/../kernel/ostype", ""] {
            assert_eq!(set_sysctl(name, "1").unwrap_err().raw_os_error(), Some(libc::ENOENT), "{name}");
        }
    }
}
