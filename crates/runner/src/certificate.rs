//! The certificate of a server and its key.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use linerate_control::{
    HTTP_PROTOCOL, HTTP2_PROTOCOL, ServerIdentity, TLS_PROTOCOL, fingerprint_of, host_info,
};
use linerate_model::{Fingerprint, ServerTlsOptions};
use linerate_sock::files::FileState;
use linerate_sock::thread::locked;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ALL_VERSIONS, ServerConfig, SupportedProtocolVersion};

use crate::certificate_time::not_after;
use crate::naming::now;
use crate::secret_file::{PrivateFileError, read_private};
use crate::whole_file::whole_private_file;

/// Largest file of certificates or of a key.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where the certificate and its key are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// Two PEM files. They are read again when they have changed.
    Files {
        /// The certificate, and those of its issuers.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// One of our own that nobody has signed, in a file which is made if it is missing.
    SelfSigned {
        /// The file, for both; absent for `linerate/tls.pem` in the user's data directory.
        file: Option<PathBuf>,
    },
}

impl CertificateSource {
    /// The source for the pages of a server, if they have one.
    #[must_use]
    pub fn of_pages(options: &ServerTlsOptions) -> Option<Self> {
        Self::of_files(options).or_else(|| options.tls_self_signed.then_some(Self::SelfSigned { file: None }))
    }

    /// The source for the server's own port, where control connections may be encrypted, and tests of browsers whose pages
    /// are.
    fn of_port(options: &ServerTlsOptions) -> Option<Self> {
        let own = || options.is_for_control().then_some(Self::SelfSigned { file: None });
        Self::of_pages(options).or_else(own)
    }

    /// The option that names it.
    #[must_use]
    pub fn option(&self) -> &'static str {
        match self {
            Self::Files { .. } => "--tls-cert",
            Self::SelfSigned { .. } => "--tls-self-signed",
        }
    }

    /// The source for a server with these options, with or without pages.
    ///
    /// # Errors
    /// The options name files of a certificate that nothing uses.
    pub fn of_server(options: &ServerTlsOptions, has_pages: bool) -> Result<Option<Self>, CertificateError> {
        let is_unused = !options.is_for_control() && !has_pages && options.tls_cert.is_some();
        if is_unused { Err(CertificateError::Unused) } else { Ok(Self::of_port(options)) }
    }

    fn of_files(options: &ServerTlsOptions) -> Option<Self> {
        let (certificate, key) = options.tls_cert.clone().zip(options.tls_key.clone())?;
        Some(Self::Files { certificate, key })
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// Nothing uses it.
    #[error("give --tls or --web with it")]
    Unused,
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of a self-signed certificate cannot be used.
    #[error(transparent)]
    Private(#[from] PrivateFileError),
    /// The file of a self-signed certificate cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user has no directory for data.
    #[error("a self-signed certificate is kept in the user's data directory, and there is none ({0})")]
    NoFolder(String),
    /// The file has no certificate.
    #[error("{} has no certificate in PEM format (-----BEGIN CERTIFICATE-----)", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no key.
    #[error("{} has no private key in PEM format (-----BEGIN PRIVATE KEY-----)", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key needs a password.
    #[error("the key in {path} is encrypted; decrypt it with: openssl pkey -in {path} -out KEYFILE", path = path.display())]
    EncryptedKey {
        /// The file.
        path: PathBuf,
    },
    /// The certificate is no longer valid.
    #[error("the certificate in {} has expired, at {at}; renew it", path.display())]
    Expired {
        /// The file.
        path: PathBuf,
        /// When, in RFC 3339 format.
        at: String,
    },
    /// Certificate and key do not belong together, or cannot be used.
    #[error("the certificate in {} cannot be used with the key in {}: {why}", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        why: String,
    },
    /// No certificate can be made.
    #[error("cannot make a certificate: {0}")]
    Make(String),
}

