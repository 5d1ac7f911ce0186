//! The header of a client at the start of a TCP connection and in every datagram, and the server's answer over
//! TCP.

/// Bytes of the header that all versions since 1.7 have.
pub(super) const BASE_BYTES: usize = 24;

/// Bytes of the header with its extension, as 2.1.8 writes it.
pub(super) const EXTENDED_BYTES: usize = 60;

/// Bytes of the tail with a start time and a kernel pacing rate.
const TAIL_BYTES: usize = 20;

/// Bytes between the extension and the tail in datagrams.
const FRAME_BYTES: usize = 32;

/// Longest header.
const MAX_HEADER_BYTES: usize = 256;

const V1: u32 = 0x8000_0000;
const EXTEND: u32 = 0x4000_0000;
const UDP_TESTS: u32 = 0x2000_0000;
const KEY: u32 = 0x1000_0000;
const SEQUENCE_64: u32 = 0x0800_0000;
const V2: u32 = 0x0400_0000;
const PEER_DETECT: u32 = 0x0200_0000;
const BOUNCE_BACK: u32 = 0x0080_0000;
const LENGTH_GIVEN: u32 = 0x0001_0000;
const RUN_NOW: u32 = 0x0000_0001;

const NO_UDP_FIN: u16 = 0x0008;
const ISOCHRONOUS: u16 = 0x0001;
const TRIP_TIMES: u16 = 0x0010;
const IN_PACKETS: u16 = 0x0080;
const RATE_SET: u16 = 0x0100;
const FQ_RATE_SET: u16 = 0x0200;
const REVERSE: u16 = 0x0400;
const FULL_DUPLEX: u16 = 0x0800;
const STARTS_LATER: u16 = 0x1000;

/// The second word of a TCP test without options from 2.0.10 to 2.0.13: the pattern of every buffer.
const AFTER_NO_FLAGS: u32 = u32::from_be_bytes(*b"4567");

/// Why a header is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// Its length is impossible.
    Length,
    /// It has a key, but this server has none.
    Key,
}

/// What a client requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestHeader {
    /// Number of connections of the test.
    pub threads: u32,
    /// Port to which the server should connect back.
    pub port: u32,
    /// Length of a buffer if the user gave one, else 0.
    pub length: u32,
    /// Window or rate of clients before 2.0.13, else 0.
    pub window_or_rate: u32,
    /// Negative: time in hundredths of a second; else bytes.
    pub amount: i32,
    /// Whether the server should connect back and send.
    pub back: bool,
    /// Whether it should do so immediately instead of after the client's test.
    pub at_once: bool,
    /// Fields of versions since 2.0.13.
    pub extension: Option<Extension>,
}

/// Header fields of versions since 2.0.13.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extension {
    /// Whether the client waits for an answer before it sends.
    pub peer_detect: bool,
    /// Whether the server sends on the client's connection instead of the client.
    pub reverse: bool,
    /// Whether the server also sends on the client's connection.
    pub full_duplex: bool,
    /// Whether sent data carry timestamps, because the clocks of both ends are synchronized.
    pub trip_times: bool,
    /// Whether the client sends nothing before the start (--txstart-time).
    pub starts_later: bool,
    /// Whether data are sent in frames at regular intervals.
    pub isochronous: bool,
    /// Whether the server should not answer the last datagram.
    pub no_udp_fin: bool,
    /// Whether the client was given a rate.
    pub rate_set: bool,
    /// Whether the rate counts packets instead of bits.
    pub in_packets: bool,
    /// Version, as two words: 2.1.8 is 0x00020001, 0x00080003.
    pub version: (u32, u32),
    /// Type-of-service byte.
    pub tos: u16,
    /// Rate, bits or packets per second; 56 bits wide.
    pub rate: u64,
    /// Start of the test: seconds and microseconds of the wall clock.
    pub start: Option<(u32, u32)>,
    /// Kernel pacing rate, bits per second; the header has it in bytes.
    pub fq_rate: Option<u64>,
}

/// Whether this is a bounce-back message: alternating requests and answers, which this server only returns.
pub(super) fn is_bounce_back(start: &[u8]) -> bool {
    read_u32(start, 0).is_some_and(|flags| flags & BOUNCE_BACK != 0 && flags & (V1 | V2 | EXTEND) == 0)
}

/// Whether the header at this offset of a datagram says that numbers have 8 bytes, as versions after 2.0.13 do.
pub(super) fn numbers_are_wide(bytes: &[u8], at: usize) -> bool {
    read_u32(bytes, at).is_some_and(|flags| flags & SEQUENCE_64 != 0)
}

