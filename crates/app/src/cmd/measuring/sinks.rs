//! Destinations of the events while a test runs.

use std::error::Error;
use std::io::{ErrorKind, Write};

use linerate_control::{Sink, SinkError};
use linerate_model::{CaveatKind, Event, LiveOutput};
use linerate_report::{IntervalRows, Live, TextLayout, ndjson};

use crate::{print, terminal};

/// Progress output: one live line on a terminal, rows elsewhere.
pub(super) struct MeasuringScreen {
    live: Option<Live>,
    rows: Option<IntervalRows>,
    shown: bool,
}

impl MeasuringScreen {
    pub(super) fn new(output: &LiveOutput) -> Self {
        let silent = output.quiet || output.json_stream;
        let watched = terminal::watched();
        Self {
            live: (!silent && watched).then(Live::new),
            rows: (!silent && !output.json && (!watched || output.rows)).then(IntervalRows::default),
            shown: false,
        }
    }

    /// Removes the live line.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            print::live("");
        }
    }

    /// Prints the rows that are due; stops without an error when the pipe is closed.
    fn print(&mut self, lines: &[String]) -> Result<(), SinkError> {
        self.end();
        let mut out = std::io::stdout().lock();
        // Flush, as the reader of a pipe may follow the rows live.
        let printed = lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
        match printed {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.rows = None;
                Ok(())
            }
            other => other.map_err(|error| lost("intervals could not be printed", error)),
        }
    }
}

impl Sink for MeasuringScreen {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Some(rows) = &mut self.rows {
            let lines = rows.on(event);
            if !lines.is_empty() {
                self.print(&lines)?;
            }
        }
        if let Some(live) = &mut self.live {
            live.on(event);
            let view = TextLayout {
                width: terminal::stderr_width().saturating_sub(1),
                colour: true,
                kept: None,
                explain: false,
                all_streams: false,
            };
            let line = live.line(&view);
            print::live(&line);
            self.shown = !line.is_empty();
        }
        Ok(())
    }
}

const NOT_PRINTED: &str = "the event log could not be printed";

fn lost(what: &'static str, error: impl Into<Box<dyn Error + Send + Sync>>) -> SinkError {
    SinkError { kind: CaveatKind::EventsDropped, what, source: error.into() }
}

/// The event log on stdout.
#[derive(Debug, Default)]
pub(in crate::cmd) struct StdoutLog {
    /// Whether the reader has closed the pipe.
    closed: bool,
    broken: bool,
}

impl StdoutLog {
    /// Whether everything was written until the reader closed the pipe; prints an error if not.
    pub(in crate::cmd) fn end(&self) -> bool {
        if self.broken {
            print::error("the end of the event log could not be printed");
        }
        !self.broken
    }
}

impl Sink for StdoutLog {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        if self.closed {
            return Ok(());
        }
        let mut line = Vec::new();
        ndjson::write(event, &mut line).map_err(|error| lost(NOT_PRINTED, error))?;
        let mut out = std::io::stdout().lock();
        match out.write_all(&line).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => {
                self.broken = true;
                Err(lost(NOT_PRINTED, error))
            }
            Ok(()) => Ok(()),
        }
    }
}
