//! Waiting for descriptors: `epoll` for many, `poll` for a few, and an eventfd to wake the waiting thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::call::check;
use super::clock::timespec;
use crate::SockError;
use crate::clock::{Mono, now};
use crate::poll::{Interest, Ready};

/// The kernel's bits of an interest.
fn epoll_bits(interest: Interest) -> u32 {
    let mut bits = 0;
    if interest.read {
        bits |= libc::EPOLLIN | libc::EPOLLRDHUP;
    }
    if interest.write {
        bits |= libc::EPOLLOUT;
    }
    bits as u32
}

/// Waits for many descriptors, level-triggered: a descriptor that was not drained is reported again.
///
/// Another poller can wait for all descriptors of this one. Several threads may change what a poller watches while one of them waits.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

/// Result buffer of [`Poller::wait`], allocated once.
pub struct Events {
    slots: Vec<libc::epoll_event>,
    filled: usize,
}

impl Events {
    /// A buffer for `capacity` descriptors per wait.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { slots: vec![libc::epoll_event { events: 0, u64: 0 }; capacity.max(1)], filled: 0 }
    }

    /// The descriptors of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.slots.iter().take(self.filled).map(|slot| {
            let bits = slot.events as i32;
            let error = bits & libc::EPOLLERR != 0;
            let hang_up = bits & libc::EPOLLHUP != 0;
            Ready {
                token: slot.u64,
                read: bits & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0 || error || hang_up,
                write: bits & libc::EPOLLOUT != 0 || error,
                error,
                hang_up,
            }
        })
    }
}

