//! Other processes: finding those in a network namespace, and terminating exactly those.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::SockError;
use crate::clock::{Mono, now};
use crate::linux::call::check;
use crate::netns::NetnsId;
use crate::poll::{Interest, wait_for};

/// A signal that ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: the process may clean up first, or ignore it.
    Terminate,
    /// SIGKILL: the process ends.
    Kill,
}

impl Signal {
    fn number(self) -> i32 {
        match self {
            Self::Terminate => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
        }
    }
}

/// A pidfd: unlike a process id, it never refers to another process.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// Opens a process.
    ///
    /// # Errors
    /// `ESRCH` if it does not exist, `ENOSYS` before Linux 5.3, `EMFILE` with too many open files; containers may refuse
    /// it with `EPERM`.
    pub fn open(pid: u32) -> Result<Self, SockError> {
        // SAFETY: takes numbers and accesses none of our memory.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let raw = check("open a process", raw as i32)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// `ESRCH` if it has ended, `EPERM` if it belongs to another user.
    pub fn signal(&self, signal: Signal) -> Result<(), SockError> {
        let (raw, number) = (self.0.as_raw_fd(), signal.number());
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: takes numbers and a null pointer, which means an ordinary signal.
        let ret = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, raw, number, no_info, 0) };
        check("signal a process", ret as i32).map(|_| ())
    }

    /// Waits until it has ended; false at the deadline.
    ///
    /// # Errors
    /// None is expected.
    pub fn wait(&self, deadline: Mono) -> Result<bool, SockError> {
        wait_for(&self.0, Interest::READ, deadline)
    }
}

/// Processes in one of the given network namespaces, with their namespaces, except this one. Only root sees
/// those of other users.
///
/// # Errors
/// `/proc` cannot be read, as with `EMFILE`.
pub fn in_netns(ids: &BTreeSet<NetnsId>) -> Result<BTreeMap<u32, NetnsId>, SockError> {
    let list = |source| SockError::new("list the processes", source);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").map_err(list)? {
        let Some(pid) = entry.map_err(list)?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(id) = NetnsId::of_process(pid).filter(|id| pid != std::process::id() && ids.contains(id))
        {
            found.insert(pid, id);
        }
    }
    Ok(found)
}

/// Ends all processes in one of the given network namespaces for which `chosen` returns true: sends SIGTERM,
/// and SIGKILL to those that still run after `grace`. Returns their number.
///
/// # Errors
/// `EPERM` if one belongs to another user, `ETIMEDOUT` if one survives SIGKILL; if one cannot be opened, the error of
/// [`PidFd::open`].
pub fn end_in_netns(
    ids: &BTreeSet<NetnsId>,
    grace: Duration,
    chosen: impl Fn(u32, NetnsId) -> bool,
) -> Result<usize, SockError> {
    const MAX_ROUNDS: u32 = 10;
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);
    let mut ended = 0;
    // A process may start another one while it ends.
    for _ in 0..MAX_ROUNDS {
        let held = hold(ids, PidFd::open, &chosen)?;
        if held.is_empty() {
            return Ok(ended);
        }
        ended += held.len();
        signal_all(&held, Signal::Terminate)?;
        if !all_ended(&held, now() + grace)? {
            signal_all(&held, Signal::Kill)?;
            all_ended(&held, now() + KILL_TIMEOUT)?;
        }
    }
    Err(SockError::errno("end the programs in a network namespace", libc::ETIMEDOUT))
}

