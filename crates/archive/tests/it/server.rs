//! What only a server can do: be away, refuse, and belong to others.

use linerate_archive::{ArchiveError, EventStore, Recorder, Store, open};

use crate::archive::{progress, started, whole_run};
use crate::place::TestPlace;
use crate::postgres_server::PostgresServer;

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_is_away_for_a_while_costs_nothing() {
    let (server, process) = PostgresServer::start();
    let url = server.url("postgres");
    let mut recorder = Recorder::new(open(&url).unwrap());
    recorder.on(&started("r", "server")).unwrap();
    PostgresServer::stop(process);
    // Not urgent: it waits, although it is due.
    recorder.on(&progress("r", 1, 900, 1)).unwrap();
    let error = recorder.flush().unwrap_err();
    assert!(matches!(error, ArchiveError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    let nobody = open(&url).unwrap_err();
    assert!(matches!(nobody, ArchiveError::Unreachable { .. }), "{nobody:?}");
    let process = server.run();
    server.wait_until_ready();
    recorder.on(&progress("r", 2, 7_000, 2)).unwrap();
    recorder.flush().unwrap();
    assert_eq!(recorder.store().events("r").unwrap().len(), 3);
    drop(recorder);
    PostgresServer::stop(process);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn who_is_refused_reads_why_and_what_to_do() {
    let TestPlace::Server(url) = TestPlace::server() else { unreachable!() };
    let (before, _) = url.rsplit_once('/').unwrap();
    let missing = open(&format!("{before}/nowhere")).unwrap_err();
    assert!(matches!(missing, ArchiveError::Refused { .. }), "{missing:?}");
    let nobody = open(&url.replace("linerate@", "nobody@")).unwrap_err();
    assert!(matches!(nobody, ArchiveError::Refused { .. }), "{nobody:?}");
    let source = std::error::Error::source(&nobody).unwrap().to_string();
    assert!(source.contains("nobody"), "{source}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn tables_of_others_and_of_later_versions_are_left_alone() {
    let place = TestPlace::server();
    place.execute("CREATE TABLE flow (litres BIGINT)");
    let foreign = open(&place.location()).unwrap_err();
    assert!(matches!(foreign, ArchiveError::Foreign { .. }), "{foreign:?}");
    assert_eq!(place.number("SELECT count(*) FROM flow"), 0.0);
    let place = TestPlace::server();
    drop(place.open());
    place.execute("UPDATE linerate_archive SET format = 99");
    let newer = open(&place.location()).unwrap_err();
    assert!(matches!(newer, ArchiveError::Newer { found: 99, known: 6, .. }), "{newer:?}");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn who_may_only_read_reads() {
    let place = TestPlace::server();
    place.record_all(&whole_run("7f3a01", "server"));
    place.execute(
        "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA public TO reader;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    );
    let mut archive = open(&place.location().replace("linerate@", "reader@")).unwrap();
    assert_eq!(archive.events("latest").unwrap(), whole_run("7f3a01", "server"));
    let error = archive.append(&[started("r", "server")]).unwrap_err();
    assert!(matches!(error, ArchiveError::ReadOnly { .. }), "{error:?}");
    place.execute(
        "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM reader; DROP OWNED BY reader; DROP ROLE reader",
    );
}
