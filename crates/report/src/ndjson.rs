//! The event log with one JSON object per line: the raw form of a run, format `linerate.event/2`.

use std::io::Write;

use linerate_model::{Body, Event};
use linerate_units::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// An event log that could not be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NdjsonError {
    /// Writing failed.
    #[error(
        "cannot write the event log; check that the reading program is still running and that the disk \
             has space"
    )]
    Write(#[source] std::io::Error),
    /// A line is not an event.
    #[error("line {line} of the event log is not an event; give a file written by --json-stream or export")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
}

/// Writes one event and its line end.
///
/// # Errors
/// If writing to `out` fails.
pub fn write(event: &Event, out: &mut impl Write) -> Result<(), NdjsonError> {
    let mut line = serde_json::to_vec(event).map_err(|error| NdjsonError::Write(error.into()))?;
    line.push(b'\n');
    // A single call for the whole line: a reader never sees half an event from a writer that was killed between
    // two calls.
    out.write_all(&line).map_err(NdjsonError::Write)
}

/// Reads a log. A last line without its end comes from a killed writer and is skipped.
///
/// An event that only a newer version can read is replaced by a caveat.
///
/// # Errors
/// The first complete line that is not an event.
pub fn read(text: &str) -> Result<Vec<Event>, NdjsonError> {
    let mut events = Vec::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match event(line) {
            Ok(event) => events.push(event),
            Err(_) if !line.ends_with('\n') => break,
            Err(source) => return Err(NdjsonError::Line { line: number + 1, source }),
        }
    }
    Ok(events)
}

/// An event with an unparsed body.
#[derive(Deserialize)]
struct RawEvent {
    run: String,
    host: u16,
    seq: u64,
    at_ns: Timestamp,
    body: Value,
}

fn event(line: &str) -> Result<Event, serde_json::Error> {
    let RawEvent { run, host, seq, at_ns: at, body } = serde_json::from_str(line)?;
    let body = Body::read(body).unwrap_or_else(|error| Body::unreadable(seq, &error));
    Ok(Event { run: run.into(), host, seq, at, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;

    fn written() -> String {
        let mut out = Vec::new();
        for event in runs::tcp_run() {
            write(&event, &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_object_a_line_and_back() {
        let text = written();
        assert_eq!(text.lines().count(), runs::tcp_run().len());
        assert_eq!(read(&text).unwrap(), runs::tcp_run());
    }

    #[test]
    fn a_kind_that_only_a_newer_version_knows_is_a_caveat() {
        let line = r#"{"run":"r","host":1,"seq":7,"at_ns":5,"body":{"kind":"eclipse","darkness":[1]}}"#;
        let text = format!("{}{line}\n{}", written(), written());
        let events = read(&text).unwrap();
        let known = runs::tcp_run().len();
        assert_eq!(events.len(), 2 * known + 1);
        let strange = &events[known];
        assert_eq!((strange.run.as_str(), strange.host, strange.seq, strange.at.as_ns()), ("r", 1, 7, 5));
        let Body::Caveat { flow: None, caveat } = &strange.body else { panic!("{strange:?}") };
        assert_eq!(caveat.kind, linerate_model::CaveatKind::EventsDropped);
        assert!(caveat.text.contains("event 7") && caveat.text.contains("eclipse"), "{}", caveat.text);
    }

    #[test]
    fn a_torn_last_line_is_passed_over_and_a_wrong_one_is_named() {
        let text = written();
        let torn = &text[..text.len() - 5];
        assert_eq!(read(torn).unwrap().len(), runs::tcp_run().len() - 1);
        assert!(matches!(read("{}\n"), Err(NdjsonError::Line { line: 1, .. })));
    }
}