impl CertificateError {
    /// Whether a file or the request has to be corrected; otherwise this host is to blame.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Make(_))
    }
}

/// A certificate with its key, ready to be used.
#[derive(Debug, Clone)]
struct TlsIdentity {
    pages: Arc<ServerConfig>,
    control: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

/// Tells files from those that they were before.
type FileStamps = Vec<Option<FileState>>;

/// The certificate of a running server. It is read again when its files have changed.
#[derive(Debug)]
pub struct TlsCertificate {
    files: [PathBuf; 2],
    current: Mutex<TlsIdentity>,
    /// Of the files that were tried last.
    tried: Mutex<FileStamps>,
}

impl TlsCertificate {
    /// Reads the certificate and its key, or makes them for this host, with these further names and addresses.
    ///
    /// # Errors
    /// They cannot be read, made, or used.
    pub fn open(source: &CertificateSource, names: &[String]) -> Result<Self, CertificateError> {
        let files = match source {
            CertificateSource::Files { certificate, key } => [certificate.clone(), key.clone()],
            CertificateSource::SelfSigned { file } => {
                let file = own_file(file.as_deref())?;
                make_if_missing(&file, names)?;
                [file.clone(), file]
            }
        };
        let stamps = stamps(&files);
        let identity = TlsIdentity::read(&files)?;
        Ok(Self { files, current: Mutex::new(identity), tried: Mutex::new(stamps) })
    }

    /// Reads the certificate and its key as [`open`](Self::open) does, but makes none if they are missing.
    ///
    /// # Errors
    /// They cannot be read, or used.
    pub fn check(source: &CertificateSource) -> Result<(), CertificateError> {
        if let CertificateSource::SelfSigned { file } = source
            && read_private(&own_file(file.as_deref())?, MAX_FILE_BYTES)?.is_none()
        {
            return Ok(());
        }
        Self::open(source, &[]).map(drop)
    }

    /// The certificate in words, for those who want to recognise it.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("certificate with the SHA-256 fingerprint {}", self.fingerprint())
    }

    /// The configuration of the pages, for browsers.
    #[must_use]
    pub fn for_pages(&self) -> Arc<ServerConfig> {
        Arc::clone(&locked(&self.current).pages)
    }

    /// Reads the files again if they have changed. If they cannot be used, the old certificate stays.
    pub fn reload(&self) {
        let stamps = stamps(&self.files);
        if *locked(&self.tried) == stamps {
            return;
        }
        match TlsIdentity::read(&self.files) {
            Ok(identity) => {
                *locked(&self.current) = identity;
                tracing::warn!("the certificate has changed: {}", self.in_words());
            }
            Err(error) => {
                tracing::error!(%error, "the changed certificate is not used, and the one before stays")
            }
        }
        *locked(&self.tried) = stamps;
    }
}

impl ServerIdentity for TlsCertificate {
    fn tls(&self) -> Arc<ServerConfig> {
        self.reload();
        Arc::clone(&locked(&self.current).control)
    }

    fn http2(&self) -> Arc<ServerConfig> {
        self.reload();
        Arc::clone(&locked(&self.current).http2)
    }

    fn fingerprint(&self) -> Fingerprint {
        locked(&self.current).fingerprint
    }
}

