//! The guardian of an agent: a separate process that restores the settings of the host when the agent is
//! killed.
//!
//! It reads from a pipe whose other end only the agent holds. It therefore detects every kind of end, and then
//! does what the next start of an agent would do.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use linerate_control::{Guardian, Guardians};
use linerate_sock::process::new_session;

/// What a guardian prints when signals do not end it any more.
const READY: &[u8; 1] = b"\n";

/// Starts guardians by executing this program.
#[derive(Debug)]
pub struct SettingsGuardians {
    /// Folder of the undo journals.
    pub folder: PathBuf,
    /// The command of this program that is a guardian, with the folder as its argument.
    pub command: &'static str,
}

impl SettingsGuardians {
    /// What a guardian does once signals do not end it any more: tells the agent that it is ready, and waits until
    /// the agent has ended.
    pub fn wait_for_end_of_agent() {
        // Cannot fail: a process that the agent has just started leads no group.
        let _ = new_session();
        // The agent waits for this before it changes anything. If it is gone already, its pipe is closed too.
        let _ = io::stdout().write_all(READY);
        // Nothing is ever written to the pipe; it closes when the agent ends. A read error means an end too.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    }
}

impl Guardians for SettingsGuardians {
    fn start(&self) -> io::Result<Box<dyn Guardian>> {
        // The running program, even if its file has been replaced since.
        let mut child = Command::new("/proc/self/exe")
            .arg(self.command)
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take();
        let guardian = Box::new(RunningGuardian(child));
        // One that is not ready yet would end with the agent by the same signal.
        stdout.map_or(Ok(()), |mut pipe| pipe.read_exact(&mut [0; READY.len()]))?;
        Ok(guardian)
    }
}

/// A guardian and our end of its pipe.
#[derive(Debug)]
struct RunningGuardian(Child);

impl Guardian for RunningGuardian {}

impl Drop for RunningGuardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
