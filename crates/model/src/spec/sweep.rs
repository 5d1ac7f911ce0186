//! A sweep over message sizes: which sizes, in which direction, and how often.

use std::fmt;

use linerate_units::{Bytes, ParseError, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::{SocketKnobs, SpecError, Traffic};
use crate::foreign_text::ForeignText;

/// A sweep over message sizes: which sizes, in which direction, and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sweep {
    /// Send in one direction only, from here to the server, whose clock measures [default: ping-pong]
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "bidir", help_heading = "Messages"))]
    pub stream: bool,
    /// Both ends send a message at the same time and wait for the other's before the next
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Messages"))]
    pub bidir: bool,
    /// Exactly these sizes, for example 1,64,1K..16M; a range contains successive doublings
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "LIST", conflicts_with_all = ["from", "to", "points_per_octave", "perturb"], help_heading = "Messages")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<SizeList>,
    /// Smallest size
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "BYTES", default_value = "1", help_heading = "Messages")
    )]
    #[serde(rename = "from_bytes")]
    pub from: Bytes,
    /// Largest size
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "BYTES", default_value = "8M", help_heading = "Messages")
    )]
    #[serde(rename = "to_bytes")]
    pub to: Bytes,
    /// Number of sizes per doubling, evenly spaced [default: NetPIPE's own sizes, about two]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "POINTS", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Messages")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points_per_octave: Option<u32>,
    /// Also measure at this distance below and above each size; 0 to disable
    #[cfg_attr(
        feature = "clap",
        arg(
            long,
            value_name = "BYTES",
            default_value_t = 3,
            conflicts_with = "points_per_octave",
            help_heading = "Messages"
        )
    )]
    #[serde(rename = "perturb_bytes")]
    pub perturb: u64,
    /// Trials of each size; below six the median has no interval
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "TRIALS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Messages")
    )]
    pub trials: u32,
    /// Time for all sizes together; slow large messages may double it [default: 30s]
    #[cfg_attr(
        feature = "clap",
        arg(short = 't', long = "time", value_name = "SECONDS", help_heading = "Messages")
    )]
    #[serde(rename = "time_ns", skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Order of the trials
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t, help_heading = "Messages"))]
    pub order: TrialSequence,
    /// No more trials of a size whose median is known this well (95 % interval), for example 2%
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", help_heading = "Messages"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Ratio>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            stream: false,
            bidir: false,
            sizes: None,
            from: Bytes::new(1),
            to: Bytes::new(8 << 20),
            points_per_octave: None,
            perturb: 3,
            trials: 7,
            time: None,
            order: TrialSequence::Ascending,
            until: None,
        }
    }
}

/// The order of the trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialSequence {
    /// All trials of a size, then those of the next larger one
    #[default]
    Ascending,
    /// One trial of every size, then the next one of every size: changes over time affect all sizes alike
    Interleaved,
}

/// Direction of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageMode {
    /// To the server and back.
    PingPong,
    /// To the server only.
    Stream,
    /// In both directions at the same time.
    Both,
}

impl MessageMode {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PingPong => "ping-pong",
            Self::Stream => "stream",
            Self::Both => "bidir",
        }
    }
}

/// Sizes as entered, with ranges expanded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SizeList(pub Vec<Bytes>);

/// Largest message, and most sizes of a sweep.
const MAX_MESSAGE: Bytes = Bytes::new(Sweep::MAX_BYTES);
const MAX_SIZES: usize = 2_000;

impl Sweep {
    /// Bytes of the largest message.
    pub const MAX_BYTES: u64 = 64 << 20;

    /// Direction of the messages.
    #[must_use]
    pub const fn mode(&self) -> MessageMode {
        if self.stream {
            MessageMode::Stream
        } else if self.bidir {
            MessageMode::Both
        } else {
            MessageMode::PingPong
        }
    }

    /// The time for all sizes together.
    #[must_use]
    pub fn measured(&self) -> Span {
        self.time.unwrap_or(Span::from_secs(30))
    }

    /// The longest possible duration of the sweep.
    #[must_use]
    pub fn longest(&self) -> Span {
        self.measured().saturating_mul(2)
    }

    /// The longest message of the sweep.
    #[must_use]
    pub fn longest_message(&self) -> Bytes {
        let listed = self.sizes.as_ref().and_then(|SizeList(sizes)| sizes.iter().copied().max());
        let perturbed = Bytes::new(self.to.get().saturating_add(self.perturb));
        listed.unwrap_or(perturbed).min(MAX_MESSAGE)
    }

