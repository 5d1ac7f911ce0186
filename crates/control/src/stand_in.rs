//! Executes stand-ins of foreign tools over real sockets.
//!
//! One thread waits for everything that a stand-in has requested: links, flows, deadlines and signals. It moves
//! control messages itself; the engine moves payload. Each run of a stand-in has its own event log. A server
//! stand-in on the ports of a server has that thread only while it has clients.

mod console;
mod driver;
mod driver_event;
mod endpoint;
mod file_facts;
mod flows;
mod helper_threads;
mod host_counts;
mod interrupts;
mod links;
mod runs;
mod server_ports;
#[cfg(test)]
pub(crate) mod tests;

use std::io::{Read, Write};

use linerate_compat::stand_in::StandIn;
use linerate_model::World;

use crate::error::ControlError;
use crate::port_observer::PortObserver;
use console::Console;
use driver::{Driver, DriverContext};
use endpoint::HostArgument;
use runs::Runs;

pub(crate) use driver::{IdleDriver, Returned};
pub use file_facts::file_facts;
pub use interrupts::Interrupts;
pub(crate) use links::SharedServerPort;
pub use runs::{LogStore, StoredRun, UnstoredRun};
pub(crate) use server_ports::{Incoming, MeasurementPermit, MeasurementRefusal, ReleasedPlace, ServerPorts};

/// One invocation of a tool from a command line.
pub struct Invocation<'a> {
    /// The host to connect to as typed: NAME or ADDRESS, either with `%DEVICE`; absent for a server.
    pub host: Option<String>,
    /// Whether its runs take place between real hosts or in a lab.
    pub world: World,
    /// Reads the port counters in an emulated network; absent on real hosts.
    pub observer: Option<&'a dyn PortObserver>,
    /// Where the event logs of its runs are stored; absent to store none.
    pub log_store: Option<&'a dyn LogStore>,
    /// Delivers signals to the stand-in.
    pub interrupts: &'a Interrupts,
    /// Standard output of the tool. A closed pipe does not end the tool.
    pub output: &'a mut dyn Write,
    /// Standard error of the tool.
    pub complaints: &'a mut dyn Write,
    /// Standard input of the tool; absent if it does not read any.
    pub input: Option<Box<dyn Read + Send>>,
}

/// Runs a stand-in to its end and returns its exit code.
///
/// # Errors
/// The host refuses file descriptors or polling.
pub fn drive(stand_in: Box<dyn StandIn>, invocation: Invocation<'_>) -> Result<i32, ControlError> {
    let Invocation { host, world, observer, log_store, interrupts, output, complaints, input } = invocation;
    let runs = Runs::new(log_store, world, observer, host.clone());
    let console = Console::new(output, complaints, input);
    let context = DriverContext { runs, console, interrupts, ports: None };
    match Driver::new(stand_in, HostArgument::new(host), context)?.run()? {
        Returned::Exited(code) => Ok(code),
        // Only an embedded server returns before its end.
        Returned::Idle(_) => Ok(0),
    }
}

/// A server stand-in on the ports of a server.
pub(crate) enum EmbeddedStandIn {
    New(Box<dyn StandIn>),
    /// It has run before, with the same interrupts and ports.
    Idle(Box<IdleDriver>),
}

/// Runs a server stand-in on the ports of a server until it exits or has no clients. Its printed output is
/// discarded.
pub(crate) fn serve_at(
    stand_in: EmbeddedStandIn,
    interrupts: &Interrupts,
    log_store: Option<&dyn LogStore>,
    observer: Option<&dyn PortObserver>,
    ports: &mut dyn ServerPorts,
) -> Result<Returned, ControlError> {
    let world = if observer.is_some() { World::Lab } else { World::Hosts };
    let runs = Runs::new(log_store, world, observer, None);
    let context = DriverContext { runs, console: Console::default(), interrupts, ports: Some(ports) };
    match stand_in {
        EmbeddedStandIn::New(stand_in) => Driver::new(stand_in, HostArgument::default(), context)?.run(),
        EmbeddedStandIn::Idle(idle) => Driver::resume(*idle, context).run(),
    }
}
