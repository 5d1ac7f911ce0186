//! Errors of the HTTP interface, as RFC 9457 describes them.

use std::fmt::Display;
use std::sync::Mutex;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, SchemaObject, StatusCode as ApiStatus};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_archive::ArchiveError;
use linerate_control::RateLimitedNotice;
use linerate_model::{SpecError, TestSpec};
use linerate_runner::{CompareError, ReportSourceError};
use linerate_sock::clock;
use linerate_sock::thread::locked;
use schemars::JsonSchema;
use serde::Serialize;

use crate::field_at_fault::field_at_fault;

/// The media type of problems.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not carried out, and what to change (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct HttpProblem {
    /// The kind of the problem: a path below /problems/.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The kind in words.
    pub(crate) title: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What is wrong in this case, and the remedy.
    pub(crate) detail: String,
    /// The field of the request that is to blame, as a path such as `test.traffic.streams`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The limit that was exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
    /// Seconds after which the request may be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<u64>,
    #[serde(skip)]
    is_of_archive: bool,
}

/// A kind of problem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProblemKind {
    name: &'static str,
    title: &'static str,
    status: StatusCode,
}

const fn kind(name: &'static str, title: &'static str, status: StatusCode) -> ProblemKind {
    ProblemKind { name, title, status }
}

pub(crate) const INVALID_REQUEST: ProblemKind =
    kind("/problems/invalid-request", "The request cannot be understood", StatusCode::UNPROCESSABLE_ENTITY);
pub(crate) const INVALID_SETTING: ProblemKind =
    kind("/problems/invalid-setting", "A setting is invalid", StatusCode::UNPROCESSABLE_ENTITY);
pub(crate) const NOT_COMPARABLE: ProblemKind =
    kind("/problems/not-comparable", "These runs cannot be compared", StatusCode::UNPROCESSABLE_ENTITY);
pub(crate) const SIGN_IN: ProblemKind =
    kind("/problems/sign-in-needed", "This needs a token", StatusCode::UNAUTHORIZED);
pub(crate) const ABILITY: ProblemKind =
    kind("/problems/ability-needed", "The token does not allow this", StatusCode::FORBIDDEN);
pub(crate) const TARGET: ProblemKind =
    kind("/problems/target-not-allowed", "Tests may not go to this host", StatusCode::FORBIDDEN);
pub(crate) const UNABLE: ProblemKind =
    kind("/problems/unable", "This server cannot do this", StatusCode::FORBIDDEN);
pub(crate) const SHARES: ProblemKind =
    kind("/problems/shared-links", "Links cannot be shared", StatusCode::SERVICE_UNAVAILABLE);
pub(crate) const TOKENS: ProblemKind =
    kind("/problems/tokens", "The tokens cannot be checked", StatusCode::SERVICE_UNAVAILABLE);
pub(crate) const FOREIGN_PAGE: ProblemKind =
    kind("/problems/foreign-page", "The request comes from the page of another site", StatusCode::FORBIDDEN);
pub(crate) const FOREIGN_HOST: ProblemKind =
    kind("/problems/foreign-host", "This server does not have that name", StatusCode::MISDIRECTED_REQUEST);
pub(crate) const NOT_FOUND: ProblemKind =
    kind("/problems/not-found", "There is no such thing", StatusCode::NOT_FOUND);
pub(crate) const NO_SUCH_METHOD: ProblemKind =
    kind("/problems/no-such-method", "This cannot be done here", StatusCode::METHOD_NOT_ALLOWED);
pub(crate) const IN_PROGRESS: ProblemKind =
    kind("/problems/in-progress", "The run is still in progress", StatusCode::CONFLICT);
pub(crate) const ENDED: ProblemKind = kind("/problems/ended", "The run has ended", StatusCode::CONFLICT);
pub(crate) const EXISTS: ProblemKind =
    kind("/problems/exists", "There is such a thing already", StatusCode::CONFLICT);
pub(crate) const AMBIGUOUS: ProblemKind =
    kind("/problems/ambiguous", "Several runs have this name", StatusCode::CONFLICT);
pub(crate) const TOO_LARGE: ProblemKind =
    kind("/problems/too-large", "The request is too large", StatusCode::PAYLOAD_TOO_LARGE);
pub(crate) const TOO_SLOW: ProblemKind =
    kind("/problems/too-slow", "The request did not arrive in time", StatusCode::REQUEST_TIMEOUT);
pub(crate) const WRONG_MEDIA_TYPE: ProblemKind =
    kind("/problems/wrong-media-type", "The body must be JSON", StatusCode::UNSUPPORTED_MEDIA_TYPE);
