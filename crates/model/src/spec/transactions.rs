//! Requests and responses instead of a stream of data.

use linerate_units::Bytes;
use serde::{Deserialize, Serialize};

use super::{SocketKnobs, SpecError, Traffic};

/// Requests and responses instead of a stream of data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Transactions {
    /// What the connections carry; rr and crr measure transactions per second and their latency
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, value_name = "WORKLOAD", default_value_t, help_heading = "Transactions")
    )]
    pub workload: Workload,
    /// Bytes of a request (rr, crr); over UDP at least 32, which a header of linerate takes [default: 1, for UDP 32]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", help_heading = "Transactions"))]
    #[serde(rename = "request_size_bytes", skip_serializing_if = "Option::is_none")]
    pub request_size: Option<Bytes>,
    /// Bytes of a response (rr, crr); over UDP at least 32 [default: 1, for UDP 32]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", help_heading = "Transactions"))]
    #[serde(rename = "response_size_bytes", skip_serializing_if = "Option::is_none")]
    pub response_size: Option<Bytes>,
    /// Requests that each connection has under way at once (rr)
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "REQUESTS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Transactions")
    )]
    pub pipeline: u32,
    /// Send this many requests per second over all connections, whether or not the responses keep up; latency then
    /// counts from the time at which a request was due [default: the next request follows a response]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "PER_SECOND", conflicts_with = "pipeline", help_heading = "Transactions")
    )]
    #[serde(rename = "requests_per_second", skip_serializing_if = "Option::is_none")]
    pub request_rate: Option<u64>,
    /// Make this many requests over all connections instead of measuring for a time
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "REQUESTS", conflicts_with_all = ["duration", "omit"], help_heading = "Transactions")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Let both ends ask for the next message without waiting in the kernel: shorter latency, at the price of a core
    /// per connection (rr)
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Transactions"))]
    pub spin: bool,
}

impl Default for Transactions {
    fn default() -> Self {
        Self {
            workload: Workload::Stream,
            request_size: None,
            response_size: None,
            pipeline: 1,
            request_rate: None,
            requests: None,
            spin: false,
        }
    }
}

/// What the connections of a test carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Data in one direction
    #[default]
    Stream,
    /// Requests and responses, over connections that stay open
    Rr,
    /// Requests and responses, with a new TCP connection for each
    Crr,
}

impl Workload {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Rr => "rr",
            Self::Crr => "crr",
        }
    }
}

/// Most bytes of a request or response over TCP.
const MAX_MESSAGE: u64 = 64 << 20;

/// Bytes of a request or response over UDP: our header, and the maximum for UDP over IPv4.
const DATAGRAM_BYTES: std::ops::RangeInclusive<u64> = 32..=65_507;

/// Most connections that a test opens anew at the same time: each has a thread.
const MAX_CONNECTING: u32 = 128;

/// Most requests per second: more cannot be told apart by their due times in nanoseconds.
const MAX_RATE: u64 = 1_000_000_000;

impl Transactions {
    /// Whether the test makes transactions at all.
    #[must_use]
    pub fn are_made(&self) -> bool {
        self.workload != Workload::Stream
    }

    /// Whether nothing was requested, so that the specification is that of a version without transactions.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether each transaction has a connection of its own.
    #[must_use]
    pub fn reconnect(&self) -> bool {
        self.workload == Workload::Crr
    }

    /// Bytes of a request.
    #[must_use]
    pub fn request(&self, udp: bool) -> Bytes {
        self.request_size.unwrap_or(Bytes::new(if udp { *DATAGRAM_BYTES.start() } else { 1 }))
    }

    /// Bytes of a response.
    #[must_use]
    pub fn response(&self, udp: bool) -> Bytes {
        self.response_size.unwrap_or(Bytes::new(if udp { *DATAGRAM_BYTES.start() } else { 1 }))
    }

