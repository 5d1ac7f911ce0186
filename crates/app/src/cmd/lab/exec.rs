//! `linerate lab exec`: runs any program on a host of a lab.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use super::ExecArgs;
use super::topology::LabError;
use crate::exit::Exit;
use crate::print;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Replaces this process by the program, which thus has its own exit status, signals and terminal.
pub(super) fn run(args: &ExecArgs) -> Exit {
    let lab = match args.lab.find() {
        Ok(lab) => lab,
        Err(trouble) => return trouble.report(),
    };
    let status = match lab.status(ANSWER_TIMEOUT) {
        Ok(status) => status,
        Err(error) => return LabError::failed(error).report(),
    };
    let Some(host) = status.hosts.iter().find(|host| host.name == args.host) else {
        let names: Vec<&str> = status.hosts.iter().map(|host| host.name.as_str()).collect();
        let text =
            format!("lab {} has no host {:?}; its hosts: {}", status.name, args.host, names.join(", "));
        return LabError::usage(text).report();
    };
    if let Err(error) = linerate_lab::enter(&lab, host, &status) {
        return LabError::failed(error).report();
    }
    let Some((program, rest)) = args.command.split_first() else { return Exit::Usage };
    let mut command = Command::new(program);
    command.args(rest).env("LINERATE_LAB_HOST", &host.name);
    // A lab on the kernel backend has no switch process that could observe ports.
    if status.pid.is_some() {
        command.env("LINERATE_LAB", lab.socket());
    }
    let error = command.exec();
    print::error(format!("{}: {error}", program.display()));
    // Exit codes as in shells.
    Exit::Code(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}
