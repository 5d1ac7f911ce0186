//! Routes of the kernel's forwarding table.

use std::net::IpAddr;

use super::{NetlinkRequest, ask, attributes, open, word};
use crate::SockError;

const RTMSG: usize = 12;

/// Index of the interface through which packets from `local` to `peer` leave; that of the loopback if the peer is this
/// host. `device` limits the search to an interface, as the socket does that is bound to it.
///
/// # Errors
/// There is no route, or the addresses are of different families.
pub(crate) fn outgoing_interface(local: IpAddr, peer: IpAddr, device: Option<u32>) -> Result<u32, SockError> {
    const OP: &str = "look up the route";
    let request = request(local, peer, device).ok_or_else(|| SockError::errno(OP, libc::EAFNOSUPPORT))?;
    let mut found = None;
    ask(OP, &open()?, request, |kind, body| {
        if kind == libc::RTM_NEWROUTE {
            found = decode_interface(body);
        }
        true
    })?;
    found.ok_or_else(|| SockError::errno(OP, libc::EPROTO))
}

fn request(local: IpAddr, peer: IpAddr, device: Option<u32>) -> Option<NetlinkRequest> {
    let (family, from, to) = match (local, peer) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (libc::AF_INET, from.octets().to_vec(), to.octets().to_vec()),
        (IpAddr::V6(from), IpAddr::V6(to)) => (libc::AF_INET6, from.octets().to_vec(), to.octets().to_vec()),
        _ => return None,
    };
    let bits = (8 * to.len()) as u8;
    let mut body = [0; RTMSG];
    body[..3].copy_from_slice(&[family as u8, bits, bits]);
    let request = NetlinkRequest::new(libc::RTM_GETROUTE, 0, &body).attribute(libc::RTA_DST, &to);
    let request = if local.is_unspecified() { request } else { request.attribute(libc::RTA_SRC, &from) };
    Some(match device {
        Some(index) => request.attribute(libc::RTA_OIF, &index.to_ne_bytes()),
        None => request,
    })
}

fn decode_interface(body: &[u8]) -> Option<u32> {
    let (_, index) = attributes(body.get(RTMSG..)?).find(|(kind, _)| *kind == libc::RTA_OIF)?;
    word(index, 0)
}

#[cfg(test)]
mod tests {
    use super::super::attribute;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_route_is_asked_for_with_both_addresses_and_the_device() {
        let [local, peer] = ["192.0.2.1", "192.0.2.9"].map(|text| text.parse().unwrap());
        let bytes = request(local, peer, Some(7)).unwrap().finish();
        assert_eq!(bytes[16..20], [libc::AF_INET as u8, 32, 32, 0]);
        let expected =
            [attribute(1, &[192, 0, 2, 9]), attribute(2, &[192, 0, 2, 1]), attribute(4, &7u32.to_ne_bytes())];
        assert_eq!(bytes[28..], expected.concat());
        let v6 = "2001:db8::1".parse().unwrap();
        assert_eq!(request(v6, v6, None).unwrap().finish()[17..19], [128, 128]);
        assert!(request(v6, peer, None).is_none());
    }

    #[test]
    fn the_interface_of_a_route_is_found_among_its_attributes() {
        let rest = [attribute(1, &[10, 0, 0, 1]), attribute(4, &3u32.to_ne_bytes())].concat();
        assert_eq!(decode_interface(&[vec![0; RTMSG], rest].concat()), Some(3));
        assert_eq!(decode_interface(&[0; RTMSG]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_interface(&bytes);
        }
    }
}
