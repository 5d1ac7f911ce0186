//! Emulated networks on this machine, in which plans and other programs run.
//!
//! A lab needs processes besides that of the caller: one switch, and for a plan an agent on every host. They are
//! roles of the caller's program, which [`LabPrograms`] starts: the switch calls [`LabSwitch::create`] and
//! [`LabSwitch::run`], an agent [`serve_on_host`]. [`start()`] brings up a network that outlives its caller,
//! [`start_tied`] one that ends with it in any case.

mod agent;
mod error;
mod live_changes;
mod plan_network;
mod start;
mod switch;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::process::Command;

use linerate_sock::userns;

pub use agent::serve_on_host;
pub use error::{LabRunError, TopologyMistakes};
pub use linerate_lab::{AskError, LabHandle, LabName, LabResourceError, StateDir, control_protocol};
pub(crate) use plan_network::PlanNetwork;
pub use start::{Tie, read_topology, start, start_tied};
pub use switch::{LabSwitch, refuse};

/// The programs of a lab. The commands get their standard input and output from the caller of these functions.
pub trait LabPrograms: Debug {
    /// The command of a process that is the switch of this lab: see [`LabSwitch`]. A tied one has to end when
    /// the reader of its standard output is gone.
    ///
    /// # Errors
    /// There is no such program.
    fn switch(&self, lab: &LabHandle, tied: bool) -> io::Result<Command>;

    /// The command of a process that is an agent at this port of a host of the lab, as [`serve_on_host`] is: it
    /// reads its token from standard input, and writes a line to standard output as soon as it listens. It is
    /// killed at the end of the plan.
    ///
    /// # Errors
    /// There is no such program.
    fn agent(&self, lab: &LabHandle, host: &str, port: u16) -> io::Result<Command>;
}

/// How the emulated network of a plan is created.
#[derive(Debug)]
pub struct LabSetup<'a> {
    /// The folder with the state of labs.
    pub state: StateDir,
    /// Starts the switch and the agents.
    pub programs: &'a dyn LabPrograms,
    /// Whether the network stays after the plan.
    pub keep: bool,
}

impl<'a> LabSetup<'a> {
    /// With the state in the default folder of this user, or the one given; the network does not stay.
    ///
    /// # Errors
    /// The default folder is accessible to others.
    pub fn open(run_dir: Option<&Path>, programs: &'a dyn LabPrograms) -> Result<Self, LabResourceError> {
        Ok(Self { state: StateDir::open(run_dir)?, programs, keep: false })
    }
}

/// Whether this user may make the emulated networks of plans.
#[must_use]
pub fn may_run_plans() -> bool {
    userns::effective_user() == 0
}
