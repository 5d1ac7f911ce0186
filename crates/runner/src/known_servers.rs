//! How a client recognises the server of an encrypted control connection, and the file of the servers that it has met.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_control::{DEFAULT_PORT, FingerprintCheck, ServerTrust, UnknownServer};
use linerate_model::{Fingerprint, TlsOptions};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Name of the file in the user's data directory.
const FILE: &str = "known-servers";

/// Largest file of known servers or of authorities. Those of a distribution have 220 kB.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Why it is not possible to recognise a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The user has no directory for data.
    #[error(
        "--tls remembers the certificates of servers in the user's data directory, and there is none ({0}); give \
         --tls-fingerprint or --tls-ca"
    )]
    NoFolder(String),
    /// The file of authorities cannot be read.
    #[error("--tls-ca {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has no certificate that an authority can have.
    #[error("--tls-ca {}: it has no usable certificate in PEM format (-----BEGIN CERTIFICATE-----)", path.display())]
    NoAuthority {
        /// The file.
        path: PathBuf,
    },
}

/// Where remembered servers are, and who is told of a new one.
#[derive(Debug, Clone)]
pub struct KnownServers {
    /// The file; absent for `linerate/known-servers` in the user's data directory.
    pub file: Option<PathBuf>,
    /// Is told, in one line, that a server was met for the first time.
    pub tell: fn(String),
}

/// How the server that is meant is recognised; absent for a control connection that is not encrypted.
///
/// # Errors
/// The file of authorities cannot be used, or there is no place to remember servers.
pub fn server_trust(
    options: &TlsOptions,
    host: &str,
    port: Option<u16>,
    known: KnownServers,
) -> Result<Option<ServerTrust>, TrustError> {
    if let Some(trust) = given(options)? {
        return Ok(Some(trust));
    }
    if !options.tls {
        return Ok(None);
    }
    let file = match known.file {
        Some(file) => file,
        None => linerate_archive::data_file(FILE).map_err(|error| TrustError::NoFolder(error.to_string()))?,
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_ascii_lowercase() };
    let server = format!("{host}:{}", port.unwrap_or(DEFAULT_PORT));
    Ok(Some(ServerTrust::Fingerprint(Arc::new(RememberedServer { file, server, tell: known.tell }))))
}

/// How an agent is recognised; absent for a control connection that is not encrypted. Its token is enough.
///
/// # Errors
/// The file of authorities cannot be used.
pub fn agent_trust(options: &TlsOptions) -> Result<Option<ServerTrust>, TrustError> {
    Ok(given(options)?.or(options.tls.then_some(ServerTrust::Token)))
}

fn given(options: &TlsOptions) -> Result<Option<ServerTrust>, TrustError> {
    match (&options.tls_fingerprint, &options.tls_ca) {
        (Some(fingerprint), _) => Ok(Some(ServerTrust::Fingerprint(Arc::new(*fingerprint)))),
        (None, Some(path)) => Ok(Some(ServerTrust::Authorities(Arc::new(authorities(path)?)))),
        (None, None) => Ok(None),
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, TrustError> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut content));
    read.map_err(|source| TrustError::Read { path: path.to_owned(), source })?;
    let mut roots = RootCertStore::empty();
    // A collection may have some that this library does not take.
    let (added, _) =
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&content).filter_map(Result::ok));
    if added == 0 { Err(TrustError::NoAuthority { path: path.to_owned() }) } else { Ok(roots) }
}

/// Recognises one server by the certificate that it had the first time.
#[derive(Debug)]
struct RememberedServer {
    file: PathBuf,
    /// `HOST:PORT`.
    server: String,
    tell: fn(String),
}

impl FingerprintCheck for RememberedServer {
    fn check(&self, shown: Fingerprint) -> Result<(), UnknownServer> {
        let Self { file, server, .. } = self;
        let fail = |error: io::Error| {
            let why = format!("{}: {error}", file.display());
            UnknownServer(format!(
                "cannot remember the certificate of {server} ({why}); give --tls-fingerprint {shown}"
            ))
        };
        match self.remembered(shown).map_err(fail)? {
            Remembered::Same => Ok(()),
            Remembered::Now => {
                (self.tell)(format!(
                    "the certificate of {server} is remembered from now on; compare its fingerprint with what the \
                     server printed: {shown}"
                ));
                Ok(())
            }
            Remembered::Other(line) => Err(UnknownServer(format!(
                "{server} has shown a certificate with the fingerprint {shown}, which is not the one that is \
                 remembered: it is another server, or somebody is between. If the server has a new certificate, \
                 remove line {line} of {}",
                file.display()
            ))),
            Remembered::Damaged(line) => Err(UnknownServer(format!(
                "line {line} of {} is not HOST:PORT and a fingerprint; correct or remove it",
                file.display()
            ))),
        }
    }
}