/// Length of the header that begins with this word; absent if no header follows.
fn length_of(flags: u32) -> Result<Option<usize>, HeaderError> {
    if flags & (V1 | EXTEND | V2) == 0 {
        return Ok(None);
    }
    if flags & KEY != 0 {
        return Err(HeaderError::Key);
    }
    let extended = if flags & (V2 | EXTEND) != 0 { EXTENDED_BYTES - BASE_BYTES } else { 0 };
    let length = if flags & LENGTH_GIVEN != 0 { (flags >> 1 & 0xff) as usize } else { BASE_BYTES + extended };
    if !(BASE_BYTES..=MAX_HEADER_BYTES).contains(&length) || length < BASE_BYTES + extended {
        return Err(HeaderError::Length);
    }
    Ok(Some(length))
}

/// Detects the protocol by the first bytes of a connection.
pub(super) fn sniff(start: &[u8]) -> linerate_model::sniff::Match {
    use linerate_model::sniff::Match;
    let Some(flags) = read_u32(start, 0) else {
        // Without flags the first byte is zero; otherwise one of its high bits is set.
        return if start.first().is_none_or(|first| *first == 0 || *first >= 0x40) {
            Match::More
        } else {
            Match::No
        };
    };
    if is_bounce_back(start) {
        return Match::Yes;
    }
    match length_of(flags) {
        Ok(Some(_)) if flags & 0x007e_fe00 == 0 => Match::Yes,
        // 1.7 to 2.0.9 in a plain test: no flags, a number of connections, a port. 2.0.10 to 2.0.13: no flags, and
        // the pattern goes on.
        Ok(None) if flags == 0 => match (read_u32(start, 4), read_u32(start, 8)) {
            (Some(AFTER_NO_FLAGS), _) => Match::Yes,
            (Some(threads), Some(port)) if is_plausible(threads, port) => Match::Yes,
            (Some(_), Some(_)) => Match::No,
            _ => Match::More,
        },
        _ => Match::No,
    }
}

/// A larger number of connections is no number of connections.
const MAX_THREADS: u32 = 0xffff;

fn is_plausible(threads: u32, port: u32) -> bool {
    (1..=MAX_THREADS).contains(&threads) && (1..=0xffff).contains(&port)
}

impl TestHeader {
    /// Whether the server should send data in any way.
    #[must_use]
    pub fn wants_data(&self) -> bool {
        self.back || self.extension.is_some_and(|extension| extension.reverse || extension.full_duplex)
    }

    /// The part that all connections of a test share: with trip times each connection has its own start.
    pub(super) fn without_start(self) -> Self {
        let extension = self.extension.map(|extension| Extension { start: None, ..extension });
        Self { extension, ..self }
    }

    /// The header with which a server begins its own data with trip times on the client's link, as 2.1.8 does:
    /// this header without the request for an answer. Absent without trip times.
    pub(super) fn echoed(&self, udp: bool) -> Option<Self> {
        let extension = self.extension.filter(|extension| extension.trip_times)?;
        let no_udp_fin = extension.no_udp_fin || udp;
        let extension = Extension { reverse: false, peer_detect: false, no_udp_fin, ..extension };
        Some(Self { extension: Some(extension), ..*self })
    }

    /// Reads the header at the start of a TCP connection; also returns its length.
    ///
    /// `None` while bytes are missing; a length of 0 if there is no header (plain data).
    ///
    /// # Errors
    /// The header is invalid.
    pub fn read_tcp(bytes: &[u8]) -> Result<Option<(Option<Self>, usize)>, HeaderError> {
        let Some(flags) = read_u32(bytes, 0) else { return Ok(None) };
        let Some(length) = length_of(flags)? else { return Ok(Some((None, 0))) };
        if bytes.len() < length {
            return Ok(None);
        }
        Ok(Some((Some(Self::read(bytes.get(..length).unwrap_or(bytes), length, false)), length)))
    }

    /// Reads the header after the number and time of a datagram.
    ///
    /// Absent if there is none or the datagram is too short for it: what looks like flags may be the pattern.
    #[must_use]
    pub fn read_udp(bytes: &[u8], datagram_header: usize) -> Option<Self> {
        let rest = bytes.get(datagram_header..)?;
        let flags = read_u32(rest, 0)?;
        if flags & 0x007e_fe00 != 0 {
            return None;
        }
        let length = length_of(flags).ok()??;
        // The stated length includes the datagram's own header.
        let length = if flags & LENGTH_GIVEN != 0 { length.checked_sub(datagram_header)? } else { length };
        if rest.len() < length.max(BASE_BYTES) {
            return None;
        }
        Some(Self::read(rest, length, true))
    }

    /// Reads a base header that is not announced by flags (2.0.9 and earlier, plain test).
    #[must_use]
    pub fn read_old(bytes: &[u8], at: usize) -> Option<Self> {
        let rest = bytes.get(at..)?;
        let header = Self::read(rest.get(..BASE_BYTES)?, BASE_BYTES, true);
        let flags = read_u32(rest, 0)?;
        (flags & !(V1 | RUN_NOW) == 0 && is_plausible(header.threads, header.port)).then_some(header)
    }

