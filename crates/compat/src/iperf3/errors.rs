//! iperf3's errors, with the numbers on the wire and the texts that scripts search for (iperf3 3.21).

use std::fmt;

use linerate_model::foreign_text::without_error_numbers;

/// Number of an error, unchanged since iperf3 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Iperf3ErrorNumber(pub i32);

/// Whether the text is followed by that of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// It is not.
    Alone,
    /// A colon and the text of the operating system follow; the colon remains if there is none.
    System,
}
use Tail::{Alone, System};

/// Defines the constants and their texts in one place.
macro_rules! errors {
    ($($name:ident = $number:literal, $tail:ident, $text:literal;)*) => {
        impl Iperf3ErrorNumber {
            $(#[doc = concat!("`", $text, "`")] pub const $name: Self = Self($number);)*
        }
        const TEXTS: &[(Iperf3ErrorNumber, Tail, &str)] = &[$((Iperf3ErrorNumber::$name, $tail, $text),)*];
    };
}

errors! {
    BOTH_ROLES = 1, Alone, "cannot be both server and client";
    NO_ROLE = 2, Alone, "must either be a client (-c) or server (-s)";
    SERVER_ONLY = 3, Alone, "some option you are trying to set is server only";
    CLIENT_ONLY = 4, Alone, "some option you are trying to set is client only";
    DURATION = 5, Alone, "test duration valid values are 0 to 86400 seconds";
    PARALLEL = 6, Alone, "invalid number of parallel streams (min = 1, max = 128)";
    BLOCK_SIZE = 7, Alone, "block size too large (maximum = 1048576 bytes)";
    BUF_SIZE = 8, Alone, "socket buffer size too large (maximum = 536870912 bytes)";
    INTERVAL = 9, Alone, "invalid report interval (min = 0.1, max = 60 seconds)";
    MSS = 10, Alone, "TCP MSS too large (maximum = 32767 bytes)";
    OMIT = 12, Alone, "bogus value for --omit (maximum = 600 seconds)";
    FILE = 14, System, "unable to open -F file";
    BURST = 15, Alone, "invalid burst count (maximum = 1000)";
    END_CONDITIONS = 16, Alone, "only one test end condition (-t, -n, -k) may be specified";
    LOG_FILE = 17, System, "unable to open log file";
    NO_SCTP = 18, Alone, "no SCTP support available";
    UDP_BLOCK_SIZE = 20, Alone, "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)";
    BAD_TOS = 21, Alone, "bad TOS value (must be between 0 and 255 inclusive)";
    CLIENT_AUTH = 22, Alone, "you must specify a username, password, and path to a valid RSA public key";
    SERVER_AUTH = 23, Alone, "you must specify a path to a valid RSA private key and a user credential file";
    BAD_FORMAT = 24, Alone, "bad format specifier (valid formats are in the set [kmgtKMGT])";
    REVERSE_BIDIR = 25, Alone, "cannot be both reverse and bidirectional";
    BAD_PORT = 26, Alone, "port number must be between 1 and 65535 inclusive";
    TOTAL_RATE = 27, Alone, "total required bandwidth is larger than server limit";
    RATE_INTERVAL = 28, Alone, "invalid time interval for calculating average data rate";
    SKEW_THRESHOLD = 29, Alone, "skew threshold must be a positive number";
    SERVER_IDLE = 30, Alone, "idle timeout parameter is not positive or larger than allowed limit";
    RCV_TIMEOUT = 31, System, "receive timeout value is incorrect or not in range";
    RCV_TIMEOUT_SENDING = 32, System, "client receive timeout is valid only in receiving mode";
    SND_TIMEOUT = 33, System, "send timeout value is incorrect or not in range";
    UDP_FILE = 34, Alone, "cannot transfer file using UDP";
    USERS_FILE = 35, Alone, "cannot access authorized users file";
    KEEP_ALIVE = 36, Alone, "idle time of --cntl-ka must be longer than its interval times its count";
    MAX_DURATION = 37, Alone, "client's requested duration exceeds the server's maximum permitted limit";
    BAD_UNIT = 38, Alone, "invalid unit value or suffix";
    BAD_DSCP = 40, Alone, "bad DSCP value (numeric: 0-63 inclusive, or a name: af11 to af43, cs0 to cs7, ef, va)";
    LISTEN = 102, System, "unable to start listener for connections";
    CONNECT = 103, System, "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.";
    RECV_COOKIE = 106, System, "unable to receive cookie at server";
    CONTROL_CLOSED = 109, Alone, "control socket has closed unexpectedly";
    MESSAGE = 110, Alone, "received an unknown control message (ensure other side is iperf3 and not iperf)";
    SEND_MESSAGE = 111, System, "unable to send control message - port may not be available, the other side may have stopped running, etc.";
    RECV_MESSAGE = 112, System, "unable to receive control message - port may not be available, the other side may have stopped running, etc.";
    SEND_PARAMS = 113, System, "unable to send parameters to server";
    RECV_PARAMS = 114, System, "unable to receive parameters from client";
    SEND_RESULTS = 116, System, "unable to send results";
    RECV_RESULTS = 117, System, "unable to receive results";
    CLIENT_TERM = 119, Alone, "the client has terminated";
    SERVER_TERM = 120, Alone, "the server has terminated";
    ACCESS_DENIED = 121, Alone, "the server is busy running a test. try again later";
    SET_BUF = 124, System, "unable to set socket buffer size";
    FLOW_LABEL = 127, Alone, "unable to set IPv6 flow label";
    AFFINITY = 132, System, "unable to set CPU affinity";
    CONGESTION = 134, Alone, "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host";
    PID_FILE = 135, System, "unable to write PID file";
    SET_BUF_SIZE = 141, Alone, "socket buffer size not set correctly";
    AUTH = 142, Alone, "test authorization failed";
    BIND_DEV = 143, Alone, "Unable to bind-to-device (check perror, maybe permissions?)";
    IDLE_TIMEOUT = 144, Alone, "idle timeout for receiving data";
    DONT_FRAGMENT = 145, Alone, "unable to set IP Do-Not-Fragment flag";
    DURATION_EXPIRED = 160, System, "server test duration expired";
    CREATE_STREAM = 200, System, "unable to create a new stream";
    INIT_STREAM = 201, System, "unable to initialize stream";
    STREAM_LISTEN = 202, System, "unable to start stream listener";
    STREAM_CONNECT = 203, System, "unable to connect stream";
    STREAM_ACCEPT = 204, System, "unable to accept stream connection";
    STREAM_WRITE = 205, System, "unable to write to stream socket";
    STREAM_READ = 206, System, "unable to read from stream socket";
    STREAM_CLOSE = 207, System, "stream socket has closed unexpectedly";
    STREAM_ID = 208, Alone, "stream has an invalid id";
}

/// An error with iperf3's text ([`fmt::Display`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf3Error {
    /// The kind of error.
    pub number: Iperf3ErrorNumber,
    /// The errno of the operating system; 0 if there is none.
    pub errno: i32,
    /// The text of the operating system (strerror, gai_strerror), or the invalid argument; may be empty.
    pub detail: String,
}

