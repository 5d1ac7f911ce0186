//! What a test to a multicast group can be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{SpecError, Traffic};

/// Most streams to a group: a host has a socket in it for each.
const MAX_STREAMS: u32 = 128;

/// Groups that network protocols of every host use among themselves (RFC 5771 section 4).
fn is_of_protocols(group: Ipv4Addr) -> bool {
    matches!(group.octets(), [224, 0, 0, _])
}

/// Groups that are assigned for ever, such as all hosts of a link (ff02::1), groups of which no datagram leaves the host,
/// and those whose range is reserved (RFC 4291 section 2.7).
fn is_assigned_or_reserved(group: Ipv6Addr) -> bool {
    let (flags, scope) = (group.octets()[1] >> 4, group.octets()[1] & 0x0f);
    flags & 1 == 0 || matches!(scope, 0 | 1 | 15)
}

pub(super) fn check(traffic: &Traffic) -> Result<(), SpecError> {
    let fail = |knob, trouble: &str, remedy: &str| {
        Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
    };
    let Some(group) = traffic.multicast else {
        if traffic.ttl.is_some() {
            return fail("--ttl", "it is that of datagrams to a group", "give the group with --multicast");
        }
        return Ok(());
    };
    const USUAL: &str = "give one of 239.0.0.0/8, 232.0.0.0/8 or ff15::/16";
    match group {
        _ if !group.is_multicast() => {
            return fail("--multicast", "the address is not that of a group", USUAL);
        }
        IpAddr::V4(group) if is_of_protocols(group) => {
            return fail("--multicast", "network protocols use this group (224.0.0.0/24)", USUAL);
        }
        IpAddr::V6(group) if is_assigned_or_reserved(group) => {
            return fail("--multicast", "the group is reserved, or assigned to a protocol", USUAL);
        }
        _ => {}
    }
    if !traffic.udp {
        return fail("--multicast", "only datagrams can go to a group", "add -u");
    }
    if traffic.download || traffic.bidir {
        let trouble = "datagrams go from the client to the group";
        return fail("--multicast", trouble, "remove --download and --bidir, or exchange the hosts");
    }
    if traffic.until.is_some() {
        let trouble = "one receiver would decide for all when the sender stops";
        return fail("--until", trouble, "give a time with -t");
    }
    if traffic.streams > MAX_STREAMS {
        let trouble = "a receiver has a socket in the group for each stream";
        return fail("--parallel", trouble, "give at most 128 streams with --multicast");
    }
    if traffic.ttl == Some(0) {
        return fail("--ttl", "no datagram would leave the host", "give 1 to 255");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Traffic)) -> Option<(&'static str, String)> {
        let mut traffic =
            Traffic { udp: true, multicast: "239.1.2.3".parse().ok(), ttl: Some(4), ..Traffic::default() };
        change(&mut traffic);
        check(&traffic).err().map(|error| (error.knob, error.trouble))
    }

    fn knob(change: impl FnOnce(&mut Traffic)) -> Option<&'static str> {
        refused(change).map(|(knob, _)| knob)
    }

    #[test]
    fn a_group_is_one_that_programs_may_use() {
        let of = |group: &str| refused(|traffic| traffic.multicast = group.parse().ok());
        for group in ["239.0.0.1", "232.255.1.1", "224.0.1.1", "ff12::1234", "ff15::1", "ff3e::8000:1"] {
            assert_eq!(of(group), None, "{group}");
        }
        for group in [
            "10.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "fe80::1",
            "224.0.0.251",
            "ff02::1",
            "ff05::1:3",
            "ff0e::1",
            "ff11::1",
            "ff1f::1",
        ] {
            assert_eq!(of(group).map(|refusal| refusal.0), Some("--multicast"), "{group}");
        }
    }

    #[test]
    fn what_makes_no_sense_towards_a_group_is_named() {
        assert_eq!(knob(|traffic| traffic.udp = false), Some("--multicast"));
        assert_eq!(knob(|traffic| traffic.download = true), Some("--multicast"));
        assert_eq!(knob(|traffic| traffic.bidir = true), Some("--multicast"));
        assert_eq!(knob(|traffic| traffic.streams = 129), Some("--parallel"));
        assert_eq!(knob(|traffic| traffic.ttl = Some(0)), Some("--ttl"));
        assert_eq!(knob(|traffic| traffic.multicast = None), Some("--ttl"));
        let share = linerate_units::Ratio::new(0.01);
        assert_eq!(knob(|traffic| traffic.until = share), Some("--until"));
        assert_eq!(knob(|traffic| traffic.upload = true), None);
    }

    #[test]
    fn a_group_has_one_direction() {
        let traffic = Traffic { udp: true, multicast: "239.1.2.3".parse().ok(), ..Traffic::default() };
        assert_eq!(traffic.phases(), [[crate::Direction::Upload]]);
    }
}