    fn read(bytes: &[u8], length: usize, udp: bool) -> Self {
        let flags = read_u32(bytes, 0).unwrap_or(0);
        // 2.0.10 to 2.0.13 with -X write the flags and the extension, and leave the pattern between them.
        let threads = read_u32(bytes, 4).map_or(0, |word| word & 0xfffff);
        let field = |at| read_u32(bytes, at).filter(|_| threads <= MAX_THREADS).unwrap_or(0);
        let extended = flags & (EXTEND | V2) != 0 && length >= EXTENDED_BYTES;
        Self {
            threads: if threads <= MAX_THREADS { threads } else { 0 },
            port: field(8),
            length: field(12),
            window_or_rate: field(16),
            amount: field(20) as i32,
            back: flags & V1 != 0,
            at_once: flags & RUN_NOW != 0,
            extension: extended.then(|| Extension::read(bytes, flags, udp)),
        }
    }

    /// Encodes the header for the start of a TCP connection.
    #[must_use]
    pub fn write_tcp(&self) -> Vec<u8> {
        let tail = self.extension.is_some_and(|extension| extension.has_tail());
        let length = match (self.extension, tail) {
            (None, _) => BASE_BYTES,
            (Some(_), false) => EXTENDED_BYTES,
            (Some(_), true) => EXTENDED_BYTES + TAIL_BYTES,
        };
        let mut bytes = vec![0; length];
        self.write_base(&mut bytes, length, 0);
        if let Some(extension) = &self.extension {
            extension.write(&mut bytes);
            if tail {
                extension.write_tail(&mut bytes, EXTENDED_BYTES);
            }
        }
        bytes
    }

    /// Encodes the header for a datagram of 2.1.8, with number and time left empty.
    #[must_use]
    pub fn write_udp(&self) -> Vec<u8> {
        const OWN: usize = 16;
        let tail = self.extension.is_some_and(|extension| extension.has_tail());
        let header_bytes = OWN + EXTENDED_BYTES + if tail { FRAME_BYTES } else { 0 };
        let whole = header_bytes + if tail { TAIL_BYTES } else { 0 };
        let mut bytes = vec![0; whole];
        let Some(rest) = bytes.get_mut(OWN..) else { return bytes };
        let asks = |e: Extension| e.reverse || e.full_duplex || e.no_udp_fin;
        let more = SEQUENCE_64 | if tail || self.extension.is_some_and(asks) { UDP_TESTS } else { 0 };
        self.write_base(rest, header_bytes, more);
        if let Some(extension) = &self.extension {
            extension.write(rest);
            if tail {
                extension.write_tail(rest, EXTENDED_BYTES + FRAME_BYTES);
            }
        }
        bytes
    }

    fn write_base(&self, bytes: &mut [u8], length: usize, more: u32) {
        let mut flags = more;
        if self.back {
            flags |= V1;
        }
        if self.at_once {
            flags |= RUN_NOW;
        }
        if let Some(extension) = &self.extension {
            flags |= EXTEND | LENGTH_GIVEN | (length as u32 & 0xff) << 1;
            if extension.reverse || extension.full_duplex || extension.peer_detect {
                flags |= V2;
            }
            if extension.peer_detect {
                flags |= PEER_DETECT;
            }
        }
        let words = [flags, self.threads, self.port, self.length, self.window_or_rate, self.amount as u32];
        for (at, value) in words.into_iter().enumerate() {
            put(bytes, at * 4, value);
        }
    }
}

impl Extension {
    const fn has_tail(&self) -> bool {
        self.trip_times || self.starts_later || self.fq_rate.is_some()
    }

