//! Ceilings, and how a rate is compared with one.

use linerate_units::{Bitrate, Ratio};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::names::names;

/// Share by which a rate may exceed a physical ceiling before it is impossible: the error of two free-running
/// clocks.
const CLOCK_TOLERANCE: f64 = 200e-6;

names! {
    /// A limit that alone would keep a rate at its ceiling.
    pub enum Limit {
        /// The slowest link of the path, with the rate reported by its interface or specified by the user.
        Link = "link",
        /// The configured rate of the sender's own queueing discipline.
        Qdisc = "qdisc",
        /// A link or shaper on the path whose rate is only derived from the measured one.
        LinkInferred = "link_inferred",
        /// The receive window divided by the round-trip time.
        ReceiverWindow = "receiver_window",
        /// The send buffer divided by the round-trip time.
        SendBuffer = "send_buffer",
        /// The rate that congestion control reaches at the measured loss.
        Loss = "loss",
        /// One core of the sending host.
        CpuSender = "cpu_sender",
        /// One core of the receiving host.
        CpuReceiver = "cpu_receiver",
        /// The cores of both hosts of a path described by the user.
        Cpu = "cpu",
        /// The requested pacing rate.
        Pacing = "pacing",
        /// The rate that the sending application offers or the receiving one reads.
        Application = "application",
        /// The memory copy rate of a host that has both ends.
        HostMemory = "host_memory",
        /// The average capacity of a LAG under its hash.
        Lag = "lag",
        /// The bus slot of a network card.
        Bus = "bus",
        /// The slower one of the disks.
        Disk = "disk",
    }
}

impl Limit {
    /// The name for use in a sentence, with spaces.
    #[must_use]
    pub fn words(&self) -> String {
        self.name().replace('_', " ")
    }
}

/// A ceiling: the rate that one limit alone would allow.
///
/// # Units
/// bits per second of application payload (goodput).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// The limit.
    pub limit: Limit,
    /// The rate it allows, application payload per second.
    pub bitrate_bps: f64,
    /// The origin of the figure, for the user.
    pub because: ForeignText,
    /// Rate allowed in addition over the duration of this test, from a token bucket that was full at the start
    /// and data already on the way. Absent if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slack_bps: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Ceiling {
    /// Whether the limit cannot be exceeded: a link, a rate specified by the user, or a queueing discipline
    /// that was read. A rate above such a ceiling is wrong; a rate above any other ceiling disproves the
    /// ceiling.
    #[must_use]
    pub fn is_wall(&self) -> bool {
        matches!(self.limit, Limit::Link | Limit::Qdisc)
    }

    /// Whether it was measured on a host before or during the run: memory copies, processors, disks.
    #[must_use]
    pub fn is_of_a_host(&self) -> bool {
        matches!(self.limit, Limit::HostMemory | Limit::CpuSender | Limit::CpuReceiver | Limit::Disk)
    }

    /// Whether `rate` exceeds it by more than its slack and the possible difference of two clocks.
    #[must_use]
    pub fn is_exceeded_by(&self, rate: Bitrate) -> bool {
        rate.bps() > (self.bitrate_bps + self.slack_bps.max(0.0)) * (1.0 + CLOCK_TOLERANCE)
    }
}

/// A rate as a share of its ceiling, at most 1.
///
/// A rate above its ceiling has no share: either the rate is impossible, or the ceiling is wrong.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CeilingShare(Ratio);

impl CeilingShare {
    /// `rate` divided by `ceiling`. 1 if the rate is above by no more than two clocks can differ; absent if it
    /// is above by more, or if the ceiling is not a positive rate.
    #[must_use]
    pub fn of(rate: Bitrate, ceiling: &Ceiling) -> Option<Self> {
        Self::within(rate, ceiling).filter(|_| !ceiling.is_exceeded_by(rate))
    }

    /// The same if something else explains an excess over the ceiling; the share is 1 in that case.
    #[must_use]
    pub(crate) fn within(rate: Bitrate, ceiling: &Ceiling) -> Option<Self> {
        let ratio = rate.bps() / Bitrate::from_bps(ceiling.bitrate_bps)?.bps();
        Ratio::new(ratio.min(1.0)).filter(|_| ratio.is_finite()).map(Self)
    }

    /// The share, at most 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0.get()
    }
}

impl std::fmt::Display for CeilingShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(limit: Limit, bitrate_bps: f64) -> Ceiling {
        Ceiling { limit, bitrate_bps, because: "".into(), slack_bps: 0.0 }
    }

    fn share(bps: f64, ceiling_bps: f64) -> Option<f64> {
        CeilingShare::of(Bitrate::from_bps(bps).unwrap(), &ceiling(Limit::Link, ceiling_bps))
            .map(CeilingShare::get)
    }

    #[test]
    fn two_clocks_may_differ_and_no_more() {
        assert_eq!(share(500.0, 1000.0), Some(0.5));
        assert_eq!(share(1e6, 1e6), Some(1.0));
        // 200 ppm of 10^6 are 200.
        assert_eq!(share(1_000_200.0, 1e6), Some(1.0));
        assert_eq!(share(1_000_201.0, 1e6), None);
        assert_eq!((share(1.0, 0.0), share(0.0, 0.0), share(1.0, f64::NAN)), (None, None, None));
        assert_eq!(share(f64::MAX, 1e-300), None);
    }

    #[test]
    fn the_whole_reads_100_percent() {
        let whole =
            CeilingShare::of(Bitrate::from_bps(1_000_100.0).unwrap(), &ceiling(Limit::Link, 1e6)).unwrap();
        assert_eq!(whole.to_string(), "100.0 %");
        assert_eq!(serde_json::to_string(&whole).unwrap(), "1.0");
    }

    #[test]
    fn a_bucket_that_was_full_is_no_contradiction() {
        // 50 Mb/s and a bucket of 1 MB over 10 s: 0.8 Mb/s beyond it.
        let bucket = Ceiling { slack_bps: 0.8e6, ..ceiling(Limit::Qdisc, 50e6) };
        let share = |bps: f64| CeilingShare::of(Bitrate::from_bps(bps).unwrap(), &bucket);
        assert_eq!(share(50.7e6).map(|share| share.to_string()), Some("100.0 %".to_owned()));
        assert_eq!(share(50.9e6), None);
        assert_eq!(share(25e6).map(CeilingShare::get), Some(0.5), "the slack is no part of the ceiling");
        let text = serde_json::to_string(&bucket).unwrap();
        assert_eq!(serde_json::from_str::<Ceiling>(&text).unwrap(), bucket);
        assert!(!serde_json::to_string(&ceiling(Limit::Link, 1.0)).unwrap().contains("slack"));
    }

    #[test]
    fn only_what_is_known_of_the_path_is_a_wall_and_only_hosts_are_measured() {
        assert!(ceiling(Limit::Link, 1.0).is_wall() && ceiling(Limit::Qdisc, 1.0).is_wall());
        assert!(!ceiling(Limit::LinkInferred, 1.0).is_wall());
        assert!(ceiling(Limit::HostMemory, 1.0).is_of_a_host() && !ceiling(Limit::Loss, 1.0).is_of_a_host());
    }
}
