//! Agents that carry out their part of the calendar by themselves.
//!
//! [`CalendarAgent`] is a state machine: what it hears, the time and the ends of its tests come in, what has to be sent and
//! done comes out. What it must not forget is in a folder. Its calendar is signed by the coordinators, so neither the
//! broker nor anybody who writes to its disk can make it measure.

mod clock;
mod folder;
mod machine;
#[cfg(test)]
mod machine_tests;
mod outbox;
mod report_times;
#[cfg(test)]
mod tests;

pub use clock::{AgentClock, ClockReading};
pub use folder::{AgentFolder, AgentFolderError, DiskFolder};
pub use machine::{AgentAction, AgentIdentity, CalendarAgent};
