//! A certificate for the tests of encrypted connections. Those in `src` use this file too.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;

/// A new certificate for `127.0.0.1`, and a server that has it and speaks `protocol`.
pub(crate) fn self_signed(protocol: &[u8]) -> (rustls::ServerConfig, CertificateDer<'static>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().der().clone();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], private)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    (config, certificate)
}
