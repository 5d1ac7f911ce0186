//! Datagrams: their number, the version that wrote them, and the server's answer to the last one.

use super::wire::{TestHeader, put, read_u32};

/// Bytes of a server report as 2.1.8 writes it.
pub const REPORT_BYTES: usize = 128;

/// Flag of a server report: counts follow.
const COUNTS_FOLLOW: u32 = 0x8000_0000;

/// Flag of a server report: transit times follow.
const TIMES_FOLLOW: u32 = 0x4000_0000;

/// Flag of a server report: the high halves of the counts follow.
const WIDE_COUNTS: u32 = 0x0800_0000;

/// Where the counts of a report begin, after number and time, and bytes of the transit times.
const COUNTS_AT: usize = 16;

/// What 2.0.10 to 2.0.13 leave in the place of the high half: the pattern of every buffer from byte 12 on.
const PATTERN_AT_HIGH_HALF: u32 = u32::from_be_bytes(*b"2345");

/// How a client numbers its datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// 2.0.9 and earlier: 4 bytes, then the time; 12 bytes altogether. Numbers begin at 0.
    Old,
    /// 2.0.10 to 2.0.13: 16 bytes like [`Generation::New`], but numbers begin at 0, the last one is negated by
    /// its sign bit alone, and the counts of a report are 11 words.
    Between {
        /// Whether the high half is used (`--udp-counters-64bit`). Otherwise it is not written at all.
        wide: bool,
    },
    /// Later versions: the high half follows the time; 16 bytes altogether. Numbers begin at 1.
    New,
}

impl Generation {
    /// Bytes of number and time.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Old => 12,
            Self::Between { .. } | Self::New => 16,
        }
    }

    /// Number of the first datagram.
    pub(super) const fn first_number(self) -> u64 {
        match self {
            Self::Old | Self::Between { .. } => 0,
            Self::New => 1,
        }
    }

    /// Words of the counts in a report, from its flags to the jitter.
    const fn count_words(self) -> usize {
        match self {
            Self::Old | Self::New => 10,
            Self::Between { .. } => 11,
        }
    }
}

/// How the first datagram is numbered, and its header if it has one.
///
/// - 2.0.10 to 2.0.13 number in 4 bytes by default, and leave the pattern where the high half would be. With
///   `--udp-counters-64bit` they number from 0, and their header does not say that numbers have 8 bytes.
/// - The base header of 2.0.9 and earlier begins in the word where later versions have the high half: old flags,
///   then a small number of connections and a port.
/// - With `-C` there is only the pattern. Then 2.0.9 and earlier look like 2.0.10 until the last datagram
///   (`last_number`).
#[must_use]
pub fn opening_header(bytes: &[u8]) -> (Generation, Option<TestHeader>) {
    let header = TestHeader::read_udp(bytes, COUNTS_AT);
    if read_u32(bytes, 12) == Some(PATTERN_AT_HIGH_HALF) {
        return (Generation::Between { wide: false }, header);
    }
    if header.is_some() {
        let wide = super::wire::numbers_are_wide(bytes, COUNTS_AT);
        return (if wide { Generation::New } else { Generation::Between { wide: true } }, header);
    }
    match TestHeader::read_old(bytes, Generation::Old.header_bytes()) {
        Some(header) => (Generation::Old, Some(header)),
        None if number_of(bytes, Generation::New) == Some(0) => (Generation::Between { wide: true }, None),
        None => (Generation::New, None),
    }
}

/// The number of a datagram; negative in the last one.
#[must_use]
pub fn number_of(bytes: &[u8], generation: Generation) -> Option<i64> {
    let low = read_u32(bytes, 0)?;
    Some(match generation {
        Generation::Old | Generation::Between { wide: false } => match negation(low >> 30) {
            Negation::SignBit => -i64::from(low & !(1 << 31)).max(1),
            _ => i64::from(low as i32),
        },
        Generation::Between { wide: true } | Generation::New => {
            let number = u64::from(read_u32(bytes, 12)?) << 32 | u64::from(low);
            match negation((number >> 62) as u32) {
                Negation::SignBit => -((number & !(1 << 63)) as i64).max(1),
                _ => number as i64,
            }
        }
    })
}

