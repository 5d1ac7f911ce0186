//! The calendar of a fleet: its state, meshes, schedules, and why something does not run.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use linerate_fleet::{
    CancelTarget, FleetCalendar, FleetError, MeshRequest, ScheduleCommand, ScheduleName, now,
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
use crate::request::{JsonBody, PathParts};
use crate::schedule_request::NewSchedule;
use crate::service::Service;

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

/// Executes `work` with the calendar, in the thread for the archive.
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
    let status = with(&service, |calendar| calendar.status(now())).await?;
    Ok(Json(FleetDocument::new(&status)))
}

pub(crate) async fn agents(
    State(service): State<Service>,
    _: MayView,
) -> Result<Json<AgentsDocument>, HttpProblem> {
    let agents = with(&service, FleetCalendar::agents).await?;
    Ok(Json(AgentsDocument::new(&agents, now())))
}

pub(crate) async fn meshes(
    State(service): State<Service>,
    _: MayView,
) -> Result<Json<MeshesDocument>, HttpProblem> {
    let grids = with(&service, FleetCalendar::grids).await?;
    Ok(Json(MeshesDocument::new(&grids)))
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
) -> Result<Json<SchedulesDocument>, HttpProblem> {
    match with(&service, |calendar| ScheduleCommand::List.execute(calendar, now())).await? {
        FleetAnswer::Schedules(schedules, runs) => Ok(Json(SchedulesDocument::new(&schedules, &runs))),
        _ => Ok(Json(SchedulesDocument::new(&[], &[]))),
    }
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
    let answer = with(&service, move |calendar| calendar.why(&path.name, now(), now())).await?;
    Ok(Json(WhyDocument::new(&answer)))
}

pub(crate) async fn alarms(
    State(service): State<Service>,
    _: MayView,
) -> Result<Json<AlarmsDocument>, HttpProblem> {
    let alarms = with(&service, |calendar| calendar.alarms(false)).await?;
    Ok(Json(AlarmsDocument::new(&alarms)))
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
