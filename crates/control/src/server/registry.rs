//! Which run a data connection or datagram belongs to: by the cookie that the server gave out.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_sock::SockError;
use linerate_sock::poll::EventFd;

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
    /// Most that may wait: those of both directions.
    most: usize,
    over: AtomicBool,
    /// Where its client is: nobody at another address gets datagrams of this run, because an address is easily forged.
    client: IpAddr,
    /// Rings when something has arrived.
    pub(super) waker: EventFd,
}

impl Inbox {
    /// Whether the run has ended.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Whether this is the host of the run's client, which has shown by its control connection that it is there.
    pub(super) fn is_client(&self, host: IpAddr) -> bool {
        self.client == host.to_canonical()
    }

    pub(super) fn put(&self, arrival: Arrival) {
        let mut arrivals = locked(&self.arrivals);
        if arrivals.len() < self.most {
            arrivals.push(arrival);
            self.waker.wake();
        }
    }

    pub(super) fn take(&self) -> Vec<Arrival> {
        let _ = self.waker.clear();
        std::mem::take(&mut *locked(&self.arrivals))
    }
}

/// The runs that were let in.
#[derive(Debug)]
pub(super) struct Registry {
    runs: Mutex<BTreeMap<[u8; 16], Arc<Inbox>>>,
    /// Rings when a run has ended.
    pub(super) waker: EventFd,
}

impl Registry {
    pub(super) fn new() -> Result<Self, SockError> {
        Ok(Self { runs: Mutex::default(), waker: EventFd::new()? })
    }

    /// Opens an inbox for a run of a client at this host, with so many streams in a direction.
    pub(super) fn open(
        &self,
        cookie: [u8; 16],
        client: IpAddr,
        streams: u32,
    ) -> Result<Arc<Inbox>, SockError> {
        let inbox = Arc::new(Inbox {
            arrivals: Mutex::new(Vec::new()),
            most: 2 * streams as usize,
            over: AtomicBool::new(false),
            client: client.to_canonical(),
            waker: EventFd::new()?,
        });
        locked(&self.runs).insert(cookie, Arc::clone(&inbox));
        Ok(inbox)
    }

    pub(super) fn find(&self, cookie: &[u8; 16]) -> Option<Arc<Inbox>> {
        locked(&self.runs).get(cookie).cloned()
    }

    pub(super) fn close(&self, cookie: &[u8; 16]) {
        if let Some(inbox) = locked(&self.runs).remove(cookie) {
            inbox.over.store(true, Ordering::Release);
            self.waker.wake();
        }
    }
}

/// A thread that panicked while it held the lock left nothing half-done: every change is one call.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
