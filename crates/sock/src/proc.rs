//! The host's own counters and description, from `/proc` (and `/sys` where `/proc` is silent).
//!
//! Each file has a parser over text, which never panics and skips what it does not know, and a reader. Readers of
//! network counters see the network namespace of the calling thread.

pub mod cpu;
pub mod host;
pub mod interrupts;
pub mod net;
pub mod nic;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::SockError;

/// A kernel setting by its dotted name (`net.ipv4.tcp_rmem`), without the final newline; `None` when there is none.
///
/// Slashes may stand for the dots, for names that contain a dot (`net/ipv4/conf/eth0.5/mtu`).
#[must_use]
pub fn sysctl(name: &str) -> Option<String> {
    text(sysctl_path(name)?)
}

/// Changes a kernel setting, named as for [`sysctl`]. Settings of the network are those of the calling thread's network
/// namespace.
///
/// # Errors
/// `ENOENT` when there is no such setting, `EINVAL` when it does not take the value, `EPERM` or `EACCES` when it is not
/// ours to change.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), SockError> {
    const OP: &str = "change a kernel setting";
    let path = sysctl_path(name).ok_or_else(|| SockError::errno(OP, libc::ENOENT))?;
    // Only opened for writing: creating would be refused with a misleading EACCES where there is no such setting.
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|source| SockError::new(OP, source))
}

/// Whether this process may change a kernel setting: opens it for writing and writes nothing.
///
/// # Errors
/// As [`set_sysctl`], but for `EINVAL`.
pub fn can_set_sysctl(name: &str) -> Result<(), SockError> {
    const OP: &str = "change a kernel setting";
    let path = sysctl_path(name).ok_or_else(|| SockError::errno(OP, libc::ENOENT))?;
    fs::OpenOptions::new().write(true).open(path).map(drop).map_err(|source| SockError::new(OP, source))
}

/// `None` for a name that would climb out of the directory of settings.
fn sysctl_path(name: &str) -> Option<PathBuf> {
    let relative = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    let inside = relative.split('/').all(|part| !part.is_empty() && part != "..");
    inside.then(|| Path::new("/proc/sys").join(relative))
}

/// A small text file, without surrounding white space; `None` when it is not there or not ours to read.
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
