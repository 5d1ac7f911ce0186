//! The calendar of a fleet: its state, meshes, schedules, and why something does not run.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use linerate_fleet::{
    CancelTarget, FleetCalendar, FleetError, MeshPage, MeshRequest, ScheduleCommand, ScheduleName,
    SchedulePage, now,
};
use linerate_model::calendar::FleetAnswer;
use linerate_report::fleet::{
    AgentsDocument, AlarmsDocument, CalendarDocument, ChangeDocument, FleetDocument, MeshesDocument,
    SchedulesDocument, WhyDocument,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MayAdminister, MayRun, MayView};
use crate::problem::{ENDED, HttpProblem, INVALID_REQUEST, NOT_FOUND};
use crate::request::{JsonBody, PathParts, Query};
use crate::schedule_request::NewSchedule;
use crate::service::Service;

/// Most schedules or meshes of a page, and how many it has by default.
const MAX_PAGE: u32 = 500;
const DEFAULT_PAGE: u32 = 100;

/// Which schedules or meshes to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FleetPageQuery {
    /// Most entries of this page, at most 500 [default: 100].
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
    /// `next` of the previous page.
    after: Option<String>,
}

impl FleetPageQuery {
    fn size(&self) -> Result<u32, HttpProblem> {
        let size = self.limit.unwrap_or(DEFAULT_PAGE);
        if (1..=MAX_PAGE).contains(&size) {
            return Ok(size);
        }
        let text = format!("a page has 1 to {MAX_PAGE} entries");
        Err(HttpProblem::new(INVALID_REQUEST, text).at("limit").limit(u64::from(MAX_PAGE)))
    }
}

/// A schedule in a path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SchedulePath {
    /// Name of the schedule; those of a mesh are MESH.FROM.TO.
    name: String,
}

/// A run of the calendar in a path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CalendarRunPath {
    /// Name of the run, all of it.
    id: String,
}

/// A pair of hosts of a mesh in a path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CellPath {
    /// Name of the mesh.
    mesh: String,
    /// The host that is the client.
    from: String,
    /// The host that is the server.
    to: String,
}

impl From<FleetError> for HttpProblem {
    fn from(error: FleetError) -> Self {
        let kind = match &error {
            FleetError::NoFleet(_) => return Self::new(NOT_FOUND, "this archive has no fleet"),
            FleetError::NoHost { .. }
            | FleetError::NoMesh { .. }
            | FleetError::NoSchedule { .. }
            | FleetError::NoRun(_) => NOT_FOUND,
            FleetError::Ended { .. } => ENDED,
            error if error.needs_correction() => INVALID_REQUEST,
            error => return Self::of_archive(error),
        };
        Self::new(kind, error)
    }
}

/// Executes `work` with the calendar, in the thread for the archive. Documents are made there too: they may be large.
async fn with<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&mut FleetCalendar) -> Result<T, FleetError> + Send + 'static,
) -> Result<T, HttpProblem> {
    let location = service.archive().location().map(str::to_owned);
    service
        .archive()
        .with(move |_| FleetCalendar::open(location.as_deref()).and_then(|mut calendar| work(&mut calendar)))
        .await
}

pub(crate) async fn status(
    State(service): State<Service>,
    _: MayView,
) -> Result<Json<FleetDocument>, HttpProblem> {
    with(&service, |calendar| Ok(FleetDocument::new(&calendar.status(now())?))).await.map(Json)
}

pub(crate) async fn agents(
    State(service): State<Service>,
    _: MayView,
) -> Result<Json<AgentsDocument>, HttpProblem> {
    with(&service, |calendar| Ok(AgentsDocument::new(&calendar.agents()?, now()))).await.map(Json)
}

pub(crate) async fn meshes(
    State(service): State<Service>,
    _: MayView,
    Query(query): Query<FleetPageQuery>,
) -> Result<Json<MeshesDocument>, HttpProblem> {
    let size = query.size()? as usize;
    let page = move |calendar: &mut FleetCalendar| {
        let MeshPage { meshes, next } = calendar.mesh_page(query.after.as_deref(), size, now())?;
        Ok(MeshesDocument::new(&meshes).before(next))
    };
    with(&service, page).await.map(Json)
}

pub(crate) async fn cell(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): PathParts<CellPath>,
) -> Result<Json<CalendarDocument>, HttpProblem> {
    let request = MeshRequest { mesh: Some(path.mesh), from: Some(path.from), to: Some(path.to) };
    match with(&service, move |calendar| request.execute(calendar, now())).await? {
        FleetAnswer::Runs(runs) => Ok(Json(CalendarDocument::new(&runs))),
        _ => Err(HttpProblem::new(NOT_FOUND, "there is no such pair")),
    }
}

