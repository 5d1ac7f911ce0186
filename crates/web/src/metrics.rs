//! Results for monitoring systems, as OpenMetrics. No request starts a test.

use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use linerate_archive::Archive;
use linerate_control::QueueLoad;
use linerate_fleet::{FleetCalendar, FleetError};
use linerate_model::{Cause, Outcome, RunHead};
use linerate_units::Bitrate;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::api::MayView;
use crate::fleet_metrics::FleetResults;
use crate::latest_runs::latest_runs;
use crate::problem::{HttpProblem, INTERNAL};
use crate::service::Service;

/// Most pairs of hosts and directions; each has a few series.
pub(crate) const MAX_PAIRS: usize = 500;
/// The media type of OpenMetrics.
const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Of one direction between two hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowLabels {
    src: String,
    dst: String,
    direction: String,
}

/// Of one cause of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    src: String,
    dst: String,
    direction: String,
    verdict: String,
}

/// Of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    src: String,
    dst: String,
}

pub(crate) type FloatGauge = Gauge<f64, AtomicU64>;

/// The last result of each pair of hosts.
#[derive(Debug, Default)]
struct LastResults {
    goodput: Family<FlowLabels, FloatGauge>,
    verdict: Family<VerdictLabels, Gauge>,
    time: Family<TargetLabels, FloatGauge>,
    success: Family<TargetLabels, Gauge>,
    left_out: Gauge,
}

