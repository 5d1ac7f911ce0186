//! What one end of an encrypted connection sends is what the other one reads, however the bytes arrive.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

#[path = "../../tests/it/self_signed.rs"]
mod self_signed;

use self_signed::self_signed;

use super::*;
use crate::tls::{FingerprintCheck, ServerTrust, TLS_PROTOCOL, UnknownServer, encrypt, fingerprint_of};
use linerate_model::Fingerprint;
use linerate_sock::thread;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn identity() -> (Arc<rustls::ServerConfig>, Fingerprint) {
    let (config, certificate) = self_signed(TLS_PROTOCOL);
    (Arc::new(config), fingerprint_of(&certificate))
}

/// Waits for `stream` at most a moment, and reads.
pub(crate) fn read(stream: &mut ControlStream, into: &mut [u8]) -> Arrival {
    if !stream.has_decrypted()
        && let Some(interest) = stream.interest()
    {
        poll_few(&[interest], clock::now() + Duration::from_millis(100)).unwrap();
    }
    stream.flush();
    stream.read(into).unwrap()
}

/// Both ends after the handshake; the server has seen it in pieces of `piece` bytes.
pub(crate) fn encrypted(piece: usize) -> (ControlStream, ControlStream) {
    let (config, fingerprint) = identity();
    let (client, mut server) = pair();
    let stop = AtomicBool::new(false);
    let trust = ServerTrust::Fingerprint(Arc::new(fingerprint));
    std::thread::scope(|scope| {
        let client =
            thread::spawn_scoped(scope, "client", || encrypt(client, "here", &trust, &stop)).unwrap();
        let mut first = vec![0; piece];
        server.read_exact(&mut first).unwrap();
        let mut server = ControlStream::plain(server);
        server.make_ready().unwrap();
        server.encrypt(config, &first).unwrap();
        while server.handshake_bytes().is_some() {
            assert_eq!(read(&mut server, &mut [0; 100]), Arrival::Nothing);
        }
        let client = client.join().unwrap().unwrap();
        assert_eq!(server.protocol(), Some(TLS_PROTOCOL));
        (client, server)
    })
}

#[test]
fn both_ends_of_one_connection_have_one_binding_and_another_connection_has_another() {
    let ((client, server), (other, _)) = (encrypted(1), encrypted(200));
    let binding = client.channel_binding().unwrap().unwrap();
    assert_eq!(server.channel_binding().unwrap(), Some(binding));
    assert_ne!(other.channel_binding().unwrap(), Some(binding));
    assert_eq!(ControlStream::plain(pair().0).channel_binding().unwrap(), None);
}

