//! How a client recognises the server of an encrypted control connection, and the file of the servers that it has met.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_control::{DEFAULT_PORT, FingerprintCheck, ServerTrust, UnknownServer};
use linerate_model::{Fingerprint, TlsOptions};
use linerate_sock::clock;
use linerate_sock::files::only_for_owner;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Name of the file in the user's data directory.
const FILE: &str = "known-servers";

/// Largest file of known servers or of authorities. Those of a distribution have 220 kB.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// How long another process may hold the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

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
    pub notify: fn(String),
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
    let server = server_name(host, port);
    Ok(Some(ServerTrust::Fingerprint(Arc::new(RememberedServer { file, server, notify: known.notify }))))
}

/// How an agent is recognised; absent for a control connection that is not encrypted. Its token is enough.
///
/// # Errors
/// The file of authorities cannot be used.
pub fn agent_trust(options: &TlsOptions) -> Result<Option<ServerTrust>, TrustError> {
    Ok(given(options)?.or(options.tls.then_some(ServerTrust::Token)))
}

/// `HOST:PORT`, the same for all spellings of an address or a name.
fn server_name(host: &str, port: Option<u16>) -> String {
    let host = match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(address)) => address.to_string(),
        // An address with a zone.
        Err(_) if host.contains(':') => format!("[{}]", host.to_ascii_lowercase()),
        Err(_) => host.to_lowercase(),
    };
    format!("{host}:{}", port.unwrap_or(DEFAULT_PORT))
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
    notify: fn(String),
}

impl FingerprintCheck for RememberedServer {
    fn check(&self, shown: Fingerprint) -> Result<(), UnknownServer> {
        let known = self.read(false).and_then(|(_, known)| known.map_err(Into::into));
        self.judge(known.map_err(|error| self.unusable(&error))?, shown)
    }

    fn remember(&self, shown: Fingerprint) -> Result<(), UnknownServer> {
        // Another test may have met it meanwhile.
        let (mut file, known) = self.read(true).map_err(|error| self.unusable(&error))?;
        let known = known.map_err(|error| self.unusable(&error.into()))?;
        if known.is_some() {
            return self.judge(known, shown);
        }
        let line = format!("{} {shown}\n", self.server);
        file.write_all(line.as_bytes()).map_err(|error| self.unusable(&error))?;
        (self.notify)(format!(
            "the certificate of {} is remembered from now on; compare its fingerprint with what the server printed: \
             {shown}",
            self.server
        ));
        Ok(())
    }
}

/// A line of the file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {0} is not HOST:PORT and a fingerprint; correct or remove it")]
struct DamagedLine(usize);

impl From<DamagedLine> for io::Error {
    fn from(line: DamagedLine) -> Self {
        Self::new(io::ErrorKind::InvalidData, line)
    }
}

/// The line of a server, from 1, and the fingerprint in it.
type KnownLine = Option<(usize, Fingerprint)>;

impl RememberedServer {
    fn judge(&self, known: KnownLine, shown: Fingerprint) -> Result<(), UnknownServer> {
        match known {
            Some((line, known)) if known != shown => Err(UnknownServer(format!(
                "{} has shown a certificate with the fingerprint {shown}, which is not the one that is remembered: it \
                 is a different server, or the connection is intercepted. If the server has a new certificate, remove line {line} of \
                 {}",
                self.server,
                self.file.display()
            ))),
            _ => Ok(()),
        }
    }

    fn unusable(&self, error: &io::Error) -> UnknownServer {
        UnknownServer(format!(
            "it is not known whether this is the server: {}: {error}; correct that, or give --tls-fingerprint with \
             the fingerprint that the server has printed",
            self.file.display()
        ))
    }

