//! Assigns data connections and datagrams to runs by the cookie that the server issued.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use linerate_engine::AcceptedConnections;
use linerate_model::flow::FlowId;
use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;
use linerate_sock::{SockError, SocketOptions};

/// A data socket that has arrived for a run.
#[derive(Debug)]
pub(super) enum DataSocket {
    /// An accepted connection.
    Tcp { flow: FlowId, stream: u32, connection: TcpStream },
    /// A UDP flow whose client has echoed the challenge.
    Udp { flow: FlowId, stream: u32, socket: UdpSocket },
}

/// Most UDP sockets that a run may open in all its phases.
const MAX_UDP_STREAMS: usize = 65_536;

/// Receives the data sockets of a run.
#[derive(Debug)]
pub(super) struct RunInbox {
    arrivals: Mutex<Vec<DataSocket>>,
    /// The flows and streams of UDP sockets that have arrived.
    udp_streams: Mutex<BTreeSet<(FlowId, u32)>>,
    /// Most sockets that may wait: one per stream and direction.
    most: usize,
    over: AtomicBool,
    /// Address of the client. No datagrams of this run go to other addresses, because a source address is
    /// easily forged.
    client: IpAddr,
    /// Connections with one request each. Taken only during a run that makes such requests.
    transactions: OnceLock<Arc<AcceptedConnections>>,
    /// Wakes the run when a socket has arrived.
    pub(super) waker: EventFd,
}

impl RunInbox {
    /// Whether the run has ended.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Whether this is the address of the run's client, which its control connection has proved.
    pub(super) fn is_client(&self, host: IpAddr) -> bool {
        self.client == host.to_canonical()
    }

    /// Begins to take connections with one request each, which get these settings, and returns where they arrive.
    pub(super) fn take_transactions(&self, options: SocketOptions) -> Arc<AcceptedConnections> {
        Arc::clone(self.transactions.get_or_init(|| Arc::new(AcceptedConnections::new(self.most, options))))
    }

    /// Adds a connection of `peer` with one request. Connections of others, and of a run that makes no such requests,
    /// are closed.
    pub(super) fn put_transaction(&self, peer: IpAddr, connection: TcpStream) {
        if let Some(transactions) =
            self.transactions.get().filter(|_| !self.is_over() && self.is_client(peer))
        {
            transactions.put(connection);
        }
    }

    /// Whether a stream may get a UDP socket. A second one would take datagrams from the first.
    pub(super) fn may_open_udp(&self, flow: FlowId, stream: u32) -> bool {
        let opened = locked(&self.udp_streams);
        opened.len() < MAX_UDP_STREAMS && !opened.contains(&(flow, stream))
    }

    pub(super) fn put(&self, arrival: DataSocket) {
        if let DataSocket::Udp { flow, stream, .. } = &arrival {
            locked(&self.udp_streams).insert((*flow, *stream));
        }
        let mut arrivals = locked(&self.arrivals);
        if arrivals.len() < self.most {
            arrivals.push(arrival);
            self.waker.wake();
        }
    }

    pub(super) fn take(&self) -> Vec<DataSocket> {
        let _ = self.waker.clear();
        std::mem::take(&mut *locked(&self.arrivals))
    }
}

/// The admitted runs.
#[derive(Debug)]
pub(super) struct Registry {
    runs: Mutex<BTreeMap<[u8; 16], Arc<RunInbox>>>,
    /// Wakes its waiter when a run has ended.
    pub(super) waker: EventFd,
}

impl Registry {
    pub(super) fn new() -> Result<Self, SockError> {
        Ok(Self { runs: Mutex::default(), waker: EventFd::new()? })
    }

    /// Opens an inbox for a run of a client at this address, with `streams` streams per direction.
    pub(super) fn open(
        &self,
        cookie: [u8; 16],
        client: IpAddr,
        streams: u32,
    ) -> Result<Arc<RunInbox>, SockError> {
        let inbox = Arc::new(RunInbox {
            arrivals: Mutex::new(Vec::new()),
            udp_streams: Mutex::default(),
            most: 2 * streams as usize,
            over: AtomicBool::new(false),
            client: client.to_canonical(),
            transactions: OnceLock::new(),
            waker: EventFd::new()?,
        });
        locked(&self.runs).insert(cookie, Arc::clone(&inbox));
        Ok(inbox)
    }

    pub(super) fn find(&self, cookie: &[u8; 16]) -> Option<Arc<RunInbox>> {
        locked(&self.runs).get(cookie).cloned()
    }

    /// Whether no run is waiting or in progress.
    pub(super) fn is_empty(&self) -> bool {
        locked(&self.runs).is_empty()
    }

    pub(super) fn close(&self, cookie: &[u8; 16]) {
        if let Some(inbox) = locked(&self.runs).remove(cookie) {
            inbox.over.store(true, Ordering::Release);
            self.waker.wake();
        }
    }
}
