//! A PostgreSQL server for one folder.
//!
//! It listens on a Unix socket only, in a folder that nobody but its user and root can enter, so it asks for no password.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_sock::clock;
use linerate_sock::process::{PidFd, is_running};
use twox_hash::XxHash64;

use super::programs::{find_postgres, postgres_major, version_text};
use super::server_process::{ServerLog, ServerProcess, kill, process_with};
use super::server_user::{ServerUser, effective_user};
use super::{EnginePaths, LocalServerError, prepared_folder, unusable};

const PROGRAM: &str = "PostgreSQL";
/// The data, in the folder of the fleet.
const DATA_FOLDER: &str = "postgres";
/// The data while it is made. It has its own name only when it is complete.
const UNFINISHED_FOLDER: &str = "postgres.part";
const LOG_FILE: &str = "postgres.log";
/// The file in the data with the number of the server's process, and its state.
const PID_FILE: &str = "postmaster.pid";
/// The role that owns everything.
const ROLE: &str = "linerate";
/// The database. Every server has it, so it does not have to be made.
const DATABASE: &str = "postgres";
/// The number in the name of the socket. It is no port of the network.
const SOCKET_NUMBER: u16 = 5432;
/// Longest path of a socket, bytes: Linux allows 107, macOS 103.
const MAX_SOCKET_PATH: usize = 103;
/// How long initdb may take. It waits for the disk.
const CREATE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a server may take to end its transactions, with SIGINT, and without ending them, with SIGQUIT.
const SHUTDOWN_STEPS: [(&str, Duration); 2] =
    [("INT", Duration::from_secs(20)), ("QUIT", Duration::from_secs(5))];
/// What a new server says while processes of a killed one have not noticed yet that it is gone.
const EARLIER_PROCESSES: &str = "pre-existing shared memory block";
/// How long a server may take until it accepts connections. After a crash it first has the disk confirm each of its thousand
/// files.
const START_TIMEOUT: Duration = Duration::from_secs(120);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// A PostgreSQL server on this machine, with its data in a folder. It ends when it is dropped, and the data stays.
#[derive(Debug)]
pub struct LocalPostgres {
    server: ServerProcess,
    programs: PostgresPrograms,
    socket: SocketFolder,
}

impl LocalPostgres {
    /// Starts a server with its data in `folder/postgres` and its messages in `folder/postgres.log`, and waits until it
    /// accepts connections. The data is made at the first start. If root calls this, the server runs as the user
    /// `postgres`, else `nobody`. A server that an earlier process has left running in this folder is ended first.
    ///
    /// # Errors
    /// The programs are missing or are of another version than the data, the folder cannot be used, or the server does
    /// not start. Nothing is left running then.
    pub fn start(folder: &Path, paths: &EnginePaths) -> Result<Self, LocalServerError> {
        let folder = prepared_folder(folder)?;
        let data = folder.join(DATA_FOLDER);
        let user = ServerUser::of_data(&data)?;
        let kept = data_version(&data)?;
        let bin = find_postgres(paths, kept.as_deref())?;
        let programs = PostgresPrograms { bin, user };
        programs.check(&data, kept.as_deref())?;
        if let Some(user) = &programs.user {
            user.check_access(&programs.postgres(), &folder)?;
        }
        end_left(&folder)?;
        let log = ServerLog::create(folder.join(LOG_FILE), PROGRAM)?;
        if kept.is_none() {
            programs.create_data(&folder, &log)?;
        }
        let until = clock::now() + START_TIMEOUT;
        loop {
            let socket = SocketFolder::create(&data, programs.user.as_ref())?;
            let path = socket.socket();
            let server = programs.serve(&data, &socket, &log)?;
            // Ended by its destructor if it does not become ready.
            let mut started = Self { server, programs: programs.clone(), socket };
            let ready = |process| is_ready(&data, process) && UnixStream::connect(&path).is_ok();
            match started.server.wait_until_ready(until, START_TIMEOUT, ready) {
                Err(LocalServerError::Ended { output, .. })
                    if output.contains(EARLIER_PROCESSES) && !until.has_passed() =>
                {
                    clock::sleep_until(clock::now() + RETRY_INTERVAL);
                }
                other => return other.map(|()| started),
            }
        }
    }

