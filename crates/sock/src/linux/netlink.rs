//! Messages to and from the kernel's routing socket (rtnetlink(7)).
//!
//! Encoding and decoding do no I/O. Messages and attributes are length-prefixed and padded to four bytes.
//! Decoders skip what they do not know, so that additions of newer kernels do no harm.

mod disciplines;
mod links;
mod queue_counts;
mod routes;

use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::SockError;
use crate::linux::call::retry;

pub(crate) use disciplines::{FoundDiscipline, disciplines, has_filters};
pub(crate) use links::{mtu_limits, stacked_on};
pub(crate) use queue_counts::{kinds, root_counts, root_waiting};
pub(crate) use routes::outgoing_interface;

const HEADER: usize = 16;
const ANSWER_BYTES: usize = 64 << 10;

/// One message of the kernel's answer: its type and its body after the header.
struct NetlinkMessage<'a> {
    kind: u16,
    body: &'a [u8],
}

fn padded(length: usize) -> Option<usize> {
    length.checked_next_multiple_of(4)
}

fn messages(mut rest: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*rest.get(4..)?.first_chunk()?);
        let body = rest.get(HEADER..length)?;
        rest = rest.get(padded(length)?..).unwrap_or_default();
        Some(NetlinkMessage { kind, body })
    })
}

/// Type and content of each attribute.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let body = rest.get(4..length)?;
        rest = rest.get(padded(length)?..).unwrap_or_default();
        Some((kind, body))
    })
}

/// A message to the kernel: a fixed part, then attributes.
pub(crate) struct NetlinkRequest(Vec<u8>);

impl NetlinkRequest {
    pub(crate) fn new(kind: u16, flags: i32, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        bytes.extend(body);
        Self(bytes)
    }

    pub(crate) fn attribute(mut self, kind: u16, body: &[u8]) -> Self {
        self.0.extend(attribute(kind, body));
        self
    }

