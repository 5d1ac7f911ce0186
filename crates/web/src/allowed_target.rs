//! The hosts to which tests from the pages may go.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A host or a network to which tests may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTarget(AllowedHosts);

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedHosts {
    /// A host by its name, in lower case.
    Name(String),
    /// All addresses whose first bits are these.
    Network(IpAddr, u8),
}

/// A text is neither a host nor a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is neither the name of a host, nor an address, nor a network such as 192.0.2.0/24 or 2001:db8::/32"
)]
pub struct NoAllowedTarget;

impl FromStr for AllowedTarget {
    type Err = NoAllowedTarget;

    fn from_str(text: &str) -> Result<Self, NoAllowedTarget> {
        let (host, length) = text.split_once('/').map_or((text, None), |(host, length)| (host, Some(length)));
        if let Ok(address) = host.parse::<IpAddr>() {
            let bits = bits(address);
            let length = length.map_or(Ok(bits), str::parse).map_err(|_| NoAllowedTarget)?;
            // An address with bits after the network is more likely a mistake than a network.
            let is_network = length <= bits && network(address, length) == network(address, bits);
            return if is_network {
                Ok(Self(AllowedHosts::Network(address, length)))
            } else {
                Err(NoAllowedTarget)
            };
        }
        let is_part = |c: char| c.is_alphanumeric() || ".-_".contains(c);
        if length.is_some() || host.is_empty() || host.starts_with('-') || !host.chars().all(is_part) {
            return Err(NoAllowedTarget);
        }
        Ok(Self(AllowedHosts::Name(name(host))))
    }
}

impl fmt::Display for AllowedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            AllowedHosts::Name(name) => f.write_str(name),
            AllowedHosts::Network(address, length) if *length == bits(*address) => write!(f, "{address}"),
            AllowedHosts::Network(address, length) => write!(f, "{address}/{length}"),
        }
    }
}

impl AllowedTarget {
    /// Whether a test may go to this host, a name or an address. A name has to be allowed as such: what it resolves to
    /// could be another address by the time of the test.
    pub(crate) fn allows(&self, host: &str) -> bool {
        // The zone of a link-local address.
        let address = host.split('%').next().unwrap_or_default().parse::<IpAddr>();
        match (&self.0, address) {
            (AllowedHosts::Name(allowed), Err(_)) => *allowed == name(host),
            (AllowedHosts::Network(allowed, length), Ok(address)) => {
                let address = address.to_canonical();
                address.is_ipv4() == allowed.is_ipv4()
                    && network(address, *length) == network(*allowed, *length)
            }
            _ => false,
        }
    }
}

fn name(host: &str) -> String {
    host.trim_end_matches('.').to_lowercase()
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first bits of an address, as a number with zeros after them.
fn network(address: IpAddr, length: u8) -> u128 {
    let value = match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    };
    value & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(allowed: &str, host: &str) -> bool {
        allowed.parse::<AllowedTarget>().unwrap().allows(host)
    }

    #[test]
    fn names_addresses_and_networks_allow_what_they_say() {
        for (allowed, host) in [
            ("ams-1.example.net", "AMS-1.example.net."),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7", "::ffff:192.0.2.7"),
            ("192.0.2.0/24", "192.0.2.255"),
            ("0.0.0.0/0", "203.0.113.9"),
            ("2001:db8::/32", "2001:db8:ffff::1"),
            ("fe80::/10", "fe80::1%eth0"),
        ] {
            assert!(allows(allowed, host), "{allowed} {host}");
        }
        for (allowed, host) in [
            ("ams-1", "ams-1.example.net"),
            ("ams-1", "ams-1.evil.example"),
            ("192.0.2.0/24", "192.0.3.0"),
            ("192.0.2.0/24", "192.0.2.evil.example"),
            ("0.0.0.0/0", "localhost"),
            // Resolvers take these for addresses.
            ("192.0.2.0/24", "0xc0000207"),
            ("192.0.2.0/24", "192.0.519"),
            ("0.0.0.0/0", "2001:db8::1"),
            ("2001:db8::/32", "2001:db9::1"),
        ] {
            assert!(!allows(allowed, host), "{allowed} {host}");
        }
    }

    #[test]
    fn what_is_neither_is_refused_and_the_rest_is_shown_as_typed() {
        for wrong in
            ["", "/24", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.1/24", "ams-1/24", "a b", "-h", "::/129"]
        {
            assert_eq!(wrong.parse::<AllowedTarget>(), Err(NoAllowedTarget), "{wrong}");
        }
        for text in ["ams-1", "192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<AllowedTarget>().unwrap().to_string(), text);
        }
    }
}
