//! The fingerprint of a certificate.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// SHA-256 of a certificate in DER. 64 hexadecimal digits in JSON; shown in pairs with colons, as browsers and openssl
/// show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; 32]);

/// A text is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintError;

impl std::error::Error for FingerprintError {}

impl fmt::Display for FingerprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a fingerprint is the SHA-256 of a certificate: 64 hexadecimal digits, in pairs with colons or without",
        )
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|byte| format!("{byte:02X}")).collect();
        f.write_str(&pairs.join(":"))
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Also reads what `openssl x509 -fingerprint -sha256` prints.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digits = text.trim();
        let digits = digits.rsplit_once('=').map_or(digits, |(_, digits)| digits);
        let pairs: Vec<&str> = digits.split(':').collect();
        if pairs.len() > 1 && pairs.iter().any(|pair| pair.len() != 2) {
            return Err(FingerprintError);
        }
        let digits: Option<Vec<u32>> = pairs.concat().chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or(FingerprintError)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Ok(Self(bytes))
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_others_print_it() {
        let fingerprint = Fingerprint(std::array::from_fn(|at| at as u8 * 7));
        let shown = fingerprint.to_string();
        assert!(shown.starts_with("00:07:0E:15:") && shown.len() == 95, "{shown}");
        let plain = String::from(fingerprint);
        for text in [shown.clone(), shown.to_lowercase(), plain.clone(), format!(" {plain}\n")] {
            assert_eq!(text.parse(), Ok(fingerprint), "{text}");
        }
        assert_eq!(format!("sha256 Fingerprint={shown}").parse(), Ok(fingerprint));
        let json = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(json, format!("\"{plain}\""));
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), fingerprint);
    }

    #[test]
    fn other_texts_are_no_fingerprint() {
        let shown = Fingerprint([0xab; 32]).to_string();
        let wrong = [
            String::new(),
            "ab".repeat(31),
            "ab".repeat(31) + "a",
            "ab".repeat(33),
            format!("g{}", &"ab".repeat(32)[1..]),
            shown.replacen(':', "", 1),
            format!("{shown}:"),
            "é".repeat(32),
        ];
        for text in wrong {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
        }
    }
}