impl Iperf3Error {
    /// An error without a text of the operating system.
    #[must_use]
    pub fn new(number: Iperf3ErrorNumber) -> Self {
        Self { number, errno: 0, detail: String::new() }
    }

    /// An error with errno and text of the operating system.
    #[must_use]
    pub fn because(number: Iperf3ErrorNumber, errno: i32, detail: impl Into<String>) -> Self {
        Self { number, errno, detail: detail.into() }
    }

    /// An error of the operating system.
    #[must_use]
    pub fn of_system(number: Iperf3ErrorNumber, error: &std::io::Error) -> Self {
        let detail = without_error_numbers(&error.to_string()).into_owned();
        Self::because(number, error.raw_os_error().unwrap_or(0), detail)
    }
}

impl fmt::Display for Iperf3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((_, tail, text)) = TEXTS.iter().find(|(number, ..)| *number == self.number) else {
            return write!(f, "int_errno={}", self.number.0);
        };
        match tail {
            _ if self.number == Iperf3ErrorNumber::BAD_UNIT => write!(f, "{text}: '{}'", self.detail),
            // The remedy, for which iperf3 has no words.
            _ if self.number == Iperf3ErrorNumber::NO_SCTP && !self.detail.is_empty() => {
                write!(f, "{text}: {}", self.detail)
            }
            Alone => f.write_str(text),
            System => write!(f, "{text}: {}", self.detail),
        }
    }
}

impl std::error::Error for Iperf3Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_system_follow_where_iperf3_has_them() {
        let refused = Iperf3Error::because(Iperf3ErrorNumber::CONNECT, 111, "Connection refused");
        assert_eq!(
            refused.to_string(),
            "unable to connect to server - server may have stopped running or use a different port, \
             firewall issue, etc.: Connection refused"
        );
        let silent = Iperf3Error::new(Iperf3ErrorNumber::RECV_RESULTS);
        assert_eq!(silent.to_string(), "unable to receive results: ", "the colon stays");
        let busy = Iperf3Error::because(Iperf3ErrorNumber::ACCESS_DENIED, 11, "Try again");
        assert_eq!(busy.to_string(), "the server is busy running a test. try again later");
    }

    #[test]
    fn a_bad_unit_is_named_and_an_unknown_number_is_reported() {
        let unit = Iperf3Error::because(Iperf3ErrorNumber::BAD_UNIT, 0, "12x");
        assert_eq!(unit.to_string(), "invalid unit value or suffix: '12x'");
        assert_eq!(Iperf3Error::new(Iperf3ErrorNumber(999)).to_string(), "int_errno=999");
    }

    #[test]
    fn no_number_is_given_twice() {
        for pair in TEXTS.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{:?} before {:?}", pair[0].0, pair[1].0);
        }
    }
}
