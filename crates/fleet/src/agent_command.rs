//! What users do with agents, as data.

use std::path::{Path, PathBuf};

use linerate_broker::users_file;
use linerate_control::Token;
use linerate_model::TlsOptions;
use linerate_model::calendar::{FleetAgent, FleetAnswer, UnixTime};
use linerate_proto::fleet::{FleetKey, PublicFleetKey};
use linerate_runner::{agent_trust, target, whole_file};

use crate::agent_service::{AgentServiceConfig, AgentServiceNotice};
use crate::enrollment::{
    BrokerOptions, Enrollment, EnrollmentError, coordinators_key, coordinators_key_or_new,
};
use crate::error::FleetError;
use crate::fleet_calendar::FleetCalendar;

/// What to do with agents.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
pub enum AgentCommand {
    /// Enrol the agent of a host, which then carries out its part of the calendar by itself
    Enroll(EnrollRequest),
    /// List the agents, what they have, and when they were heard
    List,
    /// Revoke the agent of a host; what it has in its calendar counts until that ends
    Revoke(RevokeRequest),
    /// Remove an agent that was revoked, once its calendar has ended; the coordinator then measures from its host itself
    Remove(RemoveRequest),
    /// Be the agent of this host: take the calendar from a broker, and carry it out with the server of this host
    Run(AgentRunOptions),
}

/// Which agent to enrol, and what to write for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct EnrollRequest {
    /// Name of the host in the fleet
    #[cfg_attr(feature = "clap", arg(value_name = "HOST"))]
    pub host: String,
    /// Write what the agent needs to this file, with a new secret key; bring it to the host
    #[cfg_attr(feature = "clap", arg(value_name = "FILE", required_unless_present = "key"))]
    pub file: Option<PathBuf>,
    /// Public key of an agent that has a key already, instead of a new one
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY", conflicts_with = "file"))]
    pub key: Option<String>,
    /// Take the place of an agent that the host has already
    #[cfg_attr(feature = "clap", arg(long))]
    pub replace: bool,
    /// Where the broker is.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub broker: BrokerOptions,
    /// Which users the broker knows.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub users: UsersFileOptions,
}

/// The keys of the fleet, and the file with the users of the broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct UsersFileOptions {
    /// File with the secret key of the coordinators; `enroll HOST FILE` makes it if it is missing
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub fleet_key_file: Option<PathBuf>,
    /// Write the users of nats-server to this file: include it in its configuration, and reload that
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", requires = "fleet_key_file"))]
    pub users_file: Option<PathBuf>,
}

/// Which agent to revoke.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RevokeRequest {
    /// Name of the host
    #[cfg_attr(feature = "clap", arg(value_name = "HOST"))]
    pub host: String,
    /// Which users the broker knows.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub users: UsersFileOptions,
}

/// Which agent to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RemoveRequest {
    /// Name of the host
    #[cfg_attr(feature = "clap", arg(value_name = "HOST"))]
    pub host: String,
}

/// How to be an agent.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AgentRunOptions {
    /// The file that `linerate agent enroll` wrote
    #[cfg_attr(feature = "clap", arg(value_name = "FILE"))]
    pub enrollment: PathBuf,
    /// File with the token of the servers (linerate serve --agent-token-file)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub agent_token_file: PathBuf,
    /// Server of this host, which makes the tests
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1"))]
    pub server: String,
    /// Folder for calendar and results [default: linerate/agent-HOST in the user's data directory]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER"))]
    pub dir: Option<PathBuf>,
    /// Whether and how the control connections are encrypted.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub tls: TlsOptions,
}

impl AgentCommand {
    /// Does it; with [`AgentCommand::Run`], lists the agents.
    ///
    /// # Errors
    /// Those of the requests, and of [`FleetCalendar`].
    pub fn execute(&self, calendar: &mut FleetCalendar, now: UnixTime) -> Result<FleetAnswer, FleetError> {
        match self {
            Self::Enroll(request) => request.execute(calendar, now),
            Self::Revoke(request) => request.execute(calendar, now),
            Self::Remove(request) => {
                calendar.remove_agent(&request.host, now)?;
                Ok(FleetAnswer::AgentRemoved(request.host.clone()))
            }
            Self::List | Self::Run(_) => Ok(FleetAnswer::Agents(calendar.agents()?, now)),
        }
    }
}

impl AgentRunOptions {
    /// What the service of the agent needs.
    ///
    /// # Errors
    /// The enrolment or an option is wrong.
    pub fn config(
        &self,
        token: Token,
        archive: Option<String>,
        notify: fn(&AgentServiceNotice),
    ) -> Result<AgentServiceConfig, FleetError> {
        let enrollment = Enrollment::read(&self.enrollment)?;
        let folder = match &self.dir {
            Some(folder) => folder.clone(),
            None => linerate_archive::data_file(&format!("agent-{}", enrollment.name))?,
        };
        Ok(AgentServiceConfig {
            folder,
            archive,
            server: target(&self.server, None)?,
            token,
            tls: agent_trust(&self.tls)?,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            enrollment,
            notify,
        })
    }
}

