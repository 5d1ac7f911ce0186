//! The options of `serve --web` for other addresses than that of this host.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Done, Folder, Process, ServeProcess, TIMEOUT, linerate};

/// A server with pages, whose user has a data directory of its own.
fn pages(folder: &Folder, more: &[&str]) -> std::process::Command {
    let mut command = linerate();
    command
        .env("XDG_DATA_HOME", folder.path())
        .args(["serve", "-p", "0", "--archive", ":memory:"])
        .args(more);
    command
}

fn refused(folder: &Folder, more: &[&str]) -> Done {
    Process::start(pages(folder, more)).finish(TIMEOUT)
}

#[test]
fn a_self_signed_certificate_keeps_its_fingerprint_over_a_restart() {
    let folder = Folder::new();
    let fingerprint = || {
        let server =
            ServeProcess::from(pages(&folder, &["--json", "--web", "0.0.0.0:0", "--tls-self-signed"]));
        let printed = server.stderr();
        assert!(printed.contains("pages at https://0.0.0.0:"), "{printed}");
        assert!(printed.contains("make a token with: linerate token add"), "{printed}");
        let line = printed.lines().find(|line| line.contains("SHA-256 fingerprint")).unwrap().to_owned();
        line.split("fingerprint ").nth(1).unwrap().to_owned()
    };
    let first = fingerprint();
    assert_eq!(first.split(':').next().map(str::len), Some(2), "{first}");
    assert_eq!(fingerprint(), first);
}

#[test]
fn what_others_reach_needs_a_token_or_tls_and_wrong_files_are_named() {
    let folder = Folder::new();
    let address = ["--web", "0.0.0.0:0"];
    for (more, message) in [
        (&[][..], "neither a token nor TLS"),
        (&["--public"], "neither a token nor TLS"),
        (&["--tls-cert", "/none.pem", "--tls-key", "/none.key"], "--tls-cert: cannot read /none.pem"),
        (&["--tls-cert", "/none.pem"], "--tls-key"),
        (&["--web-target", "192.0.2.1/24"], "'--web-target <HOST|NETWORK>'"),
        (&["--tls-self-signed", "--tls-cert", "/none.pem", "--tls-key", "/none.key"], "cannot be used with"),
    ] {
        let done = refused(&folder, &[&address, more].concat());
        assert!(done.code == Some(2) && done.stderr.contains(message), "{more:?}: {done:?}");
    }
}

/// What a page of this server is answered.
fn post(base: &str, path: &str, body: &Value) -> Value {
    let address = base.trim_start_matches("http://").trim_end_matches('/');
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nX-Linerate: 1\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    serde_json::from_str(reply.split("\r\n\r\n").nth(1).unwrap()).unwrap_or_else(|_| panic!("{reply}"))
}

#[test]
fn pages_are_answered_as_the_command_line_is() {
    let folder = Folder::new();
    let server = ServeProcess::from(pages(&folder, &["--json", "--web", "127.0.0.1:0"]));
    let printed = server.stderr();
    let base = printed.lines().find_map(|line| line.strip_prefix("pages at ")).unwrap().to_owned();
    let document = |args: &[&str]| {
        let mut command = linerate();
        command.args(args).arg("--json");
        let done = Process::start(command).finish(TIMEOUT);
        serde_json::from_str::<Value>(&done.stdout).unwrap_or_else(|_| panic!("{args:?}: {done:?}"))
    };
    for (fields, args) in [
        (json!({ "link": "1G" }), "--link 1G"),
        (
            json!({ "link": "1G..10G", "rtt": "5ms..20ms", "loss": "0..0.01%", "need": "8h:2TB", "target": "500M" }),
            "--link 1G..10G --rtt 5ms..20ms --loss 0..0.01% --need 8h:2TB --target 500M",
        ),
        (
            json!({ "link": "10G", "rtt": "1ms", "mtu": 9000, "ipv6": true, "vlan": 1, "encap": "vxlan4", "lag": 4,
                "streams": 8, "congestion": "reno", "no_timestamps": true, "window": "4M", "rmem": "6M", "wmem": "4M",
                "cpu": "3G:10000:2:4", "pcie": "8G:4", "disk": "500MB/s", "distance": "100", "transfer": "1G",
                "offered": "5G", "burst": "1M", "burst_rate": "40G" }),
            "--link 10G --rtt 1ms --mtu 9000 --ipv6 --vlan 1 --encap vxlan4 --lag 4 --streams 8 --congestion reno \
             --no-timestamps --window 4M --rmem 6M --wmem 4M --cpu 3G:10000:2:4 --pcie 8G:4 --disk 500MB/s \
             --distance 100 --transfer 1G --offered 5G --burst 1M --burst-rate 40G",
        ),
        (json!({ "link": "1G", "udp": true, "length": 1000 }), "--link 1G --udp --length 1000"),
    ] {
        let wanted =
            document(&std::iter::once("envelope").chain(args.split_whitespace()).collect::<Vec<_>>());
        assert_eq!(post(&base, "/api/v1/envelope", &fields), wanted, "{args}");
    }
    for (fields, args) in [
        (json!({ "rate": "966.5M", "link": "1G", "mtu": 1500 }), "--rate 966.5M --link 1G --mtu 1500"),
        (
            json!({ "rate": "941M", "duration": "10s", "bytes": "1.1G", "retransmits": 3, "cwnd": "1M", "calls": "10k",
                "length": "128K", "cpu": "23%", "mss": 1448, "mtu": 1500, "rtt": "21ms", "distance": 100,
                "counted_by": "sender", "loss": "0.01%", "streams": 2, "congestion": "cubic", "window": "2M",
                "encap": "gre4", "vlan": 1, "ipv6": true, "no_timestamps": true }),
            "--rate 941M --duration 10s --bytes 1.1G --retransmits 3 --cwnd 1M --calls 10k --length 128K --cpu 23% \
             --mss 1448 --mtu 1500 --rtt 21ms --distance 100 --counted-by sender --loss 0.01% --streams 2 \
             --congestion cubic --window 2M --encap gre4 --vlan 1 --ipv6 --no-timestamps",
        ),
        (
            json!({ "rate": "900M", "pps": "80k", "packets": "800k", "lost": 5, "udp": true, "length": 1472, "link": "1G" }),
            "--rate 900M --pps 80k --packets 800k --lost 5 --udp --length 1472 --link 1G",
        ),
    ] {
        let wanted = document(&std::iter::once("check").chain(args.split_whitespace()).collect::<Vec<_>>());
        assert_eq!(post(&base, "/api/v1/check", &fields), wanted, "{args}");
    }
}

#[test]
fn pages_offer_tests_of_their_browser_only_where_the_server_takes_them() {
    let folder = Folder::new();
    let session = |more: &[&str]| {
        let server =
            ServeProcess::from(pages(&folder, &[&["--json", "--web", "127.0.0.1:0"], more].concat()));
        let printed = server.stderr();
        let base = printed.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        let address = base.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("GET /api/v1/session HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
        (server.port, serde_json::from_str::<Value>(body).unwrap())
    };
    let (port, offered) = session(&[]);
    assert_eq!(offered["browser_test"]["port"], port);
    assert!(session(&["--without", "iperf3"]).1["browser_test"].is_object());
    assert!(session(&["--without", "browser"]).1["browser_test"].is_null());
}
