//! The guardian of an agent: a process of its own that puts settings of the host back when the agent is killed.
//!
//! It waits at the end of a pipe whose other end is the agent's alone, so that it learns of every kind of end, and does
//! then what the next start of an agent would do.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use clap::Args;
use linerate_control::{Guardian, Guardians, restore_leftovers};
use linerate_sock::process::new_session;

use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;

/// The command under which it is started.
const NAME: &str = "guard-settings";

/// What a guardian has to know.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    /// The folder of the undo journals
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Waits for the end of the agent that has the other end of standard input, and puts back what it has left.
pub(crate) fn run(args: &GuardArgs) -> Exit {
    // What ends the agent in an orderly way may reach this process as well, which would then do nothing for the next one.
    if let Err(error) = Signals::ignore() {
        print::warning(format!("the guardian of an agent's settings cannot ignore signals: {error}"));
    }
    // It is no leader of a group: the agent has just started it.
    let _ = new_session();
    // Nothing is ever written: this is how long the agent lives. An error is an end, too.
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    match restore_leftovers(&args.folder) {
        Ok(restored) => {
            super::serve::print_restored(&restored, "the agent was killed: ");
            Exit::Done
        }
        Err(error) => {
            print::error(error);
            Exit::Failed
        }
    }
}

/// Starts guardians that are this program.
#[derive(Debug)]
pub(super) struct OwnGuardians {
    /// The folder of the undo journals.
    pub(super) folder: PathBuf,
}

impl Guardians for OwnGuardians {
    fn start(&self) -> Result<Box<dyn Guardian>, String> {
        // The program that runs, even if another one has taken its place in the file system since.
        let child = Command::new("/proc/self/exe")
            .arg(NAME)
            .arg(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        child.map(|child| Box::new(Running(child)) as Box<dyn Guardian>).map_err(|error| error.to_string())
    }
}

/// A guardian and our end of its pipe.
#[derive(Debug)]
struct Running(Child);

impl Guardian for Running {}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
