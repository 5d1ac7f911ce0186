//! `linerate lab exec`: any program, on a host of a lab.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use linerate_emu::shell::wire::{Answer, Ask};

use super::ExecArgs;
use super::topology::Trouble;
use crate::exit::Exit;
use crate::say;

const PATIENCE: Duration = Duration::from_secs(10);

/// Becomes the program: its exit status, its signals and its terminal are its own.
pub(super) fn run(args: &ExecArgs) -> Exit {
    let lab = match args.lab.find() {
        Ok(lab) => lab,
        Err(trouble) => return trouble.say(),
    };
    let status = match lab.ask(&Ask::Status, PATIENCE) {
        Ok(Answer::Status(status)) => status,
        Ok(_) => return Trouble::failed("the lab's switch gave a wrong answer").say(),
        Err(error) => return Trouble::failed(error).say(),
    };
    let Some(host) = status.hosts.iter().find(|host| host.name == args.host) else {
        let names: Vec<&str> = status.hosts.iter().map(|host| host.name.as_str()).collect();
        let text = format!("lab {} has no host {:?}; its hosts: {}", status.name, args.host, names.join(", "));
        return Trouble::usage(text).say();
    };
    if let Err(error) = lab.enter(host, &status) {
        return Trouble::failed(error).say();
    }
    let Some((program, rest)) = args.command.split_first() else { return Exit::Usage };
    let error = Command::new(program)
        .args(rest)
        .env("LINERATE_LAB", lab.socket())
        .env("LINERATE_LAB_HOST", &host.name)
        .exec();
    say::error(format!("{}: {error}", program.display()));
    // As shells do it.
    Exit::Code(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}
