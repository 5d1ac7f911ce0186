//! A NATS server for one folder.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_runner::whole_file;
use linerate_sock::clock;
use linerate_sock::process::{PidFd, Signal};

use super::programs::{NATS_REMEDY, find_nats, nats_version, version_text};
use super::server_process::{ServerLog, ServerProcess, kill, process_with};
use super::{EnginePaths, LocalServerError, START_TIMEOUT, prepared_folder, unusable};

const PROGRAM: &str = "nats-server";
const CONFIG_FILE: &str = "nats.conf";
const PID_FILE: &str = "nats.pid";
const LOG_FILE: &str = "nats.log";
/// The oldest version that will do.
const OLDEST: ((u32, u32), &str) = ((2, 10), "2.10");
/// How long a server may take to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// How long a server may take for its greeting. Otherwise it is asked again.
const GREETING_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest greeting of a server, bytes.
const MAX_GREETING: u64 = 16 << 10;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How many ports are tried: another program can take a free one before the server does.
const PORTS: usize = 3;
/// What a server says whose port is taken.
const PORT_TAKEN: &str = "address already in use";
const RELOADED: &str = "Reloaded server configuration";
const NOT_RELOADED: &str = "Failed to reload server configuration: ";

/// A NATS server on this machine, on a port of 127.0.0.1. It ends when it is dropped.
#[derive(Debug)]
pub struct LocalNats {
    server: ServerProcess,
    program: PathBuf,
    log: ServerLog,
    port: u16,
}

impl LocalNats {
    /// Starts a server with its files `nats.*` in a folder, and waits until it accepts connections. Its port is that of
    /// the last start in this folder, unless another program has it now.
    ///
    /// `users_file` is a part of the server's configuration in a file of its own, usually `authorization { … }`. Without
    /// it everybody on this machine can connect. A server that an earlier process has left running in this folder is
    /// ended first.
    ///
    /// # Errors
    /// The program is missing or too old, a file cannot be used, or the server does not start. Nothing is left running
    /// then.
    pub fn start(
        folder: &Path,
        paths: &EnginePaths,
        users_file: Option<&Path>,
    ) -> Result<Self, LocalServerError> {
        let folder = prepared_folder(folder)?;
        let program = find_nats(paths)?;
        check_version(&program)?;
        let include = users_file.map(|file| include_line(&folder, file)).transpose()?.unwrap_or_default();
        end_left(&folder)?;
        let log = ServerLog::create(folder.join(LOG_FILE), PROGRAM)?;
        let config = folder.join(CONFIG_FILE);
        let mut last = port_of(&fs::read_to_string(&config).unwrap_or_default());
        let mut tries = 1;
        loop {
            let port = free_port(last.take()).map_err(|source| unusable(&folder, source))?;
            // Its name tells this server from another one on the port.
            let name = format!("linerate-{}-{port}", std::process::id());
            let text = config_text(&name, port, &include);
            whole_file(&config, |out| out.write_all(text.as_bytes()))
                .map_err(|source| unusable(&config, source))?;
            let mut command = Command::new(&program);
            command.arg("-c").arg(&config).arg("-P").arg(folder.join(PID_FILE)).current_dir(&folder);
            let server = ServerProcess::start(command, None, &log)?;
            // Ended by its destructor if it does not become ready.
            let mut started = Self { server, program: program.clone(), log: log.clone(), port };
            let until = clock::now() + START_TIMEOUT;
            match started.server.wait_until_ready(until, START_TIMEOUT, |_| greets(port, &name)) {
                Err(LocalServerError::Ended { output, .. })
                    if output.contains(PORT_TAKEN) && tries < PORTS =>
                {
                    tries += 1;
                }
                other => return other.map(|()| started),
            }
        }
    }

    /// The URL for clients on this machine. It contains no secret.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Makes the server read its users again, and waits until it has. Connections of users that are gone are closed.
    ///
    /// # Errors
    /// The server does not run, or refuses the file: it goes on with what it had then.
    pub fn reload(&self) -> Result<(), LocalServerError> {
        let before = self.log.length();
        let mut command = Command::new(&self.program);
        command.arg("--signal").arg(format!("reload={}", self.server.id())).stdin(Stdio::null());
        let sent =
            command.output().map_err(|source| super::programs::cannot_run(&self.program, None, source))?;
        if !sent.status.success() {
            let output = String::from_utf8_lossy(&sent.stderr).into_owned();
            return Err(LocalServerError::Reload(output.trim().into()));
        }
        let until = clock::now() + START_TIMEOUT;
        loop {
            let output = self.log.since(before);
            // A line may be half written.
            for line in output.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                if let Some((_, why)) = line.split_once(NOT_RELOADED) {
                    return Err(LocalServerError::Reload(why.trim().into()));
                }
                if line.contains(RELOADED) {
                    return Ok(());
                }
            }
            if self.server.is_gone() {
                return Err(LocalServerError::Reload("it has ended".into()));
            }
            if until.has_passed() {
                return Err(LocalServerError::Reload("it does not answer".into()));
            }
            clock::sleep_until(clock::now() + POLL_INTERVAL);
        }
    }

    /// Its number, to list it.
    pub(crate) fn process(&self) -> u32 {
        self.server.id()
    }

    /// Its messages if it has ended by itself.
    pub(crate) fn ended(&self) -> Option<&Path> {
        self.server.is_gone().then(|| self.server.messages())
    }
}

