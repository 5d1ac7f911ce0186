//! Control connections within TLS, and those who attack them.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use linerate_control::{
    FingerprintCheck, HTTP_PROTOCOL, ServerConfig, ServerEvent, ServerIdentity, ServerTrust, TLS_PROTOCOL,
    TlsRequirement, fingerprint_of,
};
use linerate_model::{CaveatKind, Fingerprint, Outcome, Side};
use linerate_proto::native::Preface;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use super::hosts::{LoopbackAgent, TIMEOUT, carry_out, client, flow, group, test_bed, token, unknown_client};
use crate::forwarded_runs::{ForwardingSink, next_run};
use crate::self_signed::self_signed;

/// A certificate, and how often a connection was encrypted with it.
#[derive(Debug)]
struct CountedIdentity {
    config: Arc<rustls::ServerConfig>,
    certificate: CertificateDer<'static>,
    used: AtomicUsize,
}

impl CountedIdentity {
    fn new() -> Arc<Self> {
        let (mut config, certificate) = self_signed(TLS_PROTOCOL);
        config.alpn_protocols.push(HTTP_PROTOCOL.to_vec());
        Arc::new(Self { config: Arc::new(config), certificate, used: AtomicUsize::new(0) })
    }
}

impl ServerIdentity for CountedIdentity {
    fn tls(&self) -> Arc<rustls::ServerConfig> {
        self.used.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.config)
    }

    fn http2(&self) -> Arc<rustls::ServerConfig> {
        self.tls()
    }

    fn fingerprint(&self) -> Fingerprint {
        fingerprint_of(&self.certificate)
    }
}

fn encrypted_agent() -> (LoopbackAgent, Arc<CountedIdentity>) {
    let identity = CountedIdentity::new();
    let config = ServerConfig {
        identity: Some(Arc::clone(&identity) as _),
        tls_required: TlsRequirement::Coordinators,
        agent_token: Some(token()),
        ..ServerConfig::default()
    };
    (LoopbackAgent::with(config), identity)
}

type TlsClient = StreamOwned<ClientConnection, TcpStream>;

/// A foreign client of TLS, which speaks `protocol` inside, and does not say so if that is empty.
fn tls_client(
    (to, identity): (&LoopbackAgent, &CountedIdentity),
    protocol: &[u8],
    version: &'static rustls::SupportedProtocolVersion,
) -> TlsClient {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate.clone()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols.extend(Some(protocol.to_vec()).filter(|protocol| !protocol.is_empty()));
    let tcp = TcpStream::connect(to.address).unwrap();
    tcp.set_read_timeout(Some(TIMEOUT)).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), tcp)
}

#[test]
fn a_group_is_coordinated_within_tls_and_its_hosts_recognise_each_other() {
    let ((a, of_a), (b, of_b)) = (encrypted_agent(), encrypted_agent());
    let mut bed = test_bed([&a, &b]);
    bed.hosts.iter_mut().for_each(|host| host.tls = Some(ServerTrust::Token));
    let ends = carry_out(bed, &group(vec![flow(0, 1, 200)])).unwrap();
    assert_eq!(ends[0].0.outcome, Outcome::Completed, "{ends:?}");
    // The coordinator at both, and a's run at b.
    let used = |identity: &CountedIdentity| identity.used.load(Ordering::Relaxed);
    assert_eq!((used(&of_a), used(&of_b)), (1, 2));
}

#[test]
fn a_coordinator_without_tls_is_refused_by_an_agent_with_a_certificate_and_a_client_is_not() {
    let (agent, identity) = encrypted_agent();
    let troubles = carry_out(test_bed([&agent]), &group(Vec::new())).unwrap_err();
    assert!(troubles[0].to_string().contains("over TLS only; give --tls"), "{troubles:?}");
    assert_eq!(unknown_client(&agent).outcome, Some(Outcome::Completed));
    assert_eq!(identity.used.load(Ordering::Relaxed), 0);
}

/// Passes what it hears on between two encrypted connections of its own, until one of them ends.
fn relay(mut one: impl Read + Write, mut other: impl Read + Write) {
    let pass = |from: &mut dyn Read, to: &mut dyn Write| {
        let mut bytes = [0; 4096];
        match from.read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => to.write_all(&bytes[..count]).and_then(|()| to.flush()).is_ok(),
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    };
    while pass(&mut one, &mut other) && pass(&mut other, &mut one) {}
}

