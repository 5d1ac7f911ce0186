//! Keys of fleets and agents: Ed25519, written as NKEYs, with which they also log in to NATS.

use std::fmt;

use nkeys::{KeyPair, KeyPairType};

/// A secret key.
pub struct FleetKey {
    pair: KeyPair,
}

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FleetKeyError {
    /// It is no secret key of a user.
    #[error(
        "this is no secret key; one begins with SU and has 58 characters, and `linerate agent enroll` makes it"
    )]
    Secret,
    /// It is no public key of a user.
    #[error("'{0}' is no public key; one begins with U and has 56 characters")]
    Public(linerate_model::ForeignText),
    /// This system has no random numbers.
    #[error("no key can be made: this system gives no random numbers ({0})")]
    Random(String),
}

impl FleetKey {
    /// A new key.
    ///
    /// # Errors
    /// [`FleetKeyError::Random`].
    pub fn new() -> Result<Self, FleetKeyError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| FleetKeyError::Random(error.to_string()))?;
        Self::from_bytes(secret)
    }

    /// The key with these bytes as its secret.
    ///
    /// # Errors
    /// [`FleetKeyError::Secret`].
    pub fn from_bytes(secret: [u8; 32]) -> Result<Self, FleetKeyError> {
        let pair = KeyPair::new_from_raw(KeyPairType::User, secret).map_err(|_| FleetKeyError::Secret)?;
        Ok(Self { pair })
    }

    /// Reads a secret key; white space around it does not matter.
    ///
    /// # Errors
    /// [`FleetKeyError::Secret`].
    pub fn read(text: &str) -> Result<Self, FleetKeyError> {
        let pair = KeyPair::from_seed(text.trim()).map_err(|_| FleetKeyError::Secret)?;
        if pair.key_pair_type() != KeyPairType::User {
            return Err(FleetKeyError::Secret);
        }
        Ok(Self { pair })
    }

    /// The secret key as a text. Who has it is the agent or the coordinator.
    #[must_use]
    pub fn secret(&self) -> String {
        self.pair.seed().unwrap_or_default()
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn public(&self) -> PublicFleetKey {
        PublicFleetKey(self.pair.public_key())
    }

    /// The signature of some bytes.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        // Only a pair without a secret key cannot sign.
        self.pair.sign(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetKey").field(&self.pair.public_key()).finish()
    }
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicFleetKey(String);

impl PublicFleetKey {
    /// Reads a public key.
    ///
    /// # Errors
    /// [`FleetKeyError::Public`].
    pub fn read(text: &str) -> Result<Self, FleetKeyError> {
        let wrong = || FleetKeyError::Public(text.into());
        let pair = KeyPair::from_public_key(text.trim()).map_err(|_| wrong())?;
        if pair.key_pair_type() != KeyPairType::User {
            return Err(wrong());
        }
        Ok(Self(text.trim().to_owned()))
    }

    /// The key as a text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the owner of this key signed these bytes.
    pub(crate) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        KeyPair::from_public_key(&self.0).is_ok_and(|pair| pair.verify(bytes, signature).is_ok())
    }
}

impl fmt::Display for PublicFleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
