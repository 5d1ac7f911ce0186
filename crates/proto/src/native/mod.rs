//! The native protocol: one TCP and one UDP port; the client opens every connection.
//!
//! A TCP connection starts with a 32-byte [`Preface`] that states its purpose: control, data, or probes if UDP
//! does not get through. The control connection then carries frames (32-bit length, JSON); a data connection
//! carries payload until its half-close. Datagrams that open a UDP flow, and probes, are 64-byte
//! [`ProbeDatagram`]s. A UDP flow starts only after the challenge of its receiver was echoed. The normative
//! text is
//! `docs/reference/native-protocol.md`.

mod client;
mod datagram;
mod frame;
mod link;
mod message;
mod phase;
mod preface;
mod server;
#[cfg(test)]
mod tests;

pub use client::ClientSession;
pub use datagram::{DATAGRAM_BYTES, DatagramKind, ProbeDatagram};
pub use frame::{FRAME_LIMIT, Framer, HELLO_LIMIT};
pub use preface::{ConnectionPurpose, PREFACE_BYTES, Preface, looks_like};
pub use server::ServerSession;

use std::net::IpAddr;

use crate::Protocol;
use linerate_model::flow::{SeqField, StampLayout, TimeField, TimeForm};
use linerate_model::sniff::Match;

/// Version of the protocol.
pub const VERSION: u8 = 2;

/// First bytes of every connection, and of every datagram except data.
pub const MAGIC: [u8; 8] = *b"LINERATE";

/// The protocol's entry for a port.
pub static NATIVE: Protocol = Protocol { default_port: 5201, sniff, refusal };

/// Layout of our data datagrams.
pub const STAMP: StampLayout = StampLayout {
    tag_at: Some(0),
    seq: SeqField::Wide { at: 8, first: 0 },
    time: Some(TimeField { at: 16, form: TimeForm::Nanoseconds }),
    stream_at: Some(24),
    length: 32,
};

/// The first 8 bytes of every data datagram of a run: the cookie, folded so that the wire does not reveal it.
#[must_use]
pub fn data_tag(cookie: &[u8; 16]) -> [u8; 8] {
    let mut tag = [0; 8];
    for (at, byte) in tag.iter_mut().enumerate() {
        *byte = cookie[at] ^ cookie[at + 8].rotate_left(3);
    }
    tag
}

/// What takes the place of the cookie in [`data_tag`] for datagrams to a multicast group, whose receivers belong to runs
/// with a cookie each: the group, and the port that the datagrams come from and go to.
#[must_use]
pub fn multicast_cookie(group: IpAddr, port: u16) -> [u8; 16] {
    let mut cookie = match group {
        IpAddr::V4(group) => group.to_ipv6_mapped().octets(),
        IpAddr::V6(group) => group.octets(),
    };
    for (byte, of_port) in cookie.iter_mut().zip(port.to_be_bytes()) {
        *byte ^= of_port;
    }
    cookie
}

/// The refusal of a server, sent after its preface.
fn refusal(why: &str) -> Vec<u8> {
    Framer::encode(&message::NativeMessage::Refused { why: why.into() }).unwrap_or_default()
}

fn sniff(start: &[u8]) -> Match {
    Match::magic(start, &MAGIC)
}
