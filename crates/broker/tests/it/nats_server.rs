//! A broker for a test.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_sock::clock;
use tempfile::TempDir;

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/nats-server");

/// A `nats-server` with a folder of its own at a port of 127.0.0.1. It is killed at the end.
pub(crate) struct NatsServer {
    pub(crate) folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts a server. Files that `config` includes must be written by `prepare`.
    pub(crate) fn start(config: &str, prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let mut server = Self { folder, port: 0, process: None };
        for _ in 0..20 {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            server.configure(config);
            // Another test may take the port in between.
            if server.try_run() {
                return server;
            }
        }
        panic!("nats-server does not start: {}", server.log());
    }

    /// A server that everybody may use.
    pub(crate) fn open() -> Self {
        Self::start("", |_| ())
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Writes another configuration, for the next start or [`Self::reload`].
    pub(crate) fn configure(&self, config: &str) {
        let config = format!("listen: \"127.0.0.1:{}\"\n{config}\n", self.port);
        fs::write(self.folder.path().join("nats.conf"), config).unwrap();
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Makes the server read its configuration again.
    pub(crate) fn reload(&self) {
        self.signal("HUP");
    }

    /// Sends a signal to the server.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the server again at the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.try_run(), "{}", self.log());
    }

    fn try_run(&mut self) -> bool {
        let mut server = Command::new(program());
        server.arg("-c").arg(self.folder.path().join("nats.conf"));
        server.arg("-l").arg(self.folder.path().join("nats.log"));
        server.stdout(Stdio::null()).stderr(Stdio::null());
        let process = server.spawn().unwrap_or_else(|error| {
            panic!("{} cannot be started: {error}; scripts/nats-server.sh installs it", program().display())
        });
        let process = self.process.insert(process);
        let until = clock::now() + Duration::from_secs(60);
        while process.try_wait().unwrap().is_none() && !until.has_passed() {
            let mut greeting = [0; 5];
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port))
                && stream.read_exact(&mut greeting).is_ok()
                && &greeting == b"INFO "
                && process.try_wait().unwrap().is_none()
            {
                return true;
            }
            clock::sleep_until(clock::now() + Duration::from_millis(20));
        }
        self.kill();
        false
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("nats.log")).unwrap_or_default()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> PathBuf {
    match std::env::var_os("LINERATE_NATS_SERVER") {
        Some(program) => program.into(),
        None if Path::new(PEER).exists() => PEER.into(),
        None => "nats-server".into(),
    }
}
