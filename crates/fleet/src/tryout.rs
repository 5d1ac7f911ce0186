//! A whole fleet on one machine, for trying out: a coordinator in this process, three agents, and the servers that they
//! need.
//!
//! Everything is in one folder: the token and the keys, the description, the calendar with the archive, what the agents
//! keep, and the numbers of the processes, so that what a killed coordinator leaves can be ended.

mod child;
mod enrolled_agents;
mod error;
mod processes;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_control::Token;
use linerate_runner::{CancelToken, PidFile, PidFileError, whole_private_file};
use linerate_sock::clock;
use linerate_sock::process::{PidFd, Signal};

use crate::engines::{EnginePaths, LocalPostgres, effective_user};
use crate::error::FleetError;
use crate::fleet_file;
use crate::inventory::Inventory;
use crate::service::{FleetNotice, FleetService, FleetServiceConfig};
use child::{HostProcesses, last_message, message_file};
use enrolled_agents::TryOutBroker;
pub use error::{TryOutError, TryOutWarning};
use processes::{ProcessesFile, end_leftovers, keep_location, kept_location, processes};
pub use processes::{is_up, take_down};

/// The name of the fleet.
const NAME: &str = "try-out";
/// The hosts of the fleet.
const HOSTS: [&str; 3] = ["one", "two", "three"];
/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a fleet may take to come up. At its first start, PostgreSQL makes its data, and waits for the disk.
const UP_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a coordinator may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const PID_FILE: &str = "coordinator.pid";
const TOKEN_FILE: &str = "token";
const DESCRIPTION_FILE: &str = "fleet.toml";
/// What a fleet in the background says.
const LOG_FILE: &str = "fleet.log";
/// The folder of root's fleet if none is given. PostgreSQL does not run as root, and its user cannot enter root's home.
const ROOT_FOLDER: &str = "/var/lib/linerate-fleet";
/// How often it is looked at whether a fleet is up.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How to start the fleet.
#[derive(Debug, Clone)]
pub struct TryOutConfig {
    /// This program, which is also started as `serve` and `agent run`.
    pub program: PathBuf,
    /// The folder of the fleet; it is created if it is missing.
    pub folder: PathBuf,
    /// Where the programs of PostgreSQL and NATS are. If this is absent, both are not used: the calendar is an SQLite
    /// file, and the coordinator reaches the hosts itself.
    pub engines: Option<EnginePaths>,
    /// Gets what a user should know, from any thread.
    pub notify: fn(&FleetNotice),
}

/// A fleet on this machine. It ends when it is dropped.
// The fields are dropped in this order: PostgreSQL ends after those that use it.
#[derive(Debug)]
pub struct TryOut {
    hosts: HostProcesses,
    service: FleetService,
    broker: Option<TryOutBroker>,
    postgres: Option<LocalPostgres>,
    /// Servers whose end was reported.
    reported: Vec<&'static str>,
    notify: fn(&FleetNotice),
    processes: ProcessesFile,
    _pid: PidFile,
}

impl TryOut {
    /// The folder of the fleet if none is given.
    ///
    /// # Errors
    /// This user has no home directory.
    pub fn default_folder() -> Result<PathBuf, FleetError> {
        if effective_user() == Some(0) {
            return Ok(PathBuf::from(ROOT_FOLDER));
        }
        Ok(linerate_archive::data_file("fleet")?)
    }

    /// Where the archive with the calendar of the fleet in a folder is; absent if there was never one. That in
    /// PostgreSQL can only be used while the fleet is up.
    #[must_use]
    pub fn archive(folder: &Path) -> Option<String> {
        kept_location(folder)
    }

