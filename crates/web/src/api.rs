//! The HTTP interface: its routes, and their description.

mod archived;
mod calculated;
mod comparison;
mod fleet;
mod labs;
mod overview;
mod permits;
mod plans;
mod shared;
mod starting;
mod tags;
mod tickets;

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with, put_with};
use aide::openapi::{
    HeaderStyle, Info, OpenApi, Parameter, ParameterData, ParameterSchemaOrContent, ReferenceOr,
    SchemaObject, Tag,
};
use aide::transform::TransformOperation;
use axum::Json;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use linerate_report::html::PageFragment;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::live::{RunMessage, StreamsMessage};
use crate::problem::{HttpProblem, NOT_FOUND};
use crate::request::PathParts;
use crate::runs::CurrentRuns;
use crate::service::Service;

pub(crate) use permits::{MayAdminister, MayRun, MayView};

/// The id of a run in a path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RunPath {
    /// The id of a run, the beginning of one, the name of a run, or `latest`.
    id: String,
}

/// The routes of the interface, and their description as JSON.
pub(crate) fn routes() -> (Router<Service>, Arc<str>) {
    aide::generate::extract_schemas(true);
    let mut description = description();
    let router = overview_routes()
        .merge(run_routes())
        .merge(watching_routes())
        .merge(tickets::routes())
        .merge(calculated_routes());
    let router = router
        .merge(plan_routes())
        .merge(labs::routes())
        .merge(shared_routes())
        .merge(fleet_routes())
        .merge(schedule_routes())
        .finish_api(&mut description);
    // The description of our own types always has a JSON form.
    let text: Arc<str> = serde_json::to_string_pretty(&description).unwrap_or_default().into();
    let served = Arc::clone(&text);
    let document = get(async move || ([(header::CONTENT_TYPE, "application/json")], served.to_string()));
    (router.route("/api/v1/openapi.json", document), text)
}

fn overview_routes() -> ApiRouter<Service> {
    ApiRouter::new()
        .api_route(
            "/api/v1/session",
            get_with(overview::session, |op| {
                about(op, "getSession", "overview", "Who is asking, and what the server is")
            })
            .post_with(overview::sign_in, |op| {
                about_write(
                    op,
                    "signIn",
                    "overview",
                    "Begin a session in a browser, with a token of the server",
                )
                .response::<204, ()>()
            })
            .delete_with(overview::sign_out, |op| {
                about_write(op, "signOut", "overview", "End the session").response::<204, ()>()
            }),
        )
        .api_route(
            "/api/v1/hosts",
            get_with(overview::hosts, |op| {
                about(op, "listHosts", "overview", "Servers of earlier runs, and the queue of this host")
            }),
        )
        .api_route(
            "/api/v1/live",
            get_with(overview::current_runs, |op| {
                about(op, "watchRuns", "overview", "Which runs there are, now and after each change")
                    .response_with::<200, EventStream<CurrentRuns>, _>(|r| r)
            }),
        )
}

