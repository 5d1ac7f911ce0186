//! Whether the machine is idle apart from the tests, on which some figures depend.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_sock::clock;
use linerate_sock::proc::cpu::{self, ThreadTimes};

/// Share of all CPUs that other programs may use. With twice as much, the threads of a test that saturates a core were found
/// to have 62 and 68 % of one.
const ALLOWED: f64 = 0.15;
/// Duration of the observation.
const WINDOW: Duration = Duration::from_millis(500);
/// Duration for which all CPUs are asked for.
const SPIN: Duration = Duration::from_millis(400);

/// Parent and CPU time of a process, and whether its program is one of ours.
struct SampledProcess {
    parent: u32,
    used: Duration,
    ours: bool,
}

fn processes() -> BTreeMap<u32, SampledProcess> {
    let folders =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    folders.filter_map(|name| name.parse().ok()).filter_map(|pid: u32| Some((pid, seen(pid)?))).collect()
}

/// Absent if the process has ended.
fn seen(pid: u32) -> Option<SampledProcess> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain spaces and parentheses.
    let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let ours = program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"linerate"));
    Some(SampledProcess { parent, used: ThreadTimes::parse(&stat)?.cpu_time(), ours })
}

/// Share of all CPUs that nobody here gets although all of them are wanted: a quota or other virtual machines have it.
/// What tests use that run in parallel does not count.
fn hidden_load() -> f64 {
    let processors = std::thread::available_parallelism().unwrap().get();
    let begin = clock::now();
    let before = cpu::stat().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| while clock::now().since(begin) < SPIN {});
        }
    });
    1.0 - cpu::stat().unwrap().all.since(&before.all).busy_share().unwrap_or(1.0)
}

/// Share of all CPUs used by programs that no test started, here or in other virtual machines of this host.
fn others() -> f64 {
    let (before, stat_before) = (processes(), cpu::stat().unwrap());
    super::pause(WINDOW);
    let (after, stat_after) = (processes(), cpu::stat().unwrap());
    let stolen = stat_after.all.since(&stat_before.all).steal_share().unwrap_or(0.0);
    let of_tests = |mut pid: u32| {
        loop {
            let Some(seen) = after.get(&pid) else { return false };
            if seen.ours || pid == std::process::id() {
                return true;
            }
            pid = seen.parent;
        }
    };
    let since = |(pid, seen): (&u32, &SampledProcess)| {
        seen.used.saturating_sub(before.get(pid).map_or(Duration::ZERO, |before| before.used))
    };
    let used: Duration = after.iter().filter(|(pid, _)| !of_tests(**pid)).map(since).sum();
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    stolen + used.as_secs_f64() / WINDOW.as_secs_f64() / processors
}

/// Share of all CPUs that tests do not get.
fn missing() -> f64 {
    others().max(hidden_load())
}

/// Whether so much of the CPUs is missing that what a test asserts about time cannot hold.
pub(crate) fn is_busy() -> bool {
    missing() > ALLOWED
}

/// Runs a test that requires an idle machine. If it is busy before, or became busy while the test failed, this
/// records that the test was skipped.
pub(crate) fn when_idle(test: &str, body: impl FnOnce()) {
    super::take_turn();
    let skip = |missing: f64, when: &str| {
        let percent = missing * 100.0;
        let why =
            format!("{percent:.0} % of the processors {when} for the tests, and this needs an idle machine");
        super::skipped(test, &why);
    };
    let before = missing();
    if before > ALLOWED {
        return skip(before, "are missing");
    }
    let over = AtomicBool::new(false);
    let (result, meanwhile) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0.0;
            while !over.load(Ordering::Relaxed) {
                most = others().max(most);
            }
            most
        });
        let result = catch_unwind(AssertUnwindSafe(body));
        over.store(true, Ordering::Relaxed);
        (result, watch.join().unwrap())
    });
    let Err(panic) = result else { return };
    let meanwhile = meanwhile.max(missing());
    if meanwhile <= ALLOWED {
        resume_unwind(panic);
    }
    skip(meanwhile, "were missing meanwhile");
}

/// How often something is tried while other programs use the processors.
const ATTEMPTS_WHEN_BUSY: u32 = 3;

/// The result of `body`. If it panics or is not `good`, which may also panic, while other programs use the processors, which
/// does not happen each time, it is tried again, up to three times in all.
pub(crate) fn again_when_busy<T>(body: impl Fn() -> T, good: impl Fn(&T) -> bool) -> T {
    let attempt = || catch_unwind(AssertUnwindSafe(&body));
    let is_good = |found: &T| catch_unwind(AssertUnwindSafe(|| good(found))).unwrap_or(false);
    let mut result = attempt();
    for _ in 1..ATTEMPTS_WHEN_BUSY {
        if result.as_ref().is_ok_and(is_good) || !is_busy() {
            break;
        }
        result = attempt();
    }
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Runs the body of a test, again if it fails while other programs use the processors.
pub(crate) fn retried_when_busy(body: impl Fn()) {
    again_when_busy(body, |()| true);
}
