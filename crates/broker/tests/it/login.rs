//! Who may connect.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use linerate_broker::{Broker, BrokerEvent, BrokerLogin, users_file};
use nkeys::KeyPair;

use crate::events::{
    config, connected, connected_with, send_until_received, wait_connected, wait_disconnected, wait_for,
    wait_refused,
};
use crate::nats_server::NatsServer;

const INCLUDE: &str = "include \"users.conf\"";

#[test]
#[ignore = "needs nats-server"]
fn a_key_that_the_broker_does_not_know_is_refused_until_it_knows_it() {
    let (centre, agent) = (KeyPair::new_user(), KeyPair::new_user());
    let without = users_file("f", &centre.public_key(), &[]).unwrap();
    let server =
        NatsServer::start(INCLUDE, |folder| std::fs::write(folder.join("users.conf"), &without).unwrap());
    let mut config = config(&server.url(), &[]);
    config.login = BrokerLogin::Key(agent.seed().unwrap());
    let client = Broker::connect(config).unwrap();
    let why = wait_refused(&client);
    assert!(why.contains(&agent.public_key()) && why.contains("add it to the users"), "{why}");
    assert!(!client.is_connected());
    server
        .write("users.conf", &users_file("f", &centre.public_key(), &[("a", &agent.public_key())]).unwrap());
    server.reload();
    wait_connected(&client);
    // And the other way round, while it is connected.
    server.write("users.conf", &without);
    server.reload();
    wait_disconnected(&client);
    wait_refused(&client);
}

#[test]
#[ignore = "needs nats-server"]
fn a_client_without_a_key_is_refused() {
    let centre = KeyPair::new_user();
    let users = users_file("f", &centre.public_key(), &[]).unwrap();
    let server =
        NatsServer::start(INCLUDE, |folder| std::fs::write(folder.join("users.conf"), &users).unwrap());
    let client = Broker::connect(config(&server.url(), &[])).unwrap();
    let why = wait_refused(&client);
    assert!(why.contains("give this client a key"), "{why}");
}

#[test]
#[ignore = "needs nats-server"]
fn of_several_servers_the_one_that_answers_is_used() {
    let key = KeyPair::new_user();
    let users = users_file("f", &key.public_key(), &[]).unwrap();
    let server =
        NatsServer::start(INCLUDE, |folder| std::fs::write(folder.join("users.conf"), &users).unwrap());
    let mut dead = NatsServer::open();
    dead.kill();
    let mut config = config(&dead.url(), &[]);
    config.servers.push(server.url());
    config.login = BrokerLogin::Key(key.seed().unwrap());
    let client = Broker::connect(config).unwrap();
    let connected = wait_for(&client, |event| matches!(event, BrokerEvent::Connected { .. }));
    assert_eq!(connected, BrokerEvent::Connected { server: server.url().into() });
    drop(connected_with(&server.url(), &key.seed().unwrap(), &[]));
}

/// A JWT as `nsc` makes it.
fn jwt(issuer: &KeyPair, subject: &KeyPair, nats: &str) -> String {
    let claims = format!(
        r#"{{"jti":"X","iat":1700000000,"iss":"{}","name":"test","sub":"{}","nats":{nats}}}"#,
        issuer.public_key(),
        subject.public_key(),
    );
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let text = format!("{}.{}", encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#), encode(claims.as_bytes()));
    let signature = encode(&issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

fn credentials(account: &KeyPair, user: &KeyPair) -> String {
    let limits = r#"{"pub":{},"sub":{},"subs":-1,"data":-1,"payload":-1,"type":"user","version":2}"#;
    format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        jwt(account, user, limits),
        user.seed().unwrap()
    )
}

#[test]
#[ignore = "needs nats-server"]
fn credentials_with_a_jwt_are_a_login_and_are_read_again() {
    let (operator, account, user) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let of_operator = jwt(&operator, &operator, r#"{"type":"operator","version":2}"#);
    let limits = r#"{"limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,
        "leaf":-1},"default_permissions":{"pub":{},"sub":{}},"type":"account","version":2}"#;
    let of_account = jwt(&operator, &account, limits);
    let server = NatsServer::start(
        &format!(
            "operator: \"{of_operator}\"\nresolver: MEMORY\nresolver_preload: {{ {}: \"{of_account}\" }}",
            account.public_key()
        ),
        |_| (),
    );
    let file = server.folder.path().join("agent.creds");
    let mut config = config(&server.url(), &["a"]);
    config.login = BrokerLogin::CredentialsFile(file.clone());
    server.write("agent.creds", &credentials(&account, &user));
    let client = connected(config.clone());
    send_until_received(&client, "a", b"hello", &client);
    // Of an account that the broker does not know, until the file is replaced.
    server.write("agent.creds", &credentials(&KeyPair::new_account(), &user));
    let client = Broker::connect(config).unwrap();
    wait_refused(&client);
    server.write("agent.creds", &credentials(&account, &user));
    wait_connected(&client);
}
