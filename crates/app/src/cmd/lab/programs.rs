//! The programs of a lab: this program, in several roles.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use linerate_lab::LabHandle;
use linerate_runner::lab::LabPrograms;

/// Starts the switch and the agents of a lab by executing this program.
#[derive(Debug)]
pub(in crate::cmd) struct OwnPrograms;

impl LabPrograms for OwnPrograms {
    fn switch(&self, lab: &LabHandle, tied: bool) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["lab", "switch", "--name", lab.name(), "--run-dir"]).arg(lab.run_dir());
        command.args(tied.then_some("--tied"));
        Ok(command)
    }

    fn agent(&self, lab: &LabHandle, host: &str, port: u16) -> io::Result<Command> {
        let mut command = on_host(lab, host, ["serve", "--json", "--port", &port.to_string()])?;
        command
            .args(["--archive", ":memory:"])
            // The token is not in a file, which a killed coordinator could not remove.
            .args(["--agent-token-file", "/dev/stdin"])
            // Its journal is in the lab's folder: the settings that it changes disappear with the host.
            .arg("--run-dir")
            .arg(lab.folder());
        Ok(command)
    }
}

/// This program, on a host of the lab.
pub(super) fn on_host<S: AsRef<OsStr>>(
    lab: &LabHandle,
    host: &str,
    args: impl IntoIterator<Item = S>,
) -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(&program);
    command.args(["lab", "exec", "--run-dir"]).arg(lab.run_dir()).args(["--lab", lab.name(), host, "--"]);
    command.arg(program).args(args);
    Ok(command)
}
