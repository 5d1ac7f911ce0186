//! An archive in PostgreSQL, with the whole program.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::postgres_server::PostgresServer;
use crate::support::{Done, Folder, Process, ServeProcess, eventually, linerate, test};

/// Runs `linerate` with a data directory of its own and the archive at a URL.
fn with_archive(mut command: Command, data: &Folder, url: &str, more: &[&str]) -> Done {
    command.env("XDG_DATA_HOME", data.path()).env("LINERATE_ARCHIVE", url).args(more);
    Process::start(command).finish(std::time::Duration::from_secs(60))
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_team_shares_an_archive_and_what_it_misses_while_away_is_written_later() {
    let (database, process) = PostgresServer::start();
    let (data, url) = (Folder::new(), database.url("postgres"));
    // The server has the runs of clients of other tools in the same archive.
    let mut serve = linerate();
    serve
        .args(["serve", "-p", "0", "--json"])
        .env("XDG_DATA_HOME", data.path())
        .env("LINERATE_ARCHIVE", &url);
    let server = ServeProcess::from(serve);
    let measure = |name: &str| {
        let command = test("127.0.0.1", server.port, &["-t", "1", "--upload", "-q", "--name", name]);
        with_archive(command, &data, &url, &[])
    };
    let of_archive = |arguments: &[&str]| with_archive(linerate(), &data, &url, arguments);
    let done = measure("before");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    assert!(of_archive(&["show", "before"]).stdout.contains("Verdict"));

    PostgresServer::stop(process);
    let done = measure("meanwhile");
    assert_eq!(done.code, Some(0), "the measurement goes on: {done:?}");
    assert!(done.stderr.contains("not in the archive yet") && done.stderr.contains(".jsonl"), "{done:?}");
    let mut foreign = linerate();
    foreign.args(["iperf3", "-c", "127.0.0.1", "-t", "1", "-p", &server.port.to_string()]);
    assert_eq!(Process::start(foreign).finish(std::time::Duration::from_secs(60)).code, Some(0));
    eventually("the server keeps what the archive misses", || {
        server.stderr().contains("not in the archive yet").then_some(())
    });
    let away = of_archive(&["history"]);
    assert_eq!(away.code, Some(1));
    assert!(away.stderr.contains("cannot be reached"), "{away:?}");

    let process = database.run();
    database.wait_until_ready();
    let listed = of_archive(&["history"]);
    for run in ["before", "meanwhile", "iperf3"] {
        assert!(listed.stdout.contains(run), "{run}: {listed:?}");
    }
    let foreign = of_archive(&["history", "--json"]).json()["runs"].as_array().unwrap().clone();
    assert!(foreign.iter().all(|run| run["outcome"] == "completed"), "{foreign:?}");
    let export = of_archive(&["export", "meanwhile"]);
    let numbers: Vec<u64> = export
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no event is missing");
    assert!(numbers.len() > 20);

    // Tags, a copy into a file, and the way back.
    assert_eq!(of_archive(&["archive", "tag", "before", "keep"]).code, Some(0));
    let copy = data.file("copy.sqlite");
    assert_eq!(of_archive(&["archive", "backup", &copy]).code, Some(0));
    let of_copy = with_archive(linerate(), &data, &copy, &["history", "--tag", "keep"]);
    assert!(of_copy.stdout.contains("before") && !of_copy.stdout.contains("meanwhile"), "{of_copy:?}");
    let pruned = of_archive(&["archive", "prune", "--keep-runs", "0"]);
    assert!(pruned.stdout.contains("removed 2 runs; the archive has 1 run"), "{pruned:?}");
    let copied = with_archive(linerate(), &data, &copy, &["archive", "copy", &url]);
    assert_eq!(copied.stdout, "copied 2 new runs\n", "{copied:?}");
    PostgresServer::stop(process);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_password_is_never_shown() {
    let (database, process) = PostgresServer::start();
    let data = Folder::new();
    let secret = database.url("nowhere").replace("linerate@", "linerate:s3cret@");
    for arguments in [&["history"][..], &["archive", "info"], &["--help"], &["history", "--help"]] {
        let done = with_archive(linerate(), &data, &secret, arguments);
        assert!(!format!("{done:?}").contains("s3cret"), "{done:?}");
    }
    PostgresServer::stop(process);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_password_comes_from_the_environment_or_from_a_file_that_only_its_user_may_read() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (database, process) = PostgresServer::start_with(port, |server| {
        let rules = server.folder.join("rules");
        std::fs::write(&rules, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n").unwrap();
        vec!["listen_addresses=127.0.0.1".to_owned(), format!("hba_file={}", rules.display())]
    });
    let mut psql = database.as_its_user("psql");
    psql.args(["-q", &database.url("postgres"), "-c", "ALTER ROLE linerate PASSWORD 'a:b\\c'"]);
    assert!(psql.status().unwrap().success());

    let (data, home) = (Folder::new(), Folder::new());
    let url = format!("postgres://linerate@127.0.0.1:{port}/postgres");
    let history = |variables: &[(&str, &str)]| {
        let mut command = linerate();
        command.env("HOME", home.path()).env_remove("PGPASSWORD").env_remove("PGPASSFILE");
        command.envs(variables.iter().copied());
        with_archive(command, &data, &url, &["history"])
    };
    let is_refused = |done: &Done| done.code == Some(1) && done.stderr.contains("~/.pgpass");
    let refused = history(&[]);
    assert!(is_refused(&refused), "{refused:?}");
    assert_eq!(history(&[("PGPASSWORD", "a:b\\c")]).code, Some(0));

    let write = |file: &str, mode: u32| {
        std::fs::write(file, format!("# ours\n127.0.0.1:{port}:*:linerate:a\\:b\\\\c\n")).unwrap();
        std::fs::set_permissions(file, PermissionsExt::from_mode(mode)).unwrap();
    };
    let (own, other) = (home.file(".pgpass"), data.file("passwords"));
    write(&own, 0o600);
    let found = history(&[]);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{found:?}");
    write(&other, 0o644);
    let refused = history(&[("PGPASSFILE", &other)]);
    assert!(is_refused(&refused), "others may read it: {refused:?}");
    write(&other, 0o600);
    assert_eq!(history(&[("PGPASSFILE", &other)]).code, Some(0));
    PostgresServer::stop(process);
}
