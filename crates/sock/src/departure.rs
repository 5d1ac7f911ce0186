//! Departure times of datagrams: the queueing discipline holds each until its time (SO_TXTIME), so that the gaps between
//! them do not depend on when this program is on a CPU.

pub use crate::system::departure::DepartureBatch;

/// The clock of departure times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartureClock {
    /// The monotonic clock, which `fq` uses.
    Monotonic,
    /// International atomic time, which `etf` is usually configured with; the kernel reserves it for CAP_NET_ADMIN.
    Tai,
}

impl DepartureClock {
    /// The clock of an interface on which these disciplines queue what it sends; absent if one of them ignores departure
    /// times. `mq` and `mqprio` only distribute packets to the others.
    ///
    /// # Source
    /// `net/sched/sch_fq.c`, `net/sched/sch_etf.c`
    #[must_use]
    pub fn of_disciplines(kinds: &[String]) -> Option<Self> {
        let mut queues = kinds.iter().map(String::as_str).filter(|kind| !matches!(*kind, "mq" | "mqprio"));
        let clock = match queues.next()? {
            "fq" => Self::Monotonic,
            "etf" => Self::Tai,
            _ => return None,
        };
        let same = |kind| matches!((kind, clock), ("fq", Self::Monotonic) | ("etf", Self::Tai));
        queues.all(same).then_some(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_must_hold_datagrams_by_the_same_clock() {
        let clock = |kinds: &str| {
            let kinds: Vec<String> = kinds.split_whitespace().map(str::to_owned).collect();
            DepartureClock::of_disciplines(&kinds)
        };
        for fq in ["fq", "mq fq fq fq fq"] {
            assert_eq!(clock(fq), Some(DepartureClock::Monotonic), "{fq}");
        }
        for etf in ["etf", "mqprio etf etf"] {
            assert_eq!(clock(etf), Some(DepartureClock::Tai), "{etf}");
        }
        for other in [
            "",
            "mq",
            "noqueue",
            "pfifo_fast",
            "fq_codel",
            "mq fq fq_codel",
            "mqprio etf fq",
            "htb fq",
            "tbf",
        ] {
            assert_eq!(clock(other), None, "{other}");
        }
    }
}
