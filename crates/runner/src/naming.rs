//! Names of runs and targets.

use crate::RunnerError;

/// Splits `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. `port` has precedence over the one in the text; an absent port
/// is the default one of the protocol.
///
/// # Errors
/// The text has another form, or the port is not from 1 to 65535.
pub fn target(typed: &str, port: Option<u16>) -> Result<(String, Option<u16>), RunnerError> {
    split_port(typed, port).ok_or_else(|| RunnerError::Target(typed.to_owned()))
}

fn split_port(typed: &str, port: Option<u16>) -> Option<(String, Option<u16>)> {
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

/// Wall-clock time, rounded to seconds, RFC 3339.
#[must_use]
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// A new run id of 16 random hexadecimal digits.
///
/// # Errors
/// This system has no random numbers.
pub fn run_name() -> Result<String, RunnerError> {
    getrandom::u64().map(|number| format!("{number:016x}")).map_err(RunnerError::NoRandomNumbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_as_people_type_them() {
        let parsed = |typed: &str| split_port(typed, None);
        assert_eq!(parsed("host"), Some(("host".into(), None)));
        assert_eq!(parsed("host:7000"), Some(("host".into(), Some(7000))));
        assert_eq!(parsed("::1"), Some(("::1".into(), None)));
        assert_eq!(parsed("fe80::1%eth0"), Some(("fe80::1%eth0".into(), None)));
        assert_eq!(parsed("[::1]:7000"), Some(("::1".into(), Some(7000))));
        assert_eq!(parsed("[::1]"), Some(("::1".into(), None)));
        assert_eq!(split_port("host:7000", Some(8000)), Some(("host".into(), Some(8000))));
        for wrong in ["", "host:", "host:0", "host:70000", "host:x", ":7000", "[::1", "[::1]x"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        assert_eq!(split_port("host", Some(0)), None);
    }
}
