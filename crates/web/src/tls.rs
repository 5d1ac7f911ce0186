//! TLS of the service: its certificate and key, and what is answered to those who speak plain HTTP to it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_runner::{PrivateFileError, now, read_private, whole_private_file};
use linerate_sock::thread::locked;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::certificate_time::not_after;

/// How long the first byte and the handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// First byte of each TLS connection: the record of a handshake (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// Largest file of certificates or of a key.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// What is read of a plain request before it is refused, and how long that may take.
const MAX_PLAIN_BYTES: usize = 16 << 10;
const PLAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The answer to a plain request.
const PLAIN_REPLY: &str = "this port speaks HTTPS only: write https:// instead of http:// in the address\n";

/// Where the certificate and its key are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSource {
    /// Two PEM files. They are read again when they have changed.
    Files {
        /// The certificate, and those of its issuers.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// One of our own that nobody has signed, in a file which is made if it is missing.
    SelfSigned {
        /// The file, for both; absent for `linerate/web-tls.pem` in the user's data directory.
        file: Option<PathBuf>,
    },
}

impl TlsSource {
    /// The source that the options of a command line name, if any.
    #[must_use]
    pub fn of(certificate: Option<&Path>, key: Option<&Path>, self_signed: bool) -> Option<Self> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                Some(Self::Files { certificate: certificate.to_owned(), key: key.to_owned() })
            }
            _ => self_signed.then_some(Self::SelfSigned { file: None }),
        }
    }
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
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

impl TlsError {
    /// Whether a file or the request has to be corrected; otherwise this host is to blame.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Make(_))
    }
}

/// A certificate with its key, ready to be used.
#[derive(Debug, Clone)]
struct TlsIdentity {
    config: Arc<ServerConfig>,
    /// SHA-256 of the certificate.
    fingerprint: [u8; 32],
}

/// Tells files from those that they were before.
type FileStamps = Vec<Option<(u64, u64, i64, i64)>>;

/// The certificate of a running service.
#[derive(Debug)]
pub(crate) struct TlsCertificate {
    files: [PathBuf; 2],
    current: Mutex<TlsIdentity>,
    /// Of the files that were tried last.
    tried: Mutex<FileStamps>,
}

impl TlsCertificate {
    /// Reads the certificate and its key, or makes them for a host with these names.
    pub(crate) fn open(source: &TlsSource, names: &[String]) -> Result<Self, TlsError> {
        let files = match source {
            TlsSource::Files { certificate, key } => [certificate.clone(), key.clone()],
            TlsSource::SelfSigned { file } => {
                let file = own_file(file.as_deref())?;
                make_if_missing(&file, names)?;
                [file.clone(), file]
            }
        };
        let stamps = stamps(&files);
        let identity = TlsIdentity::read(&files)?;
        Ok(Self { files, current: Mutex::new(identity), tried: Mutex::new(stamps) })
    }

    /// SHA-256 of the certificate, as browsers and openssl show it.
    pub(crate) fn fingerprint(&self) -> String {
        let bytes = locked(&self.current).fingerprint;
        bytes.map(|byte| format!("{byte:02X}")).join(":")
    }

    /// Reads the files again if they have changed. If they cannot be used, the old certificate stays.
    pub(crate) fn reload(&self) {
        let stamps = stamps(&self.files);
        if *locked(&self.tried) == stamps {
            return;
        }
        match TlsIdentity::read(&self.files) {
            Ok(identity) => *locked(&self.current) = identity,
            Err(error) => {
                tracing::error!(%error, "the changed certificate is not used, and the one before stays")
            }
        }
        *locked(&self.tried) = stamps;
    }

    /// The encrypted stream of a connection; absent if the client speaks something else, or too slowly.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let config = Arc::clone(&locked(&self.current).config);
        let handshake = async {
            let mut first = [0; 1];
            if stream.peek(&mut first).await? != 1 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if first != [HANDSHAKE_RECORD] {
                refuse_plain(stream).await?;
                return Err(io::ErrorKind::InvalidData.into());
            }
            TlsAcceptor::from(config).accept(stream).await
        };
        let done = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await;
        done.ok()?.inspect_err(|error| tracing::debug!(%error, "no TLS connection")).ok()
    }
}

/// Answers a plain request. It is read first: to close a connection with unread bytes would take the answer back.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    let read = async {
        let mut part = [0; 1024];
        while head.len() < MAX_PLAIN_BYTES && !head.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut part).await? {
                0 => break,
                count => head.extend_from_slice(&part[..count]),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(PLAIN_TIMEOUT, read).await;
    // Only to somebody who speaks HTTP.
    if head.first().is_some_and(u8::is_ascii_uppercase) {
        let reply = format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{PLAIN_REPLY}",
            PLAIN_REPLY.len()
        );
        stream.write_all(reply.as_bytes()).await?;
    }
    stream.shutdown().await
}

