//! Where the broker is and how to log in.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::rustls::RootCertStore;
use async_nats::rustls::pki_types::CertificateDer;
use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::{ConnectOptions, ServerAddr};
use linerate_model::ForeignText;
use linerate_sock::SockError;
use nkeys::{KeyPair, KeyPairType};

use crate::login;
use crate::subjects::is_pattern;

/// Where the broker is, how to log in, and what to subscribe to.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// URLs as `nats://host:4222` or `tls://host:4222`; several for a cluster. The port is 4222 if there is none.
    pub servers: Vec<String>,
    /// How to log in.
    pub login: BrokerLogin,
    /// PEM file with the certificates that TLS accepts as roots; absent: those of the system. A file also requires TLS.
    pub roots: Option<PathBuf>,
    /// Whether TLS is required for `nats://` too. Otherwise it is used if the broker wants it.
    pub tls: bool,
    /// Name of this client in the broker's monitoring.
    pub name: String,
    /// Subjects to subscribe to, with the wildcards of NATS.
    pub subscribe: Vec<String>,
    /// Largest message that is sent, in bytes. The broker may permit less.
    pub max_message_bytes: usize,
    /// Whether this is a coordinator: all agents wait for it, so it connects again within a second or so.
    pub is_centre: bool,
}

impl BrokerConfig {
    /// The default of [`Self::max_message_bytes`].
    pub const MAX_MESSAGE_BYTES: usize = 512 << 10;

    /// A client of `servers` without login, TLS and subscriptions.
    pub fn new<S: Into<String>>(servers: impl IntoIterator<Item = S>, name: &str) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            login: BrokerLogin::None,
            roots: None,
            tls: false,
            name: name.to_owned(),
            subscribe: Vec::new(),
            max_message_bytes: Self::MAX_MESSAGE_BYTES,
            is_centre: false,
        }
    }
}

/// How a client logs in at the broker.
#[derive(Clone, Default)]
pub enum BrokerLogin {
    /// Without a login.
    #[default]
    None,
    /// The seed of an NKEY of a user (`SU…`). The broker knows the public key and never sees the seed.
    Key(String),
    /// A file with a JWT and a seed, as `nsc` writes it (`.creds`). It is read again for every connection, so it can be
    /// replaced.
    CredentialsFile(PathBuf),
}

/// Without the seed.
impl fmt::Debug for BrokerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Key(_) => f.write_str("Key"),
            Self::CredentialsFile(path) => f.debug_tuple("CredentialsFile").field(path).finish(),
        }
    }
}

/// Why a configuration can never work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// There is no server.
    #[error("no broker is named; give at least one URL such as nats://broker.example.net:4222")]
    NoServer,
    /// A URL cannot be used.
    #[error("'{url}' cannot be the URL of a broker: {why}; write it as nats://host:4222 or tls://host:4222")]
    Server {
        /// The URL.
        url: ForeignText,
        /// What is wrong with it.
        why: ForeignText,
    },
    /// The key is not the seed of a user.
    #[error(
        "the key for the broker is not the seed of a user's NKEY: it has 58 characters and begins with SU; \
         `nk -gen user` makes one"
    )]
    Seed,
    /// The file with credentials cannot be used.
    #[error("the credentials for the broker in {} cannot be used: {why}; write the file with `nsc generate creds`", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: ForeignText,
    },
    /// The file with root certificates cannot be used.
    #[error("the root certificates in {} cannot be used: {why}; name a PEM file with the CA of the broker", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: ForeignText,
    },
    /// A subject cannot be subscribed to.
    #[error(
        "'{0}' is not a subject of NATS; it has parts without spaces between dots, and * or > as wildcards"
    )]
    Subject(ForeignText),
    /// The thread of the connection cannot be started.
    #[error(transparent)]
    Thread(#[from] SockError),
}

