//! Waiting for descriptors with `poll`, and a socket that is connected to itself to wake the waiting thread.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};

use crate::SockError;
use crate::clock::{Mono, now};
use crate::handle::{AsFd, BorrowedFd};
use crate::poll::{Interest, Ready};
use crate::thread::locked;

#[cfg(windows)]
use super::windows::poll::{IN, INVALID, OUT, PollSlot, RawSocket, number, wait_once};
#[cfg(unix)]
use unix_poll::{IN, INVALID, OUT, PollSlot, RawSocket, number, wait_once};

/// What a poller watches.
#[derive(Clone, Debug)]
enum Watched {
    /// A socket, and the events to wait for.
    Socket(RawSocket, u64, Interest),
    /// Another poller, which is ready when one of its sockets is.
    Poller(Arc<PollerState>, u64),
}

/// What the handles of a poller share.
#[derive(Debug)]
struct PollerState {
    watched: Mutex<BTreeMap<RawSocket, Watched>>,
    /// Wakes a thread that waits while another one changes what is watched.
    changed: EventFd,
}

/// Waits for many descriptors, level-triggered: a descriptor that was not drained is reported again.
///
/// Several threads may change what a poller watches while one of them waits. A descriptor that was closed is forgotten at
/// the next wait.
#[derive(Debug)]
pub struct Poller {
    state: Arc<PollerState>,
}

/// Result buffer of [`Poller::wait`].
pub struct Events {
    capacity: usize,
    ready: Vec<Ready>,
}

impl Events {
    /// A buffer for `capacity` descriptors per wait.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), ready: Vec::new() }
    }

    /// The descriptors of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.ready.iter().copied()
    }
}

impl Poller {
    /// A poller that does not watch anything yet.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> Result<Self, SockError> {
        let state = PollerState { watched: Mutex::default(), changed: EventFd::new()? };
        Ok(Self { state: Arc::new(state) })
    }

    /// Watches `fd` until it is removed; [`Ready::token`] will be `token`.
    ///
    /// # Errors
    /// None is expected.
    pub fn add(&self, fd: &impl AsFd, token: u64, interest: Interest) -> Result<(), SockError> {
        let raw = number(fd.as_fd());
        locked(&self.state.watched).insert(raw, Watched::Socket(raw, token, interest));
        self.state.changed.wake();
        Ok(())
    }

    /// Changes the interest or the token.
    ///
    /// # Errors
    /// None is expected.
    pub fn modify(&self, fd: &impl AsFd, token: u64, interest: Interest) -> Result<(), SockError> {
        self.add(fd, token, interest)
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// None is expected.
    pub fn remove(&self, fd: &impl AsFd) -> Result<(), SockError> {
        locked(&self.state.watched).remove(&number(fd.as_fd()));
        self.state.changed.wake();
        Ok(())
    }

    /// Watches another poller, which is ready to read while one of its descriptors is ready.
    ///
    /// # Errors
    /// None is expected.
    pub fn add_poller(&self, inner: &Self, token: u64) -> Result<(), SockError> {
        let raw = number(inner.state.changed.as_fd());
        locked(&self.state.watched).insert(raw, Watched::Poller(Arc::clone(&inner.state), token));
        self.state.changed.wake();
        Ok(())
    }

    /// Stops watching another poller.
    ///
    /// # Errors
    /// None is expected.
    pub fn remove_poller(&self, inner: &Self) -> Result<(), SockError> {
        self.remove(&inner.state.changed)
    }

    /// Waits until a descriptor is ready or the deadline has passed; returns the number of ready ones (0 at the
    /// deadline). [`Mono::FAR`] waits forever, a past deadline does not wait. Accurate to a millisecond.
    ///
    /// # Errors
    /// None is expected.
    pub fn wait(&self, events: &mut Events, deadline: Mono) -> Result<usize, SockError> {
        events.ready.clear();
        loop {
            let mut list = PollList::default();
            self.state.list(&mut list, None);
            wait_once(&mut list.slots, timeout_ms(deadline, now()))?;
            list.collect(events);
            self.state.forget(&list);
            if !events.ready.is_empty() || deadline.has_passed() {
                return Ok(events.ready.len());
            }
        }
    }

    /// As [`Poller::wait`], with the same accuracy.
    ///
    /// # Errors
    /// None is expected.
    pub fn wait_ns(&self, events: &mut Events, deadline: Mono) -> Result<usize, SockError> {
        self.wait(events, deadline)
    }
}

impl PollerState {
    /// Adds the sockets that are watched here, each with its token or that of the poller that watches this one.
    fn list(&self, list: &mut PollList, token: Option<u64>) {
        // What changes from now on wakes the wait that follows.
        let _ = self.changed.clear();
        list.push(number(self.changed.as_fd()), None, Interest::READ);
        for watched in locked(&self.watched).values() {
            match watched {
                Watched::Socket(raw, own, interest) => {
                    list.push(*raw, Some((token.unwrap_or(*own), token.is_some())), *interest);
                }
                Watched::Poller(inner, own) => inner.list(list, Some(token.unwrap_or(*own))),
            }
        }
    }

    /// Stops watching the sockets that have been closed.
    fn forget(&self, list: &PollList) {
        let closed: Vec<RawSocket> =
            list.slots.iter().filter(|slot| slot.revents & INVALID != 0).map(|slot| slot.fd).collect();
        if !closed.is_empty() {
            self.forget_all(&closed);
        }
    }

