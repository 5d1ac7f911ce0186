//! The sinks of a plan, which the logs of the plan and of its runs share.

use std::cell::RefCell;

use linerate_control::{Sink, SinkError};
use linerate_model::Event;

/// A sink shared by several logs.
struct SharedSink<'s, 'a>(&'s RefCell<&'a mut dyn Sink>);

impl Sink for SharedSink<'_, '_> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.borrow_mut().on(event)
    }
}

/// The sinks of a plan.
pub(super) struct SharedSinks<'a>(Vec<RefCell<&'a mut dyn Sink>>);

impl<'a> SharedSinks<'a> {
    pub(super) fn new(sinks: Vec<&'a mut dyn Sink>) -> Self {
        Self(sinks.into_iter().map(RefCell::new).collect())
    }

    /// The sinks for one log.
    pub(super) fn for_a_log(&self) -> Vec<Box<dyn Sink + '_>> {
        self.0.iter().map(|sink| Box::new(SharedSink(sink)) as Box<dyn Sink + '_>).collect()
    }
}