    fn read(bytes: &[u8], flags: u32, udp: bool) -> Self {
        let field = |at| read_u32(bytes, at).unwrap_or(0);
        let upper = (field(32) >> 16) as u16;
        let tail = EXTENDED_BYTES + if udp { FRAME_BYTES } else { 0 };
        let has_tail = bytes.len() >= tail + TAIL_BYTES;
        let start = (field(tail + 4), field(tail + 8));
        Self {
            peer_detect: flags & PEER_DETECT != 0 && !udp,
            reverse: upper & REVERSE != 0,
            full_duplex: upper & FULL_DUPLEX != 0,
            trip_times: upper & TRIP_TIMES != 0,
            starts_later: upper & STARTS_LATER != 0,
            isochronous: upper & ISOCHRONOUS != 0,
            no_udp_fin: upper & NO_UDP_FIN != 0,
            rate_set: upper & RATE_SET != 0,
            in_packets: upper & IN_PACKETS != 0,
            version: (field(36), field(40)),
            tos: field(44) as u16,
            rate: u64::from(field(48)) | u64::from(field(52) >> 8) << 32,
            start: (has_tail && upper & (TRIP_TIMES | STARTS_LATER) != 0 && start != (0, 0)).then_some(start),
            // In bytes, and unlike the other rate in two whole words.
            fq_rate: (has_tail && upper & FQ_RATE_SET != 0).then(|| {
                let bytes = u64::from(field(tail + 12)) | u64::from(field(tail + 16)) << 32;
                bytes.min(u64::MAX / 8) * 8
            }),
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        let mut upper = 0;
        for (set, bit) in [
            (self.reverse, REVERSE),
            (self.full_duplex, FULL_DUPLEX),
            (self.trip_times, TRIP_TIMES),
            (self.starts_later, STARTS_LATER),
            (self.isochronous, ISOCHRONOUS),
            (self.no_udp_fin, NO_UDP_FIN),
            (self.rate_set, RATE_SET),
            (self.in_packets, IN_PACKETS),
            (self.fq_rate.is_some(), FQ_RATE_SET),
        ] {
            if set {
                upper |= u32::from(bit);
            }
        }
        put(bytes, 32, upper << 16);
        put(bytes, 36, self.version.0);
        put(bytes, 40, self.version.1);
        put(bytes, 44, u32::from(self.tos));
        put(bytes, 48, self.rate as u32);
        put(bytes, 52, ((self.rate >> 32) as u32) << 8);
    }

    fn write_tail(&self, bytes: &mut [u8], at: usize) {
        let (seconds, micros) = self.start.unwrap_or((0, 0));
        put(bytes, at + 4, seconds);
        put(bytes, at + 8, micros);
        let fq_bytes = self.fq_rate.unwrap_or(0) / 8;
        put(bytes, at + 12, fq_bytes as u32);
        put(bytes, at + 16, (fq_bytes >> 32) as u32);
    }

    /// The version as text; absent if there is none.
    #[must_use]
    pub fn version_text(&self) -> Option<String> {
        let (upper, lower) = self.version;
        (upper != 0).then(|| format!("{}.{}.{}", upper >> 16, upper & 0xffff, lower >> 16))
    }
}

/// The server's answer to a header over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The server's version.
    pub version: (u32, u32),
    /// With trip times: the client's start, when the connection was accepted, and when this was sent; each in
    /// seconds and microseconds of the wall clock.
    pub times: Option<[(u32, u32); 3]>,
}

impl Ack {
    /// Encodes the answer: 28 bytes, or 52 with times.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let length = if self.times.is_some() { 52 } else { 28 };
        let mut bytes = vec![0; length];
        for (at, value) in [2, length as u32, 0, self.version.0, self.version.1].into_iter().enumerate() {
            put(&mut bytes, at * 4, value);
        }
        for (at, (seconds, micros)) in self.times.iter().flatten().enumerate() {
            put(&mut bytes, 28 + at * 8, *seconds);
            put(&mut bytes, 32 + at * 8, *micros);
        }
        bytes
    }

    /// Decodes an answer; absent while bytes are missing, or for other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let length = read_u32(bytes, 4)? as usize;
        if read_u32(bytes, 0)? != 2 || !(28..=MAX_HEADER_BYTES).contains(&length) || bytes.len() < length {
            return None;
        }
        let time = |at| Some((read_u32(bytes, at)?, read_u32(bytes, at + 4)?));
        let times = if length >= 52 { Some([time(28)?, time(36)?, time(44)?]) } else { None };
        Some(Self { version: (read_u32(bytes, 12)?, read_u32(bytes, 16)?), times })
    }
}

/// Bytes of the header before each buffer over TCP with trip times.
pub(super) const BURST_BYTES: usize = 92;

/// Offsets of the time at which the buffer was written, its number and its length.
pub(super) const BURST_TIME_AT: usize = 20;
pub(super) const BURST_NUMBER_AT: usize = 44;
pub(super) const BURST_LENGTH_AT: usize = 48;

/// The start of each buffer over TCP with trip times: the test header, overwritten with the burst's fields
/// except number and time.
pub(super) fn burst_head(header: &TestHeader, length: u32) -> Vec<u8> {
    let start = header.extension.and_then(|extension| extension.start).unwrap_or((0, 0));
    let mut bytes = header.write_tcp();
    bytes.resize(BURST_BYTES, 0);
    put(&mut bytes, 12, start.0);
    put(&mut bytes, 16, start.1);
    put(&mut bytes, BURST_LENGTH_AT, length);
    bytes
}

/// Reads a 32-bit word in network byte order.
pub(super) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let chunk = bytes.get(at..at.checked_add(4)?)?;
    chunk.first_chunk::<4>().map(|chunk| u32::from_be_bytes(*chunk))
}

/// Writes a 32-bit word in network byte order, if there is room.
pub(super) fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}
