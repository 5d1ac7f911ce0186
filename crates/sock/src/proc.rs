//! The host's own counters and description, from `/proc` (and `/sys` where `/proc` is silent).
//!
//! Each file has a parser over text, which never panics and skips what it does not know, and a reader. Readers of
//! network counters see the network namespace of the calling thread.

pub mod card;
pub mod cpu;
pub mod host;
pub mod net;

use std::fs;
use std::path::PathBuf;

/// A kernel setting by its dotted name (`net.ipv4.tcp_rmem`), without the final newline; `None` when there is none.
///
/// Slashes may stand for the dots, for names that contain a dot (`net/ipv4/conf/eth0.5/mtu`).
#[must_use]
pub fn sysctl(name: &str) -> Option<String> {
    let relative = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    // A component of dots would climb out of the directory.
    if relative.split('/').any(|part| part.is_empty() || part == "..") {
        return None;
    }
    text(PathBuf::from("/proc/sys").join(relative))
}

/// A small text file, without surrounding white space; `None` when it is not there or not ours to read.
fn text(path: impl AsRef<std::path::Path>) -> Option<String> {
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
}
