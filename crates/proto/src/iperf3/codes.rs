//! Numbers of errors that are met in a dialogue.

use super::errors::Number;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl Number { $($(#[$doc])* pub const $name: Self = Self($number);)* }
    };
}

numbers! {
    /// The duration is out of range.
    DURATION = 5;
    /// The number of streams is out of range.
    PARALLEL = 6;
    /// The block of a byte stream is out of range.
    BLOCK_SIZE = 7;
    /// The socket buffer is out of range.
    BUF_SIZE = 8;
    /// The segment size is out of range.
    MSS = 10;
    /// The omitted time is out of range.
    OMIT = 12;
    /// The burst is out of range.
    BURST = 15;
    /// The datagram is out of range.
    UDP_BLOCK_SIZE = 20;
    /// The type-of-service byte is out of range.
    BAD_TOS = 21;
    /// More bit rate than the server allows.
    TOTAL_RATE = 27;
    /// A file cannot be sent in datagrams.
    UDP_FILE = 34;
    /// Longer than the server allows.
    MAX_DURATION = 37;
    /// Cannot listen.
    LISTEN = 102;
    /// Cannot connect.
    CONNECT = 103;
    /// No cookie came.
    RECV_COOKIE = 106;
    /// The control connection was closed.
    CONTROL_CLOSED = 109;
    /// A state byte that has no meaning here.
    MESSAGE = 110;
    /// A state byte could not be read.
    RECV_MESSAGE = 112;
    /// The parameters cannot be taken.
    RECV_PARAMS = 114;
    /// The results cannot be taken.
    RECV_RESULTS = 117;
    /// The client was told to end.
    CLIENT_TERM = 119;
    /// The server was told to end.
    SERVER_TERM = 120;
    /// The server is busy.
    ACCESS_DENIED = 121;
    /// The flow label is out of range or cannot be set.
    FLOW_LABEL = 127;
    /// The CPU cannot be chosen.
    AFFINITY = 132;
    /// The login is wrong.
    AUTH = 142;
    /// Nothing was received for too long.
    IDLE_TIMEOUT = 144;
    /// The client did not end the test in time.
    DURATION_EXPIRED = 160;
    /// A stream could not be made.
    CREATE_STREAM = 200;
    /// The listener for streams cannot be had.
    STREAM_LISTEN = 202;
    /// A stream could not connect.
    STREAM_CONNECT = 203;
    /// A stream could not be accepted.
    STREAM_ACCEPT = 204;
    /// A stream could not be written.
    STREAM_WRITE = 205;
    /// A stream could not be read.
    STREAM_READ = 206;
    /// The results tell of a stream that does not exist.
    STREAM_ID = 208;
}
