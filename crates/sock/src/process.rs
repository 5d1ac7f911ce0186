//! Other processes: finding those in a network namespace, and ending them without mistaking one for another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::SockError;
use crate::call::check;
use crate::clock::{Mono, now};
use crate::netns::NetnsId;
use crate::poll::{Interest, wait_for};

/// How a process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It may tidy up first, or refuse.
    Terminate,
    /// It ends.
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

/// A handle on one process, which never comes to mean another one as a bare number can.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// Takes hold of a process.
    ///
    /// # Errors
    /// `ESRCH` when there is none of that number.
    pub fn open(pid: u32) -> Result<Self, SockError> {
        // SAFETY: takes numbers, touches no memory of ours.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let raw = check("take hold of a process", raw as i32)?;
        // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// `ESRCH` when it has ended, `EPERM` when it is another user's.
    pub fn signal(&self, signal: Signal) -> Result<(), SockError> {
        let (raw, number) = (self.0.as_raw_fd(), signal.number());
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: takes numbers and a null pointer, which means an ordinary signal.
        let ret = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, raw, number, no_info, 0) };
        check("signal a process", ret as i32).map(|_| ())
    }

    /// Waits until it has ended; false when the deadline passed first.
    ///
    /// # Errors
    /// None that a correct program can meet.
    pub fn wait(&self, deadline: Mono) -> Result<bool, SockError> {
        wait_for(&self.0, Interest::READ, deadline)
    }
}

/// Numbers of the processes that are in one of some network namespaces, and in which, in order of the numbers, without
/// this one. Those of other users are seen by root only.
#[must_use]
pub fn in_netns(ids: &BTreeSet<NetnsId>) -> BTreeMap<u32, NetnsId> {
    let Ok(folder) = fs::read_dir("/proc") else { return BTreeMap::new() };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != std::process::id())
        .filter_map(|pid| NetnsId::of_process(pid).filter(|id| ids.contains(id)).map(|id| (pid, id)))
        .collect()
}

/// Ends every process that is in one of some network namespaces and that `chosen` says yes to: asks all of them to, and
/// kills those that are still there after `grace`. Returns how many.
///
/// # Errors
/// `EPERM` when one is another user's, `ETIMEDOUT` when one cannot even be killed.
pub fn end_in_netns(
    ids: &BTreeSet<NetnsId>,
    grace: Duration,
    chosen: impl Fn(u32, NetnsId) -> bool,
) -> Result<usize, SockError> {
    const MAX_ROUNDS: u32 = 10;
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);
    let mut ended = 0;
    // One that is asked to end may start another one on its way out.
    for _ in 0..MAX_ROUNDS {
        let mut held = BTreeMap::new();
        for (pid, id) in in_netns(ids) {
            let Ok(process) = Process::open(pid) else { continue };
            // Only now that it is held, its number cannot pass to another process.
            if NetnsId::of_process(pid) == Some(id) && chosen(pid, id) {
                held.insert(pid, process);
            }
        }
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

fn signal_all(held: &BTreeMap<u32, Process>, signal: Signal) -> Result<(), SockError> {
    for process in held.values() {
        match process.signal(signal) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn all_ended(held: &BTreeMap<u32, Process>, deadline: Mono) -> Result<bool, SockError> {
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

/// Has this process told to end when the thread that started it ends.
///
/// # Errors
/// None that a correct program can meet.
pub fn end_with_parent(signal: Signal) -> Result<(), SockError> {
    // SAFETY: PR_SET_PDEATHSIG takes one integer and touches no memory of ours.
    let ret = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal.number() as libc::c_ulong) };
    check("set the parent-death signal", ret).map(|_| ())
}

/// Makes this process the leader of a session of its own, without a terminal: Ctrl-C there does not reach it.
///
/// # Errors
/// `EPERM` when it leads a group of processes already.
pub fn new_session() -> Result<(), SockError> {
    // SAFETY: takes nothing, touches no memory of ours.
    check("start a session", unsafe { libc::setsid() }).map(|_| ())
}

/// Asks for as much of the processors as an ordinary process can have: it runs before others as soon as it has work.
///
/// # Errors
/// `EACCES` or `EPERM` without `CAP_SYS_NICE`.
pub fn first_in_line() -> Result<(), SockError> {
    const HIGHEST_PRIORITY: i32 = -20;
    // SAFETY: takes numbers, touches no memory of ours.
    let ret = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST_PRIORITY) };
    check("raise the priority", ret)?;
    // Where the kernel groups processes by session (sched(7), autogroup), a priority counts within the group only.
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
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_held_process_is_ended_and_seen_to_end() {
        for (signal, number) in [(Signal::Terminate, libc::SIGTERM), (Signal::Kill, libc::SIGKILL)] {
            let mut child = sleeper();
            let process = Process::open(child.id()).unwrap();
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
        let found = in_netns(&BTreeSet::from([here]));
        assert_eq!(found.get(&child.id()), Some(&here));
        assert!(!found.contains_key(&std::process::id()), "this one is left out");
        assert!(in_netns(&BTreeSet::new()).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