fn run_routes() -> ApiRouter<Service> {
    ApiRouter::new()
        .api_route(
            "/api/v1/runs",
            get_with(archived::list, |op| about(op, "listRuns", "runs", "List runs, newest first"))
                .post_with(starting::start, |op| {
                    let op = about_write(op, "startRun", "runs", "Start a test from this host");
                    header_of(op, "Idempotency-Key", "One run for all requests with this value", false)
                        .response::<201, Json<starting::Started>>()
                }),
        )
        .api_route(
            "/api/v1/runs/{id}",
            get_with(archived::run, |op| about(op, "getRun", "runs", "The state and the result of a run"))
                .delete_with(archived::delete, |op| {
                    about_write(op, "deleteRun", "runs", "Delete a run").response::<204, ()>()
                }),
        )
        .api_route(
            "/api/v1/runs/{id}/tags/{tag}",
            put_with(tags::add, |op| {
                about_write(op, "addTag", "runs", "Add a tag to a run").response::<204, ()>()
            })
            .delete_with(tags::remove, |op| {
                about_write(op, "removeTag", "runs", "Remove a tag from a run").response::<204, ()>()
            }),
        )
        .api_route(
            "/api/v1/runs/{id}/cancel",
            post_with(starting::cancel, |op| {
                about_write(op, "cancelRun", "runs", "End a run early; what was measured is kept")
                    .response::<202, ()>()
            }),
        )
        .api_route(
            "/api/v1/runs/{id}/view",
            get_with(archived::view, |op| {
                about(op, "viewRun", "runs", "What a page shows of a run that has ended")
                    .response::<200, Json<PageFragment>>()
            }),
        )
        .api_route(
            "/api/v1/runs/{id}/events",
            get_with(archived::events, |op| {
                about(op, "getEvents", "runs", "The event log, one JSON object per line")
                    .response_with::<200, Lines, _>(|r| r)
            }),
        )
        .api_route(
            "/api/v1/runs/{id}/export/{format}",
            get_with(archived::export, |op| {
                about(op, "exportRun", "runs", "The result in one of the formats of linerate export")
                    .response_with::<200, Download, _>(|r| r)
            }),
        )
        .api_route(
            "/api/v1/compare/view",
            get_with(comparison::view, |op| {
                about(op, "viewComparison", "comparison", "Whether one configuration is better than another")
            }),
        )
}

fn watching_routes() -> ApiRouter<Service> {
    ApiRouter::new()
        .api_route(
            "/api/v1/runs/{id}/live",
            get_with(archived::live, |op| {
                about(op, "watchRun", "runs", "The events snapshot, frame and end of a run, as it happens")
                    .response_with::<200, EventStream<RunMessage>, _>(|r| r)
            }),
        )
        .api_route(
            "/api/v1/runs/{id}/live/streams",
            get_with(archived::live_streams, |op| {
                about(op, "watchStreams", "runs", "What each stream of a run's flows moves, as it happens")
                    .response_with::<200, EventStream<StreamsMessage>, _>(|r| r)
            }),
        )
}

fn calculated_routes() -> ApiRouter<Service> {
    let tag = "calculated";
    ApiRouter::new()
        .api_route(
            "/api/v1/envelope",
            post_with(calculated::envelope, move |op| {
                about_write(
                    op,
                    "getEnvelope",
                    tag,
                    "What a described path can carry, as linerate envelope --json",
                )
            }),
        )
        .api_route(
            "/api/v1/check",
            post_with(calculated::check, move |op| {
                about_write(op, "checkResults", tag, "Whether figures can be true, as linerate check --json")
            }),
        )
}

fn plan_routes() -> ApiRouter<Service> {
    let tag = "plans";
    ApiRouter::new()
        .api_route(
            "/api/v1/plans",
            get_with(plans::list, move |op| about(op, "listPlans", tag, "The bundled plans")),
        )
        .api_route(
            "/api/v1/plans/{name}",
            get_with(plans::text, move |op| about(op, "getPlan", tag, "A bundled plan as a file")),
        )
        .api_route(
            "/api/v1/plans/preview",
            post_with(plans::preview, move |op| {
                about_write(op, "previewPlan", tag, "What a plan would do, or what is wrong with it")
            }),
        )
        .api_route(
            "/api/v1/plans/runs",
            post_with(starting::start_plan, move |op| {
                let op =
                    about_write(op, "runPlan", tag, "Carry out a plan, on hosts or in an emulated network");
                header_of(op, "Idempotency-Key", "One run for all requests with this value", false)
                    .response::<201, Json<starting::Started>>()
            }),
        )
}

