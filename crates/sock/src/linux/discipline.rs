//! Queueing disciplines for the root of an interface, in the syntax of tc(8).

use std::time::Duration;

use crate::linux::netlink::attribute;
use crate::routing::token_bucket_options;

/// Packets that netem may hold: enough for 57 Gb/s over 21 ms at 1500 bytes each. With tc's default of 1000 it
/// would drop packets that it should delay.
const NETEM_PACKETS: u32 = 100_000;

/// A queueing discipline for the root of an interface, ready for netlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootDiscipline {
    pub(crate) kind: &'static str,
    /// Content of `TCA_OPTIONS`; absent for the kernel's defaults.
    pub(crate) options: Option<Vec<u8>>,
}

/// Layout of a discipline's options.
#[derive(Clone, Copy)]
enum Layout {
    /// One attribute for each option.
    Attributes,
    /// A single number: the queue limit.
    Limit,
    /// The fixed structure of `tbf`; all three options are required.
    TokenBucket,
}

/// Type of the value after an option word.
#[derive(Clone, Copy)]
enum OptionValueType {
    Count,
    /// Bytes; `k` and `m` are binary, as in tc.
    Size,
    /// Microseconds, or with a unit.
    Time,
    /// Bits per second, or with a decimal unit; converted to bytes per second for the kernel.
    Rate,
    /// No value: the word itself has this value.
    Is(u32),
}

type Word = (&'static str, u16, OptionValueType);

const FQ: &[Word] = &[
    ("limit", 1, OptionValueType::Count),
    ("flow_limit", 2, OptionValueType::Count),
    ("quantum", 3, OptionValueType::Size),
    ("initial_quantum", 4, OptionValueType::Size),
    ("pacing", 5, OptionValueType::Is(1)),
    ("nopacing", 5, OptionValueType::Is(0)),
    ("maxrate", 7, OptionValueType::Rate),
    ("refill_delay", 9, OptionValueType::Time),
    ("low_rate_threshold", 11, OptionValueType::Rate),
    ("ce_threshold", 12, OptionValueType::Time),
];
const CODEL: &[Word] = &[
    ("target", 1, OptionValueType::Time),
    ("limit", 2, OptionValueType::Count),
    ("interval", 3, OptionValueType::Time),
    ("ecn", 4, OptionValueType::Is(1)),
    ("noecn", 4, OptionValueType::Is(0)),
    ("ce_threshold", 5, OptionValueType::Time),
];
const FQ_CODEL: &[Word] = &[
    ("target", 1, OptionValueType::Time),
    ("limit", 2, OptionValueType::Count),
    ("interval", 3, OptionValueType::Time),
    ("ecn", 4, OptionValueType::Is(1)),
    ("noecn", 4, OptionValueType::Is(0)),
    ("flows", 5, OptionValueType::Count),
    ("quantum", 6, OptionValueType::Size),
    ("ce_threshold", 7, OptionValueType::Time),
    ("drop_batch", 8, OptionValueType::Count),
    ("memory_limit", 9, OptionValueType::Size),
];
const PFIFO: &[Word] = &[("limit", 0, OptionValueType::Count)];
const BFIFO: &[Word] = &[("limit", 0, OptionValueType::Size)];
const TBF: &[Word] = &[
    ("rate", 0, OptionValueType::Rate),
    ("burst", 1, OptionValueType::Size),
    ("limit", 2, OptionValueType::Size),
];

/// The supported disciplines with their options and layouts.
///
/// # Source
/// `linux/pkt_sched.h`: `TCA_FQ_*`, `TCA_CODEL_*`, `TCA_FQ_CODEL_*`, `tc_fifo_qopt`
const KINDS: &[(&str, &[Word], Layout)] = &[
    ("fq", FQ, Layout::Attributes),
    ("fq_codel", FQ_CODEL, Layout::Attributes),
    ("codel", CODEL, Layout::Attributes),
    ("pfifo", PFIFO, Layout::Limit),
    ("bfifo", BFIFO, Layout::Limit),
    ("pfifo_fast", &[], Layout::Attributes),
    ("noqueue", &[], Layout::Attributes),
    ("tbf", TBF, Layout::TokenBucket),
];

/// Why words of tc(8) are no queueing discipline that is set here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DisciplineError {
    /// The first word is no kind of discipline.
    #[error("'{kind}' is not a supported queueing discipline; supported are {known}")]
    Kind {
        /// The word.
        kind: String,
        /// The kinds that there are.
        known: String,
    },
    /// A word is none of this kind's.
    #[error("'{word}' is not an option of {kind}, which takes {takes}")]
    Word {
        /// The word.
        word: String,
        /// The kind.
        kind: &'static str,
        /// The words that it takes.
        takes: String,
    },
    /// The value after a word is missing or out of range.
    #[error("'{word}' of {kind} needs {needs}")]
    Value {
        /// The word.
        word: String,
        /// The kind.
        kind: &'static str,
        /// What belongs there.
        needs: &'static str,
    },
    /// A word is given twice.
    #[error("'{word}' of {kind} is given twice")]
    Twice {
        /// The word.
        word: String,
        /// The kind.
        kind: &'static str,
    },
    /// A token bucket is not fully described.
    #[error("tbf needs rate, burst and limit")]
    TokenBucket,
}