    /// Reads the file, for `writing` as the only one who does, and finds the server in it.
    fn read(&self, writing: bool) -> io::Result<(File, Result<KnownLine, DamagedLine>)> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file =
            only_for_owner(OpenOptions::new().read(true).append(true).create(true)).open(&self.file)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        if writing {
            lock(&file)?;
        }
        let mut text = String::new();
        (&mut file).take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large to be this file"));
        }
        if writing && !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok((file, self.find(&text)))
    }

    fn find(&self, text: &str) -> Result<KnownLine, DamagedLine> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let parsed =
                line.split_once(char::is_whitespace).map(|(server, rest)| (server, rest.trim().parse()));
            match parsed {
                Some((server, Ok(fingerprint))) if server == self.server => {
                    return Ok(Some((number, fingerprint)));
                }
                Some((_, Ok(_))) => {}
                _ => return Err(DamagedLine(number)),
            }
        }
        Ok(None)
    }
}

/// Takes the file for this process. Whoever has it writes one line.
fn lock(file: &File) -> io::Result<()> {
    let deadline = clock::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if !deadline.has_passed() => {
                clock::sleep_until(clock::now() + Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process has locked it"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(file: &Path, host: &str, port: Option<u16>) -> Arc<dyn FingerprintCheck> {
        let known = KnownServers { file: Some(file.to_owned()), notify: |_| () };
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
        let meet = |host: &str, port, shown| {
            let server = known(&file, host, port);
            server.check(shown).and_then(|()| server.remember(shown))
        };
        // Who has shown a certificate has not proved yet that it has the key.
        known(&file, "ams-1", None).check(other).unwrap();
        meet("Ams-1", None, one).unwrap();
        meet("ams-1", Some(5201), one).unwrap();
        // Another port, and another host, are other servers.
        meet("ams-1", Some(5202), other).unwrap();
        meet("2001:DB8:0::7", None, other).unwrap();
        let refused = known(&file, "ams-1", None).check(other).unwrap_err().to_string();
        assert!(refused.contains("remove line 1 of") && refused.contains(&other.to_string()), "{refused}");
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains(&format!("[2001:db8::7]:5201 {other}\n")), "{text}");
        let rest: Vec<&str> = text.lines().skip(1).collect();
        // Editors leave a file without a line end.
        fs::write(&file, rest.join("\n")).unwrap();
        meet("ams-1", None, other).unwrap();
        meet("2001:db8::7", None, other).unwrap();
        assert!(meet("2001:db8::7", None, one).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known-servers");
        let good = Fingerprint([1; 32]);
        let why = |file: &Path| {
            let error = known(file, "ams-1", None).check(good).unwrap_err().to_string();
            assert!(error.contains(&file.display().to_string()), "{error}");
            // What a stranger has shown is no advice.
            assert!(!error.contains("01:01"), "{error}");
            error
        };
        fs::write(&file, format!("# ours\nams-2:5201\t{good}\nams-3:5201 00:11\n")).unwrap();
        assert!(why(&file).contains("line 3 is not HOST:PORT"), "{}", why(&file));
        fs::write(&file, [0xff; 9]).unwrap();
        assert!(why(&file).contains("UTF-8"), "{}", why(&file));
        let line = format!("ams-2:5201 {good}\n");
        fs::write(&file, line.repeat(MAX_FILE_BYTES as usize / line.len() + 1)).unwrap();
        assert!(why(&file).contains("too large"), "{}", why(&file));
        why(folder.path());
    }

    #[test]
    fn a_file_that_somebody_holds_is_no_reason_to_wait_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known-servers");
        let held = File::create(&file).unwrap();
        held.lock().unwrap();
        let server = known(&file, "ams-1", None);
        server.check(Fingerprint([1; 32])).unwrap();
        let error = server.remember(Fingerprint([1; 32])).unwrap_err().to_string();
        assert!(error.contains("another process has locked it"), "{error}");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = known(&pipe, "ams-1", None).check(Fingerprint([1; 32])).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn of_many_tests_that_begin_together_one_meets_the_server_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known-servers");
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let (server, mut attempts) = (known(&file, "ams-1", None), 0..20);
                    // A busy machine may keep the file locked for longer than a test waits for it.
                    while let Err(error) = server.remember(Fingerprint([7; 32])) {
                        assert!(
                            error.to_string().contains("has locked it") && attempts.next().is_some(),
                            "{error}"
                        );
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    }

    #[test]
    fn what_is_given_decides_and_without_anything_nothing_is_encrypted() {
        let known = KnownServers { file: Some(PathBuf::from("/no/such/folder")), notify: |_| () };
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
