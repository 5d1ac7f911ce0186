//! Ensures that a run has a single coordinator, as two would write to the same log.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::error::PlanRunError;

/// The exclusive right to continue a run. It ends with this process, in any case.
#[derive(Debug)]
pub(super) struct ResumeLock(#[expect(dead_code, reason = "held, not used")] Option<UnixListener>);

impl ResumeLock {
    /// Claims a run by binding an abstract socket, which is exclusive on this machine and leaves no file.
    pub(super) fn acquire(run: &str) -> Result<Self, PlanRunError> {
        let name = SocketAddr::from_abstract_name(format!("linerate-plan-{run}"));
        match name.and_then(|name| UnixListener::bind_addr(&name)) {
            Ok(held) => Ok(Self(Some(held))),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                Err(PlanRunError::InProgress { run: run.to_owned() })
            }
            // A system without abstract sockets has no other process that could hold one.
            Err(_) => Ok(Self(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_claimed_once_at_a_time() {
        let run = format!("{:016x}", std::process::id());
        let held = ResumeLock::acquire(&run).unwrap();
        let refused = ResumeLock::acquire(&run).unwrap_err();
        assert!(refused.to_string().contains("another process"), "{refused:?}");
        drop(held);
        assert!(ResumeLock::acquire(&run).is_ok());
    }
}
