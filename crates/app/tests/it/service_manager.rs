//! A server under a service manager: readiness, reloads, the watchdog, and sockets that it was given.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Folder, Process, ServeProcess, TIMEOUT, eventually, linerate, signal, started_by};

/// What a service manager reads.
struct Manager {
    folder: Folder,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let folder = Folder::new();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { folder, socket }
    }

    /// The server as a service of this manager.
    fn service(&self, args: &[&str]) -> Command {
        let mut command = linerate();
        command.args(["serve", "-p", "0", "--json"]).args(args);
        command.env("NOTIFY_SOCKET", self.folder.path().join("notify"));
        command
    }

    /// The next message.
    fn message(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message of the service");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// The next message that is no heartbeat.
    fn state(&self) -> String {
        std::iter::repeat_with(|| self.message()).find(|message| !message.contains("WATCHDOG=1")).unwrap()
    }
}

fn has_line(message: &str, line: &str) -> bool {
    message.lines().any(|one| one == line)
}

#[test]
fn the_manager_is_told_of_readiness_reloads_and_the_end() {
    let manager = Manager::new();
    let config = manager.folder.path().join("linerate.toml");
    std::fs::write(&config, "limit-time = 5\n").unwrap();
    let server = ServeProcess::from(manager.service(&["--config", config.to_str().unwrap()]));
    let ready = manager.state();
    assert!(has_line(&ready, "READY=1") && ready.contains(&format!(":{}", server.port)), "{ready}");
    server.signal("HUP");
    let reloading = manager.state();
    assert!(has_line(&reloading, "RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(has_line(&manager.state(), "READY=1"), "the reload has ended");
    std::fs::write(&config, "limit-time = \"x\"\n").unwrap();
    server.signal("HUP");
    assert!(has_line(&manager.state(), "RELOADING=1"));
    let ready = manager.state();
    assert!(has_line(&ready, "READY=1") && ready.contains("has mistakes"), "{ready}");
    server.signal("TERM");
    assert!(has_line(&manager.state(), "STOPPING=1"));
    assert_eq!(server.finish(TIMEOUT).code, Some(143));
}

#[test]
fn a_watched_server_sends_heartbeats_while_it_is_idle() {
    let manager = Manager::new();
    let mut command = manager.service(&[]);
    command.env("WATCHDOG_USEC", "100000");
    let server = ServeProcess::from(command);
    for _ in 0..5 {
        std::iter::repeat_with(|| manager.message()).find(|message| has_line(message, "WATCHDOG=1"));
    }
    // One that hangs sends none.
    server.signal("STOP");
    manager.socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut bytes = [0; 64];
    while manager.socket.recv(&mut bytes).is_ok() {}
    server.signal("CONT");
    manager.socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert!(has_line(&manager.message(), "WATCHDOG=1"));
}

#[test]
fn a_manager_may_have_an_abstract_socket() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("linerate-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut command = linerate();
    command.args(["serve", "-p", "0", "--json"]).env("NOTIFY_SOCKET", format!("@{name}"));
    let _server = ServeProcess::from(command);
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).unwrap();
    assert!(has_line(&String::from_utf8_lossy(&bytes[..length]), "READY=1"));
}

#[test]
fn a_manager_that_does_not_read_holds_nobody_up() {
    let manager = Manager::new();
    let filler = UnixDatagram::unbound().unwrap();
    filler.set_nonblocking(true).unwrap();
    while filler.send_to(b"STATUS=full", manager.folder.path().join("notify")).is_ok() {}
    for watchdog in ["20000", "0"] {
        let mut command = manager.service(&[]);
        command.env("WATCHDOG_USEC", watchdog);
        let server = ServeProcess::from(command);
        let mut health = linerate();
        health.args(["health", &format!("127.0.0.1:{}", server.port)]);
        let health = Process::start(health).finish(TIMEOUT);
        assert_eq!(health.code, Some(0), "{health:?}");
        server.signal("TERM");
        assert_eq!(server.finish(TIMEOUT).code, Some(143));
    }
}

/// The command of a server that finds `sockets` from descriptor 3 on, as a service manager passes them. A shell moves
/// its standard input and output there; the events of the server go to descriptor 2 then.
fn with_sockets(sockets: [OwnedFd; 2], args: &[&str]) -> Command {
    let mut inner = linerate();
    inner.arg("serve").args(args);
    let script = "exec 3<&0 4<&1 0</dev/null 1>&2; export LISTEN_FDS=2 LISTEN_PID=$$; exec \"$@\"";
    let mut command = started_by("sh", &["-c", script, "sh"], &inner);
    let [first, second] = sockets;
    command.stdin(Stdio::from(first)).stdout(Stdio::from(second));
    command
}

fn pair() -> (u16, [OwnedFd; 2]) {
    let (tcp, udp) = (0..32)
        .find_map(|_| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            UdpSocket::bind(tcp.local_addr().unwrap()).ok().map(|udp| (tcp, udp))
        })
        .expect("a port that is free for both");
    (tcp.local_addr().unwrap().port(), [tcp.into(), udp.into()])
}

#[test]
fn the_sockets_of_the_manager_are_served_instead_of_the_port() {
    let (port, sockets) = pair();
    let mut server = with_sockets(sockets, &["--port", "1"]).stderr(Stdio::piped()).spawn().unwrap();
    for more in [&["--upload"][..], &["-u", "--download"]] {
        let mut command = linerate();
        let host = format!("127.0.0.1:{port}");
        command.args(["test", &host, "-t", "0.2", "-b", "10M", "--no-latency", "-q"]).args(more);
        let measured = Process::start(command).finish(TIMEOUT);
        assert_eq!(measured.code, Some(0), "{more:?}: {measured:?}");
    }
    server.kill().unwrap();
    let output = server.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("listening on 127.0.0.1:{port}")) && !said.contains(":1 "), "{said}");
}

