//! `linerate token`, and a running service that uses what it writes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Done, Folder, Process, ServeProcess, TIMEOUT, eventually, linerate};

fn token(folder: &Folder, words: &str) -> Done {
    let mut command = linerate();
    command.arg("token").args(words.split_whitespace()).args(["--tokens", &folder.file("tokens")]);
    Process::start(command).finish(TIMEOUT)
}

fn pages(folder: &Folder, more: &[&str]) -> (ServeProcess, String) {
    let mut command = linerate();
    command.args(["serve", "-p", "0", "--json", "--web", "127.0.0.1:0", "--archive"]);
    command.arg(folder.file("runs.db")).args(more);
    let server = ServeProcess::from(command);
    let printed = server.stderr();
    let line = printed.lines().find_map(|line| line.strip_prefix("pages at http://")).unwrap();
    let address = line.trim_end_matches('/').to_owned();
    (server, address)
}

/// The status of a request with a token.
fn status(address: &str, token: &str, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Linerate: 1\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    reply.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn a_token_is_made_listed_used_and_removed() {
    let folder = Folder::new();
    let made = token(&folder, "add laptop --ability view");
    assert_eq!((made.code, made.stdout.lines().count()), (Some(0), 1), "{made:?}");
    let secret = made.stdout.trim().to_owned();
    assert!(secret.starts_with("lr_") && !made.stderr.contains(&secret), "{made:?}");
    let (_server, address) = pages(&folder, &["--tokens", &folder.file("tokens")]);
    assert_eq!(status(&address, &secret, "GET", "/api/v1/runs"), "200");
    assert_eq!(status(&address, &secret, "DELETE", "/api/v1/runs/latest"), "403");

    // The running service notices what is added and removed.
    let admin = token(&folder, "add desk --ability admin").stdout.trim().to_owned();
    assert_eq!(status(&address, &admin, "DELETE", "/api/v1/runs/latest"), "404");
    let listed = token(&folder, "list").stdout;
    assert!(listed.contains("laptop  view") && listed.contains("desk    admin"), "{listed}");
    assert!(!listed.contains(&admin) && !listed.contains(&secret), "{listed}");
    assert_eq!(token(&folder, "remove laptop").code, Some(0));
    assert_eq!(status(&address, &secret, "GET", "/api/v1/runs"), "401");
    assert_eq!(status(&address, &admin, "GET", "/api/v1/runs"), "200");
}

#[test]
fn mistakes_name_the_culprit_and_the_remedy() {
    let folder = Folder::new();
    assert_eq!(token(&folder, "add laptop --ability run").code, Some(0));
    let path = folder.file("tokens");
    for (words, message) in [
        ("add laptop --ability view", "linerate token remove laptop"),
        ("add lap/top --ability view", "'lap/top' is no name for a token"),
        ("add wall --ability all", "admin"),
        ("add wall", "--ability"),
        ("remove wall", "linerate token list"),
    ] {
        let done = token(&folder, words);
        assert!(done.code == Some(2) && done.stderr.contains(message), "{words}: {done:?}");
    }
    let serve = |tokens: &str| {
        let mut command = linerate();
        command.args(["serve", "-p", "0", "--web", "127.0.0.1:0", "--tokens", tokens]);
        Process::start(command).finish(TIMEOUT)
    };
    let refused = |done: Done, message: &str| {
        assert!(done.code == Some(2) && done.stderr.contains(message), "{message}: {done:?}");
    };
    refused(serve(&folder.file("tokns")), "make its first token with: linerate token add");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    refused(serve(&path), &format!("chmod 600 {path}"));
    refused(token(&folder, "list"), &format!("chmod 600 {path}"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let damaged = std::fs::read_to_string(&path).unwrap().replace(" run ", " fly ");
    std::fs::write(&path, damaged).unwrap();
    refused(serve(&path), &format!("{path}:3: 'fly' is no ability"));
}

#[test]
fn the_key_of_shared_links_is_private_and_is_replaced() {
    let folder = Folder::new();
    let rotate = || {
        let mut command = linerate();
        command.env("XDG_DATA_HOME", folder.path()).args(["token", "rotate-shares"]);
        let done = Process::start(command).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        let file = folder.path().join("linerate/web-share.key");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::read_to_string(file).unwrap()
    };
    assert_ne!(rotate(), rotate());
}

#[test]
fn the_owner_is_told_who_has_changed_something_and_tokens_may_end() {
    let folder = Folder::new();
    let run = token(&folder, "add robot --ability run --days 30").stdout.trim().to_owned();
    assert_eq!(token(&folder, "add other --ability run --days 0").code, Some(2));
    let listed = token(&folder, "list").stdout;
    let (head, row) = listed.split_once('\n').unwrap();
    assert!(head.ends_with("expires") && !row.contains("never") && !row.contains("over"), "{listed}");
    let (server, address) = pages(&folder, &["--tokens", &folder.file("tokens")]);
    assert_eq!(status(&address, &run, "DELETE", "/api/v1/runs/none"), "403");
    assert_eq!(status(&address, &run, "GET", "/api/v1/runs"), "200");
    let body = r#"{"to":"127.0.0.1:9","test":{"traffic":{"duration_ns":100000000}}}"#;
    let mut stream = TcpStream::connect(&address).unwrap();
    let length = body.len();
    let request = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Linerate: 1\r\n\
         Authorization: Bearer {run}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    let location = reply.lines().find_map(|line| line.strip_prefix("location: ")).unwrap().trim().to_owned();
    let line = format!("127.0.0.1 with the token robot: POST /api/v1/runs ({location})");
    eventually("the owner is told", || server.stderr().contains(&line).then_some(()));
    // What has changed nothing is not told.
    assert!(!server.stderr().contains("DELETE") && !server.stderr().contains("GET"), "{}", server.stderr());
}
