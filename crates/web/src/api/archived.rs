//! Runs in progress and in the archive.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_archive::{Archive, ArchiveError, Filter, RunCursor, Store};
use linerate_model::{Event, ForeignText, Outcome, PlanRecord, RunHead, RunRecord};
use linerate_report::format::{FORMATS, Format, FormatError};
use linerate_report::html::{PageFragment, ReportedPlan, ReportedRun};
use linerate_report::{ExportSource, ResultDocument, RunEntry, RunKind, TextLayout, document, ndjson};
use linerate_runner::{
    ReportSource, ReportSourceError, Retention, day_or_time, log_if_archived, unix_seconds,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{MayAdminister, MayView, NoContent, RunOfPath};
use crate::guard::VisitorAddress;
use crate::live::{End, LiveRun};
use crate::problem::{HttpProblem, IN_PROGRESS, INTERNAL, INVALID_REQUEST, NOT_FOUND, NOT_WRITTEN};
use crate::request::{PathParts, Query};
use crate::runs::{RunQueue, WebRun, WebRunState};
use crate::service::Service;
use crate::streams;

/// Most runs of a page, and how many it has by default.
const MAX_PAGE: u32 = 500;
const DEFAULT_PAGE: u32 = 50;

/// Which runs to list.
#[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunQuery {
    /// Most runs of this page, at most 500 [default: 50].
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
    /// `next` of the previous page.
    #[schemars(regex(pattern = "^[0-9]{0,18}$"))]
    after: Option<String>,
    /// Only runs against this server, as typed, or with this name.
    target: Option<String>,
    /// Only runs with this name.
    name: Option<String>,
    /// Only runs in this world: `hosts`, `lab` or `twin`.
    world: Option<String>,
    /// Only runs with a flow whose verdict has this cause, such as `link`.
    verdict: Option<String>,
    /// Only runs with this tag.
    tag: Option<String>,
    /// Only runs that started at this RFC 3339 time or date, or later.
    #[schemars(schema_with = "day_or_time_schema")]
    since: Option<String>,
    /// Only runs that started before this RFC 3339 time or date.
    #[schemars(schema_with = "day_or_time_schema")]
    until: Option<String>,
    /// Whether runs that are parts of plans are listed too.
    parts: bool,
}

/// A day, a time, or nothing.
fn day_or_time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "anyOf": [{ "format": "date" }, { "format": "date-time" }, { "maxLength": 0 }]
    })
}

/// A page of runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    /// The runs, newest first; those that wait are on the first page.
    runs: Vec<ListedRun>,
    /// What to give as `after` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedRun {
    /// Whether it is over.
    state: WebRunState,
    #[serde(flatten)]
    run: RunEntry,
}

impl RunQuery {
    fn filter(&self) -> Result<(Filter, Option<RunCursor>), HttpProblem> {
        let start = |field: &str, typed: &Option<String>| {
            let Some(text) = typed else { return Ok(None) };
            day_or_time(text).map(Some).ok_or_else(|| {
                let text = format!("'{text}' is no date such as 2026-11-25 and no RFC 3339 time");
                HttpProblem::new(INVALID_REQUEST, text).at(field)
            })
        };
        let cursor = self.after.as_ref().map(|text| {
            let cursor = text.parse().map(RunCursor);
            cursor.map_err(|_| {
                HttpProblem::new(INVALID_REQUEST, "give the `next` of the previous page").at("after")
            })
        });
        let filter = Filter {
            name_or_target: self.target.clone(),
            name: self.name.clone(),
            world: self.world.clone(),
            since: start("since", &self.since)?,
            until: start("until", &self.until)?,
            cause: self.verdict.clone(),
            tag: self.tag.clone(),
            whole: !self.parts,
            ..Filter::default()
        };
        Ok((filter, cursor.transpose()?))
    }

    fn size(&self) -> Result<u32, HttpProblem> {
        let size = self.limit.unwrap_or(DEFAULT_PAGE);
        if (1..=MAX_PAGE).contains(&size) {
            return Ok(size);
        }
        let text = format!("a page has 1 to {MAX_PAGE} runs");
        Err(HttpProblem::new(INVALID_REQUEST, text).at("limit").limit(u64::from(MAX_PAGE)))
    }

    /// Whether a run of which little is known yet is among those that are wanted: one that waits or is being set up.
    fn has_current(&self) -> bool {
        *self == Self { limit: self.limit, parts: self.parts, ..Self::default() }
    }
}

