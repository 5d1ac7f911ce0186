//! The listener of the service and its connections, with limits for each.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::routing::{any, get};
use axum::{Extension, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use linerate_compat::http;
use linerate_control::{OwnRuns, Permit, PortHandover, Shares};
use linerate_model::sniff::Match;
use linerate_runner::{CertificateSource, TlsCertificate};
use linerate_sock::{process, sockopt, thread};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::rustls::ProtocolVersion;
use tokio_rustls::server::TlsStream;

use crate::access::{Ability, AccessControl};
use crate::api;
use crate::archive_access::ArchiveAccess;
use crate::audit_log::audit_log;
use crate::config::WebConfig;
use crate::error::WebError;
use crate::guard::guard;
use crate::large_answers::{LargeAnswers, bound_memory};
use crate::problem::{ARCHIVE, HttpProblem, NO_SUCH_METHOD};
use crate::runs::RunQueue;
use crate::service::Service;
use crate::tls::accept;
use crate::{metrics, pages};

/// Most connections. One visitor gets half of them at most.
const MAX_CONNECTIONS: usize = 1024;
/// How long the head of a request may take, also that of the next request of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take no bytes of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest head of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Time between two looks at a request whose first line is incomplete.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Most bytes of an encrypted connection that are read to detect a test. The path of a test is shorter.
const MAX_START_BYTES: usize = 512;
/// How often runs that wait for another host are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often the files of the certificate are looked at.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
/// How long open requests may take when the service stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A service that listens, but answers only when it is started.
#[derive(Debug)]
pub struct WebServer {
    listener: std::net::TcpListener,
    address: SocketAddr,
    access: AccessControl,
    certificate: Option<Arc<TlsCertificate>>,
    config: WebConfig,
}

/// A running service. It stops when this value is dropped: the running test of a page is ended, and what it has
/// measured is kept.
#[derive(Debug)]
pub struct WebHandle {
    stop: watch::Sender<bool>,
    runs: Arc<RunQueue>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl WebServer {
    /// Listens.
    ///
    /// # Errors
    /// The address is in use or does not belong to this host, or others can reach it and nothing protects it.
    pub fn bind(config: WebConfig) -> Result<Self, WebError> {
        Self::bind_with(config, None)
    }

    /// As [`WebServer::bind`], on the socket that the service manager has opened at the address, if there is one.
    ///
    /// # Errors
    /// As [`WebServer::bind`].
    pub fn bind_with(config: WebConfig, inherited: Option<std::net::TcpListener>) -> Result<Self, WebError> {
        let access = protection(&config)?;
        let certificate = config.tls.as_ref().map(|source| certificate(source, &config)).transpose()?;
        let fail = |source| WebError::Listen { address: config.address, source };
        let listener =
            inherited.map_or_else(|| std::net::TcpListener::bind(config.address), Ok).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        Ok(Self { listener, address, access, certificate, config })
    }

    /// What [`WebServer::bind`] would refuse of a configuration without listening. Nothing is made.
    ///
    /// # Errors
    /// Others can reach the address and nothing protects it, or a file cannot be used.
    pub fn check(config: &WebConfig) -> Result<(), WebError> {
        protection(config)?;
        let Some(source) = &config.tls else { return Ok(()) };
        let fail = |error| WebError::Tls { option: source.option(), source: error };
        TlsCertificate::check(source).map_err(fail)
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of its first page.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// What whoever starts it should know.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let (Some(certificate), Some(CertificateSource::SelfSigned { .. })) =
            (&self.certificate, &self.config.tls)
        {
            notes.push(format!(
                "self-signed {}: compare it before you trust it in a browser",
                certificate.in_words()
            ));
        }
        if self.access.strangers() != Some(Ability::Admin) && !self.access.has_token() {
            let may = if self.config.access.public { "start tests from the pages" } else { "use the pages" };
            notes.push(format!(
                "nobody may {may} yet; make a token with: linerate token add NAME --ability admin"
            ));
        }
        notes
    }

    /// Starts the service, whose runs wait in the queue of `own_runs`. Connections of speed tests are given to
    /// `handover`.
    ///
    /// # Errors
    /// The host refuses threads or polling.
    pub fn start(self, own_runs: OwnRuns, handover: PortHandover) -> Result<WebHandle, WebError> {
        // Only these pages may start tests of browsers.
        own_runs.start_tickets().demand();
        let archive = ArchiveAccess::new(self.config.archive.clone());
        let (targets, plans) = (self.config.targets.clone(), self.config.plans.clone());
        let runs = Arc::new(RunQueue::new(own_runs, archive.clone(), targets, plans));
        // The second thread is for what blocks: the archive, and names.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .thread_name("web-archive")
            .on_thread_start(yield_to_measurements)
            .build()?;
        let router = router(Service::new(&self.config, self.access, archive, Arc::clone(&runs)));
        let (stop, stopped) = watch::channel(false);
        let mut handle = WebHandle { stop, runs: Arc::clone(&runs), threads: Vec::new() };
        let worker = Arc::clone(&runs);
        handle.threads.push(thread::spawn("web-runs", move || worker.work())?);
        let (listener, certificate) = (self.listener, self.certificate);
        handle.threads.push(thread::spawn("web", move || {
            yield_to_measurements();
            serve(&runtime, listener, &router, &runs, (certificate.as_ref(), &handover), stopped);
        })?);
        Ok(handle)
    }
}

impl Drop for WebHandle {
    fn drop(&mut self) {
        self.runs.stop();
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Lowers the priority of this thread, so that those that measure come first.
pub(crate) fn yield_to_measurements() {
    if let Err(error) = process::lower_thread_priority() {
        tracing::info!(%error, "the web service has the priority of measurements");
    }
}

fn router(service: Service) -> Router {
    let (api, _) = api::routes();
    let pages = [
        "/",
        "/runs/{id}",
        "/history",
        "/compare",
        "/envelope",
        "/check",
        "/sizes",
        "/plans",
        "/fleet",
        "/labs",
        "/labs/{name}",
        "/kiosk",
        "/shared/{id}/{secret}",
    ];
    let shells = pages.iter().fold(Router::new(), |router, path| router.route(path, get(pages::shell)));
    api.merge(shells)
        .route("/assets/web.js", get(pages::script))
        .route("/assets/worker.js", get(pages::worker))
        .route("/assets/web.css", get(pages::style))
        .route("/assets/icon.svg", get(pages::icon))
        .route("/metrics", get(metrics::metrics))
        .route(http::RESPONSIVENESS_CONFIG_PATH, get(pages::responsiveness_config))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/api/", any(api::not_found))
        .route("/api/{*rest}", any(api::not_found))
        .fallback(pages::missing)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(LargeAnswers::new(), bound_memory))
        .layer(middleware::from_fn_with_state(service.clone(), audit_log))
        .layer(middleware::from_fn_with_state(service.clone(), guard))
        .with_state(service)
}

async fn no_such_method() -> HttpProblem {
    HttpProblem::new(
        NO_SUCH_METHOD,
        "this path has no such method; /api/v1/openapi.json describes all of them",
    )
}

async fn ready(State(service): State<Service>) -> Result<&'static str, HttpProblem> {
    match service.archive().trouble() {
        None => Ok("ready\n"),
        Some(_) => Err(HttpProblem::new(ARCHIVE, "results are not archived; the log of the server says why")
            .retry_after(10)),
    }
}

fn serve(
    runtime: &Runtime,
    listener: std::net::TcpListener,
    router: &Router,
    runs: &RunQueue,
    (certificate, handover): (Option<&Arc<TlsCertificate>>, &PortHandover),
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the web service cannot poll its listener"),
        };
        let places = Shares::new(MAX_CONNECTIONS);
        let mut connections = JoinSet::new();
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        let mut reload = tokio::time::interval(RELOAD_INTERVAL);
        loop {
            tokio::select! {
                _ = stopped.changed() => break,
                _ = check.tick() => runs.end_long_runs(),
                _ = reload.tick(), if certificate.is_some() => {
                    let certificate = certificate.cloned();
                    tokio::task::spawn_blocking(move || certificate.inspect(|certificate| certificate.reload()));
                }
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        while connections.try_join_next().is_some() {}
                        // One visitor gets half of the places at most; whoever gets none is disconnected.
                        if let Ok(permit) = places.take(from.ip()) {
                            let own = match certificate.cloned() {
                                Some(certificate) => Door::Encrypted(certificate, handover.clone()),
                                None => Door::Plain(handover.clone()),
                            };
                            connections.spawn(connection(stream, from, router, permit, own, stopped.clone()));
                        }
                    }
                    // The host is out of files for a moment, or the client has gone.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
            }
        }
        // Requests are answered, and the streams of runs end with them. The other streams are cut.
        let _ = tokio::time::timeout(STOP_TIMEOUT, connections.join_all()).await;
    });
}