    pub(super) fn check(&self, traffic: &Traffic, socket: &SocketKnobs) -> Result<(), SpecError> {
        let fail = |knob, trouble: &str, remedy: &str| {
            Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
        };
        if !self.are_made() {
            let given = [
                (self.request_size.is_some(), "--request-size"),
                (self.response_size.is_some(), "--response-size"),
                (self.pipeline != 1, "--pipeline"),
                (self.request_rate.is_some(), "--request-rate"),
                (self.requests.is_some(), "--requests"),
                (self.spin, "--spin"),
            ];
            return match given.into_iter().find(|(given, _)| *given) {
                Some((_, knob)) => fail(
                    knob,
                    "it applies only to requests and responses",
                    "add --workload rr or --workload crr, or remove it",
                ),
                None => Ok(()),
            };
        }
        for (given, knob) in traffic.stream_knobs().into_iter().chain(socket.stream_knobs()) {
            if given {
                return fail(knob, "it applies only to a stream of data", "remove it or --workload");
            }
        }
        for (size, knob) in [(self.request_size, "--request-size"), (self.response_size, "--response-size")] {
            let fits = size.is_none_or(|size| {
                if traffic.udp {
                    DATAGRAM_BYTES.contains(&size.get())
                } else {
                    (1..=MAX_MESSAGE).contains(&size.get())
                }
            });
            if !fits && traffic.udp {
                let remedy = "give 32 to 65507 bytes, of which linerate's header takes 32";
                return fail(knob, "the size is out of range for a datagram", remedy);
            }
            if !fits {
                return fail(knob, "the size is out of range", "give 1 byte to 64M");
            }
        }
        if !(1..=1024).contains(&self.pipeline) {
            return fail("--pipeline", "the number of requests is out of range", "give 1 to 1024");
        }
        if self.request_rate.is_some() && self.pipeline != 1 {
            let trouble = "with --request-rate a request is sent when it is due";
            return fail("--pipeline", trouble, "remove one of them");
        }
        if self.request_rate.is_some_and(|rate| !(1..=MAX_RATE).contains(&rate)) {
            return fail(
                "--request-rate",
                "the rate is out of range",
                "give 1 to 1000000000 requests per second",
            );
        }
        if self.requests == Some(0) {
            return fail("--requests", "there is nothing to request", "give at least 1");
        }
        if self.requests.is_some() && (traffic.duration.is_some() || traffic.omit.is_some()) {
            let knob = if traffic.duration.is_some() { "--time" } else { "--omit" };
            return fail(knob, "the test ends after a number of requests", "remove it or --requests");
        }
        self.check_reconnecting(traffic)
    }

    /// What does not go together with a connection for each transaction.
    fn check_reconnecting(&self, traffic: &Traffic) -> Result<(), SpecError> {
        if !self.reconnect() {
            return Ok(());
        }
        let fail = |knob, trouble: &str, remedy: &str| {
            Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
        };
        if traffic.udp {
            return fail("--workload", "UDP has no connections that could be opened", "give --workload rr");
        }
        if self.pipeline != 1 {
            return fail(
                "--pipeline",
                "each connection carries one request",
                "remove it, and give a larger -P",
            );
        }
        if self.spin {
            return fail("--spin", "opening a connection waits in the kernel", "remove it");
        }
        if traffic.streams > MAX_CONNECTING {
            let trouble = "each connection that is opened anew has a thread";
            return fail("--parallel", trouble, "give at most 128 with --workload crr");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::TestSpec;
    use super::*;

    fn knob(change: impl FnOnce(&mut TestSpec)) -> &'static str {
        let mut spec = TestSpec::default();
        spec.transactions.workload = Workload::Rr;
        change(&mut spec);
        spec.check().map_or_else(|error| error.knob, |()| "")
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        assert_eq!(knob(|_| ()), "");
        assert_eq!(knob(|s| s.transactions.request_size = Some(Bytes::new(0))), "--request-size");
        assert_eq!(knob(|s| s.transactions.response_size = Some(Bytes::new(1 << 40))), "--response-size");
        assert_eq!(knob(|s| s.transactions.pipeline = 0), "--pipeline");
        assert_eq!(knob(|s| s.transactions.pipeline = 1025), "--pipeline");
        assert_eq!(knob(|s| s.transactions.request_rate = Some(0)), "--request-rate");
        assert_eq!(knob(|s| s.transactions.requests = Some(0)), "--requests");
        assert_eq!(knob(|s| s.traffic.download = true), "--download");
        assert_eq!(knob(|s| s.traffic.length = Some(Bytes::new(9))), "--length");
        assert_eq!(knob(|s| s.socket.skip_rx_copy = true), "--skip-rx-copy");
        let small = |spec: &mut TestSpec| {
            spec.traffic.udp = true;
            spec.transactions.response_size = Some(Bytes::new(31));
        };
        assert_eq!(knob(small), "--response-size");
        let crr = |change: fn(&mut TestSpec)| {
            knob(|spec| {
                spec.transactions.workload = Workload::Crr;
                change(spec);
            })
        };
        assert_eq!(crr(|s| s.traffic.udp = true), "--workload");
        assert_eq!(crr(|s| s.traffic.streams = 129), "--parallel");
        assert_eq!(crr(|s| s.transactions.spin = true), "--spin");
        assert_eq!(crr(|s| s.traffic.streams = 128), "");
    }

    #[test]
    fn a_stream_of_data_has_no_requests() {
        let stream = |change: fn(&mut Transactions)| {
            knob(|spec| {
                spec.transactions.workload = Workload::Stream;
                change(&mut spec.transactions);
            })
        };
        assert_eq!(stream(|_| ()), "");
        assert_eq!(stream(|t| t.requests = Some(1)), "--requests");
        assert_eq!(stream(|t| t.spin = true), "--spin");
    }
}
