//! The part that touches the system: namespaces and TAP devices for the hosts of a topology, and the journal from which
//! they can be removed again.
//!
//! Every host is a network namespace with a TAP device per link. A program in it sees an ordinary machine; the other ends
//! of all TAPs are held by one process, the switch. What is made is written down before, so that a switch that was killed
//! at any moment leaves nothing that the next call cannot clear away.

mod client;
mod coalescing;
mod congestion;
mod control;
pub mod control_protocol;
mod enter;
mod folder;
mod ground_error;
mod history;
mod host;
mod host_nic;
mod journal;
mod kernel;
mod lab;
mod lab_resources;
mod lateness;
mod privilege;
mod spin_budget;
mod state_dir;
mod switch;
mod undo;

pub use client::{AskError, ask};
pub use enter::enter;

pub use folder::{LabName, LabNameError, folder_of, is_up, labs, run_dir, switch_pid};
pub use ground_error::GroundError;
pub use host::{HostGround, HostTap};
pub use kernel::{KernelError, script, up_by_kernel};
pub use lab::{Lab, LabError, Stopper};
pub use lab_resources::{LabResources, Site};
pub use privilege::Privilege;
pub use state_dir::{LabHandle, StateDir};
pub use undo::{Swept, sweep, undo};
