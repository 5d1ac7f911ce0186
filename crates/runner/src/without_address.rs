//! Events without the address of a client, for a host whose owner may not store addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_control::{Sink, SinkError};
use linerate_model::{CaveatKind, Event};
use serde_json::Value;

/// Passes events on, with the unspecified address (`0.0.0.0` or `::`) in place of one address, wherever it occurs: also
/// in the names of hosts and in reasons.
pub(crate) struct WithoutAddress<S> {
    inner: S,
    address: IpAddr,
}

impl<S: Sink> WithoutAddress<S> {
    pub(crate) fn new(inner: S, address: IpAddr) -> Self {
        Self { inner, address: address.to_canonical() }
    }
}

impl<S: Sink> Sink for WithoutAddress<S> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        let scrubbed = serde_json::to_value(event).and_then(|mut event| {
            scrub(&mut event, self.address);
            serde_json::from_value::<Event>(event)
        });
        // An event that cannot be stored without the address is not stored with it.
        let event = scrubbed.map_err(|error| SinkError {
            kind: CaveatKind::NotArchived,
            what: "this run was not archived without its client's address",
            source: Box::new(error),
        })?;
        self.inner.on(&event)
    }
}

fn scrub(value: &mut Value, address: IpAddr) {
    match value {
        Value::String(text) => {
            if let Some(without) = without(text, address) {
                *text = without;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| scrub(value, address)),
        Value::Object(fields) => fields.values_mut().for_each(|value| scrub(value, address)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text without the address; absent if it does not contain it.
fn without(text: &str, address: IpAddr) -> Option<String> {
    let (typed, instead) = (address.to_string(), unspecified(address).to_string());
    let mut found = String::new();
    let mut rest = text;
    let mut any = false;
    while let Some(at) = rest.find(&typed) {
        let (before, after) = (&rest[..at], &rest[at + typed.len()..]);
        // Another address may begin or end like this one.
        let longer = before.chars().next_back().is_some_and(|last| continues(address, last))
            || after.chars().next().is_some_and(|next| next.is_ascii_hexdigit());
        found.push_str(before);
        found.push_str(if longer { &typed } else { &instead });
        any |= !longer;
        rest = after;
    }
    found.push_str(rest);
    any.then_some(found)
}

/// Whether a letter before an address shows that it is the end of a longer one. A mapped address ends with `:` and one of
/// IPv4.
fn continues(address: IpAddr, letter: char) -> bool {
    letter.is_ascii_hexdigit() || letter == if address.is_ipv4() { '.' } else { ':' }
}

fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_removed_wherever_it_stands_and_others_stay() {
        let v4 = "10.0.0.1".parse().unwrap();
        for (text, wanted) in [
            ("10.0.0.1", Some("0.0.0.0")),
            ("10.0.0.1:40000", Some("0.0.0.0:40000")),
            ("[::ffff:10.0.0.1]:5201", Some("[::ffff:0.0.0.0]:5201")),
            ("connect to 10.0.0.1 failed, 10.0.0.1.", Some("connect to 0.0.0.0 failed, 0.0.0.0.")),
            ("10.0.0.10 and 110.0.0.1 and 1.10.0.0.1", None),
            ("", None),
        ] {
            assert_eq!(without(text, v4).as_deref(), wanted, "{text}");
        }
        let v6 = "2001:db8::1".parse().unwrap();
        for (text, wanted) in [
            ("[2001:db8::1]:5201 (iperf3)", Some("[::]:5201 (iperf3)")),
            ("2001:db8::12, 12001:db8::1, 1:2001:db8::1", None),
        ] {
            assert_eq!(without(text, v6).as_deref(), wanted, "{text}");
        }
    }
}
