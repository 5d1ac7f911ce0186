//! Control messages on the wire: a 32-bit length, then that many bytes of JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::PeerError;

/// Largest message between ends that know each other.
pub const FRAME_LIMIT: usize = 1 << 20;

/// Largest first message; bounds the memory that an unknown peer can occupy.
pub const HELLO_LIMIT: usize = 64 << 10;

/// Splits a byte stream into messages.
#[derive(Debug)]
pub struct Framer {
    held: Vec<u8>,
    limit: usize,
}

impl Framer {
    /// Accepts messages of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { held: Vec::new(), limit }
    }

    /// Changes the limit, once the peer is known.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next complete message; absent until one has arrived.
    ///
    /// # Errors
    /// It exceeds the limit, or is not the JSON of a `T`.
    pub fn pull<T: DeserializeOwned>(&mut self) -> Result<Option<T>, PeerError> {
        let Some(head) = self.held.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > self.limit {
            return Err(PeerError::Misbehaved {
                what: format!("a message of {length} bytes, {} allowed", self.limit).into(),
            });
        }
        let Some(body) = self.held.get(4..4 + length) else { return Ok(None) };
        let message = serde_json::from_slice(body).map_err(|error| PeerError::Misbehaved {
            what: format!("an unreadable message: {error}").into(),
        })?;
        self.held.drain(..4 + length);
        Ok(Some(message))
    }

    /// Number of missing bytes of a first message; 0 when it is complete.
    ///
    /// # Errors
    /// It is longer than [`HELLO_LIMIT`].
    pub fn missing_of_first(bytes: &[u8]) -> Result<usize, PeerError> {
        let Some(head) = bytes.first_chunk::<4>() else { return Ok(4 - bytes.len()) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > HELLO_LIMIT {
            return Err(PeerError::Misbehaved {
                what: format!("a message of {length} bytes, {HELLO_LIMIT} allowed").into(),
            });
        }
        Ok((4 + length).saturating_sub(bytes.len()))
    }

    /// Encodes a message with its length.
    ///
    /// # Errors
    /// It is longer than [`FRAME_LIMIT`].
    pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, PeerError> {
        let fail = |why: String| PeerError::Local { why };
        let body = serde_json::to_vec(message)
            .map_err(|error| fail(format!("a message could not be written: {error}")))?;
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= FRAME_LIMIT);
        let length = length.ok_or_else(|| fail(format!("a message of {} bytes is too long", body.len())))?;
        let mut bytes = Vec::with_capacity(4 + body.len());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }
}
