//! Which run a data connection or datagram belongs to: by the cookie that the server gave out.

use std::collections::BTreeMap;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_sock::SockError;
use linerate_sock::poll::EventFd;

/// Most data sockets that may wait for one run: both directions at the largest number of streams.
const MOST_WAITING: usize = 20_000;

/// Most connections of probes at once: a run has one at a time, the rest is for those that are ending.
const MOST_PROBE_CONNECTIONS: u32 = 8;

/// A data socket that has arrived for a run.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A connection.
    Tcp { flow: u16, stream: u32, connection: TcpStream },
    /// A UDP flow whose client has echoed the challenge.
    Udp { flow: u16, stream: u32, socket: UdpSocket },
}

/// Where a run's data sockets arrive.
#[derive(Debug)]
pub(super) struct Inbox {
    arrivals: Mutex<Vec<Arrival>>,
    probing: AtomicU32,
    /// Rings when something has arrived.
    pub(super) bell: EventFd,
}

impl Inbox {
    /// Whether this run may have one more connection of probes; each costs a thread.
    pub(super) fn begin_probes(&self) -> bool {
        let begun = self.probing.fetch_add(1, Ordering::Relaxed) < MOST_PROBE_CONNECTIONS;
        if !begun {
            self.end_probes();
        }
        begun
    }

    pub(super) fn end_probes(&self) {
        self.probing.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn put(&self, arrival: Arrival) {
        let mut arrivals = locked(&self.arrivals);
        if arrivals.len() < MOST_WAITING {
            arrivals.push(arrival);
            self.bell.ring();
        }
    }

    pub(super) fn take(&self) -> Vec<Arrival> {
        let _ = self.bell.clear();
        std::mem::take(&mut *locked(&self.arrivals))
    }
}

/// The runs that were let in.
#[derive(Debug, Default)]
pub(super) struct Registry {
    runs: Mutex<BTreeMap<[u8; 16], Arc<Inbox>>>,
}

impl Registry {
    /// Opens an inbox for a run.
    pub(super) fn open(&self, cookie: [u8; 16]) -> Result<Arc<Inbox>, SockError> {
        let inbox = Arc::new(Inbox {
            arrivals: Mutex::new(Vec::new()),
            probing: AtomicU32::new(0),
            bell: EventFd::new()?,
        });
        locked(&self.runs).insert(cookie, Arc::clone(&inbox));
        Ok(inbox)
    }

    pub(super) fn find(&self, cookie: &[u8; 16]) -> Option<Arc<Inbox>> {
        locked(&self.runs).get(cookie).cloned()
    }

    pub(super) fn close(&self, cookie: &[u8; 16]) {
        locked(&self.runs).remove(cookie);
    }
}

/// A thread that panicked while it held the lock left nothing half-done: every change is one call.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
