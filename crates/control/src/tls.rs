//! TLS of control connections: how a client recognises its server, and the handshake.
//!
//! Data connections are never encrypted, because they are what is measured. What both ends agree on and report is.

use std::fmt;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_model::{Fingerprint, ForeignText, ServerTlsOptions};
use linerate_sock::clock;
use linerate_sock::poll::poll_few;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256};

use crate::control_stream::ControlStream;
use crate::error::ControlError;

/// The name of our protocols within TLS (ALPN, RFC 7301).
pub const TLS_PROTOCOL: &[u8] = b"linerate";

/// The name of what browsers speak within TLS: their tests have a connection each (RFC 7301, RFC 9112).
pub const HTTP_PROTOCOL: &[u8] = b"http/1.1";

/// The name of HTTP/2 within TLS (RFC 9113, section 3.1).
pub const HTTP2_PROTOCOL: &[u8] = b"h2";

/// Which clients of our own have to encrypt their control connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TlsRequirement {
    /// None.
    #[default]
    Nobody,
    /// The coordinators of an agent.
    Coordinators,
    /// All.
    Everybody,
}

impl TlsRequirement {
    /// What the options of a server say.
    #[must_use]
    pub fn of(options: &ServerTlsOptions) -> Self {
        match (options.tls_only, options.tls) {
            (true, _) => Self::Everybody,
            (false, true) => Self::Coordinators,
            (false, false) => Self::Nobody,
        }
    }
}

/// Timeout of a client for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the stop flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The certificate of a server, which may change while it runs.
pub trait ServerIdentity: fmt::Debug + Send + Sync {
    /// The configuration for new connections, for TLS 1.3 and the protocols [`TLS_PROTOCOL`] and [`HTTP_PROTOCOL`].
    fn tls(&self) -> Arc<rustls::ServerConfig>;

    /// The same for TLS 1.3 and [`HTTP2_PROTOCOL`].
    fn http2(&self) -> Arc<rustls::ServerConfig>;

    /// The fingerprint of the certificate for new connections.
    fn fingerprint(&self) -> Fingerprint;
}

/// How a client recognises its server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerTrust {
    /// By the fingerprint of its certificate.
    Fingerprint(Arc<dyn FingerprintCheck>),
    /// By one of these authorities, which has issued the certificate for the server's name or address.
    Authorities(Arc<RootCertStore>),
    /// Only as somebody who has the agent's token: proofs of it are bound to the encrypted connection.
    Token,
}

/// Decides whether a fingerprint is that of the server.
pub trait FingerprintCheck: fmt::Debug + Send + Sync {
    /// Checks the fingerprint that a server has shown.
    ///
    /// # Errors
    /// It is another server's, or it cannot be decided.
    fn check(&self, shown: Fingerprint) -> Result<(), UnknownServer>;

    /// The server that has shown an accepted fingerprint has proved that it has the key, and speaks our protocol.
    ///
    /// # Errors
    /// It cannot be remembered.
    fn remember(&self, shown: Fingerprint) -> Result<(), UnknownServer> {
        let _ = shown;
        Ok(())
    }
}

/// Why a server is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownServer(pub String);

impl FingerprintCheck for Fingerprint {
    fn check(&self, shown: Fingerprint) -> Result<(), UnknownServer> {
        if shown == *self {
            return Ok(());
        }
        Err(UnknownServer(format!(
            "the server's certificate has the fingerprint {shown}, not the expected {self}: it is a different \
             server, or the connection is intercepted"
        )))
    }
}

