//! The front end, built before this program.

use linerate_report::html::Assets;

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/report.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.css"));

/// Script and style sheet of report pages; empty if they were not built.
pub(crate) const REPORT: Assets<'static> = Assets { script: SCRIPT, style: STYLE };

/// Error message of a program built without the front end.
pub(crate) const MISSING: &str = if cfg!(feature = "full") {
    "this linerate was built without the front end, which the page needs; run `make ui` in the source tree (with \
     Node.js 20.19 or newer) and build again, or use --format markdown"
} else {
    "this build has no pages (it is linerate-core); use another format, or the full linerate"
};

/// Script and style sheet; absent if they were not built.
pub(crate) fn assets() -> Option<Assets<'static>> {
    (!SCRIPT.is_empty() && !STYLE.is_empty()).then_some(REPORT)
}