#[test]
fn everything_arrives_in_order_also_if_the_reader_is_slow() {
    let (mut from, mut to) = encrypted(5);
    // More than all buffers on the way hold.
    let sent: Vec<u8> = (0..24_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for part in sent.chunks(1_000_003) {
        from.queue(part);
        from.flush();
    }
    assert!(from.unsent() > 0, "the peer has not read yet");
    let (mut received, mut buffer) = (Vec::new(), [0; 7_001]);
    while received.len() < sent.len() {
        from.flush();
        match read(&mut to, &mut buffer) {
            Arrival::Bytes(count) => received.extend_from_slice(&buffer[..count]),
            Arrival::Nothing => {}
            Arrival::Closed => break,
        }
    }
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    assert_eq!(from.unsent(), 0);
}

#[test]
fn decrypted_bytes_are_known_although_no_poll_shows_them() {
    let (mut from, mut to) = encrypted(5);
    from.queue(b"hello");
    from.flush();
    let mut one = [0];
    while read(&mut to, &mut one) != Arrival::Bytes(1) {}
    assert!(to.has_decrypted());
    let mut rest = [0; 9];
    assert_eq!(to.read(&mut rest).unwrap(), Arrival::Bytes(4));
    assert_eq!((&rest[..4], to.has_decrypted()), (&b"ello"[..], false));
    assert_eq!(to.read(&mut rest).unwrap(), Arrival::Nothing);
}

#[test]
fn the_end_is_an_end_with_a_farewell_and_without() {
    for farewell in [true, false] {
        let (mut from, mut to) = encrypted(5);
        from.queue(b"bye");
        from.flush();
        if farewell {
            from.flush_at_end();
        }
        drop(from);
        let mut bytes = [0; 9];
        while read(&mut to, &mut bytes) == Arrival::Nothing {}
        assert_eq!(&bytes[..3], b"bye");
        while read(&mut to, &mut bytes) == Arrival::Nothing {}
        assert_eq!(to.read(&mut bytes).unwrap(), Arrival::Closed);
        assert!(to.interest().is_none());
    }
}

#[test]
fn a_changed_byte_ends_the_connection_with_an_error() {
    let (from, mut to) = encrypted(5);
    let mut tcp = from.into_tcp();
    tcp.set_nonblocking(false).unwrap();
    // A record of application data that nobody with the keys has written.
    tcp.write_all(&[23, 3, 3, 0, 17, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]).unwrap();
    let deadline = clock::now() + Duration::from_secs(10);
    let error = loop {
        assert!(!deadline.has_passed());
        if let Err(error) = to.read(&mut [0; 100]) {
            break error;
        }
    };
    assert!(error.to_string().starts_with("TLS failed: "), "{error}");
    assert_eq!(to.read(&mut [0; 100]).unwrap(), Arrival::Closed);
}

#[test]
fn a_server_that_says_nothing_a_stop_and_a_server_without_tls_end_the_handshake() {
    let (_, fingerprint) = identity();
    let trust = ServerTrust::Fingerprint(Arc::new(fingerprint));
    let (client, server) = pair();
    drop(server);
    let error = encrypt(client, "here", &trust, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("linerate serve --tls"), "{error}");
    let (client, server) = pair();
    let error = encrypt(client, "here", &trust, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.starts_with("no answer from the server for 5 s in the TLS handshake"), "{error}");
    drop(server);
    let (client, _server) = pair();
    let error = encrypt(client, "here", &trust, &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(error, ControlError::Stopped), "{error}");
}

#[test]
fn another_certificate_is_refused_before_anything_is_said() {
    let ((config, _), (_, other)) = (identity(), identity());
    let (client, server) = pair();
    let stop = AtomicBool::new(false);
    let trust = ServerTrust::Fingerprint(Arc::new(other));
    std::thread::scope(|scope| {
        let client =
            thread::spawn_scoped(scope, "client", || encrypt(client, "here", &trust, &stop)).unwrap();
        let mut server = ControlStream::plain(server);
        server.make_ready().unwrap();
        server.encrypt(config, &[]).unwrap();
        let refused = loop {
            if let Some(interest) = server.interest() {
                poll_few(&[interest], clock::now() + Duration::from_millis(100)).unwrap();
            }
            match server.read(&mut [0; 100]) {
                Ok(Arrival::Nothing) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(refused, "the client does not accept this server's certificate");
        let error = client.join().unwrap().unwrap_err().to_string();
        assert!(error.contains(&format!("not the expected {other}")), "{error}");
    });
}

/// Counts what it is told.
#[derive(Debug, Default)]
struct RememberedTimes(AtomicUsize);

impl FingerprintCheck for RememberedTimes {
    fn check(&self, _: Fingerprint) -> Result<(), UnknownServer> {
        Ok(())
    }

    fn remember(&self, _: Fingerprint) -> Result<(), UnknownServer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_server_is_remembered_only_after_its_proof_and_in_our_protocol() {
    for (protocol, times) in [(TLS_PROTOCOL, 1), (&b""[..], 0)] {
        let (mut config, _) = self_signed(protocol);
        config.alpn_protocols.retain(|protocol| !protocol.is_empty());
        let (client, server) = pair();
        let (remembered, stop) = (Arc::new(RememberedTimes::default()), AtomicBool::new(false));
        let trust = ServerTrust::Fingerprint(Arc::clone(&remembered) as _);
        std::thread::scope(|scope| {
            let client =
                thread::spawn_scoped(scope, "client", || encrypt(client, "here", &trust, &stop)).unwrap();
            let mut server = ControlStream::plain(server);
            server.make_ready().unwrap();
            server.encrypt(Arc::new(config), &[]).unwrap();
            while server.handshake_bytes().is_some() {
                read(&mut server, &mut [0; 100]);
            }
            assert_eq!(client.join().unwrap().is_ok(), times == 1);
        });
        assert_eq!(remembered.0.load(Ordering::Relaxed), times);
    }
}