/// Why there is no encrypted control connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The server has no TLS.
    #[error(
        "the server closed the connection in the TLS handshake; start it with: linerate serve --tls (or leave out --tls \
         here, for a control connection that others can read)"
    )]
    NotServed,
    /// The server did not answer.
    #[error("no answer from the server for {} s in the TLS handshake; check that it is the port of linerate serve --tls", HANDSHAKE_TIMEOUT.as_secs())]
    Silent,
    /// The server speaks another protocol within TLS.
    #[error("the server has TLS, but for another protocol than linerate's; check the port")]
    OtherProtocol,
    /// The peer has no TLS 1.3.
    #[error("the other end has TLS, but not version 1.3; check the port")]
    OtherVersion,
    /// What has arrived is no TLS.
    #[error("the other end does not speak TLS here; check that it is the port of linerate serve --tls")]
    NotTls,
    /// The server is not the one that was meant.
    #[error(transparent)]
    UnknownServer(#[from] UnknownServer),
    /// The certificate was not issued by an authority that counts, or not for this server.
    #[error("the server's certificate is not accepted: {0}")]
    Certificate(ForeignText),
    /// The client does not take this server's certificate.
    #[error("the client does not accept this server's certificate")]
    RefusedByClient,
    /// TLS failed in another way.
    #[error("TLS failed: {0}")]
    Failed(ForeignText),
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
                match inner.downcast_ref::<UnknownServer>() {
                    Some(unknown) => Self::UnknownServer(unknown.clone()),
                    None => Self::Certificate(inner.to_string().into()),
                }
            }
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                Self::Certificate("none of the given authorities has issued it".into())
            }
            rustls::Error::InvalidCertificate(error) => Self::Certificate(error.to_string().into()),
            rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => Self::OtherProtocol,
            rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
            | rustls::Error::PeerIncompatible(_) => Self::OtherVersion,
            rustls::Error::InvalidMessage(_) => Self::NotTls,
            rustls::Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown,
            ) => Self::RefusedByClient,
            error => Self::Failed(error.to_string().into()),
        }
    }
}

/// Encrypts a new connection to `host`, and checks that it is the server that is meant.
pub(crate) fn encrypt(
    tcp: TcpStream,
    host: &str,
    trust: &ServerTrust,
    stop: &AtomicBool,
) -> Result<ControlStream, ControlError> {
    let config = client_config(trust, TLS_PROTOCOL).map_err(TlsError::from)?;
    let name = match ServerName::try_from(host.to_owned()) {
        Ok(name) => name,
        // Names that no certificate can have, such as one with a zone.
        Err(_) => ServerName::from(
            crate::server::canonical_address(tcp.peer_addr().map_err(|error| local(&error))?).ip(),
        ),
    };
    let tls = ClientConnection::new(config, name).map_err(TlsError::from)?;
    let mut stream = ControlStream::encrypted(tcp, tls.into());
    stream.make_ready().map_err(|error| local(&error))?;
    let deadline = clock::now() + HANDSHAKE_TIMEOUT;
    while stream.handshake_bytes().is_some() {
        if stop.load(Ordering::Relaxed) {
            return Err(ControlError::Stopped);
        }
        if deadline.has_passed() {
            return Err(TlsError::Silent.into());
        }
        stream.continue_handshake()?;
        if stream.is_closed() {
            return Err(TlsError::NotServed.into());
        }
        if stream.handshake_bytes().is_some()
            && let Some(interest) = stream.interest()
        {
            poll_few(&[interest], deadline.min(clock::now() + POLL_INTERVAL))?;
        }
    }
    stream.flush();
    if stream.protocol() != Some(TLS_PROTOCOL) {
        return Err(TlsError::OtherProtocol.into());
    }
    if let (ServerTrust::Fingerprint(check), Some(shown)) = (trust, stream.peer_fingerprint()) {
        check.remember(shown).map_err(TlsError::from)?;
    }
    Ok(stream)
}

fn local(error: &std::io::Error) -> ControlError {
    ControlError::Local(format!("the control connection: {error}"))
}

/// The configuration of a client that trusts this server and speaks one protocol.
pub(crate) fn client_config(
    trust: &ServerTrust,
    protocol: &[u8],
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13])?;
    let verifier = |check| Arc::new(FingerprintVerifier { check, provider });
    let mut config = match trust {
        ServerTrust::Authorities(roots) => builder.with_root_certificates(Arc::clone(roots)),
        ServerTrust::Fingerprint(check) => {
            builder.dangerous().with_custom_certificate_verifier(verifier(Some(Arc::clone(check))))
        }
        ServerTrust::Token => builder.dangerous().with_custom_certificate_verifier(verifier(None)),
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// SHA-256 of a certificate.
#[must_use]
pub fn fingerprint_of(certificate: &CertificateDer<'_>) -> Fingerprint {
    Fingerprint(Sha256::digest(certificate).into())
}

/// Checks the fingerprint of a certificate instead of its issuers. That the server has its key is checked as always.
#[derive(Debug)]
struct FingerprintVerifier {
    /// Absent if every certificate is accepted.
    check: Option<Arc<dyn FingerprintCheck>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for FingerprintVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _issuers: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let checked = self.check.as_ref().map_or(Ok(()), |check| check.check(fingerprint_of(certificate)));
        checked.map(|()| ServerCertVerified::assertion()).map_err(|unknown| {
            rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(unknown))))
        })
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // TLS 1.2 is never offered.
        Err(rustls::Error::General("TLS 1.2".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
