//! Measures responsiveness under working conditions, with any server of that kind.

use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use linerate_compat::http::{
    Http2Tls, LoadOrder, ResponsivenessTarget, ResponsivenessTest, ResponsivenessTestConfig,
};
use linerate_compat::stand_in::{LinkOptions, Planned};
use linerate_model::{Direction, Event, Fingerprint, ResponsivenessOptions, RunLabels, RunRecord, World};
use linerate_sock::thread::locked;
use rustls::pki_types::ServerName;

use crate::error::ControlError;
use crate::log::{Sink, SinkError};
use crate::port_observer::PortObserver;
use crate::stand_in::{Interrupts, Invocation, LogStore, StoredRun, UnstoredRun, drive};
use crate::tls::{FingerprintCheck, HTTP2_PROTOCOL, ServerTrust, TlsError, UnknownServer, client_config};

/// A test of responsiveness.
pub struct ResponsivenessRequest<'a> {
    /// The server.
    pub target: ResponsivenessTarget,
    /// How it is recognised; not needed for addresses without encryption.
    pub trust: Option<ServerTrust>,
    /// What to measure.
    pub options: &'a ResponsivenessOptions,
    /// What the user says about the run.
    pub labels: RunLabels,
    /// Reads the port counters in an emulated network; absent on real hosts.
    pub observer: Option<&'a dyn PortObserver>,
    /// Where the event log of the run is stored.
    pub log_store: &'a dyn LogStore,
    /// The run, if it is not stored there.
    pub unstored: UnstoredRun,
    /// Delivers the signals that end the test.
    pub interrupts: &'a Interrupts,
    /// Where a line is printed after each interval; absent to print none.
    pub progress: Option<&'a mut dyn Write>,
}

/// What a test of responsiveness came to.
#[derive(Debug)]
pub struct MeasuredResponsiveness {
    /// The result.
    pub record: RunRecord,
    /// Its event log.
    pub events: Vec<Event>,
    /// Whether the log is stored.
    pub is_stored: bool,
    /// The signal that ended it, if one did.
    pub signal: Option<u8>,
}

/// Measures, and returns the result, also of a test that failed after it had begun. Of one that a signal ended before, there
/// is none but the signal.
///
/// # Errors
/// There is no server, or none that is trusted; or the host refuses file descriptors.
pub fn measure_responsiveness(
    request: ResponsivenessRequest<'_>,
) -> Result<MeasuredResponsiveness, ControlError> {
    let ResponsivenessRequest { target, trust, options, labels, unstored, progress, .. } = request;
    let (trust, seen) = match trust.filter(|_| target.is_encrypted()) {
        Some(ServerTrust::Fingerprint(check)) => {
            let seen = Arc::new(SeenFingerprint { check, shown: Mutex::new(None) });
            (Some(ServerTrust::Fingerprint(Arc::clone(&seen) as _)), Some(seen))
        }
        other => (other, None),
    };
    let tls = trust.as_ref().map(|trust| tls_client(trust, &target)).transpose()?;
    let shows_progress = progress.is_some();
    let config = ResponsivenessTestConfig {
        tls,
        order: order_of(options),
        most_time: options.time,
        interval: options.interval,
        link: LinkOptions {
            congestion: options.congestion.clone(),
            ipv4: options.ipv4,
            ipv6: options.ipv6,
            ..LinkOptions::default()
        },
        seed: getrandom::u64().unwrap_or_default(),
        shows_progress,
        target,
    };
    let host = config.target.host().to_owned();
    let store = WatchedStore {
        log_store: request.log_store,
        unstored: Mutex::new(Some(unstored)),
        labels,
        events: Arc::default(),
        is_stored: AtomicBool::new(false),
    };
    let begun = Arc::clone(&store.events);
    let (mut nothing, mut complaints) = (std::io::sink(), Complaints { progress, begun, text: Vec::new() });
    let code = drive(
        Box::new(ResponsivenessTest::new(config)),
        Invocation {
            host: Some(host),
            world: if request.observer.is_some() { World::Lab } else { World::Hosts },
            observer: request.observer,
            log_store: Some(&store),
            interrupts: request.interrupts,
            output: &mut nothing,
            complaints: &mut complaints,
            input: None,
        },
    )?;
    let signal = code.checked_sub(128).and_then(|signal| u8::try_from(signal).ok());
    let events = std::mem::take(&mut *locked(&store.events));
    if events.is_empty() && signal.is_none() {
        return Err(ControlError::Server(String::from_utf8_lossy(&complaints.text).trim().to_owned()));
    }
    if let Some(seen) = seen.filter(|_| !events.is_empty()) {
        seen.remember_shown()?;
    }
    let is_stored = store.is_stored.into_inner();
    Ok(MeasuredResponsiveness { record: RunRecord::fold(&events), events, is_stored, signal })
}

