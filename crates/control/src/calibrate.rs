//! Measures the limits of this host: its loopback throughput, and the cost and precision of system calls, clock
//! and timers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::{
    CALIBRATION_SCHEMA, Calibration, CopyRate, FlowRecord, LoopbackRate, Outcome, PacingError, SendMethod,
    Side, TestSpec, WakeUp, World,
};
use linerate_sock::{clock, cost, memcopy};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use crate::client::{TestRequest, measure};
use crate::error::ControlError;
use crate::host::host_info;
use crate::log::Log;
use crate::server::{Server, ServerConfig, ServerHandle};

/// Duration of a calibration flow, and the omitted part at its start.
const FLOW_DURATION: Span = Span::from_ms(600);
const OMIT: Span = Span::from_ms(100);
/// Number of repeats. The fastest one counts, because other load on the host can only slow a flow down.
const REPEATS: u32 = 2;
/// The rate of the paced flow. Any host carries much more, so only the pacing error is visible.
const PACED_BPS: f64 = 100e6;
/// Number of timed waits for the wake-up latency, and the duration of each.
const WAKE_UP_TRIALS: u32 = 500;
const WAKE_UP_WAIT: Duration = Duration::from_millis(1);
/// Sizes of the copied blocks: they fit in the L1 cache, the L2 cache, the last-level cache, and none of them.
const COPY_BLOCK_BYTES: [usize; 4] = [16 << 10, 256 << 10, 4 << 20, 64 << 20];
const COPY_TIME: Duration = Duration::from_millis(30);

/// A flow of the calibration.
struct CalibrationFlow {
    name: &'static str,
    change: fn(&mut TestSpec),
}

/// The send modes whose limits are measured.
const MODES: [CalibrationFlow; 6] = [
    CalibrationFlow { name: "TCP, one stream", change: |_| {} },
    CalibrationFlow { name: "TCP, four streams", change: |spec| spec.traffic.streams = 4 },
    CalibrationFlow {
        name: "TCP, one stream by splice",
        change: |spec| spec.socket.io = Some(SendMethod::Splice),
    },
    CalibrationFlow {
        name: "TCP, one stream by sendfile",
        change: |spec| spec.socket.io = Some(SendMethod::Sendfile),
    },
    CalibrationFlow { name: "UDP, one stream", change: saturating_udp },
    CalibrationFlow {
        name: "UDP, four streams",
        change: |spec| (saturating_udp(spec), spec.traffic.streams = 4).1,
    },
];

fn saturating_udp(spec: &mut TestSpec) {
    spec.traffic.udp = true;
    spec.traffic.rate = Some(Bitrate::ZERO);
}

/// Measures the limits of this host with both ends on its loopback interface. Calls `report` with the name of
/// each step before the step begins.
///
/// Takes about ten seconds and uses all processors. `measured_at` is the wall-clock time, RFC 3339.
///
/// # Errors
/// Loopback cannot be measured on this host, or `stop` was set.
pub fn calibrate(
    measured_at: String,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&str),
) -> Result<Calibration, ControlError> {
    let host = host_info(None);
    report("system calls, clock, timers and memory");
    let mut calibration = Calibration {
        schema: CALIBRATION_SCHEMA.into(),
        measured_at: measured_at.into(),
        linerate: host.linerate,
        kernel: host.kernel,
        cpu: host.cpu,
        cores: host.cores,
        syscall: cost::syscall().map(Span::from),
        clock_read: Some(Span::from(cost::clock_read())),
        clock_resolution: clock::resolution().map(Span::from),
        wake_up: wake_up(&cost::wake_ups(WAKE_UP_TRIALS, WAKE_UP_WAIT)),
        memory_copy: COPY_BLOCK_BYTES.into_iter().filter_map(copy).collect(),
        ..Calibration::default()
    };
    let server = LoopbackServer::start()?;
    for mode in &MODES {
        report(mode.name);
        let mut spec = plain();
        (mode.change)(&mut spec);
        let mut rates = Vec::new();
        for _ in 0..REPEATS {
            rates.extend(loopback_rate(&spec, &server.measure(&spec, stop)?));
        }
        let fastest = rates.into_iter().max_by(|a, b| a.bitrate_bps.bps().total_cmp(&b.bitrate_bps.bps()));
        calibration.loopback.extend(fastest);
    }
    report("pacing");
    let mut spec = plain();
    saturating_udp(&mut spec);
    spec.traffic.rate = Bitrate::from_bps(PACED_BPS);
    calibration.pacing = pacing_error(&server.measure(&spec, stop)?);
    Ok(calibration)
}

/// A specification with an upload only, without latency probes.
fn plain() -> TestSpec {
    let mut spec = TestSpec::default();
    spec.traffic.upload = true;
    spec.traffic.no_latency = true;
    spec.traffic.duration = Some(FLOW_DURATION);
    spec.traffic.omit = Some(OMIT);
    spec
}

