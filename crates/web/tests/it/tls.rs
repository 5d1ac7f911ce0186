//! The service over TLS.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use linerate_runner::CertificateSource;
use linerate_sock::clock;
use linerate_web::{Access, WebConfig, WebError, WebServer, WebToken};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
    SupportedProtocolVersion,
};

use crate::client::{HttpReply, TestSite, config};

const SECRET: &str = "correct horse battery";

/// Trusts one certificate, whoever has signed it.
#[derive(Debug)]
struct PinnedCertificate {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General("another certificate".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
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

/// A site with a self-signed certificate in `file`.
fn site(file: &Path) -> TestSite {
    let token = Some(WebToken::new(SECRET).unwrap());
    let tls = Some(CertificateSource::SelfSigned { file: Some(file.to_owned()) });
    TestSite::with(WebConfig { tls, ..config(Access { token, ..Access::default() }, None) })
}

/// Sends a request over TLS to a site whose certificate is the one in `file`.
fn send(site: &TestSite, file: &Path, request: &str) -> Result<HttpReply, std::io::Error> {
    send_within(ALL_VERSIONS, site, file, request)
}

/// As [`send`], in one of these versions of TLS.
fn send_within(
    versions: &[&'static SupportedProtocolVersion],
    site: &TestSite,
    file: &Path,
    request: &str,
) -> Result<HttpReply, std::io::Error> {
    let provider = Arc::new(ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(&std::fs::read(file).unwrap()).unwrap();
    let pinned = PinnedCertificate { certificate, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, site.connect());
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    // The end without a farewell of TLS is an error, after the response.
    let _ = stream.read_to_end(&mut bytes);
    Ok(HttpReply::parse(&bytes))
}

#[test]
fn a_visitor_signs_in_over_tls_and_the_cookie_is_for_tls_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tls.pem");
    let site = site(&file);
    let body = format!(r#"{{"token":"{SECRET}"}}"#);
    let request = format!(
        "POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nOrigin: https://localhost\r\nConnection: close\r\n\
         X-Linerate: 1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let signed_in = send(&site, &file, &request).unwrap();
    assert_eq!(signed_in.status, 204, "{signed_in:?}");
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(cookie.contains("Secure; HttpOnly; SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let session = send(
        &site,
        &file,
        &format!(
            "GET /api/v1/session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {pair}\r\n\r\n"
        ),
    )
    .unwrap();
    let policy = session.header("content-security-policy").unwrap();
    assert!(policy.ends_with("connect-src 'self'"), "{policy}");
    assert_eq!(session.header("strict-transport-security"), None, "the port of the server has no TLS");
    let session = session.json();
    assert_eq!(session["signed_in"], true, "{session}");
    // A page over TLS may not connect to the port of the server.
    assert!(session.get("browser_test").is_none(), "{session}");
}

#[test]
fn a_client_that_expects_another_certificate_does_not_connect() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tls.pem");
    let site = site(&file);
    let other = folder.path().join("other.pem");
    drop(WebServer::bind(WebConfig {
        tls: Some(CertificateSource::SelfSigned { file: Some(other.clone()) }),
        ..config(Access::default(), None)
    }));
    let refused = send(&site, &other, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap_err();
    assert!(refused.to_string().contains("another certificate"), "{refused}");
}

#[test]
fn plain_requests_are_told_to_use_https_and_garbage_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tls.pem");
    let site = site(&file);
    let plain = site.get("/");
    assert_eq!(plain.status, 400, "{plain:?}");
    assert!(plain.body.contains("https://"), "{plain:?}");
    for garbage in [&b"\x80\x01garbage"[..], &[22, 3, 1, 255, 255, 0, 0], &[22], &[]] {
        let mut stream = site.connect();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        assert!(!reply.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&reply));
    }
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(send(&site, &file, request).unwrap().status, 200);
}

#[test]
fn whoever_does_not_begin_the_handshake_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(&folder.path().join("tls.pem"));
    let began = clock::now();
    let (mut silent, mut slow) = (site.connect(), site.connect());
    slow.write_all(&[22, 3, 1]).unwrap();
    let mut reply = Vec::new();
    for stream in [&mut silent, &mut slow] {
        let _ = stream.read_to_end(&mut reply);
    }
    let waited = clock::now().since(began).as_secs_f64();
    assert!(reply.is_empty() && (5.0..50.0).contains(&waited), "{waited}");
}

#[test]
fn with_tls_alone_others_reach_the_service_and_may_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let open = |tls: Option<CertificateSource>, public: bool| {
        let access = Access { public, ..Access::default() };
        let address = "0.0.0.0:0".parse().unwrap();
        let config = WebConfig { address, tls, ..config(access, None) };
        let checked = WebServer::check(&config).map_err(|error| error.to_string());
        let opened = WebServer::bind(config);
        let refused = opened.as_ref().err().map(ToString::to_string);
        assert_eq!(checked.err(), refused, "a check finds the same");
        opened
    };
    let tls = Some(CertificateSource::SelfSigned { file: Some(folder.path().join("tls.pem")) });
    assert!(matches!(open(None, true), Err(WebError::Unprotected(_))));
    let closed = open(tls.clone(), false).unwrap();
    assert!(closed.url().starts_with("https://"), "{}", closed.url());
    let notes = closed.notes().join("\n");
    assert!(notes.contains("SHA-256 fingerprint ") && notes.contains("linerate token add"), "{notes}");
    assert!(open(tls, true).is_ok());
    let missing =
        Some(CertificateSource::Files { certificate: "/none/cert.pem".into(), key: "/none/key.pem".into() });
    let error = open(missing, false).unwrap_err();
    assert!(error.needs_correction(), "{error}");
    assert!(error.to_string().starts_with("--tls-cert: cannot read /none/cert.pem"), "{error}");
}

#[test]
fn clients_of_speed_tests_reach_the_server_at_encrypted_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tls.pem");
    let site = site(&file);
    let asks = |path: &str, version| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        send_within(&[version], &site, &file, &request).unwrap()
    };
    let down = asks("/__down?bytes=300001", &TLS13);
    assert_eq!((down.status, down.header("content-length")), (200, Some("300001")));
    assert!(asks("/backend/getIP.php", &TLS13).body.contains("127.0.0.1"));
    assert_eq!(asks("/ndt/v7/download", &TLS13).status, 426);
    // Its figures rely on the records of TLS 1.3.
    assert_eq!(asks("/__down?bytes=300001", &TLS12).status, 404);
    // Everything else is a page, also if its request comes in pieces.
    for version in [&TLS12, &TLS13] {
        assert_eq!(asks("/healthz", version).status, 200);
        assert_eq!(asks(&format!("/__download{}", "x".repeat(2_000)), version).status, 404);
    }
}
