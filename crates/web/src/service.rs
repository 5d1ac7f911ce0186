//! What all requests share.

use std::sync::Arc;
use std::time::Duration;

use linerate_control::{BrowserPort, Exhausted, NoTicket, Permit, Shares, host_info};
use linerate_report::html::Assets;
use linerate_sock::clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::{AccessControl, WebVisitor};
use crate::archive_access::ArchiveAccess;
use crate::config::WebConfig;
use crate::guard::{HostNames, VisitorAddress};
use crate::labs::WatchedLabs;
use crate::latest_runs::RunSources;
use crate::pages::PageFiles;
use crate::problem::{HttpProblem, INTERNAL, NOT_FOUND, SHARES, TOO_MANY};
use crate::runs::RunQueue;
use crate::share_key::ShareKey;

/// How long a visitor waits until the plans of others are read.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most event streams. One visitor gets half of them at most.
const MAX_STREAMS: usize = 512;

/// The service. All clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Service(Arc<ServiceParts>);

#[derive(Debug)]
struct ServiceParts {
    host: String,
    names: HostNames,
    files: PageFiles,
    report: Assets<'static>,
    access: AccessControl,
    /// Whether pages are encrypted. They may then not connect to the port of the server, which is not.
    is_tls: bool,
    archive: ArchiveAccess,
    runs: Arc<RunQueue>,
    labs: Arc<WatchedLabs>,
    /// Of the links that show one run.
    share_key: Option<ShareKey>,
    /// Is told what visitors have changed.
    notify: fn(String),
    run_sources: RunSources,
    /// Places for event streams.
    streams: Arc<Shares>,
    /// The place for a check of a long text.
    long_check: Arc<Semaphore>,
    plan_preview: Arc<Semaphore>,
    plan_start: Arc<Semaphore>,
}

/// A visitor who watches a stream, with a place for it.
#[derive(Debug)]
pub(crate) struct StreamWatcher {
    service: Service,
    visitor: WebVisitor,
    _permit: Permit,
}

impl StreamWatcher {
    /// Whether the visitor may still watch: the token may have been removed since.
    pub(crate) fn may_watch(&self) -> bool {
        self.service.access().still_sees(&self.visitor)
    }
}

impl Service {
    pub(crate) fn new(
        config: &WebConfig,
        access: AccessControl,
        archive: ArchiveAccess,
        runs: Arc<RunQueue>,
    ) -> Self {
        let host = host_info(None).name.to_string();
        Self(Arc::new(ServiceParts {
            names: HostNames::new(&host, &config.names),
            host,
            files: PageFiles::new(config.assets),
            report: config.assets.report,
            access,
            is_tls: config.tls.is_some(),
            archive,
            labs: WatchedLabs::new(runs.plan_setup().run_dir.clone()),
            runs,
            share_key: ShareKey::new(config.share_key.as_deref()).ok(),
            notify: config.notify,
            run_sources: RunSources::default(),
            streams: Shares::new(MAX_STREAMS),
            long_check: Arc::new(Semaphore::new(1)),
            plan_preview: Arc::new(Semaphore::new(1)),
            plan_start: Arc::new(Semaphore::new(1)),
        }))
    }

    /// Name of this host.
    pub(crate) fn host(&self) -> &str {
        &self.0.host
    }

    pub(crate) fn names(&self) -> &HostNames {
        &self.0.names
    }

    /// The files of the pages.
    pub(crate) fn files(&self) -> &PageFiles {
        &self.0.files
    }