fn shared_routes() -> ApiRouter<Service> {
    let tag = "shared";
    ApiRouter::new()
        .api_route(
            "/api/v1/runs/{id}/share",
            post_with(shared::share, move |op| {
                about_write(op, "shareRun", tag, "Make a link that shows this run to whoever has it")
                    .response::<200, Json<shared::SharedLink>>()
            }),
        )
        .api_route(
            "/api/v1/shared/{id}/{secret}",
            get_with(shared::run, move |op| {
                about(op, "getSharedRun", tag, "The state and the result of a shared run")
            }),
        )
        .api_route(
            "/api/v1/shared/{id}/{secret}/view",
            get_with(shared::view, move |op| {
                about(op, "viewSharedRun", tag, "What a page shows of a shared run that has ended")
                    .response::<200, Json<PageFragment>>()
            }),
        )
        .api_route(
            "/api/v1/shared/{id}/{secret}/export/{format}",
            get_with(shared::export, move |op| {
                about(
                    op,
                    "exportSharedRun",
                    tag,
                    "The result of a shared run in one of the formats of linerate export",
                )
                .response_with::<200, Download, _>(|r| r)
            }),
        )
}

fn schedule_routes() -> ApiRouter<Service> {
    let tag = "fleet";
    ApiRouter::new()
        .api_route(
            "/api/v1/schedules",
            get_with(fleet::schedules, move |op| {
                about(
                    op,
                    "listSchedules",
                    tag,
                    "Schedules, the active runs, and the next run of each of them",
                )
            })
            .post_with(fleet::add, move |op| {
                about_write(
                    op,
                    "addSchedule",
                    tag,
                    "Add a schedule: a test between two hosts, and when to make it",
                )
                .response::<201, Json<linerate_report::fleet::SchedulesDocument>>()
            }),
        )
        .api_route(
            "/api/v1/schedules/{name}",
            delete_with(fleet::remove, move |op| {
                about_write(
                    op,
                    "removeSchedule",
                    tag,
                    "Remove a schedule and cancel its coming runs; results stay",
                )
            }),
        )
        .api_route(
            "/api/v1/schedules/{name}/why",
            get_with(fleet::why, move |op| about(op, "getWhy", tag, "Why a schedule measures now or not")),
        )
        .api_route(
            "/api/v1/schedules/{name}/pause",
            post_with(fleet::pause, move |op| {
                about_write(op, "pauseSchedule", tag, "Pause a schedule and cancel its coming runs")
            }),
        )
        .api_route(
            "/api/v1/schedules/{name}/resume",
            post_with(fleet::resume, move |op| about_write(op, "resumeSchedule", tag, "Resume a schedule")),
        )
}

fn fleet_routes() -> ApiRouter<Service> {
    let tag = "fleet";
    ApiRouter::new()
        .api_route(
            "/api/v1/fleet",
            get_with(fleet::status, move |op| {
                about(op, "getFleet", tag, "The hosts of the fleet, who coordinates it, and open alarms")
            }),
        )
        .api_route(
            "/api/v1/agents",
            get_with(fleet::agents, move |op| {
                about(op, "listAgents", tag, "Agents that carry out the calendar by themselves")
            }),
        )
        .api_route(
            "/api/v1/meshes",
            get_with(fleet::meshes, move |op| about(op, "listMeshes", tag, "Who sees whom how well")),
        )
        .api_route(
            "/api/v1/meshes/{mesh}/{from}/{to}",
            get_with(fleet::cell, move |op| about(op, "getCell", tag, "The newest runs of a pair of a mesh")),
        )
        .api_route(
            "/api/v1/alarms",
            get_with(fleet::alarms, move |op| about(op, "listAlarms", tag, "Alarms, the newest first")),
        )
        .api_route(
            "/api/v1/calendar/runs/{id}/cancel",
            post_with(fleet::cancel, move |op| {
                about_write(op, "cancelCalendarRun", tag, "Cancel a coming or active run of the calendar")
            }),
        )
}

fn description() -> OpenApi {
    OpenApi {
        info: Info {
            title: "linerate".to_owned(),
            summary: Some(
                "Starts network tests, shows them while they run, and gives their results.".to_owned(),
            ),
            description: Some(DESCRIPTION.to_owned()),
            version: "1".to_owned(),
            ..Info::default()
        },
        tags: ["overview", "runs", "comparison", "calculated", "plans", "labs", "shared", "fleet"]
            .map(|name| Tag { name: name.to_owned(), ..Tag::default() })
            .to_vec(),
        ..OpenApi::default()
    }
}