    /// The URL of the database. It contains no secret, and is the same after the next start in this folder.
    #[must_use]
    pub fn url(&self) -> String {
        let mut host = String::new();
        for byte in self.socket.path.as_os_str().as_bytes() {
            match byte {
                b'-' | b'.' | b'_' | b'~' => host.push(char::from(*byte)),
                letter if letter.is_ascii_alphanumeric() => host.push(char::from(*letter)),
                // Writing to a string does not fail.
                other => drop(write!(host, "%{other:02X}")),
            }
        }
        format!("postgres://{ROLE}@{host}/{DATABASE}")
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

impl Drop for LocalPostgres {
    fn drop(&mut self) {
        self.server.end(|process, number| self.programs.shut_down(process, number));
        self.socket.remove();
    }
}

/// The programs of PostgreSQL, and the user that runs them.
#[derive(Debug, Clone)]
struct PostgresPrograms {
    bin: PathBuf,
    user: Option<ServerUser>,
}

impl PostgresPrograms {
    fn postgres(&self) -> PathBuf {
        self.bin.join("postgres")
    }

    /// One of the programs. Its messages are English, and variables of the user's own servers do not reach it.
    fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.bin.join(program));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").current_dir(folder);
        command
    }

    /// Checks that the server is of the version of the data.
    fn check(&self, data: &Path, kept: Option<&str>) -> Result<(), LocalServerError> {
        let program = self.postgres();
        let output = version_text(&program, self.user.as_ref())?;
        let Some(version) = postgres_major(&output) else {
            return Err(LocalServerError::NoVersion { program, output: output.into() });
        };
        match kept {
            Some(found) if found != version => Err(LocalServerError::OtherVersion {
                folder: data.to_owned(),
                found: found.into(),
                program,
                version: version.into(),
            }),
            _ => Ok(()),
        }
    }

    /// Makes the data. What a killed initdb has left is removed.
    fn create_data(&self, folder: &Path, log: &ServerLog) -> Result<(), LocalServerError> {
        let part = folder.join(UNFINISHED_FOLDER);
        match fs::remove_dir_all(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(unusable(&part, error)),
            _ => {}
        }
        private_folder(&part, self.user.as_ref()).map_err(|source| unusable(&part, source))?;
        let mut command = self.command("initdb", folder);
        command.arg("-D").arg(&part).args(["-U", ROLE, "--auth-local=trust", "--auth-host=reject"]);
        // The order of texts is that of their bytes, as in SQLite, and does not depend on this host.
        command.args(["--encoding=UTF8", "--locale=C"]);
        let created = ServerProcess::start(command, self.user.as_ref(), log)?.finish(CREATE_TIMEOUT);
        let data = folder.join(DATA_FOLDER);
        created.and_then(|()| fs::rename(&part, &data).map_err(|source| unusable(&data, source)))
    }

    fn serve(
        &self,
        data: &Path,
        socket: &SocketFolder,
        log: &ServerLog,
    ) -> Result<ServerProcess, LocalServerError> {
        let mut command = self.command("postgres", data.parent().unwrap_or(data));
        // The server reads a list of folders.
        let folder = socket.path.to_str().map(|path| format!("\"{}\"", path.replace('"', "\"\"")));
        let no_text = || unusable(&socket.path, io::Error::other("its name is not UTF-8"));
        command.arg("-D").arg(data).arg("-k").arg(folder.ok_or_else(no_text)?);
        command.arg("-p").arg(SOCKET_NUMBER.to_string());
        // Some systems change the defaults of a new server.
        command.args(["-c", "listen_addresses=", "-c", "logging_collector=off", "-c", "fsync=on"]);
        ServerProcess::start(command, self.user.as_ref(), log)
    }

    /// Asks a server to end; whether it has ended.
    fn shut_down(&self, process: &PidFd, number: u32) -> bool {
        SHUTDOWN_STEPS.iter().any(|(signal, grace)| {
            self.signal(number, signal) && process.wait(clock::now() + *grace).unwrap_or(false)
        })
    }