pub(crate) async fn list(
    State(service): State<Service>,
    _: MayView,
    Query(query): Query<RunQuery>,
) -> Result<Json<RunList>, HttpProblem> {
    let ((filter, cursor), size) = (query.filter()?, query.size()?);
    let page = service.archive().with(move |archive| archive.page(&filter, cursor, size)).await?;
    let mut runs: Vec<ListedRun> = Vec::new();
    let running = service.runs().current_runs().borrow().running.clone();
    if query.has_current() {
        let waiting = service.runs().waiting();
        runs.extend(waiting.iter().rev().map(|run| not_archived_yet(run, WebRunState::Waiting)));
        // Hosts are connected and networks are made before the log begins.
        let is_archived = |id: &str| page.runs.iter().any(|head| head.id == id);
        let set_up = running.as_deref().filter(|id| !is_archived(id)).and_then(|id| service.runs().find(id));
        runs.extend(set_up.map(|run| not_archived_yet(&run, WebRunState::Running)));
    }
    runs.extend(page.runs.iter().map(|head| ListedRun {
        state: match head.outcome {
            Some(_) => WebRunState::Ended,
            None if running.as_deref() == Some(head.id.as_str()) => WebRunState::Running,
            None => WebRunState::Unfinished,
        },
        run: RunEntry::of(head),
    }));
    Ok(Json(RunList { runs, next: page.next.map(|cursor| cursor.0.to_string()) }))
}

fn not_archived_yet(run: &WebRun, state: WebRunState) -> ListedRun {
    let run = RunEntry::of(&RunHead {
        id: run.id.as_str().into(),
        target: Some(run.task.target().into()),
        name: run.task.name().map(Into::into),
        is_plan: run.task.is_plan(),
        ..RunHead::default()
    });
    ListedRun { state, run }
}

/// The run, if it was started here and is still known: by its id, or by another word that selects it in the archive.
pub(super) async fn started_here(service: &Service, typed: &str) -> Option<Arc<WebRun>> {
    if let Some(run) = service.runs().find(typed) {
        return Some(run);
    }
    let typed = typed.to_owned();
    let id = service.archive().with(move |archive| archive.find(&typed)).await.ok()?;
    service.runs().find(&id)
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunStatus {
    /// Its id.
    id: String,
    /// What it is.
    kind: RunKind,
    /// Whether it is over.
    state: WebRunState,
    /// Position in the queue; 1 is next. Only while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<u32>,
    /// Longest expected wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_seconds: Option<f64>,
    /// The other host; for a plan, its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Its tags, once it is archived.
    tags: Vec<ForeignText>,
    /// Why it was not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The result, as `linerate show --json` prints it. Absent before the end, and for plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    result: Option<ResultDocument>,
}

impl RunStatus {
    fn of_web(runs: &RunQueue, run: &WebRun) -> Self {
        let wait = runs.wait(run);
        Self {
            id: run.id.clone(),
            state: run.state(),
            place: wait.map(|(position, _)| position),
            wait_seconds: wait.map(|(_, wait)| wait.as_secs_f64()),
            kind: RunKind::of(run.task.is_plan()),
            target: Some(run.task.target().to_owned()),
            name: run.task.name().map(str::to_owned),
            tags: Vec::new(),
            problem: run.problem(),
            result: None,
        }
    }
}

pub(crate) async fn run(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): RunOfPath,
) -> Result<Json<RunStatus>, HttpProblem> {
    let started_here = started_here(&service, &path.id).await;
    if let Some(run) = started_here.as_ref().filter(|run| run.state() != WebRunState::Ended) {
        return Ok(Json(RunStatus::of_web(service.runs(), run)));
    }
    let id = path.id.clone();
    let archived = service.archive().with(move |archive| status(archive, &id)).await;
    match (archived, started_here) {
        (Ok(archived), started) => {
            let problem = started.and_then(|run| run.problem()).or_else(|| archived.problem.clone());
            // A plan that was cancelled here may have been completed since.
            let is_complete = archived.problem.is_none() && archived.state == WebRunState::Ended;
            Ok(Json(RunStatus { problem: problem.filter(|_| !is_complete), ..archived }))
        }
        // It failed before anything was archived, or the archive cannot be used.
        (Err(_), Some(run)) => Ok(Json(RunStatus::of_web(service.runs(), &run))),
        (Err(problem), None) => Err(problem),
    }
}