    /// The whole message, with its length filled in.
    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// One padded attribute. For nested attributes, the body is a concatenation of attributes.
pub(crate) fn attribute(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + body.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A routing socket in the network namespace of the calling thread.
pub(crate) fn open() -> Result<Socket, SockError> {
    let netlink = Domain::from(libc::AF_NETLINK);
    Socket::new(netlink, Type::RAW, Some(Protocol::from(libc::NETLINK_ROUTE)))
        .map_err(|source| SockError::new("open a routing socket", source))
}

/// Sends a request and calls `each` for every message of the answer, until it returns true or the answer ends.
fn ask(
    op: &'static str,
    socket: &Socket,
    request: NetlinkRequest,
    mut each: impl FnMut(u16, &[u8]) -> bool,
) -> Result<(), SockError> {
    socket.send(&request.finish()).map_err(|source| SockError::new(op, source))?;
    let mut answer = vec![0u8; ANSWER_BYTES];
    loop {
        let raw = socket.as_raw_fd();
        let filled = retry(op, || {
            // SAFETY: pointer and length describe `answer`, which nothing else accesses.
            unsafe { libc::recv(raw, answer.as_mut_ptr().cast(), answer.len(), 0) }
        })?;
        if filled == 0 {
            return Ok(());
        }
        for message in messages(&answer[..filled]) {
            if message.kind == libc::NLMSG_ERROR as u16 {
                // Error code 0 acknowledges a change.
                return match word(message.body, 0).map_or(libc::EPROTO, |word| -word.cast_signed()) {
                    0 => Ok(()),
                    errno => Err(SockError::errno(op, errno)),
                };
            }
            if message.kind == libc::NLMSG_DONE as u16 || each(message.kind, message.body) {
                return Ok(());
            }
        }
    }
}

/// Requests a listing. Uses its own socket, because the rest of a partly read answer would precede the next
/// one.
fn dump(kind: u16, body: &[u8], each: impl FnMut(u16, &[u8]) -> bool) -> Result<(), SockError> {
    ask("query the routing socket", &open()?, NetlinkRequest::new(kind, libc::NLM_F_DUMP, body), each)
}

/// Requests a change and waits until the kernel acknowledges or refuses it.
pub(crate) fn act(
    op: &'static str,
    socket: &Socket,
    kind: u16,
    flags: i32,
    build: impl FnOnce(NetlinkRequest) -> NetlinkRequest,
    body: &[u8],
) -> Result<(), SockError> {
    let request = build(NetlinkRequest::new(kind, libc::NLM_F_ACK | flags, body));
    ask(op, socket, request, |_, _| false)
}

/// Content of a link message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkFacts {
    pub(crate) alias: Option<String>,
    pub(crate) gso_max_bytes: Option<u32>,
    pub(crate) gro_max_bytes: Option<u32>,
    pub(crate) gso_ipv4_max_bytes: Option<u32>,
    pub(crate) gro_ipv4_max_bytes: Option<u32>,
    pub(crate) tso_max_bytes: Option<u32>,
    pub(crate) queue_packets: Option<u32>,
    /// Index of the interface below, such as that of a VLAN; absent if it is in another namespace.
    pub(crate) below: Option<u32>,
}

/// The largest GSO and GRO packets, the queue length and the alias of an interface.
pub(crate) fn link_facts(index: u32) -> Result<LinkFacts, SockError> {
    const IFINFOMSG: usize = 16;
    let mut found = LinkFacts::default();
    dump(libc::RTM_GETLINK, &[0; IFINFOMSG], |kind, body| {
        let ours = kind == libc::RTM_NEWLINK && word(body, 4) == Some(index);
        if ours {
            found = decode_link(body.get(IFINFOMSG..).unwrap_or_default());
        }
        ours
    })?;
    Ok(found)
}

/// Packets that an interface dropped instead of sending, since it was created.
pub(crate) fn send_drops(socket: &Socket, index: u32) -> Result<u64, SockError> {
    const IFINFOMSG: usize = 16;
    let mut body = [0; IFINFOMSG];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut found = None;
    ask(
        "query an interface's counters",
        socket,
        NetlinkRequest::new(libc::RTM_GETLINK, 0, &body),
        |kind, body| {
            if kind == libc::RTM_NEWLINK {
                found = decode_send_drops(body.get(IFINFOMSG..).unwrap_or_default());
            }
            true
        },
    )?;
    found.ok_or_else(|| SockError::errno("query an interface's counters", libc::EPROTO))
}

/// `tx_dropped` of `rtnl_link_stats64` (linux/if_link.h).
fn decode_send_drops(body: &[u8]) -> Option<u64> {
    const IFLA_STATS64: u16 = 23;
    const TX_DROPPED_AT: usize = 7 * 8;
    let (_, counters) = attributes(body).find(|(kind, _)| *kind == IFLA_STATS64)?;
    counters.get(TX_DROPPED_AT..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

fn decode_link(body: &[u8]) -> LinkFacts {
    const IFLA_GSO_MAX_SIZE: u16 = 41;
    const IFLA_GRO_MAX_SIZE: u16 = 58;
    const IFLA_TSO_MAX_SIZE: u16 = 59;
    const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
    const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;
    let mut facts = LinkFacts::default();
    let mut below = None;
    let mut elsewhere = false;
    for (kind, body) in attributes(body) {
        match kind {
            libc::IFLA_IFALIAS => facts.alias = Some(string(body)),
            libc::IFLA_LINK => below = word(body, 0),
            libc::IFLA_LINK_NETNSID => elsewhere = true,
            libc::IFLA_TXQLEN => facts.queue_packets = word(body, 0),
            IFLA_GSO_MAX_SIZE => facts.gso_max_bytes = word(body, 0),
            IFLA_GRO_MAX_SIZE => facts.gro_max_bytes = word(body, 0),
            IFLA_GSO_IPV4_MAX_SIZE => facts.gso_ipv4_max_bytes = word(body, 0),
            IFLA_GRO_IPV4_MAX_SIZE => facts.gro_ipv4_max_bytes = word(body, 0),
            IFLA_TSO_MAX_SIZE => facts.tso_max_bytes = word(body, 0),
            _ => {}
        }
    }
    facts.below = below.filter(|_| !elsewhere);
    facts
}

/// Kind of the queueing discipline at the root of an interface: "fq", "fq_codel", "noqueue".
pub(crate) fn root_discipline(index: u32) -> Result<Option<String>, SockError> {
    queue_counts::of_root(index, decode_root_discipline)
}

fn decode_root_discipline(body: &[u8], index: u32) -> Option<String> {
    const TCMSG: usize = 20;
    const PARENT_AT: usize = 12;
    const TC_H_ROOT: u32 = 0xffff_ffff;
    const TCA_KIND: u16 = 1;
    if word(body, 4) != Some(index) || word(body, PARENT_AT) != Some(TC_H_ROOT) {
        return None;
    }
    let (_, name) = attributes(body.get(TCMSG..)?).find(|&(kind, _)| kind == TCA_KIND)?;
    Some(string(name))
}

/// A string up to its terminating zero.
fn string(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_root_qdisc_is_distinguished_from_its_children_and_from_other_interfaces() {
        let message = |index: u32, parent: u32| {
            let mut body = vec![0; 20];
            body[4..8].copy_from_slice(&index.to_ne_bytes());
            body[12..16].copy_from_slice(&parent.to_ne_bytes());
            body.extend(attribute(12, &[1, 2, 3]));
            body.extend(attribute(1, b"fq_codel\0"));
            body
        };
        assert_eq!(decode_root_discipline(&message(4, u32::MAX), 4).as_deref(), Some("fq_codel"));
        assert_eq!(decode_root_discipline(&message(4, 0x10000), 4), None);
        assert_eq!(decode_root_discipline(&message(5, u32::MAX), 4), None);
    }

    #[test]
    fn link_attributes_are_found_behind_odd_lengths() {
        let mut body = attribute(3, b"eth0\0");
        body.extend(attribute(13, &1000u32.to_ne_bytes()));
        body.extend(attribute(41, &196_608u32.to_ne_bytes()));
        body.extend(attribute(59, &524_280u32.to_ne_bytes()));
        body.extend(attribute(63, &131_072u32.to_ne_bytes()));
        body.extend(attribute(20, b"to the roof\0"));
        body.extend(attribute(5, &3u32.to_ne_bytes()));
        let expected = LinkFacts {
            alias: Some("to the roof".to_owned()),
            gso_max_bytes: Some(196_608),
            gro_max_bytes: None,
            gso_ipv4_max_bytes: Some(131_072),
            gro_ipv4_max_bytes: None,
            tso_max_bytes: Some(524_280),
            queue_packets: Some(1000),
            below: Some(3),
        };
        assert_eq!(decode_link(&body), expected);
        body.extend(attribute(libc::IFLA_LINK_NETNSID, &0u32.to_ne_bytes()));
        assert_eq!(decode_link(&body).below, None, "an index of another namespace");
    }

    #[test]
    fn loopback_has_a_link_message() {
        let index = crate::iface::link("lo").unwrap().index;
        assert!(link_facts(index).unwrap().gso_max_bytes.unwrap() >= 65_536);
        assert_eq!(root_discipline(index).unwrap().as_deref(), Some("noqueue"));
        assert_eq!(link_facts(u32::MAX).unwrap(), LinkFacts::default());
    }

    #[test]
    fn a_request_is_as_long_as_it_says_and_reads_back() {
        let bytes = NetlinkRequest::new(16, libc::NLM_F_ACK, &[7; 16]).attribute(20, b"abc").finish();
        assert_eq!(bytes.len(), 16 + 16 + 8, "header, body, and an attribute of 7 bytes padded to 8");
        assert_eq!(
            bytes[..8],
            [40u32.to_ne_bytes(), 0x0005_0010u32.to_ne_bytes()].concat(),
            "ACK and REQUEST"
        );
        let message = messages(&bytes).next().unwrap();
        assert_eq!((message.kind, &message.body[..16]), (16, &[7; 16][..]));
        assert_eq!(attributes(&message.body[16..]).collect::<Vec<_>>(), [(20, &b"abc"[..])]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER);
            prop_assert!(attributes(&bytes).count() <= bytes.len() / 4);
            let _ = (decode_link(&bytes), decode_root_discipline(&bytes, 0), decode_send_drops(&bytes));
        }
    }
}