    /// Script and style of reports.
    pub(crate) fn report_assets(&self) -> Assets<'static> {
        self.0.report
    }

    pub(crate) fn access(&self) -> &AccessControl {
        &self.0.access
    }

    pub(crate) fn archive(&self) -> &ArchiveAccess {
        &self.0.archive
    }

    /// Which archived runs this host has measured.
    pub(crate) fn run_sources(&self) -> &RunSources {
        &self.0.run_sources
    }

    /// Where browsers measure to this host; absent if its pages may not connect to it.
    pub(crate) fn browser_test(&self) -> Option<BrowserPort> {
        self.0.runs.browser_port().filter(|port| port.has_tls || !self.0.is_tls)
    }

    /// Where clients measure responsiveness, over HTTPS; absent if this server takes no such tests.
    pub(crate) fn responsiveness_port(&self) -> Option<u16> {
        self.0.runs.responsiveness_port()
    }

    /// A ticket with which the visitor's browser may start one test to this host.
    ///
    /// # Errors
    /// Browsers are not measured here, or the visitor's network has too many tickets.
    pub(crate) fn start_ticket(&self, VisitorAddress(from): VisitorAddress) -> Result<String, HttpProblem> {
        if self.browser_test().is_none() {
            return Err(HttpProblem::new(NOT_FOUND, "this server does not measure browsers"));
        }
        self.0.runs.start_tickets().issue(from, clock::now()).map_err(|error| match error {
            NoTicket::TooMany(_) => HttpProblem::new(TOO_MANY, error).retry_after(60),
            NoTicket::Random(_) => HttpProblem::new(INTERNAL, error),
        })
    }

    /// The key of the links that show one run.
    ///
    /// # Errors
    /// The user has no directory for it.
    pub(crate) fn share_key(&self) -> Result<ShareKey, HttpProblem> {
        let none = "whoever runs this server has no data directory, in which the key of the links would be";
        self.0.share_key.clone().ok_or_else(|| HttpProblem::new(SHARES, none))
    }

    /// Tells the owner of the service something, in one line.
    pub(crate) fn notify(&self, line: String) {
        (self.0.notify)(line);
    }

    pub(crate) fn runs(&self) -> &RunQueue {
        &self.0.runs
    }

    /// The emulated networks of this host.
    pub(crate) fn labs(&self) -> &Arc<WatchedLabs> {
        &self.0.labs
    }

    /// Takes a place for an event stream.
    ///
    /// # Errors
    /// There are too many, or the visitor has its share.
    pub(crate) fn admit_stream(
        &self,
        VisitorAddress(from): VisitorAddress,
        visitor: WebVisitor,
    ) -> Result<StreamWatcher, HttpProblem> {
        let permit = self.0.streams.take(from).map_err(|Exhausted { group, taken }| {
            let text = format!("{taken} pages already watch from {group}; close one and try again");
            HttpProblem::new(TOO_MANY, text).limit(taken as u64).retry_after(10)
        })?;
        Ok(StreamWatcher { service: self.clone(), visitor, _permit: permit })
    }

    /// The place for a check of a long text. The same thread reads the archive for everybody, so there is one, and
    /// whoever comes meanwhile does not wait.
    ///
    /// # Errors
    /// Another one is in progress.
    pub(crate) fn admit_long_check(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        Arc::clone(&self.0.long_check).try_acquire_owned().map_err(|_| {
            HttpProblem::new(TOO_MANY, "another long text is being checked; try again in a moment")
                .retry_after(1)
        })
    }

    /// A permit to describe a plan, which may have 20,000 points. There is one, for which visitors wait a moment.
    ///
    /// # Errors
    /// Others describe plans all the time.
    pub(crate) async fn plan_preview_permit(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        within_moment(&self.0.plan_preview, "other plans are being described").await
    }

    /// The same to start one: previews do not keep starts waiting.
    ///
    /// # Errors
    /// Others start plans all the time.
    pub(crate) async fn plan_start_permit(&self) -> Result<OwnedSemaphorePermit, HttpProblem> {
        within_moment(&self.0.plan_start, "other plans are being started").await
    }
}

/// A permit that is waited for, but not for long.
async fn within_moment(permits: &Arc<Semaphore>, why: &str) -> Result<OwnedSemaphorePermit, HttpProblem> {
    let permit = tokio::time::timeout(PERMIT_TIMEOUT, Arc::clone(permits).acquire_owned()).await;
    let permit = permit.ok().and_then(Result::ok);
    permit.ok_or_else(|| HttpProblem::new(TOO_MANY, format!("{why}; try again in a moment")).retry_after(1))
}
