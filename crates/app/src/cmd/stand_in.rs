//! The command lines of other tools: `linerate iperf3 …`, also under the tool's own name through a symbolic
//! link.
//!
//! The stand-ins follow the tools' rules: options, texts and exit codes. Their runs are archived like ours.

mod iperf2;
mod iperf3;
mod links;
mod netperf;
mod netpipe;
mod ntttcp;
mod nuttcp;
mod ttcp;

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use linerate_compat::stand_in::StandIn;
use linerate_control::{Interrupts, Invocation, LogStore, PortObserver, drive};
use linerate_model::{World, foreign_text};
use linerate_runner::{LabPortObserver, PidFile};
use linerate_sock::priority::Urgent;

use crate::archive;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;

pub(crate) use links::{InstallLinksArgs, install};

/// Signals that tools handle, each in its own way: SIGHUP, SIGINT, SIGTERM.
const STOP_SIGNALS: [i32; 3] = [1, 2, 15];

/// A tool with a stand-in.
#[derive(Debug)]
pub(crate) struct StandInTool {
    /// Names of its program, the preferred one first.
    names: &'static [&'static str],
    /// Parses the arguments to a stand-in.
    prepare: fn(&str, &[OsString]) -> Result<PreparedTool, EarlyExit>,
}

/// All tools.
const TOOLS: &[StandInTool] = &[
    StandInTool { names: &["iperf3"], prepare: iperf3::prepare },
    StandInTool { names: &["iperf", "iperf2"], prepare: iperf2::prepare },
    StandInTool { names: &["ttcp", "pcattcp"], prepare: ttcp::prepare },
    StandInTool { names: &["nuttcp"], prepare: nuttcp::prepare },
    StandInTool { names: &["NPtcp", "netpipe"], prepare: netpipe::prepare },
    StandInTool { names: &["ntttcp"], prepare: ntttcp::prepare },
    StandInTool { names: &["netperf"], prepare: netperf::prepare_client },
    StandInTool { names: &["netserver"], prepare: netperf::prepare_server },
];

/// A stand-in that is ready to run.
pub(crate) struct PreparedTool {
    stand_in: Box<dyn StandIn>,
    /// The server; absent at a server.
    host: Option<String>,
    /// Where it prints output and errors; absent for this program's stdout and stderr.
    output: Option<Box<dyn Write>>,
    complaints: Option<Box<dyn Write>>,
    /// What it reads; absent for this program's stdin.
    input: Option<Box<dyn Read + Send>>,
    /// Its priority while it runs.
    priority: Option<Urgent>,
    /// Removed at its end.
    pid_file: Option<PidFile>,
}

impl PreparedTool {
    /// A stand-in that prints to stdout and stderr.
    fn new(stand_in: Box<dyn StandIn>, host: Option<String>) -> Self {
        Self { stand_in, host, output: None, complaints: None, input: None, priority: None, pid_file: None }
    }
}

/// A tool that does not run: its output, error text and exit code.
#[derive(Debug)]
pub(crate) struct EarlyExit {
    out: String,
    err: String,
    code: u8,
}

impl EarlyExit {
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

impl StandInTool {
    /// The tool with this program name.
    pub(crate) fn called(name: &OsStr) -> Option<&'static Self> {
        let name = Path::new(name).file_name()?.to_str()?;
        TOOLS.iter().find(|tool| tool.names.contains(&name))
    }

    /// Runs a command line of the tool.
    pub(crate) fn run(&self, name: &str, arguments: &[OsString]) -> Exit {
        match (self.prepare)(name, arguments) {
            Ok(prepared) => perform(prepared).unwrap_or_else(CommandError::report),
            Err(refusal) => {
                report_unwritten(std::io::stdout().write_all(refusal.out.as_bytes()));
                let _ = std::io::stderr().write_all(foreign_text::lines(&refusal.err).as_bytes());
                Exit::Code(refusal.code)
            }
        }
    }
}

/// A tool's own command line.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ToolArgs {
    /// The tool's own options; with --help it lists them
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the tool with this name and the arguments after it.
pub(crate) fn run(name: &str, args: &ToolArgs) -> Result<Exit, CommandError> {
    Ok(StandInTool::called(OsStr::new(name)).map_or(Exit::Usage, |tool| tool.run(name, &args.arguments)))
}

fn perform(prepared: PreparedTool) -> Result<Exit, CommandError> {
    let PreparedTool {
        stand_in,
        host,
        mut output,
        mut complaints,
        input,
        priority: _priority,
        pid_file: _pid_file,
    } = prepared;
    let interrupts = Arc::new(Interrupts::new().map_err(CommandError::failed)?);
    let raised = Arc::clone(&interrupts);
    Signals::hand_over(&STOP_SIGNALS, move |signal| raised.raise(signal))?;
    let lab = LabPortObserver::from_environment();
    // The tools' command lines have no option for it.
    let location = std::env::var("LINERATE_ARCHIVE").ok().filter(|location| !location.is_empty());
    let log_store = archive::log_store(location, None);
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let invocation = Invocation {
        host,
        world: if lab.is_some() { World::Lab } else { World::Hosts },
        observer: lab.as_ref().map(|lab| lab as &dyn PortObserver),
        log_store: Some(&log_store as &dyn LogStore),
        interrupts: &interrupts,
        output: output.as_deref_mut().unwrap_or(&mut stdout),
        complaints: complaints.as_deref_mut().unwrap_or(&mut stderr),
        input: Some(input.unwrap_or_else(|| Box::new(std::io::stdin()))),
    };
    let code = drive(stand_in, invocation).map_err(CommandError::failed)?;
    Ok(Exit::Code(u8::try_from(code).unwrap_or(1)))
}

/// Reports text that could not be written, except to a closed pipe. The tool's exit code stays the same.
fn report_unwritten(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        print::error(format!("the output could not be printed: {error}"));
    }
}

/// Arguments as text; lossy, as the tools' options contain no other bytes.
fn argument_texts(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
