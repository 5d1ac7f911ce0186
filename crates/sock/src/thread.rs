//! Starts threads, and locks what they share. Only this module starts them: hosts may refuse a thread at any
//! time, and the standard library's short forms then panic.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::{SockError, limits};

const OP: &str = "start a thread";

/// Starts a thread.
///
/// # Errors
/// This host refuses it; the message contains the limits in force.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SockError> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|error| refused(&error))
}

/// As [`spawn`], with a value that passes to the thread, or back to the caller if the thread cannot be started.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_with<V: Send + 'static>(
    name: &str,
    value: V,
    work: impl FnOnce(V) + Send + 'static,
) -> Result<JoinHandle<()>, (SockError, Option<V>)> {
    let ours = Arc::new(Mutex::new(Some(value)));
    let theirs = Arc::clone(&ours);
    spawn(name, move || {
        let value = locked(&theirs).take();
        drop(theirs);
        value.map(work);
    })
    .map_err(|error| (error, locked(&ours).take()))
}

/// Starts a thread that ends with its scope.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, SockError> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(|error| refused(&error))
}

/// Locks a mutex, ignoring poisoning. For values that every change leaves complete, also if its thread panics in
/// the middle.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(error: &io::Error) -> SockError {
    SockError::new(
        OP,
        io::Error::new(error.kind(), describe(error, limits::processes(), limits::pids_of_group())),
    )
}

/// The kernel's error, the limits that may cause it, and the remedy.
fn describe(error: &io::Error, of_user: Option<u64>, of_group: Option<u64>) -> String {
    let user = of_user.map(|most| format!("{most} processes and threads of this user (ulimit -u)"));
    let group = of_group.map(|most| format!("{most} in its control group (pids.max)"));
    let limits: Vec<String> = user.into_iter().chain(group).collect();
    let limits = if limits.is_empty() {
        "this user has no limit, so memory or the system's kernel.threads-max is exhausted".to_owned()
    } else {
        format!("allowed are {}", limits.join(" and "))
    };
    format!("{error}; {limits}; raise the limit or use fewer streams")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_limits() {
        let error = io::Error::from_raw_os_error(libc::EAGAIN);
        let text = describe(&error, Some(3), Some(512));
        assert!(text.contains("3 processes and threads of this user (ulimit -u)"), "{text}");
        assert!(text.contains("512 in its control group (pids.max)"), "{text}");
        assert!(describe(&error, None, None).contains("kernel.threads-max"));
    }

    #[test]
    fn threads_get_what_is_theirs_and_return_what_they_made() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = spawn_with("test", 7, move |value| sender.send(value + 1).unwrap()).unwrap();
        thread.join().unwrap();
        assert_eq!(receiver.recv(), Ok(8));
        let sum = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=3).map(|n| spawn_scoped(scope, "test", move || n).unwrap()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<i32>()
        });
        assert_eq!(sum, 6);
    }
}