fn order_of(options: &ResponsivenessOptions) -> LoadOrder {
    match (options.sequential, options.download, options.upload) {
        (true, ..) => LoadOrder::Sequential,
        (_, true, _) => LoadOrder::Only(Direction::Download),
        (.., true) => LoadOrder::Only(Direction::Upload),
        _ => LoadOrder::Concurrent,
    }
}

fn tls_client(trust: &ServerTrust, target: &ResponsivenessTarget) -> Result<Http2Tls, ControlError> {
    let config = client_config(trust, HTTP2_PROTOCOL).map_err(TlsError::from)?;
    // No certificate has an address with a zone.
    let name = target.host().split('%').next().unwrap_or_default().to_owned();
    let server = ServerName::try_from(name)
        .map_err(|_| ControlError::Server("no certificate can have this host's name".to_owned()))?;
    Ok(Http2Tls { config, server, describe })
}

/// Why a server that should measure responsiveness cannot be reached with TLS.
fn describe(error: rustls::Error) -> String {
    match TlsError::from(error) {
        TlsError::NotTls => {
            "the other end does not speak TLS here; check that it is the port of linerate serve \
                             --responsiveness-port, or of another server of that kind"
                .to_owned()
        }
        TlsError::OtherProtocol => {
            "the server has TLS here, but does not speak HTTP/2 (h2); check the port".to_owned()
        }
        other => other.to_string(),
    }
}

/// Remembers a server only when a test with it has begun.
#[derive(Debug)]
struct SeenFingerprint {
    check: Arc<dyn FingerprintCheck>,
    shown: Mutex<Option<Fingerprint>>,
}

impl SeenFingerprint {
    fn remember_shown(&self) -> Result<(), TlsError> {
        match *locked(&self.shown) {
            Some(shown) => Ok(self.check.remember(shown)?),
            None => Ok(()),
        }
    }
}

impl FingerprintCheck for SeenFingerprint {
    fn check(&self, shown: Fingerprint) -> Result<(), UnknownServer> {
        let mut first = locked(&self.shown);
        // All connections of a test have to be to the same server, also if it was not known before.
        match *first {
            Some(first) => first.check(shown),
            None => self.check.check(shown).map(|()| *first = Some(shown)),
        }
    }
}

/// Stores the run, and keeps its events too.
struct WatchedStore<'a> {
    log_store: &'a dyn LogStore,
    unstored: Mutex<Option<UnstoredRun>>,
    labels: RunLabels,
    events: Arc<Mutex<Vec<Event>>>,
    is_stored: AtomicBool,
}

impl fmt::Debug for WatchedStore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedStore").finish_non_exhaustive()
    }
}

impl LogStore for WatchedStore<'_> {
    fn open(&self, planned: &Planned, peer: Option<IpAddr>) -> Option<StoredRun> {
        let stored = self.log_store.open(planned, peer);
        self.is_stored.store(stored.is_some(), Ordering::Relaxed);
        let mut run = match stored {
            Some(stored) => stored,
            None => locked(&self.unstored).take().map(StoredRun::from)?,
        };
        run.labels.clone_from(&self.labels);
        run.sinks.push(Box::new(SharedEvents(Arc::clone(&self.events))));
        Some(run)
    }
}

#[derive(Debug)]
struct SharedEvents(Arc<Mutex<Vec<Event>>>);

impl Sink for SharedEvents {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        locked(&self.0).push(event.clone());
        Ok(())
    }
}

/// What the test prints: lines of its progress, or why it did not begin.
struct Complaints<'a> {
    progress: Option<&'a mut dyn Write>,
    /// Not empty once it has begun.
    begun: Arc<Mutex<Vec<Event>>>,
    text: Vec<u8>,
}

impl Write for Complaints<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if locked(&self.begun).is_empty() {
            self.text.extend_from_slice(bytes);
        } else if let Some(progress) = &mut self.progress {
            let _ = progress.write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.progress.as_mut().map_or(Ok(()), Write::flush)
    }
}
