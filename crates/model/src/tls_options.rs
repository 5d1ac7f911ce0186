//! Whether and how a control connection is encrypted.

use std::path::PathBuf;

use crate::Fingerprint;

/// The options of a client that encrypts its control connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TlsOptions {
    /// Encrypt the control connection with TLS 1.3, for a server with --tls; the data that is measured is not encrypted.
    /// The certificate of a new server is remembered, and another one of the same server is refused
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Encryption"))]
    pub tls: bool,
    /// As --tls, with the server whose certificate has this SHA-256 fingerprint, as it prints it
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SHA256", conflicts_with = "tls_ca", help_heading = "Encryption")
    )]
    pub tls_fingerprint: Option<Fingerprint>,
    /// As --tls, with a server whose certificate was issued by an authority in this PEM file
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", help_heading = "Encryption"))]
    pub tls_ca: Option<PathBuf>,
}

impl TlsOptions {
    /// Whether any of them is given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}