impl TlsIdentity {
    fn read([certificate, key]: &[PathBuf; 2]) -> Result<Self, CertificateError> {
        let content = read_file(certificate)?;
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&content).collect::<Result<_, _>>().unwrap_or_default();
        let Some(first) = chain.first() else {
            return Err(CertificateError::NoCertificate { path: certificate.clone() });
        };
        let fingerprint = fingerprint_of(first);
        if let Some(at) = not_after(first).filter(|at| *at < now()) {
            return Err(CertificateError::Expired { path: certificate.clone(), at });
        }
        let content = read_file(key)?;
        let Ok(private) = PrivateKeyDer::from_pem_slice(&content) else {
            let encrypted = String::from_utf8_lossy(&content).contains("ENCRYPTED");
            let path = key.clone();
            return Err(if encrypted {
                CertificateError::EncryptedKey { path }
            } else {
                CertificateError::NoKey { path }
            });
        };
        let pair = |error| CertificateError::Pair {
            certificate: certificate.clone(),
            key: key.clone(),
            why: match error {
                rustls::Error::InconsistentKeys(_) => "the key belongs to another certificate".to_owned(),
                error => error.to_string(),
            },
        };
        let config = |versions: &[&'static SupportedProtocolVersion], protocols: &[&[u8]]| {
            let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
                .with_protocol_versions(versions)?
                .with_no_client_auth()
                .with_single_cert(chain.clone(), private.clone_key())?;
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            // Our clients do not resume sessions.
            config.send_tls13_tickets = 0;
            Ok(Arc::new(config))
        };
        let pages = config(ALL_VERSIONS, &[HTTP_PROTOCOL]).map_err(pair)?;
        let control = config(&[&TLS13], &[TLS_PROTOCOL, HTTP_PROTOCOL]).map_err(pair)?;
        let http2 = config(&[&TLS13], &[HTTP2_PROTOCOL]).map_err(pair)?;
        Ok(Self { pages, control, http2, fingerprint })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let fail = |source| CertificateError::Read { path: path.to_owned(), source };
    let mut content = Vec::new();
    let file = fs::File::open(path).map_err(fail)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_FILE_BYTES), &mut content).map_err(fail)?;
    Ok(content)
}

fn stamps(files: &[PathBuf]) -> FileStamps {
    let stamp = |path: &PathBuf| fs::metadata(path).ok().as_ref().map(FileState::of);
    files.iter().map(stamp).collect()
}

fn own_file(given: Option<&Path>) -> Result<PathBuf, CertificateError> {
    match given {
        Some(path) => Ok(path.to_owned()),
        None => linerate_archive::data_file("tls.pem")
            .map_err(|error| CertificateError::NoFolder(error.to_string())),
    }
}

