//! iperf 2's command line.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use linerate_compat::iperf2::{Iperf2Client, Iperf2Input, Iperf2Server, Iperf2Settings, parse};
use linerate_compat::stand_in::StandIn;
use linerate_runner::log_file;
use linerate_sock::clock::wall_ns;
use linerate_sock::priority::Urgent;
use linerate_sock::process::detach;
use linerate_units::Span;

use super::{EarlyExit, PreparedTool, argument_texts};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let mut settings = parse(&argument_texts(arguments)).map_err(|refusal| {
        if refusal.to_stdout {
            EarlyExit::both(refusal.text, String::new(), refusal.code)
        } else {
            EarlyExit::error(refusal.text, refusal.code)
        }
    })?;
    if settings.daemon {
        go_to_background()?;
    }
    settings.epoch = Span::from_ns(wall_ns());
    settings.pid = std::process::id();
    let host = settings.host.clone();
    let output = match &settings.output {
        None => None,
        Some(path) => Some(log_file(Path::new(path)).map_err(|error| unusable(path, &error))?),
    };
    let input = input(&settings)?;
    let priority = realtime(&settings);
    let stand_in: Box<dyn StandIn> = match &host {
        Some(_) => Box::new(Iperf2Client::new(settings)),
        None => Box::new(Iperf2Server::new(settings)),
    };
    let output = output.map(|file| file as Box<dyn Write>);
    Ok(PreparedTool { output, input, priority, ..PreparedTool::new(stand_in, host) })
}

fn unusable(path: &str, error: &std::io::Error) -> EarlyExit {
    EarlyExit::error(format!("{path} cannot be opened: {error}\n"), 1)
}

/// The file of `-F`. 2.1.8 would send its pattern instead of a missing file.
fn input(settings: &Iperf2Settings) -> Result<Option<Box<dyn Read + Send>>, EarlyExit> {
    match settings.input.as_ref().filter(|_| !settings.server) {
        Some(Iperf2Input::File(path)) => {
            let file = File::open(path).map_err(|error| unusable(path, &error))?;
            Ok(Some(Box::new(file)))
        }
        Some(Iperf2Input::Standard) | None => Ok(None),
    }
}

/// `-z`. The threads that the tool starts inherit the priority.
fn realtime(settings: &Iperf2Settings) -> Option<Urgent> {
    if !settings.realtime {
        return None;
    }
    let claimed = Urgent::claim();
    if let Err(error) = &claimed {
        let _ = writeln!(std::io::stderr(), "WARN: -z has no effect: {error}; it needs root");
    }
    claimed.ok()
}

/// `-D`: continues in a session of its own, without a terminal.
fn go_to_background() -> Result<(), EarlyExit> {
    // Nothing is to be done if nobody reads it.
    let _ = writeln!(std::io::stderr(), "Running Iperf Server as a daemon");
    detach().map_err(|error| EarlyExit::error(format!("iperf: no daemon can be started: {error}\n"), 1))
}
