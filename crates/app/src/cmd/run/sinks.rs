//! Destinations of the events of a plan and its runs: one archive and one stream for all logs.

use std::cell::RefCell;
use std::rc::Rc;

use linerate_control::{Sink, SinkError};
use linerate_model::Event;
use linerate_runner::ArchiveSink;

use super::super::measuring::sinks::Stream;
use super::RunArgs;
use crate::archive_sink;

/// A sink shared by several logs.
#[derive(Debug)]
struct Shared<S>(Rc<RefCell<S>>);

impl<S: Sink> Sink for Shared<S> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.borrow_mut().on(event)
    }
}

/// The sinks of a plan.
pub(super) struct Sinks {
    archive: Option<Rc<RefCell<ArchiveSink>>>,
    stream: Option<Rc<RefCell<Stream>>>,
}

impl Sinks {
    pub(super) fn open(args: &RunArgs) -> Self {
        let archive = archive_sink::open(args.archive.archive.as_deref());
        Self {
            archive: archive.map(|sink| Rc::new(RefCell::new(sink))),
            stream: args.json_stream.then(|| Rc::new(RefCell::new(Stream::default()))),
        }
    }

    /// The sinks for one log.
    pub(super) fn for_a_log(&self) -> Vec<Box<dyn Sink>> {
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        sinks.extend(self.archive.iter().map(|sink| Box::new(Shared(Rc::clone(sink))) as Box<dyn Sink>));
        sinks.extend(self.stream.iter().map(|sink| Box::new(Shared(Rc::clone(sink))) as Box<dyn Sink>));
        sinks
    }

    /// Writes the pending events; whether everything is in the archive.
    pub(super) fn close(&self) -> bool {
        self.archive.as_ref().is_some_and(|archive| archive_sink::close(&mut archive.borrow_mut()))
    }

    /// Whether everything was written to stdout until its reader closed the pipe.
    pub(super) fn streamed(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.borrow().end())
    }
}
