//! Encrypted control connections: `serve --tls`, and the options with which clients recognise a server.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::{Done, Folder, Process, ServeProcess, TIMEOUT, eventually, linerate, token_file};

/// The program of a user who has a data directory of its own.
fn own(folder: &Folder, args: &[&str]) -> Command {
    let mut command = linerate();
    command.env("XDG_DATA_HOME", folder.path()).args(args);
    command
}

fn server(folder: &Folder, port: u16, more: &[&str]) -> ServeProcess {
    let port = port.to_string();
    let args = ["serve", "--json", "-B", "127.0.0.1", "-p", &port, "--archive", ":memory:", "--tls"];
    ServeProcess::from(own(folder, &[&args, more].concat()))
}

/// The fingerprint that a server has printed.
fn fingerprint(server: &ServeProcess) -> String {
    let printed = server.stderr();
    let line = printed.lines().find(|line| line.contains("TLS for control connections")).unwrap().to_owned();
    line.rsplit(' ').next().unwrap().to_owned()
}

/// A short test of a user.
fn test(folder: &Folder, port: u16, more: &[&str]) -> Done {
    let host = format!("127.0.0.1:{port}");
    let args = ["test", &host, "-t", "0.2", "--upload", "-b", "10M", "--no-latency", "--archive", ":memory:"];
    Process::start(own(folder, &[&args, more].concat())).finish(TIMEOUT)
}

