//! The default congestion control of a host.
//!
//! Each namespace has its own default, but accepts only algorithms that the whole system allows to ordinary
//! users. Root extends that list while setting the default, and restores it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use linerate_sock::netns::with_netns_fd;
use linerate_sock::{SockError, proc, sockopt};

use crate::journal::LabJournalEntry;
use crate::lab_resources::{JournalWriter, UserNotes};
use crate::{LabResourceError, Privilege};
use linerate_emu::topology::TopologyHost;

const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

/// Sets the default congestion control that the topology requests, if any. If it cannot be set, a note reports
/// it.
pub(super) fn set_default(
    host: &TopologyHost,
    netns: &OwnedFd,
    privilege: Privilege,
    record: &mut JournalWriter<'_>,
    notes: &mut UserNotes,
) -> Result<(), LabResourceError> {
    let Some(wanted) = host.congestion.as_deref() else { return Ok(()) };
    let failed = || LabResourceError::host(&host.name, "setting the congestion control");
    let set = || with_netns_fd(netns, || proc::set_sysctl(DEFAULT, wanted)).and_then(|result| result);
    let mut outcome = set();
    if is(&outcome, io::ErrorKind::NotFound) && load(wanted) {
        outcome = set();
    }
    if is(&outcome, io::ErrorKind::PermissionDenied) && privilege == Privilege::Root {
        // Two labs that extend the list at the same time would each restore the other's.
        let _held = proc::lock_sysctl(ALLOWED).map_err(failed())?;
        let before = proc::sysctl(ALLOWED).unwrap_or_default();
        let ours = format!("{before} {wanted}");
        record(&LabJournalEntry::Sysctl {
            name: ALLOWED.to_owned(),
            before: before.clone(),
            ours: ours.clone(),
        })?;
        if proc::set_sysctl(ALLOWED, &ours).is_ok() {
            outcome = set();
            proc::set_sysctl(ALLOWED, &before).map_err(failed())?;
        }
    }
    match outcome {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
            Err(LabResourceError::UnknownCongestion {
                host: host.name.clone(),
                wanted: wanted.to_owned(),
                available: proc::sysctl(AVAILABLE).unwrap_or_default(),
            })
        }
        Err(error) if error.source.kind() == io::ErrorKind::PermissionDenied => {
            let allowed = proc::sysctl(ALLOWED).unwrap_or_default();
            notes.add(&format!(
                "the congestion control {wanted} could not become the default of host {}, because this \
                 system reserves it for root (`sysctl {ALLOWED}`: {allowed}); set it in each program, or \
                 start the lab as root",
                host.name
            ));
            Ok(())
        }
        other => other.map_err(failed()),
    }
}

fn is(outcome: &Result<(), SockError>, kind: io::ErrorKind) -> bool {
    outcome.as_ref().is_err_and(|error| error.source.kind() == kind)
}

/// Makes the kernel load the module of an algorithm, as it does when a socket requests it.
fn load(wanted: &str) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .is_ok_and(|socket| sockopt::set_congestion(&socket, wanted).is_ok())
}
