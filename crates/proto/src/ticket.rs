//! The ticket with which a run uses the place that its coordinator holds in a server's queue.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An unguessable number; 32 hexadecimal digits in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ticket(pub [u8; 16]);

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(secret)")
    }
}

impl From<Ticket> for String {
    fn from(ticket: Ticket) -> Self {
        to_hex(&ticket.0)
    }
}

impl TryFrom<String> for Ticket {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        from_hex(&text).map(Self).ok_or("a ticket has 32 hexadecimal digits")
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly `N` bytes from hexadecimal digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_digits_on_the_wire_and_nothing_in_a_log() {
        let ticket = Ticket(*b"0123456789abcdef");
        let text = serde_json::to_string(&ticket).unwrap();
        assert_eq!(text, "\"30313233343536373839616263646566\"");
        assert_eq!(serde_json::from_str::<Ticket>(&text).unwrap(), ticket);
        assert!(!format!("{ticket:?}").contains("30"));
        for wrong in
            ["\"\"", "\"30\"", "\"3031323334353637383961626364656\"", "\"g0313233343536373839616263646566\""]
        {
            assert!(serde_json::from_str::<Ticket>(wrong).is_err(), "{wrong}");
        }
    }
}
