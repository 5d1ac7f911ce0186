//! A server as a child of this process, and its messages.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_model::ForeignText;
use linerate_runner::whole_private_file;
use linerate_sock::clock::{self, Mono};
use linerate_sock::process::{PidFd, Signal, has_ended};

use super::server_user::ServerUser;
use super::{LocalServerError, programs, unusable};

/// How often it is looked at whether a server accepts connections.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a killed process may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// What messages of an error contain, in PostgreSQL and NATS. Less important ones may follow.
const ERROR_MARKS: [&str; 4] = ["FATAL:", "PANIC:", "error:", "[FTL]"];

/// The file with the messages of a server since its last start.
#[derive(Debug, Clone)]
pub(super) struct ServerLog {
    path: PathBuf,
    /// The server, as errors call it.
    program: &'static str,
}

impl ServerLog {
    /// Makes an empty file that only its owner can read.
    pub(super) fn create(path: PathBuf, program: &'static str) -> Result<Self, LocalServerError> {
        whole_private_file(&path, b"").map_err(|source| unusable(&path, source))?;
        Ok(Self { path, program })
    }

    fn open(&self) -> Result<File, LocalServerError> {
        OpenOptions::new().append(true).open(&self.path).map_err(|source| unusable(&self.path, source))
    }

    /// Bytes in it.
    pub(super) fn length(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    /// What was written after the first `start` bytes.
    pub(super) fn since(&self, start: u64) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(&self.path)
            && file.seek(SeekFrom::Start(start)).is_ok()
        {
            // What cannot be read is missing in a message.
            let _ = file.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The last message about an error, without what is before it on its line; else the last line.
    fn last_message(&self) -> ForeignText {
        let text = self.since(0);
        let marked =
            |line: &str| ERROR_MARKS.iter().find_map(|mark| line.find(mark)).map(|at| line[at..].to_owned());
        let last = || text.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned);
        let message = text.lines().rev().find_map(marked).or_else(last);
        message.unwrap_or_else(|| "it printed nothing".to_owned()).into()
    }

    pub(super) fn ended(&self) -> LocalServerError {
        LocalServerError::Ended { program: self.program, output: self.last_message(), log: self.path.clone() }
    }

    pub(super) fn not_ready(&self, timeout: Duration) -> LocalServerError {
        let (program, output, log) = (self.program, self.last_message(), self.path.clone());
        LocalServerError::NotReady { program, timeout, output, log }
    }
}

/// A server that this process has started. Its owner ends it.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    log: ServerLog,
}

impl ServerProcess {
    /// Starts a program whose output goes to the log, in a process group of its own.
    pub(super) fn start(
        mut command: Command,
        user: Option<&ServerUser>,
        log: &ServerLog,
    ) -> Result<Self, LocalServerError> {
        if let Some(user) = user {
            user.run(&mut command);
        }
        command.process_group(0).stdin(Stdio::null()).stdout(log.open()?).stderr(log.open()?);
        let program = Path::new(command.get_program()).to_owned();
        let child = command.spawn().map_err(|source| programs::cannot_run(&program, user, source))?;
        Ok(Self { child, log: log.clone() })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with its messages.
    pub(super) fn messages(&self) -> &Path {
        &self.log.path
    }

    /// Whether it has ended, without waiting for it.
    pub(super) fn is_gone(&self) -> bool {
        has_ended(self.id())
    }

    /// Whether it has ended; it is no longer a process then.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until `ready`, given the number of the process, says that it accepts connections.
    pub(super) fn wait_until_ready(
        &mut self,
        until: Mono,
        timeout: Duration,
        ready: impl Fn(u32) -> bool,
    ) -> Result<(), LocalServerError> {
        loop {
            if self.has_ended() {
                return Err(self.log.ended());
            }
            if ready(self.id()) {
                return Ok(());
            }
            if until.has_passed() {
                return Err(self.log.not_ready(timeout));
            }
            clock::sleep_until(clock::now() + POLL_INTERVAL);
        }
    }

    /// Waits until a program that is no server has done its work.
    pub(super) fn finish(mut self, timeout: Duration) -> Result<(), LocalServerError> {
        let until = clock::now() + timeout;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) if !until.has_passed() => clock::sleep_until(clock::now() + POLL_INTERVAL),
                Ok(None) => {
                    self.kill();
                    return Err(self.log.not_ready(timeout));
                }
                _ => return Err(self.log.ended()),
            }
        }
    }

    /// Ends it: `end` asks it to end, and says whether it has done so. Otherwise it is killed.
    pub(super) fn end(&mut self, end: impl FnOnce(&PidFd, u32) -> bool) {
        if self.has_ended() {
            return;
        }
        // It has not been waited for, so its number is still its own.
        if !PidFd::open(self.id()).is_ok_and(|process| end(&process, self.id())) {
            self.kill();
        }
        let _ = self.child.wait();
    }

    fn kill(&mut self) {
        // Fails if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process with a number if it was started with this argument, with its command line. A file with the number may be
/// older than the last start of the machine or container, and the number may belong to another process now.
pub(crate) fn process_with(number: u32, argument: &Path) -> Option<(PidFd, Vec<Vec<u8>>)> {
    // Opened before it is looked at, so that it is the same process later.
    let process = PidFd::open(number).ok()?;
    let line = fs::read(format!("/proc/{number}/cmdline")).ok()?;
    let arguments: Vec<Vec<u8>> = line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
    let ours = arguments.iter().any(|one| one == argument.as_os_str().as_encoded_bytes());
    ours.then_some((process, arguments))
}

/// Kills a process that is no child; whether it has ended.
pub(super) fn kill(process: &PidFd) -> bool {
    // Fails if it has ended.
    let _ = process.signal(Signal::Kill);
    process.wait(clock::now() + KILL_TIMEOUT).unwrap_or(false)
}
