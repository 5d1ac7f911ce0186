//! The web service of linerate: pages that start tests, show them while they run and keep every result, and the HTTP
//! interface that they use.
//!
//! ```no_run
//! use linerate_control::{Server, ServerConfig, ServerHandle};
//! use linerate_report::html::Assets;
//! use linerate_web::{Access, PlanSetup, WebAssets, WebConfig, WebServer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::bind(ServerConfig::default())?;
//! let web = WebServer::bind(WebConfig {
//!     address: "127.0.0.1:8080".parse()?,
//!     access: Access::default(),
//!     tls: None,
//!     names: Vec::new(),
//!     share_key: None,
//!     archive: None,
//!     targets: Vec::new(),
//!     plans: PlanSetup::default(),
//!     notify: |line| println!("{line}"),
//!     assets: WebAssets { script: "", worker: "", style: "", report: Assets { script: "", style: "" } },
//! })?;
//! println!("open {}", web.url());
//! let running = web.start(server.own_runs(), server.handover())?;
//! server.run(std::sync::Arc::new(ServerHandle::new()?), |_| ())?;
//! drop(running);
//! # Ok(())
//! # }
//! ```
//!
//! An asynchronous runtime has one thread here, and one more for what blocks. Both have a lower priority than
//! measurements, and no byte of a measurement passes through them. Runs are carried out by a plain thread, one after
//! the other, in the queue of the host's server.

mod access;
mod allowed_target;
mod api;
mod archive_access;
mod audit_log;
mod claim_request;
mod config;
mod envelope_request;
mod error;
mod field_at_fault;
mod fleet_metrics;
mod guard;
mod labs;
mod large_answers;
mod latest_runs;
mod listed_tokens;
mod live;
mod metrics;
mod pages;
mod plan_request;
mod problem;
mod request;
mod run_request;
mod runs;
mod schedule_request;
mod server;
mod service;
mod share_key;
mod streams;
mod tls;
mod token_file;
mod typed_value;
mod web_task;

pub use access::{Ability, Access, TokenTooShort, WebToken};
pub use allowed_target::{AllowedTarget, NoAllowedTarget};
pub use api::openapi;
pub use config::{NoAddress, NoHostName, PlanSetup, WebAssets, WebConfig};
pub use error::WebError;
pub use server::{WebHandle, WebServer};
pub use share_key::{ShareKey, ShareKeyError};
pub use token_file::{TokenEntry, TokenFile, TokenFileError};
