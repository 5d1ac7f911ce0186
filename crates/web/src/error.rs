//! Why the service does not start.

use std::io;
use std::net::SocketAddr;

use linerate_runner::CertificateError;
use linerate_sock::SockError;

use crate::token_file::TokenFileError;

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// Strangers could use it.
    #[error(
        "others can reach {0}, and there is neither a token nor TLS; make a token with \
         `linerate token add NAME --ability admin`, or give --web-token-file FILE, --tls-self-signed, or \
         --tls-cert and --tls-key; or give --insecure to let everybody, or listen on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// The file of tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The certificate cannot be used.
    #[error("{option}: {source}")]
    Tls {
        /// The option that wants TLS.
        option: &'static str,
        /// Why.
        source: CertificateError,
    },
    /// The address cannot be listened on.
    #[error("the web service cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The host refuses what the service needs.
    #[error("the web service cannot start: {0}")]
    Start(#[from] io::Error),
    /// The host refuses a thread.
    #[error("the web service cannot start: {0}")]
    Thread(#[from] SockError),
}

impl WebError {
    /// Whether the request has to be corrected; otherwise this host is to blame.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        match self {
            Self::Tokens(error) => error.needs_correction(),
            Self::Tls { source, .. } => source.needs_correction(),
            error => matches!(error, Self::Unprotected(_)),
        }
    }
}
