//! Programs started by a test: killed on drop, and waited for with a timeout.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use super::{TIMEOUT, pause, take_turn};

/// The program under test: stores nothing on this machine, and always assumes a real host.
pub(crate) fn linerate() -> Command {
    take_turn();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.env("LINERATE_ARCHIVE", ":memory:").env("NO_COLOR", "1").env_remove("RUST_LOG");
    // The machine's calibration must not affect tests.
    command.env_remove("LINERATE_LAB").env("LINERATE_CALIBRATION", "");
    // Nor may the tokens of whoever runs the tests.
    command.env("XDG_DATA_HOME", "/nonexistent");
    command
}

/// Runs the program to its end with the words of a line. It decides about colours itself.
pub(crate) fn run(line: &str) -> Done {
    let mut command = linerate();
    command.args(line.split_whitespace()).env_remove("NO_COLOR");
    Process::start(command).finish(TIMEOUT)
}

/// Sends a signal, such as `INT` or `TERM`, to one process.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(sent.success(), "SIG{name} to {pid}");
}

/// Sends a signal twice at once, as timeout(1) does to its child and the process group of that.
pub(crate) fn signal_twice(pid: u32, name: &str) {
    let command = format!("kill -{name} {pid} && kill -{name} {pid} || true");
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
}

/// Process id of the parent; `None` if the process is gone.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Resident memory of a process, bytes (VmRSS); 0 after it has ended.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
}

/// The names of a process's threads.
pub(crate) fn thread_names(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok()).collect()
}

/// Number of a process's threads.
pub(crate) fn threads_of(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
}

/// Kills several processes with one command; they may have ended already.
pub(crate) fn kill(pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    let _ = Command::new("kill").arg("-9").args(pids).output().unwrap();
}

/// The same command, started through another program with these arguments.
pub(crate) fn started_by(program: &str, first: &[&str], inner: &Command) -> Command {
    let mut command = Command::new(program);
    command.args(first).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// Exit code; absent if a signal killed it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Time from start to end.
    pub(crate) took: Duration,
}

impl Done {
    /// Its stdout, parsed as a JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no document ({error}): {self:?}"))
    }
}

/// A running program, killed on drop.
pub(crate) struct Process {
    /// Program and arguments, for messages.
    line: String,
    child: Child,
    began: clock::Mono,
    stdout: Tape,
    stderr: Tape,
}

impl Process {
    pub(crate) fn start(command: Command) -> Self {
        Self::spawn(command, Stdio::null())
    }

    /// Starts a program that finds this text at its standard input.
    pub(crate) fn start_with(command: Command, input: &[u8]) -> Self {
        let mut process = Self::spawn(command, Stdio::piped());
        // A program that does not read it may have ended.
        let _ = process.child.stdin.take().unwrap().write_all(input);
        process
    }

    fn spawn(mut command: Command, stdin: Stdio) -> Self {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = format!("{command:?}");
        let began = clock::now();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = Tape::of(child.stdout.take().unwrap());
        let stderr = Tape::of(child.stderr.take().unwrap());
        Self { line, child, began, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Its stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(crate) fn running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end; a program that exceeds `limit` is killed, and the test fails.
    pub(crate) fn finish(mut self, limit: Duration) -> Done {
        let deadline = clock::now() + limit;
        let status: ExitStatus = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if deadline.has_passed() {
                let _ = self.child.kill();
                let (stdout, stderr) = (self.stdout(), self.stderr());
                panic!("no end of {} within {limit:?}: stdout {stdout:?}, stderr {stderr:?}", self.line);
            }
            pause(Duration::from_millis(5));
        };
        let took = clock::now().since(self.began);
        Done { code: status.code(), stdout: self.stdout.all(), stderr: self.stderr.all(), took }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks a client that could not measure: within seconds exit code 1, and one error with these words.
pub(crate) fn cannot_measure(command: Command, words: &[&str]) {
    let done = Process::start(command).finish(Duration::from_secs(30));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(done.stderr.lines().filter(|line| line.contains("error:")).count(), 1, "{done:?}");
    for word in words {
        assert!(done.stderr.contains(word), "{word}: {done:?}");
    }
}

/// Collects the output of a program, so that the program never blocks.
struct Tape {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Tape {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut piece) {
                kept.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// The complete output after the program has ended.
    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}
