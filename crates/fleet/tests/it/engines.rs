//! The real servers of a fleet on one machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use linerate_archive::Calendar;
use linerate_fleet::{EnginePaths, LocalNats, LocalPostgres, end_left_servers};
use linerate_sock::clock;
use linerate_sock::process::{PidFd, Signal};
use postgres::{Client, NoTls};

/// A limit that only a test that is stuck reaches.
const TIMEOUT: Duration = Duration::from_secs(60);
const SEARCHED: EnginePaths = EnginePaths { postgres_bin: None, nats_server: None };

/// The folder of a fleet, which every user may enter.
fn fleet_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    folder
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The number in the first line of a file.
fn number_in(file: &Path) -> u32 {
    fs::read_to_string(file).unwrap().lines().next().unwrap().trim().parse().unwrap()
}

fn postmaster(folder: &Path) -> u32 {
    number_in(&folder.join("postgres/postmaster.pid"))
}

/// The values of a field of a process.
fn status_of(process: u32, field: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let values = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    values.split_whitespace().map(|value| value.parse().unwrap()).collect()
}

fn we_are_root() -> bool {
    status_of(std::process::id(), "Uid:")[1] == 0
}

fn kill(process: u32) {
    let process = PidFd::open(process).unwrap();
    process.signal(Signal::Kill).unwrap();
    assert!(process.wait(clock::now() + TIMEOUT).unwrap());
}

