//! Encrypted connections to a server, as libpq would make them.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Stdio};

use linerate_archive::{Archive, ArchiveError, Store, open};
use postgres::{Client, NoTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::postgres_server::PostgresServer;

/// A server with TLS at a port of 127.0.0.1, and files of certificates in its folder.
struct EncryptedServer {
    server: PostgresServer,
    process: Option<Child>,
    port: u16,
}

/// Whose certificate a server has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CertificateOf {
    /// `ca.pem` made it, for `localhost`.
    Authority,
    /// Its own, and it is an authority too, as `openssl req -x509` makes it.
    Itself,
    /// The server has none.
    Nobody,
}

impl EncryptedServer {
    fn start(certificate: CertificateOf, rules: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (server, process) = PostgresServer::start_with(port, |server| {
            let mut settings = vec!["listen_addresses=127.0.0.1".to_owned()];
            if certificate != CertificateOf::Nobody {
                write_certificates(server, certificate == CertificateOf::Itself);
                let file = |name: &str| server.folder.join(name).display().to_string();
                settings.push("ssl=on".to_owned());
                settings.push(format!("ssl_cert_file={}", file("server.pem")));
                settings.push(format!("ssl_key_file={}", file("server.key")));
                settings.push(format!("ssl_ca_file={}", file("ca.pem")));
            }
            write(server, "data/pg_hba.conf", &format!("local all all trust\n{rules}\n"));
            settings
        });
        Self { server, process: Some(process), port }
    }

    fn file(&self, name: &str) -> String {
        self.server.folder.join(name).display().to_string()
    }

    fn url(&self, host: &str, query: &str) -> String {
        format!("postgres://linerate@{host}:{}/postgres?{query}", self.port)
    }

    /// Opens the archive; says whether its connection is encrypted.
    fn is_encrypted(&self, host: &str, query: &str) -> bool {
        self.sees_encrypted(&open(&self.url(host, query)).unwrap())
    }

    fn sees_encrypted(&self, archive: &Archive) -> bool {
        assert_eq!(archive.runs(&Default::default()).unwrap().len(), 0);
        let mut client = Client::connect(&self.server.url("postgres"), NoTls).unwrap();
        let query = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'linerate' AND client_addr IS NOT NULL";
        client.query_one(query, &[]).unwrap().get(0)
    }

    fn error(&self, host: &str, query: &str) -> ArchiveError {
        open(&self.url(host, query)).unwrap_err()
    }

    /// What is wrong with the encryption.
    fn distrust(&self, host: &str, query: &str) -> String {
        let error = self.error(host, query);
        assert!(matches!(error, ArchiveError::Untrusted { .. }) && !error.is_passing(), "{query}: {error:?}");
        std::error::Error::source(&error).unwrap().to_string()
    }
}

impl Drop for EncryptedServer {
    fn drop(&mut self) {
        self.process.take().into_iter().for_each(PostgresServer::stop);
    }
}

/// Writes a file that only the server may read: it refuses other keys.
fn write(server: &PostgresServer, name: &str, content: &str) {
    let mut shell = server.as_its_user("/bin/sh");
    shell.args(["-c", "umask 077 && cat > \"$0\""]).arg(server.folder.join(name)).stdin(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
}

/// An authority in `ca.pem`, a certificate of it for the client, and one for the server that is of the authority or of
/// `itself`.
fn write_certificates(server: &PostgresServer, itself: bool) {
    let ca = authority("ours");
    let key = KeyPair::generate().unwrap();
    let params = for_localhost();
    let certificate = if itself {
        let mut params = params;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.self_signed(&key).unwrap()
    } else {
        params.signed_by(&key, &ca).unwrap()
    };
    write(server, "server.pem", &certificate.pem());
    write(server, "server.key", &key.serialize_pem());
    write(server, "ca.pem", &ca.pem());
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "linerate");
    let key = KeyPair::generate().unwrap();
    fs::write(server.folder.join("client.pem"), params.signed_by(&key, &ca).unwrap().pem()).unwrap();
    fs::write(server.folder.join("client.key"), key.serialize_pem()).unwrap();
    fs::write(server.folder.join("other.pem"), authority("another").pem()).unwrap();
}

