//! `linerate lab demo`: a complete example, from creating to removing a lab.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use linerate_lab::LabHandle;

use super::super::page;
use super::programs::on_host;
use super::topology::{LabError, find, lab_name};
use super::{PlaceArgs, status, up};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{print, terminal};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(place: &PlaceArgs) -> Exit {
    // Ctrl-C ends the programs of the demonstration; this one has to survive to remove the lab.
    let Ok(signals) = Signals::catch() else {
        print::error("cannot catch signals");
        return Exit::Failed;
    };
    let lab = match bring_up(place) {
        Ok(lab) => lab,
        Err(trouble) => return trouble.report(),
    };
    let mut exit = measure(&lab).unwrap_or_else(LabError::report);
    match lab.down() {
        Ok(_) => print::note("\nthe lab is down and completely removed"),
        Err(error) => exit = LabError::failed(error).report(),
    }
    signals.which().map_or(exit, Exit::Interrupted)
}

fn bring_up(place: &PlaceArgs) -> Result<LabHandle, LabError> {
    let place = place.open()?;
    let name = format!("demo-{}", std::process::id());
    print::note(format!("two hosts, a and b, on a 1 Gb/s switch: linerate lab up pair --name {name}"));
    let (lab, _) = up::start(&find("pair")?, &[], &lab_name(&name)?, &place)?;
    Ok(lab)
}

fn measure(lab: &LabHandle) -> Result<Exit, LabError> {
    let mut server = Server::start(lab)?;
    print::note("measuring from a to b: linerate test b -t 3\n");
    let done = on_host(lab, "a", ["test", "b", "-t", "3"])
        .and_then(|mut client| client.status())
        .map_err(|error| LabError::failed(format!("the client could not be started: {error}")))?;
    server.end();
    if let Ok(now) = lab.status(ANSWER_TIMEOUT) {
        let view = terminal::stdout_view();
        print::note("\nwhat the switch counted: linerate lab status");
        page::print(status::text(&now, view.width, view.colour).as_bytes());
    }
    Ok(if done.success() { Exit::Done } else { Exit::Failed })
}

/// A server on host b, terminated on drop.
struct Server(Child);

impl Server {
    /// Starts it and waits until it listens.
    fn start(lab: &LabHandle) -> Result<Self, LabError> {
        let mut child = on_host(lab, "b", ["serve", "--json"])
            .and_then(|mut server| server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn())
            .map_err(|error| LabError::failed(format!("the server could not be started: {error}")))?;
        let out = child.stdout.take();
        let server = Self(child);
        let mut line = String::new();
        let read = out.map(|out| BufReader::new(out).read_line(&mut line));
        if !matches!(read, Some(Ok(1..))) {
            return Err(LabError::failed("the server on host b ended before it was listening"));
        }
        Ok(server)
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
