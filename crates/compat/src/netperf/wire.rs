//! The messages of the control connection: 656 bytes each, in words of 4 bytes in network byte order.
//!
//! Word 0 is the type, word 1 an error number in answers, and 162 words of data follow. Floating-point numbers
//! are IEEE 754 words. Texts are the only bytes that are no words.

mod results;

use linerate_model::ForeignText;
use linerate_model::sniff::Match;

pub use results::{HostCpu, NetperfResults};

/// Bytes of a message.
pub const MESSAGE_BYTES: usize = 656;

/// Bytes before the data of a message.
const DATA_AT: usize = 8;

/// Where the texts of a test begin in its data: the algorithm for congestion control, then the fill file.
const REQUEST_TEXTS_AT: usize = 38 * 4;

/// Bytes of the name of a congestion control algorithm, with a zero at its end.
const CONGESTION_BYTES: usize = 16;

/// Where the name of the server's fill file is in the data of a request, and its bytes with a zero at its end.
const FILL_FILE_AT: usize = REQUEST_TEXTS_AT + CONGESTION_BYTES;
const FILL_FILE_BYTES: usize = 32;

/// Where a request names the processor to which netserver binds itself, and the value for none.
const AFFINITY: std::ops::Range<usize> = 4..DATA_AT;
const NO_AFFINITY: u32 = u32::MAX;

/// The types of messages.
pub(super) mod kind {
    pub(in super::super) const DEBUG_ON: u32 = 1;
    pub(in super::super) const DEBUG_OFF: u32 = 2;
    pub(in super::super) const DEBUG_OK: u32 = 3;
    pub(in super::super) const CPU_CALIBRATE: u32 = 5;
    pub(in super::super) const PASSPHRASE: u32 = 6;
    pub(in super::super) const TEST: u32 = 97;
    pub(in super::super) const TEST_RESPONSE: u32 = 98;
    pub(in super::super) const TEST_RESULTS: u32 = 99;
    pub(in super::super) const SYSTEM: u32 = 600;
    pub(in super::super) const SYSTEM_RESPONSE: u32 = 601;
}

/// The types with which a control connection can begin: those above, and the tests of netperf before 2.5.
const FIRST_KINDS: [u32; 17] = [
    kind::DEBUG_ON,
    kind::DEBUG_OFF,
    kind::CPU_CALIBRATE,
    kind::PASSPHRASE,
    kind::TEST,
    kind::SYSTEM,
    10,
    13,
    16,
    19,
    34,
    70,
    73,
    94,
    300,
    500,
    540,
];

/// Detects a control connection by the type of its first message.
pub(super) fn sniff(start: &[u8]) -> Match {
    let known = start.get(..4).unwrap_or(start);
    let begins = FIRST_KINDS.iter().any(|kind| kind.to_be_bytes().starts_with(known));
    match (begins, known.len()) {
        (false, _) => Match::No,
        (true, 4) => Match::Yes,
        (true, _) => Match::More,
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetperfMessage {
    bytes: Vec<u8>,
}

impl NetperfMessage {
    /// A message of this type without data.
    #[must_use]
    pub fn new(kind: u32) -> Self {
        let mut bytes = vec![0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&kind.to_be_bytes());
        Self { bytes }
    }

    /// A request of a client, which leaves the choice of processors to the server's system.
    #[must_use]
    pub fn request(kind: u32) -> Self {
        let mut message = Self::new(kind);
        message.bytes[AFFINITY].copy_from_slice(&NO_AFFINITY.to_be_bytes());
        message
    }

    /// Takes the first message off a buffer; absent if it is incomplete.
    #[must_use]
    pub fn take(buffer: &mut Vec<u8>) -> Option<Self> {
        (buffer.len() >= MESSAGE_BYTES).then(|| {
            let rest = buffer.split_off(MESSAGE_BYTES);
            Self { bytes: std::mem::replace(buffer, rest) }
        })
    }

    /// An answer that reports this error number of the system.
    #[must_use]
    pub fn error(kind: u32, errno: i32) -> Self {
        let mut message = Self::new(kind);
        message.bytes[4..DATA_AT].copy_from_slice(&errno.to_be_bytes());
        message
    }

    /// The message as sent.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its type. netserver 2.7.0 leaves that of its results in the byte order of its machine.
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.at(0)
    }

    /// The error number of an answer; 0 for none.
    #[must_use]
    pub fn errno(&self) -> i32 {
        self.at(4) as i32
    }

    fn at(&self, at: usize) -> u32 {
        let word = self.bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        u32::from_be_bytes(word.unwrap_or_default())
    }

    /// A word of the data.
    fn word(&self, index: usize) -> u32 {
        self.at(DATA_AT + 4 * index)
    }

    fn number(&self, index: usize) -> i32 {
        self.word(index) as i32
    }

    /// A number that is at least 0; other numbers mean that the peer chooses.
    fn asked(&self, index: usize) -> Option<u32> {
        u32::try_from(self.number(index)).ok()
    }

    /// A floating-point number; those that are none are 0.
    fn float(&self, index: usize) -> f32 {
        let value = f32::from_bits(self.word(index));
        if value.is_finite() { value } else { 0.0 }
    }

    /// Two words, the high one first.
    fn wide(&self, index: usize) -> u64 {
        (u64::from(self.word(index)) << 32) | u64::from(self.word(index + 1))
    }

    fn set(&mut self, index: usize, word: u32) {
        self.bytes[DATA_AT + 4 * index..][..4].copy_from_slice(&word.to_be_bytes());
    }

    fn set_asked(&mut self, index: usize, value: Option<u32>) {
        self.set(index, value.unwrap_or(u32::MAX));
    }

    fn set_wide(&mut self, index: usize, value: u64) {
        self.set(index, (value >> 32) as u32);
        self.set(index + 1, value as u32);
    }

    /// A text that ends with a zero or after `most` bytes.
    fn text(&self, at: usize, most: usize) -> ForeignText {
        let bytes = self.bytes.get(DATA_AT + at..).and_then(|bytes| bytes.get(..most)).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        ForeignText::new(&String::from_utf8_lossy(&bytes[..end]))
    }

    fn set_text(&mut self, at: usize, most: usize, text: &str) {
        // Cut before a character that does not fit.
        let length = text.floor_char_boundary(most - 1);
        self.bytes[DATA_AT + at..][..length].copy_from_slice(&text.as_bytes()[..length]);
    }

    /// The data as a text, as for a passphrase.
    #[must_use]
    pub fn data_text(&self) -> ForeignText {
        self.text(0, MESSAGE_BYTES - DATA_AT)
    }

    /// The same message with a text as its data, which is cut if it is too long.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        self.set_text(0, MESSAGE_BYTES - DATA_AT, text);
        self
    }
}

