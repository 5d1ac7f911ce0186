//! Enrolling and revoking, with an archive and files on a disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use linerate_control::Token;
use linerate_runner::CancelToken;
use tempfile::TempDir;

use super::*;
use crate::service::{FleetService, FleetServiceConfig, now};
use crate::tests_support::inventory;

struct EnrollmentSite {
    folder: TempDir,
    calendar: FleetCalendar,
}

impl EnrollmentSite {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("archive.db").display().to_string();
        let config = FleetServiceConfig {
            archive: Some(archive.clone()),
            inventory: inventory("host.a.address = \"a\"\nhost.b.address = \"b\"\n"),
            token: Token::new("0123456789abcdef0123456789abcdef").unwrap(),
            tls: None,
            broker: None,
            notify: |_| (),
        };
        // The coordinator that leads describes the fleet.
        let stop = CancelToken::new();
        FleetService::open(config).unwrap().run(&stop, &mut |_| stop.cancel()).unwrap();
        Self { calendar: FleetCalendar::open(Some(&archive)).unwrap(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn users(&self) -> UsersFileOptions {
        UsersFileOptions {
            fleet_key_file: Some(self.path("fleet.key")),
            users_file: Some(self.path("users.conf")),
        }
    }

    fn request(&self, host: &str, file: &str) -> EnrollRequest {
        EnrollRequest {
            host: host.to_owned(),
            file: Some(self.path(file)),
            broker: BrokerOptions {
                brokers: vec!["nats://127.0.0.1:1".to_owned()],
                ..BrokerOptions::default()
            },
            users: self.users(),
            ..EnrollRequest::default()
        }
    }

    /// What was written.
    fn enroll(&mut self, request: &EnrollRequest) -> Result<Vec<String>, FleetError> {
        match request.execute(&mut self.calendar, now())? {
            FleetAnswer::Enrolled { written, reload_broker, .. } => {
                assert_eq!(reload_broker, request.users.users_file.is_some());
                Ok(written)
            }
            other => panic!("{other:?}"),
        }
    }

    fn key_of(&mut self, host: &str) -> Option<String> {
        let agents = self.calendar.agents().unwrap();
        agents.into_iter().find(|agent| agent.name == host).map(|agent| agent.key)
    }
}

#[test]
fn the_key_of_the_coordinators_is_made_once_and_said_to_be() {
    let mut site = EnrollmentSite::new();
    let paths = |names: &[&str]| names.iter().map(|name| site.path(name).display().to_string()).collect();
    let (first, second): (Vec<String>, Vec<String>) =
        (paths(&["fleet.key", "a.json", "users.conf"]), paths(&["b.json", "users.conf"]));
    assert_eq!(site.enroll(&site.request("a", "a.json")).unwrap(), first);
    assert_eq!(site.enroll(&site.request("b", "b.json")).unwrap(), second);
    // Only an enrolment with a new key may make one.
    fs::remove_file(site.path("fleet.key")).unwrap();
    let revoke = RevokeRequest { host: "a".to_owned(), users: site.users() };
    let error = revoke.execute(&mut site.calendar, now()).unwrap_err().to_string();
    assert!(error.contains("agent enroll HOST FILE"), "{error}");
    assert!(site.calendar.agents().unwrap()[0].revoked.is_none(), "nothing was revoked");
    let key = FleetKey::new().unwrap().public().to_string();
    let by_key = EnrollRequest { key: Some(key), file: None, replace: true, ..site.request("b", "") };
    assert!(site.enroll(&by_key).is_err());
    assert!(coordinators_key(&site.path("fleet.key")).is_err());
    assert!(!site.path("fleet.key").exists());
}

#[test]
fn neither_a_file_nor_an_agent_is_replaced_unless_that_is_wanted() {
    let mut site = EnrollmentSite::new();
    site.enroll(&site.request("a", "a.json")).unwrap();
    let (file, key) = (fs::read(site.path("a.json")).unwrap(), site.key_of("a"));
    let error = site.enroll(&site.request("b", "a.json")).unwrap_err().to_string();
    assert!(error.contains("a.json exists already"), "{error}");
    let error = site.enroll(&site.request("a", "new.json")).unwrap_err().to_string();
    assert!(error.contains("--replace"), "{error}");
    assert!(!site.path("new.json").exists());
    assert_eq!((fs::read(site.path("a.json")).unwrap(), site.key_of("a")), (file, key.clone()));
    // The same key once more, to write the users again.
    let same = EnrollRequest { key: key.clone(), file: None, ..site.request("a", "") };
    site.enroll(&same).unwrap();
    site.enroll(&EnrollRequest { replace: true, ..site.request("a", "new.json") }).unwrap();
    assert_ne!(site.key_of("a"), key);
    // One that was revoked asks for nothing.
    site.calendar.revoke("a", now()).unwrap();
    site.enroll(&site.request("a", "third.json")).unwrap();
}

#[test]
fn users_that_cannot_be_written_are_not_said_to_be_not_enrolled() {
    let mut site = EnrollmentSite::new();
    site.enroll(&site.request("a", "a.json")).unwrap();
    fs::create_dir(site.path("taken")).unwrap();
    let users = UsersFileOptions { users_file: Some(site.path("taken")), ..site.users() };
    let wrong = EnrollRequest { users: users.clone(), ..site.request("b", "b.json") };
    let error = site.enroll(&wrong).unwrap_err().to_string();
    assert!(
        error.contains("the calendar has the change") && !error.contains("nothing was enrolled"),
        "{error}"
    );
    assert!(site.key_of("b").is_some());
    let mut revoke = RevokeRequest { host: "b".to_owned(), users };
    assert!(revoke.execute(&mut site.calendar, now()).unwrap_err().to_string().contains("has the change"));
    // The remedy.
    revoke.users = site.users();
    revoke.execute(&mut site.calendar, now()).unwrap();
    assert_eq!(fs::read_to_string(site.path("users.conf")).unwrap().matches("nkey:").count(), 2);
}

#[test]
fn files_with_secret_keys_that_others_may_read_are_refused() {
    let mut site = EnrollmentSite::new();
    site.enroll(&site.request("a", "a.json")).unwrap();
    Enrollment::read(&site.path("a.json")).unwrap();
    for name in ["a.json", "fleet.key"] {
        fs::set_permissions(site.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let refused = [
        Enrollment::read(&site.path("a.json")).unwrap_err(),
        coordinators_key(&site.path("fleet.key")).map(|_| ()).unwrap_err(),
    ];
    for error in refused {
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}
