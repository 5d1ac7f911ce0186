//! Unix stream sockets between programs of one host.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::SockError;

/// Connects to the socket at `path`. `within` is also the timeout of later reads and writes.
///
/// # Errors
/// Nothing listens there, permission is denied, or the listener's queue stays full for that time.
pub fn connect(path: &Path, within: Duration) -> Result<UnixStream, SockError> {
    let fail = |source| SockError::new("connect to a program of this host", source);
    let address = SockAddr::unix(path).map_err(fail)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(fail)?;
    // Zero would mean no timeout. SO_SNDTIMEO also limits the wait for space in the listener's queue.
    let within = within.max(Duration::from_millis(1));
    socket.set_write_timeout(Some(within)).map_err(fail)?;
    socket.set_read_timeout(Some(within)).map_err(fail)?;
    socket.connect(&address).map_err(fail)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixListener;

    struct SocketPath(std::path::PathBuf);

    impl SocketPath {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("lr-local-{}-{name}", std::process::id())))
        }
    }

    impl Drop for SocketPath {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn bytes_pass_and_a_missing_peer_is_reported() {
        let place = SocketPath::new("pass");
        assert_eq!(connect(&place.0, Duration::from_secs(1)).unwrap_err().source.kind(), ErrorKind::NotFound);
        let listener = UnixListener::bind(&place.0).unwrap();
        let mut here = connect(&place.0, Duration::from_secs(9)).unwrap();
        here.write_all(b"x").unwrap();
        let mut byte = [0];
        listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
        drop(listener);
        let gone = connect(&place.0, Duration::from_secs(1)).unwrap_err();
        assert_eq!(gone.source.kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_listener_that_takes_nobody_in_is_not_waited_for_without_end() {
        let place = SocketPath::new("full");
        let address = SockAddr::unix(&place.0).unwrap();
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&address).unwrap();
        listener.listen(0).unwrap();
        // The first connection fits into the queue.
        let mut waiting = connect(&place.0, Duration::from_millis(20)).unwrap();
        let full = connect(&place.0, Duration::from_millis(20)).unwrap_err();
        assert_eq!(full.source.kind(), ErrorKind::WouldBlock);
        let silent = waiting.read(&mut [0]).unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::WouldBlock);
    }
}