impl TlsIdentity {
    fn read([certificate, key]: &[PathBuf; 2]) -> Result<Self, TlsError> {
        let content = read_file(certificate)?;
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&content).collect::<Result<_, _>>().unwrap_or_default();
        let Some(first) = chain.first() else {
            return Err(TlsError::NoCertificate { path: certificate.clone() });
        };
        let fingerprint = Sha256::digest(first).into();
        if let Some(at) = not_after(first).filter(|at| *at < now()) {
            return Err(TlsError::Expired { path: certificate.clone(), at });
        }
        let content = read_file(key)?;
        let Ok(private) = PrivateKeyDer::from_pem_slice(&content) else {
            let encrypted = String::from_utf8_lossy(&content).contains("ENCRYPTED");
            let path = key.clone();
            return Err(if encrypted { TlsError::EncryptedKey { path } } else { TlsError::NoKey { path } });
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(|error| TlsError::Pair {
                certificate: certificate.clone(),
                key: key.clone(),
                why: match error {
                    rustls::Error::InconsistentKeys(_) => "the key belongs to another certificate".to_owned(),
                    error => error.to_string(),
                },
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), fingerprint })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let fail = |source| TlsError::Read { path: path.to_owned(), source };
    let mut content = Vec::new();
    let file = fs::File::open(path).map_err(fail)?;
    io::Read::read_to_end(&mut io::Read::take(file, MAX_FILE_BYTES), &mut content).map_err(fail)?;
    Ok(content)
}

fn stamps(files: &[PathBuf]) -> FileStamps {
    let stamp = |path: &PathBuf| {
        let data = fs::metadata(path).ok()?;
        Some((data.ino(), data.size(), data.ctime(), data.ctime_nsec()))
    };
    files.iter().map(stamp).collect()
}

fn own_file(given: Option<&Path>) -> Result<PathBuf, TlsError> {
    match given {
        Some(path) => Ok(path.to_owned()),
        None => {
            linerate_archive::data_file("web-tls.pem").map_err(|error| TlsError::NoFolder(error.to_string()))
        }
    }
}

/// Makes a certificate that does not expire, so that its fingerprint can be compared for as long as the file is there.
fn make_if_missing(file: &Path, names: &[String]) -> Result<(), TlsError> {
    if read_private(file, MAX_FILE_BYTES)?.is_some() {
        return Ok(());
    }
    let own =
        [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].map(|address| address.to_string());
    // A name with other letters is not written like that in a certificate.
    let names: Vec<String> = names.iter().filter(|name| name.is_ascii()).cloned().chain(own).collect();
    let fail = |error: rcgen::Error| TlsError::Make(error.to_string());
    let key = rcgen::KeyPair::generate().map_err(fail)?;
    let mut params = rcgen::CertificateParams::new(names).map_err(fail)?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "linerate");
    let certificate = params.self_signed(&key).map_err(fail)?;
    let text = certificate.pem() + &key.serialize_pem();
    let fail = |source| TlsError::Write { path: file.to_owned(), source };
    whole_private_file(file, text.as_bytes()).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(folder: &tempfile::TempDir, name: &str) -> PathBuf {
        let file = folder.path().join(name);
        let source = TlsSource::SelfSigned { file: Some(file.clone()) };
        TlsCertificate::open(&source, &["localhost".to_owned()]).unwrap();
        file
    }

    fn error(certificate: &Path, key: &Path) -> String {
        let source = TlsSource::Files { certificate: certificate.to_owned(), key: key.to_owned() };
        TlsCertificate::open(&source, &[]).unwrap_err().to_string()
    }

    #[test]
    fn a_self_signed_certificate_keeps_its_fingerprint_and_its_key_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let source = TlsSource::SelfSigned { file: Some(folder.path().join("new").join("tls.pem")) };
        let first = TlsCertificate::open(&source, &["ams-1".to_owned()]).unwrap();
        let again = TlsCertificate::open(&source, &["renamed".to_owned()]).unwrap();
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert_eq!(first.fingerprint().len(), 32 * 3 - 1);
        let file = &first.files[0];
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        let exposed = TlsCertificate::open(&source, &[]).unwrap_err().to_string();
        assert!(exposed.contains("chmod 600"), "{exposed}");
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
        let source = TlsSource::Files { certificate: file.clone(), key: file.clone() };
        let used = TlsCertificate::open(&source, &[]).unwrap();
        let first = used.fingerprint();
        used.reload();
        assert_eq!(used.fingerprint(), first);
        whole_private_file(&file, b"cut").unwrap();
        used.reload();
        assert_eq!(used.fingerprint(), first);
        whole_private_file(&file, &fs::read(&other).unwrap()).unwrap();
        used.reload();
        assert_ne!(used.fingerprint(), first);
    }
}