/// How a last number is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Negation {
    /// It is not negative.
    No,
    /// Two's complement: 2.0.9 and earlier, and versions after 2.0.13.
    Complement,
    /// Its sign bit is set: 2.0.10 to 2.0.13.
    SignBit,
}

/// The negation of a number with these highest two bits. No client sends enough datagrams to set the second
/// bit of a positive number.
const fn negation(highest: u32) -> Negation {
    match highest {
        2 => Negation::SignBit,
        3 => Negation::Complement,
        _ => Negation::No,
    }
}

/// The number in the last datagram without its sign, and how that client numbers: with `-C`, a client of 2.0.9 or
/// earlier differs from one of 2.0.10 only here. Absent if it is not a last datagram.
pub(super) fn last_number(bytes: &[u8], generation: Generation) -> Option<(u64, Generation)> {
    let number = number_of(bytes, generation).filter(|number| *number < 0)?;
    let complement = read_u32(bytes, 0).is_some_and(|low| negation(low >> 30) == Negation::Complement);
    let generation = match generation {
        Generation::Between { wide: false } if complement => Generation::Old,
        other => other,
    };
    Some((number.unsigned_abs(), generation))
}

/// Whether these bytes can begin a datagram of any version: a number, then a time of this century.
pub(super) fn is_plausible(bytes: &[u8]) -> bool {
    // 9 September 2001, when the seconds reached ten digits.
    const SECONDS: u32 = 1_000_000_000;
    read_u32(bytes, 4).is_some_and(|seconds| seconds >= SECONDS)
        && read_u32(bytes, 8).is_some_and(|micros| micros < 1_000_000)
        && bytes.len() >= 16
}

/// The last datagram: a negative number before the usual content.
pub(super) fn last(head: &[u8], length: usize, number: i64, wall: (u32, u32)) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| b'0' + (at % 10) as u8).collect();
    for (byte, head) in bytes.iter_mut().zip(head) {
        *byte = *head;
    }
    for (at, value) in [number as u32, wall.0, wall.1, (number >> 32) as u32].into_iter().enumerate() {
        put(&mut bytes, at * 4, value);
    }
    bytes
}

/// The counts of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Payload bytes of datagrams.
    pub bytes: u64,
    /// Duration: seconds and microseconds.
    pub duration: (u32, u32),
    /// Number of lost datagrams.
    pub lost: u64,
    /// Number of datagrams out of order.
    pub out_of_order: u64,
    /// Highest number received.
    pub datagrams: u64,
    /// Jitter: seconds and microseconds.
    pub jitter: (u32, u32),
    /// Transit times, if the server reports them.
    pub transit: Option<TransitReport>,
}

/// Transit times in a server's report, microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransitReport {
    /// Smallest.
    pub min_us: u64,
    /// Largest.
    pub max_us: u64,
    /// Mean.
    pub mean_us: u64,
    /// Standard deviation.
    pub stdev_us: u64,
    /// Number of datagrams.
    pub packets: u32,
    /// Datagrams per second.
    pub packets_per_second: u32,
}

impl TransitReport {
    /// Writes 15 words after the counts, which end at `end`.
    fn put(&self, bytes: &mut [u8], end: usize) {
        let count = u64::from(self.packets);
        let variance = self.stdev_us.saturating_mul(self.stdev_us);
        // The squares are in units of 10^-12 s², in the field where times have seconds.
        let squares = |value: u64| value.min(u64::from(u32::MAX)).saturating_mul(1_000_000);
        let times = [
            self.min_us,
            self.max_us,
            self.mean_us.saturating_mul(count),
            self.mean_us,
            squares(variance.saturating_mul(count.saturating_sub(1))),
            squares(variance),
        ];
        for (at, micros) in times.into_iter().enumerate() {
            put(bytes, end + at * 8, (micros / 1_000_000) as u32);
            put(bytes, end + 4 + at * 8, (micros % 1_000_000) as u32);
        }
        for (at, value) in [self.packets, self.packets_per_second, 1].into_iter().enumerate() {
            put(bytes, end + 48 + at * 4, value);
        }
    }
}

