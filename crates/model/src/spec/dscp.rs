//! The class of a packet: its DSCP.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Differentiated services code point, 0 to 63: the upper six bits of the type-of-service byte (RFC 2474).
///
/// It is read as a number or by name, and stored as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Dscp(u8);

/// A number or name that is no DSCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DscpError;

impl fmt::Display for DscpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("give 0 to 63, ef, va, le, cs0 to cs7 or af11 to af43")
    }
}

impl std::error::Error for DscpError {}

impl Dscp {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The type-of-service byte with this class, and no ECN bits.
    #[must_use]
    pub const fn tos_byte(self) -> u8 {
        self.0 << 2
    }

    /// The class in a type-of-service byte.
    #[must_use]
    pub const fn of_tos_byte(byte: u8) -> Self {
        Self(byte >> 2)
    }
}

impl TryFrom<u8> for Dscp {
    type Error = DscpError;

    fn try_from(number: u8) -> Result<Self, DscpError> {
        if number < 64 { Ok(Self(number)) } else { Err(DscpError) }
    }
}

impl From<Dscp> for u8 {
    fn from(dscp: Dscp) -> Self {
        dscp.0
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Self, DscpError> {
        let lower = text.to_ascii_lowercase();
        if let Some(number) = (0..64).find(|number| Self(*number).name().as_deref() == Some(lower.as_str())) {
            return Ok(Self(number));
        }
        lower.parse::<u8>().map_err(|_| DscpError)?.try_into()
    }
}

impl Dscp {
    /// The name that an RFC gives it: class selectors (RFC 2474 §4.2.2), assured forwarding (RFC 2597 §6),
    /// expedited forwarding (RFC 3246 §2.7), voice-admit (RFC 5865 §2.3), lower effort (RFC 8622 §2).
    fn name(self) -> Option<String> {
        match self.0 {
            46 => Some("ef".to_owned()),
            44 => Some("va".to_owned()),
            1 => Some("le".to_owned()),
            number if number.is_multiple_of(8) => Some(format!("cs{}", number / 8)),
            // Class 1 to 4 in the upper three bits, drop precedence 1 to 3 in the next two.
            number if number.is_multiple_of(2) && (8..40).contains(&number) => {
                Some(format!("af{}{}", number / 8, number % 8 / 2))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Dscp {
    /// The name if it has one, else the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name().unwrap_or_else(|| self.0.to_string()))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Dscp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dscp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "integer",
            "minimum": 0,
            "maximum": 63,
            "description": "Differentiated services code point (RFC 2474)."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_rfcs() {
        for (text, number) in [("EF", 46), ("cs0", 0), ("cs1", 8), ("af41", 34), ("af13", 14), ("le", 1)] {
            assert_eq!(text.parse(), Ok(Dscp(number)), "{text}");
        }
        assert_eq!("63".parse(), Ok(Dscp(63)));
        for wrong in ["64", "af51", "af1", "af10", "af14", "cs8", "gold", "-1", ""] {
            assert_eq!(wrong.parse::<Dscp>(), Err(DscpError), "{wrong}");
        }
    }

    #[test]
    fn what_is_printed_and_stored_reads_back() {
        for number in 0..64 {
            let dscp = Dscp::try_from(number).unwrap();
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            assert_eq!(serde_json::to_string(&dscp).unwrap(), number.to_string());
            assert_eq!(serde_json::from_str::<Dscp>(&number.to_string()).unwrap(), dscp);
            assert_eq!(Dscp::of_tos_byte(dscp.tos_byte()), dscp);
        }
        assert!(serde_json::from_str::<Dscp>("64").is_err());
    }
}
