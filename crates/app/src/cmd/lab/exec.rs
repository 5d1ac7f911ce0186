//! `linerate lab exec`: runs any program on a host of a lab.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use clap::Args;

use super::which_lab::WhichLab;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::print;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The host
    host: String,
    /// The program and its arguments; the -- before it is optional
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    lab: WhichLab,
}

/// Replaces this process by the program, which thus has its own exit status, signals and terminal.
pub(super) fn run(args: &ExecArgs) -> Result<Exit, CommandError> {
    let lab = args.lab.find()?;
    let status = lab.status(ANSWER_TIMEOUT).map_err(CommandError::failed)?;
    let Some(host) = status.hosts.iter().find(|host| host.name == args.host) else {
        let names: Vec<&str> = status.hosts.iter().map(|host| host.name.as_str()).collect();
        let text =
            format!("lab {} has no host {:?}; its hosts: {}", status.name, args.host, names.join(", "));
        return Err(CommandError::usage(text));
    };
    linerate_lab::enter(&lab, host, &status).map_err(CommandError::failed)?;
    let Some((program, rest)) = args.command.split_first() else { return Ok(Exit::Usage) };
    let mut command = Command::new(program);
    command.args(rest).env("LINERATE_LAB_HOST", &host.name);
    // A lab on the kernel backend has no switch process that could observe ports.
    if status.pid.is_some() {
        command.env("LINERATE_LAB", lab.socket());
    }
    let error = command.exec();
    print::error(format!("{}: {error}", program.display()));
    // Exit codes as in shells.
    Ok(Exit::Code(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }))
}