/// Makes a certificate that does not expire, so that its fingerprint can be compared for as long as the file is there.
fn make_if_missing(file: &Path, names: &[String]) -> Result<(), CertificateError> {
    if read_private(file, MAX_FILE_BYTES)?.is_some() {
        return Ok(());
    }
    let own = ["localhost".to_owned(), host_info(None).name.to_string()];
    let loopback =
        [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|address| address.to_string());
    // A name with other letters is not written like that in a certificate.
    let names = own.iter().chain(names).chain(&loopback).filter(|name| name.is_ascii()).cloned();
    let names: Vec<String> = names.collect();
    let fail = |error: rcgen::Error| CertificateError::Make(error.to_string());
    let key = rcgen::KeyPair::generate().map_err(fail)?;
    let mut params = rcgen::CertificateParams::new(names).map_err(fail)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "linerate");
    let certificate = params.self_signed(&key).map_err(fail)?;
    let text = certificate.pem() + &key.serialize_pem();
    let fail = |source| CertificateError::Write { path: file.to_owned(), source };
    whole_private_file(file, text.as_bytes()).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(certificate: &TlsCertificate) -> String {
        certificate.fingerprint().to_string()
    }

    fn own(folder: &tempfile::TempDir, name: &str) -> PathBuf {
        let file = folder.path().join(name);
        let source = CertificateSource::SelfSigned { file: Some(file.clone()) };
        TlsCertificate::open(&source, &["localhost".to_owned()]).unwrap();
        file
    }

    fn error(certificate: &Path, key: &Path) -> String {
        let source = CertificateSource::Files { certificate: certificate.to_owned(), key: key.to_owned() };
        TlsCertificate::open(&source, &[]).unwrap_err().to_string()
    }

    #[test]
    fn a_self_signed_certificate_keeps_its_fingerprint_and_its_key_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let source = CertificateSource::SelfSigned { file: Some(folder.path().join("new").join("tls.pem")) };
        let first = TlsCertificate::open(&source, &["ams-1".to_owned()]).unwrap();
        let again = TlsCertificate::open(&source, &["renamed".to_owned()]).unwrap();
        assert_eq!(shown(&first), shown(&again));
        let file = &first.files[0];
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        let exposed = TlsCertificate::open(&source, &[]).unwrap_err().to_string();
        assert!(exposed.contains("chmod 600"), "{exposed}");
    }

    #[test]
    fn a_check_finds_what_opening_would_and_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.pem");
        let source = CertificateSource::SelfSigned { file: Some(file.clone()) };
        TlsCertificate::check(&source).unwrap();
        assert!(!file.exists());
        TlsCertificate::open(&source, &[]).unwrap();
        TlsCertificate::check(&source).unwrap();
        whole_private_file(&file, b"cut").unwrap();
        let damaged = TlsCertificate::check(&source).unwrap_err().to_string();
        assert!(damaged.contains("tls.pem has no certificate"), "{damaged}");
    }

    #[test]
    fn files_that_nothing_uses_are_refused() {
        let files = ServerTlsOptions {
            tls_cert: Some("c.pem".into()),
            tls_key: Some("k.pem".into()),
            ..ServerTlsOptions::default()
        };
        let unused = CertificateSource::of_server(&files, false);
        assert!(matches!(unused, Err(CertificateError::Unused)), "{unused:?}");
        let used = Some(CertificateSource::Files { certificate: "c.pem".into(), key: "k.pem".into() });
        assert_eq!(CertificateSource::of_server(&files, true).unwrap(), used);
        let encrypted = ServerTlsOptions { tls_only: true, ..files };
        assert_eq!(CertificateSource::of_server(&encrypted, false).unwrap(), used);
        assert_eq!(CertificateSource::of_server(&ServerTlsOptions::default(), false).unwrap(), None);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (own(&folder, "one.pem"), own(&folder, "other.pem"));
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let missing = folder.path().join("missing.pem");
        assert!(error(&missing, &one).contains("missing.pem: No such file"), "{}", error(&missing, &one));
        assert!(error(&one, &missing).contains("cannot read"), "{}", error(&one, &missing));
        let empty = file("empty.pem", "");
        assert!(error(&empty, &one).contains("empty.pem has no certificate"), "{}", error(&empty, &one));
        assert!(error(&one, &empty).contains("empty.pem has no private key"), "{}", error(&one, &empty));
        let locked = file(
            "locked.pem",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        );
        assert!(error(&one, &locked).contains("openssl pkey -in"), "{}", error(&one, &locked));
        assert!(error(&one, &other).contains("belongs to another certificate"), "{}", error(&one, &other));
        let damaged = file("damaged.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        assert!(error(&damaged, &one).contains("damaged.pem cannot be used"), "{}", error(&damaged, &one));
    }

    #[test]
    fn an_expired_certificate_is_refused_with_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2020, 2, 29);
        let file = folder.path().join("old.pem");
        let text = params.self_signed(&key).unwrap().pem() + &key.serialize_pem();
        fs::write(&file, text).unwrap();
        let error = error(&file, &file);
        assert!(error.contains("old.pem has expired, at 2020-02-29T00:00:00Z; renew it"), "{error}");
    }

    #[test]
    fn changed_files_are_used_and_a_useless_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (own(&folder, "one.pem"), own(&folder, "other.pem"));
        let source = CertificateSource::Files { certificate: file.clone(), key: file.clone() };
        let used = TlsCertificate::open(&source, &[]).unwrap();
        let first = shown(&used);
        used.reload();
        assert_eq!(shown(&used), first);
        whole_private_file(&file, b"cut").unwrap();
        used.reload();
        assert_eq!(shown(&used), first);
        whole_private_file(&file, &fs::read(&other).unwrap()).unwrap();
        used.reload();
        assert_ne!(shown(&used), first);
    }
}
