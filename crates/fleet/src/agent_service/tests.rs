//! The service with a server that is no real broker.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_model::calendar::UnixTime;

use super::*;

static TOO_LARGE: AtomicUsize = AtomicUsize::new(0);
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A broker that permits messages of ten bytes and forwards none.
fn narrow_broker() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"INFO {\"server_id\":\"x\",\"max_payload\":10,\"proto\":1}\r\n");
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                if line.is_ok_and(|line| line.starts_with("PING")) {
                    let _ = stream.write_all(b"PONG\r\n");
                }
            }
        }
    });
    url
}

/// Counts what is told.
fn count(notice: &AgentServiceNotice) {
    match notice {
        AgentServiceNotice::TooLarge(_) => {
            assert!(notice.is_warning() && notice.to_string().contains("max_payload"));
            TOO_LARGE.fetch_add(1, Ordering::Relaxed);
        }
        AgentServiceNotice::Started(_) => {
            STARTED.fetch_add(1, Ordering::Relaxed);
        }
        _ => {}
    }
}

fn service(folder: &tempfile::TempDir, notify: fn(&AgentServiceNotice)) -> FleetAgentService {
    let enrollment = Enrollment {
        fleet: "f".to_owned(),
        name: "a".to_owned(),
        key: FleetKey::new().unwrap().secret(),
        coordinators: FleetKey::new().unwrap().public().to_string(),
        brokers: vec![narrow_broker()],
        broker_ca: None,
        broker_credentials: None,
    };
    FleetAgentService::open(AgentServiceConfig {
        enrollment,
        folder: folder.path().to_owned(),
        archive: Some(folder.path().join("archive.db").display().to_string()),
        server: ("127.0.0.1".to_owned(), Some(1)),
        token: Token::new("0123456789abcdef0123456789abcdef").unwrap(),
        tls: None,
        program: "1".to_owned(),
        notify,
    })
    .unwrap()
}

fn start(start_by: Span) -> AgentAction {
    let at = UnixTime::from_ms(0);
    let run = AgentRun {
        id: "r".into(),
        schedule: "s".into(),
        to: "b".into(),
        address: "127.0.0.1".into(),
        test_address: None,
        port: 1,
        spec: 0,
        starts: at,
        ends: at,
    };
    AgentAction::Start { run, spec: Box::default(), start_by }
}

#[test]
fn a_message_that_the_broker_does_not_permit_is_told_once_and_nothing_begins_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = service(&folder, count);
    let until = clock::now() + Duration::from_secs(60);
    while !service.broker.is_connected() && !until.has_passed() {
        service.turn(Duration::from_millis(20));
    }
    for _ in 0..3 {
        service.execute(AgentAction::Send(vec![0; 11]));
    }
    assert_eq!(TOO_LARGE.load(Ordering::Relaxed), 1);
    let begin = start(Span::from_secs(1));
    service.stopping = true;
    service.execute(begin);
    assert!(service.active.is_empty());
    assert_eq!(STARTED.load(Ordering::Relaxed), 0);
}

/// A process may have to wait between the decision and the start: for the disk, or because it is stopped.
#[test]
fn the_time_to_begin_counts_from_the_decision() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = service(&folder, |_| ()).with_substitute(|run, _| {
        let reason = if run.start_by.has_passed() { "too late" } else { "in time" };
        (failed(reason.to_owned()), String::new())
    });
    for (start_by, expected) in [
        (Span::from_ns(clock::unadjusted_ns() - 1), "too late"),
        (Span::from_ns(clock::unadjusted_ns()) + Span::from_secs(60), "in time"),
    ] {
        service.execute(start(start_by));
        let (_, end, _) = service.ended.1.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(end.reason, expected);
    }
}