const DESCRIPTION: &str = "Errors are problem documents (RFC 9457), with the field of the request that is to blame. \
Requests that change something need the header `X-Linerate: 1`. A server with tokens takes one as \
`Authorization: Bearer TOKEN`; its ability is `view` (see results), `run` (also start and cancel tests and plans) or `admin` \
(also delete results). Times are RFC 3339, and suffixes name units: `_bps` is bit/s, `_ns` nanoseconds. \
What was not measured is absent or null.";

/// The description of the HTTP interface (OpenAPI 3.1), as JSON.
#[must_use]
pub fn openapi() -> String {
    routes().1.to_string()
}

fn about<'t>(op: TransformOperation<'t>, id: &str, tag: &str, summary: &str) -> TransformOperation<'t> {
    op.id(id).tag(tag).summary(summary)
}

/// A string in a header of the request.
fn header_of<'t>(
    mut op: TransformOperation<'t>,
    name: &str,
    about: &str,
    required: bool,
) -> TransformOperation<'t> {
    let schema = SchemaObject {
        json_schema: aide::generate::in_context(|ctx| ctx.schema.subschema_for::<String>()),
        example: None,
        external_docs: None,
    };
    let parameter_data = ParameterData {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        required,
        format: ParameterSchemaOrContent::Schema(schema),
        extensions: Default::default(),
        deprecated: None,
        example: None,
        examples: Default::default(),
        explode: None,
    };
    let parameter = Parameter::Header { parameter_data, style: HeaderStyle::Simple };
    op.inner_mut().parameters.push(ReferenceOr::Item(parameter));
    op
}

/// As [`about`], for an operation that changes something.
fn about_write<'t>(op: TransformOperation<'t>, id: &str, tag: &str, summary: &str) -> TransformOperation<'t> {
    header_of(
        about(op, id, tag, summary),
        "X-Linerate",
        "Any value: the pages of other sites cannot send it",
        true,
    )
}

/// There is no such path.
pub(crate) async fn not_found() -> HttpProblem {
    HttpProblem::new(NOT_FOUND, "there is nothing at this path; /api/v1/openapi.json describes all of them")
}

/// 204.
#[derive(Debug)]
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> axum::response::Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl aide::OperationOutput for NoContent {
    type Inner = ();
}

/// Describes a body that is not JSON.
macro_rules! body_of {
    ($name:ident $(<$type:ident>)?, $media_type:literal, $description:literal, $schema:expr) => {
        #[derive(Debug)]
        pub(crate) struct $name $(<$type>(std::marker::PhantomData<$type>))?;

        impl $(<$type: JsonSchema>)? aide::OperationOutput for $name $(<$type>)? {
            type Inner = Self;

            fn operation_response(
                ctx: &mut aide::generate::GenContext,
                _: &mut aide::openapi::Operation,
            ) -> Option<aide::openapi::Response> {
                let schema: fn(&mut aide::generate::GenContext) -> schemars::Schema = $schema;
                let schema = aide::openapi::SchemaObject {
                    json_schema: schema(ctx),
                    example: None,
                    external_docs: None,
                };
                let content =
                    aide::openapi::MediaType { schema: Some(schema), ..aide::openapi::MediaType::default() };
                Some(aide::openapi::Response {
                    description: $description.to_owned(),
                    content: [($media_type.to_owned(), content)].into_iter().collect(),
                    ..aide::openapi::Response::default()
                })
            }
        }
    };
}

body_of!(EventStream<T>, "text/event-stream", "Messages; the schema is that of their data.", |ctx| ctx
    .schema
    .subschema_for::<T>());
body_of!(Lines, "application/x-ndjson", "The event log.", |ctx| ctx.schema.subschema_for::<String>());
body_of!(Download, "application/octet-stream", "The result; its media type is that of the format.", |ctx| {
    ctx.schema.subschema_for::<String>()
});

pub(crate) type RunOfPath = PathParts<RunPath>;
