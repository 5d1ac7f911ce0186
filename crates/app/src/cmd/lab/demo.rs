//! `linerate lab demo`: a complete example, from creating to removing a lab.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use linerate_lab::LabHandle;

use super::programs::on_host;
use super::which_lab::{lab_name, topology};
use super::{status, up};
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::signals::Signals;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(place: &RunFolder) -> Result<Exit, CommandError> {
    // Ctrl-C ends the programs of the demonstration; this one has to survive to remove the lab.
    let signals = Signals::catch()?;
    let lab = bring_up(place)?;
    let mut exit = measure(&lab).unwrap_or_else(CommandError::report);
    match lab.down() {
        Ok(_) => print::note("\nthe lab is down and completely removed"),
        Err(error) => exit = CommandError::failed(error).report(),
    }
    Ok(signals.which().map_or(exit, Exit::Interrupted))
}

fn bring_up(place: &RunFolder) -> Result<LabHandle, CommandError> {
    let state = place.open().map_err(CommandError::failed)?;
    let name = format!("demo-{}", std::process::id());
    print::note(format!("two hosts, a and b, on a 1 Gb/s switch: linerate lab up pair --name {name}"));
    let (lab, _) = up::start(&topology("pair")?, &[], &lab_name(&name)?, &state)?;
    Ok(lab)
}

fn measure(lab: &LabHandle) -> Result<Exit, CommandError> {
    let mut server = DemoServer::start(lab)?;
    print::note("measuring from a to b: linerate test b -t 3\n");
    let done = on_host(lab, "a", ["test", "b", "-t", "3"])
        .and_then(|mut client| client.status())
        .map_err(|error| CommandError::failed(format!("the client could not be started: {error}")))?;
    server.end();
    if let Ok(now) = lab.status(ANSWER_TIMEOUT) {
        print::note("\nwhat the switch counted: linerate lab status");
        status::print(&now, false);
    }
    Ok(if done.success() { Exit::Done } else { Exit::Failed })
}

/// A server on host b, terminated on drop.
struct DemoServer(Child);

impl DemoServer {
    /// Starts it and waits until it listens.
    fn start(lab: &LabHandle) -> Result<Self, CommandError> {
        let mut child = on_host(lab, "b", ["serve", "--json"])
            .and_then(|mut server| server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn())
            .map_err(|error| CommandError::failed(format!("the server could not be started: {error}")))?;
        let out = child.stdout.take();
        let server = Self(child);
        let mut line = String::new();
        let read = out.map(|out| BufReader::new(out).read_line(&mut line));
        if !matches!(read, Some(Ok(1..))) {
            return Err(CommandError::failed("the server on host b ended before it was listening"));
        }
        Ok(server)
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        self.end();
    }
}