fn status(archive: &Archive, typed: &str) -> Result<RunStatus, ArchiveError> {
    let id = archive.find(typed)?;
    let events = archive.events(&id)?;
    let tags = archive.tags(&id)?;
    if PlanRecord::is_plan(&events) {
        let plan = PlanRecord::fold(&events);
        let state = if plan.outcome.is_some() { WebRunState::Ended } else { WebRunState::Unfinished };
        let completed = matches!(plan.outcome, Some(Outcome::Completed));
        return Ok(RunStatus {
            kind: RunKind::Plan,
            state,
            target: plan.start.as_ref().map(|start| start.name.to_string()),
            problem: plan.reason.as_ref().filter(|_| !completed).map(ToString::to_string),
            tags,
            ..RunStatus::empty(id)
        });
    }
    let record = RunRecord::fold(&events);
    let completed = matches!(record.outcome, Some(Outcome::Completed));
    Ok(RunStatus {
        state: if record.outcome.is_some() { WebRunState::Ended } else { WebRunState::Unfinished },
        target: record.start.as_ref().map(|start| start.target.to_string()),
        name: record.labels.name.as_ref().map(ToString::to_string),
        problem: record.reason.as_ref().filter(|_| !completed).map(ToString::to_string),
        tags,
        result: Some(document(&record)),
        ..RunStatus::empty(id)
    })
}

impl ExportPath {
    pub(super) fn new(id: String, format: String) -> Self {
        Self { id, format }
    }
}

impl RunStatus {
    /// The same for those who have a link to this run: tags are remarks of the host's users.
    pub(super) fn without_tags(self) -> Self {
        Self { tags: Vec::new(), ..self }
    }

    fn empty(id: String) -> Self {
        Self {
            id,
            kind: RunKind::Test,
            state: WebRunState::Unfinished,
            place: None,
            wait_seconds: None,
            target: None,
            name: None,
            tags: Vec::new(),
            problem: None,
            result: None,
        }
    }
}

pub(crate) async fn delete(
    State(service): State<Service>,
    _: MayAdminister,
    PathParts(path): RunOfPath,
) -> Result<NoContent, HttpProblem> {
    let run = started_here(&service, &path.id).await;
    if run.as_ref().is_some_and(|run| run.state() != WebRunState::Ended) {
        return Err(HttpProblem::new(IN_PROGRESS, "cancel the run before you delete it"));
    }
    // What was started here has ended, also if the archive does not have its end.
    let is_known = run.is_some();
    let deleted = service.archive().with(move |archive| {
        let id = archive.find(&path.id)?;
        if !is_known && may_be_under_way(&archive.events(&id)?) {
            let text = "the run has no end and began less than a day ago, so it may still be measured; delete it \
                        later";
            return Err(HttpProblem::new(IN_PROGRESS, text));
        }
        archive.delete(&id).map_err(HttpProblem::from)
    });
    let deleted = deleted.await;
    match (deleted, run) {
        // One that failed before anything was archived is only known here.
        (Ok(()), Some(run)) => service.runs().forget(&run.id),
        (Err(problem), Some(run)) if problem.status == StatusCode::NOT_FOUND => {
            service.runs().forget(&run.id)
        }
        (Ok(()), None) => {}
        (Err(problem), _) => return Err(problem),
    }
    Ok(NoContent)
}

/// Whether a run without an end may be active, as for the limits of an archive.
fn may_be_under_way(log: &[Event]) -> bool {
    let (outcome, started_at) = match PlanRecord::of_log(log) {
        Some(plan) => (plan.outcome, plan.start.map(|start| start.started_at)),
        None => {
            let run = RunRecord::fold(log);
            (run.outcome, run.start.map(|start| start.started_at))
        }
    };
    let started = started_at.and_then(|at| unix_seconds(&at));
    let oldest = unix_seconds(&Retention::default().limits().under_way);
    outcome.is_none() && started.zip(oldest).is_some_and(|(started, oldest)| started > oldest)
}

pub(crate) async fn live(
    State(service): State<Service>,
    from: VisitorAddress,
    MayView(visitor): MayView,
    PathParts(path): RunOfPath,
) -> Result<streams::Stream, HttpProblem> {
    let watcher = service.admit_stream(from, visitor)?;
    let replay = |log: &[Event]| {
        let seq = log.last().map(|event| event.seq);
        streams::finished(seq, &LiveRun::replay(log), &end_of(log))
    };
    Ok(match watched(&service, path.id, replay).await? {
        WatchedRun::Here(run) => streams::run(watcher, run),
        WatchedRun::Archived(stream) => stream,
    })
}

pub(crate) async fn live_streams(
    State(service): State<Service>,
    from: VisitorAddress,
    MayView(visitor): MayView,
    PathParts(path): RunOfPath,
) -> Result<streams::Stream, HttpProblem> {
    let watcher = service.admit_stream(from, visitor)?;
    let replay = |log: &[Event]| streams::finished(None, &LiveRun::replay_streams(log), &end_of(log));
    match watched(&service, path.id, replay).await? {
        WatchedRun::Here(run) => streams::streams_of(watcher, run)
            .ok_or_else(|| HttpProblem::new(NOT_FOUND, "a plan has no streams of its own")),
        WatchedRun::Archived(stream) => Ok(stream),
    }
}