/// Opens the chosen processes in the given network namespaces: as many as possible, and at least one if there are any.
fn hold(
    ids: &BTreeSet<NetnsId>,
    open: impl Fn(u32) -> Result<PidFd, SockError>,
    chosen: impl Fn(u32, NetnsId) -> bool,
) -> Result<BTreeMap<u32, PidFd>, SockError> {
    let (mut held, mut failed) = (BTreeMap::new(), None);
    for (pid, id) in in_netns(ids)? {
        let process = open(pid);
        // Checked only after the open, as the process id could pass to another process before it.
        if NetnsId::of_process(pid) != Some(id) || !chosen(pid, id) {
            continue;
        }
        match process {
            Ok(process) => {
                held.insert(pid, process);
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    // Those that are held are ended first, which frees their file descriptors for the others.
    match failed.filter(|_| held.is_empty()) {
        // A process that runs and cannot be held, as in a container that forbids it, would be forgotten.
        Some(error) => Err(error),
        None => Ok(held),
    }
}

fn signal_all(held: &BTreeMap<u32, PidFd>, signal: Signal) -> Result<(), SockError> {
    for process in held.values() {
        match process.signal(signal) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn all_ended(held: &BTreeMap<u32, PidFd>, deadline: Mono) -> Result<bool, SockError> {
    for process in held.values() {
        if !process.wait(deadline)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether this process ignores a signal, as one that nohup(1) has started does SIGHUP.
#[must_use]
pub fn ignores(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// Makes the kernel send the signal to this process when the thread that started it ends.
///
/// # Errors
/// None is expected.
pub fn end_with_parent(signal: Signal) -> Result<(), SockError> {
    // SAFETY: PR_SET_PDEATHSIG takes one integer and accesses none of our memory.
    let ret = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal.number() as libc::c_ulong) };
    check("set the parent-death signal", ret).map(|_| ())
}

/// Makes this process the leader of a new session without a terminal, so that Ctrl-C does not reach it.
///
/// # Errors
/// `EPERM` if it already leads a process group.
pub fn new_session() -> Result<(), SockError> {
    // SAFETY: takes no arguments and accesses none of our memory.
    check("start a session", unsafe { libc::setsid() }).map(|_| ())
}

/// Continues in the background, like daemon(3): in a child of this process that leads a new session, with
/// /dev/null as its standard streams and the same working directory. This process ends with exit code 0.
///
/// # Errors
/// `EBUSY` if this process has several threads, of which the child would have only one; `EAGAIN` or `ENOMEM` if
/// there can be no further process.
pub fn detach() -> Result<(), SockError> {
    const WHAT: &str = "continue in the background";
    let threads = fs::read_dir("/proc/self/task").map_err(|source| SockError::new(WHAT, source))?.count();
    if threads > 1 {
        return Err(SockError::errno(WHAT, libc::EBUSY));
    }
    let (keep_directory, replace_streams) = (1, 0);
    // SAFETY: takes two numbers. The process has one thread, so the child's memory is complete and no lock in it
    // is held by a thread that the child lacks.
    check(WHAT, unsafe { libc::daemon(keep_directory, replace_streams) }).map(|_| ())
}

/// Whether a process with this id exists and this one may signal it.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: takes numbers and accesses none of our memory. Signal 0 is not delivered.
    pid > 0 && unsafe { libc::kill(pid, 0) } == 0
}

/// Whether a process has ended and only its parent has not asked for its exit code yet. [`is_running`] is true of such a one.
#[must_use]
pub fn has_ended(pid: u32) -> bool {
    PidFd::open(pid).is_ok_and(|process| process.wait(now()).unwrap_or(false))
}

/// Lowers the priority of the calling thread (nice 10), so that threads that measure come first.
///
/// # Errors
/// The host refuses it.
pub fn lower_thread_priority() -> Result<(), SockError> {
    // SAFETY: setpriority takes integers only. On Linux, process 0 is the calling thread (setpriority(2)).
    let ret = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOWER_PRIORITY) };
    check("lower the priority of a thread", ret)?;
    Ok(())
}

/// The nice value of threads that wait for those that measure.
const LOWER_PRIORITY: i32 = 10;

/// Sets the highest ordinary priority (nice -20).
///
/// # Errors
/// `EACCES` or `EPERM` without `CAP_SYS_NICE`.
pub fn first_in_line() -> Result<(), SockError> {
    const HIGHEST_PRIORITY: i32 = -20;
    // SAFETY: takes numbers and accesses none of our memory.
    let ret = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST_PRIORITY) };
    check("raise the priority", ret)?;
    // With autogroups (sched(7)), nice values count only within the session's group.
    match fs::write("/proc/self/autogroup", HIGHEST_PRIORITY.to_string()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(SockError::new("raise the session's priority", error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_process_runs_until_it_has_been_waited_for() {
        let mut child = sleeper();
        assert!(is_running(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_running(child.id()));
        assert!(!is_running(0) && !is_running(u32::MAX), "these are no processes but groups of them");
    }

    #[test]
    fn a_process_with_threads_is_not_detached() {
        assert_eq!(detach().unwrap_err().raw_os_error(), Some(libc::EBUSY));
    }

    #[test]
    fn a_held_process_is_ended_and_seen_to_end() {
        for (signal, number) in [(Signal::Terminate, libc::SIGTERM), (Signal::Kill, libc::SIGKILL)] {
            let mut child = sleeper();
            let process = PidFd::open(child.id()).unwrap();
            assert!(!process.wait(Mono(0)).unwrap());
            process.signal(signal).unwrap();
            assert!(process.wait(Mono::FAR).unwrap());
            assert_eq!(child.wait().unwrap().signal(), Some(number));
            assert_eq!(process.signal(signal).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        }
    }

    #[test]
    fn the_runtime_of_rust_ignores_sigpipe_and_nothing_that_ends_a_program() {
        assert!(ignores(libc::SIGPIPE));
        assert!(!ignores(libc::SIGTERM) && !ignores(0) && !ignores(-1) && !ignores(1000));
    }

    #[test]
    fn processes_of_this_namespace_are_found() {
        let mut child = sleeper();
        let here = NetnsId::of_process(std::process::id()).unwrap();
        let found = in_netns(&BTreeSet::from([here])).unwrap();
        assert_eq!(found.get(&child.id()), Some(&here));
        assert!(!found.contains_key(&std::process::id()), "this one is left out");
        assert!(in_netns(&BTreeSet::new()).unwrap().is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Regression: a lab went down, and its programs lived on, where a process cannot be opened.
    #[test]
    fn a_running_process_that_cannot_be_opened_is_not_forgotten() {
        let mut child = sleeper();
        let pid = child.id();
        let ids = BTreeSet::from([NetnsId::of_process(pid).unwrap()]);
        let ours = |found: u32, _: NetnsId| found == pid;
        for errno in [libc::ENOSYS, libc::EPERM, libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            let open = |_: u32| Err(SockError::errno("open a process", errno));
            let error = hold(&ids, open, ours).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(errno));
            assert!(hold(&ids, open, |_, _| false).unwrap().is_empty(), "not one of those to end");
            assert!(hold(&BTreeSet::new(), open, |_, _| true).unwrap().is_empty(), "elsewhere");
        }
        let gone = |_: u32| Err(SockError::errno("open a process", libc::ESRCH));
        assert!(hold(&ids, gone, ours).unwrap().is_empty());
        assert_eq!(hold(&ids, PidFd::open, ours).unwrap().into_keys().collect::<Vec<_>>(), [pid]);
        let mut other = sleeper();
        let one = |found: u32| {
            if found == pid {
                PidFd::open(found)
            } else {
                Err(SockError::errno("open a process", libc::EMFILE))
            }
        };
        let both = |found: u32, _: NetnsId| found == pid || found == other.id();
        assert_eq!(
            hold(&ids, one, both).unwrap().into_keys().collect::<Vec<_>>(),
            [pid],
            "the other follows"
        );
        other.kill().unwrap();
        other.wait().unwrap();
        // It ends before it can be opened, and the kernel has another word for it: Linux before 6.15 says EINVAL
        // while its id is still that of a group.
        let end = RefCell::new(&mut child);
        let late = |found: u32| {
            if found == pid {
                let mut child = end.borrow_mut();
                child.kill().unwrap();
                child.wait().unwrap();
            }
            Err(SockError::errno("open a process", libc::EINVAL))
        };
        assert!(hold(&ids, late, ours).unwrap().is_empty());
    }
}
