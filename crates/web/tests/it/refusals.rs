//! Requests that are wrong, hostile, or from the page of somebody else.

use std::io::{Read, Write};

use linerate_web::{Access, WebConfig};

use crate::client::{TestSite, config};

const RUNS: &str = "/api/v1/runs";

#[test]
fn the_page_of_another_site_changes_nothing() {
    let site = TestSite::open();
    let body = r#"{"to":"this host"}"#;
    let post = |headers: &str| {
        let length = body.len();
        site.send(&format!(
            "POST {RUNS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n\r\n{body}"
        ))
    };
    // A form, a script without leave, a script of another port of this host.
    for headers in [
        "Content-Type: application/json",
        "Content-Type: text/plain\r\nOrigin: http://evil.example",
        "Content-Type: application/json\r\nX-Linerate: 1\r\nOrigin: http://evil.example",
        "Content-Type: application/json\r\nX-Linerate: 1\r\nOrigin: http://localhost:1",
        "Content-Type: application/json\r\nX-Linerate: 1\r\nOrigin: null",
        "Content-Type: application/json\r\nX-Linerate: 1\r\nSec-Fetch-Site: cross-site",
    ] {
        assert_eq!(post(headers).problem(403)["type"], "/problems/foreign-page", "{headers}");
    }
    assert_eq!(site.get(RUNS).json()["runs"].as_array().unwrap().len(), 0);
    let own = "Content-Type: application/json\r\nX-Linerate: 1\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-origin";
    assert_eq!(post(own).status, 201);
}

