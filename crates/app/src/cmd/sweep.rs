//! `linerate sweep`.

use clap::Args;
use linerate_model::{
    ArchiveOptions, Event, HostKnobs, LabelOptions, RunRecord, SocketKnobs, Sweep, SweepOutputOptions,
    TestSpec, TlsOptions,
};
use linerate_report::Format;
use linerate_report::format::SWEEP_EXTENSIONS;

use super::measuring::{self, MeasureRequest};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{self, check_file, write_report};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// The server: a name or an address, with or without :PORT
    #[arg(value_name = "HOST")]
    host: String,
    /// Port of the server [default: 5201]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    #[command(flatten)]
    sweep: Sweep,
    #[command(flatten)]
    socket: SocketKnobs,
    #[command(flatten)]
    hosts: HostKnobs,
    #[command(flatten)]
    tls: TlsOptions,
    #[command(flatten)]
    output: SweepOutputOptions,
    #[command(flatten)]
    labels: LabelOptions,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// Measures, and prints and draws the curve.
pub(crate) fn run(args: &SweepArgs) -> Result<Exit, CommandError> {
    let spec = TestSpec::of_sweep(args.sweep.clone(), args.socket.clone(), args.hosts.clone());
    spec.check().map_err(CommandError::usage)?;
    let output = &args.output;
    check_file("--report", output.report.as_deref(), SWEEP_EXTENSIONS)?;
    check_file("--svg", output.svg.as_deref(), ".svg")?;
    let request = MeasureRequest {
        host: &args.host,
        port: args.port,
        tls: &args.tls,
        spec,
        file: None,
        agent: None,
        investigation: None,
        output: output.live(),
        labels: args.labels.labels(),
        archive: &args.archive,
        keep_log: output.report.as_deref().and_then(Format::of_file).is_some_and(Format::needs_log),
    };
    measuring::run(request, |record, events, kept| print(args, record, events, kept))
}

/// Prints the result and writes the files, even if the archive failed.
fn print(args: &SweepArgs, record: &RunRecord, events: &[Event], kept: Option<String>) -> Exit {
    let mut view = terminal::stdout_view();
    view.kept = kept;
    let measured = linerate_report::format::is_sweep(record);
    let mut printed = Exit::Done;
    if args.output.json {
        printed = output_format::to_stdout(record, &[], Format::Json, &view);
    } else if measured && args.output.csv {
        printed = output_format::to_stdout(record, &[], Format::Csv, &view);
    } else if measured && !args.output.json_stream {
        printed = output_format::to_stdout(record, &[], Format::Text, &view);
        if printed == Exit::Done && (args.output.plot || terminal::printed()) {
            printed = output_format::draw(record, &view);
        }
    }
    let report = args.output.report.iter().map(|path| (Format::of_file(path).unwrap_or_default(), path));
    let picture = args.output.svg.iter().map(|path| (Format::Svg, path));
    for (format, path) in report.chain(picture).filter(|_| measured) {
        let written = write_report(record, events, format, path);
        printed = if written == Exit::Done { printed } else { written };
    }
    printed
}
