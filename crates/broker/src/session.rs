//! The thread of a connection: dials, serves the connection until it is lost, and dials again.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, PublishErrorKind, ServerAddr, ServerError,
};
use linerate_model::ForeignText;
use linerate_sock::thread::locked;
use linerate_sock::{clock, process};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::broker::BrokerEvent;
use crate::config::DialOptions;
use crate::inbox::BrokerInbox;
use crate::outbox::{Outbox, OutgoingMessage};
use crate::reconnect_delay::ReconnectDelay;
use crate::refusal::{DialFailure, needs_person};
use crate::subscriptions::Subscriptions;

/// Time for a server to be found and to answer at one of its addresses.
const DIAL_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for what waits to be sent when the connection is given up.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// Delay before the next attempt on a host that has no file descriptors left.
const NO_RUNTIME_DELAY: Duration = Duration::from_millis(500);
/// Longer than any connection: async-nats waits for it instead of connecting again by itself.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Errors of the broker that wait to be read.
const MAX_ERRORS: usize = 64;
/// Different refusals of one connection that are reported.
const MAX_REFUSALS: usize = 64;

pub(crate) struct BrokerThread {
    options: DialOptions,
    inbox: Arc<BrokerInbox>,
    outbox: Arc<Outbox>,
    stop: watch::Receiver<bool>,
    delay: ReconnectDelay,
    /// What was reported since the last connection. The same again is no news.
    reported: Option<BrokerEvent>,
}

impl BrokerThread {
    pub(crate) fn new(
        options: DialOptions,
        inbox: Arc<BrokerInbox>,
        outbox: Arc<Outbox>,
        stop: watch::Receiver<bool>,
        delay: ReconnectDelay,
    ) -> Self {
        Self { options, inbox, outbox, stop, delay, reported: None }
    }

    /// Returns when the connection is given up.
    pub(crate) fn run(mut self) {
        // On a host that refuses it, the thread is still one that nearly always waits.
        let _ = process::lower_thread_priority();
        let mut wait = Duration::ZERO;
        while !*self.stop.borrow() {
            // Each connection has a runtime of its own. It takes along whatever async-nats keeps of a lost connection,
            // such as unsent messages, which the next connection would otherwise deliver late.
            let runtime = match new_runtime() {
                Ok(runtime) => runtime,
                Err(error) => {
                    self.report(BrokerEvent::Disconnected {
                        why: format!("this host has no room: {error}").into(),
                    });
                    clock::sleep_until(clock::now() + NO_RUNTIME_DELAY);
                    continue;
                }
            };
            let next = runtime.block_on(self.attempt(wait));
            self.outbox.close();
            // Without waiting for a resolver that takes its time.
            runtime.shutdown_background();
            match next {
                Some(delay) => wait = delay,
                None => return,
            }
        }
    }

    /// Makes and serves one connection after `wait`. Returns the delay before the next one; absent at the end.
    async fn attempt(&mut self, wait: Duration) -> Option<Duration> {
        let mut stop = self.stop.clone();
        let dialled = tokio::select! {
            () = stopped(&mut stop) => return None,
            dialled = self.dial(wait) => dialled,
        };
        let connected = match dialled {
            Ok(connected) => connected,
            Err(failure) => return Some(self.failed(failure)),
        };
        let since = clock::now();
        let end = connected.serve(&self.outbox, &mut stop).await;
        self.outbox.close();
        match end {
            SessionEnd::Stopped => None,
            SessionEnd::Lost { why, refused } => {
                self.report(BrokerEvent::Disconnected { why });
                let held = clock::now().since(since);
                Some(if refused { self.delay.after_refusal() } else { self.delay.after_connection(held) })
            }
        }
    }

    fn failed(&mut self, failure: DialFailure) -> Duration {
        match failure {
            DialFailure::Unreachable(why) => {
                self.report(BrokerEvent::Disconnected { why });
                self.delay.after_failure()
            }
            DialFailure::Refused(why) => {
                self.report(BrokerEvent::Refused { why });
                self.delay.after_refusal()
            }
        }
    }

    fn report(&mut self, event: BrokerEvent) {
        if self.reported.as_ref() != Some(&event) {
            self.inbox.push_change(event.clone());
            self.reported = Some(event);
        }
    }

    /// Connects to one of the servers, in random order. If none can be used, a refusal says more than a failure.
    async fn dial(&mut self, wait: Duration) -> Result<BrokerSession, DialFailure> {
        sleep(wait).await;
        let mut servers = self.options.servers.clone();
        self.delay.shuffle(&mut servers);
        let mut failure = None;
        for server in servers {
            match self.dial_server(&server).await {
                Ok(connected) => return Ok(connected),
                Err(one) => match failure {
                    Some(DialFailure::Refused(_)) => {}
                    _ => failure = Some(one),
                },
            }
        }
        Err(failure.unwrap_or_else(|| DialFailure::Unreachable("no server".into())))
    }

