//! Console lines with the time of day and their level, on the terminal and in a file.

use std::collections::VecDeque;

use linerate_units::{Span, Timestamp};

use crate::stand_in::Output;

const DAY: u64 = 86_400;

/// The program's console.
#[derive(Debug)]
pub(super) struct NtttcpConsole {
    /// Local time of day at the driver's start.
    began: Span,
    log: Option<String>,
    /// The pending output, in order.
    pub(super) outputs: VecDeque<Output>,
    begun: bool,
}

impl NtttcpConsole {
    pub(super) fn new(time_of_day: Span, log: Option<String>) -> Self {
        Self { began: time_of_day, log, outputs: VecDeque::new(), begun: false }
    }

    pub(super) fn info(&mut self, now: Timestamp, text: &str) {
        self.line(now, "INFO", text);
    }

    pub(super) fn error(&mut self, now: Timestamp, text: &str) {
        self.line(now, "ERR ", text);
    }

    pub(super) fn debug(&mut self, now: Timestamp, text: &str) {
        self.line(now, "DBG ", text);
    }

    /// Prints a line without time; it is not written to the file.
    pub(super) fn plain(&mut self, text: &str) {
        self.outputs.push_back(Output::Print(format!("{text}\n")));
    }

    pub(super) fn rule(&mut self) {
        self.plain(&"-".repeat(57));
    }

    fn line(&mut self, now: Timestamp, kind: &str, text: &str) {
        let seconds = (self.began + now.since(Timestamp::START)).as_ns() / 1_000_000_000 % DAY;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let text = format!("{hours:02}:{minutes:02}:{seconds:02} {kind}: {text}\n");
        if let Some(name) = self.log.clone() {
            let append = std::mem::replace(&mut self.begun, true);
            self.outputs.push_back(Output::WriteFile { name, text: text.clone(), append });
        }
        self.outputs.push_back(Output::Print(text));
    }

    /// The log file cannot be written: further lines are only printed.
    pub(super) fn disable_log(&mut self, name: &str) {
        if self.log.as_deref() == Some(name) {
            self.log = None;
        }
    }
}
