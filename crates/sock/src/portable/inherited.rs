//! No service manager passes sockets here.

use crate::SockError;
use crate::inherited::InheritedSockets;

impl InheritedSockets {
    /// None.
    ///
    /// # Errors
    /// Never.
    pub fn from_environment() -> Result<Self, SockError> {
        Ok(Self::default())
    }
}