    pub(super) fn check(&self, traffic: &Traffic, socket: &SocketKnobs) -> Result<(), SpecError> {
        let fail = |knob, trouble: &str, remedy: &str| {
            Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
        };
        if self.stream && self.bidir {
            return fail("--stream", "messages go in one direction or in both", "remove it or --bidir");
        }
        if let Some(SizeList(sizes)) = &self.sizes {
            if sizes.is_empty() || sizes.len() > MAX_SIZES {
                return fail("--sizes", "the number of sizes is out of range", "give 1 to 2000 sizes");
            }
            if sizes.iter().any(|size| size.get() == 0 || *size > MAX_MESSAGE) {
                return fail("--sizes", "a size is out of range", "give 1 byte to 64M");
            }
        }
        if self.from.get() == 0 || self.from > MAX_MESSAGE {
            return fail("--from", "the size is out of range", "give 1 byte to 64M");
        }
        if self.to < self.from || self.to > MAX_MESSAGE {
            return fail("--to", "the size is out of range", "give the size of --from to 64M");
        }
        if self.points_per_octave.is_some_and(|points| points == 0 || points > 64) {
            return fail("--points-per-octave", "the number is out of range", "give 1 to 64");
        }
        if self.trials == 0 || self.trials > 1000 {
            return fail("--trials", "the number of trials is out of range", "give 1 to 1000");
        }
        if self.time.is_some_and(|time| time < Span::from_ms(100) || time > Span::from_secs(43_200)) {
            return fail("--time", "the time is out of range", "give 0.1 to 43200 seconds");
        }
        if self.until.is_some_and(|share| share.get() < 1e-4 || share.get() > 0.5) {
            return fail("--until", "the share is out of range", "give 0.01% to 50%");
        }
        if traffic.udp || traffic.streams != 1 {
            return fail("sweep", "a series uses one TCP connection", "remove -u and -P");
        }
        if socket.io.is_some() || socket.zerocopy || socket.skip_rx_copy {
            let remedy = "remove --io, --zerocopy and --skip-rx-copy";
            return fail("sweep", "every message is copied to and from the program", remedy);
        }
        Ok(())
    }
}

/// Why a text is no list of message sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeListError {
    /// A size is no number of bytes.
    Size(ParseError),
    /// The part of the text that is out of range.
    Range(ForeignText),
    /// The list has this number of sizes, which is more than are measured.
    Count(usize),
}

impl fmt::Display for SizeListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(error) => error.fmt(f),
            Self::Range(part) => write!(f, "'{part}': give sizes from 1 byte to 64M, the smaller one first"),
            Self::Count(count) => write!(f, "{count} sizes; at most {MAX_SIZES} are allowed"),
        }
    }
}

impl std::error::Error for SizeListError {}

impl std::str::FromStr for SizeList {
    type Err = SizeListError;

    /// Sizes and ranges of sizes, separated by commas; in ascending order, each once.
    fn from_str(text: &str) -> Result<Self, SizeListError> {
        let mut sizes = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let size = |text: &str| text.parse::<Bytes>().map_err(SizeListError::Size);
            let (first, last) = (size(first)?, size(last)?);
            if first.get() == 0 || last > MAX_MESSAGE || last < first {
                return Err(SizeListError::Range(part.into()));
            }
            let doubles = std::iter::successors(Some(first.get()), |size| size.checked_mul(2));
            sizes.extend(doubles.take_while(|size| *size <= last.get()).map(Bytes::new));
        }
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() > MAX_SIZES {
            return Err(SizeListError::Count(sizes.len()));
        }
        Ok(Self(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SendMethod, TestSpec};

    fn sizes(text: &str) -> Result<Vec<u64>, SizeListError> {
        text.parse::<SizeList>().map(|list| list.0.into_iter().map(Bytes::get).collect())
    }

    #[test]
    fn sizes_and_ranges_as_people_type_them() {
        assert_eq!(sizes("64,1,1K..5000,64"), Ok(vec![1, 64, 1024, 2048, 4096]));
        assert_eq!(sizes("1kB"), Ok(vec![1000]));
        for wrong in ["", "0", "1,", "x", "2..1", "1..", "65M", "0..4"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let knob = |change: &dyn Fn(&mut TestSpec, &mut Sweep)| {
            let (mut spec, mut sweep) = (TestSpec::default(), Sweep::default());
            change(&mut spec, &mut sweep);
            spec.sweep = Some(sweep);
            spec.check().map_err(|error| error.knob)
        };
        assert_eq!(knob(&|_, _| {}), Ok(()));
        assert_eq!(knob(&|_, sweep| (sweep.stream, sweep.bidir) = (true, true)), Err("--stream"));
        assert_eq!(knob(&|_, sweep| sweep.sizes = Some(SizeList(Vec::new()))), Err("--sizes"));
        assert_eq!(knob(&|_, sweep| sweep.sizes = Some(SizeList(vec![Bytes::new(0)]))), Err("--sizes"));
        assert_eq!(knob(&|_, sweep| sweep.from = Bytes::new(0)), Err("--from"));
        assert_eq!(knob(&|_, sweep| sweep.from = Bytes::new(9 << 20)), Err("--to"));
        assert_eq!(knob(&|_, sweep| sweep.to = Bytes::new(65 << 20)), Err("--to"));
        assert_eq!(knob(&|_, sweep| sweep.points_per_octave = Some(0)), Err("--points-per-octave"));
        assert_eq!(knob(&|_, sweep| sweep.trials = 0), Err("--trials"));
        assert_eq!(knob(&|_, sweep| sweep.time = Some(Span::from_ms(99))), Err("--time"));
        assert_eq!(knob(&|_, sweep| sweep.until = Ratio::new(0.6)), Err("--until"));
        assert_eq!(knob(&|spec, _| spec.traffic.streams = 2), Err("sweep"));
        assert_eq!(knob(&|spec, _| spec.socket.io = Some(SendMethod::Zerocopy)), Err("sweep"));
    }

    #[test]
    fn an_older_specification_has_no_series_and_a_new_one_reads_back() {
        let mut spec = TestSpec::default();
        assert!(serde_json::to_value(&spec).unwrap().get("sweep").is_none());
        spec.sweep = Some(Sweep { sizes: Some(SizeList(vec![Bytes::new(7)])), ..Sweep::default() });
        let text = serde_json::to_string(&spec).unwrap();
        assert!(text.contains(r#""sizes":[7],"from_bytes":1,"to_bytes":8388608"#), "{text}");
        assert_eq!(serde_json::from_str::<TestSpec>(&text).unwrap(), spec);
    }
}