/// What the server does with data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataRoles {
    /// It sends.
    pub sends: bool,
    /// It receives.
    pub receives: bool,
}

impl DataRoles {
    /// Whether this is a test of transactions: both, or neither if only connections are opened and closed.
    #[must_use]
    pub fn transactions(self) -> bool {
        self.sends == self.receives
    }
}

/// The bits of a request's flags.
pub(super) mod flag {
    pub(in super::super) const NO_DELAY: u32 = 0x1;
    pub(in super::super) const CONNECT: u32 = 0x4;
    pub(in super::super) const MEASURE_CPU: u32 = 0x8;
    pub(in super::super) const ROUTED: u32 = 0x20;
    pub(in super::super) const KEEP_ALIVE: u32 = 0x8000_0000;
}

/// The transport of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetperfProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// Any other, by the number of its IP protocol.
    Other(u32),
}

/// A test that a client requests. Sizes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetperfRequest {
    /// The server's send buffer.
    pub send_buffer: Option<u32>,
    /// Bytes of each of the server's writes.
    pub send_size: Option<u32>,
    /// Number of buffers from which the server sends; 0 lets it choose.
    pub send_width: u32,
    /// Bytes of a request of a transaction.
    pub request_size: Option<u32>,
    /// The server's receive buffer.
    pub receive_buffer: Option<u32>,
    /// Bytes of each of the server's reads.
    pub receive_size: Option<u32>,
    /// Number of buffers into which the server reads; 0 lets it choose.
    pub receive_width: u32,
    /// Bytes of a response of a transaction.
    pub response_size: Option<u32>,
    /// The flags.
    pub flags: u32,
    /// The client's figure for the server's CPU; 0 if it has none.
    pub cpu_rate: f32,
    /// The duration in seconds; if negative, the number of bytes or transactions.
    pub length: i32,
    /// Port for data; 0 lets the server choose.
    pub port: u16,
    /// 4 or 6 for the version of IP; other values let the server choose.
    pub family: u32,
    /// The transport.
    pub protocol: NetperfProtocol,
    /// What the server does.
    pub roles: DataRoles,
    /// The client's port for data, if its socket was already bound.
    pub client_port: u16,
    /// Type of service.
    pub tos: Option<u32>,
    /// Congestion control algorithm; empty for the default.
    pub congestion: ForeignText,
    /// A file on the server with which it fills its buffers; empty for none.
    pub fill_file: ForeignText,
}

impl Default for NetperfRequest {
    fn default() -> Self {
        Self {
            send_buffer: None,
            send_size: None,
            send_width: 0,
            request_size: None,
            receive_buffer: None,
            receive_size: None,
            receive_width: 0,
            response_size: None,
            flags: flag::ROUTED,
            cpu_rate: 0.0,
            length: 10,
            port: 0,
            family: 4,
            protocol: NetperfProtocol::Tcp,
            roles: DataRoles { sends: false, receives: true },
            client_port: 0,
            tos: None,
            congestion: ForeignText::default(),
            fill_file: ForeignText::default(),
        }
    }
}

/// The IP protocols of tests.
const TCP: u32 = 6;
const UDP: u32 = 17;

/// The bits of the server's direction.
const SERVER_SENDS: u32 = 2;
const SERVER_RECEIVES: u32 = 4;

