//! Encrypted connections.

use std::fs;
use std::path::Path;

use linerate_broker::{Broker, BrokerEvent};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::events::{
    config, connected, next_message, send_until_received, wait_connected, wait_for, wait_refused,
};
use crate::nats_server::NatsServer;

const TLS: &str = "tls { cert_file: \"cert.pem\", key_file: \"key.pem\" }";

/// A CA in `ca.pem`, and a certificate of it for 127.0.0.1.
fn write_certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    fs::write(folder.join("ca.pem"), ca.pem()).unwrap();
    fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

fn tls_server() -> NatsServer {
    let folder = tempfile::tempdir().unwrap();
    write_certificates(folder.path());
    let absolute = TLS
        .replace("cert.pem", &folder.path().join("cert.pem").to_string_lossy())
        .replace("key.pem", &folder.path().join("key.pem").to_string_lossy());
    NatsServer::start(&absolute, |own| {
        for name in ["ca.pem", "cert.pem", "key.pem"] {
            fs::copy(folder.path().join(name), own.join(name)).unwrap();
        }
    })
}

#[test]
#[ignore = "needs nats-server"]
fn a_broker_with_a_certificate_of_the_named_ca_is_trusted_and_no_other() {
    let server = tls_server();
    for url in [server.url(), server.url().replace("nats:", "tls:")] {
        let mut trusting = config(&url, &["a"]);
        trusting.roots = Some(server.folder.path().join("ca.pem"));
        let client = connected(trusting);
        send_until_received(&client, "a", &vec![9; 300_000], &client);
    }
    let others = tempfile::tempdir().unwrap();
    write_certificates(others.path());
    for roots in [None, Some(others.path().join("ca.pem"))] {
        let mut distrusting = config(&server.url(), &["a"]);
        distrusting.roots = roots;
        let client = Broker::connect(distrusting).unwrap();
        let why = wait_refused(&client);
        assert!(why.contains("TLS failed") && why.contains("certificate"), "{why}");
    }
}

#[test]
#[ignore = "needs nats-server"]
fn a_client_that_requires_tls_sends_nothing_without_it() {
    let server = NatsServer::open();
    let watcher = connected(config(&server.url(), &[">"]));
    let mut strict = config(&server.url(), &["a"]);
    strict.tls = true;
    let client = Broker::connect(strict).unwrap();
    let first = wait_for(&client, |_| true);
    assert!(matches!(first, BrokerEvent::Refused { .. } | BrokerEvent::Disconnected { .. }), "{first:?}");
    assert!(client.send("a", b"secret").is_err());
    send_until_received(&watcher, "b", b"only this", &watcher);
}

#[test]
#[ignore = "needs nats-server"]
fn a_certificate_that_is_replaced_is_accepted_without_a_restart_of_the_client() {
    let mut server = tls_server();
    let mut trusting = config(&server.url(), &["a"]);
    trusting.roots = Some(server.folder.path().join("ca.pem"));
    let client = connected(trusting);
    write_certificates(server.folder.path());
    let absolute = TLS
        .replace("cert.pem", &server.folder.path().join("cert.pem").to_string_lossy())
        .replace("key.pem", &server.folder.path().join("key.pem").to_string_lossy());
    server.configure(&absolute);
    server.restart();
    wait_connected(&client);
    client.send("a", b"hello").unwrap();
    assert_eq!(next_message(&client).1, b"hello");
}