    fn forget_all(&self, closed: &[RawSocket]) {
        let mut watched = locked(&self.watched);
        watched.retain(|raw, watched| matches!(watched, Watched::Poller(..)) || !closed.contains(raw));
        for watched in watched.values() {
            if let Watched::Poller(inner, _) = watched {
                inner.forget_all(closed);
            }
        }
    }
}

/// The sockets of one wait.
#[derive(Default)]
struct PollList {
    slots: Vec<PollSlot>,
    /// The token of each, and whether it belongs to a poller; absent for a poller's own waker.
    tokens: Vec<Option<(u64, bool)>>,
}

impl PollList {
    fn push(&mut self, raw: RawSocket, token: Option<(u64, bool)>, interest: Interest) {
        self.slots.push(slot(raw, interest));
        self.tokens.push(token);
    }

    fn collect(&self, events: &mut Events) {
        for (slot, token) in self.slots.iter().zip(&self.tokens) {
            let Some((token, in_poller)) = token.filter(|_| slot.revents & !INVALID != 0) else { continue };
            let ready = if in_poller {
                Ready { token, read: true, write: false, error: false, hang_up: false }
            } else {
                ready(token, slot)
            };
            let is_new = !events.ready.iter().any(|found| in_poller && found.token == token);
            if is_new && events.ready.len() < events.capacity {
                events.ready.push(ready);
            }
        }
    }
}

fn slot(raw: RawSocket, interest: Interest) -> PollSlot {
    let read = if interest.read { IN } else { 0 };
    let write = if interest.write { OUT } else { 0 };
    PollSlot { fd: raw, events: read | write, revents: 0 }
}

/// Whatever is neither reading nor writing is an error or the end of the connection, which a call on the socket tells.
fn ready(token: u64, slot: &PollSlot) -> Ready {
    let error = slot.revents & !(IN | OUT) != 0;
    Ready {
        token,
        read: slot.revents & IN != 0 || error,
        write: slot.revents & OUT != 0 || error,
        error,
        hang_up: false,
    }
}

/// Rounded up, so that the thread does not spin through the last millisecond.
fn timeout_ms(deadline: Mono, now: Mono) -> i32 {
    if deadline == Mono::FAR {
        return -1;
    }
    let ms = deadline.since(now).as_nanos().div_ceil(1_000_000);
    i32::try_from(ms).unwrap_or(i32::MAX)
}

/// Wakes a polling thread from any other thread.
#[derive(Debug)]
pub struct EventFd {
    socket: UdpSocket,
}

impl EventFd {
    /// A waker that is not signalled.
    ///
    /// # Errors
    /// The process is out of descriptors, or this host has no loopback interface.
    pub fn new() -> Result<Self, SockError> {
        let open = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(socket.local_addr()?)?;
            socket.set_nonblocking(true)?;
            Ok(Self { socket })
        };
        open().map_err(|source| SockError::new("create a waker", source))
    }

    /// Wakes the polling thread. The descriptor stays readable until [`EventFd::clear`].
    pub fn wake(&self) {
        // It fails only if its buffer is full of earlier wake-ups.
        let _ = self.socket.send(&[1]);
    }

    /// Resets it; true if it was signalled.
    #[must_use]
    pub fn clear(&self) -> bool {
        let mut signalled = false;
        while self.socket.recv(&mut [0]).is_ok() {
            signalled = true;
        }
        signalled
    }
}

#[cfg(unix)]
impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsSocket for EventFd {
    fn as_socket(&self) -> BorrowedFd<'_> {
        self.socket.as_socket()
    }
}

/// Waits until at least one of a few descriptors is ready; returns for each whether it is. All false means the
/// deadline. Signals do not end the wait.
///
/// # Errors
/// None is expected.
pub fn poll_few(fds: &[(BorrowedFd<'_>, Interest)], deadline: Mono) -> Result<Vec<bool>, SockError> {
    if fds.is_empty() {
        crate::clock::sleep_until(deadline);
        return Ok(Vec::new());
    }
    let mut slots: Vec<PollSlot> = fds.iter().map(|(fd, interest)| slot(number(*fd), *interest)).collect();
    loop {
        wait_once(&mut slots, timeout_ms(deadline, now()))?;
        let ready: Vec<bool> = slots.iter().map(|slot| slot.revents != 0).collect();
        if ready.contains(&true) || deadline.has_passed() {
            return Ok(ready);
        }
    }
}

#[cfg(unix)]
mod unix_poll {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

    use crate::SockError;

    pub(super) use libc::{POLLIN as IN, POLLNVAL as INVALID, POLLOUT as OUT, pollfd as PollSlot};

    /// What stands for a socket in a call.
    pub(super) type RawSocket = RawFd;

    pub(super) fn number(fd: BorrowedFd<'_>) -> RawSocket {
        fd.as_raw_fd()
    }

    /// Waits for one of the sockets, at most `timeout_ms`, or without limit if it is negative. A signal may end the
    /// wait.
    pub(super) fn wait_once(slots: &mut [PollSlot], timeout_ms: i32) -> Result<(), SockError> {
        slots.iter_mut().for_each(|slot| slot.revents = 0);
        // SAFETY: the kernel reads and writes `slots.len()` entries of `slots`.
        let ret = unsafe { libc::poll(slots.as_mut_ptr(), slots.len() as libc::nfds_t, timeout_ms) };
        let source = io::Error::last_os_error();
        if ret < 0 && source.kind() != io::ErrorKind::Interrupted {
            return Err(SockError::new("poll", source));
        }
        Ok(())
    }
}
