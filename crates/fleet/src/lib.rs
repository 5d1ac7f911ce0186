//! Measurements between many hosts, again and again: schedules, meshes, and a calendar of what they share.
//!
//! A fleet is described by a file ([`fleet_file::read`]): its hosts, the links that they share, and meshes of tests
//! between them. Schedules and what became of each run are in the calendar, a part of the archive.
//!
//! - [`FleetCalendar`] is what users do with it: add schedules, list, pause, cancel, and ask why something does not run.
//! - [`FleetService`] carries it out with the agents of the hosts. [`FleetCoordinator`] is the part of it without clock
//!   and network.
//!
//! Two runs never use the same host or link at the same time, unless both allow it. Booking looks for the earliest time
//! at which everything that a run uses is free, and the database refuses overlaps once more.
//!
//! ```
//! use linerate_fleet::fleet_file;
//!
//! let text = "
//!     host.a.address = \"a.example.net\"
//!     host.b.address = \"b.example.net\"
//!     host.c.address = \"c.example.net\"
//!     link.uplink.hosts = [\"a\", \"b\"]
//!     mesh.all = { every = \"1h\", test.duration = \"5s\" }
//! ";
//! let file = fleet_file::Source { name: "campus.toml".to_owned(), text: text.to_owned() };
//! let fleet = fleet_file::read(&file, &|_| Ok(Vec::new())).unwrap();
//! assert_eq!(fleet.mesh_schedules().len(), 6);
//! // A test from a to c needs both hosts and the uplink for itself.
//! let uses = fleet.uses("a", "c", false).unwrap();
//! assert_eq!(uses.iter().map(|one| &*one.resource).collect::<Vec<_>>(), ["host.a", "host.c", "link.uplink"]);
//! ```

mod agent;
mod agent_command;
mod agent_service;
mod alarm;
mod answer_watch;
mod booking;
mod carry_out;
mod command;
mod coordinator;
mod engines;
mod enrollment;
mod error;
mod fleet_calendar;
pub mod fleet_file;
mod inventory;
mod notify;
mod recurrence;
mod request;
mod service;
#[cfg(test)]
mod tests_support;
mod tryout;

pub use agent::{
    AgentAction, AgentClock, AgentFolder, AgentFolderError, AgentIdentity, CalendarAgent, ClockReading,
    DiskFolder,
};
pub use agent_command::{AgentCommand, AgentRunOptions, EnrollRequest, RevokeRequest, UsersFileOptions};
pub use agent_service::{AgentServiceConfig, AgentServiceError, AgentServiceNotice, FleetAgentService};
#[doc(hidden)]
pub use carry_out::{RunSubstitute, SubstituteRun};
pub use command::{
    AlarmFilter, CancelRequest, CoordinatorOptions, FleetCommand, FleetFilePath, MeshRequest,
    NextFreeRequest, RunsRequest, ScheduleCommand, ScheduleName, TryOutFolder, TryOutOptions, WhyRequest,
};
pub use coordinator::{AgentNotice, ClockCheck, FleetAction, FleetCoordinator, HORIZON, LEASE, RunEnd};
pub use engines::{EnginePaths, LocalNats, LocalPostgres, LocalServerError, end_left_servers};
pub use enrollment::{BrokerOptions, Enrollment, EnrollmentError, coordinators_key};
pub use error::FleetError;
pub use fleet_calendar::{CancelTarget, FleetCalendar, MeshPage, SchedulePage};
pub use inventory::{FleetHost, Inventory, Mesh, MeshTemplate, Notify, SharedResource};
/// What agents and coordinators say to each other, and by which keys they know each other.
pub use linerate_proto::fleet::{
    AgentCalendar, AgentReport, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey,
    FleetKeyError, HeldCalendar, PublicFleetKey, ResultDigest, ResultDocument, ResultPart, StoredResult,
};
pub use notify::NotifyError;
pub use recurrence::{RecurrenceError, rfc3339};
pub use request::{AlarmOptions, PairRequest, ScheduleRequest};
pub use service::{FleetBroker, FleetNotice, FleetService, FleetServiceConfig, now};
pub use tryout::{TryOut, TryOutConfig, TryOutError, TryOutWarning, is_up, take_down};
