//! Encrypted connections to a PostgreSQL server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::url::{EncryptionMode, EncryptionSettings, TrustedRoots};

/// libpq's file of roots, in the home directory.
const ROOTS_OF_LIBPQ: &str = ".postgresql/root.crt";

/// What encrypts the connections; absent if none is.
///
/// # Errors
/// Which certificate or key cannot be used, and the remedy.
pub(super) fn connector(settings: &EncryptionSettings) -> Result<Option<MakeRustlsConnect>, String> {
    let mode = settings.mode;
    if mode == EncryptionMode::Disable {
        return Ok(None);
    }
    let provider = Arc::new(ring::default_provider());
    let roots = if mode == EncryptionMode::Prefer { None } else { roots(settings)? };
    if roots.is_none() && mode >= EncryptionMode::VerifyCa {
        return Err(format!(
            "there is nothing to check the certificate of the server with; give sslrootcert=FILE with the \
             certificate of its authority, or sslrootcert=system, or store it in ~/{ROOTS_OF_LIBPQ}"
        ));
    }
    let check = CertificateCheck {
        chain: roots.map(|roots| ChainCheck::new(roots, &provider)).transpose()?,
        with_name: mode == EncryptionMode::VerifyFull,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(check));
    let config = match &settings.client {
        Some((certificate, key)) => config
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| format!("sslcert and sslkey cannot be used: {error}"))?,
        None => config.with_no_client_auth(),
    };
    Ok(Some(MakeRustlsConnect::new(config)))
}

/// The certificates that count as roots; absent if there are none.
fn roots(settings: &EncryptionSettings) -> Result<Option<Vec<CertificateDer<'static>>>, String> {
    match &settings.roots {
        Some(TrustedRoots::File(file)) => certificates(file).map(Some),
        Some(TrustedRoots::System) => {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
                return Err(format!(
                    "this host trusts no certificates{why}; install the package ca-certificates, or give \
                     sslrootcert=FILE"
                ));
            }
            Ok(Some(found.certs))
        }
        None => match roots_of_libpq().filter(|file| file.exists()) {
            Some(file) => certificates(&file).map(Some),
            None => Ok(None),
        },
    }
}

fn roots_of_libpq() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.home_dir().join(ROOTS_OF_LIBPQ))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unusable = |why: String| format!("no certificates can be read from {}: {why}", file.display());
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| unusable(error.to_string()))?;
    if found.is_empty() {
        return Err(unusable("it has none in PEM format".to_owned()));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| {
        format!(
            "no private key can be read from {}: {error}; it has to be in PEM format, without a password",
            file.display()
        )
    })
}

/// What a certificate has to come from.
#[derive(Debug)]
struct ChainCheck {
    verifier: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
}

impl ChainCheck {
    fn new(roots: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        let (used, _) = store.add_parsable_certificates(roots.iter().cloned());
        if used == 0 {
            return Err("none of the certificates of authorities can be used".to_owned());
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
        let verifier = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { verifier, roots })
    }
}

/// Checks the certificate of a server as far as `sslmode` wants it.
#[derive(Debug)]
struct CertificateCheck {
    /// Absent if any certificate will do.
    chain: Option<ChainCheck>,
    with_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateCheck {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.with_name => Ok(ServerCertVerified::assertion()),
            // `openssl req -x509` makes a certificate that is an authority, too. Servers have it as their own, and it is
            // its own root. At this point its dates have been checked.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if chain.roots.iter().any(|root| root == certificate) =>
            {
                if self.with_name {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