fn for_localhost() -> CertificateParams {
    CertificateParams::new(vec!["localhost".to_owned()]).unwrap()
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

const EVERYBODY: &str = "host all all 127.0.0.1/32 trust";

#[test]
#[ignore = "needs PostgreSQL"]
fn the_mode_decides_whether_and_what_is_checked() {
    let server = EncryptedServer::start(CertificateOf::Authority, EVERYBODY);
    let (ca, other) = (server.file("ca.pem"), server.file("other.pem"));
    assert!(!server.is_encrypted("127.0.0.1", "sslmode=disable"));
    for (host, query) in [
        ("127.0.0.1", String::new()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", format!("sslmode=prefer&sslrootcert={other}")),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={ca}")),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ca}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={ca}")),
    ] {
        assert!(server.is_encrypted(host, &query), "{host} {query}");
    }
    for (host, query, part) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ca}"), "not valid for name"),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={other}"), "UnknownIssuer"),
        ("localhost", format!("sslmode=require&sslrootcert={other}"), "UnknownIssuer"),
        ("localhost", "sslrootcert=system".to_owned(), "UnknownIssuer"),
    ] {
        let why = server.distrust(host, &query);
        assert!(why.contains(part), "{query}: {why}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_lost_connection_is_encrypted_again() {
    let mut server = EncryptedServer::start(CertificateOf::Authority, EVERYBODY);
    let query = format!("sslmode=verify-full&sslrootcert={}", server.file("ca.pem"));
    let archive = open(&server.url("localhost", &query)).unwrap();
    server.process.take().into_iter().for_each(PostgresServer::stop);
    let lost = archive.runs(&Default::default()).unwrap_err();
    assert!(lost.is_passing(), "{lost:?}");
    server.process = Some(server.server.run());
    server.server.wait_until_ready();
    assert!(server.sees_encrypted(&archive));
}

/// A server that is its own authority is trusted by its certificate.
#[test]
#[ignore = "needs PostgreSQL"]
fn the_certificate_of_the_server_itself_can_be_the_root() {
    let server = EncryptedServer::start(CertificateOf::Itself, EVERYBODY);
    let own = server.file("server.pem");
    // The file of the server is for its user only.
    let copy = server.file("copy.pem");
    fs::copy(&own, &copy).unwrap();
    assert!(server.is_encrypted("localhost", &format!("sslmode=verify-full&sslrootcert={copy}")));
    assert!(server.is_encrypted("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={copy}")));
    let why = server.distrust("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={copy}"));
    assert!(why.contains("not valid for name"), "{why}");
    let other = server.file("other.pem");
    let why = server.distrust("localhost", &format!("sslmode=verify-ca&sslrootcert={other}"));
    assert!(why.contains("invalid peer certificate"), "{why}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_without_a_certificate_is_used_only_if_encryption_is_not_wanted() {
    let server = EncryptedServer::start(CertificateOf::Nobody, EVERYBODY);
    assert!(!server.is_encrypted("127.0.0.1", ""));
    let why = server.distrust("127.0.0.1", "sslmode=require");
    assert!(why.contains("does not support TLS"), "{why}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_certificate_of_the_client_is_its_login() {
    let server = EncryptedServer::start(CertificateOf::Authority, "hostssl all all 127.0.0.1/32 cert");
    let (certificate, key) = (server.file("client.pem"), server.file("client.key"));
    assert!(server.is_encrypted("127.0.0.1", &format!("sslcert={certificate}&sslkey={key}")));
    let error = server.error("127.0.0.1", "");
    assert!(matches!(error, ArchiveError::Refused { .. }), "{error:?}");
    let error = server.error("127.0.0.1", "sslmode=disable");
    assert!(matches!(error, ArchiveError::Refused { .. }), "{error:?}");
    for (query, part) in [
        (format!("sslcert={certificate}&sslkey={certificate}"), "no private key can be read"),
        (format!("sslcert={key}&sslkey={key}"), "none in PEM format"),
    ] {
        let error = server.error("127.0.0.1", &query);
        assert!(matches!(error, ArchiveError::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
}
