//! CPU time of the whole host, of each CPU, and of each thread of this process.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

pub use crate::system::kernel::ticks_per_second;

/// Ticks that a CPU spent in each state since boot; see [`ticks_per_second`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuTimes {
    /// User mode.
    pub user: u64,
    /// User mode with low priority.
    pub nice: u64,
    /// Kernel mode.
    pub system: u64,
    /// Doing nothing.
    pub idle: u64,
    /// Idle while a disk request was pending.
    pub iowait: u64,
    /// Interrupt handlers.
    pub irq: u64,
    /// Softirqs, where most of the network stack runs.
    pub softirq: u64,
    /// Time stolen by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// Ticks in which the CPU worked for this host.
    #[must_use]
    pub fn busy(&self) -> u64 {
        [self.user, self.nice, self.system, self.irq, self.softirq].into_iter().fold(0, u64::saturating_add)
    }

    /// All ticks, including idle and stolen ones.
    #[must_use]
    pub fn total(&self) -> u64 {
        [self.idle, self.iowait, self.steal].into_iter().fold(self.busy(), u64::saturating_add)
    }

    /// The difference to `earlier`; 0 for a counter that decreased.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            nice: self.nice.saturating_sub(earlier.nice),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            iowait: self.iowait.saturating_sub(earlier.iowait),
            irq: self.irq.saturating_sub(earlier.irq),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// Busy share of the time, 0 to 1; `None` if no tick has passed.
    #[must_use]
    pub fn busy_share(&self) -> Option<f64> {
        self.share(self.busy())
    }

    /// Share of the time in softirqs, 0 to 1; `None` if no tick has passed.
    #[must_use]
    pub fn softirq_share(&self) -> Option<f64> {
        self.share(self.softirq)
    }

    /// Share of the time stolen by the hypervisor, 0 to 1; `None` if no tick has passed.
    #[must_use]
    pub fn steal_share(&self) -> Option<f64> {
        self.share(self.steal)
    }

    fn share(&self, part: u64) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| part as f64 / total as f64)
    }
}

/// `/proc/stat`: the host's CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuStat {
    /// All CPUs together.
    pub all: CpuTimes,
    /// Each CPU, by its number.
    pub cpus: BTreeMap<u32, CpuTimes>,
    /// Interrupts handled since boot; absent if not reported.
    pub interrupts: Option<u64>,
}

impl CpuStat {
    /// Parses `/proc/stat`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut stat = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            if name == "intr" {
                // The first number is the total.
                stat.interrupts = words.next().and_then(|word| word.parse().ok());
            }
            let Some(suffix) = name.strip_prefix("cpu") else { continue };
            let times = times(words);
            if suffix.is_empty() {
                stat.all = times;
            } else if let Ok(cpu) = suffix.parse() {
                stat.cpus.insert(cpu, times);
            }
        }
        stat
    }

    /// The difference to `earlier`; a CPU that is new counts from 0.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let nothing = CpuTimes::default();
        let cpus = self.cpus.iter();
        Self {
            all: self.all.since(&earlier.all),
            cpus: cpus
                .map(|(cpu, now)| (*cpu, now.since(earlier.cpus.get(cpu).unwrap_or(&nothing))))
                .collect(),
            interrupts: self.interrupts.zip(earlier.interrupts).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Guest time (the columns after `steal`) is already part of `user` and `nice`.
fn times<'t>(words: impl Iterator<Item = &'t str>) -> CpuTimes {
    let mut column = words.map(|word| word.parse().unwrap_or(0));
    let mut next = || column.next().unwrap_or(0);
    CpuTimes {
        user: next(),
        nice: next(),
        system: next(),
        idle: next(),
        iowait: next(),
        irq: next(),
        softirq: next(),
        steal: next(),
    }
}

/// Reads the CPU time of the host; `None` if `/proc` is not readable.
#[must_use]
pub fn stat() -> Option<CpuStat> {
    fs::read_to_string("/proc/stat").ok().map(|text| CpuStat::parse(&text))
}

/// CPU time of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTimes {
    /// Thread id.
    pub tid: u32,
    /// Thread name, at most 15 bytes.
    pub name: String,
    /// Ticks in user mode.
    pub user: u64,
    /// Ticks in kernel mode.
    pub system: u64,
    /// CPU on which it last ran.
    pub cpu: Option<u32>,
}

