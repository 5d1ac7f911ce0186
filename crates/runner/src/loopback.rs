//! A server in this process.

use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_control::{ControlError, Server, ServerConfig, ServerHandle, Token};
use linerate_sock::thread;

use crate::RunnerError;

/// A server on the loopback interface at a free port. It ends when this value is dropped.
#[derive(Debug)]
pub struct Loopback {
    address: String,
    port: u16,
    handle: Arc<ServerHandle>,
    thread: Option<JoinHandle<Result<(), ControlError>>>,
}

impl Loopback {
    /// Starts the server; it listens when this returns.
    ///
    /// # Errors
    /// The host refuses sockets or threads.
    pub fn start() -> Result<Self, RunnerError> {
        Self::bind(None)
    }

    /// Starts a server that is also the agent of coordinators with this token, such as a plan.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn agent(token: Token) -> Result<Self, RunnerError> {
        Self::bind(Some(token))
    }

    fn bind(agent_token: Option<Token>) -> Result<Self, RunnerError> {
        let addresses = vec![([127, 0, 0, 1], 0).into()];
        let server = Server::bind(ServerConfig { addresses, agent_token, ..ServerConfig::default() })?;
        let (address, port) =
            server.addresses().first().map(|bound| (bound.to_string(), bound.port())).unwrap_or_default();
        let handle = Arc::new(ServerHandle::new()?);
        let switch = Arc::clone(&handle);
        let thread =
            thread::spawn("loopback", move || server.run(switch, |_| ())).map_err(ControlError::from)?;
        Ok(Self { address, port, handle, thread: Some(thread) })
    }

    /// The server, as [`crate::run()`] takes it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.handle.turn_off();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
