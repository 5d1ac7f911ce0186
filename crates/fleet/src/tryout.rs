//! A whole fleet on one machine, for trying out: a coordinator in this process, and three agents.
//!
//! Everything is in one folder: the token, the description, the calendar with the archive, and the numbers of the
//! processes, so that what a killed coordinator leaves can be ended.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_control::{Token, TokenError};
use linerate_model::ForeignText;
use linerate_runner::{CancelToken, PidFile, PidFileError, whole_private_file};
use linerate_sock::process::{PidFd, Signal, is_running};
use linerate_sock::{clock, thread};
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::fleet_calendar::FleetCalendar;
use crate::fleet_file::{self, FleetFileError};
use crate::service::{FleetNotice, FleetService, FleetServiceConfig};

/// The agents of the fleet.
const HOSTS: [&str; 3] = ["one", "two", "three"];
/// How long an agent may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a coordinator may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const STATE_FILE: &str = "processes.json";
const PID_FILE: &str = "coordinator.pid";
const TOKEN_FILE: &str = "token";
/// What a fleet in the background says.
const LOG_FILE: &str = "fleet.log";
/// How often it is looked at whether a fleet is up.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How to start the fleet.
#[derive(Debug, Clone)]
pub struct TryOutConfig {
    /// This program, which is also started as `serve`.
    pub program: PathBuf,
    /// The folder of the fleet; it is created if it is missing.
    pub folder: PathBuf,
    /// Gets what a user should know, from any thread.
    pub notify: fn(&FleetNotice),
}

/// Why the fleet cannot be started or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryOutError {
    /// It runs already.
    #[error("the fleet in {} is up already; end it with `linerate fleet down`, or give another --dir", .0.display())]
    Up(PathBuf),
    /// It does not run.
    #[error("no fleet is up in {}; start one with `linerate fleet up`", .0.display())]
    NotUp(PathBuf),
    /// The folder cannot be used.
    #[error("the folder {} cannot be used: {source}; give another one with --dir", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An agent cannot be started.
    #[error("the agent '{host}' cannot be started: {why}")]
    Agent {
        /// Its name.
        host: &'static str,
        /// Why.
        why: String,
    },
    /// Its process ended, or is not ready in time.
    #[error("the fleet did not come up: {0}")]
    NotStarted(ForeignText),
    /// The coordinator does not end.
    #[error(
        "process {process} did not end within {} s; look at what it does, or end it with `kill -9 {process}`",
        STOP_TIMEOUT.as_secs()
    )]
    Stuck {
        /// Its number.
        process: u32,
    },
    /// The token cannot be made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The description of the fleet is wrong.
    #[error(transparent)]
    File(#[from] FleetFileError),
    /// The calendar cannot be used.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

/// The processes of a fleet.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FleetProcesses {
    coordinator: u32,
    agents: Vec<u32>,
}

/// A fleet on this machine. It ends when it is dropped.
#[derive(Debug)]
pub struct TryOut {
    folder: PathBuf,
    agents: Vec<Child>,
    service: FleetService,
    _pid: PidFile,
}

impl TryOut {
    /// The folder of the fleet if none is given.
    ///
    /// # Errors
    /// This user has no home directory.
    pub fn default_folder() -> Result<PathBuf, FleetError> {
        Ok(linerate_archive::data_file("fleet")?)
    }

    /// The archive with the calendar of the fleet in a folder.
    #[must_use]
    pub fn archive(folder: &Path) -> PathBuf {
        folder.join("archive.sqlite")
    }

