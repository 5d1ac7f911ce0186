//! Programs started by a task: observed and killed by process id, with timeouts.

use std::fs::{self, File};
use std::io::{BufRead, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::proc::cpu::ThreadTimes;
use linerate_sock::proc::host::parse_kib;
use linerate_sock::{Mono, clock};

/// Interval between two checks of a running program.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Common state of all programs of a task.
pub(crate) struct Processes {
    /// Log of the programs' stderr.
    log: File,
    /// Set by Ctrl-C and SIGTERM: everything ends, and namespaces and labs are removed.
    stop: Arc<AtomicBool>,
}

impl Processes {
    /// Truncates the log, and catches the signals that end a task.
    pub(crate) fn new(log: &Path) -> Result<Self, String> {
        let log = File::create(log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|e| format!("cannot catch signals: {e}"))?;
        }
        Ok(Self { log, stop })
    }

    /// Whether the task has to end.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits for this time, unless interrupted.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), String> {
        let end = clock::now() + time;
        while !end.has_passed() {
            if self.stopped() {
                return Err("interrupted".to_owned());
            }
            clock::sleep_until(end.min(clock::now() + Duration::from_millis(100)));
        }
        Ok(())
    }
}

impl AsRef<Self> for Processes {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// A running program, killed on drop.
pub(crate) struct ChildProcess {
    child: Child,
    output: ChildStdout,
    held: Vec<u8>,
    name: String,
    stop: Arc<AtomicBool>,
}

/// Memory of a process at one moment, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    /// Resident memory (`VmRSS`).
    pub(crate) resident: u64,
    /// Peak resident memory so far (`VmHWM`).
    pub(crate) high_water: u64,
}

impl ProcessMemory {
    /// Memory of a process now; absent if it does not exist.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        Some(Self { resident: parse_kib(&status, "VmRSS")?, high_water: parse_kib(&status, "VmHWM")? })
    }
}

impl ChildProcess {
    /// Starts `command`, a program and its arguments; its stderr goes to the log.
    pub(crate) fn start(processes: &impl AsRef<Processes>, command: &[String]) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("there is no command to start")?;
        let processes = processes.as_ref();
        let log: File = processes.log.try_clone().map_err(|e| format!("cannot share the log: {e}"))?;
        let mut starting = Command::new(program);
        crate::cargo::forget_package(&mut starting);
        let mut child = starting
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("cannot start {program}: {e}"))?;
        let output = child.stdout.take().ok_or("the program has no output")?;
        let name = command.join(" ");
        Ok(Self { child, output, held: Vec::new(), name, stop: Arc::clone(&processes.stop) })
    }

    /// Returns the first value that `take` finds in a line.
    pub(crate) fn find_line<T>(
        &mut self,
        timeout: Duration,
        take: impl Fn(&str) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = clock::now() + timeout;
        loop {
            let complete = self.held.lines().map_while(Result::ok);
            if let Some(found) = complete.filter_map(|line| take(&line)).next() {
                return Ok(found);
            }
            if !self.read_on(deadline)? {
                return Err(format!("`{}` ended before it was ready", self.name));
            }
        }
    }

    /// The complete output after the program has succeeded; `look` is called while it runs.
    pub(crate) fn finish(
        mut self,
        timeout: Duration,
        mut look: impl FnMut(&Self),
    ) -> Result<Vec<u8>, String> {
        let deadline = clock::now() + timeout;
        while self.read_on(deadline)? {
            look(&self);
        }
        let status = self.child.wait().map_err(|e| format!("cannot wait for `{}`: {e}", self.name))?;
        if status.success() {
            return Ok(std::mem::take(&mut self.held));
        }
        Err(format!("`{}` ended with {status}", self.name))
    }

    /// Reads available output, or waits briefly for it; false at the end of the output.
    fn read_on(&mut self, deadline: Mono) -> Result<bool, String> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        if deadline.has_passed() {
            return Err(format!("`{}` took too long and was killed", self.name));
        }
        let ready = wait_for(&self.output, Interest::READ, deadline.min(clock::now() + POLL_INTERVAL));
        if !ready.map_err(|e| e.to_string())? {
            return Ok(true);
        }
        let mut bytes = [0; 16 << 10];
        let count =
            self.output.read(&mut bytes).map_err(|e| format!("cannot read from `{}`: {e}", self.name))?;
        self.held.extend_from_slice(&bytes[..count]);
        Ok(count > 0)
    }

    /// Memory of the program now; absent after it has ended.
    pub(crate) fn memory(&self) -> Option<ProcessMemory> {
        ProcessMemory::of(self.child.id())
    }

    /// Names of its threads, with their CPU times; empty after it has ended.
    pub(crate) fn threads(&self) -> Vec<(String, Duration)> {
        let folder = format!("/proc/{}/task", self.child.id());
        let tasks = fs::read_dir(folder).into_iter().flatten().flatten();
        let read = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            // The first number, in nanoseconds: `stat` counts whole ticks, of which a sampler uses few.
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let spent = times.split_whitespace().next()?.parse().ok()?;
            Some((name.trim_end().to_owned(), Duration::from_nanos(spent)))
        };
        tasks.filter_map(read).collect()
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all threads of the program so far; absent after it has ended.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        Some(ThreadTimes::parse(&stat)?.cpu_time())
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Both fail if it has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildProcess {
        let log = File::options().write(true).open("/dev/null").unwrap();
        let processes = Processes { log, stop: Arc::default() };
        ChildProcess::start(&processes, &["sh", "-c", script].map(str::to_owned)).unwrap()
    }

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[test]
    fn the_whole_output_is_kept_also_after_a_line_was_found() {
        let mut process = shell("echo noise; echo port 7; echo more");
        let port = process.find_line(TIMEOUT, |line| line.strip_prefix("port ")?.parse::<u16>().ok());
        assert_eq!(port, Ok(7));
        assert_eq!(process.finish(TIMEOUT, |_| ()).unwrap(), b"noise\nport 7\nmore\n");
    }

    #[test]
    fn failure_and_an_early_end_are_errors() {
        assert!(shell("exit 3").finish(TIMEOUT, |_| ()).unwrap_err().contains("exit status: 3"));
        assert!(shell("echo a").find_line(TIMEOUT, |_| None::<()>).unwrap_err().contains("ended before"));
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let process = shell("exec sleep 1000");
        let number = process.child.id();
        assert!(process.memory().is_some_and(|memory| memory.high_water >= memory.resident));
        assert!(process.finish(Duration::ZERO, |_| ()).unwrap_err().contains("too long"));
        assert!(!fs::exists(format!("/proc/{number}")).unwrap(), "it must be gone");
    }

    #[test]
    fn an_interrupt_ends_the_waiting() {
        let process = shell("exec sleep 1000");
        process.stop.store(true, Ordering::Relaxed);
        assert_eq!(process.finish(TIMEOUT, |_| ()), Err("interrupted".to_owned()));
    }
}
