//! A service for a test, and a visitor that writes requests byte by byte, so that invalid ones can be sent too.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_control::{ControlError, Server, ServerConfig, ServerHandle};
use linerate_report::html::Assets;
use linerate_web::{Access, PlanSetup, WebAssets, WebConfig, WebHandle, WebServer};
use serde_json::Value;

/// How long a busy machine may take for anything.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A server with its pages and an empty archive.
pub(crate) struct TestSite {
    pub(crate) address: SocketAddr,
    pub(crate) server: SocketAddr,
    pages: Option<WebHandle>,
    switch: Arc<ServerHandle>,
    serving: Option<JoinHandle<Result<(), ControlError>>>,
    pub(crate) folder: tempfile::TempDir,
}

impl TestSite {
    pub(crate) fn open() -> Self {
        Self::start(Access::default())
    }

    pub(crate) fn start(access: Access) -> Self {
        Self::with(config(access, None))
    }

    /// With an archive of its own, unless the configuration has one.
    pub(crate) fn with(config: WebConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = config.archive.clone().unwrap_or_else(|| Self::archive_in(&folder));
        let addresses = vec!["127.0.0.1:0".parse().unwrap()];
        // With tests of browsers, which pages offer.
        let foreign = ServerConfig::others_at_home();
        let server = Server::bind(ServerConfig { addresses, foreign, ..ServerConfig::default() }).unwrap();
        let pages = WebServer::bind(WebConfig {
            archive: Some(archive),
            share_key: Some(folder.path().join("share.key")),
            ..config
        })
        .unwrap();
        let (address, server_address) = (pages.address(), server.addresses()[0]);
        let pages = pages.start(server.own_runs(), server.handover()).unwrap();
        let switch = Arc::new(ServerHandle::new().unwrap());
        let handle = Arc::clone(&switch);
        let serving = std::thread::spawn(move || server.run(handle, |_| ()));
        Self { address, server: server_address, pages: Some(pages), switch, serving: Some(serving), folder }
    }

    /// The archive of a site that is not configured with another one.
    pub(crate) fn archive_in(folder: &tempfile::TempDir) -> String {
        folder.path().join("runs.db").to_str().unwrap().to_owned()
    }

    /// Sends bytes as they are, and reads the whole response.
    pub(crate) fn send(&self, request: &str) -> HttpReply {
        let mut stream = self.connect();
        // The service may answer and close before it has read everything.
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        HttpReply::parse(&bytes)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> HttpReply {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    /// A request that changes something, as a page of the service sends it.
    pub(crate) fn write(&self, method: &str, path: &str, headers: &str, body: &str) -> HttpReply {
        let length = body.len();
        self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Linerate: 1\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> HttpReply {
        self.write("POST", path, "", body)
    }

    /// Starts a short test and returns its id.
    pub(crate) fn start_run(&self, body: &str) -> String {
        let reply = self.post("/api/v1/runs", body);
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// Opens an event stream.
    pub(crate) fn stream(&self, path: &str) -> EventStreamReader {
        let mut stream = self.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        EventStreamReader { path: path.to_owned(), lines: BufReader::new(stream).lines() }
    }

    /// The messages of an event stream until one of this kind, as (kind, data).
    pub(crate) fn watch(&self, path: &str, last: &str) -> Vec<(String, Value)> {
        let mut stream = self.stream(path);
        let mut messages = vec![stream.next()];
        while messages.last().is_some_and(|(kind, _)| kind != last) {
            messages.push(stream.next());
        }
        messages
    }

    /// Waits for the end of a run and returns its status.
    pub(crate) fn ended(&self, id: &str) -> Value {
        self.watch(&format!("/api/v1/runs/{id}/live"), "end");
        self.get(&format!("/api/v1/runs/{id}")).json()
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        self.pages.take();
        self.switch.turn_off();
        let served = self.serving.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(served, Some(Ok(Ok(())))), "{served:?}");
    }
}

pub(crate) fn config(access: Access, archive: Option<String>) -> WebConfig {
    WebConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        access,
        tls: None,
        names: Vec::new(),
        share_key: None,
        archive,
        targets: Vec::new(),
        plans: PlanSetup::default(),
        notify: |_| (),
        assets: WebAssets {
            script: "// script",
            worker: "// worker",
            style: "/* style */",
            report: Assets { script: "", style: "" },
        },
    }
}

/// Reads an event stream.
pub(crate) struct EventStreamReader {
    path: String,
    lines: Lines<BufReader<TcpStream>>,
}

impl EventStreamReader {
    /// The next message, as (kind, data).
    pub(crate) fn next(&mut self) -> (String, Value) {
        let mut kind = String::new();
        for line in &mut self.lines {
            let line = line.unwrap();
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (kind, serde_json::from_str(data).unwrap());
            }
        }
        panic!("{}: the stream has ended", self.path)
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpReply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        Self { status, head: head.to_owned(), body: if chunked { joined(body) } else { body.to_owned() } }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The problem document of a refused request.
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        problem
    }
}

/// A body without the sizes of its chunks.
fn joined(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        out.push_str(&rest[..size.min(rest.len())]);
        body = rest.get(size + 2..).unwrap_or("");
    }
    out
}