/// What the file says of a server.
enum Remembered {
    /// It has this certificate.
    Same,
    /// It was not there, and is now.
    Now,
    /// It had another certificate, in this line.
    Other(usize),
    /// This line cannot be read.
    Damaged(usize),
}

impl RememberedServer {
    fn remembered(&self, shown: Fingerprint) -> io::Result<Remembered> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.file)?;
        // Two tests that begin together must not both believe to be the first.
        file.lock()?;
        let mut text = String::new();
        (&mut file).take(MAX_FILE_BYTES).read_to_string(&mut text)?;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let parsed =
                line.trim().split_once(' ').map(|(server, fingerprint)| (server, fingerprint.parse()));
            match parsed {
                Some((server, Ok(fingerprint))) if server == self.server => {
                    return Ok(if shown == fingerprint {
                        Remembered::Same
                    } else {
                        Remembered::Other(at + 1)
                    });
                }
                Some((_, Ok(_))) => {}
                _ => return Ok(Remembered::Damaged(at + 1)),
            }
        }
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        file.write_all(format!("{end}{} {shown}\n", self.server).as_bytes())?;
        Ok(Remembered::Now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(file: &Path, host: &str, port: Option<u16>) -> Arc<dyn FingerprintCheck> {
        let known = KnownServers { file: Some(file.to_owned()), tell: |_| () };
        let options = TlsOptions { tls: true, ..TlsOptions::default() };
        match server_trust(&options, host, port, known).unwrap() {
            Some(ServerTrust::Fingerprint(check)) => check,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_server_keeps_its_first_certificate_until_its_line_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new").join("known-servers");
        let (one, other) = (Fingerprint([1; 32]), Fingerprint([2; 32]));
        known(&file, "Ams-1", None).check(one).unwrap();
        known(&file, "ams-1", Some(5201)).check(one).unwrap();
        // Another port, and another host, are other servers.
        known(&file, "ams-1", Some(5202)).check(other).unwrap();
        known(&file, "2001:db8::7", None).check(other).unwrap();
        let refused = known(&file, "ams-1", None).check(other).unwrap_err().to_string();
        assert!(refused.contains("remove line 1 of") && refused.contains(&other.to_string()), "{refused}");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains(&format!("[2001:db8::7]:5201 {other}\n")), "{text}");
        let rest: Vec<&str> = text.lines().skip(1).collect();
        // Editors leave a file without a line end.
        fs::write(&file, rest.join("\n")).unwrap();
        known(&file, "ams-1", None).check(other).unwrap();
        known(&file, "2001:db8::7", None).check(other).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known-servers");
        fs::write(&file, "\nams-2:5201 00:11\n").unwrap();
        let damaged = known(&file, "ams-1", None).check(Fingerprint([1; 32])).unwrap_err().to_string();
        assert!(damaged.contains("line 2 of") && damaged.contains("known-servers"), "{damaged}");
        let no_file =
            known(folder.path(), "ams-1", None).check(Fingerprint([1; 32])).unwrap_err().to_string();
        assert!(no_file.contains("give --tls-fingerprint 01:01"), "{no_file}");
    }

    #[test]
    fn of_many_tests_that_begin_together_one_meets_the_server_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known-servers");
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| known(&file, "ams-1", None).check(Fingerprint([7; 32])).unwrap());
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    }

    #[test]
    fn what_is_given_decides_and_without_anything_nothing_is_encrypted() {
        let known = KnownServers { file: Some(PathBuf::from("/no/such/folder")), tell: |_| () };
        let trust = |options: &TlsOptions| server_trust(options, "a", None, known.clone());
        assert!(trust(&TlsOptions::default()).unwrap().is_none());
        assert!(agent_trust(&TlsOptions::default()).unwrap().is_none());
        let plain = TlsOptions { tls: true, ..TlsOptions::default() };
        assert!(matches!(agent_trust(&plain).unwrap(), Some(ServerTrust::Token)));
        let pinned = TlsOptions { tls_fingerprint: Some(Fingerprint([3; 32])), ..TlsOptions::default() };
        for trust in [trust(&pinned), agent_trust(&pinned)] {
            let Some(ServerTrust::Fingerprint(check)) = trust.unwrap() else {
                panic!("a fingerprint decides")
            };
            check.check(Fingerprint([3; 32])).unwrap();
            assert!(
                check.check(Fingerprint([4; 32])).unwrap_err().to_string().contains("not the expected 03:03")
            );
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("missing.pem", None), ("empty.pem", Some("no certificate"))] {
            let path = folder.path().join(name);
            content.into_iter().for_each(|content| fs::write(&path, content).unwrap());
            let error =
                trust(&TlsOptions { tls_ca: Some(path), ..TlsOptions::default() }).unwrap_err().to_string();
            assert!(error.starts_with("--tls-ca ") && error.contains(name), "{error}");
        }
    }
}