/// What becomes of a connection first. If it belongs to a speed test, the server that measures gets it.
enum Door {
    /// It is encrypted.
    Encrypted(Arc<TlsCertificate>, PortHandover),
    /// It is not.
    Plain(PortHandover),
}

/// Answers the requests of a connection.
fn connection(
    stream: TcpStream,
    from: SocketAddr,
    router: &Router,
    permit: Permit,
    door: Door,
    stopped: watch::Receiver<bool>,
) -> impl Future<Output = ()> + use<> {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_user_timeout(&stream, WRITE_TIMEOUT);
    let router = router.clone().layer(Extension(ConnectInfo(from)));
    async move {
        match door {
            Door::Plain(handover) => {
                if let Some(stream) = keep_unless_test(stream, from, &handover).await {
                    answer(stream, router, stopped).await;
                }
            }
            Door::Encrypted(certificate, handover) => {
                if let Some(stream) = accept(&certificate, stream).await
                    && let Some(stream) = keep_unless_encrypted_test(stream, from, &handover).await
                {
                    answer(stream, router, stopped).await;
                }
            }
        }
        drop(permit);
    }
}

/// Gives the connection of a speed test to the server that measures; returns any other one.
async fn keep_unless_test(stream: TcpStream, from: SocketAddr, handover: &PortHandover) -> Option<TcpStream> {
    let until = tokio::time::Instant::now() + HEAD_TIMEOUT;
    let mut start = [0; 512];
    loop {
        let length = tokio::time::timeout_at(until, stream.peek(&mut start)).await.ok()?.ok()?;
        match http::test_request(&start[..length]) {
            Match::Yes => break,
            Match::No => return Some(stream),
            // The client has closed its side: the answer is the pages' matter.
            Match::More if length == 0 || tokio::time::Instant::now() >= until => return Some(stream),
            // What is there already would wake this task at once, again and again.
            Match::More => tokio::time::sleep(LOOK_INTERVAL).await,
        }
    }
    let refused = handover.give(stream.into_std().ok()?, from).err()?;
    TcpStream::from_std(refused).ok()
}

