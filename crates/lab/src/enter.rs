//! Entering a host of a lab: for a process that is about to execute a program there.

use std::fs::File;
use std::path::Path;

use linerate_sock::{SockError, mount, netns, userns};

use crate::control_protocol::{HostStatus, Status};
use crate::state_dir::LabHandle;

/// Moves this process, which must have a single thread, to a host: its network, its `/sys`, its host names.
///
/// # Errors
/// The host no longer exists, or belongs to another user.
pub fn enter(lab: &LabHandle, host: &HostStatus, status: &Status) -> Result<(), SockError> {
    if let Some(pid) = status.pid.filter(|_| status.rootless) {
        userns::enter(&userns::of_process(pid)?)?;
    }
    // A path is used as it is, a name refers to an entry of /run/netns.
    if host.netns.starts_with('/') {
        let open = File::open(&host.netns).map_err(|source| SockError::new("go to the host", source))?;
        netns::enter_fd(&open)?;
    } else {
        netns::enter(&host.netns)?;
    }
    mount::fresh_sys()?;
    mount::show(&lab.names(), Path::new("/etc/hosts"))
}