pub(crate) const TOO_MANY: ProblemKind =
    kind("/problems/too-many-requests", "There are too many requests", StatusCode::TOO_MANY_REQUESTS);
pub(crate) const STOPPING: ProblemKind =
    kind("/problems/stopping", "The server is stopping", StatusCode::SERVICE_UNAVAILABLE);
pub(crate) const ARCHIVE: ProblemKind =
    kind("/problems/archive", "The archive cannot be used", StatusCode::SERVICE_UNAVAILABLE);
pub(crate) const NOT_WRITTEN: ProblemKind =
    kind("/problems/not-written", "The result has no such form", StatusCode::UNPROCESSABLE_ENTITY);
pub(crate) const INTERNAL: ProblemKind =
    kind("/problems/internal", "The server has failed", StatusCode::INTERNAL_SERVER_ERROR);

impl HttpProblem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Display) -> Self {
        Self {
            kind: kind.name,
            title: kind.title,
            status: kind.status.as_u16(),
            detail: detail.to_string(),
            field: None,
            limit: None,
            retry_after: None,
            is_of_archive: false,
        }
    }

    /// The archive, or what is stored with its runs, cannot be used. The reason may contain its path, so it is only
    /// in the log.
    pub(crate) fn of_archive(error: impl Display) -> Self {
        if let Some(more) = is_due(&ARCHIVE_WARNING) {
            tracing::warn!(%error, "the archive cannot be used{more}");
        }
        let text = "the archive of this host cannot be used; the log of the server says why";
        Self { is_of_archive: true, ..Self::new(ARCHIVE, text).retry_after(10) }
    }

    /// Whether the archive is to blame.
    pub(crate) fn is_of_archive(&self) -> bool {
        self.is_of_archive
    }

    /// The same, with the field of the request that is to blame.
    pub(crate) fn at(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// The same, with the limit that was exceeded.
    pub(crate) fn limit(self, limit: u64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The same for a request that may be repeated after some seconds.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The problem of a specification below the field `test`.
    pub(crate) fn of_spec(spec: &TestSpec, error: &SpecError) -> Self {
        let problem = Self::new(INVALID_SETTING, error);
        match field_at_fault(spec, error) {
            Some(field) => problem.at(format!("test.{field}")),
            None => problem,
        }
    }
}

/// A warning whose cause visitors can repeat.
pub(crate) type RepeatableWarning = Mutex<RateLimitedNotice>;

/// What to append to the warning if one may be logged now.
pub(crate) fn is_due(warning: &RepeatableWarning) -> Option<String> {
    locked(warning).is_due(clock::now())
}

static ARCHIVE_WARNING: RepeatableWarning = Mutex::new(RateLimitedNotice::new(1));

impl From<ArchiveError> for HttpProblem {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::NotFound { .. } => Self::new(NOT_FOUND, error),
            ArchiveError::BadTag { .. } => Self::new(INVALID_REQUEST, error).at("tag"),
            ArchiveError::Ambiguous { .. } | ArchiveError::SharedName { .. } => Self::new(AMBIGUOUS, error),
            error => Self::of_archive(error),
        }
    }
}

impl From<ReportSourceError> for HttpProblem {
    fn from(error: ReportSourceError) -> Self {
        match error {
            ReportSourceError::Archive(error) => error.into(),
            error => Self::new(NOT_COMPARABLE, error),
        }
    }
}

impl From<CompareError> for HttpProblem {
    fn from(error: CompareError) -> Self {
        match error {
            CompareError::Archive(error) => error.into(),
            CompareError::TooManyRuns { limit, .. } => {
                Self::new(NOT_COMPARABLE, error).limit(u64::from(limit))
            }
            CompareError::TooManyEvents { limit } => Self::new(NOT_COMPARABLE, error).limit(limit as u64),
            error => Self::new(NOT_COMPARABLE, error),
        }
    }
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Every operation may answer with a problem.
impl OperationOutput for HttpProblem {
    type Inner = Self;

    fn operation_response(ctx: &mut GenContext, _: &mut Operation) -> Option<ApiResponse> {
        let schema = SchemaObject {
            json_schema: ctx.schema.subschema_for::<Self>(),
            example: None,
            external_docs: None,
        };
        Some(ApiResponse {
            description: "The request was not carried out.".to_owned(),
            content: [(MEDIA_TYPE.to_owned(), MediaType { schema: Some(schema), ..MediaType::default() })]
                .into_iter()
                .collect(),
            ..ApiResponse::default()
        })
    }

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        Self::operation_response(ctx, operation).map(|response| (None, response)).into_iter().collect()
    }
}
