//! What a request contains: bodies and queries whose every field is known, and an error that names the wrong one.

use std::time::Duration;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::Json;
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::problem::{HttpProblem, INVALID_REQUEST, NOT_FOUND, TOO_LARGE, TOO_SLOW, WRONG_MEDIA_TYPE};

/// Largest body of a request. The largest reasonable one has a few notes of 2,000 letters.
const MAX_BODY_BYTES: usize = 256 << 10;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request, as JSON of at most `MAX` bytes.
#[derive(Debug)]
pub(crate) struct JsonBody<T, const MAX: usize = MAX_BODY_BYTES>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned, const MAX: usize> FromRequest<S> for JsonBody<T, MAX> {
    type Rejection = HttpProblem;

    async fn from_request(request: Request, _: &S) -> Result<Self, HttpProblem> {
        if !is_json(request.headers()) {
            return Err(HttpProblem::new(
                WRONG_MEDIA_TYPE,
                "send the body with Content-Type: application/json",
            ));
        }
        let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(request.into_body(), MAX)).await;
        let body = match body {
            Ok(Ok(body)) => body,
            // The body ended early, or it is too large; the first one sees no answer anyway.
            Ok(Err(_)) => {
                let text = format!("a body has at most {MAX} bytes");
                return Err(HttpProblem::new(TOO_LARGE, text).limit(MAX as u64));
            }
            Err(_) => return Err(HttpProblem::new(TOO_SLOW, "the body did not arrive within 10 s")),
        };
        parse(&body).map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| {
        let media_type = text.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case("application/json")
    })
}

/// Parses JSON. A field that nobody reads is an error too.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, HttpProblem> {
    // A list would be taken for the values of the fields in their order.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(HttpProblem::new(INVALID_REQUEST, "the body must be a JSON object"));
    }
    let mut unread: Option<String> = None;
    let mut track = serde_path_to_error::Track::new();
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = {
        let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
        serde_ignored::deserialize(tracked, |path| {
            unread.get_or_insert_with(|| path.to_string());
        })
    };
    let value = value.and_then(|value: T| json.end().map(|()| value)).map_err(|error| {
        let path = track.path().to_string();
        let problem = HttpProblem::new(INVALID_REQUEST, format!("the body is not what is expected: {error}"));
        if path == "." { problem } else { problem.at(path) }
    })?;
    match unread {
        // The crate separates an optional value from what contains it by a question mark.
        Some(path) => {
            let path = path.replace(".?", "");
            Err(HttpProblem::new(INVALID_REQUEST, format!("there is no field {path}; remove it")).at(path))
        }
        None => Ok(value),
    }
}

impl<T: JsonSchema, const MAX: usize> OperationInput for JsonBody<T, MAX> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        <Json<T> as OperationInput>::operation_input(ctx, operation);
    }
}

/// Longest part of a path that names something.
const MAX_PATH_CHARS: usize = 300;

/// The variable parts of a path.
#[derive(Debug)]
pub(crate) struct PathParts<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParts<T> {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpProblem> {
        if parts.uri.path().split('/').any(|part| part.len() > MAX_PATH_CHARS) {
            return Err(
                HttpProblem::new(NOT_FOUND, "nothing has a name that long").limit(MAX_PATH_CHARS as u64)
            );
        }
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(path)) => Ok(Self(path)),
            Err(error) => Err(HttpProblem::new(NOT_FOUND, format!("the path names nothing: {error}"))),
        }
    }
}

impl<T: JsonSchema> OperationInput for PathParts<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        <Path<T> as OperationInput>::operation_input(ctx, operation);
    }
}

/// The query of a request. A key may be given several times for a list.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpProblem> {
        let text = parts.uri.query().unwrap_or_default();
        let query = serde_html_form::Deserializer::from_bytes(text.as_bytes());
        serde_path_to_error::deserialize(query).map(Self).map_err(|error| {
            let path = error.path().to_string();
            let text = format!("the query is not what is expected: {}", error.into_inner());
            let problem = HttpProblem::new(INVALID_REQUEST, text);
            if path == "." { problem } else { problem.at(path) }
        })
    }
}

impl<T: JsonSchema> OperationInput for Query<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        let schema = ctx.schema.subschema_for::<T>();
        let schema = ctx.resolve_schema(&schema).clone();
        let parameters =
            aide::operation::parameters_from_schema(ctx, schema, aide::operation::ParamLocation::Query);
        aide::operation::add_parameters(ctx, operation, parameters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::TestSpec;

    #[test]
    fn the_field_that_is_wrong_is_named() {
        let problem = parse::<TestSpec>(br#"{"traffic":{"streams":"four"}}"#).unwrap_err();
        assert_eq!((problem.field.as_deref(), problem.status), (Some("traffic.streams"), 422));
        let problem = parse::<TestSpec>(br#"{"traffic":{"streams":4}}x"#).unwrap_err();
        assert!(problem.detail.contains("trailing characters"), "{problem:?}");
        assert_eq!(parse::<TestSpec>(b"{").unwrap_err().status, 422);
        assert!(parse::<TestSpec>(b" []").unwrap_err().detail.contains("JSON object"));
    }

    #[test]
    fn a_field_that_nobody_reads_is_refused_and_not_ignored() {
        let problem = parse::<TestSpec>(br#"{"traffic":{"steams":4}}"#).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("traffic.steams"));
        let problem = parse::<TestSpec>(br#"{"sweep":{"whatever":1}}"#).unwrap_err();
        assert!(problem.field.is_some_and(|field| !field.contains('?')));
    }

    #[test]
    fn only_json_is_json() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            is_json(&headers)
        };
        assert!(with("application/json") && with("Application/JSON; charset=utf-8"));
        // Forms of other sites may send these without asking.
        assert!(!with("text/plain") && !with("application/x-www-form-urlencoded"));
        assert!(!is_json(&HeaderMap::new()));
    }
}
