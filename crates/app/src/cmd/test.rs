//! `linerate test`.

use linerate_control::HostRef;
use linerate_model::{Event, RunRecord, TestSpec};
use linerate_report::Format;
use linerate_units::Bitrate;

use super::format;
use super::format::format_of;
use super::measuring::{self, MeasureRequest, file_error, write_report};
use crate::args::TestArgs;
use crate::exit::Exit;
use crate::{print, terminal};

/// Extensions of report files.
const REPORTS: &str = ".html, .json, .csv, .md, .txt or .svg";

pub(crate) fn run(args: &TestArgs) -> Exit {
    let agent = match understood(args) {
        Ok(agent) => agent,
        Err(trouble) => {
            print::error(trouble);
            return Exit::Usage;
        }
    };
    let wish = MeasureRequest {
        host: &args.host,
        port: args.port,
        spec: args.spec.clone(),
        agent,
        investigate: args.investigate,
        output: &args.output,
        archive: &args.archive,
        keep_log: args.output.report.as_deref().and_then(format_of) == Some(Format::Html),
    };
    measuring::run(wish, |record, events, kept| print(args, record, events, kept))
}

/// Checks the arguments; returns the agent that measures, if one is given.
fn understood(args: &TestArgs) -> Result<Option<HostRef>, String> {
    args.spec.check().map_err(|error| error.to_string())?;
    let report = args.output.report.as_deref();
    let trouble = local_error(&args.spec).or_else(|| file_error("--report", report?, REPORTS));
    trouble.map_or(Ok(()), Err)?;
    measuring::agent(args)
}

/// Prints the result and writes the report file, even if the archive failed.
fn print(args: &TestArgs, record: &RunRecord, events: &[Event], kept: Option<String>) -> Exit {
    let mut view = terminal::stdout_view();
    view.kept = kept;
    view.explain = args.output.explain;
    let mut printed = Exit::Done;
    if args.output.json {
        printed = format::to_stdout(record, &[], Format::Json, &view);
    } else if !args.output.json_stream
        && (record.flows.iter().any(|f| f.receiver.is_some() || f.progress.is_some()))
    {
        printed = format::to_stdout(record, &[], Format::Text, &view);
    }
    if let Some(path) = &args.output.report {
        let written = write_report(record, events, format_of(path).unwrap_or_default(), path);
        printed = if written == Exit::Done { printed } else { written };
    }
    printed
}

/// Errors in values that only concern this end, which a server does not check.
fn local_error(spec: &TestSpec) -> Option<String> {
    if spec.host.link == Some(Bitrate::ZERO) {
        return Some("--link: the rate must be above zero; give it like 1G".to_owned());
    }
    let first = u32::from(spec.socket.source_port?);
    let at_once = spec.traffic.phases().iter().map(Vec::len).max().unwrap_or(1) as u32;
    let last = first + spec.traffic.streams * at_once - 1;
    (first == 0 || last > u32::from(u16::MAX)).then(|| {
        format!("--cport: the streams would need the ports {first} to {last}, but ports end at 65535")
    })
}