    async fn dial_server(&mut self, server: &ServerAddr) -> Result<BrokerSession, DialFailure> {
        let url = server.as_url_str();
        let options =
            self.options.connect_options().map_err(|error| DialFailure::Refused(error.to_string().into()))?;
        let (options, lost) = lost_signal(options);
        let (sender, errors) = mpsc::channel(MAX_ERRORS);
        let options = options.event_callback(move |event| {
            // Of too many errors the first ones are enough.
            let _ = sender.try_send(event);
            ready(())
        });
        // In a task, because async-nats 0.51 panics if a server answers nonsense such as a bare `-ERR`.
        let dialling = tokio::spawn(timeout(DIAL_TIMEOUT, options.connect(server.clone())));
        let client = dialling
            .await
            .map_err(|_| DialFailure::Unreachable(format!("{url}: it is no broker").into()))?
            .unwrap_or_else(|_| Err(ConnectErrorKind::TimedOut.into()))
            .map_err(|error| DialFailure::of(&error, url, self.options.public_key.as_deref()))?;
        let subscribe = &self.options.subscribe;
        let subscriptions = Subscriptions::start(client.clone(), Arc::clone(&self.inbox), subscribe)
            .await
            .map_err(|_| DialFailure::Unreachable(format!("{url}: the connection was lost").into()))?;
        // A server that does not say what it permits is one that speaks for itself when it refuses.
        let permitted = Some(client.max_payload()).filter(|bytes| *bytes > 0).unwrap_or(usize::MAX);
        self.reported = None;
        self.outbox.open(permitted);
        self.inbox.push_change(BrokerEvent::Connected { server: url.into() });
        Ok(BrokerSession {
            client,
            subscriptions,
            inbox: Arc::clone(&self.inbox),
            lost,
            errors,
            refusals: BTreeSet::new(),
            last_error: None,
        })
    }
}

enum SessionEnd {
    Stopped,
    Lost {
        why: ForeignText,
        /// Whether the broker refuses this client.
        refused: bool,
    },
}

/// A connection to a server.
struct BrokerSession {
    client: Client,
    subscriptions: Subscriptions,
    inbox: Arc<BrokerInbox>,
    lost: oneshot::Receiver<Infallible>,
    errors: mpsc::Receiver<Event>,
    /// What was refused and reported.
    refusals: BTreeSet<String>,
    /// What the server said last, apart from refused subjects. It says why it ends a connection.
    last_error: Option<String>,
}

impl BrokerSession {
    async fn serve(mut self, outbox: &Outbox, stop: &mut watch::Receiver<bool>) -> SessionEnd {
        loop {
            while let Ok(event) = self.errors.try_recv() {
                self.note(event);
            }
            if self.subscriptions.renew().await.is_err() {
                return self.end();
            }
            if let Some(message) = outbox.pop() {
                tokio::select! {
                    biased;
                    _ = &mut self.lost => return self.lost().await,
                    sent = publish(&self.client, message) => if !sent { return self.lost().await },
                    // The server does not read, so the message is as lost as those before it.
                    () = stopped(stop) => return self.finish(outbox).await,
                }
            } else {
                tokio::select! {
                    biased;
                    _ = &mut self.lost => return self.lost().await,
                    () = stopped(stop) => return self.finish(outbox).await,
                    Some(event) = self.errors.recv() => self.note(event),
                    () = outbox.added() => {}
                    () = self.subscriptions.renewal() => {}
                }
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::ServerError(ServerError::Other(text)) => self.note_error(text),
            Event::ServerError(error @ ServerError::AuthorizationViolation) => {
                self.note_error(error.to_string())
            }
            Event::SlowConsumer(_) => self.inbox.count_dropped(),
            _ => {}
        }
    }

    fn note_error(&mut self, text: String) {
        let room = self.refusals.len() < MAX_REFUSALS;
        if needs_person(&text) && room && self.refusals.insert(text.clone()) {
            let why = format!("the broker refuses: {text}; change the permissions of this client there");
            self.inbox.push_change(BrokerEvent::Refused { why: why.into() });
        }
        // It ends a connection, unless it is about one subject.
        if !self.subscriptions.note_refusal(&text) {
            self.last_error = Some(text);
        }
    }

    async fn lost(mut self) -> SessionEnd {
        // The task that hands errors over is ready, but has not had its turn.
        tokio::task::yield_now().await;
        while let Ok(event) = self.errors.try_recv() {
            self.note(event);
        }
        self.end()
    }

    fn end(self) -> SessionEnd {
        match self.last_error {
            Some(text) => SessionEnd::Lost {
                refused: needs_person(&text),
                why: format!("the broker said: {text}").into(),
            },
            None => SessionEnd::Lost {
                refused: false,
                why: "the connection was lost, or the broker does not answer any more".into(),
            },
        }
    }

    async fn finish(self, outbox: &Outbox) -> SessionEnd {
        let rest = async {
            while let Some(message) = outbox.pop() {
                if !publish(&self.client, message).await {
                    return;
                }
            }
            // Only fails if the connection is lost.
            let _ = self.client.flush().await;
        };
        // What has not gone by then is lost, as everything may be.
        let _ = timeout(SHUTDOWN_GRACE, rest).await;
        SessionEnd::Stopped
    }
}

/// False if the connection is lost.
async fn publish(client: &Client, message: OutgoingMessage) -> bool {
    match client.publish(message.subject, message.payload.into()).await {
        // The outbox has checked subject and size.
        Ok(()) => true,
        Err(error) => error.kind() != PublishErrorKind::Send,
    }
}

/// The returned future ends when the connection is lost, for whatever reason.
///
/// async-nats asks for a delay before it connects. It asks for the second time when the connection is lost, and drops
/// the question when its task ends. It then waits until the runtime is dropped.
fn lost_signal(options: ConnectOptions) -> (ConnectOptions, oneshot::Receiver<Infallible>) {
    let (signal, lost) = oneshot::channel();
    let (signal, was_connected) = (Mutex::new(Some(signal)), AtomicBool::new(false));
    let delay = move |_| {
        if !was_connected.swap(true, Ordering::Relaxed) {
            return Duration::ZERO;
        }
        drop(locked(&signal).take());
        NEVER
    };
    (options.reconnect_delay_callback(delay), lost)
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Only fails if the caller's end is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn new_runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}