/// Time for an address of the broker to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A broker that is silent for three of these is lost. 10,000 agents cause 2000 small packets a second.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Messages within async-nats, besides those in the outbox.
const CLIENT_CAPACITY: usize = 16;
/// Messages of one read from the network, until they are in the inbox.
const SUBSCRIPTION_CAPACITY: usize = 4096;

/// A checked configuration.
#[derive(Debug)]
pub(crate) struct DialOptions {
    pub(crate) servers: Vec<ServerAddr>,
    login: BrokerLogin,
    /// What the broker must know, if the login is a key.
    pub(crate) public_key: Option<String>,
    roots: Option<PathBuf>,
    tls: bool,
    name: String,
    pub(crate) subscribe: Vec<String>,
}

impl DialOptions {
    pub(crate) fn check(config: BrokerConfig) -> Result<Self, BrokerError> {
        let servers: Vec<_> = config.servers.iter().map(|url| server(url)).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(BrokerError::NoServer);
        }
        let (login, public_key) = match config.login {
            BrokerLogin::Key(seed) => {
                let seed = seed.trim().to_owned();
                let key = KeyPair::from_seed(&seed).map_err(|_| BrokerError::Seed)?;
                if !matches!(key.key_pair_type(), KeyPairType::User) {
                    return Err(BrokerError::Seed);
                }
                (BrokerLogin::Key(seed), Some(key.public_key()))
            }
            login => (login, None),
        };
        if let Some(path) = &config.roots {
            check_roots(path)?;
        }
        if let Some(wrong) = config.subscribe.iter().find(|subject| !is_pattern(subject)) {
            return Err(BrokerError::Subject(ForeignText::new(wrong)));
        }
        let options = Self {
            servers,
            login,
            public_key,
            tls: config.tls || config.roots.is_some(),
            roots: config.roots,
            name: config.name,
            subscribe: config.subscribe,
        };
        options.with_login()?;
        Ok(options)
    }

    /// Options of the next connection; reads the files again.
    pub(crate) fn connect_options(&self) -> Result<ConnectOptions, BrokerError> {
        let options = self
            .with_login()?
            .name(&self.name)
            .require_tls(self.tls)
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
            .client_capacity(CLIENT_CAPACITY)
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            .ignore_discovered_servers();
        Ok(match &self.roots {
            Some(path) => options.add_root_certificates(path.clone()),
            None => options,
        })
    }

    fn with_login(&self) -> Result<ConnectOptions, BrokerError> {
        match &self.login {
            BrokerLogin::None => Ok(ConnectOptions::new()),
            BrokerLogin::Key(seed) => {
                KeyPair::from_seed(seed).map(login::with_key).map_err(|_| BrokerError::Seed)
            }
            BrokerLogin::CredentialsFile(path) => fs::read_to_string(path)
                .map_err(|error| text_of(&error))
                .and_then(|text| login::with_credentials(&text).map_err(ForeignText::from))
                .map_err(|why| BrokerError::Credentials { path: path.clone(), why }),
        }
    }
}

fn server(url: &str) -> Result<ServerAddr, BrokerError> {
    let wrong = |why: ForeignText| BrokerError::Server { url: ForeignText::new(url), why };
    let server: ServerAddr = url.parse().map_err(|error| wrong(text_of(&error)))?;
    let is_bare = matches!(server.clone().into_inner().path(), "" | "/");
    if server.username().is_some() || server.password().is_some() {
        // It must not be printed.
        let url = ForeignText::new(server.host());
        return Err(BrokerError::Server {
            url,
            why: "it has a password, and brokers of linerate know keys".into(),
        });
    }
    match server.scheme() {
        "nats" | "tls" if server.host().is_empty() => Err(wrong("it has no host".into())),
        "nats" | "tls" if server.port() == 0 => Err(wrong("its port is 0".into())),
        "nats" | "tls" if !is_bare => Err(wrong("it has more than a host and a port".into())),
        "nats" | "tls" => Ok(server),
        other => Err(wrong(format!("'{other}' is neither nats nor tls").into())),
    }
}

