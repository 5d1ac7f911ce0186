//! `linerate sweep`.

use linerate_model::{Event, RunRecord, TestSpec};
use linerate_report::Format;

use super::format;
use super::format::format_of;
use super::measuring::{self, MeasureRequest, file_error, write_report};
use crate::args::{OutputArgs, SweepArgs};
use crate::exit::Exit;
use crate::{print, terminal};

/// Extensions of report files.
const REPORTS: &str = ".html, .json, .csv, .md, .txt or .svg";

pub(crate) fn run(args: &SweepArgs) -> Exit {
    let spec = TestSpec::of_sweep(args.sweep.clone(), args.socket.clone(), args.hosts.clone());
    if let Err(error) = spec.check() {
        print::error(error);
        return Exit::Usage;
    }
    let (report, svg) = (args.output.report.as_deref(), args.output.svg.as_deref());
    let trouble = report.and_then(|path| file_error("--report", path, REPORTS));
    if let Some(trouble) = trouble.or_else(|| file_error("--svg", svg?, ".svg")) {
        print::error(trouble);
        return Exit::Usage;
    }
    let output = OutputArgs {
        json: args.output.json,
        json_stream: args.output.json_stream,
        quiet: args.output.quiet,
        rows: false,
        explain: false,
        report: None,
    };
    let wish = MeasureRequest {
        host: &args.host,
        port: args.port,
        spec,
        agent: None,
        investigate: None,
        output: &output,
        archive: &args.archive,
        keep_log: report.and_then(format_of) == Some(Format::Html),
    };
    measuring::run(wish, |record, events, kept| print(args, record, events, kept))
}

/// Prints the result and writes the files, even if the archive failed.
fn print(args: &SweepArgs, record: &RunRecord, events: &[Event], kept: Option<String>) -> Exit {
    let mut view = terminal::stdout_view();
    view.kept = kept;
    let measured = linerate_report::format::is_sweep(record);
    let mut printed = Exit::Done;
    if args.output.json {
        printed = format::to_stdout(record, &[], Format::Json, &view);
    } else if measured && args.output.csv {
        printed = format::to_stdout(record, &[], Format::Csv, &view);
    } else if measured && !args.output.json_stream {
        printed = format::to_stdout(record, &[], Format::Text, &view);
        if printed == Exit::Done && (args.output.plot || terminal::printed()) {
            printed = format::draw(record, &view);
        }
    }
    let report = args.output.report.iter().map(|path| (format_of(path).unwrap_or_default(), path));
    let picture = args.output.svg.iter().map(|path| (Format::Svg, path));
    for (format, path) in report.chain(picture).filter(|_| measured) {
        let written = write_report(record, events, format, path);
        printed = if written == Exit::Done { printed } else { written };
    }
    printed
}