#[test]
fn whoever_is_between_a_coordinator_and_an_agent_cannot_pass_the_proofs_on() {
    let (agent, identity) = encrypted_agent();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let own = CountedIdentity::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (tcp, _) = listener.accept().unwrap();
            let moment = Some(Duration::from_millis(10));
            tcp.set_read_timeout(moment).unwrap();
            let to_agent = tls_client((&agent, &identity), TLS_PROTOCOL, &TLS13);
            to_agent.sock.set_read_timeout(moment).unwrap();
            relay(StreamOwned::new(ServerConnection::new(own.tls()).unwrap(), tcp), to_agent);
        });
        let mut bed = test_bed([&agent]);
        bed.hosts[0].tls = Some(ServerTrust::Token);
        bed.hosts[0].port = Some(port);
        let troubles = carry_out(bed, &group(Vec::new())).unwrap_err();
        assert!(troubles[0].to_string().contains("the connection is intercepted"), "{troubles:?}");
    });
    let refused = agent.wait_for(|event| match event {
        ServerEvent::Ended { trouble, .. } => trouble,
        _ => None,
    });
    assert!(refused.to_string().contains("turned away"), "{refused}");
}

#[test]
fn a_client_takes_only_the_certificate_that_it_expects() {
    let (agent, identity) = encrypted_agent();
    let port = agent.address.port();
    let right = || Some(ServerTrust::Fingerprint(Arc::new(identity.fingerprint())));
    assert_eq!(client(port, right()).unwrap().outcome, Some(Outcome::Completed));
    let wrong: Arc<dyn FingerprintCheck> = Arc::new(Fingerprint([9; 32]));
    let refused = client(port, Some(ServerTrust::Fingerprint(wrong))).unwrap_err();
    assert!(refused.contains("not the expected 09:09:"), "{refused}");
    let foreign = agent.wait_for(|event| match event {
        ServerEvent::Foreign { why, .. } => Some(why.to_string()),
        _ => None,
    });
    assert_eq!(foreign, "the client does not accept this server's certificate");
    let plain = LoopbackAgent::with(ServerConfig::default());
    let refused = client(plain.address.port(), right()).unwrap_err();
    assert!(refused.contains("start it with: linerate serve --tls"), "{refused}");
}

/// The reason that the server gives for a connection that it does not serve.
fn why_refused(agent: &LoopbackAgent, client: impl FnOnce()) -> String {
    client();
    agent.wait_for(|event| match event {
        ServerEvent::Foreign { why, .. } => Some(why.to_string()),
        _ => None,
    })
}

#[test]
fn within_tls_there_are_only_clients_and_coordinators_of_ours_and_browsers() {
    let (agent, identity) = encrypted_agent();
    let says = |protocol: &'static [u8], bytes: Vec<u8>| {
        why_refused(&agent, || {
            let mut client = tls_client((&agent, &identity), protocol, &TLS13);
            let _ = client.write_all(&bytes);
            let _ = client.read(&mut [0; 100]);
        })
    };
    assert!(says(TLS_PROTOCOL, b"GET / HTTP/1.1\r\n\r\n".to_vec()).contains("within TLS only"));
    assert!(says(TLS_PROTOCOL, vec![b'a'; 37]).contains("within TLS only"));
    let mut data = Preface::CONTROL.encode();
    data[9] = 2;
    assert!(says(TLS_PROTOCOL, data.to_vec()).contains("data or probe connection within TLS"));
    assert!(says(b"h2", b"anything".to_vec()).starts_with("TLS failed"));
    // A browser's client is none of ours, and other tools have no TLS.
    assert!(says(HTTP_PROTOCOL, Preface::CONTROL.encode().to_vec()).contains("within TLS only"));
    assert!(says(b"", vec![b'a'; 37]).contains("within TLS only"));
    // TLS within TLS is no protocol of ours either.
    assert!(says(TLS_PROTOCOL, vec![22, 3, 1, 0, 9, 1, 0, 0, 5]).contains("within TLS only"));
    let old = why_refused(&agent, || {
        drop(tls_client((&agent, &identity), TLS_PROTOCOL, &TLS12).write_all(b"anything"))
    });
    assert!(old.contains("not version 1.3"), "{old}");
    assert_eq!(unknown_client(&agent).outcome, Some(Outcome::Completed));
}

