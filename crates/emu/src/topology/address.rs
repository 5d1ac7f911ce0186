//! Addresses of hosts, and their common network.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The default IPv4 address of the host with that number, counted from 1.
pub(super) fn default_v4(number: usize) -> (Ipv4Addr, u8) {
    // Above 254 it is outside of the network, which is reported like any other mistake.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    (Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 77, 0, 0)).saturating_add(number)), 24)
}

/// The default IPv6 address of the host with that number, counted from 1.
pub(super) fn default_v6(number: usize) -> (Ipv6Addr, u8) {
    (Ipv6Addr::from(u128::from(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0)) + number as u128), 64)
}

/// Reads `10.77.0.1/24`.
pub(super) fn parse_v4(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let (address, length): (Ipv4Addr, u8) = parse(text, 8..=30, "10.77.0.1/24")?;
    let own = u32::from(address) & !mask_v4(length);
    if own == 0 || own == !mask_v4(length) {
        return Err(format!("{text} is the address of a network, not of a host; change its last number"));
    }
    if address.is_loopback() || address.is_multicast() || address.octets()[0] == 0 {
        return Err(format!("{text} is not the address of a host; use one such as 10.77.0.1/24"));
    }
    Ok((address, length))
}

/// Reads `fd77::1/64`.
pub(super) fn parse_v6(text: &str) -> Result<(Ipv6Addr, u8), String> {
    let (address, length): (Ipv6Addr, u8) = parse(text, 8..=126, "fd77::1/64")?;
    if u128::from(address) & !mask_v6(length) == 0 {
        return Err(format!("{text} is the address of a network, not of a host; change its last number"));
    }
    if address.is_loopback() || address.is_multicast() || address.is_unicast_link_local() {
        return Err(format!("{text} is not the address of a host; use one such as fd77::1/64"));
    }
    Ok((address, length))
}

fn parse<A: FromStr>(
    text: &str,
    lengths: std::ops::RangeInclusive<u8>,
    example: &str,
) -> Result<(A, u8), String> {
    let wrong = || format!("'{text}' is not an address with prefix length; write it like {example}");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let (address, length) = (address.parse().map_err(|_| wrong())?, length.parse().map_err(|_| wrong())?);
    if lengths.contains(&length) {
        return Ok((address, length));
    }
    Err(format!("prefix length {length} is outside {} to {}", lengths.start(), lengths.end()))
}

fn mask_v4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

fn mask_v6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

/// The network of an address, such as `10.77.0.0/24`.
pub(super) fn network_v4((address, length): (Ipv4Addr, u8)) -> String {
    format!("{}/{length}", Ipv4Addr::from(u32::from(address) & mask_v4(length)))
}

/// The network of an address, such as `fd77::/64`.
pub(super) fn network_v6((address, length): (Ipv6Addr, u8)) -> String {
    format!("{}/{length}", Ipv6Addr::from(u128::from(address) & mask_v6(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_distinguished_from_hosts() {
        assert_eq!(network_v4((Ipv4Addr::new(10, 77, 3, 9), 20)), "10.77.0.0/20");
        assert_eq!(network_v6(("fd77:0:0:1::5".parse().unwrap(), 48)), "fd77::/48");
        for good in ["10.77.0.1/24", "192.168.1.254/24", "172.16.0.255/16"] {
            assert!(parse_v4(good).is_ok(), "{good}");
        }
        for bad in [
            "10.77.0.1",
            "10.77.0.0/24",
            "10.77.0.255/24",
            "10.77.0.1/31",
            "10.77.0.1/7",
            "127.0.0.1/8",
            "a/24",
        ] {
            assert!(parse_v4(bad).is_err(), "{bad}");
        }
        assert!(parse_v6("fd77::1/64").is_ok());
        for bad in ["fd77::/64", "fe80::1/64", "::1/64", "ff02::1/64", "fd77::1/127", "fd77::1"] {
            assert!(parse_v6(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_without_an_address_are_numbered() {
        assert_eq!(default_v4(3), (Ipv4Addr::new(10, 77, 0, 3), 24));
        assert_eq!(default_v6(3), ("fd77::3".parse().unwrap(), 64));
        assert_eq!(network_v4(default_v4(256)), "10.77.1.0/24", "does not fit, and is seen not to fit");
    }
}