    /// Sends a signal by pg_ctl, which refuses to run as root as well.
    fn signal(&self, number: u32, signal: &str) -> bool {
        let mut command = self.command("pg_ctl", Path::new("/"));
        command.args(["kill", signal, &number.to_string()]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(user) = &self.user {
            user.run(&mut command);
        }
        command.status().is_ok_and(|status| status.success())
    }
}

/// The folder with the socket of a server.
#[derive(Debug)]
struct SocketFolder {
    path: PathBuf,
    /// Whether it was made only for the socket.
    separate: bool,
}

impl SocketFolder {
    /// The data folder, which only its user can enter: PostgreSQL insists on that. If its path is too long for a
    /// socket, it is a folder among the temporary files, always the same one.
    fn of_data(data: &Path) -> Self {
        let near = Self { path: data.to_owned(), separate: false };
        if near.fits() {
            return near;
        }
        let hash = XxHash64::oneshot(0, data.as_os_str().as_bytes());
        Self { path: std::env::temp_dir().join(format!("linerate-{hash:016x}")), separate: true }
    }

    /// Makes it if it is missing.
    fn create(data: &Path, user: Option<&ServerUser>) -> Result<Self, LocalServerError> {
        let folder = Self::of_data(data);
        if !folder.fits() {
            return Err(unusable(data, io::Error::other("its path is too long for a socket")));
        }
        if folder.separate {
            folder.prepare(user).map_err(|source| unusable(&folder.path, source))?;
        }
        Ok(folder)
    }

    fn socket(&self) -> PathBuf {
        self.path.join(format!(".s.PGSQL.{SOCKET_NUMBER}"))
    }

    fn fits(&self) -> bool {
        self.socket().as_os_str().len() <= MAX_SOCKET_PATH
    }

    /// Makes the folder. Anybody can make one of this name first, so an existing one must be ours.
    fn prepare(&self, user: Option<&ServerUser>) -> io::Result<()> {
        match private_folder(&self.path, user) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => return other,
        }
        let found = fs::symlink_metadata(&self.path)?;
        let owner = user.map(|user| user.uid).or_else(effective_user);
        let ours =
            found.is_dir() && found.mode() & 0o777 == 0o700 && owner.is_none_or(|owner| owner == found.uid());
        if ours { Ok(()) } else { Err(io::Error::other("somebody else has made it")) }
    }

    fn remove(&self) {
        if self.separate {
            // A killed server leaves its socket; the next one removes it.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Makes a folder that only a user can enter.
fn private_folder(path: &Path, user: Option<&ServerUser>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    user.map_or(Ok(()), |user| chown(path, Some(user.uid), Some(user.gid)))
}

/// The version of PostgreSQL that has made the data; absent if there is no data yet.
fn data_version(data: &Path) -> Result<Option<String>, LocalServerError> {
    match fs::read_to_string(data.join("PG_VERSION")) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unusable(data, error)),
        Err(_) if data.exists() => {
            Err(unusable(data, io::Error::other("it has no data of PostgreSQL in it")))
        }
        Err(_) => Ok(None),
    }
}

/// Whether a server with this number says that it accepts connections: in the eighth line of its file.
fn is_ready(data: &Path, process: u32) -> bool {
    let text = fs::read_to_string(data.join(PID_FILE)).unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&*process.to_string()) && lines.nth(6) == Some("ready")
}

/// Ends a server that an earlier process has left running with the data in this folder.
pub(super) fn end_left(folder: &Path) -> Result<(), LocalServerError> {
    let data = folder.join(DATA_FOLDER);
    let file = data.join(PID_FILE);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let Some(number) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else {
        return Ok(());
    };
    if let Some((process, arguments)) = process_with(number, &data) {
        let program = arguments.first().map(|program| PathBuf::from(OsStr::from_bytes(program)));
        let bin = program.and_then(|program| Some(program.parent()?.to_owned())).unwrap_or_default();
        let programs = PostgresPrograms { bin, user: ServerUser::of_data(&data)? };
        if !programs.shut_down(&process, number) && !kill(&process) {
            return Err(LocalServerError::Stuck { program: PROGRAM, process: number });
        }
    }
    // A new server refuses to start if any process of its user has this number: another one, or the ended one that its
    // parent does not wait for. If there is none, the server removes the files itself, with more checks than can be made
    // here.
    if is_running(number) && Path::new("/proc/self").exists() {
        let lock = SocketFolder::of_data(&data).socket().with_added_extension("lock");
        for file in [file, lock] {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(unusable(&file, error)),
                _ => {}
            }
        }
    }
    Ok(())
}