fn check_roots(path: &Path) -> Result<(), BrokerError> {
    let wrong = |why: ForeignText| BrokerError::Roots { path: path.to_owned(), why };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|error| wrong(text_of(&error)))?;
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate).map_err(|error| wrong(text_of(&error)))?;
    }
    if store.is_empty() { Err(wrong("it has no certificate".into())) } else { Ok(()) }
}

fn text_of(error: &dyn fmt::Display) -> ForeignText {
    ForeignText::new(&error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(change: impl FnOnce(&mut BrokerConfig)) -> String {
        let mut config = BrokerConfig::new(["nats://127.0.0.1"], "test");
        change(&mut config);
        DialOptions::check(config).unwrap_err().to_string()
    }

    fn urls(urls: &[&str]) -> String {
        refused(|config| config.servers = urls.iter().map(|url| (*url).to_owned()).collect())
    }

    #[test]
    fn what_can_never_work_is_refused_with_culprit_and_remedy() {
        assert!(urls(&[]).contains("give at least one URL"));
        for wrong in
            ["", "nats://", "http://host", "ws://host", "nats://host:99999", "nats://host:0", "nats://host/x"]
        {
            let error = urls(&["nats://good", wrong]);
            assert!(error.starts_with(&format!("'{wrong}' cannot be the URL of a broker")), "{error}");
            assert!(error.ends_with("write it as nats://host:4222 or tls://host:4222"), "{error}");
        }
        let login = |login| refused(|config| config.login = login);
        let missing = login(BrokerLogin::CredentialsFile("/nowhere/x.creds".into()));
        assert!(missing.contains("/nowhere/x.creds") && missing.contains("nsc"), "{missing}");
        let subject = refused(|config| config.subscribe = vec!["a b\x1b".to_owned()]);
        assert!(subject.starts_with("'a b?' is not a subject"), "{subject}");
        let roots = |path: &str| refused(|config| config.roots = Some(path.into()));
        assert!(roots("/nowhere/ca.pem").contains("/nowhere/ca.pem"));
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(roots(here).contains("it has no certificate"), "{}", roots(here));
    }

    #[test]
    fn secrets_are_never_printed() {
        let with_password = urls(&["nats://me:hunter2@host:4222"]);
        assert!(with_password.contains("'host'") && !with_password.contains("hunter2"), "{with_password}");
        let seed = KeyPair::new_user().seed().unwrap();
        assert!(!format!("{:?}", BrokerLogin::Key(seed.clone())).contains(&seed));
        let other = if seed.as_bytes()[20] == b'A' { "B" } else { "A" };
        let broken = format!("{}{other}{}", &seed[..20], &seed[21..]);
        for wrong in [broken, KeyPair::new_account().seed().unwrap(), KeyPair::new_user().public_key()] {
            let error = refused(|config| config.login = BrokerLogin::Key(wrong.clone()));
            assert!(error.contains("begins with SU") && !error.contains(&wrong), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_of_a_key_or_url_is_a_crash(seed in "(SU)?[A-Z2-7]{0,60}", any in ".*", url in "(nats|tls)?(://)?.*") {
            for text in [seed, any] {
                let mut config = BrokerConfig::new(["nats://127.0.0.1"], "test");
                config.login = BrokerLogin::Key(text);
                prop_assert!(matches!(DialOptions::check(config), Err(BrokerError::Seed)));
            }
            let _ = DialOptions::check(BrokerConfig::new([url], "test"));
        }
    }

    #[test]
    fn a_key_may_come_from_a_file_with_a_line_end_and_a_url_without_its_scheme() {
        let key = KeyPair::new_user();
        let mut config = BrokerConfig::new(["broker.example.net", "tls://[::1]:4223"], "test");
        config.login = BrokerLogin::Key(format!("{}\n", key.seed().unwrap()));
        let options = DialOptions::check(config).unwrap();
        assert_eq!(options.public_key, Some(key.public_key()));
        assert_eq!(options.servers[0].as_url_str(), "nats://broker.example.net");
        assert!(options.servers[1].tls_required());
    }
}