pub(crate) async fn schedules(
    State(service): State<Service>,
    _: MayView,
    Query(query): Query<FleetPageQuery>,
) -> Result<Json<SchedulesDocument>, HttpProblem> {
    let size = query.size()?;
    let page = move |calendar: &mut FleetCalendar| {
        let SchedulePage { schedules, runs, next } =
            calendar.schedule_page(query.after.as_deref(), size, now())?;
        Ok(SchedulesDocument::new(&schedules, &runs).before(next))
    };
    with(&service, page).await.map(Json)
}

/// 201 with the new schedule.
#[derive(Debug)]
pub(crate) struct AddedSchedule(String, Box<SchedulesDocument>);

impl IntoResponse for AddedSchedule {
    fn into_response(self) -> axum::response::Response {
        // The name of a schedule has small letters, digits and hyphens.
        let location = format!("/api/v1/schedules/{}", self.0);
        (StatusCode::CREATED, [(header::LOCATION, location)], Json(self.1)).into_response()
    }
}

impl aide::OperationOutput for AddedSchedule {
    type Inner = SchedulesDocument;
}

pub(crate) async fn add(
    State(service): State<Service>,
    _: MayAdminister,
    JsonBody(schedule): JsonBody<NewSchedule>,
) -> Result<AddedSchedule, HttpProblem> {
    service.runs().limits().check_group(schedule.test.traffic.multicast, "test.traffic.multicast")?;
    let request = schedule.request()?;
    let added = with(&service, move |calendar| Ok(calendar.add(&request, now()))).await?;
    let state = added.map_err(|error| schedule.refused(error))?;
    service.notify(format!("a visitor added the schedule {}", state.schedule.name));
    let name = state.schedule.name.to_string();
    Ok(AddedSchedule(name, Box::new(SchedulesDocument::new(&[state], &[]))))
}

pub(crate) async fn remove(
    State(service): State<Service>,
    _: MayAdminister,
    PathParts(path): PathParts<SchedulePath>,
) -> Result<Json<ChangeDocument>, HttpProblem> {
    change(&service, ScheduleCommand::Remove(ScheduleName { name: path.name })).await
}

pub(crate) async fn why(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): PathParts<SchedulePath>,
) -> Result<Json<WhyDocument>, HttpProblem> {
    let why =
        move |calendar: &mut FleetCalendar| Ok(WhyDocument::new(&calendar.why(&path.name, now(), now())?));
    with(&service, why).await.map(Json)
}

pub(crate) async fn alarms(
    State(service): State<Service>,
    _: MayView,
) -> Result<Json<AlarmsDocument>, HttpProblem> {
    with(&service, |calendar| Ok(AlarmsDocument::new(&calendar.alarms(false)?))).await.map(Json)
}

async fn change(service: &Service, command: ScheduleCommand) -> Result<Json<ChangeDocument>, HttpProblem> {
    match with(service, move |calendar| command.execute(calendar, now())).await? {
        FleetAnswer::Changed { schedule, done, cancelled } => {
            service.notify(format!("a visitor {done} the schedule {schedule}"));
            Ok(Json(ChangeDocument::new(Some(schedule), Some(done), cancelled)))
        }
        _ => Ok(Json(ChangeDocument::new(None, None, 0))),
    }
}

pub(crate) async fn pause(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): PathParts<SchedulePath>,
) -> Result<Json<ChangeDocument>, HttpProblem> {
    change(&service, ScheduleCommand::Pause(ScheduleName { name: path.name })).await
}

pub(crate) async fn resume(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): PathParts<SchedulePath>,
) -> Result<Json<ChangeDocument>, HttpProblem> {
    change(&service, ScheduleCommand::Resume(ScheduleName { name: path.name })).await
}

pub(crate) async fn cancel(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): PathParts<CalendarRunPath>,
) -> Result<Json<ChangeDocument>, HttpProblem> {
    let cancelled =
        with(&service, move |calendar| calendar.cancel(&CancelTarget::Run(path.id), now())).await?;
    Ok(Json(ChangeDocument::new(None, None, cancelled)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_calendar_is_a_problem_of_the_archive_that_does_not_name_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.db");
        std::fs::write(&path, "this is no database, and long enough to be read as one".repeat(20)).unwrap();
        let error = FleetCalendar::open(path.to_str()).err().unwrap();
        assert!(error.to_string().contains("results.db"), "what the log says: {error}");
        let problem = HttpProblem::from(error);
        assert!(problem.is_of_archive() && problem.status == 503, "{problem:?}");
        assert!(!problem.detail.contains("results.db"), "{problem:?}");
        assert_eq!(problem.retry_after, Some(10));
        let unknown = HttpProblem::from(FleetError::NoRun("7".to_owned()));
        assert!(!unknown.is_of_archive() && unknown.status == 404, "{unknown:?}");
    }
}