#[test]
fn a_socket_that_nothing_serves_is_named() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    let (_, [tcp, own]) = pair();
    drop(own);
    let ended = with_sockets([tcp, udp.into()], &[]).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains(&address.to_string()) && said.contains("ListenStream="), "{said}");
}

#[test]
fn speed_tests_at_the_pages_are_answered_when_the_port_is_the_managers() {
    use std::io::{Read, Write};
    let (_, sockets) = pair();
    let folder = Folder::new();
    let log = folder.path().join("log");
    let mut command = with_sockets(sockets, &["--port", "1", "--web", "127.0.0.1:0"]);
    let mut server = command.stderr(Stdio::from(std::fs::File::create(&log).unwrap())).spawn().unwrap();
    let address = eventually("it has pages", || {
        let text = std::fs::read_to_string(&log).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("pages at http://"))?;
        Some(line.trim_end_matches('/').to_owned())
    });
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(b"GET /__down?bytes=1000 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    while !reply.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&reply));
        reply.extend_from_slice(&part[..count]);
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let reply = String::from_utf8_lossy(&reply);
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("Content-Length: 1000\r\n"), "{reply}");
}

/// A file that stands for the journal.
struct JournalFile {
    folder: Folder,
}

impl JournalFile {
    fn new() -> Self {
        Self { folder: Folder::new() }
    }

    /// Starts the program, whose user has a data directory of its own, with its errors in the journal.
    fn start(&self, args: &[&str]) -> std::process::Child {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::File::create(self.folder.path().join("journal")).unwrap();
        let found = file.metadata().unwrap();
        let mut command = linerate();
        command.args(args).env("JOURNAL_STREAM", format!("{}:{}", found.dev(), found.ino()));
        command.env("XDG_DATA_HOME", self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::from(file)).spawn().unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("journal")).unwrap()
    }
}

#[test]
fn lines_in_a_journal_begin_with_their_priority() {
    let journal = JournalFile::new();
    let mut server = journal.start(&["serve", "-p", "0", "--tls"]);
    let port = eventually("it listens", || {
        let text = journal.text();
        let (_, rest) = text.split_once("<6>listening on [::]:")?;
        Some(rest.split_once(" (")?.0.to_owned())
    });
    // What the parts of the program say by themselves has a priority too.
    std::fs::write(journal.folder.path().join("linerate").join("tls.pem"), "cut").unwrap();
    let mut client = linerate();
    client.args(["test", "127.0.0.1", "-p", &port, "--tls", "-t", "0.2", "--upload", "--no-latency", "-q"]);
    Process::start(client).finish(TIMEOUT);
    let is_named =
        |line: &str| line.starts_with("<3>") && line.contains("the changed certificate is not used");
    eventually("it names the certificate", || journal.text().lines().any(is_named).then_some(()));
    server.kill().unwrap();
    server.wait().unwrap();
    let text = journal.text();
    assert!(text.lines().all(|line| line.starts_with('<')), "{text}");
    assert_eq!(journal.start(&["serve", "--prot", "0"]).wait().unwrap().code(), Some(2));
    let text = journal.text();
    assert!(text.contains("--prot") && text.lines().all(|line| line.starts_with("<3>")), "{text}");
}

/// The value that a unit, or a drop-in for it, gives a key last.
fn unit_value(file: &str, key: &str) -> Option<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter_map(|line| line.strip_prefix(key)).next_back().map(str::to_owned)
}

#[test]
fn the_unit_keeps_its_undo_journals_and_does_not_remove_those_of_root() {
    let of_unit = |key: &str| unit_value("linerate.service", key).unwrap();
    let folder = of_unit("RuntimeDirectory=");
    assert_ne!(folder, "linerate", "that is root's, and it would be removed with the service");
    assert_eq!(of_unit("RuntimeDirectoryPreserve="), "yes");
    assert_eq!(of_unit("Environment=LINERATE_RUN="), format!("/run/{folder}"));
    // As root, it shares root's folder, and systemd neither makes nor removes it.
    let of_lab = |key: &str| unit_value("lab.conf", key).unwrap();
    assert_eq!(of_lab("RuntimeDirectory="), "");
    assert_eq!(of_lab("Environment=LINERATE_RUN="), "/run/linerate");
}

#[test]
fn a_guardian_survives_the_signals_of_a_watchdog_and_obeys_the_journal_of_its_agent() {
    use std::io::Read;
    let folder = Folder::new();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = linerate_sock::netns::cookie().expect("the kernel numbers its namespaces");
    let journal = folder.path().join(format!("{namespace}.journal"));
    // The interface does not exist: what becomes of the entry is visible without rights of root.
    let lines = [
        format!(r#"{{"entry":"opening","format":1,"boot_id":"{}","pid":1}}"#, boot.trim()),
        r#"{"entry":"change","setting":"mtu","interface":{"name":"gone7","index":2000000000},"found":"1500","ours":"9000"}"#
            .to_owned(),
    ];
    std::fs::write(&journal, lines.join("\n") + "\n").unwrap();
    let mut command = linerate();
    command.arg("guard-settings").arg(folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guardian = command.spawn().unwrap();
    guardian.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    for name in ["ABRT", "QUIT", "TERM", "INT", "HUP"] {
        signal(guardian.id(), name);
    }
    crate::support::pause(Duration::from_millis(200));
    assert_eq!(guardian.try_wait().unwrap(), None, "it ended before its agent");
    assert!(journal.exists());
    drop(guardian.stdin.take());
    let ended = guardian.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("the agent was killed: mtu of gone7: the interface is gone"), "{said}");
    assert!(!journal.exists(), "{said}");
}
