//! Network namespaces by name, as `ip netns` keeps them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Component, Path};
use std::thread;

use crate::SockError;
use crate::call::check;

/// Moves the calling thread into a named namespace, for good: sockets it opens from now on live there. Other threads
/// are not affected.
///
/// # Errors
/// `ENOENT` when there is none of that name, `EPERM` without `CAP_SYS_ADMIN`.
pub fn enter(name: &str) -> Result<(), SockError> {
    const OP: &str = "enter a network namespace";
    // A name with a slash would leave the directory of namespaces.
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        let text = format!("\"{name}\" is no name of a network namespace");
        return Err(SockError::new(OP, io::Error::new(io::ErrorKind::InvalidInput, text)));
    }
    let file = File::open(Path::new("/run/netns").join(name)).map_err(|source| {
        let text = format!("\"{name}\": {source} (`ip netns list` shows those there are)");
        SockError::new(OP, io::Error::new(source.kind(), text))
    })?;
    // SAFETY: takes a descriptor and a flag, touches no memory of ours.
    check(OP, unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}

/// Runs `work` inside a named namespace, on a thread of its own, so that the caller stays where it is.
///
/// # Errors
/// As [`enter`]; `work` has not run then.
pub fn with_netns<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T, SockError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .spawn_scoped(scope, || enter(name).map(|()| work()))
            .map_err(|source| SockError::new("start a thread", source))?;
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
    fn a_missing_namespace_is_named_and_a_path_is_no_name() {
        let error = with_netns("linerate-nosuch", || ()).unwrap_err();
        assert!(error.source.to_string().contains("ip netns list"), "{}", error.source);
        for name in ["", ".", "..", "../x", "a/b", "/proc/self/ns/net"] {
            let error = with_netns(name, || ()).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
}