    /// Starts the agents and opens the calendar.
    ///
    /// # Errors
    /// It is up already, or a part of it cannot be started; nothing is left running then.
    pub fn start(config: &TryOutConfig) -> Result<Self, TryOutError> {
        let folder = whole_path(&config.folder)?;
        let unusable = |source| TryOutError::Folder { folder: folder.clone(), source };
        let pid = PidFile::create(&folder.join(PID_FILE)).map_err(|error| match error {
            PidFileError::Taken => TryOutError::Up(folder.clone()),
            PidFileError::System(source) => TryOutError::Folder { folder: folder.clone(), source },
        })?;
        end_leftovers(&folder);
        let secret = linerate_runner::run_name().and_then(|one| Ok(one + &linerate_runner::run_name()?));
        let secret = secret.map_err(FleetError::from)?;
        let token_file = folder.join(TOKEN_FILE);
        whole_private_file(&token_file, secret.as_bytes()).map_err(unusable)?;
        let mut agents = Agents(Vec::new());
        let mut text = String::from("name = \"try-out\"\nzone = \"UTC\"\nset_up = \"2s\"\nsettle = \"1s\"\n");
        for host in HOSTS {
            let (child, port) = start_agent(&config.program, &token_file, host)?;
            agents.0.push(child);
            text += &format!("\n[host.{host}]\naddress = \"127.0.0.1\"\nport = {port}\n");
        }
        // All tests go over loopback, so only one of them may run at a time.
        text += "\n[nic.loopback]\nhosts = [\"one\", \"two\", \"three\"]\n";
        text += "\n[mesh.all]\nevery = \"2m\"\ntest = { upload = true, duration = \"2s\" }\nalarm = { failure = true }\n";
        let file = folder.join("fleet.toml");
        fs::write(&file, text).map_err(unusable)?;
        let processes = FleetProcesses {
            coordinator: std::process::id(),
            agents: agents.0.iter().map(Child::id).collect(),
        };
        let document = serde_json::to_vec(&processes).unwrap_or_default();
        whole_private_file(&folder.join(STATE_FILE), &document).map_err(unusable)?;
        let service = FleetService::open(FleetServiceConfig {
            archive: Some(Self::archive(&folder).display().to_string()),
            inventory: fleet_file::load(&file)?,
            token: Token::new(&secret)?,
            tls: None,
            broker: None,
            notify: config.notify,
        })?;
        let agents = std::mem::take(&mut agents.0);
        Ok(Self { folder, agents, service, _pid: pid })
    }

    /// What users of the fleet in a folder can do; `ends` is what ends it.
    #[must_use]
    pub fn introduction(folder: &Path, ends: &str) -> String {
        let folder = folder.display();
        format!(
            "three agents and their coordinator are up in {folder}; {ends} ends them. See linerate fleet status, and \
             linerate mesh --archive {folder}/archive.sqlite"
        )
    }