impl ThreadTimes {
    /// Parses the `stat` file of a thread or process. The name may contain any character, so it ends at the
    /// last parenthesis.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, tail) = text.rsplit_once(')')?;
        let (tid, name) = head.split_once('(')?;
        let columns: Vec<&str> = tail.split_ascii_whitespace().collect();
        // proc(5) numbers columns from 1; the first one after the name is the third.
        let column = |number: usize| columns.get(number - 3).and_then(|word| word.parse::<u64>().ok());
        Some(Self {
            tid: tid.trim().parse().ok()?,
            name: name.to_owned(),
            user: column(14)?,
            system: column(15)?,
            cpu: column(39).and_then(|cpu| u32::try_from(cpu).ok()),
        })
    }

    /// User and system time together, with a resolution of one tick.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let ticks = self.user.saturating_add(self.system);
        let per_second = ticks_per_second();
        Duration::from_secs(ticks / per_second)
            + Duration::from_nanos(ticks % per_second * (1_000_000_000 / per_second))
    }
}

/// Time that a thread of this process was runnable without a CPU; `None` after it has ended, and where the
/// kernel does not count it.
///
/// # Source
/// sched-stats.rst of the kernel: second column of `/proc/PID/task/TID/schedstat`, in nanoseconds.
#[must_use]
pub fn waited(tid: u32) -> Option<Duration> {
    parse_wait(&fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?)
}

fn parse_wait(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  12252 7 1132 118931 558 3 70 5 2 0\n\
                        cpu0 6108 3 556 59527 262 1 25 2 1 0\n\
                        cpu1 6143 4 575 59404 296 2 45 2 1 0\n\
                        intr 223392 0 0 0\nctxt 12345\nbtime 1763756000\n";

    #[test]
    fn reads_the_columns_of_proc_stat_in_their_order() {
        let stat = CpuStat::parse(STAT);
        assert_eq!(stat.all.user, 12252);
        assert_eq!(stat.all.idle, 118_931);
        assert_eq!(stat.all.steal, 5);
        assert_eq!(stat.cpus.len(), 2);
        assert_eq!(stat.cpus[&1].softirq, 45);
        assert_eq!(stat.interrupts, Some(223_392));
        assert_eq!(CpuStat::parse("cpu 1 2 3 4\nintr many\n").interrupts, None);
        // 12252 + 7 + 1132 + 3 + 70; guest time is part of user time.
        assert_eq!(stat.all.busy(), 13_464);
        assert_eq!(stat.all.total(), 13_464 + 118_931 + 558 + 5);
    }

    #[test]
    fn shares_are_of_the_difference() {
        let earlier = CpuStat::parse("cpu 100 0 100 800 0 0 0 0\n");
        let later = CpuStat::parse("cpu 110 0 110 870 0 0 10 0\n");
        let spent = later.since(&earlier).all;
        assert_eq!(spent.busy_share(), Some(0.3));
        assert_eq!(spent.softirq_share(), Some(0.1));
        assert_eq!(earlier.since(&later).all.busy_share(), None);
    }

    #[test]
    fn a_thread_name_may_contain_brackets_and_spaces() {
        let text = "4711 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 111 222 15 16 20 0 1 0 999 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0";
        let thread = ThreadTimes::parse(text).unwrap();
        assert_eq!((thread.tid, thread.name.as_str()), (4711, "a) (b c"));
        assert_eq!((thread.user, thread.system, thread.cpu), (111, 222, Some(3)));
        assert_eq!(thread.cpu_time().as_nanos(), 333 * 1_000_000_000 / u128::from(ticks_per_second()));
    }

    #[test]
    fn the_second_column_is_the_wait() {
        assert_eq!(parse_wait("129870 3044529 2\n"), Some(Duration::from_nanos(3_044_529)));
        assert_eq!(parse_wait("129870"), None);
        let clock = crate::clock::ThreadClock::of_this_thread().unwrap();
        assert!(waited(clock.tid()).is_some() && waited(0).is_none());
    }

    #[test]
    fn this_host_and_this_process_are_readable() {
        let stat = stat().unwrap();
        assert!(!stat.cpus.is_empty() && stat.all.total() > 0);
        let own = std::process::id();
        let thread = fs::read_to_string(format!("/proc/self/task/{own}/stat")).unwrap();
        assert_eq!(ThreadTimes::parse(&thread).unwrap().tid, own);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(noise in "(cpu[0-9]{0,3})?[ -~\n()0-9]{0,200}") {
            let stat = CpuStat::parse(&noise);
            let _ = (stat.all.busy_share(), stat.since(&stat));
            let _ = ThreadTimes::parse(&noise).map(|thread| thread.cpu_time());
        }
    }
}