    /// Starts everything, and opens the calendar.
    ///
    /// # Errors
    /// It is up already, or a part of it cannot be started; nothing is left running then.
    pub fn start(config: &TryOutConfig) -> Result<Self, TryOutError> {
        check_engines(config.engines.as_ref())?;
        let folder = &whole_path(&config.folder)?;
        let unusable = |source| TryOutError::Folder { folder: folder.clone(), source };
        let pid = lock(folder)?;
        end_leftovers(folder)?;
        let mut processes = ProcessesFile::create(folder)?;
        let start_postgres = |paths| LocalPostgres::start(folder, paths);
        let postgres = config.engines.as_ref().map(start_postgres).transpose()?;
        processes.update(|all| all.postgres = postgres.as_ref().map(LocalPostgres::process))?;
        let start_broker = |paths| TryOutBroker::start(folder, paths);
        let mut broker = config.engines.as_ref().map(start_broker).transpose()?;
        processes.update(|all| all.nats = broker.as_ref().map(|broker| broker.nats.process()))?;
        let token = new_token(folder)?;
        let mut hosts = HostProcesses::default();
        let inventory = start_servers(config, folder, &mut hosts, &mut processes)?;
        let file = || folder.join("archive.sqlite").display().to_string();
        let archive = postgres.as_ref().map_or_else(file, LocalPostgres::url);
        keep_location(folder, &archive).map_err(unusable)?;
        let service = FleetService::open(FleetServiceConfig {
            archive: Some(archive.clone()),
            inventory: inventory.clone(),
            token,
            tls: None,
            broker: broker.as_ref().map(TryOutBroker::for_coordinator),
            notify: config.notify,
        })?;
        let enrolled = broker.as_mut().map(|broker| broker.enroll(&archive)).transpose()?;
        for (host, enrollment) in enrolled.into_iter().flatten() {
            let port = inventory.host(host)?.port;
            let agent = hosts.enrolled(&config.program, folder, (host, &enrollment), port)?;
            processes.update(|all| all.agents.push(agent))?;
        }
        let (reported, notify) = (Vec::new(), config.notify);
        Ok(Self { hosts, service, broker, postgres, reported, notify, processes, _pid: pid })
    }

    /// What users of a fleet can do, which runs in the foreground of a terminal or not.
    #[must_use]
    pub fn introduction(config: &TryOutConfig, in_foreground: bool) -> String {
        let folder = &config.folder;
        let (parts, commands): (_, &[&str]) = match config.engines {
            Some(_) => (
                "three agents, their coordinator, PostgreSQL and NATS",
                &["fleet status", "agent list", "mesh"],
            ),
            None => ("three agents and their coordinator", &["fleet status", "mesh"]),
        };
        // Without the option, the default folder is used, unless this variable names an archive.
        let is_default = Self::default_folder().is_ok_and(|default| default == *folder)
            && std::env::var_os("LINERATE_ARCHIVE").is_none();
        let option = if is_default { String::new() } else { format!(" --dir {}", shell_word(folder)) };
        // Indented lines are not wrapped, so that they can be copied.
        let line = |command: &str| format!("\n    linerate {command}{option}");
        let see: String = commands.iter().map(|command| line(command)).collect();
        let end = if in_foreground { " Ctrl-C".to_owned() } else { line("fleet down") };
        format!("{parts} are up in {}. See:{see}\nTo end them:{end}", folder.display())
    }

    /// Starts `fleet up` of a program as a process that goes on, and waits until the fleet is up.
    ///
    /// # Errors
    /// It is not up in time, or the process says why it ended.
    pub fn start_detached(config: &TryOutConfig) -> Result<(), TryOutError> {
        check_engines(config.engines.as_ref())?;
        let folder = whole_path(&config.folder)?;
        if is_up(&folder) {
            return Err(TryOutError::Up(folder));
        }
        let unusable = |source| TryOutError::Folder { folder: folder.clone(), source };
        let log = folder.join(LOG_FILE);
        let mut command = Command::new(&config.program);
        command.args(["fleet", "up", "--dir"]).arg(&folder).args(engine_options(config.engines.as_ref()));
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(message_file(&log).map_err(unusable)?);
        let mut coordinator = command.spawn().map_err(unusable)?;
        let until = clock::now() + UP_TIMEOUT;
        loop {
            if processes(&folder).is_some_and(|all| all.coordinator == coordinator.id() && all.ready) {
                return Ok(());
            }
            let ended = coordinator.try_wait().map_err(unusable)?.is_some();
            if ended || until.has_passed() {
                end(&mut coordinator);
                // One that somebody else has started meanwhile ends what is left itself.
                if let Ok(_pid) = lock(&folder) {
                    end_leftovers(&folder)?;
                }
                return Err(TryOutError::NotStarted(last_message(&log).into()));
            }
            clock::sleep_until(clock::now() + POLL_INTERVAL);
        }
    }

    /// Carries out the calendar until `stop` is cancelled.
    ///
    /// # Errors
    /// The calendar cannot be written at the end.
    pub fn run(&mut self, stop: &CancelToken) -> Result<(), FleetError> {
        let Self { hosts, service, broker, postgres, reported, notify, processes, .. } = self;
        service.run(stop, &mut |service| {
            if service.leads() {
                // If it cannot be written, those who wait for it say so.
                let _ = processes.note_ready();
            }
            let mut warnings = hosts.ended();
            let engines = [
                ("PostgreSQL", postgres.as_ref().and_then(LocalPostgres::ended)),
                ("nats-server", broker.as_ref().and_then(|broker| broker.nats.ended())),
            ];
            for (name, log) in engines {
                let Some(log) = log.filter(|_| !reported.contains(&name)) else { continue };
                reported.push(name);
                warnings.push(TryOutWarning::Ended { name: name.to_owned(), log: log.to_owned() });
            }
            warnings.extend(broker.as_mut().and_then(TryOutBroker::reload_changed));
            warnings.into_iter().for_each(|warning| notify(&FleetNotice::TryOut(warning)));
        })
    }
}