impl EnrollRequest {
    /// Enrols the agent, and writes the files.
    ///
    /// # Errors
    /// There is no such host, a file cannot be written, or the calendar cannot be used.
    pub fn execute(&self, calendar: &mut FleetCalendar, now: UnixTime) -> Result<FleetAnswer, FleetError> {
        let inventory = calendar.inventory()?;
        inventory.host(&self.host)?;
        let present = calendar.agents()?.into_iter().find(|agent| agent.name == self.host);
        let present = present.filter(|agent| agent.revoked.is_none() && !self.replace);
        // The same key once more replaces nothing.
        if present.is_some_and(|agent| self.key.as_ref() != Some(&agent.key)) {
            return Err(FleetError::HasAgent(self.host.clone()));
        }
        let mut written = Vec::new();
        let public = match (&self.key, &self.file) {
            (Some(key), _) => PublicFleetKey::read(key).map_err(EnrollmentError::from)?,
            (None, Some(file)) => {
                if file.symlink_metadata().is_ok() {
                    return Err(EnrollmentError::Exists(file.clone()).into());
                }
                let key_file = self.users.key_file()?;
                let (coordinators, made) = coordinators_key_or_new(key_file)?;
                if made {
                    written.push(key_file.display().to_string());
                }
                let key = FleetKey::new().map_err(EnrollmentError::from)?;
                let enrollment = Enrollment {
                    fleet: inventory.name.clone(),
                    name: self.host.clone(),
                    key: key.secret(),
                    coordinators: coordinators.public().to_string(),
                    brokers: self.broker.brokers.clone(),
                    broker_ca: self.broker.roots.clone(),
                    broker_credentials: self.broker.credentials.clone(),
                };
                // A broker that can never be reached is found now, and not at the host.
                drop(linerate_broker::Broker::connect(enrollment.broker())?);
                enrollment.write(file)?;
                written.push(file.display().to_string());
                key.public()
            }
            (None, None) => return Err(FleetError::NoAgent(self.host.clone())),
        };
        let key = self.users.key_of_users()?;
        if let Err(error) = calendar.enroll(&self.host, public.as_str(), now) {
            // An enrolment that the calendar does not know is of no use. One that is gone has been removed.
            self.file.as_ref().map(std::fs::remove_file);
            return Err(error);
        }
        let users = self.users.write(calendar, key)?;
        let reload_broker = users.is_some();
        written.extend(users);
        Ok(FleetAnswer::Enrolled { host: self.host.clone(), key: public.to_string(), written, reload_broker })
    }
}

impl RevokeRequest {
    /// Revokes the agent, and writes the users of the broker anew.
    ///
    /// # Errors
    /// There is no such agent, the file cannot be written, or the calendar cannot be used.
    pub fn execute(&self, calendar: &mut FleetCalendar, now: UnixTime) -> Result<FleetAnswer, FleetError> {
        let key = self.users.key_of_users()?;
        if !calendar.revoke(&self.host, now)? {
            if !calendar.agents()?.iter().any(|agent| agent.name == self.host) {
                return Err(FleetError::NoAgent(self.host.clone()));
            }
            // The users may not have been written when it was revoked.
            if key.is_none() {
                return Err(FleetError::RevokedBefore(self.host.clone()));
            }
        }
        let written = self.users.write(calendar, key)?.into_iter().collect();
        Ok(FleetAnswer::Revoked { host: self.host.clone(), written })
    }
}

impl UsersFileOptions {
    fn key_file(&self) -> Result<&Path, FleetError> {
        self.fleet_key_file.as_deref().ok_or(FleetError::NoFleetKey)
    }

    /// The secret key of the coordinators, if the users of the broker are written.
    fn key_of_users(&self) -> Result<Option<FleetKey>, FleetError> {
        match &self.users_file {
            Some(_) => Ok(Some(coordinators_key(self.key_file()?)?)),
            None => Ok(None),
        }
    }

    /// Writes the file with the users of the broker; its name.
    fn write(
        &self,
        calendar: &mut FleetCalendar,
        key: Option<FleetKey>,
    ) -> Result<Option<String>, FleetError> {
        let (Some(path), Some(key)) = (&self.users_file, key) else { return Ok(None) };
        write_users(calendar, &key, path)?;
        Ok(Some(path.display().to_string()))
    }
}

/// Writes the users of the broker: the coordinators, and all agents that are not revoked.
pub(crate) fn write_users(
    calendar: &mut FleetCalendar,
    key: &FleetKey,
    path: &Path,
) -> Result<(), FleetError> {
    let fleet = calendar.inventory()?.name;
    let agents = calendar.agents()?;
    let valid: Vec<(&str, &str)> = agents
        .iter()
        .filter(|agent| agent.revoked.is_none())
        .map(|agent: &FleetAgent| (agent.name.as_str(), agent.key.as_str()))
        .collect();
    let text = users_file(&fleet, key.public().as_str(), &valid)?;
    // nats-server may run as another user, and public keys are no secret.
    whole_file(path, |out| out.write_all(text.as_bytes()))
        .map_err(|source| EnrollmentError::UsersNotWritten { path: path.to_owned(), source })?;
    Ok(())
}

#[cfg(test)]
mod tests;
