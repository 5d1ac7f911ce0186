//! A system call for measuring what one costs.

/// `getppid`, which no library caches.
pub(crate) const SHORT_CALL: Option<fn() -> i32> = Some(parent);

fn parent() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }
}
