//! Client and server of a run.
//!
//! This room opens sockets and hands them to the engine, carries a protocol's dialogue over its connection, decides who
//! is measured when, sends latency probes beside the load, and merges what both ends say into one ordered event log. It
//! moves no payload and judges nothing itself: rules and formulas are in `linerate_theory`.
//!
//! Everything here waits with `poll(2)` in plain threads; there is no async runtime.

mod calibrate;
mod client;
mod coordinator;
mod dialogue;
mod error;
mod flow_log;
mod host;
mod host_settings;
mod inquiry;
mod interface_watch;
mod judge;
mod log;
mod memory;
mod plan_log;
mod probe;
mod server;
mod setup;
mod stand_in;
mod sweep;
mod talk;
mod witness;

/// How fast two clocks may drift apart, parts per million: crystals are sold for half of it each.
const DRIFT_PPM: u64 = 100;

pub use calibrate::calibrate;
pub use client::{Request, measure};
pub use coordinator::{
    After, Coordinator, FlowEnd, FlowJob, FlowStart, Group, HostRef, HostSettings, Rig, Standing, Target,
    Told, Trouble, run_group,
};
pub use error::ControlError;
pub use host::host_info;
pub use host_settings::{Guardian, Guardians, Leftovers, Restored, SETTINGS, leftovers, restore_leftovers};
pub use inquiry::{FollowUp, investigate};
pub use judge::evidence;
pub use log::{Log, Sink};
pub use plan_log::PlanLog;
pub use server::{ClassicPort, News, Policy, Server, ServerConfig, Switch};
pub use stand_in::{Interrupts, Invocation, Keeper, Kept, drive};
pub use witness::{Lateness, PacketRate, PortInterval, Testimony, Witness, WitnessError};