/// A run that somebody watches.
enum WatchedRun {
    /// It was started here and has not ended, or nothing of it is archived.
    Here(Arc<WebRun>),
    /// All of its messages.
    Archived(streams::Stream),
}

/// `replay` makes the messages of an archived run. A log may be long, so that is done in the thread for the archive: the
/// other one answers everybody.
async fn watched(
    service: &Service,
    id: String,
    replay: impl FnOnce(&[Event]) -> streams::Stream + Send + 'static,
) -> Result<WatchedRun, HttpProblem> {
    let started_here = started_here(service, &id).await;
    if let Some(run) = started_here.as_ref().filter(|run| run.state() != WebRunState::Ended) {
        return Ok(WatchedRun::Here(Arc::clone(run)));
    }
    // The archive knows what became of it since. One that failed before anything was archived is only known here.
    let read = move |archive: &mut Archive| archive.events(&id).map(|log| replay(&log));
    match (service.archive().with(read).await, started_here) {
        (Err(_), Some(run)) => Ok(WatchedRun::Here(run)),
        (replayed, _) => Ok(WatchedRun::Archived(replayed?)),
    }
}

fn end_of(events: &[Event]) -> End {
    let record = RunRecord::fold(events);
    let outcome = record.outcome.unwrap_or(Outcome::Interrupted);
    End { outcome, reason: record.reason.as_ref().map(ToString::to_string) }
}

pub(crate) async fn view(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): RunOfPath,
) -> Result<Json<PageFragment>, HttpProblem> {
    let fragment = service.archive().with(move |archive| {
        let source = ReportSource::load_one(archive, &path.id)?;
        let plan = source.plan.as_ref();
        let plan = plan.map(|(record, _)| ReportedPlan { record, events: &[], left_out: &source.left_out });
        let runs = source.runs.iter().map(|(record, _)| ReportedRun { record, events: &[] });
        Ok::<_, ReportSourceError>(PageFragment::of_runs(plan.as_ref(), &runs.collect::<Vec<_>>()))
    });
    fragment.await.map(Json)
}

pub(crate) async fn events(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): RunOfPath,
) -> Result<Text, HttpProblem> {
    let lines = service.archive().with(move |archive| {
        let mut out = Vec::new();
        for event in archive.events(&path.id)? {
            // Writing to memory does not fail, and an event from the archive can be written.
            let _ = ndjson::write(&event, &mut out);
        }
        Ok::<_, ArchiveError>(out)
    });
    Ok(Text { media_type: Format::Jsonl.media_type(), file: None, content: lines.await? })
}

/// The run and format of an export.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ExportPath {
    /// The id of a run, the beginning of one, the name of a run, or `latest`.
    id: String,
    /// The name of a format: `jsonl`, `json`, `csv`, `summary-csv`, `markdown`, `html`, `text`, `svg`, `junit`, or
    /// `parquet`.
    format: String,
}

pub(crate) async fn export(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): PathParts<ExportPath>,
) -> Result<Text, HttpProblem> {
    let format = Format::named(&path.format).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|row| row.name).collect();
        let text = format!("there is no format {}; give one of: {}", path.format, names.join(", "));
        HttpProblem::new(NOT_FOUND, text).at("format")
    })?;
    let assets = service.report_assets();
    let written = service.archive().with(move |archive| {
        let id = archive.find(&path.id)?;
        let events = archive.events(&id)?;
        let assets = (!assets.script.is_empty()).then_some(&assets);
        let runs = |run: &str| log_if_archived(archive, run).map_err(Into::into);
        let source =
            ExportSource { events: &events, runs: &runs, view: &TextLayout::default(), assets, chart: None };
        let out = linerate_report::export(format, &source).map_err(|error| not_written(&error))?;
        Ok::<_, HttpProblem>((id, out))
    });
    let (id, content) = written.await?;
    let file = format!("linerate-{id}.{}", format.file_extension());
    Ok(Text { media_type: format.media_type(), file: Some(file), content })
}

fn not_written(error: &FormatError) -> HttpProblem {
    HttpProblem::new(if error.is_of_format() { NOT_WRITTEN } else { INTERNAL }, error)
}

/// A document that is not JSON, or a file; with a file name, browsers save it.
#[derive(Debug)]
pub(crate) struct Text {
    media_type: &'static str,
    file: Option<String>,
    content: Vec<u8>,
}

impl IntoResponse for Text {
    fn into_response(self) -> Response {
        let mut response = ([(header::CONTENT_TYPE, self.media_type)], self.content).into_response();
        // An id is 16 hexadecimal digits, so the name needs no escaping.
        let name = self.file.map(|file| format!("attachment; filename=\"{file}\"").parse());
        if let Some(Ok(value)) = name {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
        }
        response
    }
}

impl aide::OperationOutput for Text {
    type Inner = Self;
}
