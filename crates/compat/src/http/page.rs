//! What a page asks for, and the messages between it and the server.

use linerate_model::Direction;
use linerate_units::Span;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::HttpRequest;

/// Most connections of a phase.
const MAX_STREAMS: usize = 16;

/// Longest phase.
const MAX_SECONDS: u64 = 60;

/// A message to the page.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ToPage<'a> {
    Busy {
        why: &'a str,
    },
    Open {
        phase: Direction,
        streams: usize,
    },
    Go {
        phase: Direction,
        seconds: f64,
    },
    Progress {
        phase: Direction,
        elapsed_ns: u64,
        bytes: u64,
        bitrate_bps: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        rtt_ns: Option<u64>,
    },
    Ended {
        phase: Direction,
        bytes: u64,
        elapsed_ns: u64,
        bitrate_bps: f64,
    },
    Finished {
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<&'a str>,
    },
    Failed {
        why: &'a str,
    },
}

/// A message from the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum FromPage {
    Note {
        phase: Direction,
        // A value of another kind is none, and takes nothing with it.
        starved_share: Option<Value>,
        longest_lag_ns: Option<Value>,
        hidden: Option<Value>,
    },
    Cancel,
}

/// What the page asks for, or why that is refused.
pub(super) fn terms(request: &HttpRequest) -> Result<(usize, Span, Vec<Direction>), String> {
    let number = |name: &str, default: u64, most: u64| match request.parameter(name) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .ok()
            .filter(|number| (1..=most).contains(number))
            .ok_or_else(|| format!("{name} is a number from 1 to {most}")),
    };
    let streams = number("streams", 4, MAX_STREAMS as u64)?;
    let seconds = number("seconds", 10, MAX_SECONDS)?;
    let directions = match request.parameter("directions").unwrap_or("download,upload") {
        "download" => vec![Direction::Download],
        "upload" => vec![Direction::Upload],
        "download,upload" => vec![Direction::Download, Direction::Upload],
        "upload,download" => vec![Direction::Upload, Direction::Download],
        _ => return Err("directions is download, upload, or both with a comma".to_owned()),
    };
    Ok((usize::try_from(streams).unwrap_or(MAX_STREAMS), Span::from_secs(seconds), directions))
}
