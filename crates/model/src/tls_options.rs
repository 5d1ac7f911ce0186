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

/// The options of a server that has a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
// Either of them lets control connections be encrypted.
#[cfg_attr(
    feature = "clap",
    command(group = clap::ArgGroup::new("tls_for_control").args(["tls", "tls_only"]).multiple(true))
)]
pub struct ServerTlsOptions {
    /// Let clients of linerate encrypt their control connections with TLS 1.3, and browsers their tests, and require it
    /// of the coordinators of an agent; with the certificate of --tls-cert, or else that of --tls-self-signed
    #[cfg_attr(feature = "clap", arg(long))]
    pub tls: bool,
    /// As --tls, and refuse clients of linerate that do not encrypt; other tools are served as before
    #[cfg_attr(feature = "clap", arg(long))]
    pub tls_only: bool,
    /// Use the certificate in this PEM file, followed by those of its issuers, for --tls and to serve the pages over
    /// HTTPS
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", requires = "tls_key"))]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", requires = "tls_cert"))]
    pub tls_key: Option<PathBuf>,
    /// Serve the pages over HTTPS with a certificate that is made once and kept in the user's data directory
    #[cfg_attr(feature = "clap", arg(long, requires = "web", conflicts_with = "tls_cert"))]
    pub tls_self_signed: bool,
    /// Answer clients that measure responsiveness, such as networkQuality, at this port (HTTPS; 5202 by convention)
    #[cfg(feature = "http2")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PORT", requires = "tls_for_control"))]
    pub responsiveness_port: Option<u16>,
}

impl ServerTlsOptions {
    /// The port of clients that measure responsiveness.
    #[must_use]
    pub fn responsiveness_port(&self) -> Option<u16> {
        #[cfg(feature = "http2")]
        {
            self.responsiveness_port
        }
        #[cfg(not(feature = "http2"))]
        {
            None
        }
    }

    /// Whether control connections may be encrypted.
    #[must_use]
    pub fn is_for_control(&self) -> bool {
        self.tls || self.tls_only
    }
}