impl NetperfRequest {
    /// Decodes a message of type 97.
    #[must_use]
    pub fn decode(message: &NetperfMessage) -> Self {
        // The socket type belongs to the protocol: 1 for streams, 2 for datagrams.
        let protocol = match (message.word(23), message.word(22)) {
            (TCP, 1) => NetperfProtocol::Tcp,
            (UDP, 2) => NetperfProtocol::Udp,
            (other, _) => NetperfProtocol::Other(other),
        };
        let direction = message.word(24);
        Self {
            send_buffer: message.asked(0),
            send_size: message.asked(1),
            send_width: message.word(4),
            request_size: message.asked(5),
            receive_buffer: message.asked(6),
            receive_size: message.asked(7),
            receive_width: message.word(10),
            response_size: message.asked(11),
            flags: message.word(12),
            cpu_rate: message.float(13),
            length: message.number(14),
            port: u16::try_from(message.word(20)).unwrap_or(0),
            family: message.word(21),
            protocol,
            roles: DataRoles {
                sends: direction & SERVER_SENDS != 0,
                receives: direction & SERVER_RECEIVES != 0,
            },
            client_port: u16::try_from(message.word(25)).unwrap_or(0),
            tos: message.asked(37),
            congestion: message.text(REQUEST_TEXTS_AT, CONGESTION_BYTES),
            fill_file: message.text(FILL_FILE_AT, FILL_FILE_BYTES),
        }
    }

    /// Encodes the request.
    #[must_use]
    pub fn encode(&self) -> NetperfMessage {
        let mut message = NetperfMessage::request(kind::TEST);
        let (protocol, socket_type) = match self.protocol {
            NetperfProtocol::Tcp => (TCP, 1),
            NetperfProtocol::Udp => (UDP, 2),
            NetperfProtocol::Other(other) => (other, 0),
        };
        let DataRoles { sends, receives } = self.roles;
        let direction = if sends { SERVER_SENDS } else { 0 } | if receives { SERVER_RECEIVES } else { 0 };
        message.set_asked(0, self.send_buffer);
        message.set_asked(1, self.send_size);
        message.set(4, self.send_width);
        message.set_asked(5, self.request_size);
        message.set_asked(6, self.receive_buffer);
        message.set_asked(7, self.receive_size);
        message.set(10, self.receive_width);
        message.set_asked(11, self.response_size);
        // Buffers are aligned to 8 bytes.
        message.set(2, 8);
        message.set(8, 8);
        message.set(12, self.flags);
        message.set(13, self.cpu_rate.to_bits());
        message.set(14, self.length as u32);
        // No bytes of the buffers are touched before each call.
        (17..20).for_each(|index| message.set(index, u32::MAX));
        message.set(20, u32::from(self.port));
        message.set(21, self.family);
        message.set(22, socket_type);
        message.set(23, protocol);
        message.set(24, direction);
        message.set(25, u32::from(self.client_port));
        message.set(36, u32::MAX);
        message.set_asked(37, self.tos);
        message.set_text(REQUEST_TEXTS_AT, CONGESTION_BYTES, &self.congestion);
        message.set_text(FILL_FILE_AT, FILL_FILE_BYTES, &self.fill_file);
        message
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether every transaction has its own connection.
    #[must_use]
    pub fn connects_each_time(&self) -> bool {
        self.has(flag::CONNECT)
    }
}

/// The server's answer before a test. Sizes are bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// Its receive buffer.
    pub receive_buffer: u32,
    /// Bytes of each of its reads.
    pub receive_size: Option<u32>,
    /// Number of buffers into which it reads.
    pub receive_width: u32,
    /// Its send buffer.
    pub send_buffer: u32,
    /// Bytes of each of its writes.
    pub send_size: Option<u32>,
    /// Number of buffers from which it sends.
    pub send_width: u32,
    /// Flags, as in a request.
    pub flags: u32,
    /// Its figure for its CPU; 0 if CPU time is not measured.
    pub cpu_rate: f32,
    /// Port for data.
    pub port: u16,
    /// Type of service.
    pub tos: Option<u32>,
}

impl Response {
    /// Decodes a message.
    #[must_use]
    pub fn decode(message: &NetperfMessage) -> Self {
        Self {
            receive_buffer: message.word(0),
            receive_size: message.asked(1),
            receive_width: message.word(2),
            send_buffer: message.word(3),
            send_size: message.asked(4),
            send_width: message.word(5),
            flags: message.word(6),
            cpu_rate: message.float(7),
            port: u16::try_from(message.word(11)).unwrap_or(0),
            tos: message.asked(17),
        }
    }

    /// Encodes the answer.
    #[must_use]
    pub fn encode(&self) -> NetperfMessage {
        let mut message = NetperfMessage::new(kind::TEST_RESPONSE);
        message.set(0, self.receive_buffer);
        message.set_asked(1, self.receive_size);
        message.set(2, self.receive_width);
        message.set(3, self.send_buffer);
        message.set_asked(4, self.send_size);
        message.set(5, self.send_width);
        message.set(6, self.flags);
        message.set(7, self.cpu_rate.to_bits());
        message.set(11, u32::from(self.port));
        message.set(16, u32::MAX);
        message.set_asked(17, self.tos);
        message
    }
}
