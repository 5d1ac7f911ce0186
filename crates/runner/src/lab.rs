//! Emulated networks on this machine, in which plans and other programs run.
//!
//! A lab needs processes besides that of the caller: one switch, and for a plan an agent on every host. They are
//! roles of the caller's program, which [`LabPrograms`] starts: the switch calls [`Switch::create`] and
//! [`Switch::run`]. [`start()`] brings up a network that outlives its caller,
//! [`start_tied`] one that ends with it in any case.

mod error;
mod start;
mod switch;

use std::fmt::Debug;
use std::io;
use std::process::Command;

use linerate_lab::LabHandle;

pub use error::{LabRunError, TopologyMistakes};
pub use start::{Tie, read_topology, start, start_tied};
pub use switch::{Switch, refuse};

/// The programs of a lab. The commands get their standard input and output from the caller of these functions.
pub trait LabPrograms: Debug {
    /// The command of a process that is the switch of this lab: see [`Switch`]. A tied one has to end when the
    /// reader of its standard output is gone.
    ///
    /// # Errors
    /// There is no such program.
    fn switch(&self, lab: &LabHandle, tied: bool) -> io::Result<Command>;

    /// The command of a process that is an agent at this port of a host of the lab: it
    /// reads its token from standard input, and writes a line to standard output as soon as it listens. It is
    /// killed at the end of the plan.
    ///
    /// # Errors
    /// There is no such program.
    fn agent(&self, lab: &LabHandle, host: &str, port: u16) -> io::Result<Command>;
}