impl RootDiscipline {
    /// Parses the syntax of tc(8), as in `fq_codel limit 1000 target 5ms`.
    ///
    /// # Errors
    /// A text that names the word that is not understood, and the accepted ones.
    pub fn parse(text: &str) -> Result<Self, DisciplineError> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let Some(&(kind, known, layout)) = KINDS.iter().find(|(kind, ..)| *kind == name) else {
            let all: Vec<&str> = KINDS.iter().map(|(kind, ..)| *kind).collect();
            return Err(DisciplineError::Kind { kind: name.to_owned(), known: all.join(", ") });
        };
        let mut given: Vec<(u16, u32)> = Vec::new();
        while let Some(word) = words.next() {
            let Some(&(_, attribute, value)) = known.iter().find(|(name, ..)| *name == word) else {
                let all: Vec<&str> = known.iter().map(|(name, ..)| *name).collect();
                let takes = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
                return Err(DisciplineError::Word { word: word.to_owned(), kind, takes });
            };
            let number = match value {
                OptionValueType::Is(number) => Some(number),
                _ => words.next().and_then(|text| number(text, value)),
            };
            let missing = || DisciplineError::Value { word: word.to_owned(), kind, needs: needs(value) };
            let number = number.ok_or_else(missing)?;
            if given.iter().any(|(other, _)| *other == attribute) {
                return Err(DisciplineError::Twice { word: word.to_owned(), kind });
            }
            given.push((attribute, number));
        }
        Ok(Self { kind, options: options(layout, &given)? })
    }

    /// netem: delays every packet by `delay` and drops the share `loss` of them at random.
    ///
    /// # Units
    /// `loss` is a share from 0 to 1.
    ///
    /// # Source
    /// `linux/pkt_sched.h`: `tc_netem_qopt`, `TCA_NETEM_LATENCY64`
    #[must_use]
    pub fn netem(delay: Duration, loss: f64) -> Self {
        const LATENCY_IN_NS: u16 = 10;
        /// Length of a tick of the kernel's packet schedulers.
        const TICK_NS: u128 = 64;
        let ticks = u32::try_from(delay.as_nanos() / TICK_NS).unwrap_or(u32::MAX);
        let share = (loss.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32;
        // Latency, limit, loss; gap, duplicates and jitter are zero.
        let mut options: Vec<u8> =
            [ticks, NETEM_PACKETS, share, 0, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let ns = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
        options.extend(attribute(LATENCY_IN_NS, &ns.to_ne_bytes()));
        Self { kind: "netem", options: Some(options) }
    }
}

fn options(layout: Layout, given: &[(u16, u32)]) -> Result<Option<Vec<u8>>, DisciplineError> {
    let find = |wanted: u16| given.iter().find(|(name, _)| *name == wanted).map(|(_, number)| *number);
    Ok(match layout {
        Layout::Attributes if given.is_empty() => None,
        Layout::Attributes => {
            let all = given.iter().flat_map(|(name, number)| attribute(*name, &number.to_ne_bytes()));
            Some(all.collect())
        }
        Layout::Limit => find(0).map(|limit| limit.to_ne_bytes().to_vec()),
        Layout::TokenBucket => {
            let (Some(rate), Some(burst), Some(limit)) = (find(0), find(1), find(2)) else {
                return Err(DisciplineError::TokenBucket);
            };
            Some(token_bucket_options(u64::from(rate), burst, limit))
        }
    })
}

fn needs(value: OptionValueType) -> &'static str {
    match value {
        OptionValueType::Count | OptionValueType::Is(_) => "a whole number after it",
        OptionValueType::Size => "a number of bytes after it, such as 1514 or 32k",
        OptionValueType::Time => "a time after it, such as 5ms",
        OptionValueType::Rate => "a rate after it, such as 100mbit, at most 34 Gb/s",
    }
}

