//! Both ends of a test in one call each.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_control::{ControlError, Server, ServerConfig, ServerHandle, Sink, SinkError};
use linerate_model::{Event, RunRecord, TestSpec};

use crate::{CancelToken, Measurement, RunnerError};

/// Runs a test against a server and returns its record.
///
/// `host` is HOST, HOST:PORT or \[ADDRESS\]:PORT. `on` gets each event as it happens, on the calling thread,
/// which blocks until the run is over. Any thread may cancel the token to end early and keep what was measured.
///
/// # Errors
/// The specification or the host is invalid, or the run could not be started or finished; `on` has received
/// what was measured until then.
pub fn run(
    host: &str,
    spec: &TestSpec,
    cancel: &CancelToken,
    on: &mut dyn FnMut(&Event),
) -> Result<RunRecord, RunnerError> {
    let measurement = Measurement::new(host, spec.clone())?;
    let mut listener = CallbackSink(on);
    let measured = measurement.run(cancel, vec![&mut listener], &mut |_| None);
    measured.outcome.map_err(RunnerError::from)?;
    Ok(measured.record)
}

/// Runs a server for TCP and UDP on these addresses, or on all of this host if none is given, until the process
/// ends. It serves one client at a time.
///
/// # Errors
/// An address cannot be listened on, or the host refuses threads or polling.
pub fn serve(addresses: Vec<SocketAddr>) -> Result<(), ControlError> {
    let config = ServerConfig { addresses, ..ServerConfig::default() };
    Server::bind(config)?.run(Arc::new(ServerHandle::new()?), |_| ())
}

struct CallbackSink<'a>(&'a mut dyn FnMut(&Event));

impl Sink for CallbackSink<'_> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        (self.0)(event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Body;
    use linerate_units::Span;

    #[test]
    fn a_program_measures_to_a_server_in_itself_and_sees_every_event() {
        let addresses = vec!["127.0.0.1:0".parse().unwrap()];
        let server =
            Server::bind(ServerConfig { addresses, one_off: true, ..ServerConfig::default() }).unwrap();
        let host = server.addresses()[0].to_string();
        let switch = Arc::new(ServerHandle::new().unwrap());
        let serving = std::thread::spawn(move || server.run(switch, |_| ()));
        let mut spec = TestSpec::default();
        spec.traffic.duration = Some(Span::from_ms(200));
        let mut events: Vec<Event> = Vec::new();
        let record = run(&host, &spec, &CancelToken::new(), &mut |event| events.push(event.clone())).unwrap();
        serving.join().unwrap().unwrap();
        assert!(record.flows.iter().all(|flow| flow.bitrate().is_some()) && !record.flows.is_empty());
        assert_eq!(RunRecord::fold(&events), record);
        assert!(matches!(events.last().map(|event| &event.body), Some(Body::RunEnded { .. })));
    }

    #[test]
    fn mistakes_of_the_caller_are_reported_before_anything_is_sent() {
        let refused = |host: &str, spec: &TestSpec| {
            let error = run(host, spec, &CancelToken::new(), &mut |_| panic!("an event")).unwrap_err();
            error.to_string()
        };
        assert!(refused("host:0", &TestSpec::default()).contains("HOST:PORT"));
        let mut spec = TestSpec::default();
        spec.socket.mss = Some(1);
        assert!(refused("host", &spec).contains("--set-mss"));
    }
}