#[test]
fn a_name_that_somebody_gave_to_our_address_is_not_answered() {
    let site = TestSite::open();
    for host in ["evil.example", "localhost.evil.example:80", "evil@localhost", ""] {
        let reply = site.send(&format!("GET {RUNS} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
        assert_eq!(reply.problem(421)["type"], "/problems/foreign-host", "{host}");
    }
    let absolute = site.send(&format!(
        "GET http://evil.example{RUNS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    ));
    absolute.problem(421);
}

#[test]
fn every_mistake_names_its_field() {
    let site = TestSite::open();
    for (body, field) in [
        (r#"{"test":{}}"#, None),
        (r#"{"to":7}"#, Some("to")),
        (r#"{"to":"a/b"}"#, Some("to")),
        (r#"{"to":"http://a/"}"#, Some("to")),
        (r#"{"to":"a:0"}"#, Some("to")),
        (r#"{"to":"a\nb"}"#, Some("to")),
        (r#"{"to":"-h"}"#, Some("to")),
        (r#"{"to":"\u001b[31m"}"#, Some("to")),
        (r#"{"to":"a","tset":{}}"#, Some("tset")),
        (r#"{"to":"a","test":{"traffic":{"streams":0}}}"#, Some("test.traffic.streams")),
        (r#"{"to":"a","test":{"traffic":{"streams":"4"}}}"#, Some("test.traffic.streams")),
        (r#"{"to":"a","test":{"traffic":{"steams":4}}}"#, Some("test.traffic.steams")),
        (r#"{"to":"a","test":{"socket":{"mss_bytes":1}}}"#, Some("test.socket.mss_bytes")),
        (r#"{"to":"a","name":"a/b"}"#, Some("name")),
        (r#"{"to":"a","notes":{"k":""}}"#, Some("notes.k")),
        ("nonsense", None),
        ("", None),
    ] {
        let problem = site.post(RUNS, body).problem(422);
        assert_eq!(problem["field"].as_str(), field, "{body}: {problem}");
    }
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("parts=maybe", "parts"),
        ("tagret=x", "tagret"),
        ("since=soon", "since"),
        ("after=x", "after"),
    ] {
        assert_eq!(site.get(&format!("{RUNS}?{query}")).problem(422)["field"], field, "{query}");
    }
    let unknown = site.get(&format!("{RUNS}?tagret=x")).problem(422);
    assert!(unknown["detail"].as_str().unwrap().contains("tagret"), "{unknown}");
    site.get("/api/v1/compare/view?before=a").problem(422);
    site.get("/api/v1/compare/view?before=/etc/passwd&after=b").problem(422);
    // The folder of the service has a file of this name, which is not the visitor's to read or to know.
    site.get("/api/v1/compare/view?before=Cargo.toml&after=b").problem(404);
    assert_eq!(site.get("/api/v1/runs/abcd/export/pdf").problem(404)["field"], "format");
}

#[test]
fn what_does_not_exist_is_a_problem_document_or_a_page() {
    let site = TestSite::open();
    let long = format!("/api/v1/runs/{}", "a".repeat(5000));
    for path in [
        "/api/v1/nothing",
        "/api/",
        "/api/v1/runs/abcd",
        "/api/v1/runs/latest/view",
        "/api/v1/runs/%ff%fe",
        "/api/v1/runs/..%2f..%2fetc/view",
        &long,
    ] {
        let problem = site.get(path).problem(404);
        assert!(problem["detail"].as_str().unwrap().len() < 300, "{problem}");
    }
    assert_eq!(site.post("/api/v1/hosts", "{}").problem(405)["type"], "/problems/no-such-method");
    for path in ["/nothing", "/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/runs/a/b"] {
        let reply = site.get(path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.body.starts_with("<!doctype html>") && !reply.body.contains("root:"), "{path}");
    }
    site.post("/api/v1/runs/abcd/cancel", "").problem(404);
    site.write("DELETE", "/api/v1/runs/abcd", "", "").problem(404);
}

#[test]
fn large_and_half_requests_cost_nothing() {
    let site = TestSite::open();
    let large = format!(r#"{{"to":"{}"}}"#, "x".repeat(300_000));
    assert_eq!(site.post(RUNS, &large).problem(413)["limit"], 256 << 10);
    let head = site.send(&format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(300_000)));
    assert_eq!(head.status, 431, "{head:?}");
    let text = site.send(&format!(
        "POST {RUNS} HTTP/1.1\r\nHost: localhost\r\nX-Linerate: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
    ));
    text.problem(415);
    // Whoever says nothing does not keep others from being answered.
    let silent: Vec<_> = (0..100).map(|_| site.connect()).collect();
    let mut half = site.connect();
    half.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    assert_eq!(site.get("/healthz").body, "ok\n");
    drop((silent, half));
}

#[test]
fn what_is_no_http_is_refused_and_the_service_goes_on() {
    let site = TestSite::open();
    for noise in ["\u{0}\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "SSH-2.0-x\r\n"] {
        let mut stream = site.connect();
        stream.write_all(noise.as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        assert!(
            bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 4"),
            "{:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    assert_eq!(site.get("/healthz").status, 200);
}

#[test]
fn every_response_forbids_what_pages_do_not_need() {
    let site = TestSite::open();
    let port = site.server.port();
    for path in [
        "/",
        "/nothing",
        "/assets/web.js",
        "/assets/worker.js",
        "/api/v1/runs",
        "/api/v1/nothing",
        "/metrics",
    ] {
        let reply = site.get(path);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!policy.contains("script-src 'unsafe"), "{path}: {policy}");
        // The only other address is the port of the server, for tests from the browser.
        let elsewhere = format!("connect-src 'self' http://localhost:{port} ws://localhost:{port}");
        assert!(policy.ends_with(&elsewhere) && policy.matches("http").count() == 1, "{path}: {policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("cross-origin-opener-policy"), Some("same-origin"), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn a_test_of_this_hosts_own_server_does_not_wait_for_itself() {
    let site = TestSite::open();
    let body = format!(
        r#"{{"to":"{}","test":{{"traffic":{{"duration_ns":100000000,"upload":true}}}}}}"#,
        site.server
    );
    let other = body.replace(&site.server.to_string(), "this host");
    // Others wait after it, and before one that comes later.
    let ids = [&body, &other, &body, &other].map(|body| site.start_run(body));
    for id in ids {
        assert_eq!(site.ended(&id)["result"]["run"]["outcome"], "completed");
    }
}

#[test]
fn files_of_pages_are_compressed_for_whoever_takes_it_and_are_fetched_once() {
    let site = TestSite::open();
    let get = |headers: &str| {
        site.send(&format!(
            "GET /assets/web.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n\r\n"
        ))
    };
    let plain = get("Accept: */*");
    assert_eq!((plain.body.as_str(), plain.header("content-encoding")), ("// script", None));
    let packed = get("Accept-Encoding: br, gzip;q=0.8");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let tag = packed.header("etag").unwrap();
    assert_ne!(Some(tag), plain.header("etag"));
    let again = get(&format!("Accept-Encoding: gzip\r\nIf-None-Match: {tag}"));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
}

#[test]
fn tests_go_only_where_the_server_allows_it() {
    let targets = ["ams-1.example.net", "127.0.0.0/8"].map(|text| text.parse().unwrap()).to_vec();
    let site = TestSite::with(WebConfig { targets, ..config(Access::default(), None) });
    for to in ["192.0.2.1", "ams-2.example.net", "[::1]:5201", "localhost", "0x7f000001", "127.1"] {
        let problem = site.post(RUNS, &format!(r#"{{"to":"{to}"}}"#)).problem(403);
        assert_eq!(problem["type"], "/problems/target-not-allowed", "{to}");
        assert_eq!(problem["field"], "to", "{to}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("may only go to ams-1.example.net, 127.0.0.0/8"), "{detail}");
    }
    for to in ["127.0.0.1:9", "AMS-1.example.net:9", "this host"] {
        assert_eq!(site.post(RUNS, &format!(r#"{{"to":"{to}"}}"#)).status, 201, "{to}");
    }
}

#[test]
fn hosts_that_would_be_refused_are_not_suggested() {
    let open = TestSite::open();
    open.ended(&open.start_run(r#"{"to":"localhost:9"}"#));
    let known = |site: &TestSite| site.get("/api/v1/hosts").json()["known"].as_array().unwrap().len();
    assert_eq!(known(&open), 1);
    for (allowed, suggested) in [("ams-1.example.net", 0), ("localhost", 1)] {
        let archive = Some(TestSite::archive_in(&open.folder));
        let targets = vec![allowed.parse().unwrap()];
        let site = TestSite::with(WebConfig { targets, ..config(Access::default(), archive) });
        assert_eq!(known(&site), suggested, "{allowed}");
    }
}
