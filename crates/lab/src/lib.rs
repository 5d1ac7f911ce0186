//! Emulated networks on this machine, in which any program can run.
//!
//! Every host of a topology is a network namespace with a TAP device per link. A program in it sees an ordinary
//! machine. One process, the switch, holds the other ends of all TAPs, forwards frames between them and the
//! fabric of `linerate_emu`, and advances the fabric in time. [`Lab`] is that process; [`StateDir`] and
//! [`LabHandle`] find, query and remove labs from other processes, with the messages of [`control_protocol`];
//! [`enter`] moves a process to a host. [`up_by_kernel`] builds the same network with queueing disciplines of
//! the kernel instead of a switch.
//!
//! Every resource is journaled before it is created. If a switch is killed at any time, the next call finds in
//! the journal what is left and removes it ([`sweep`], [`undo`]).
//!
//! Creating a lab requires root or user namespaces. The commands for the kernel are available without:
//!
//! ```
//! let text = r#"
//!     name = "cable"
//!     host.a = {}
//!     host.b = {}
//!     link.cable = { ends = ["a", "b"], rate = "100M", delay = "5ms" }
//! "#;
//! let topology = linerate_emu::topology::read(text, "cable.toml", &[]).unwrap();
//! let script = linerate_lab::script(&topology, &"demo".parse().unwrap());
//! assert!(script.contains("ip netns add linerate-demo-a"), "{script}");
//! ```

mod client;
mod coalescing;
mod congestion;
mod control;
pub mod control_protocol;
mod drop_gauges;
mod enter;
mod folder;
mod history;
mod host;
mod host_names;
mod host_nic;
mod journal;
mod kernel;
mod lab;
mod lab_resource_error;
mod lab_resources;
mod lateness;
mod memory_limit;
mod overview;
mod privilege;
mod spin_budget;
mod state_dir;
mod switch;
mod undo;

pub use client::{AskError, ask};
pub use enter::enter;

pub use folder::{LabName, LabNameError, folder_of, is_up, labs, run_dir, switch_pid};
pub use host::{HostTap, LabHostResources};
pub use kernel::{KernelError, script, up_by_kernel};
pub use lab::{Lab, LabError, Stopper};
pub use lab_resource_error::LabResourceError;
pub use lab_resources::{LabResources, Site};
pub use overview::overview;
pub use privilege::Privilege;
pub use state_dir::{LabChoiceError, LabHandle, StateDir};
pub use undo::{Swept, sweep, undo};
