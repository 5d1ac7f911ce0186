//! A host with or without a port, as users type it and as addresses of the web have it.

/// The host and the port of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an address of IPv6; absent for another text, and for
/// port 0. A host may have a zone. A port that is given separately counts more than the one in the text.
#[must_use]
pub fn split_host_and_port(typed: &str, port: Option<u16>) -> Option<(String, Option<u16>)> {
    let split = |host: &str, text: &str| {
        let typed = text.parse().ok().filter(|port: &u16| *port != 0)?;
        (!host.is_empty()).then(|| (host.to_owned(), port.or(Some(typed))))
    };
    if typed.is_empty() || port == Some(0) {
        return None;
    }
    if let Some(rest) = typed.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(text) => split(address, text),
            None if rest.is_empty() => Some((address.to_owned(), port)),
            None => None,
        };
    }
    match typed.split_once(':') {
        // More than one colon is an IPv6 address without port.
        Some((_, text)) if text.contains(':') => Some((typed.to_owned(), port)),
        Some((host, text)) => split(host, text),
        None => Some((typed.to_owned(), port)),
    }
}

/// `HOST:PORT`, with an address of IPv6 in brackets (RFC 3986, section 3.2.2).
#[must_use]
pub fn join_host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_as_people_type_them() {
        let parsed = |typed: &str| split_host_and_port(typed, None);
        assert_eq!(parsed("host"), Some(("host".into(), None)));
        assert_eq!(parsed("host:7000"), Some(("host".into(), Some(7000))));
        assert_eq!(parsed("::1"), Some(("::1".into(), None)));
        assert_eq!(parsed("fe80::1%eth0"), Some(("fe80::1%eth0".into(), None)));
        assert_eq!(parsed("[::1]:7000"), Some(("::1".into(), Some(7000))));
        assert_eq!(parsed("[::1]"), Some(("::1".into(), None)));
        assert_eq!(split_host_and_port("host:7000", Some(8000)), Some(("host".into(), Some(8000))));
        for wrong in ["", "host:", "host:0", "host:70000", "host:x", ":7000", "[::1", "[::1]x"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        assert_eq!(split_host_and_port("host", Some(0)), None);
    }

    #[test]
    fn what_is_joined_is_split_again() {
        for (host, joined) in [("2001:db8::1", "[2001:db8::1]:5202"), ("ams-1", "ams-1:5202")] {
            assert_eq!(join_host_and_port(host, 5202), joined);
            assert_eq!(split_host_and_port(joined, None), Some((host.to_owned(), Some(5202))));
        }
    }
}