/// As [`keep_unless_test`], for an encrypted connection. The returned stream begins with the bytes that were read here.
async fn keep_unless_encrypted_test(
    mut stream: TlsStream<TcpStream>,
    from: SocketAddr,
    handover: &PortHandover,
) -> Option<impl AsyncRead + AsyncWrite + Unpin + use<>> {
    let until = tokio::time::Instant::now() + HEAD_TIMEOUT;
    let mut start = Vec::with_capacity(MAX_START_BYTES);
    let is_test = loop {
        match http::test_request(&start) {
            Match::Yes => break true,
            Match::No => break false,
            Match::More => {}
        }
        match tokio::time::timeout_at(until, stream.read_buf(&mut start)).await.ok()?.ok()? {
            0 => break false,
            _ if start.len() >= MAX_START_BYTES => break http::test_request(&start) == Match::Yes,
            _ => {}
        }
    };
    let (tcp, tls) = stream.get_ref();
    // The counts of a test rely on the records of TLS 1.3.
    let has_records = tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
    if is_test && has_records && tcp.local_addr().is_ok_and(|to| handover.takes(to.ip())) {
        let (tcp, tls) = stream.into_inner();
        handover.give_encrypted(tcp.into_std().ok()?, tls, start, from);
        return None;
    }
    let (reader, writer) = tokio::io::split(stream);
    Some(tokio::io::join(Cursor::new(start).chain(reader), writer))
}

/// Answers requests until the client ends the connection, or the service stops.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    let stopping = async {
        // A stopping service lets requests end, and takes no further ones.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    tokio::select! {
        _ = &mut connection => {}
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Who may use the service: not everybody, if others can reach it.
fn protection(config: &WebConfig) -> Result<AccessControl, WebError> {
    let is_loopback = config.address.ip().to_canonical().is_loopback();
    let is_tls = config.tls.is_some();
    let access = AccessControl::new(config.access.clone(), is_loopback, is_tls)?;
    // With TLS alone, nobody may do anything until there is a token.
    if !is_loopback && !config.access.insecure && !is_tls && !access.has_token() {
        return Err(WebError::Unprotected(config.address));
    }
    Ok(access)
}

/// The certificate of the service, which is for all names that it answers to.
fn certificate(source: &CertificateSource, config: &WebConfig) -> Result<Arc<TlsCertificate>, WebError> {
    let names = WebConfig::certificate_names(config.address, &config.names);
    let opened = TlsCertificate::open(source, &names).map(Arc::new);
    opened.map_err(|error| WebError::Tls { option: source.option(), source: error })
}
