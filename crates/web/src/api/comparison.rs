//! Comparing configurations.

use axum::Json;
use axum::extract::State;
use linerate_archive::{ArchiveError, Store};
use linerate_report::html::PageFragment;
use linerate_runner::{CompareRequest, ComparisonLimits, archive_to_read};
use schemars::JsonSchema;
use serde::Deserialize;

use super::MayView;
use crate::problem::{HttpProblem, INVALID_REQUEST};
use crate::request::Query;
use crate::service::Service;

/// What visitors may have read. The thread that reads it reads the archive for everybody, and one name may select all
/// runs of a schedule since its first day.
const LIMITS: ComparisonLimits = ComparisonLimits { runs: 200, events: 2_000_000 };
/// Most runs of one configuration.
const MAX_RUNS: usize = LIMITS.runs as usize;

/// The runs of two configurations.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["before", "after"]))]
pub(crate) struct CompareQuery {
    /// Ids of the repeats of the first configuration, or the name that at most 200 runs share.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200), inner(regex(pattern = "^[^,=/]+$")))]
    before: Vec<String>,
    /// The same for the second one.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200), inner(regex(pattern = "^[^,=/]+$")))]
    after: Vec<String>,
}

pub(crate) async fn view(
    State(service): State<Service>,
    _: MayView,
    Query(query): Query<CompareQuery>,
) -> Result<Json<PageFragment>, HttpProblem> {
    let runs = [side("before", &query.before)?, side("after", &query.after)?];
    let location = service.archive().location().map(str::to_owned);
    let fragment = service.archive().with(move |_| {
        let archive = || -> Result<Box<dyn Store>, ArchiveError> {
            archive_to_read(location.as_deref()).map(|found| Box::new(found) as Box<dyn Store>)
        };
        let request = CompareRequest {
            runs: &runs,
            axis: None,
            quantities: &[],
            archive: &archive,
            // Visitors name runs, not files of this host.
            read_file: None,
        };
        request.compare_within(LIMITS).map(|compared| PageFragment::of_comparison(&compared))
    });
    fragment.await.map(Json)
}

/// A configuration as `linerate compare` takes it: repeats are separated by commas.
fn side(field: &str, runs: &[String]) -> Result<String, HttpProblem> {
    let wrong = |text: String| Err(HttpProblem::new(INVALID_REQUEST, text).at(field));
    if runs.is_empty() || runs.len() > MAX_RUNS {
        return wrong(format!("give 1 to {MAX_RUNS} runs as {field}"));
    }
    let is_id = |run: &String| run.chars().all(|c| c.is_ascii_hexdigit());
    let is_name = |run: &String| !run.is_empty() && !run.contains([',', '=', '/']);
    match runs.iter().find(|run| !is_name(run)) {
        Some(run) => wrong(format!("'{run}' is neither the id nor the name of a run")),
        // One name of several runs is the name of the configuration; ids say nothing to readers.
        None if runs.len() == 1 && !runs.iter().all(is_id) => Ok(runs.concat()),
        None => Ok(format!("{field}={}", runs.join(","))),
    }
}