    /// Starts `fleet up` of a program as a process that goes on, and waits until the fleet is up.
    ///
    /// # Errors
    /// It is not up in time, or the process says why it ended.
    pub fn start_detached(config: &TryOutConfig) -> Result<(), TryOutError> {
        let folder = whole_path(&config.folder)?;
        let unusable = |source| TryOutError::Folder { folder: folder.clone(), source };
        let log = folder.join(LOG_FILE);
        whole_private_file(&log, b"").map_err(unusable)?;
        let output = fs::OpenOptions::new().append(true).open(&log).map_err(unusable)?;
        let mut command = Command::new(&config.program);
        command.args(["fleet", "up", "--dir"]).arg(&folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let mut coordinator = command.spawn().map_err(unusable)?;
        let archive = Self::archive(&folder).display().to_string();
        let until = clock::now() + START_TIMEOUT;
        loop {
            let own = processes(&folder).is_some_and(|all| all.coordinator == coordinator.id());
            if own
                && FleetCalendar::open(Some(&archive)).is_ok_and(|mut calendar| calendar.inventory().is_ok())
            {
                return Ok(());
            }
            let ended = coordinator.try_wait().map_err(unusable)?.is_some();
            if ended || until.has_passed() {
                end(&mut [coordinator]);
                let said = fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
                return Err(TryOutError::NotStarted(last.trim_start_matches("error: ").into()));
            }
            clock::sleep_until(clock::now() + POLL_INTERVAL);
        }
    }

    /// Carries out the calendar until `stop` is cancelled.
    ///
    /// # Errors
    /// The calendar cannot be written at the end.
    pub fn run(&mut self, stop: &CancelToken) -> Result<(), FleetError> {
        self.service.run(stop, &mut |_| ())
    }
}

impl Drop for TryOut {
    fn drop(&mut self) {
        end(&mut self.agents);
        // A folder that is gone has none.
        let _ = fs::remove_file(self.folder.join(STATE_FILE));
    }
}

/// Agents that are ended if not all of them can be started.
struct Agents(Vec<Child>);

impl Drop for Agents {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn end(children: &mut [Child]) {
    for child in children.iter_mut() {
        // Fails if it has ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Starts an agent on a free port of this machine; the port that it listens on.
fn start_agent(program: &Path, token: &Path, host: &'static str) -> Result<(Child, u16), TryOutError> {
    let failed = |why: String| TryOutError::Agent { host, why };
    let mut child = Command::new(program)
        .args([
            "serve",
            "--bind",
            "127.0.0.1",
            "--port",
            "0",
            "--no-settings",
            "--json",
            "--agent-token-file",
        ])
        .arg(token)
        .env("LINERATE_ARCHIVE", token.with_file_name(format!("{host}.sqlite")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (send, port) = std::sync::mpsc::channel();
    let out = child.stdout.take();
    // Reads on afterwards, so that the agent is never blocked by its output.
    let read = move || {
        for line in out.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let Ok(line) = line else { return };
            if let Some(port) = listening_port(&line) {
                let _ = send.send(port);
            }
        }
    };
    let started =
        thread::spawn("agent-output", read).map_err(|error| failed(error.to_string())).and_then(|_| {
            port.recv_timeout(START_TIMEOUT)
                .map_err(|_| failed(format!("it does not listen after {} s", START_TIMEOUT.as_secs())))
        });
    match started {
        Ok(port) => Ok((child, port)),
        Err(error) => {
            end(std::slice::from_mut(&mut child));
            Err(error)
        }
    }
}

/// The port in the line of JSON with which a server says that it listens.
fn listening_port(line: &str) -> Option<u16> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    (event.get("event")? == "listening").then(|| event.get("port")?.as_u64()?.try_into().ok())?
}

/// Ends the fleet in a folder, also what a killed coordinator has left.
///
/// # Errors
/// None is up there, or it does not end.
pub fn take_down(folder: &Path) -> Result<(), TryOutError> {
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let processes = processes(folder).ok_or_else(|| TryOutError::NotUp(folder.to_owned()))?;
    let coordinator = processes.coordinator;
    if is_ours(coordinator, folder, true)
        && let Ok(process) = PidFd::open(coordinator)
    {
        // Fails if it has ended in the meantime.
        let _ = process.signal(Signal::Terminate);
        if !process.wait(clock::now() + STOP_TIMEOUT).unwrap_or(false) {
            return Err(TryOutError::Stuck { process: coordinator });
        }
    }
    end_leftovers(folder);
    Ok(())
}

/// Whether a fleet is up in a folder.
#[must_use]
pub fn is_up(folder: &Path) -> bool {
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    processes(folder).is_some_and(|processes| is_ours(processes.coordinator, folder, true))
}

/// The path of a folder from the root, so that its processes are known by it; it is created if it is missing.
fn whole_path(folder: &Path) -> Result<PathBuf, TryOutError> {
    let made = fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
    made.map_err(|source| TryOutError::Folder { folder: folder.to_owned(), source })
}

fn processes(folder: &Path) -> Option<FleetProcesses> {
    serde_json::from_slice(&fs::read(folder.join(STATE_FILE)).ok()?).ok()
}

/// Ends agents whose coordinator was killed.
fn end_leftovers(folder: &Path) {
    let Some(processes) = processes(folder) else { return };
    for agent in processes.agents.iter().filter(|agent| is_ours(**agent, folder, false)) {
        if let Ok(process) = PidFd::open(*agent) {
            // Fails if it has ended in the meantime.
            let _ = process.signal(Signal::Terminate);
            let _ = process.wait(clock::now() + STOP_TIMEOUT);
        }
    }
    // What does not end is known to the next try.
    if !processes.agents.iter().any(|agent| is_ours(*agent, folder, false)) {
        let _ = fs::remove_file(folder.join(STATE_FILE));
    }
}

/// Whether a number still belongs to the process of the fleet that had it: an agent has the token file of the folder on
/// its command line, a coordinator has locked the folder.
fn is_ours(process: u32, folder: &Path, coordinator: bool) -> bool {
    if coordinator {
        let held = fs::File::open(folder.join(PID_FILE))
            .is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
        return held && is_running(process);
    }
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let token = folder.join(TOKEN_FILE);
    line.split(|byte| *byte == 0).any(|argument| argument == token.as_os_str().as_encoded_bytes())
}
