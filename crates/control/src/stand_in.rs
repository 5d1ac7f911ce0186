//! Programs of others, played by their stand-ins over real sockets.
//!
//! One thread waits for everything that a stand-in asked for: its links, its flows, its deadlines, signals. It moves
//! control messages itself; payload is the engine's. Each run that a stand-in makes has an event log of its own.

mod console;
mod driver;
mod driver_event;
mod endpoint;
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

use linerate_model::World;
use linerate_proto::stand_in::StandIn;

use crate::error::ControlError;
use crate::port_observer::PortObserver;
use console::Console;
use driver::Driver;
use endpoint::Host;
use runs::Runs;

pub use interrupts::Interrupts;
pub(crate) use links::Door;
pub use runs::{LogStore, StoredRun};
pub(crate) use server_ports::{Incoming, MeasurementPermit, ServerPorts};

/// One call of a tool from a command line.
pub struct Invocation<'a> {
    /// The host to connect to as typed: NAME or ADDRESS, either with `%DEVICE`; absent for a server.
    pub host: Option<String>,
    /// Where its runs take place.
    pub world: World,
    /// Who sees the packets between the hosts, in an emulated network.
    pub observer: Option<&'a dyn PortObserver>,
    /// Where the event logs of its runs go; absent to keep none.
    pub keeper: Option<&'a dyn LogStore>,
    /// Signals for it.
    pub interrupts: &'a Interrupts,
    /// Where it prints. A reader that has gone ends nothing.
    pub output: &'a mut dyn Write,
    /// Where it complains.
    pub complaints: &'a mut dyn Write,
    /// What it reads, if it reads.
    pub input: Option<Box<dyn Read + Send>>,
}

/// Runs a stand-in to its end; returns its exit code.
///
/// # Errors
/// This host refuses what every program needs: descriptors, polling.
pub fn drive(stand_in: Box<dyn StandIn>, invocation: Invocation<'_>) -> Result<i32, ControlError> {
    let Invocation { host, world, observer, keeper, interrupts, output, complaints, input } = invocation;
    let runs = Runs::new(keeper, world, observer, host.clone());
    let console = Console::new(output, complaints, input);
    Driver::new(stand_in, Host::new(host), runs, console, interrupts, None)?.run()
}

/// Runs a server stand-in behind the ports of a server, where it prints to nobody.
pub(crate) fn serve_at(
    stand_in: Box<dyn StandIn>,
    interrupts: &Interrupts,
    keeper: Option<&dyn LogStore>,
    observer: Option<&dyn PortObserver>,
    ports: &mut dyn ServerPorts,
) -> Result<i32, ControlError> {
    let world = if observer.is_some() { World::Lab } else { World::Hosts };
    let runs = Runs::new(keeper, world, observer, None);
    Driver::new(stand_in, Host::default(), runs, Console::default(), interrupts, Some(ports))?.run()
}
