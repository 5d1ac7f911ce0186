//! The shared secret of a coordinator and its agents, and the proof of its possession.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::ticket::{from_hex, to_hex};

/// A number that one end chooses for one connection and never reuses.
pub type Nonce = [u8; 16];

/// Fewest characters of a token. An eavesdropper can test guesses against a proof offline.
const MIN_TOKEN_CHARS: usize = 16;

/// Most characters of a token; a longer file is probably the wrong one.
const MAX_TOKEN_CHARS: usize = 1024;

/// A value that both ends of one encrypted connection know and nobody else: 32 bytes of TLS's exporter (RFC 9266).
pub type ChannelBinding = [u8; 32];

/// The first bytes of the coordinator's proof. The agent's differ, so that neither proof can be used as the
/// other.
const COORDINATOR: &[u8] = b"linerate agent protocol 1, coordinator";
const AGENT: &[u8] = b"linerate agent protocol 1, agent";

/// A secret shared by a coordinator and its agents.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

/// Why a text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Too short to be secret.
    #[error(
        "the token has {0} characters, but at least {MIN_TOKEN_CHARS} are needed; create one with: head -c \
         24 /dev/urandom | base64"
    )]
    Short(usize),
    /// Too long to be a token.
    #[error(
        "the token has {0} characters, but at most {MAX_TOKEN_CHARS} are allowed; check that it is the \
             right file"
    )]
    Long(usize),
}

impl Token {
    /// The token in a text, without surrounding white space.
    ///
    /// # Errors
    /// It is too short to be secret, or too long to be a token.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        match text.chars().count() {
            count if count < MIN_TOKEN_CHARS => Err(TokenError::Short(count)),
            count if count > MAX_TOKEN_CHARS => Err(TokenError::Long(count)),
            _ => Ok(Self(text.as_bytes().to_vec())),
        }
    }

    /// The proof that a coordinator sends to an agent.
    pub(super) fn proof_of_coordinator(&self, nonces: &Nonces) -> Option<String> {
        Some(to_hex(&self.mac(COORDINATOR, nonces)?.finalize().into_bytes()))
    }

    /// The proof that an agent sends to a coordinator.
    pub(super) fn proof_of_agent(&self, nonces: &Nonces) -> Option<String> {
        Some(to_hex(&self.mac(AGENT, nonces)?.finalize().into_bytes()))
    }

    pub(super) fn is_coordinators(&self, proof: &str, nonces: &Nonces) -> bool {
        self.verify(COORDINATOR, proof, nonces)
    }

    pub(super) fn is_agents(&self, proof: &str, nonces: &Nonces) -> bool {
        self.verify(AGENT, proof, nonces)
    }

    fn verify(&self, who: &[u8], proof: &str, nonces: &Nonces) -> bool {
        let (Some(mac), Some(proof)) = (self.mac(who, nonces), from_hex::<32>(proof)) else { return false };
        mac.verify_slice(&proof).is_ok()
    }

    fn mac(&self, who: &[u8], nonces: &Nonces) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(who);
        mac.update(&nonces.coordinator);
        mac.update(&nonces.agent);
        // Whoever passes the messages of two encrypted connections on has two different values.
        if let Some(channel) = &nonces.channel {
            mac.update(channel);
        }
        Some(mac)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// The nonces of one connection, and what identifies its encryption; absent if it has none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Nonces {
    pub(super) coordinator: Nonce,
    pub(super) agent: Nonce,
    pub(super) channel: Option<ChannelBinding>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCES: Nonces = Nonces { coordinator: [0x11; 16], agent: [0x22; 16], channel: None };

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    #[test]
    fn a_proof_is_the_hmac_that_other_programs_compute() {
        // printf 'linerate agent protocol 1, coordinator' | cat - <(head -c 16 /dev/zero | tr '\0' '\21') \
        //   <(head -c 16 /dev/zero | tr '\0' '\42') | openssl dgst -sha256 -hmac 'a token of 18 char'
        let proof = token("a token of 18 char").proof_of_coordinator(&NONCES).unwrap();
        assert_eq!(proof, "32e15bdcbd4b9780d5e792b1e73a2bf928a74864a3501ab948cea85aed7d6355");
        // The same with <(head -c 32 /dev/zero | tr '\0' '\63') after the others.
        let encrypted = Nonces { channel: Some([0x33; 32]), ..NONCES };
        let proof = token("a token of 18 char").proof_of_coordinator(&encrypted).unwrap();
        assert_eq!(proof, "fb34530749893221b0386c7745aecde55ad66a5dbaa4ece86e68e1910eec0f5a");
    }

    #[test]
    fn only_the_same_token_numbers_and_role_convince() {
        let ours = token("correct horse battery");
        let proof = ours.proof_of_coordinator(&NONCES).unwrap();
        assert!(ours.is_coordinators(&proof, &NONCES));
        assert!(token(" correct horse battery\n").is_coordinators(&proof, &NONCES));
        assert!(!token("correct horse batterx").is_coordinators(&proof, &NONCES));
        assert!(!ours.is_agents(&proof, &NONCES), "sent back to who sent it");
        assert!(
            !ours.is_coordinators(&proof, &Nonces { agent: [0x23; 16], ..NONCES }),
            "of another connection"
        );
        for (here, there) in [(Some([1; 32]), None), (None, Some([1; 32])), (Some([1; 32]), Some([2; 32]))] {
            let proof = ours.proof_of_coordinator(&Nonces { channel: here, ..NONCES }).unwrap();
            let relayed = Nonces { channel: there, ..NONCES };
            assert!(!ours.is_coordinators(&proof, &relayed), "passed on from another connection");
        }
        for garbage in ["", "00", &"0".repeat(64), &"é".repeat(32), &proof[..62]] {
            assert!(!ours.is_coordinators(garbage, &NONCES), "{garbage}");
        }
    }

    #[test]
    fn a_token_is_neither_short_nor_some_other_file_and_is_never_shown() {
        assert_eq!(Token::new("  short \n"), Err(TokenError::Short(5)));
        assert_eq!(Token::new(&"x".repeat(1025)), Err(TokenError::Long(1025)));
        assert!(!format!("{:?}", token("correct horse battery")).contains("horse"));
    }
}