/// Whether a process runs; one that has ended and is kept for its parent does not.
fn runs(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn count(server: &LocalPostgres) -> i64 {
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    client.query_one("SELECT count(*) FROM kept", &[]).unwrap().get(0)
}

fn insert(server: &LocalPostgres) {
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    client.batch_execute("CREATE TABLE IF NOT EXISTS kept (x int); INSERT INTO kept VALUES (1)").unwrap();
}

#[test]
fn a_calendar_opens_in_a_postgres_that_has_no_privileges_and_no_network() {
    let folder = fleet_folder();
    let server = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    Calendar::open(&server.url()).unwrap();
    let process = postmaster(folder.path());
    if we_are_root() {
        assert!(status_of(process, "Uid:").iter().chain(&status_of(process, "Gid:")).all(|id| *id != 0));
        assert_eq!(status_of(process, "Groups:"), [0; 0]);
    }
    assert_eq!(fs::metadata(folder.path().join("postgres")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(folder.path().join("postgres.log")).unwrap().mode() & 0o777, 0o600);
    let mut client = Client::connect(&server.url(), NoTls).unwrap();
    for (setting, value) in [("fsync", "on"), ("listen_addresses", "")] {
        let row = client.query_one("SELECT current_setting($1)", &[&setting]).unwrap();
        assert_eq!(row.get::<_, String>(0), value, "{setting}");
    }
    // A client that stays does not keep it from ending.
    drop(server);
    assert!(!runs(process));
    assert!(!folder.path().join("postgres/postmaster.pid").exists(), "it was not killed");
    drop(client);
}

#[test]
fn ctrl_c_on_the_terminal_of_the_coordinator_does_not_reach_a_postgres() {
    let folder = fleet_folder();
    let _server = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    let process = postmaster(folder.path());
    let line = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let group = line.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap();
    assert_eq!(group, process.to_string());
}

#[test]
fn a_killed_postgres_comes_up_again_with_its_data() {
    let folder = fleet_folder();
    let server = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    let url = server.url();
    insert(&server);
    // The process that works for this client notices the end of the server only after the statement.
    let mut busy = Client::connect(&url, NoTls).unwrap();
    let work = "DO $$ DECLARE until timestamp := clock_timestamp() + '4 s'; \
                BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$";
    let working = std::thread::spawn(move || busy.batch_execute(work));
    let mut client = Client::connect(&url, NoTls).unwrap();
    let until = clock::now() + TIMEOUT;
    while client.query("SELECT FROM pg_stat_activity WHERE query LIKE 'DO $$%'", &[]).unwrap().is_empty() {
        assert!(!until.has_passed(), "the statement does not start");
    }
    kill(postmaster(folder.path()));
    drop(server);
    let again = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    assert_eq!(again.url(), url);
    assert_eq!(count(&again), 1);
    let _ = working.join().unwrap();
}

#[test]
fn a_postgres_that_a_killed_coordinator_left_is_ended_first() {
    let folder = fleet_folder();
    let left = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    insert(&left);
    let process = postmaster(folder.path());
    std::mem::forget(left);
    let again = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    assert!(!runs(process));
    assert_eq!(count(&again), 1);
    let process = postmaster(folder.path());
    std::mem::forget(again);
    end_left_servers(folder.path()).unwrap();
    assert!(!runs(process));
    end_left_servers(folder.path()).unwrap();
    end_left_servers(&folder.path().join("gone")).unwrap();
}

/// A process of the user that a data folder belongs to.
struct Bystander(Child);

impl Bystander {
    fn of_owner(data: &Path) -> Self {
        let owner = fs::metadata(data).unwrap();
        let mut command = Command::new("sleep");
        command.arg("600");
        if we_are_root() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        Self(command.spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_process_that_has_the_number_of_a_killed_postgres_now_is_left_alone() {
    let folder = fleet_folder();
    let server = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    insert(&server);
    let data = folder.path().join("postgres");
    let files = [data.join("postmaster.pid"), data.join(".s.PGSQL.5432.lock")];
    kill(postmaster(folder.path()));
    drop(server);
    let mut other = Bystander::of_owner(&data);
    let texts = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    let name_other = || {
        for (file, text) in files.iter().zip(&texts) {
            let (_, rest) = text.split_once('\n').unwrap();
            fs::write(file, format!("{}\n{rest}", other.0.id())).unwrap();
        }
    };
    name_other();
    end_left_servers(folder.path()).unwrap();
    name_other();
    let again = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    assert_eq!(count(&again), 1);
    assert!(other.0.try_wait().unwrap().is_none(), "it runs on");
}

#[test]
fn an_interrupted_first_start_is_begun_again() {
    let folder = fleet_folder();
    let part = folder.path().join("postgres.part");
    fs::create_dir(&part).unwrap();
    fs::write(part.join("PG_VERSION"), "17\n").unwrap();
    let _server = LocalPostgres::start(folder.path(), &SEARCHED).unwrap();
    assert!(!part.exists());
}

#[test]
fn a_folder_with_a_long_or_unusual_path_has_a_postgres() {
    let top = fleet_folder();
    for name in ["with space, comma \"and\" 50%".to_owned(), "x".repeat(120)] {
        let folder = top.path().join(name);
        for _ in 0..2 {
            let server = LocalPostgres::start(&folder, &SEARCHED).unwrap();
            Calendar::open(&server.url()).unwrap();
        }
        assert!(folder.join("postgres/PG_VERSION").exists());
    }
}

#[test]
fn missing_programs_are_named_with_how_to_get_them() {
    let folder = fleet_folder();
    let empty = tempfile::tempdir().unwrap();
    for program in ["postgres", "initdb"] {
        let paths = EnginePaths { postgres_bin: Some(empty.path().to_owned()), ..SEARCHED };
        let error = LocalPostgres::start(folder.path(), &paths).unwrap_err().to_string();
        let missing = if program == "postgres" { "initdb" } else { "postgres" };
        assert!(error.starts_with(&format!("{missing} is missing")), "{error}");
        assert!(error.contains(empty.path().to_str().unwrap()) && error.contains("apt install"), "{error}");
        fs::write(empty.path().join("initdb"), "").unwrap();
    }
    let paths = EnginePaths { nats_server: Some(empty.path().join("nats-server")), ..SEARCHED };
    let error = LocalNats::start(folder.path(), &paths, None).unwrap_err().to_string();
    assert!(error.starts_with("nats-server is missing") && error.contains("go install"), "{error}");
}

#[test]
fn data_of_another_version_is_refused_with_both_versions() {
    let folder = fleet_folder();
    let data = folder.path().join("postgres");
    fs::create_dir(&data).unwrap();
    let error = LocalPostgres::start(folder.path(), &SEARCHED).unwrap_err().to_string();
    assert!(error.contains("no data of PostgreSQL"), "{error}");
    fs::write(data.join("PG_VERSION"), "9.6\n").unwrap();
    let error = LocalPostgres::start(folder.path(), &SEARCHED).unwrap_err().to_string();
    assert!(error.contains("is of PostgreSQL 9.6") && error.contains("is version 1"), "{error}");
    assert_eq!(fs::read_to_string(data.join("PG_VERSION")).unwrap(), "9.6\n");
}

#[test]
fn the_last_message_of_a_postgres_that_does_not_start_is_told() {
    let folder = fleet_folder();
    drop(LocalPostgres::start(folder.path(), &SEARCHED).unwrap());
    let config = folder.path().join("postgres/postgresql.auto.conf");
    let mut file = fs::OpenOptions::new().append(true).open(config).unwrap();
    file.write_all(b"log_timezone = 'nowhere'\n").unwrap();
    let error = LocalPostgres::start(folder.path(), &SEARCHED).unwrap_err().to_string();
    assert!(error.contains("did not start: FATAL:") && error.contains("postgres.log"), "{error}");
}

#[test]
fn root_learns_which_folder_keeps_the_user_of_postgres_out() {
    if !we_are_root() {
        return skipped("root_learns_which_folder_keeps_the_user_of_postgres_out", "it needs root");
    }
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let folder = closed.path().join("fleet");
    let error = LocalPostgres::start(&folder, &SEARCHED).unwrap_err().to_string();
    let shown = closed.path().display().to_string();
    assert!(error.contains(&format!("may not enter {shown};")) && error.contains("--dir"), "{error}");
    assert!(!error.contains("chmod"), "{error}");
    let error = LocalPostgres::start(closed.path(), &SEARCHED).unwrap_err().to_string();
    assert!(error.contains(&format!("chmod a+x {shown}")), "{error}");
    assert_eq!(fs::metadata(closed.path()).unwrap().mode() & 0o777, 0o700);
    open_to_all(closed.path());
    LocalPostgres::start(&folder, &SEARCHED).unwrap();
}

/// Says that a test is skipped, and records it for `make test` to count.
fn skipped(test: &str, why: &str) {
    let line = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped.txt");
    let mut list = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    list.write_all(line.as_bytes()).unwrap();
}

/// The real nats-server of `LINERATE_NATS_SERVER`, `target/peers` or PATH. Without it the test is skipped and counted.
fn nats(test: &str) -> Option<EnginePaths> {
    let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/nats-server");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::var_os("LINERATE_NATS_SERVER").map(PathBuf::from);
    let searched = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    let found =
        given.into_iter().chain([PathBuf::from(peers)]).chain(searched).find(|program| program.is_file());
    if found.is_none() {
        skipped(test, "nats-server is missing");
    }
    found.map(|nats_server| EnginePaths { nats_server: Some(nats_server), ..SEARCHED })
}

/// A connection as a user, and what the server answers to it.
fn connect(server: &LocalNats, user: &str) -> (TcpStream, String) {
    let address = server.url().strip_prefix("nats://").unwrap().to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.starts_with("INFO {"), "{line}");
    let words = format!("CONNECT {{\"verbose\":false,\"user\":\"{user}\",\"pass\":\"secret\"}}\r\nPING\r\n");
    stream.write_all(words.as_bytes()).unwrap();
    line.clear();
    lines.read_line(&mut line).unwrap();
    (stream, line.trim().to_owned())
}

fn write_users(file: &Path, user: &str) {
    let text = format!("authorization {{ users = [ {{ user: {user}, password: secret }} ] }}\n");
    fs::write(file, text).unwrap();
}

#[test]
fn a_nats_server_reads_its_users_again_and_keeps_its_port() {
    let Some(paths) = nats("a_nats_server_reads_its_users_again_and_keeps_its_port") else { return };
    let (folder, elsewhere) = (fleet_folder(), fleet_folder());
    let users = elsewhere.path().join("the users.conf");
    write_users(&users, "one");
    let server = LocalNats::start(folder.path(), &paths, Some(&users)).unwrap();
    assert_eq!(connect(&server, "one").1, "PONG");
    assert!(connect(&server, "two").1.contains("Authorization Violation"));
    write_users(&users, "two");
    server.reload().unwrap();
    assert_eq!(connect(&server, "two").1, "PONG");
    assert!(connect(&server, "one").1.contains("Authorization Violation"));
    // It goes on with the users that it has.
    fs::write(&users, "authorization {").unwrap();
    let error = server.reload().unwrap_err().to_string();
    assert!(error.contains("the users.conf"), "{error}");
    let kept = connect(&server, "two");
    assert_eq!(kept.1, "PONG");
    let url = server.url();
    drop(server);
    write_users(&users, "three");
    let again = LocalNats::start(folder.path(), &paths, Some(&users)).unwrap();
    assert_eq!(again.url(), url);
    assert_eq!(connect(&again, "three").1, "PONG");
    drop(again);
    let port = url.rsplit_once(':').unwrap().1;
    let taken = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let moved = LocalNats::start(folder.path(), &paths, None).unwrap();
    assert_ne!(moved.url(), url);
    assert_eq!(connect(&moved, "anybody").1, "PONG");
    drop(taken);
}

#[test]
fn a_nats_server_that_a_killed_coordinator_left_is_ended_first() {
    let Some(paths) = nats("a_nats_server_that_a_killed_coordinator_left_is_ended_first") else { return };
    let folder = fleet_folder();
    let left = LocalNats::start(folder.path(), &paths, None).unwrap();
    let (url, process) = (left.url(), number_in(&folder.path().join("nats.pid")));
    std::mem::forget(left);
    let again = LocalNats::start(folder.path(), &paths, None).unwrap();
    assert!(!runs(process));
    assert_eq!(again.url(), url);
    let process = number_in(&folder.path().join("nats.pid"));
    kill(process);
    let error = again.reload().unwrap_err().to_string();
    assert!(error.contains("it has ended"), "{error}");
    drop(again);
    let third = LocalNats::start(folder.path(), &paths, None).unwrap();
    assert_eq!(third.url(), url);
    let process = number_in(&folder.path().join("nats.pid"));
    std::mem::forget(third);
    end_left_servers(folder.path()).unwrap();
    assert!(!runs(process));
}

#[test]
fn a_nats_server_that_does_not_start_or_is_too_old_says_why() {
    let Some(paths) = nats("a_nats_server_that_does_not_start_or_is_too_old_says_why") else { return };
    let folder = fleet_folder();
    let users = folder.path().join("users.conf");
    fs::write(&users, "authorization {").unwrap();
    let error = LocalNats::start(folder.path(), &paths, Some(&users)).unwrap_err().to_string();
    assert!(error.contains("users.conf") && error.contains("nats.log"), "{error}");
    let missing = folder.path().join("nobody.conf");
    let error = LocalNats::start(folder.path(), &paths, Some(&missing)).unwrap_err().to_string();
    assert!(error.contains("nobody.conf"), "{error}");
    let old = folder.path().join("nats-server");
    fs::write(&old, "#!/bin/sh\necho nats-server: v2.9.25\n").unwrap();
    fs::set_permissions(&old, PermissionsExt::from_mode(0o755)).unwrap();
    let paths = EnginePaths { nats_server: Some(old), ..SEARCHED };
    let error = LocalNats::start(folder.path(), &paths, None).unwrap_err().to_string();
    assert!(
        error.contains("version 2.9.25") && error.contains("2.10") && error.contains("go install"),
        "{error}"
    );
}