impl Drop for LocalNats {
    fn drop(&mut self) {
        self.server.end(|process, _| shut_down(process));
    }
}

fn check_version(program: &Path) -> Result<(), LocalServerError> {
    let output = version_text(program, None)?;
    let program = program.to_owned();
    match nats_version(&output) {
        Some((_, numbers)) if numbers >= OLDEST.0 => Ok(()),
        Some((found, _)) => {
            Err(LocalServerError::Old { program, found: found.into(), needed: OLDEST.1, remedy: NATS_REMEDY })
        }
        None => Err(LocalServerError::NoVersion { program, output: output.into() }),
    }
}

fn config_text(name: &str, port: u16, include: &str) -> String {
    format!(
        "# Written at each start of the fleet: changes are lost.\n\
         server_name: \"{name}\"\nhost: \"127.0.0.1\"\nport: {port}\nmax_payload: 1MB\n{include}"
    )
}

/// The port in a configuration that was written earlier.
fn port_of(config: &str) -> Option<u16> {
    config.lines().find_map(|line| line.strip_prefix("port: "))?.trim().parse().ok()
}

/// The line of the configuration that includes a file. The server joins its path to that of the folder, even if it
/// begins with a slash, so it is written from the folder on.
fn include_line(folder: &Path, file: &Path) -> Result<String, LocalServerError> {
    let whole = file.canonicalize().map_err(|source| unusable(file, source))?;
    let mut path = String::new();
    let inner = whole.strip_prefix(folder).ok();
    if inner.is_none() {
        let depth = folder.components().filter(|part| matches!(part, Component::Normal(_))).count();
        path = "../".repeat(depth);
    }
    let rest = inner.or_else(|| whole.strip_prefix("/").ok()).and_then(Path::to_str);
    match rest.filter(|rest| !rest.contains('"')) {
        Some(rest) => {
            // Writing to a string does not fail.
            let _ = write!(path, "{rest}");
            Ok(format!("include \"{path}\"\n"))
        }
        None => Err(unusable(file, io::Error::other("nats-server cannot read a file of this name"))),
    }
}

/// A port of this machine that no program has, the preferred one if possible.
fn free_port(preferred: Option<u16>) -> io::Result<u16> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let kept = preferred.and_then(|port| bind(port).ok());
    Ok(kept.map_or_else(|| bind(0), Ok)?.local_addr()?.port())
}

/// Whether the server of this name answers on a port.
fn greets(port: u16, name: &str) -> bool {
    let greeting = || {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connection = TcpStream::connect_timeout(&address, GREETING_TIMEOUT)?;
        connection.set_read_timeout(Some(GREETING_TIMEOUT))?;
        let mut line = Vec::new();
        for byte in io::BufReader::new(connection.take(MAX_GREETING)).bytes() {
            match byte? {
                b'\n' => break,
                other => line.push(other),
            }
        }
        io::Result::Ok(line)
    };
    let line = greeting().unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    line.starts_with("INFO ") && line.contains(&format!("\"{name}\""))
}

/// Asks a server to end; whether it has ended.
fn shut_down(process: &PidFd) -> bool {
    process.signal(Signal::Terminate).is_ok() && process.wait(clock::now() + SHUTDOWN_GRACE).unwrap_or(false)
}

/// Ends a server that an earlier process has left running with the files in this folder.
pub(super) fn end_left(folder: &Path) -> Result<(), LocalServerError> {
    let text = fs::read_to_string(folder.join(PID_FILE)).unwrap_or_default();
    let Ok(number) = text.trim().parse::<u32>() else { return Ok(()) };
    let Some((process, _)) = process_with(number, &folder.join(CONFIG_FILE)) else { return Ok(()) };
    if shut_down(&process) || kill(&process) {
        Ok(())
    } else {
        Err(LocalServerError::Stuck { program: PROGRAM, process: number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_included_from_the_folder_on() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let fleet = top.join("a/b");
        fs::create_dir_all(&fleet).unwrap();
        let (inside, outside) = (fleet.join("users.conf"), top.join("users.conf"));
        fs::write(&inside, "").unwrap();
        fs::write(&outside, "").unwrap();
        assert_eq!(include_line(&fleet, &inside).unwrap(), "include \"users.conf\"\n");
        let depth = fleet.components().count() - 1;
        let expected =
            format!("include \"{}{}\"\n", "../".repeat(depth), &outside.display().to_string()[1..]);
        assert_eq!(include_line(&fleet, &outside).unwrap(), expected);
        assert!(include_line(&fleet, &top.join("missing")).unwrap_err().to_string().contains("missing"));
    }

    #[test]
    fn the_port_of_the_last_start_is_found() {
        assert_eq!(port_of(&config_text("x", 4711, "")), Some(4711));
        assert_eq!(port_of(""), None);
    }
}
