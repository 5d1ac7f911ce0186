//! Messages between the coordinator of a fleet and its agents, through NATS.
//!
//! Agents dial out to a broker (`nats-server`), so their sites need no open port. The broker only forwards: it keeps
//! nothing, because the calendar's database has the truth, and agents keep results until the database has them.
//! Therefore every message may be lost, and callers repeat what was not answered.
//!
//! - [`Broker`] is the connection of one end. It dials for ever in a thread of its own.
//! - [`agent_subject`] and its relatives name who listens to what, and [`users_file`] writes who may do so.
//!
//! ```
//! use linerate_broker::{Broker, BrokerConfig, NotSent, agent_subject, centre_subject};
//!
//! let mut config = BrokerConfig::new(["nats://127.0.0.1:1"], "agent rome");
//! config.subscribe.push(agent_subject("campus", "rome"));
//! // Returns although nobody answers there.
//! let broker = Broker::connect(config).unwrap();
//! let sent = broker.send(&centre_subject("campus", "rome"), b"hello");
//! assert_eq!(sent, Err(NotSent::NotConnected));
//! ```

mod broker;
mod config;
mod inbox;
mod login;
mod outbox;
mod reconnect_delay;
mod refusal;
mod session;
mod subjects;
mod subscriptions;
mod users;

pub use broker::{Broker, BrokerEvent};
pub use config::{BrokerConfig, BrokerError, BrokerLogin};
pub use outbox::NotSent;
pub use subjects::{agent_subject, centre_subject, centre_subjects, name_in_subject};
pub use users::{UsersError, users_file};
