//! What the agent of a host needs: who it is, whom it believes, and where the broker is.

use std::io;
use std::path::{Path, PathBuf};

use linerate_broker::{BrokerConfig, BrokerLogin};
use linerate_proto::fleet::{FleetKey, FleetKeyError, PublicFleetKey};
use linerate_runner::{PrivateFileError, read_private, whole_private_file};
use serde::{Deserialize, Serialize};

/// Largest file of an enrolment or a key, bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Where the broker is, and how to recognise it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct BrokerOptions {
    /// The broker (nats-server) as nats://HOST[:PORT] or tls://HOST[:PORT]; several times for a cluster
    #[cfg_attr(feature = "clap", arg(long = "broker", value_name = "URL"))]
    pub brokers: Vec<String>,
    /// PEM file with the certificates that the broker's certificate is checked with, instead of those of the system
    #[cfg_attr(feature = "clap", arg(long = "broker-ca", value_name = "FILE", requires = "brokers"))]
    pub roots: Option<PathBuf>,
    /// File with a JWT for the broker (.creds), if it does not know the key itself
    #[cfg_attr(
        feature = "clap",
        arg(long = "broker-credentials", value_name = "FILE", requires = "brokers")
    )]
    pub credentials: Option<PathBuf>,
}

/// The enrolment of an agent. Its file is a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enrollment {
    /// The fleet.
    pub fleet: String,
    /// The host.
    pub name: String,
    /// The secret key of the agent.
    pub key: String,
    /// The public key of the coordinators.
    pub coordinators: String,
    /// URLs of the brokers.
    pub brokers: Vec<String>,
    /// PEM file with the certificates that the brokers' certificates are checked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_ca: Option<PathBuf>,
    /// File with a JWT for the broker (`.creds`), instead of logging in with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_credentials: Option<PathBuf>,
}

/// Without the secret.
impl std::fmt::Debug for Enrollment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enrollment")
            .field("fleet", &self.fleet)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Why an enrolment or a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnrollmentError {
    /// The file cannot be read, or is no such file.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The file cannot be written.
    #[error("{}: {source}; nothing was enrolled", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is there already.
    #[error(
        "{} exists already, and an agent may need the key in it; name another file, or remove that one",
        .0.display()
    )]
    Exists(PathBuf),
    /// The file with the secret key of the coordinators is missing.
    #[error(
        "there is no {path} with the secret key of the coordinators; copy it from where agents were enrolled, or, for \
         the first agent of a fleet, let `linerate agent enroll HOST FILE --fleet-key-file {path}` make it",
        path = .0.display()
    )]
    NoKey(PathBuf),
    /// The calendar has a change, but the file with the users of the broker does not.
    #[error(
        "{}: {source}; the calendar has the change, but the broker will not know it; remove the cause, and write the \
         file with --users-file of `linerate agent revoke HOST` or `linerate agent enroll HOST --key KEY`, which may \
         be repeated",
        path.display()
    )]
    UsersNotWritten {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others may read the file, or it cannot be read.
    #[error(transparent)]
    Private(#[from] PrivateFileError),
    /// A key is wrong.
    #[error(transparent)]
    Key(#[from] FleetKeyError),
}

impl Enrollment {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, is not private, or has mistakes.
    pub fn read(path: &Path) -> Result<Self, EnrollmentError> {
        let unreadable = |why: String| EnrollmentError::Unreadable { path: path.to_owned(), why };
        let content = read_private(path, MAX_FILE_BYTES)?.ok_or_else(|| {
            unreadable("there is no such file; `linerate agent enroll HOST FILE` writes it".to_owned())
        })?;
        let enrollment: Self =
            serde_json::from_slice(&content).map_err(|error| unreadable(error.to_string()))?;
        FleetKey::read(&enrollment.key).map_err(|error| unreadable(format!("key: {error}")))?;
        PublicFleetKey::read(&enrollment.coordinators)
            .map_err(|error| unreadable(format!("coordinators: {error}")))?;
        Ok(enrollment)
    }

    /// Writes the file, for its owner only.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), EnrollmentError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        let unwritable = |source| EnrollmentError::Unwritable { path: path.to_owned(), source };
        whole_private_file(path, text.as_bytes()).map_err(unwritable)
    }

    /// How the agent reaches the broker.
    #[must_use]
    pub fn broker(&self) -> BrokerConfig {
        let login = match &self.broker_credentials {
            Some(file) => BrokerLogin::CredentialsFile(file.clone()),
            None => BrokerLogin::Key(self.key.clone()),
        };
        let mut config = BrokerConfig::new(self.brokers.clone(), &format!("linerate agent {}", self.name));
        config.login = login;
        config.roots = self.broker_ca.clone();
        config.subscribe = vec![linerate_broker::agent_subject(&self.fleet, &self.name)];
        config
    }
}

/// The secret key of the coordinators in a file.
///
/// # Errors
/// It is missing, cannot be read, is not private, or is no key.
pub fn coordinators_key(path: &Path) -> Result<FleetKey, EnrollmentError> {
    let unreadable = |why: String| EnrollmentError::Unreadable { path: path.to_owned(), why };
    let content =
        read_private(path, MAX_FILE_BYTES)?.ok_or_else(|| EnrollmentError::NoKey(path.to_owned()))?;
    FleetKey::read(&String::from_utf8_lossy(&content)).map_err(|error| unreadable(error.to_string()))
}

/// The secret key of the coordinators in a file, which is made if it is missing; whether it was.
///
/// # Errors
/// As for [`coordinators_key`], or it cannot be written.
pub(crate) fn coordinators_key_or_new(path: &Path) -> Result<(FleetKey, bool), EnrollmentError> {
    match coordinators_key(path) {
        Err(EnrollmentError::NoKey(_)) => {}
        read => return Ok((read?, false)),
    }
    let key = FleetKey::new()?;
    let unwritable = |source| EnrollmentError::Unwritable { path: path.to_owned(), source };
    whole_private_file(path, format!("{}\n", key.secret()).as_bytes()).map_err(unwritable)?;
    Ok((key, true))
}
