//! `linerate test`.

mod sinks;

use std::path::Path;

use linerate_control::{Log, Request, Sink, Witness, measure};
use linerate_model::{Outcome, RunRecord, TestSpec, World};
use linerate_units::Bitrate;

use super::format;
use crate::archive_sink::ArchiveSink;
use crate::args::{FormatName, TestArgs};
use crate::exit::Exit;
use crate::lab_witness::LabWitness;
use crate::naming::{now, run_name, target};
use crate::signals::Signals;
use crate::{say, terminal};
use sinks::{Screen, Stream};

pub(crate) fn run(args: &TestArgs) -> Exit {
    if let Err(error) = args.spec.check() {
        say::error(error);
        return Exit::Usage;
    }
    let (host, port) = match target(&args.host, args.port) {
        Ok(found) => found,
        Err(trouble) => {
            say::error(trouble);
            return Exit::Usage;
        }
    };
    if let Some(trouble) = trouble_here(&args.spec) {
        say::error(trouble);
        return Exit::Usage;
    }
    if let Some(trouble) = args.output.report.as_deref().and_then(report_trouble) {
        say::error(trouble);
        return Exit::Usage;
    }
    let Ok(signals) = Signals::catch() else {
        say::error("cannot catch signals");
        return Exit::Failed;
    };
    let id = match run_name() {
        Ok(id) => id,
        Err(trouble) => {
            say::error(trouble);
            return Exit::Failed;
        }
    };
    let mut archive = ArchiveSink::open(args.archive.archive.as_deref());
    let mut screen = Screen::new(&args.output);
    let mut stream = args.output.json_stream.then(Stream::default);
    let mut sinks: Vec<&mut dyn Sink> = Vec::new();
    sinks.extend(archive.as_mut().map(|sink| sink as &mut dyn Sink));
    sinks.push(&mut screen);
    sinks.extend(stream.as_mut().map(|sink| sink as &mut dyn Sink));
    let mut log = Log::new(id.clone(), sinks);
    let lab = LabWitness::from_environment();
    let request = Request {
        host,
        port,
        spec: args.spec.clone(),
        world: if lab.is_some() { World::Lab } else { World::Hosts },
        started_at: now(),
        witness: lab.as_ref().map(|lab| lab as &dyn Witness),
        stop: signals.stop(),
    };
    let result = measure(&request, &mut log);
    let record = log.into_record();
    screen.end();
    let kept = archive.as_mut().is_some_and(ArchiveSink::close).then_some(id);
    let printed = print(args, &record, kept);
    let streamed = stream.is_none_or(|stream| stream.end());
    match result {
        Err(error) => {
            say::error(error);
            Exit::Failed
        }
        Ok(Outcome::Interrupted) => Exit::Interrupted(signals.which().unwrap_or(2)),
        Ok(_) if !streamed => Exit::Failed,
        Ok(_) => printed,
    }
}

/// Prints the result and writes the report file, whatever happened to the archive.
fn print(args: &TestArgs, record: &RunRecord, kept: Option<String>) -> Exit {
    for caveat in record.caveats.iter().filter(|c| c.kind == linerate_model::CaveatKind::NotArchived) {
        say::warning(&caveat.text);
    }
    let mut view = terminal::stdout_view();
    view.explain = args.output.explain;
    view.kept = kept.map(|id| id.chars().take(8).collect());
    let mut printed = Exit::Done;
    if args.output.json {
        printed = format::to_stdout(record, &[], FormatName::Json, &view);
    } else if !args.output.json_stream
        && (record.flows.iter().any(|f| f.receiver.is_some() || f.progress.is_some()))
    {
        printed = format::to_stdout(record, &[], FormatName::Text, &view);
    }
    if let Some(path) = &args.output.report
        && let Err(error) = format::to_file(record, &[], format_of(path).unwrap_or_default(), path)
    {
        say::error(format!("the report {} could not be written: {error}", path.display()));
        printed = Exit::Failed;
    }
    printed
}

/// What is wrong with values that concern this end alone, so that no server looks at them.
fn trouble_here(spec: &TestSpec) -> Option<String> {
    if spec.host.link == Some(Bitrate::ZERO) {
        return Some("--link: a link carries more than nothing; give its rate as 1G".to_owned());
    }
    let first = u32::from(spec.socket.source_port?);
    let at_once = spec.traffic.phases().iter().map(Vec::len).max().unwrap_or(1) as u32;
    let last = first + spec.traffic.streams * at_once - 1;
    (first == 0 || last > u32::from(u16::MAX)).then(|| {
        format!("--cport: the streams would take the ports {first} to {last}; ports go from 1 to 65535")
    })
}

fn format_of(path: &Path) -> Option<FormatName> {
    Some(match path.extension()?.to_str()? {
        "json" => FormatName::Json,
        "csv" => FormatName::Csv,
        "md" => FormatName::Markdown,
        "txt" => FormatName::Text,
        _ => return None,
    })
}

/// What is wrong with the report file, seen before anything is measured.
fn report_trouble(path: &Path) -> Option<String> {
    if format_of(path).is_none() {
        return Some(format!("--report {}: the name must end in .json, .csv, .md or .txt", path.display()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    (!folder.is_dir())
        .then(|| format!("--report {}: there is no folder {}", path.display(), folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_its_format_by_its_name() {
        assert_eq!(format_of(Path::new("a/b.md")), Some(FormatName::Markdown));
        assert!(report_trouble(Path::new("b.pdf")).unwrap().contains(".csv"));
        assert!(report_trouble(Path::new("/no/such/folder/b.md")).unwrap().contains("no folder"));
        assert_eq!(report_trouble(Path::new("b.md")), None);
    }
}