fn number(text: &str, value: OptionValueType) -> Option<u32> {
    let units: &[(&str, f64)] = match value {
        OptionValueType::Count | OptionValueType::Is(_) => &[],
        OptionValueType::Size => {
            &[("kb", 1024.0), ("k", 1024.0), ("mb", 1_048_576.0), ("m", 1_048_576.0), ("b", 1.0)]
        }
        OptionValueType::Time => &[("us", 1.0), ("ms", 1e3), ("s", 1e6)],
        OptionValueType::Rate => {
            &[("gbit", 1e9 / 8.0), ("mbit", 1e6 / 8.0), ("kbit", 1e3 / 8.0), ("bit", 1.0 / 8.0)]
        }
    };
    let bare = if matches!(value, OptionValueType::Rate) { 1.0 / 8.0 } else { 1.0 };
    let found = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (digits, size) = found.unwrap_or((text, bare));
    // Digits only: parsing as a float would also accept "inf" and "1e9".
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = digits.parse::<f64>().ok().filter(|_| plain)? * size;
    let whole = number.fract() == 0.0 || !units.is_empty();
    (whole && number <= f64::from(u32::MAX)).then_some(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    /// Options that tc 6.1.0 passes to the kernel for the same words, recorded with strace.
    #[test]
    fn the_messages_to_the_kernel_are_those_of_tc() {
        for (words, hex) in [
            ("fq limit 200 nopacing maxrate 100mbit", "08000100c8000000 0800050000000000 0800070020bcbe00"),
            (
                "fq_codel limit 1000 flows 64 quantum 1514 interval 40ms target 3ms noecn",
                "08000200e8030000 0800050040000000 08000600ea050000 08000300409c0000 08000100b80b0000 0800040000000000",
            ),
            ("codel limit 100 target 2ms ecn", "0800020064000000 08000100d0070000 0800040001000000"),
            ("pfifo limit 77", "4d000000"),
            ("bfifo limit 5000", "88130000"),
        ] {
            let read = RootDiscipline::parse(words).unwrap();
            assert_eq!(read.options, Some(bytes(hex)), "{words}");
            assert_eq!(read.kind, words.split(' ').next().unwrap());
        }
        for plain in ["noqueue", "pfifo_fast", "fq"] {
            assert_eq!(RootDiscipline::parse(plain).unwrap().options, None, "{plain}");
        }
    }

    #[test]
    fn netem_messages_are_those_of_tc_with_a_larger_limit_and_the_delay_in_nanoseconds_too() {
        let netem = RootDiscipline::netem(Duration::from_millis(25), 0.01);
        // tc 6.1.0: `netem delay 25ms loss 1% limit 100000`.
        let of_tc = bytes("e1f50500 a0860100 295c8f02 00000000 00000000 00000000");
        let ns = attribute(10, &25_000_000_i64.to_ne_bytes());
        assert_eq!(netem.options, Some([of_tc, ns].concat()));
        let short = RootDiscipline::netem(Duration::from_micros(10), 0.0);
        assert_eq!(short.options.unwrap()[..4], bytes("9c000000"), "tc 6.1.0: `netem delay 10us`");
    }

    #[test]
    fn words_that_are_not_understood_are_named_with_what_would_be() {
        for (text, words) in [
            ("", "fq_codel"),
            ("cake", "'cake'"),
            ("fq_codel limits 4", "limit"),
            ("fq limit", "whole number"),
            ("fq limit -1", "whole number"),
            ("fq limit 1.5", "whole number"),
            ("fq limit 4294967296", "whole number"),
            ("fq limit inf", "whole number"),
            ("fq maxrate 400gbit", "34 Gb/s"),
            ("fq limit 1 limit 2", "twice"),
            ("codel ecn noecn", "twice"),
            ("noqueue limit 3", "nothing"),
            ("tbf rate 1mbit", "burst"),
            ("codel target 5min", "a time"),
        ] {
            let error = RootDiscipline::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(fq|tbf|pfifo|codel)?( (limit|rate|target|burst|ecn|[0-9a-z.]{0,8})){0,6}") {
            let _ = RootDiscipline::parse(&text);
        }
    }
}
