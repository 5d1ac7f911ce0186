//! Client and server of a run.
//!
//! This crate opens sockets and hands them to the engine, carries a protocol's dialogue over its connection,
//! decides who is measured when, sends latency probes during the load, and merges the reports of both ends into
//! one ordered event log. It moves no payload and judges nothing itself: rules and formulas are in
//! `linerate_theory`.
//!
//! All code here waits with `poll(2)` in plain threads; there is no async runtime.

mod calibrate;
mod client;
mod control_stream;
mod coordinator;
mod dialogue;
mod dialogue_loop;
mod error;
mod flow_log;
mod follow_up;
mod health;
mod host;
#[cfg(target_os = "linux")]
mod host_settings;
#[cfg(not(target_os = "linux"))]
#[path = "no_host_settings.rs"]
mod host_settings;
mod interface_watch;
mod judge;
mod log;
mod memory;
mod multicast;
mod notice;
mod plan_log;
mod port_observer;
mod probe;
#[cfg(feature = "http2")]
mod responsiveness;
mod restored;
mod server;
mod setup;
mod shares;
mod stand_in;
mod sweep;
mod tls;
mod tls_channel;

/// Largest drift between two clocks, parts per million: typical crystals are specified for half of it each.
const DRIFT_PPM: u64 = 100;

/// Port of a server for which none is given.
pub const DEFAULT_PORT: u16 = linerate_proto::native::NATIVE.default_port;

/// Reason of a run that its caller cancelled, for example in a signal handler.
pub const CANCELLED: &str = "cancelled";

pub use calibrate::calibrate;
pub use client::{TestRequest, measure};
pub use coordinator::{
    After, Coordinator, FlowEnd, FlowJob, FlowStart, HostError, HostRef, HostSettings, HostState, RunEvent,
    RunGroup, RunServer, TestBed, run_group,
};
pub use error::ControlError;
pub use follow_up::{FollowUpRun, investigate};
pub use health::check_health;
pub use host::host_info;
pub use host_settings::{SETTINGS, leftovers, restore_leftovers};
pub use judge::evidence;
/// What a [`LogStore`] stores the log of.
pub use linerate_compat::stand_in::Planned;
/// A file that a test sends or writes.
pub use linerate_engine::FlowFile;
pub use linerate_proto::agent::{Token, TokenError};
pub use log::{Log, Sink, SinkError};
pub use notice::RateLimitedNotice;
pub use plan_log::PlanLog;
pub use port_observer::{
    ObservedLateness, ObservedPacketRate, PortInterval, PortObservations, PortObserver, PortObserverError,
};
#[cfg(feature = "http2")]
pub use responsiveness::{MeasuredResponsiveness, ResponsivenessRequest, measure_responsiveness};
pub use restored::{Guardian, Guardians, Leftovers, Restored};
pub use server::{
    BrowserPort, ClassicPort, Heartbeat, NoTicket, OwnRun, OwnRunTurn, OwnRuns, Policy, PortHandover,
    QueueLoad, Quotas, Server, ServerConfig, ServerEvent, ServerHandle, ServerLimits, ServerReload,
    StartTickets, canonical_address, listening_text,
};
pub use shares::{AddressGroup, Exhausted, Permit, Shares};
pub use stand_in::{Interrupts, Invocation, LogStore, StoredRun, UnstoredRun, drive, file_facts};
pub use tls::{
    FingerprintCheck, HTTP_PROTOCOL, HTTP2_PROTOCOL, ServerIdentity, ServerTrust, TLS_PROTOCOL, TlsError,
    TlsRequirement, UnknownServer, fingerprint_of,
};
