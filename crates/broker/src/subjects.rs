//! Subjects of messages: who listens to what.
//!
//! Agents listen to `linerate.FLEET.agent.NAME` and send to `linerate.FLEET.centre.NAME`, so a coordinator knows the
//! sender from the subject, which the broker has checked.

use std::fmt::Write as _;

const ROOT: &str = "linerate";
const AGENT: &str = "agent";
const CENTRE: &str = "centre";
/// Starts the hexadecimal value of a byte. Alone it is the empty name, since NATS has no empty parts of subjects.
const ESCAPE: char = '=';

/// The longest subject that is sent. A server ends the connection of a client whose line is longer than 4 KiB.
const MAX_SUBJECT_BYTES: usize = 2048;

/// The subject of messages to the agent `name`.
///
/// ```
/// assert_eq!(linerate_broker::agent_subject("campus", "rome-1"), "linerate.campus.agent.rome-1");
/// assert_eq!(linerate_broker::agent_subject("campus", "a.example"), "linerate.campus.agent.a=2Eexample");
/// ```
#[must_use]
pub fn agent_subject(fleet: &str, name: &str) -> String {
    format!("{ROOT}.{}.{AGENT}.{}", encode(fleet), encode(name))
}

/// The subject of messages from the agent `name` to the coordinators.
#[must_use]
pub fn centre_subject(fleet: &str, name: &str) -> String {
    format!("{ROOT}.{}.{CENTRE}.{}", encode(fleet), encode(name))
}

/// What coordinators subscribe to: the messages of all agents.
#[must_use]
pub fn centre_subjects(fleet: &str) -> String {
    format!("{ROOT}.{}.{CENTRE}.*", encode(fleet))
}

/// What coordinators may send to: all agents.
pub(crate) fn agent_subjects(fleet: &str) -> String {
    format!("{ROOT}.{}.{AGENT}.*", encode(fleet))
}

/// The name of the agent in a subject of [`agent_subject`] or [`centre_subject`]; absent for a subject of another
/// fleet or another kind. A name can contain anything, so it is not printed as it is.
///
/// ```
/// use linerate_broker::{centre_subject, name_in_subject};
/// let subject = centre_subject("campus", "a.example");
/// assert_eq!(name_in_subject("campus", &subject).as_deref(), Some("a.example"));
/// assert_eq!(name_in_subject("another", &subject), None);
/// ```
#[must_use]
pub fn name_in_subject(fleet: &str, subject: &str) -> Option<String> {
    let rest = subject.strip_prefix(ROOT)?.strip_prefix('.')?;
    let rest = rest.strip_prefix(encode(fleet).as_str())?.strip_prefix('.')?;
    let (kind, name) = rest.split_once('.')?;
    if kind != AGENT && kind != CENTRE {
        return None;
    }
    decode(name)
}

/// Whether a message can be sent to `subject`: a subject without wildcards that cannot break the protocol.
pub(crate) fn is_subject(subject: &str) -> bool {
    is_pattern(subject) && subject.split('.').all(|part| part != "*" && part != ">")
}

/// Whether `subject` can be subscribed to.
pub(crate) fn is_pattern(subject: &str) -> bool {
    let parts = subject.split('.').count();
    let is_part = |(at, part): (usize, &str)| {
        let last = at + 1 == parts;
        !part.is_empty()
            && !part.contains(|c: char| c.is_whitespace() || c.is_control())
            && (part == "*" || (part == ">" && last) || !part.contains(['*', '>']))
    };
    subject.len() <= MAX_SUBJECT_BYTES && subject.split('.').enumerate().all(is_part)
}

/// Letters, digits, `-` and `_` as they are, every other byte as `=` and two hexadecimal digits.
fn encode(name: &str) -> String {
    if name.is_empty() {
        return ESCAPE.to_string();
    }
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            encoded.push(byte as char);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "{ESCAPE}{byte:02X}");
        }
    }
    encoded
}

/// The reverse of [`encode`]; absent for what it never writes, so that two subjects never have the same name.
fn decode(encoded: &str) -> Option<String> {
    if encoded.chars().eq([ESCAPE]) {
        return Some(String::new());
    }
    let mut parts = encoded.split(ESCAPE);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    let name = String::from_utf8(bytes).ok()?;
    (encode(&name) == encoded).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_has_a_subject_of_its_own_and_comes_back(fleet in ".*", name in ".*", other in ".*") {
            for subject in [agent_subject(&fleet, &name), centre_subject(&fleet, &name)] {
                prop_assert_eq!(subject.split('.').count(), 4);
                prop_assert!(subject.len() > MAX_SUBJECT_BYTES || is_subject(&subject), "{}", subject);
                prop_assert!(subject.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'*' | b'>' | b'"' | b'\\')));
                prop_assert_eq!(name_in_subject(&fleet, &subject), Some(name.clone()));
                prop_assert_eq!(name_in_subject(&other, &subject).is_some(), other == fleet);
            }
            prop_assert_eq!(agent_subject(&fleet, &name) == agent_subject(&fleet, &other), name == other);
        }

        #[test]
        fn a_name_is_read_from_one_subject_only(token in "[A-Za-z0-9=_.*> -]{0,12}", any in ".*") {
            let subject = format!("linerate.campus.centre.{token}");
            if let Some(name) = name_in_subject("campus", &subject) {
                prop_assert_eq!(centre_subject("campus", &name), subject);
            }
            prop_assert_eq!(name_in_subject("campus", &any), None);
        }
    }

    #[test]
    fn usual_names_stay_readable_and_others_are_harmless() {
        assert_eq!(agent_subject("campus", "rome-1_a"), "linerate.campus.agent.rome-1_a");
        assert_eq!(centre_subject("", "*"), "linerate.=.centre.=2A");
        assert_eq!(centre_subject("a b", "é>\n"), "linerate.a=20b.centre.=C3=A9=3E=0A");
        assert_eq!(centre_subjects("campus"), "linerate.campus.centre.*");
        for wrong in ["=2e", "=4", "=41", "a=", "==", "a=FF", "é", "a.b", "", "*"] {
            assert_eq!(name_in_subject("f", &format!("linerate.f.agent.{wrong}")), None, "{wrong}");
        }
    }

    #[test]
    fn what_nats_cannot_carry_is_no_subject() {
        for good in ["a", "a.b", "linerate.x.agent.=2E", "a$-_/.b"] {
            assert!(is_subject(good), "{good}");
        }
        for wrong in
            ["", ".", "a.", ".a", "a..b", "a b", "a\r\nPUB x 1", "a.*", ">", "a.>", "a*", "a\u{2028}b"]
        {
            assert!(!is_subject(wrong), "{wrong:?}");
        }
        assert!(is_pattern("a.*.b") && is_pattern("a.>") && is_pattern("*"));
        assert!(!is_pattern("a.>.b") && !is_pattern("a*.b") && !is_pattern("a.>>"));
        assert!(!is_subject(&"a".repeat(MAX_SUBJECT_BYTES + 1)));
    }
}
