//! The front end, built before this program.

use linerate_report::html::Assets;
use linerate_web::WebAssets;

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/report.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.css"));
const WEB_SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/web.js"));
const WORKER_SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/worker.js"));
const WEB_STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/web.css"));

const REPORT: Assets<'static> = Assets { script: SCRIPT, style: STYLE };

/// Error message of a program built without the front end.
pub(crate) const MISSING: &str = "this linerate was built without the front end, which the page needs; run \
                                  `make ui` in the source tree (with Node.js 20.19 or newer) and build \
                                  again, or use --format markdown";

/// Script and style sheet; absent if they were not built.
pub(crate) fn assets() -> Option<Assets<'static>> {
    (!SCRIPT.is_empty() && !STYLE.is_empty()).then_some(REPORT)
}

/// The front end of the pages of a server; empty if it was not built.
pub(crate) fn web_assets() -> WebAssets {
    WebAssets { script: WEB_SCRIPT, worker: WORKER_SCRIPT, style: WEB_STYLE, report: REPORT }
}
