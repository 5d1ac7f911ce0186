//! What can be changed while a server runs: its limits, and the token of its agent.

use std::sync::{Arc, Mutex};

use linerate_model::ServerLimitOptions;
use linerate_proto::agent::Token;
use linerate_sock::thread::locked;
use linerate_units::{Bytes, Span};

use super::queue::ClientQueue;
use super::quota::Quotas;
use crate::memory::Budget;

/// Limits of a server on its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Longest run, all phases together; absent for no limit.
    pub longest: Option<Span>,
    /// Most clients waiting or running; absent for no limit except memory.
    pub most_clients: Option<u32>,
    /// What each network may measure in 24 hours.
    pub quotas: Quotas,
    /// Memory that all runs together may use; absent for a quarter of the memory available to this process.
    pub memory: Option<Bytes>,
}

impl ServerLimits {
    /// The limits that the options give. A public server has quotas if they give none.
    #[must_use]
    pub fn new(options: &ServerLimitOptions, is_public: bool) -> Self {
        let quotas = Quotas {
            tests: options.limit_daily_tests,
            time: options.limit_daily_time,
            bytes: options.limit_daily_bytes,
            total_bytes: options.limit_daily_total,
        };
        Self {
            longest: options.limit_time,
            most_clients: options.limit_clients,
            quotas: quotas.or(if is_public { Quotas::OF_A_PUBLIC_HOST } else { Quotas::default() }),
            memory: options.limit_memory,
        }
    }
}

/// Changes a server while it runs. Runs that have begun keep what they were granted.
#[derive(Debug, Clone)]
pub struct ServerReload {
    pub(super) queue: Arc<ClientQueue>,
    pub(super) memory: Arc<Budget>,
    pub(super) agent_token: Arc<Mutex<Option<Token>>>,
}

impl ServerReload {
    /// Replaces the limits. What clients have used of their quotas still counts.
    pub fn set_limits(&self, limits: ServerLimits) {
        self.queue.set_limits(limits);
        self.memory.resize(limits.memory);
    }

    /// Replaces the token that coordinators must know who connect from now on; without one, they are refused. A server
    /// that was no agent when it started changes no settings of its host for them. Returns whether it is another one.
    pub fn set_agent_token(&self, token: Option<Token>) -> bool {
        let mut current = locked(&self.agent_token);
        let is_another = *current != token;
        *current = token;
        is_another
    }
}
