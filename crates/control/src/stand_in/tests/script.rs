//! A stand-in whose behaviour is a closure, and the functions that run it.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use linerate_compat::stand_in::{Input, LinkOptions, Output, Planned, StandIn, Transport};
use linerate_model::{Event, RunLabels, World};
use linerate_units::Timestamp;

use crate::stand_in::{Interrupts, Invocation, LogStore, StoredRun, drive};
use crate::{Sink, SinkError};

/// Exit code of a script that waits for too long; it then panics.
const NOTHING_HAPPENS: i32 = 99;

/// What a script may use besides its input.
#[derive(Default)]
pub(crate) struct ScriptContext {
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

impl ScriptContext {
    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }
}

struct ScriptedStandIn<F> {
    act: F,
    context: ScriptContext,
}

impl<F: FnMut(Input<'_>, &mut ScriptContext) + Send> StandIn for ScriptedStandIn<F> {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        assert!(!matches!(input, Input::Signal(NOTHING_HAPPENS)), "a script waits for what never comes");
        self.context.now = now;
        (self.act)(input, &mut self.context);
    }

    fn output(&mut self) -> Option<Output> {
        self.context.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.context.deadline
    }
}

/// A stand-in that calls `act` for every input.
pub(crate) fn script(act: impl FnMut(Input<'_>, &mut ScriptContext) + Send + 'static) -> Box<dyn StandIn> {
    Box::new(ScriptedStandIn { act, context: ScriptContext::default() })
}

/// Runs a stand-in as a program; returns its exit code and its output.
pub(crate) fn run(host: Option<&str>, stand_in: Box<dyn StandIn>) -> (i32, String) {
    let interrupts = Interrupts::new().unwrap();
    run_with(host, stand_in, &interrupts, None)
}

pub(crate) fn run_with(
    host: Option<&str>,
    stand_in: Box<dyn StandIn>,
    interrupts: &Interrupts,
    log_store: Option<&dyn LogStore>,
) -> (i32, String) {
    let (mut output, mut complaints) = (Vec::new(), Vec::new());
    let invocation = Invocation {
        host: host.map(str::to_owned),
        world: World::Hosts,
        observer: None,
        log_store,
        interrupts,
        output: &mut output,
        complaints: &mut complaints,
        input: Some(Box::new(&b"what was typed"[..])),
    };
    let (over, is_over) = channel::<()>();
    let code = thread::scope(|scope| {
        scope.spawn(move || {
            if is_over.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
                interrupts.raise(NOTHING_HAPPENS);
            }
        });
        let code = drive(stand_in, invocation).unwrap();
        drop(over);
        code
    });
    assert!(complaints.is_empty());
    (code, String::from_utf8(output).unwrap())
}

/// Channel on which a server that listens on port 0 reports its port.
pub(crate) fn port() -> (Sender<u16>, Receiver<u16>) {
    channel()
}

pub(crate) fn options(transport: Transport) -> LinkOptions {
    LinkOptions { transport, ..LinkOptions::default() }
}

pub(crate) fn loopback(port: u16) -> Option<SocketAddr> {
    Some(SocketAddr::from(([127, 0, 0, 1], port)))
}

/// Keeps all events in memory.
#[derive(Debug, Default, Clone)]
pub(crate) struct MemorySink(pub(crate) Arc<Mutex<Vec<Event>>>);

impl LogStore for MemorySink {
    fn open(&self, planned: &Planned, _: Option<IpAddr>) -> Option<StoredRun> {
        Some(StoredRun {
            labels: RunLabels::default(),
            name: format!("{}-{}", planned.tool, planned.run.0),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            sinks: vec![Box::new(self.clone())],
            calibration: None,
        })
    }
}

impl Sink for MemorySink {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}
