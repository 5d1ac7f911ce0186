//! Changes to one's own process: root in a user namespace, a new session, ending together with the parent.
//!
//! This is a binary of its own, because a forked child keeps all open sockets of its process: a connection that
//! another test closes would stay open.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use linerate_sock::netns::{self, NetnsId, with_netns_fd};
use linerate_sock::process::{Signal, end_in_netns, end_with_parent, new_session};
use linerate_sock::routing::{LinkChange, RoutingSocket, index_of};
use linerate_sock::{mount, userns};

const NOBODY: u32 = 65_534;

/// A child process with a single thread, which ends with the test.
struct Forked(i32);

impl Forked {
    fn start(work: impl FnOnce()) -> Self {
        // SAFETY: the child does only what a thread of the parent may do between allocations (glibc makes its
        // allocator usable after a fork), and exits without running any code of the parent.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                end_with_parent(Signal::Kill).unwrap();
                work();
            }));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        Self(pid)
    }

    fn wait(self) -> ExitStatus {
        let mut status = 0;
        // SAFETY: waits for our own child; the status is valid for writing.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        ExitStatus::from_raw(status)
    }
}

fn become_ordinary() {
    // Changing the user resets the parent-death signal, so it is set again below.
    if userns::effective_user() != 0 {
        return;
    }
    // SAFETY: these take numbers; an empty list of groups needs no memory. PR_SET_DUMPABLE makes the process
    // own its /proc files again, after the change of user.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(NOBODY), 0);
        assert_eq!(libc::setuid(NOBODY), 0);
        assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 1), 0);
    }
    end_with_parent(Signal::Kill).unwrap();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_ordinary_user_makes_namespaces_and_a_second_process_finds_its_way_in() {
    let (mut ready, writer) = pipe().unwrap();
    let (hold, release) = pipe().unwrap();
    let first = Forked::start(|| {
        become_ordinary();
        assert!(netns::create().is_err());
        userns::become_root_in_user_namespace().unwrap();
        assert_eq!(userns::effective_user(), 0);
        let netns = netns::create().unwrap();
        let alias = LinkChange { alias: Some("made by an ordinary user"), ..LinkChange::default() };
        with_netns_fd(&netns, || {
            RoutingSocket::open().unwrap().change(index_of("lo").unwrap(), &alias).unwrap();
        })
        .unwrap();
        (&writer).write_all(&netns.as_raw_fd().to_ne_bytes()).unwrap();
        let _ = (&hold).read(&mut [0]);
    });
    let mut fd = [0; 4];
    ready.read_exact(&mut fd).unwrap();
    let (pid, fd) = (first.0.unsigned_abs(), i32::from_ne_bytes(fd));

    let second = Forked::start(|| {
        become_ordinary();
        let other = userns::of_process(pid).unwrap();
        userns::enter(&other).unwrap();
        assert_eq!(userns::effective_user(), 0);
        let netns = File::open(format!("/proc/{pid}/fd/{fd}")).unwrap();
        let seen = with_netns_fd(&netns, || {
            mount::fresh_sys().unwrap();
            Command::new("cat").arg("/sys/class/net/lo/ifalias").output().unwrap().stdout
        });
        assert_eq!(seen.unwrap(), b"made by an ordinary user\n");
    });
    assert_eq!(second.wait().code(), Some(0));
    (&release).write_all(&[1]).unwrap();
    assert_eq!(first.wait().code(), Some(0));
    assert_eq!(NetnsId::of_process(pid), None);
}

#[test]
fn a_process_of_several_threads_cannot_become_root() {
    std::thread::scope(|scope| {
        let other = scope.spawn(userns::become_root_in_user_namespace);
        assert_eq!(other.join().unwrap().unwrap_err().raw_os_error(), Some(libc::EINVAL));
    });
}

#[test]
fn a_process_ends_with_the_thread_that_started_it() {
    let (mut ready, writer) = pipe().unwrap();
    let starter = std::thread::spawn(move || {
        let child = Forked::start(|| {
            end_with_parent(Signal::Terminate).unwrap();
            (&writer).write_all(&[1]).unwrap();
            loop {
                std::thread::park();
            }
        });
        ready.read_exact(&mut [0]).unwrap();
        child
    });
    assert_eq!(starter.join().unwrap().wait().signal(), Some(libc::SIGTERM));
}

#[test]
fn a_new_session_is_led_by_the_process_and_made_once() {
    let child = Forked::start(|| {
        new_session().unwrap();
        // SAFETY: takes a number and accesses no memory.
        assert_eq!(unsafe { libc::getsid(0) }.unsigned_abs(), std::process::id());
        assert_eq!(new_session().unwrap_err().raw_os_error(), Some(libc::EPERM));
    });
    assert_eq!(child.wait().code(), Some(0));
}

/// Allows this process file descriptors below `limit` only.
fn limit_files(limit: i32) {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls access these limits only.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits), 0);
        limits.rlim_cur = limit.try_into().unwrap();
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits), 0);
    }
}

/// Regression: without a free file descriptor no program was found, or those that could not be opened were left
/// running.
#[test]
fn programs_are_ended_with_a_single_file_descriptor_and_not_forgotten_without_any() {
    // Enough for a busy machine.
    const GRACE: Duration = Duration::from_secs(60);
    let mut programs = [(); 3].map(|()| Command::new("sleep").arg("60").spawn().unwrap());
    let pids = programs.each_ref().map(std::process::Child::id);
    let ids = BTreeSet::from([NetnsId::of_process(std::process::id()).unwrap()]);
    let child = Forked::start(|| {
        // The lowest one that is free.
        let free = File::open("/dev/null").unwrap().as_raw_fd();
        let end = || end_in_netns(&ids, GRACE, |pid, _| pids.contains(&pid));
        limit_files(free);
        assert_eq!(end().unwrap_err().raw_os_error(), Some(libc::EMFILE));
        limit_files(free + 1);
        assert_eq!(end().unwrap(), 3);
    });
    let ended = child.wait();
    let signals = programs.each_mut().map(|program| {
        program.kill().unwrap();
        program.wait().unwrap().signal()
    });
    assert!(ended.success());
    assert_eq!(signals, [Some(libc::SIGTERM); 3]);
}
