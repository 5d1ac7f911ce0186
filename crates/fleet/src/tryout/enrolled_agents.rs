//! The broker of a fleet for trying out, and the enrolments of its agents.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::calendar::FleetAgent;
use linerate_proto::fleet::{FleetKey, PublicFleetKey};

use super::child::agent_folder;
use super::error::{TryOutError, TryOutWarning};
use super::{HOSTS, NAME};
use crate::engines::{EnginePaths, LocalNats};
use crate::enrollment::{BrokerOptions, Enrollment, EnrollmentError, coordinators_key_or_new};
use crate::error::FleetError;
use crate::fleet_calendar::FleetCalendar;
use crate::service::{FleetBroker, now};

/// The secret key of the coordinators.
const KEY_FILE: &str = "fleet.key";
/// The users of the broker.
const USERS_FILE: &str = "users.conf";

/// A broker on this machine, and who may connect to it.
#[derive(Debug)]
pub(super) struct TryOutBroker {
    pub(super) nats: LocalNats,
    folder: PathBuf,
    key: FleetKey,
    /// The users that the broker has.
    users: Vec<u8>,
}

impl TryOutBroker {
    /// Starts the broker, for the coordinator only.
    pub(super) fn start(folder: &Path, paths: &EnginePaths) -> Result<Self, TryOutError> {
        let (key, _) = coordinators_key_or_new(&folder.join(KEY_FILE)).map_err(FleetError::from)?;
        let users = write_users(folder, &key, &[])?;
        let nats = LocalNats::start(folder, paths, Some(&folder.join(USERS_FILE)))?;
        Ok(Self { nats, folder: folder.to_owned(), key, users })
    }

    /// How the coordinator reaches it.
    pub(super) fn for_coordinator(&self) -> FleetBroker {
        let place = BrokerOptions { brokers: vec![self.nats.url()], ..BrokerOptions::default() };
        FleetBroker { key: self.key.secret(), place }
    }

    /// Enrols all agents, and makes the broker know them; each with the file of its enrolment.
    ///
    /// They are enrolled at each start, those that are known with the keys that they have: so the calendar forgets their
    /// earlier processes, and gives them new calendars with the present ports.
    pub(super) fn enroll(&mut self, archive: &str) -> Result<Vec<(&'static str, PathBuf)>, TryOutError> {
        let mut calendar = FleetCalendar::open(Some(archive))?;
        let known = calendar.agents()?;
        let (mut enrolled, mut keys) = (Vec::new(), Vec::new());
        for host in HOSTS {
            let known = known.iter().find(|agent| agent.name == host);
            let (file, enrollment) = self.enrollment(host, known)?;
            let key = FleetKey::read(&enrollment.key).map_err(EnrollmentError::from);
            let key = key.map_err(FleetError::from)?.public();
            calendar.enroll(host, key.as_str(), now())?;
            enrolled.push((host, file));
            keys.push(key);
        }
        let agents: Vec<_> = HOSTS.into_iter().zip(keys.iter().map(PublicFleetKey::as_str)).collect();
        self.users = write_users(&self.folder, &self.key, &agents)?;
        self.nats.reload()?;
        Ok(enrolled)
    }

    /// The enrolment of an agent in its file: that of the last start if the calendar knows its key, else a new one.
    fn enrollment(
        &self,
        host: &str,
        known: Option<&FleetAgent>,
    ) -> Result<(PathBuf, Enrollment), TryOutError> {
        let file = self.folder.join(format!("agent-{host}.json"));
        let coordinators = self.key.public().to_string();
        let is_known = |earlier: &Enrollment| {
            let key = FleetKey::read(&earlier.key).map(|key| key.public().to_string()).ok();
            earlier.coordinators == coordinators && known.map(|agent| &agent.key) == key.as_ref()
        };
        let earlier = Enrollment::read(&file).ok().filter(is_known);
        let key = match &earlier {
            Some(earlier) => earlier.key.clone(),
            None => {
                // The calendar and the results of another agent.
                let _ = fs::remove_dir_all(agent_folder(&self.folder, host));
                FleetKey::new().map_err(EnrollmentError::from).map_err(FleetError::from)?.secret()
            }
        };
        let enrollment = Enrollment {
            fleet: NAME.to_owned(),
            name: host.to_owned(),
            key,
            coordinators,
            brokers: vec![self.nats.url()],
            broker_ca: None,
            broker_credentials: None,
        };
        if earlier.as_ref() != Some(&enrollment) {
            enrollment.write(&file).map_err(FleetError::from)?;
        }
        Ok((file, enrollment))
    }

    /// Reads the users; whether they have changed.
    fn read_users(&mut self) -> bool {
        let Ok(users) = fs::read(self.folder.join(USERS_FILE)) else { return false };
        let changed = users != self.users;
        self.users = users;
        changed
    }

    /// Makes the broker read its users again if somebody has changed them.
    pub(super) fn reload_changed(&mut self) -> Option<TryOutWarning> {
        if self.read_users() { self.nats.reload().err().map(TryOutWarning::Users) } else { None }
    }
}

/// Writes the users of the broker to their file. The calendar does not know its fleet before the coordinator leads, so the
/// agents are not taken from there.
fn write_users(folder: &Path, key: &FleetKey, agents: &[(&str, &str)]) -> Result<Vec<u8>, TryOutError> {
    let users = linerate_broker::users_file(NAME, key.public().as_str(), agents).map_err(FleetError::from)?;
    let unwritable = |source| TryOutError::Folder { folder: folder.to_owned(), source };
    fs::write(folder.join(USERS_FILE), &users).map_err(unwritable)?;
    Ok(users.into_bytes())
}
