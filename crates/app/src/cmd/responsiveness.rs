//! `linerate responsiveness`.

use std::io::Write;
use std::sync::Arc;

use clap::Args;
use linerate_compat::http::ResponsivenessTarget;
use linerate_control::{Interrupts, PortObserver, ResponsivenessRequest, measure_responsiveness};
use linerate_model::{ArchiveOptions, LabelOptions, Outcome, ResponsivenessOptions};
use linerate_report::Format;
use linerate_report::format::RUN_EXTENSIONS;
use linerate_runner::{KnownServers, LabPortObserver, server_trust};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output_format::{self, and_report, check_file};
use crate::signals::{self, Signals};
use crate::{archive, print, terminal};

#[derive(Debug, Args)]
pub(crate) struct ResponsivenessArgs {
    #[command(flatten)]
    options: ResponsivenessOptions,
    #[command(flatten)]
    labels: LabelOptions,
    #[command(flatten)]
    archive: ArchiveOptions,
}

/// Measures, and prints the result.
pub(crate) fn run(args: &ResponsivenessArgs) -> Result<Exit, CommandError> {
    let options = &args.options;
    check_file("--report", options.report.as_deref(), RUN_EXTENSIONS)?;
    let server = ResponsivenessTarget::parse(&options.server, options.port).map_err(CommandError::usage)?;
    options.check(server.is_encrypted()).map_err(CommandError::usage)?;
    let known = KnownServers { file: None, notify: |notice| print::note(notice) };
    let tls = options.tls(server.is_encrypted());
    let trust = server_trust(&tls, server.host(), Some(server.port()), known);
    let interrupts = Arc::new(Interrupts::new().map_err(CommandError::failed)?);
    let raised = Arc::clone(&interrupts);
    Signals::hand_over(&signals::ending(), move |signal| raised.raise(signal))?;
    let lab = LabPortObserver::from_environment();
    let log_store = archive::log_store(args.archive.archive.clone(), None);
    let mut stderr = std::io::stderr();
    let shows_progress = terminal::watched() && !options.quiet;
    let measured = measure_responsiveness(ResponsivenessRequest {
        target: server,
        trust: trust.map_err(CommandError::usage)?,
        options,
        labels: args.labels.labels(),
        observer: lab.as_ref().map(|lab| lab as &dyn PortObserver),
        unstored: log_store.unstored().map_err(CommandError::failed)?,
        log_store: &log_store,
        interrupts: &interrupts,
        progress: shows_progress.then_some(&mut stderr as &mut dyn Write),
    });
    let measured = measured.map_err(CommandError::failed)?;
    let record = &measured.record;
    if let (Some(signal), None) = (measured.signal, &record.start) {
        return Ok(Exit::Interrupted(signal));
    }
    let mut view = terminal::stdout_view();
    view.kept = measured.is_stored.then(|| record.run.chars().take(8).collect());
    let format = if options.json { Format::Json } else { Format::Text };
    let printed = output_format::to_stdout(record, &[], format, &view);
    let printed = and_report(printed, record, &measured.events, options.report.as_deref());
    Ok(match record.outcome {
        Some(Outcome::Completed) => printed,
        Some(Outcome::Interrupted) => Exit::Interrupted(measured.signal.unwrap_or(2)),
        _ => Exit::Failed,
    })
}
