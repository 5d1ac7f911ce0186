//! Texts of messages that have only certain characters and a bounded length. Those that arrive with anything else are
//! refused.

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Deref, RangeInclusive};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

/// A text of a message: its lengths in bytes, and the bytes that it may have.
macro_rules! checked_text {
    ($(#[$about:meta])* $Text:ident, $lengths:expr, $is_allowed:expr) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $Text(String);

        impl $Text {
            const LENGTHS: RangeInclusive<usize> = $lengths;

            /// The text; absent if it has another length or other characters.
            #[must_use]
            pub fn checked(text: String) -> Option<Self> {
                let is_allowed: fn(u8) -> bool = $is_allowed;
                let is_right = Self::LENGTHS.contains(&text.len()) && text.bytes().all(is_allowed);
                is_right.then_some(Self(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// Of a text of our own, only what it may have.
        impl From<&str> for $Text {
            fn from(text: &str) -> Self {
                let is_allowed: fn(u8) -> bool = $is_allowed;
                let allowed = text.chars().filter(|c| u8::try_from(*c).is_ok_and(is_allowed));
                let mut kept: String = allowed.take(*Self::LENGTHS.end()).collect();
                while kept.len() < *Self::LENGTHS.start() {
                    kept.push('0');
                }
                Self(kept)
            }
        }

        impl From<String> for $Text {
            fn from(text: String) -> Self {
                match Self::checked(text.clone()) {
                    Some(checked) => checked,
                    None => Self::from(text.as_str()),
                }
            }
        }

        impl From<$Text> for String {
            fn from(text: $Text) -> Self {
                text.0
            }
        }

        impl<'de> Deserialize<'de> for $Text {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let wrong = || serde::de::Error::custom(concat!("no ", stringify!($Text)));
                Self::checked(String::deserialize(from)?).ok_or_else(wrong)
            }
        }

        impl Deref for $Text {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $Text {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $Text {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl fmt::Debug for $Text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $Text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

checked_text!(
    /// The name of a run, or of a process of an agent: ASCII letters, digits, `-` and `_`. It can be a part of the name of
    /// a file, and be printed.
    PlainName,
    1..=64,
    is_plain
);

checked_text!(
    /// The signature by which coordinators recognise a calendar, as base64url; empty for none.
    CalendarProof,
    // One of today has 86 characters.
    0..=128,
    is_plain
);

checked_text!(
    /// A part of a result, as base64.
    ResultPartText,
    0..=256 << 10,
    |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
);

checked_text!(
    /// What a result, or a part of one, is recognised by: SHA-256 of its text, as base64url.
    ResultDigest,
    43..=43,
    is_plain
);

impl ResultDigest {
    /// The digest of texts, one after the other.
    #[must_use]
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut digest = Sha256::new();
        texts.into_iter().for_each(|text| digest.update(text));
        Self(URL_SAFE_NO_PAD.encode(digest.finalize()))
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

impl ResultPartText {
    /// Characters of a part at most.
    pub(super) const MAX_CHARS: usize = *Self::LENGTHS.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_refused_and_what_is_our_own_loses_what_it_may_not_have() {
        let read = |text: &str| serde_json::from_value::<PlainName>(text.into()).ok();
        assert_eq!(read("5e7f-A_z").as_deref(), Some("5e7f-A_z"));
        for wrong in ["", "../a", "a.b", "a\u{1b}", "é", &"a".repeat(65)] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert_eq!(PlainName::from("../a é\0b"), *"ab");
        assert_eq!(PlainName::from(""), *"0");
        assert_eq!(PlainName::from("a".repeat(99)), *"a".repeat(64));
        assert_eq!(CalendarProof::from(""), *"");
    }

    #[test]
    fn a_digest_is_that_of_the_whole_text() {
        // FIPS 180-4, example of one block: "abc".
        assert_eq!(ResultDigest::of(["a", "bc"]), *"ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
    }
}
