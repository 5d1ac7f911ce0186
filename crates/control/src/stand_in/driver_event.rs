//! Events for a stand-in, queued until they can be delivered.

use std::io;
use std::net::SocketAddr;

use linerate_compat::stand_in::{
    CpuTime, Exchanged, FlowCounts, FlowId, HostCounts, Input, Link, Opened, RunId, StandIn, StreamCounts,
    SystemError,
};
use linerate_model::SideSettings;
use linerate_model::foreign_text::without_error_numbers;
use linerate_sock::SockError;
use linerate_units::Timestamp;

use super::server_ports::MeasurementRefusal;
use crate::tls_channel::DECRYPT;

/// An [`Input`] that owns its data.
#[derive(Debug)]
pub(super) enum DriverEvent {
    Begin,
    Opened { link: Link, opened: Opened },
    NotOpened { link: Link, reason: SystemError },
    Accepted { listener: Link, link: Link, opened: Opened },
    Bytes { link: Link, bytes: Vec<u8> },
    Datagram { link: Link, from: SocketAddr, bytes: Vec<u8> },
    Closed { link: Link, reason: Option<SystemError> },
    Sent { link: Link },
    Admitted { run: RunId },
    Logged { run: RunId, id: String },
    Refused { run: RunId, refusal: MeasurementRefusal },
    Started { flow: FlowId, settings: Box<SideSettings> },
    NotStarted { flow: FlowId, reason: SystemError },
    Counts { cpu: CpuTime, flows: Vec<FlowCounts> },
    Written { flow: FlowId },
    Ended { counts: Box<FlowCounts> },
    Exchanged { link: Link, result: Result<Exchanged, SystemError> },
    LinkCounts { link: Link, counts: Option<Box<StreamCounts>> },
    Host(Box<HostCounts>),
    NotWritten { name: String, reason: SystemError },
    Tick,
    Signal(i32),
    Text(Option<Vec<u8>>),
}

impl DriverEvent {
    /// Delivers the event.
    pub(super) fn deliver(self, now: Timestamp, to: &mut dyn StandIn) {
        let input = match self {
            Self::Begin => Input::Begin,
            Self::Opened { link, opened } => Input::Opened { link, opened },
            Self::NotOpened { link, reason } => Input::NotOpened { link, reason },
            Self::Accepted { listener, link, opened } => Input::Accepted { listener, link, opened },
            Self::Bytes { link, bytes } => return to.input(now, Input::Bytes { link, bytes: &bytes }),
            Self::Datagram { link, from, bytes } => {
                return to.input(now, Input::Datagram { link, from, bytes: &bytes });
            }
            Self::Closed { link, reason } => Input::Closed { link, reason },
            Self::Sent { link } => Input::Sent { link },
            Self::Admitted { run } => Input::Admitted { run },
            Self::Logged { run, id } => return to.input(now, Input::Logged { run, id: &id }),
            Self::Refused { run, refusal: MeasurementRefusal { why, may_retry } } => {
                Input::Refused { run, why, may_retry }
            }
            Self::Started { flow, settings } => {
                return to.input(now, Input::Started { flow, settings: &settings });
            }
            Self::NotStarted { flow, reason } => Input::NotStarted { flow, reason },
            Self::Counts { cpu, flows } => return to.input(now, Input::Counts { cpu, flows: &flows }),
            Self::Written { flow } => Input::Written { flow },
            Self::Ended { counts } => return to.input(now, Input::Ended { counts: &counts }),
            Self::Exchanged { link, result } => Input::Exchanged { link, result },
            Self::LinkCounts { link, counts } => {
                return to.input(now, Input::LinkCounts { link, counts: counts.as_deref() });
            }
            Self::Host(counts) => return to.input(now, Input::Host(&counts)),
            Self::NotWritten { name, reason } => Input::NotWritten { name, reason },
            Self::Tick => Input::Tick,
            Self::Signal(number) => Input::Signal(number),
            Self::Text(text) => return to.input(now, Input::Text(text.as_deref())),
        };
        to.input(now, input);
    }
}

/// An error of the operating system, with the text of strerror(3).
pub(super) fn reason(error: &io::Error) -> SystemError {
    let text = error.to_string();
    let errno = error.raw_os_error().unwrap_or(0);
    // The standard library appends the number, and adds a prefix to errors of the resolver.
    let bare = without_error_numbers(&text);
    let bare = bare.rsplit_once("address information: ").map_or(&*bare, |(_, message)| message);
    SystemError { errno, text: bare.to_owned() }
}

/// Like [`reason`], for an error of a socket.
pub(super) fn reason_of(error: &SockError) -> SystemError {
    const ENOENT: i32 = 2;
    const EPROTO: i32 = 71;
    let mut reason = reason(&error.source);
    // The error text then lists the available algorithms and has no number. No other socket call does that.
    if error.op == "set TCP_CONGESTION" && reason.errno == 0 {
        reason.errno = ENOENT;
    }
    // The peer has done it, and reasons without a number are those of this end.
    if error.op == DECRYPT && reason.errno == 0 {
        reason.errno = EPROTO;
    }
    reason
}

/// A reason of our own, without an errno.
pub(super) fn own_reason(text: impl Into<String>) -> SystemError {
    SystemError { errno: 0, text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_has_encrypted_wrongly_is_no_reason_of_this_end() {
        let error = SockError::new(DECRYPT, io::Error::new(io::ErrorKind::InvalidData, "bad record"));
        let reason = reason_of(&error);
        assert!(reason.errno != own_reason("stopped").errno && reason.text == "bad record", "{reason:?}");
    }

    #[test]
    fn errors_have_the_texts_of_strerror() {
        let refused = reason(&io::Error::from_raw_os_error(111));
        assert_eq!(refused, SystemError { errno: 111, text: "Connection refused".to_owned() });
        let unknown =
            io::Error::other("\"nosuch\": failed to lookup address information: Name or service not known");
        assert_eq!(reason(&unknown), own_reason("Name or service not known"));
    }
}
