//! The command lines of other tools: `linerate iperf3 …`, also under the tool's own name by a symbolic link.
//!
//! A tool's own rules hold from here on: its options, its texts, its exit codes. Its runs are archived like ours.

mod iperf2;
mod iperf3;
mod links;
mod log_store;
mod netpipe;
mod ntttcp;
mod nuttcp;
mod printer;
mod ttcp;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use linerate_control::{Interrupts, Invocation, LogStore, PortObserver, drive};
use linerate_model::World;
use linerate_proto::stand_in::StandIn;

use crate::args::ToolArgs;
use crate::exit::Exit;
use crate::lab_port_observer::LabWitness;
use crate::print;
use crate::signals::Signals;

pub(crate) use links::{InstallLinksArgs, install};
pub(super) use log_store::ArchiveKeeper;

/// Signals that tools end by, each in its own way: SIGHUP, SIGINT, SIGTERM.
const STOP_SIGNALS: [i32; 3] = [1, 2, 15];

/// A tool that we stand in for.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Names under which it is called, its own first.
    names: &'static [&'static str],
    /// From the name and the arguments to what shall run.
    prepare: fn(&str, &[OsString]) -> Result<Prepared, Refusal>,
}

/// Every tool.
const TOOLS: &[Tool] = &[
    Tool { names: &["iperf3"], prepare: iperf3::prepare },
    Tool { names: &["iperf", "iperf2"], prepare: iperf2::prepare },
    Tool { names: &["ttcp", "pcattcp"], prepare: ttcp::prepare },
    Tool { names: &["nuttcp"], prepare: nuttcp::prepare },
    Tool { names: &["NPtcp", "netpipe"], prepare: netpipe::prepare },
    Tool { names: &["ntttcp"], prepare: ntttcp::prepare },
];

/// A tool about to run.
pub(crate) struct Prepared {
    stand_in: Box<dyn StandIn>,
    /// The server, at a client.
    host: Option<String>,
    /// Where it prints and complains; absent for this program's own.
    output: Option<Box<dyn Write>>,
    complaints: Option<Box<dyn Write>>,
}

impl Prepared {
    /// One that prints where this program does.
    fn new(stand_in: Box<dyn StandIn>, host: Option<String>) -> Self {
        Self { stand_in, host, output: None, complaints: None }
    }
}

/// A tool that does not run: text for standard output or standard error, and the exit code.
#[derive(Debug)]
pub(crate) struct Refusal {
    out: String,
    err: String,
    code: u8,
}

impl Refusal {
    fn text(out: String) -> Self {
        Self { out, err: String::new(), code: 0 }
    }

    fn error(err: String, code: i32) -> Self {
        Self::both(String::new(), err, code)
    }

    fn both(out: String, err: String, code: i32) -> Self {
        Self { out, err, code: u8::try_from(code).unwrap_or(1) }
    }
}

impl Tool {
    /// The tool that a program of this name is taken for.
    pub(crate) fn called(name: &OsStr) -> Option<&'static Self> {
        let name = Path::new(name).file_name()?.to_str()?;
        TOOLS.iter().find(|tool| tool.names.contains(&name))
    }

    /// Runs its command line.
    pub(crate) fn run(&self, name: &str, arguments: &[OsString]) -> Exit {
        match (self.prepare)(name, arguments) {
            Ok(prepared) => perform(prepared),
            Err(refusal) => {
                report_unwritten(std::io::stdout().write_all(refusal.out.as_bytes()));
                let _ = std::io::stderr().write_all(refusal.err.as_bytes());
                Exit::Code(refusal.code)
            }
        }
    }
}

/// Runs the tool of this name with the arguments that were given behind it.
pub(super) fn run(name: &str, given: &ToolArgs) -> Exit {
    match Tool::called(OsStr::new(name)) {
        Some(tool) => tool.run(name, &given.arguments),
        None => Exit::Usage,
    }
}

fn perform(prepared: Prepared) -> Exit {
    let Prepared { stand_in, host, output, complaints } = prepared;
    let interrupts = match Interrupts::new() {
        Ok(interrupts) => Arc::new(interrupts),
        Err(error) => {
            print::error(error);
            return Exit::Failed;
        }
    };
    let raised = Arc::clone(&interrupts);
    if let Err(error) = Signals::hand_over(&STOP_SIGNALS, move |signal| raised.raise(signal)) {
        print::error(format!("cannot catch signals: {error}"));
        return Exit::Failed;
    }
    let lab = LabWitness::from_environment();
    let keeper = ArchiveKeeper::from_environment();
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let (mut output, mut complaints) = (output, complaints);
    let invocation = Invocation {
        host,
        world: if lab.is_some() { World::Lab } else { World::Hosts },
        observer: lab.as_ref().map(|lab| lab as &dyn PortObserver),
        keeper: Some(&keeper as &dyn LogStore),
        interrupts: &interrupts,
        output: output.as_deref_mut().unwrap_or(&mut stdout),
        complaints: complaints.as_deref_mut().unwrap_or(&mut stderr),
        input: Some(Box::new(std::io::stdin())),
    };
    match drive(stand_in, invocation) {
        Ok(code) => Exit::Code(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            print::error(error);
            Exit::Failed
        }
    }
}

/// Says what became of text that could not be written. The tool's own exit code stays; a reader that has gone is no
/// trouble.
fn report_unwritten(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        print::error(format!("the output could not be printed: {error}"));
    }
}

/// Arguments as text; a tool's options never need more.
fn argument_texts(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
