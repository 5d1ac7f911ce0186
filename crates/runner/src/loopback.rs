//! A server in this process.

use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_control::{ControlError, Server, ServerConfig, ServerHandle};
use linerate_sock::thread;

use crate::RunnerError;

/// A server on the loopback interface at a free port. It ends when this value is dropped.
#[derive(Debug)]
pub struct Loopback {
    address: String,
    handle: Arc<ServerHandle>,
    thread: Option<JoinHandle<Result<(), ControlError>>>,
}

impl Loopback {
    /// Starts the server; it listens when this returns.
    ///
    /// # Errors
    /// The host refuses sockets or threads.
    pub fn start() -> Result<Self, RunnerError> {
        let addresses = vec![([127, 0, 0, 1], 0).into()];
        let server = Server::bind(ServerConfig { addresses, ..ServerConfig::default() })?;
        let address = server.addresses().first().map(ToString::to_string).unwrap_or_default();
        let handle = Arc::new(ServerHandle::new()?);
        let switch = Arc::clone(&handle);
        let thread =
            thread::spawn("loopback", move || server.run(switch, |_| ())).map_err(ControlError::from)?;
        Ok(Self { address, handle, thread: Some(thread) })
    }

    /// The server, as [`crate::run()`] takes it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.handle.turn_off();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
