//! Further runs for the open questions of a test: `--investigate`.

use linerate_control::{ControlError, FollowUpRun, Log, Request, Sink, investigate};
use linerate_model::Outcome;
use linerate_theory::follow_up::Topic;

use crate::archive_sink::ArchiveSink;
use crate::args::{ArchiveArgs, Investigation, OutputArgs};
use crate::naming::{now, run_name};
use crate::{print, terminal};

/// Measures, and makes further runs; each is archived as a separate run.
pub(super) fn measure(
    request: &Request<'_>,
    archive: &ArchiveArgs,
    output: &OutputArgs,
    log: &mut Log<'_>,
    wanted: Investigation,
) -> Result<Outcome, ControlError> {
    let told = terminal::watched() && !output.quiet && !output.json_stream;
    let topic = match wanted {
        Investigation::Open => None,
        Investigation::Reads => Some(Topic::Reads),
    };
    investigate(request, log, topic, &mut |question| {
        if told {
            print::live(&question.because);
        }
        let id = run_name().inspect_err(|trouble| print::warning(trouble)).ok()?;
        let sink = ArchiveSink::open(archive.archive.as_deref());
        let sinks = sink.map(|sink| Box::new(sink) as Box<dyn Sink>).into_iter().collect();
        Some(FollowUpRun { log: Log::owning(id, sinks), started_at: now() })
    })
}