#[test]
fn a_server_is_remembered_and_another_one_in_its_place_is_refused() {
    let (user, owner, intruder) = (Folder::new(), Folder::new(), Folder::new());
    let first = server(&owner, 0, &[]);
    let (port, shown) = (first.port, fingerprint(&first));
    let met = test(&user, port, &["--tls", "--json"]);
    assert_eq!((met.code, met.json()["flows"].as_array().unwrap().len()), (Some(0), 1), "{met:?}");
    assert!(met.stderr.contains("is remembered from now on") && met.stderr.contains(&shown), "{met:?}");
    let again = test(&user, port, &["--tls"]);
    assert!(again.code == Some(0) && !again.stderr.contains("remembered"), "{again:?}");
    drop(first);
    // The same server after a restart has the same certificate.
    drop(server(&owner, port, &[]));
    let other = server(&intruder, port, &[]);
    let refused = test(&user, port, &["--tls"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let known = user.path().join("linerate").join("known-servers");
    for words in [&fingerprint(&other), "remove line 1 of", &known.display().to_string()] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
    // Whoever follows the advice is served.
    fs::write(&known, "").unwrap();
    assert_eq!(test(&user, port, &["--tls"]).code, Some(0));
}

#[test]
fn a_fingerprint_and_an_authority_decide_without_a_data_directory() {
    let (owner, nobody) = (Folder::new(), Folder::new());
    let server = server(&owner, 0, &[]);
    let shown = fingerprint(&server);
    let authority = owner.path().join("linerate").join("tls.pem").display().to_string();
    let without = |more: &[&str]| {
        let mut command = linerate();
        command.env_remove("XDG_DATA_HOME").env("HOME", "relative");
        let host = format!("127.0.0.1:{}", server.port);
        command.args(["test", &host, "-t", "0.2", "--upload", "-b", "10M", "--no-latency"]);
        Process::start({
            command.args(["--archive", ":memory:"]).args(more);
            command
        })
        .finish(TIMEOUT)
    };
    for trusted in [["--tls-fingerprint", &shown], ["--tls-ca", &authority]] {
        assert_eq!(without(&trusted).code, Some(0), "{trusted:?}: {:?}", without(&trusted));
    }
    let lost = without(&["--tls"]);
    assert!(lost.code == Some(2) && lost.stderr.contains("give --tls-fingerprint or --tls-ca"), "{lost:?}");
    let strangers = nobody.path().join("ca.pem");
    drop(self::server(&nobody, 0, &[]));
    fs::copy(nobody.path().join("linerate").join("tls.pem"), &strangers).unwrap();
    let refused = without(&["--tls-ca", &strangers.display().to_string()]);
    assert!(refused.code == Some(1) && refused.stderr.contains("not accepted"), "{refused:?}");
}

#[test]
fn a_plan_is_carried_out_over_encrypted_connections_and_only_so_by_these_agents() {
    let (folder, token) = token_file();
    let owner = Folder::new();
    let agents = [
        server(&owner, 0, &["--agent-token-file", &token]),
        server(&owner, 0, &["--agent-token-file", &token]),
    ];
    let plan = folder.file("plan.toml");
    let host = |name: &str, at: usize| {
        format!("[host.{name}]\naddress = \"127.0.0.1\"\nport = {}\n", agents[at].port)
    };
    let rest =
        "[flow.f]\nfrom = \"a\"\nto = \"b\"\n[test]\nduration = \"0.2s\"\nupload = true\nrate = \"10M\"\n";
    fs::write(&plan, host("a", 0) + &host("b", 1) + rest).unwrap();
    let run = |more: &[&str]| {
        let args = ["run", &plan, "--agent-token-file", &token, "--archive", ":memory:", "--json"];
        Process::start(own(&folder, &[&args, more].concat())).finish(TIMEOUT)
    };
    let refused = run(&[]);
    assert!(refused.code == Some(2) && refused.stderr.contains("over TLS only; give --tls"), "{refused:?}");
    let done = run(&["--tls"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let from = ["--from", &format!("127.0.0.1:{}", agents[1].port), "--agent-token-file", &token, "--tls"];
    let plain = ServeProcess::start(&[]);
    assert_eq!(test(&folder, plain.port, &from).code, Some(0));
}

#[test]
fn openssl_sees_tls_1_3_with_our_protocol_and_nothing_older() {
    let owner = Folder::new();
    let server = server(&owner, 0, &[]);
    let shown = fingerprint(&server);
    let connect = |version: &str| {
        let address = format!("127.0.0.1:{}", server.port);
        let mut client = Command::new("openssl")
            .args(["s_client", "-connect", &address, "-alpn", "linerate", version])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A preface, to which the server answers with its own.
        let mut preface = [0; 32];
        preface[..10].copy_from_slice(b"LINERATE\x02\x01");
        let _ = client.stdin.as_mut().unwrap().write_all(&preface);
        let mut printed = Vec::new();
        let mut part = [0; 4096];
        let mut out = client.stdout.take().unwrap();
        while !String::from_utf8_lossy(&printed).contains("LINERATE\u{2}\u{1}") {
            match out.read(&mut part).unwrap() {
                0 => break,
                count => printed.extend_from_slice(&part[..count]),
            }
        }
        let _ = client.kill();
        client.wait().unwrap();
        String::from_utf8_lossy(&printed).into_owned()
    };
    let printed = connect("-tls1_3");
    assert!(
        printed.contains("ALPN protocol: linerate") && printed.contains("LINERATE\u{2}\u{1}"),
        "{printed}"
    );
    let printed = connect("-tls1_2");
    assert!(!printed.contains("LINERATE") && printed.contains("no peer certificate"), "{printed}");
    // It finds the same fingerprint.
    let pem = owner.path().join("linerate").join("tls.pem");
    let found = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in", &pem.display().to_string()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout).trim().rsplit('=').next(), Some(&*shown));
}

#[test]
fn a_client_is_known_by_the_name_of_its_protocol_and_other_names_are_refused() {
    let owner = Folder::new();
    let server = server(&owner, 0, &[]);
    let offer = |names: &str| {
        let mut command = Command::new("openssl");
        let address = format!("127.0.0.1:{}", server.port);
        command.args(["s_client", "-connect", &address, "-alpn", names]).stdin(Stdio::null());
        Process::start(command).finish(TIMEOUT).stdout
    };
    // What a browser offers for a WebSocket, and for a fetch.
    for names in ["http/1.1", "h2,http/1.1"] {
        let printed = offer(names);
        assert!(printed.contains("ALPN protocol: http/1.1"), "{names}: {printed}");
    }
    let printed = offer("h2");
    assert!(printed.contains("no peer certificate"), "{printed}");
}

#[test]
fn what_is_wrong_with_the_certificate_of_a_server_is_said_before_it_listens() {
    let folder = Folder::new();
    let wrong = |more: &[&str]| {
        let args = ["serve", "-p", "0", "--archive", ":memory:"];
        Process::start(own(&folder, &[&args, more].concat())).finish(TIMEOUT)
    };
    for (more, words) in [
        (
            &["--tls-cert", "/none.pem", "--tls-key", "/none.key"][..],
            "--tls-cert: give --tls or --web with it",
        ),
        (&["--tls", "--tls-cert", "/none.pem", "--tls-key", "/none.key"], "--tls: cannot read /none.pem"),
    ] {
        let done = wrong(more);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{more:?}: {done:?}");
        assert!(!done.stderr.contains("listening"), "{more:?}: {done:?}");
    }
}

#[test]
fn the_owner_reads_what_became_of_a_changed_certificate() {
    let (owner, other, user) = (Folder::new(), Folder::new(), Folder::new());
    let running = server(&owner, 0, &[]);
    drop(server(&other, 0, &[]));
    let pem = |folder: &Folder| folder.path().join("linerate").join("tls.pem");
    let before = fingerprint(&running);
    let good = fs::read(pem(&owner)).unwrap();
    fs::write(pem(&owner), "junk").unwrap();
    assert_eq!(test(&user, running.port, &["--tls-fingerprint", &before]).code, Some(0));
    let told = |words: &str| eventually(words, || running.stderr().contains(words).then_some(()));
    told("the changed certificate is not used");
    fs::write(pem(&owner), fs::read(pem(&other)).unwrap()).unwrap();
    assert_eq!(test(&user, running.port, &["--tls-fingerprint", &before]).code, Some(1));
    told("the certificate has changed: certificate with the SHA-256 fingerprint");
    fs::write(pem(&owner), good).unwrap();
    assert_eq!(test(&user, running.port, &["--tls-fingerprint", &before]).code, Some(0));
}
