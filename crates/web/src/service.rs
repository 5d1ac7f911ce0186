//! What all requests share.

use std::sync::Arc;

use linerate_control::host_info;
use linerate_report::html::Assets;

use crate::access::Gatekeeper;
use crate::archive_access::ArchiveAccess;
use crate::config::WebConfig;
use crate::guard::HostNames;
use crate::pages::PageFiles;
use crate::runs::RunQueue;
use crate::viewers::Viewers;

/// The service. All clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Service(Arc<ServiceParts>);

#[derive(Debug)]
struct ServiceParts {
    host: String,
    names: HostNames,
    files: PageFiles,
    report: Assets<'static>,
    gatekeeper: Gatekeeper,
    archive: ArchiveAccess,
    runs: Arc<RunQueue>,
    viewers: Viewers,
}

impl Service {
    pub(crate) fn new(config: WebConfig, archive: ArchiveAccess, runs: Arc<RunQueue>) -> Self {
        let host = host_info(None).name.to_string();
        Self(Arc::new(ServiceParts {
            names: HostNames::new(&host, &config.names),
            host,
            files: PageFiles::new(config.assets.script, config.assets.style),
            report: config.assets.report,
            gatekeeper: Gatekeeper::new(config.access),
            archive,
            runs,
            viewers: Viewers::default(),
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

    pub(crate) fn gatekeeper(&self) -> &Gatekeeper {
        &self.0.gatekeeper
    }

    pub(crate) fn archive(&self) -> &ArchiveAccess {
        &self.0.archive
    }

    pub(crate) fn runs(&self) -> &RunQueue {
        &self.0.runs
    }

    pub(crate) fn viewers(&self) -> &Viewers {
        &self.0.viewers
    }
}