pub(crate) async fn metrics(
    State(service): State<Service>,
    _: MayView,
) -> Result<impl IntoResponse, HttpProblem> {
    let host = service.host().to_owned();
    let (own, sources) = (host.clone(), service.run_sources().clone());
    let location = service.archive().location().map(str::to_owned);
    let read = move |archive: &mut Archive| -> Result<_, HttpProblem> {
        let mut calendar = match FleetCalendar::open(location.as_deref()) {
            Ok(calendar) => Some(calendar),
            Err(FleetError::NoFleet(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let archive: &Archive = archive;
        // Tests of a fleet are between other hosts than this one and have figures of their own.
        let mut is_other = |run: &RunHead| -> Result<bool, HttpProblem> {
            if let Some(calendar) = &mut calendar
                && calendar.has_run(&run.id)?
            {
                return Ok(true);
            }
            Ok(!sources.is_own(archive, &run.id, &own)?)
        };
        let runs = latest_runs(archive, &mut is_other)?;
        let fleet = calendar.map(|mut calendar| FleetResults::read(&mut calendar)).transpose()?;
        Ok((runs, fleet))
    };
    let (runs, fleet) = service.archive().with(read).await?;
    let results = LastResults::of(&runs, &host);
    let usable = service.archive().trouble().is_none();
    let mut registry = registry_of_server(service.runs().load(), usable);
    results.register(&mut registry);
    if let Some(fleet) = fleet {
        fleet.register(&mut registry);
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| HttpProblem::new(INTERNAL, error))?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text))
}

/// What is known without the archive.
fn registry_of_server(load: QueueLoad, archive_usable: bool) -> Registry {
    let mut registry = Registry::with_prefix("linerate");
    let gauge = |value: usize| {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        gauge
    };
    registry.register("queue_measured", "Clients and runs that are measured now", gauge(load.running));
    registry.register("queue_waiting", "Clients and runs that wait", gauge(load.waiting));
    registry.register(
        "archive_usable",
        "1 if results are archived, 0 if they are lost",
        gauge(usize::from(archive_usable)),
    );
    registry
}

impl LastResults {
    fn of(runs: &[RunHead], host: &str) -> Self {
        let results = Self::default();
        let mut pairs = 0;
        for run in runs {
            let Some(server) = run.target.as_ref().map(ToString::to_string) else { continue };
            pairs += run.flows.len().max(1);
            if pairs > MAX_PAIRS {
                results.left_out.inc();
                continue;
            }
            results.add(run, host, &server);
        }
        results
    }

    fn add(&self, run: &RunHead, host: &str, server: &str) {
        let target = TargetLabels { src: host.to_owned(), dst: server.to_owned() };
        let completed = run.outcome == Some(Outcome::Completed);
        self.success.get_or_create(&target).set(i64::from(completed));
        if let Some(seconds) = run.started_at.as_deref().and_then(linerate_runner::unix_seconds) {
            self.time.get_or_create(&target).set(seconds);
        }
        for flow in &run.flows {
            let download = flow.direction.as_str() == "download";
            let (src, dst) = if download { (server, host) } else { (host, server) };
            let labels = FlowLabels {
                src: src.to_owned(),
                dst: dst.to_owned(),
                direction: flow.direction.to_string(),
            };
            let is_impossible = flow.cause.as_deref() == Some(Cause::Impossible.name());
            if let Some(rate) = flow.bitrate.filter(|_| !is_impossible).map(Bitrate::bps) {
                self.goodput.get_or_create(&labels).set(rate / 8.0);
            }
            if let Some(cause) = &flow.cause {
                let FlowLabels { src, dst, direction } = labels;
                let labels = VerdictLabels { src, dst, direction, verdict: cause.to_string() };
                self.verdict.get_or_create(&labels).set(1);
            }
        }
    }

    fn register(self, registry: &mut Registry) {
        let per_second = || Unit::Other("bytes_per_second".to_owned());
        registry.register_with_unit(
            "goodput",
            "Payload that the receiver got per second, in the last test of this pair",
            per_second(),
            self.goodput,
        );
        registry.register(
            "verdict",
            "What limited the last test of this pair: 1 for its cause",
            self.verdict,
        );
        registry.register_with_unit(
            "last_run_timestamp",
            "When the last test started, since 1970",
            Unit::Seconds,
            self.time,
        );
        registry.register("last_run_success", "1 if the last test was completed", self.success);
        registry.register("pairs_left_out", "Servers whose results do not fit into this list", self.left_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::FlowHead;
    use linerate_model::flow::FlowId;

    fn run(target: &str, outcome: Outcome) -> RunHead {
        let flow = |direction: &str, bps: f64| FlowHead {
            flow: FlowId(0),
            name: direction.into(),
            direction: direction.into(),
            transport: "tcp".into(),
            bitrate: Bitrate::from_bps(bps),
            cause: Some("link".into()),
        };
        RunHead {
            target: Some(target.into()),
            started_at: Some("2026-11-25T20:00:00Z".into()),
            outcome: Some(outcome),
            flows: vec![flow("download", 800e6), flow("upload", 400e6)],
            ..RunHead::default()
        }
    }

    fn text(runs: &[RunHead]) -> String {
        let mut registry = Registry::with_prefix("linerate");
        LastResults::of(runs, "ams-1").register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn the_last_result_has_its_direction_its_verdict_and_its_time() {
        let text = text(&[run("lund-2", Outcome::Completed), run("oslo", Outcome::Failed)]);
        for line in [
            r#"linerate_goodput_bytes_per_second{src="lund-2",dst="ams-1",direction="download"} 100000000.0"#,
            r#"linerate_goodput_bytes_per_second{src="ams-1",dst="lund-2",direction="upload"} 50000000.0"#,
            r#"linerate_verdict{src="lund-2",dst="ams-1",direction="download",verdict="link"} 1"#,
            r#"linerate_last_run_timestamp_seconds{src="ams-1",dst="lund-2"} 1795636800.0"#,
            r#"linerate_last_run_success{src="ams-1",dst="oslo"} 0"#,
            "linerate_pairs_left_out 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn an_impossible_rate_is_no_goodput() {
        let mut run = run("lund-2", Outcome::Completed);
        run.flows[0].cause = Some("impossible".into());
        let text = text(&[run]);
        let has = |line: &str| text.lines().any(|found| found.starts_with(line));
        assert!(has(
            r#"linerate_verdict{src="lund-2",dst="ams-1",direction="download",verdict="impossible"} 1"#
        ));
        assert!(!has(r#"linerate_goodput_bytes_per_second{src="lund-2""#), "{text}");
        assert!(has(r#"linerate_goodput_bytes_per_second{src="ams-1""#), "{text}");
    }

    #[test]
    fn alerts_and_dashboard_use_the_names_that_there_are() {
        let mut text = text(&[run("lund-2", Outcome::Completed)]);
        encode(&mut text, &registry_of_server(QueueLoad::default(), true)).unwrap();
        let mut of_fleet = Registry::with_prefix("linerate");
        FleetResults::one_of_each().register(&mut of_fleet);
        encode(&mut text, &of_fleet).unwrap();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/monitoring");
        let mut names = 0;
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            let content = std::fs::read_to_string(&file).unwrap();
            let words = content.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in words.filter(|word| word.starts_with("linerate_")) {
                assert!(text.contains(&format!("# TYPE {name} gauge")), "{}: {name}", file.display());
                names += 1;
            }
        }
        assert!(names > 10);
    }

    #[test]
    fn the_number_of_series_is_limited_and_what_is_left_out_is_counted() {
        let runs: Vec<RunHead> =
            (0..400).map(|number| run(&format!("host-{number}"), Outcome::Completed)).collect();
        let text = text(&runs);
        let goodput = text.lines().filter(|line| line.starts_with("linerate_goodput_bytes")).count();
        assert_eq!(goodput, MAX_PAIRS);
        assert!(text.contains("linerate_pairs_left_out 150"), "{text}");
    }
}
