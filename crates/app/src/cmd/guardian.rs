//! The guardian of an agent: a separate process that restores the settings of the host when the agent is
//! killed.
//!
//! It reads from a pipe whose other end only the agent holds. It therefore detects every kind of end, and then
//! does what the next start of an agent would do.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use clap::Args;
use linerate_control::{Guardian, Guardians, Restored, restore_leftovers};
use linerate_sock::process::new_session;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;

/// The command that runs it.
const NAME: &str = "guard-settings";

/// What it prints when signals do not end it any more.
const READY: &[u8; 1] = b"\n";

/// Arguments of a guardian.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// Folder of the undo journals
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Waits until the agent at the other end of standard input ends, and restores the settings that it has left
/// changed.
pub(crate) fn run(args: &GuardArgs) -> Result<Exit, CommandError> {
    // A signal that ends the agent may reach this process too, which must survive to restore the settings.
    if let Err(error) = Signals::ignore() {
        print::warning(format!("the guardian of an agent's settings cannot ignore signals: {error}"));
    }
    // Cannot fail: a process that the agent has just started leads no group.
    let _ = new_session();
    // The agent waits for this before it changes anything. If it is gone already, its pipe is closed too.
    let _ = io::stdout().write_all(READY);
    // Nothing is ever written to the pipe; it closes when the agent ends. A read error means an end too.
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    let restored = restore_leftovers(&args.folder).map_err(CommandError::failed)?;
    print_restored(&restored, "the agent was killed: ");
    Ok(Exit::Done)
}

/// Prints which settings of this host were restored, and which were not.
pub(super) fn print_restored(restored: &Restored, head: &str) {
    restored.put_back.iter().for_each(|setting| print::note(format!("{head}restored {setting}")));
    restored.left.iter().for_each(|why| print::warning(format!("{head}{why}")));
}

/// Starts guardians by executing this program.
#[derive(Debug)]
pub(super) struct OwnGuardians {
    /// Folder of the undo journals.
    pub(super) folder: PathBuf,
}

impl Guardians for OwnGuardians {
    fn start(&self) -> io::Result<Box<dyn Guardian>> {
        // The running program, even if its file has been replaced since.
        let mut child = Command::new("/proc/self/exe")
            .arg(NAME)
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