impl Poller {
    /// A poller that does not watch anything yet.
    ///
    /// # Errors
    /// `EMFILE` if the process is out of descriptors.
    pub fn new() -> Result<Self, SockError> {
        // SAFETY: takes a flag and accesses none of our memory.
        let raw = check("create epoll", unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self { epoll: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// Watches `fd` until it is removed or closed; [`Ready::token`] will be `token`.
    ///
    /// # Errors
    /// It is already watched, or cannot be (a regular file).
    pub fn add(&self, fd: &impl AsFd, token: u64, interest: Interest) -> Result<(), SockError> {
        self.control("add to epoll", libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Changes the interest or the token.
    ///
    /// # Errors
    /// `fd` is not watched.
    pub fn modify(&self, fd: &impl AsFd, token: u64, interest: Interest) -> Result<(), SockError> {
        self.control("modify in epoll", libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// `fd` is not watched.
    pub fn remove(&self, fd: &impl AsFd) -> Result<(), SockError> {
        self.control("remove from epoll", libc::EPOLL_CTL_DEL, fd, 0, Interest::ERROR)
    }

    /// Watches another poller, which is ready to read while one of its descriptors is ready.
    ///
    /// # Errors
    /// It is already watched.
    pub fn add_poller(&self, inner: &Self, token: u64) -> Result<(), SockError> {
        self.add(&inner.epoll, token, Interest::READ)
    }

    /// Stops watching another poller.
    ///
    /// # Errors
    /// It is not watched.
    pub fn remove_poller(&self, inner: &Self) -> Result<(), SockError> {
        self.remove(&inner.epoll)
    }

    fn control(
        &self,
        op: &'static str,
        action: i32,
        fd: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> Result<(), SockError> {
        let mut event = libc::epoll_event { events: epoll_bits(interest), u64: token };
        let (epoll, raw) = (self.epoll.as_raw_fd(), fd.as_fd().as_raw_fd());
        // SAFETY: `event` is valid for reading during the call.
        check(op, unsafe { libc::epoll_ctl(epoll, action, raw, &raw mut event) }).map(|_| ())
    }

    /// Waits until a descriptor is ready or the deadline has passed; returns the number of ready ones (0 at the
    /// deadline or after a signal). [`Mono::FAR`] waits forever, a past deadline does not wait. Accurate to a
    /// millisecond.
    ///
    /// # Errors
    /// None is expected.
    pub fn wait(&self, events: &mut Events, deadline: Mono) -> Result<usize, SockError> {
        let timeout = timeout_ms(deadline, now());
        self.fill(events, |epoll, slots, room| {
            // SAFETY: the kernel writes at most `room` events to `slots`, which holds that many.
            unsafe { libc::epoll_wait(epoll, slots, room, timeout) }
        })
    }

    /// As [`Poller::wait`], with the accuracy of the kernel's timers: a few microseconds with a timer slack of
    /// 1 ns ([`crate::clock::set_timer_slack_ns`]).
    ///
    /// # Errors
    /// None is expected.
    pub fn wait_ns(&self, events: &mut Events, deadline: Mono) -> Result<usize, SockError> {
        let span = span_until(deadline);
        let waited = self.fill(events, |epoll, slots, room| {
            let (no_mask, mask_size) = (std::ptr::null::<libc::sigset_t>(), 0usize);
            let timeout = pointer(span.as_ref());
            // SAFETY: the kernel writes at most `room` events to `slots`, which holds that many; `timeout` is null or
            // valid; a null mask leaves signals alone. The result of this call fits an int.
            unsafe {
                libc::syscall(libc::SYS_epoll_pwait2, epoll, slots, room, timeout, no_mask, mask_size) as i32
            }
        });
        match waited {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.wait_by_poll(events, deadline),
            other => other,
        }
    }

    /// For Linux before 5.11, which has no `epoll_pwait2`: an epoll descriptor becomes readable when one of its
    /// descriptors is ready.
    fn wait_by_poll(&self, events: &mut Events, deadline: Mono) -> Result<usize, SockError> {
        let span = span_until(deadline);
        self.fill(events, |epoll, slots, room| {
            let mut slot = libc::pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
            // SAFETY: one slot, a timeout that is null or valid, and a null mask, which leaves signals alone.
            let ret = unsafe { libc::ppoll(&raw mut slot, 1, pointer(span.as_ref()), std::ptr::null()) };
            if ret <= 0 {
                return ret;
            }
            // SAFETY: the kernel writes at most `room` events to `slots`, which holds that many.
            unsafe { libc::epoll_wait(epoll, slots, room, 0) }
        })
    }

    fn fill(
        &self,
        events: &mut Events,
        wait: impl FnOnce(i32, *mut libc::epoll_event, i32) -> i32,
    ) -> Result<usize, SockError> {
        events.filled = 0;
        let room = i32::try_from(events.slots.len()).unwrap_or(i32::MAX);
        let ret = wait(self.epoll.as_raw_fd(), events.slots.as_mut_ptr(), room);
        events.filled = match check("wait for epoll", ret) {
            Ok(filled) => filled as usize,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => 0,
            Err(error) => return Err(error),
        };
        Ok(events.filled)
    }
}

/// Time from now to the deadline; `None` if there is none.
fn span_until(deadline: Mono) -> Option<libc::timespec> {
    let ns = u64::try_from(deadline.remaining().as_nanos()).unwrap_or(u64::MAX);
    (deadline != Mono::FAR).then(|| timespec(ns))
}

fn pointer<T>(value: Option<&T>) -> *const T {
    value.map_or(std::ptr::null(), std::ptr::from_ref)
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
    fd: OwnedFd,
}

impl EventFd {
    /// An eventfd that is not signalled.
    ///
    /// # Errors
    /// `EMFILE` if the process is out of descriptors.
    pub fn new() -> Result<Self, SockError> {
        // SAFETY: takes a number and flags and accesses none of our memory.
        let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        let raw = check("create eventfd", raw)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// Wakes the polling thread. The descriptor stays readable until [`EventFd::clear`].
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: writes the eight bytes of `one`. This fails only after about 2^64 wake-ups without a read.
        unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Resets it; true if it was signalled.
    #[must_use]
    pub fn clear(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: reads eight bytes into `count`, which has eight.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        count > 0
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until at least one of a few descriptors is ready; returns for each whether it is. All false means the
/// deadline. Signals do not end the wait.
///
/// # Errors
/// None is expected.
pub fn poll_few(fds: &[(BorrowedFd<'_>, Interest)], deadline: Mono) -> Result<Vec<bool>, SockError> {
    let mut slots: Vec<libc::pollfd> = fds
        .iter()
        .map(|(fd, interest)| {
            let read = if interest.read { libc::POLLIN } else { 0 };
            let write = if interest.write { libc::POLLOUT } else { 0 };
            libc::pollfd { fd: fd.as_raw_fd(), events: read | write, revents: 0 }
        })
        .collect();
    loop {
        let span = span_until(deadline);
        let timeout = pointer(span.as_ref());
        let count = slots.len() as libc::nfds_t;
        // SAFETY: `slots` holds `count` entries; `timeout` is null or valid; a null mask leaves signals alone.
        let ret = unsafe { libc::ppoll(slots.as_mut_ptr(), count, timeout, std::ptr::null()) };
        if ret >= 0 {
            return Ok(slots.iter().map(|slot| slot.revents != 0).collect());
        }
        let source = io::Error::last_os_error();
        if source.raw_os_error() != Some(libc::EINTR) {
            return Err(SockError::new("poll", source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::wait_for;
    use std::time::Duration;

    #[test]
    fn an_event_wakes_the_poller_with_its_token_until_it_is_cleared() {
        let (poller, event) = (Poller::new().unwrap(), EventFd::new().unwrap());
        let mut events = Events::with_capacity(4);
        poller.add(&event, 77, Interest::READ).unwrap();
        assert_eq!(poller.wait(&mut events, Mono(0)).unwrap(), 0);
        event.wake();
        event.wake();
        assert_eq!(poller.wait(&mut events, Mono::FAR).unwrap(), 1);
        let ready: Vec<Ready> = events.iter().collect();
        assert_eq!((ready[0].token, ready[0].read, ready[0].error), (77, true, false));
        assert_eq!(poller.wait(&mut events, Mono(0)).unwrap(), 1, "level-triggered");
        assert!(event.clear());
        assert!(!event.clear());
        assert_eq!(poller.wait(&mut events, Mono(0)).unwrap(), 0);
        poller.remove(&event).unwrap();
        event.wake();
        assert_eq!(poller.wait(&mut events, Mono(0)).unwrap(), 0);
    }

    #[test]
    fn a_poller_waits_for_another_one() {
        let (outer, inner, event) = (Poller::new().unwrap(), Poller::new().unwrap(), EventFd::new().unwrap());
        let mut events = Events::with_capacity(4);
        inner.add(&event, 1, Interest::READ).unwrap();
        outer.add_poller(&inner, 2).unwrap();
        assert_eq!(outer.wait(&mut events, Mono(0)).unwrap(), 0);
        event.wake();
        assert_eq!(outer.wait(&mut events, Mono::FAR).unwrap(), 1);
        assert_eq!(events.iter().next().unwrap().token, 2);
        assert!(event.clear());
        assert_eq!(outer.wait(&mut events, Mono(0)).unwrap(), 0);
        // A descriptor that was ready when it was added is reported as well.
        event.wake();
        outer.remove_poller(&inner).unwrap();
        outer.add_poller(&inner, 3).unwrap();
        assert_eq!(outer.wait(&mut events, Mono::FAR).unwrap(), 1);
    }

    #[test]
    fn waiting_ends_at_the_deadline_and_not_before() {
        let event = EventFd::new().unwrap();
        let deadline = now() + Duration::from_millis(2);
        assert!(!wait_for(&event, Interest::READ, deadline).unwrap());
        assert!(deadline.has_passed());
        assert!(wait_for(&event, Interest::WRITE, Mono::FAR).unwrap());
    }

    #[test]
    fn either_precise_wait_ends_at_the_deadline_by_an_event_or_at_once() {
        for wait in [Poller::wait_ns, Poller::wait_by_poll] {
            let (poller, event) = (Poller::new().unwrap(), EventFd::new().unwrap());
            let mut events = Events::with_capacity(4);
            poller.add(&event, 5, Interest::READ).unwrap();
            let deadline = now() + Duration::from_micros(300);
            assert_eq!(wait(&poller, &mut events, deadline).unwrap(), 0);
            assert!(deadline.has_passed());
            assert_eq!(wait(&poller, &mut events, Mono(0)).unwrap(), 0);
            event.wake();
            assert_eq!(wait(&poller, &mut events, Mono::FAR).unwrap(), 1);
            assert_eq!(events.iter().next().unwrap().token, 5);
        }
    }

    #[test]
    fn poll_few_names_the_ready_ones() {
        let (silent, ringing) = (EventFd::new().unwrap(), EventFd::new().unwrap());
        ringing.wake();
        let fds = [(silent.as_fd(), Interest::READ), (ringing.as_fd(), Interest::READ)];
        assert_eq!(poll_few(&fds, Mono::FAR).unwrap(), [false, true]);
    }

    #[test]
    fn the_poll_timeout_rounds_up_and_knows_forever() {
        assert_eq!(timeout_ms(Mono::FAR, Mono(7)), -1);
        assert_eq!(timeout_ms(Mono(7), Mono(7)), 0);
        assert_eq!(timeout_ms(Mono(7), Mono(9)), 0);
        assert_eq!(timeout_ms(Mono(1), Mono(0)), 1);
        assert_eq!(timeout_ms(Mono(1_000_001), Mono(0)), 2);
        assert_eq!(timeout_ms(Mono(u64::MAX - 1), Mono(0)), i32::MAX);
    }
}
