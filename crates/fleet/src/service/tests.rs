//! The coordinator with agents and a broker.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::fleet_calendar::FleetCalendar;
use crate::tests_support::inventory;

const HOSTS: &str = "host.a.address = \"a\"\nhost.b.address = \"b\"\n";

fn config(folder: &tempfile::TempDir) -> FleetServiceConfig {
    FleetServiceConfig {
        archive: Some(folder.path().join("archive.db").display().to_string()),
        inventory: inventory(HOSTS),
        token: Token::new("0123456789abcdef0123456789abcdef").unwrap(),
        tls: None,
        broker: None,
        notify: |_| (),
    }
}

#[test]
fn a_fleet_whose_agents_are_reached_keeps_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let brokers = vec!["nats://127.0.0.1:1".to_owned()];
    let broker = FleetBroker {
        key: FleetKey::new().unwrap().secret(),
        place: BrokerOptions { brokers, ..BrokerOptions::default() },
    };
    let mut service =
        FleetService::open(FleetServiceConfig { broker: Some(broker), ..config(&folder) }).unwrap();
    let other = Inventory { name: "other".to_owned(), ..inventory(HOSTS) };
    let error = service.describe(other.clone()).unwrap_err().to_string();
    assert!(error.contains("the fleet is 'other' now") && error.contains("keep the name"), "{error}");
    service.describe(inventory(HOSTS)).unwrap();
    let mut without = FleetService::open(config(&folder)).unwrap();
    without.describe(other).unwrap();
}

#[test]
fn a_coordinator_without_a_broker_says_that_it_does_not_reach_agents() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let folder = tempfile::tempdir().unwrap();
    let config = FleetServiceConfig {
        notify: |notice| {
            if let FleetNotice::AgentsWithoutBroker(count) = notice {
                assert!(notice.is_warning() && notice.to_string().contains("--broker"));
                TOLD.fetch_add(*count, Ordering::Relaxed);
            }
        },
        ..config(&folder)
    };
    drop(FleetService::open(config.clone()).unwrap());
    assert_eq!(TOLD.load(Ordering::Relaxed), 0);
    let mut calendar = FleetCalendar::open(config.archive.as_deref()).unwrap();
    for host in ["a", "b"] {
        let key = FleetKey::new().unwrap().public();
        calendar.enroll(host, key.as_str(), now()).unwrap();
    }
    calendar.revoke("b", now()).unwrap();
    drop(FleetService::open(config).unwrap());
    assert_eq!(TOLD.load(Ordering::Relaxed), 1);
}

#[test]
fn senders_whose_messages_are_not_understood_are_told_once_and_only_some_of_them() {
    let message = |sender: &str| (sender.to_owned(), Vec::new());
    let answered = [
        FleetAction::Send { agent: "a".to_owned(), message: Vec::new() },
        FleetAction::Archive {
            agent: "b".to_owned(),
            run: "r".to_owned(),
            log: String::new(),
            is_known: true,
            digest: ResultDigest::of([]),
        },
    ];
    let messages = [message("a"), message("b"), message("c"), message("c")];
    assert_eq!(unanswered(&messages, &answered).into_iter().collect::<Vec<_>>(), ["c"]);
    let mut reported = BTreeSet::new();
    let new = (0..100).filter(|at| is_new(&mut reported, &(at % 50).to_string())).count();
    assert_eq!(new, MAX_REPORTED);
}
