//! Windows has no documented call that is known to reach the kernel and to do nothing there.

/// A call for measuring what one costs: absent.
pub(crate) const SHORT_CALL: Option<fn() -> i32> = None;
