//! Carries out tests, reports their events as they happen, and can be cancelled from any thread.
//!
//! This crate is for programs that measure: the command line of linerate is one caller. It parses no flags, prints
//! nothing, handles no signals and does not end the process. A [`TestSpec`](linerate_model::TestSpec) goes in,
//! [`Event`](linerate_model::Event)s and a [`RunRecord`](linerate_model::RunRecord) come out.
//!
//! - [`run()`] is one test in one call.
//! - [`Measurement`] is the same with all choices: several sinks, an agent that measures instead of this host,
//!   follow-up runs.
//! - [`CancelToken`] ends a test early. What was measured until then is kept.
//! - `plan` carries out plans and `lab` brings up emulated networks, both only on Linux.
//! - [`doctor`] checks this host, and [`calibration`] measures its limits.
//! - [`PreparedPlan`](plan::PreparedPlan) is a plan that was read; [`lab`] emulates its network.
//!
#![doc = include_str!("../../../docs/guide/rust.md")]

mod agent;
mod archive_log_store;
mod archive_sink;
pub mod calibration;
mod cancel;
mod certificate;
mod certificate_time;
mod comparison;
pub mod doctor;
mod error;
mod file;
mod known_names;
mod known_servers;
#[cfg(target_os = "linux")]
pub mod lab;
#[cfg(target_os = "linux")]
mod lab_port_observer;
#[cfg(not(target_os = "linux"))]
#[path = "no_lab.rs"]
mod lab_port_observer;
mod log_file;
mod loopback;
mod measurement;
mod naming;
mod pid_file;
#[cfg(target_os = "linux")]
pub mod plan;
mod report_source;
pub mod result_file;
mod retention;
mod run;
mod secret_file;
mod selection;
mod service_config;
#[cfg(target_os = "linux")]
mod service_manager;
#[cfg(target_os = "linux")]
mod settings_guardian;
mod test_file;
#[cfg(target_os = "linux")]
mod tool_links;
mod unwritten;
mod whole_file;
mod without_address;

pub use agent::TestAgents;
pub use archive_log_store::ArchiveLogStore;
pub use archive_sink::{ArchiveSink, ArchiveWarning, archive_at, archive_to_read};
pub use cancel::CancelToken;
pub use certificate::{CertificateError, CertificateSource, TlsCertificate};
pub use comparison::{CompareError, CompareRequest, ComparisonLimits, ResultFileLogs};
pub use error::RunnerError;
pub use file::{FileError, find_plan, find_topology};
pub use known_names::{KnownName, NameKind};
pub use known_servers::{KnownServers, TrustError, agent_trust, server_trust};
pub use lab_port_observer::LabPortObserver;
pub use log_file::log_file;
pub use loopback::Loopback;
pub use measurement::{Measured, Measurement, Sinks};
pub use naming::{day_or_time, in_days, local_time, now, run_name, target, unix_seconds};
pub use pid_file::{PidFile, PidFileError};
pub use report_source::{OpenArchive, ReportSource, ReportSourceError, log_if_archived};
pub use retention::Retention;
pub use run::{run, serve};
pub use secret_file::{PrivateFileError, SecretFileError, read_private, read_secret};
pub use service_config::{ConfigChanges, ServiceConfig, ServiceConfigError};
#[cfg(target_os = "linux")]
pub use service_manager::{JournalPriority, PriorityWriter, ServiceManager};
#[cfg(target_os = "linux")]
pub use settings_guardian::SettingsGuardians;
pub use test_file::PreparedFile;
#[cfg(target_os = "linux")]
pub use tool_links::{ToolLinksError, create_tool_links};
pub use whole_file::{lasting_private_file, whole_file, whole_private_file};