/// Locks the folder for the coordinator in this process.
fn lock(folder: &Path) -> Result<PidFile, TryOutError> {
    PidFile::create(&folder.join(PID_FILE)).map_err(|error| match error {
        PidFileError::Taken => TryOutError::Up(folder.to_owned()),
        PidFileError::System(source) => TryOutError::Folder { folder: folder.to_owned(), source },
    })
}

/// Checks that the programs are there, before anything is made.
fn check_engines(engines: Option<&EnginePaths>) -> Result<(), TryOutError> {
    let Some(engines) = engines else { return Ok(()) };
    if !cfg!(feature = "postgres") {
        return Err(TryOutError::NoPostgres);
    }
    let missing = engines.missing();
    if missing.is_empty() { Ok(()) } else { Err(TryOutError::Missing(missing)) }
}

/// The options of `fleet up` for the servers.
fn engine_options(engines: Option<&EnginePaths>) -> Vec<PathBuf> {
    let Some(EnginePaths { postgres_bin, nats_server }) = engines else { return vec!["--simple".into()] };
    let given = [("--postgres-bin", postgres_bin), ("--nats-server", nats_server)];
    let given = given.into_iter().filter_map(|(option, path)| Some([option.into(), path.clone()?]));
    given.flatten().collect()
}

/// Makes the token of the hosts.
fn new_token(folder: &Path) -> Result<Token, TryOutError> {
    let secret = linerate_runner::run_name().and_then(|one| Ok(one + &linerate_runner::run_name()?));
    let secret = secret.map_err(FleetError::from)?;
    let unusable = |source| TryOutError::Folder { folder: folder.to_owned(), source };
    whole_private_file(&folder.join(TOKEN_FILE), secret.as_bytes()).map_err(unusable)?;
    Ok(Token::new(&secret)?)
}

/// Starts the servers of all hosts, and describes the fleet in its file.
fn start_servers(
    config: &TryOutConfig,
    folder: &Path,
    hosts: &mut HostProcesses,
    processes: &mut ProcessesFile,
) -> Result<Inventory, TryOutError> {
    let file = folder.join(DESCRIPTION_FILE);
    // Agents may still have calendars with the ports of the last start.
    let earlier = fleet_file::load(&file).ok();
    let mut text = format!("name = \"{NAME}\"\nzone = \"UTC\"\nset_up = \"2s\"\nsettle = \"1s\"\n");
    for host in HOSTS {
        let preferred = earlier.as_ref().and_then(|fleet| Some(fleet.host(host).ok()?.port));
        let (server, port) = hosts.serve(&config.program, folder, host, preferred)?;
        processes.update(|all| all.servers.push(server))?;
        text += &format!("\n[host.{host}]\naddress = \"127.0.0.1\"\nport = {port}\n");
    }
    // All tests go over loopback, so only one of them may run at a time.
    text += "\n[nic.loopback]\nhosts = [\"one\", \"two\", \"three\"]\n";
    text += "\n[mesh.all]\nevery = \"2m\"\ntest = { upload = true, duration = \"2s\" }\nalarm = { failure = true }\n";
    fs::write(&file, text).map_err(|source| TryOutError::Folder { folder: folder.to_owned(), source })?;
    Ok(fleet_file::load(&file)?)
}

/// Ends a coordinator that did not start its fleet.
fn end(coordinator: &mut Child) {
    if matches!(coordinator.try_wait(), Ok(None))
        && let Ok(process) = PidFd::open(coordinator.id())
    {
        let _ = process.signal(Signal::Terminate);
        let _ = process.wait(clock::now() + STOP_TIMEOUT);
    }
    // Fails if it has ended.
    let _ = coordinator.kill();
    let _ = coordinator.wait();
}

/// The path of a folder from the root, so that its processes are known by it; it is created if it is missing.
fn whole_path(folder: &Path) -> Result<PathBuf, TryOutError> {
    let made = fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
    made.map_err(|source| TryOutError::Folder { folder: folder.to_owned(), source })
}

/// A path as a word of a command for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
