//! Which tests run at the same time.
//!
//! The tests of a binary share one process, which runs as many of them at once as `RUST_TEST_THREADS` says: in
//! `make test`, two for each processor. Tests in the module `alone` measure rates or times, load the machine, or
//! change what the whole host shares. While one of them runs, no other test does. All others may run next to each
//! other.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// A test's right to run, kept until its thread ends.
#[expect(dead_code, reason = "nothing is read: the guards are dropped with the thread")]
enum TestTurn {
    Alone(RwLockWriteGuard<'static, ()>),
    Shared(RwLockReadGuard<'static, ()>),
}

thread_local! {
    static TURN: RefCell<Option<TestTurn>> = const { RefCell::new(None) };
}

/// Waits for the turn of the calling test, unless it has begun.
///
/// Everything here that creates a program, a network or a folder calls it.
pub(crate) fn take_turn() {
    // The thread of a test has the path of the test as its name. Other threads act for a test that has its turn.
    // Nothing is to be done if the main thread runs all tests.
    let thread = std::thread::current();
    let Some((module, _)) = thread.name().and_then(|name| name.split_once("::")) else { return };
    TURN.with_borrow_mut(|turn| {
        turn.get_or_insert_with(|| match module {
            "alone" => TestTurn::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner)),
            _ => TestTurn::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner)),
        });
    });
}

/// Runs a check for all of these in parallel, and reports those that failed.
pub(crate) fn at_once<T: Copy + Debug + Send>(all: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    take_turn();
    let check = &check;
    std::thread::scope(|scope| {
        let running: Vec<_> = all.into_iter().map(|one| (one, scope.spawn(move || check(one)))).collect();
        let failed: Vec<_> =
            running.into_iter().filter_map(|(one, thread)| thread.join().is_err().then_some(one)).collect();
        assert!(failed.is_empty(), "failed with {failed:?}; see above");
    });
}