impl ServerReport {
    /// Encodes the answer to a client's last datagram, which is repeated for an old client.
    #[must_use]
    pub fn encode(&self, generation: Generation, last: &[u8]) -> Vec<u8> {
        let own = generation.header_bytes();
        let mut bytes = match generation {
            Generation::New | Generation::Between { .. } => vec![0; REPORT_BYTES],
            Generation::Old => {
                let mut echo = last.to_vec();
                echo.resize(last.len().clamp(own + 40, 65_507), 0);
                echo
            }
        };
        let transit = self.transit.filter(|_| generation != Generation::Old);
        let mut flags = COUNTS_FOLLOW;
        if generation == Generation::New {
            flags |= WIDE_COUNTS;
        }
        if transit.is_some() {
            flags |= TIMES_FOLLOW;
        }
        let between = matches!(generation, Generation::Between { .. });
        let words = [flags, (self.bytes >> 32) as u32, self.bytes as u32, self.duration.0, self.duration.1]
            .into_iter()
            .chain([self.lost as u32, self.out_of_order as u32, self.datagrams as u32])
            .chain(between.then_some((self.datagrams >> 32) as u32))
            .chain([self.jitter.0, self.jitter.1]);
        for (at, value) in words.enumerate() {
            put(&mut bytes, own + at * 4, value);
        }
        if let Some(transit) = transit {
            transit.put(&mut bytes, own + generation.count_words() * 4);
        }
        if generation == Generation::New {
            for (at, count) in [self.lost, self.out_of_order, self.datagrams].into_iter().enumerate() {
                put(&mut bytes, 116 + at * 4, (count >> 32) as u32);
            }
        }
        bytes
    }

    /// Decodes the server's answer in either layout; absent if it contains no counts.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let field = |at| read_u32(bytes, at);
        let old = field(0)? != 0 && field(12)? & COUNTS_FOLLOW != 0;
        let new =
            (0..4).all(|at| field(at * 4) == Some(0)) && field(16).is_some_and(|w| w & COUNTS_FOLLOW != 0);
        let own = match (old, new) {
            (true, _) => Generation::Old.header_bytes(),
            (_, true) => Generation::New.header_bytes(),
            _ => return None,
        };
        let flags = field(own)?;
        let at = |number: usize| field(own + number * 4);
        let high = |at| u64::from(if flags & WIDE_COUNTS != 0 { field(at).unwrap_or(0) } else { 0 }) << 32;
        let transit = (new && flags & TIMES_FOLLOW != 0).then(|| Self::transit(bytes)).flatten();
        Some(Self {
            bytes: u64::from(at(1)?) << 32 | u64::from(at(2)?),
            duration: (at(3)?, at(4)?),
            lost: high(116) | u64::from(at(5)?),
            out_of_order: high(120) | u64::from(at(6)?),
            datagrams: high(124) | u64::from(at(7)?),
            jitter: (at(8)?, at(9)?),
            transit,
        })
    }

    fn transit(bytes: &[u8]) -> Option<TransitReport> {
        let micros =
            |at| Some(u64::from(read_u32(bytes, at)?) * 1_000_000 + u64::from(read_u32(bytes, at + 4)?));
        // The sum of squared deviations, in 10^-12 s². The variance field itself overflows (2.1.8).
        let squares = micros(88)? as f64 / 1e6;
        let packets = read_u32(bytes, 104)?;
        let others = packets.saturating_sub(1).max(1);
        Some(TransitReport {
            packets,
            min_us: micros(56)?,
            max_us: micros(64)?,
            mean_us: micros(80)?,
            stdev_us: (squares / f64::from(others)).sqrt() as u64,
            packets_per_second: read_u32(bytes, 108)?,
        })
    }
}
