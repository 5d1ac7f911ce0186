//! MTU limits of a link, and the links stacked on it.

use super::{attributes, dump, string, word};
use crate::SockError;

const IFINFOMSG: usize = 16;

/// Smallest and largest MTU of an interface, bytes; absent if its driver does not report them.
///
/// # Source
/// `linux/if_link.h`: `IFLA_MIN_MTU`, `IFLA_MAX_MTU`
pub(crate) fn mtu_limits(index: u32) -> Result<(Option<u32>, Option<u32>), SockError> {
    let mut found = (None, None);
    dump(libc::RTM_GETLINK, &[0; IFINFOMSG], |kind, body| {
        let ours = kind == libc::RTM_NEWLINK && word(body, 4) == Some(index);
        if ours {
            found = decode_limits(body.get(IFINFOMSG..).unwrap_or_default());
        }
        ours
    })?;
    Ok(found)
}

fn decode_limits(body: &[u8]) -> (Option<u32>, Option<u32>) {
    const IFLA_MIN_MTU: u16 = 50;
    const IFLA_MAX_MTU: u16 = 51;
    let find = |wanted: u16| {
        let (_, value) = attributes(body).find(|(kind, _)| *kind == wanted)?;
        // Drivers older than these attributes report 0.
        word(value, 0).filter(|limit| *limit != 0)
    };
    (find(IFLA_MIN_MTU), find(IFLA_MAX_MTU))
}

/// Names and MTUs of the interfaces stacked on one, such as VLANs. The kernel reduces their MTU with that of
/// the lower one and does not raise it again. The other end of a veth is not stacked.
pub(crate) fn stacked_on(index: u32) -> Result<Vec<(String, u32)>, SockError> {
    let mut found = Vec::new();
    dump(libc::RTM_GETLINK, &[0; IFINFOMSG], |kind, body| {
        if kind == libc::RTM_NEWLINK {
            found.extend(decode_stacked(body.get(IFINFOMSG..).unwrap_or_default(), index));
        }
        false
    })?;
    Ok(found)
}

fn decode_stacked(body: &[u8], below: u32) -> Option<(String, u32)> {
    const IFLA_INFO_KIND: u16 = 1;
    let find = |wanted: u16| attributes(body).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    if find(libc::IFLA_LINK).and_then(|link| word(link, 0)) != Some(below) {
        return None;
    }
    let (_, kind) = attributes(find(libc::IFLA_LINKINFO)?).find(|(kind, _)| *kind == IFLA_INFO_KIND)?;
    let follows = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"].contains(&string(kind).as_str());
    follows.then_some(())?;
    Some((string(find(libc::IFLA_IFNAME)?), word(find(libc::IFLA_MTU)?, 0)?))
}

#[cfg(test)]
mod tests {
    use super::super::attribute;
    use super::*;
    use proptest::prelude::*;

    fn link(name: &[u8], below: u32, kind: &[u8]) -> Vec<u8> {
        [
            attribute(libc::IFLA_IFNAME, name),
            attribute(libc::IFLA_MTU, &1500u32.to_ne_bytes()),
            attribute(libc::IFLA_LINK, &below.to_ne_bytes()),
            attribute(libc::IFLA_LINKINFO, &attribute(1, kind)),
        ]
        .concat()
    }

    #[test]
    fn a_vlan_lies_on_its_link_and_the_other_end_of_a_cable_does_not() {
        assert_eq!(decode_stacked(&link(b"v.5\0", 4, b"vlan\0"), 4), Some(("v.5".to_owned(), 1500)));
        assert_eq!(decode_stacked(&link(b"v.5\0", 5, b"vlan\0"), 4), None);
        assert_eq!(decode_stacked(&link(b"v\0", 4, b"veth\0"), 4), None);
    }

    #[test]
    fn a_limit_of_0_is_none() {
        let both = [attribute(50, &68u32.to_ne_bytes()), attribute(51, &0u32.to_ne_bytes())].concat();
        assert_eq!(decode_limits(&both), (Some(68), None));
        assert_eq!(mtu_limits(u32::MAX).unwrap(), (None, None));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (decode_limits(&bytes), decode_stacked(&bytes, 0));
        }
    }
}