fn copy(block: usize) -> Option<CopyRate> {
    let bitrate_bps = Bitrate::from_bps(memcopy::memcopy_bps(block, COPY_TIME)?)?;
    Some(CopyRate { block_bytes: Bytes::new(block as u64), bitrate_bps })
}

/// Quantiles of wake-up latencies sorted in ascending order, by the empirical distribution (RFC 2330 §11.1).
fn wake_up(late: &[Duration]) -> Option<WakeUp> {
    let at = |share: f64| {
        let rank = (share * late.len() as f64).ceil() as usize;
        late.get(rank.max(1) - 1).copied().map(Span::from)
    };
    let count = u32::try_from(late.len()).ok()?;
    Some(WakeUp { count, p50_ns: at(0.5)?, p99_ns: at(0.99)?, max_ns: at(1.0)? })
}

fn loopback_rate(spec: &TestSpec, flow: &FlowRecord) -> Option<LoopbackRate> {
    let settings = flow.sender_settings.as_ref()?;
    Some(LoopbackRate {
        transport: spec.traffic.transport(),
        streams: spec.traffic.streams,
        method: settings.method().map(Into::into),
        length_bytes: settings.length,
        bitrate_bps: flow.bitrate()?,
    })
}

fn pacing_error(flow: &FlowRecord) -> Option<PacingError> {
    let asked = Bitrate::from_bps(PACED_BPS)?;
    let offered = flow.tally(Side::Sender)?.bitrate;
    let error = Ratio::new((offered.bps() / asked.bps() - 1.0).abs())?;
    Some(PacingError { asked_bps: asked, offered_bps: offered, error })
}

/// A server on the loopback interface, which stops when this is dropped.
struct LoopbackServer {
    address: SocketAddr,
    switch: Arc<ServerHandle>,
    thread: Option<JoinHandle<Result<(), ControlError>>>,
}

impl LoopbackServer {
    fn start() -> Result<Self, ControlError> {
        let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        let server = Server::bind(ServerConfig { addresses, ..ServerConfig::default() })?;
        let nowhere = || ControlError::Local("the loopback interface has no address".to_owned());
        let address = server.addresses().first().copied().ok_or_else(nowhere)?;
        let switch = Arc::new(ServerHandle::new()?);
        let off = Arc::clone(&switch);
        let thread = linerate_sock::thread::spawn("calibration", move || server.run(off, |_| ()))?;
        Ok(Self { address, switch, thread: Some(thread) })
    }

    /// Makes one run and returns the record of its only flow.
    fn measure(&self, spec: &TestSpec, stop: &AtomicBool) -> Result<FlowRecord, ControlError> {
        let mut log = Log::new("calibration".to_owned(), Vec::new());
        let request = TestRequest {
            host: self.address.ip().to_string(),
            port: Some(self.address.port()),
            spec: spec.clone(),
            tls: None,
            world: World::Hosts,
            started_at: String::new(),
            calibration: None,
            observer: None,
            file: None,
            stop,
        };
        let outcome = measure(&request, &mut log)?;
        if outcome == Outcome::Interrupted || stop.load(Ordering::Relaxed) {
            return Err(ControlError::Stopped);
        }
        let flow = log.into_record().flows.pop();
        flow.ok_or_else(|| {
            ControlError::Local("nothing was transferred over the loopback interface".to_owned())
        })
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.switch.turn_off();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let late: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        let found = wake_up(&late).unwrap();
        assert_eq!(found.count, 200);
        assert_eq!(found.p50_ns, Span::from_ns(100_000));
        assert_eq!(found.p99_ns, Span::from_ns(198_000));
        assert_eq!(found.max_ns, Span::from_ns(200_000));
        assert_eq!(wake_up(&[]), None, "absent, not 0");
    }

    #[test]
    fn a_host_calibrates_itself_and_says_what_it_does() {
        let mut steps = Vec::new();
        let stop = AtomicBool::new(false);
        let found = calibrate("now".to_owned(), &stop, &mut |what| steps.push(what.to_owned())).unwrap();
        assert_eq!(steps.len(), MODES.len() + 2, "{steps:?}");
        assert_eq!(found.loopback.len(), MODES.len(), "{found:?}");
        assert!(found.outdated_by(&host_info(None)).is_empty());
        assert!(found.wake_up.is_some() && found.pacing.is_some() && found.syscall.is_some());
        assert_eq!(found.memory_copy.len(), COPY_BLOCK_BYTES.len());
        let streams: Vec<u32> = found.loopback.iter().map(|mode| mode.streams).collect();
        assert_eq!(streams, [1, 4, 1, 1, 1, 4]);
        let methods: Vec<_> = found.loopback.iter().map(|mode| mode.method.as_deref()).collect();
        assert_eq!(methods, [None, None, Some("splice"), Some("sendfile"), None, None]);
        assert!(found.fastest_method(true).is_some(), "{found:?}");
    }

    #[test]
    fn a_signal_ends_it() {
        let stop = AtomicBool::new(true);
        let ended = calibrate(String::new(), &stop, &mut |_| ());
        assert!(matches!(ended, Err(ControlError::Stopped)), "{ended:?}");
    }
}