#[test]
fn a_handshake_that_is_none_or_never_ends_costs_the_server_little() {
    let (agent, _) = encrypted_agent();
    let says = |bytes: &[u8]| {
        why_refused(&agent, || {
            let mut client = TcpStream::connect(agent.address).unwrap();
            client.set_read_timeout(Some(TIMEOUT)).unwrap();
            let _ = client.write_all(bytes);
            let _ = client.read(&mut [0; 100]);
        })
    };
    assert!(says(&[22, 3, 1, 0, 4, 9, 9, 9, 9]).contains("TLS"));
    // A greeting of 60,000 bytes, in records of 16,000: allowed by TLS, and never finished.
    let mut long = Vec::new();
    for part in 0..3 {
        long.extend([22, 3, 1, 0x3e, 0x80]);
        let begin: &[u8] = if part == 0 { &[1, 0, 0xea, 0x60] } else { &[] };
        long.extend(begin);
        long.extend(vec![3; 16_000 - begin.len()]);
    }
    let why = says(&long);
    assert_eq!(why, "its TLS handshake is too long");
    assert_eq!(unknown_client(&agent).outcome, Some(Outcome::Completed));
}

#[test]
fn a_server_that_wants_it_refuses_clients_without_tls_and_says_what_to_do() {
    let identity = CountedIdentity::new();
    let config = ServerConfig {
        identity: Some(Arc::clone(&identity) as _),
        tls_required: TlsRequirement::Everybody,
        ..ServerConfig::default()
    };
    let server = LoopbackAgent::with(config);
    let port = server.address.port();
    let refused = client(port, None).unwrap_err();
    assert!(refused.contains("over TLS only; give --tls"), "{refused}");
    let trust = ServerTrust::Fingerprint(Arc::new(identity.fingerprint()));
    assert_eq!(client(port, Some(trust)).unwrap().outcome, Some(Outcome::Completed));
}

/// Sends a request within TLS, and reads the response with a body of this length.
fn exchange(client: &mut TlsClient, request: &[u8], length: usize) -> (String, Vec<u8>) {
    client.write_all(request).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).unwrap();
    (String::from_utf8(head).unwrap(), body)
}

#[test]
fn bodies_of_a_browser_are_measured_within_tls() {
    const BODY: usize = 3 << 20;
    let (identity, (log, runs)) = (CountedIdentity::new(), channel());
    let config = ServerConfig {
        identity: Some(Arc::clone(&identity) as _),
        foreign: vec![&linerate_compat::http::HTTP],
        log_store: Some(Arc::new(ForwardingSink(log))),
        ..ServerConfig::default()
    };
    let agent = LoopbackAgent::with(config);
    // Programs need not name the protocol.
    for protocol in [HTTP_PROTOCOL, b""] {
        let mut client = tls_client((&agent, &identity), protocol, &TLS13);
        let get = b"GET /backend/garbage.php?ckSize=3 HTTP/1.1\r\nHost: h\r\n\r\n";
        let (head, body) = exchange(&mut client, get, BODY);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(body.iter().any(|byte| *byte != body[0]), "a body that could be compressed");
        let post = format!("POST /backend/empty.php HTTP/1.1\r\nHost: h\r\nContent-Length: {BODY}\r\n\r\n");
        let (head, _) = exchange(&mut client, &[post.as_bytes(), &body].concat(), 0);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        // The connection goes on.
        let (head, _) = exchange(&mut client, b"GET /backend/empty.php HTTP/1.1\r\nHost: h\r\n\r\n", 0);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let run = next_run(&runs);
        assert_eq!(run.outcome, Some(Outcome::Completed));
        assert!(run.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Encrypted), "{:?}", run.caveats);
        // In either direction what this server has counted at the receiving end: payload, to the byte.
        let counted: Vec<u64> =
            run.flows.iter().map(|flow| flow.tally(Side::Receiver).unwrap().total_bytes.get()).collect();
        assert_eq!(counted, [BODY as u64; 2]);
    }
}
