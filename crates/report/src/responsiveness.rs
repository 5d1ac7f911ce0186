//! Responsiveness under load in words.

use linerate_model::{Direction, ResponsivenessConfidence, ResponsivenessReport, RunRecord};
use linerate_theory::responsiveness::grade;
use linerate_units::Span;

use crate::quantity::or_absent;

/// The results of a run, each with the directions that carried load.
pub(crate) fn lines(record: &RunRecord) -> Vec<(&'static str, String)> {
    record.responsiveness.iter().map(|report| (directions(report), words(report))).collect()
}

/// The result as a part of the answer of a run, such as `1489 RPM under load (good)`.
pub(crate) fn answers(record: &RunRecord) -> Vec<String> {
    let several = record.responsiveness.len() > 1;
    let answer = |report: &ResponsivenessReport| {
        let rpm = report.rpm?;
        let load = if several { directions(report) } else { "load" };
        Some(format!("{rpm:.0} RPM under {load} ({})", grade(rpm)))
    };
    record.responsiveness.iter().filter_map(answer).collect()
}

fn directions(report: &ResponsivenessReport) -> &'static str {
    match report.loaded[..] {
        [Direction::Download] => Direction::Download.name(),
        [Direction::Upload] => Direction::Upload.name(),
        _ => "both ways",
    }
}

fn words(report: &ResponsivenessReport) -> String {
    let mut sentences = vec![match report.rpm {
        Some(rpm) => format!(
            "{rpm:.0} round trips per minute (RPM): {}. Confidence {}{}.",
            grade(rpm),
            report.confidence.name(),
            not_stable(report)
        ),
        None if report.probes.contains(&0) => "Not known: too few probes were answered.".to_owned(),
        None => "Not known: a direction carried no load.".to_owned(),
    }];
    let rpm = |rpm: Option<f64>| or_absent(rpm.map(|rpm| format!("{rpm:.0}")));
    let (new, loaded) = (new_connections(report), or_absent(report.loaded_http));
    if report.foreign_rpm.is_some() {
        sentences.push(format!("Over new connections {} RPM ({new}).", rpm(report.foreign_rpm)));
    }
    if report.loaded_rpm.is_some() {
        sentences.push(format!("Over connections with load {} RPM ({loaded}).", rpm(report.loaded_rpm)));
    }
    if report.idle_rpm.is_some() {
        sentences.push(format!("Before the load {} RPM.", rpm(report.idle_rpm)));
    }
    // What is late for a probe is late for its answer too.
    let late =
        report.late.filter(|late| report.loaded_http.is_some_and(|time| late.as_ns() > time.as_ns() / 10));
    if let Some(late) = late {
        sentences.push(format!(
            "This host is part of it: it sent its probes {late} too late on average, and read answers as late."
        ));
    }
    let [foreign, over_loaded] = report.probes;
    let lost =
        if report.lost > 0 { format!(", {} more without an answer", report.lost) } else { String::new() };
    sentences.push(format!(
        "{foreign} + {over_loaded} probes{lost}; up to {} connections, {} intervals of {}.",
        report.connections, report.intervals, report.interval
    ));
    sentences.join(" ")
}

fn new_connections(report: &ResponsivenessReport) -> String {
    let times: [(&str, Option<Span>); 3] =
        [("TCP", report.tcp), ("TLS", report.tls), ("one byte", report.http)];
    let known = times.iter().filter_map(|(name, time)| time.map(|time| format!("{name} {time}")));
    known.collect::<Vec<_>>().join(", ")
}

/// What was not stable, if anything was not.
fn not_stable(report: &ResponsivenessReport) -> &'static str {
    use ResponsivenessConfidence::High;
    match (report.rate_confidence, report.confidence) {
        (High, High) => "",
        (High, _) => ": it was not stable yet; give it more time with -t",
        (_, _) => ": the rate was not stable yet; give it more time with -t",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> ResponsivenessReport {
        ResponsivenessReport {
            loaded: vec![Direction::Download, Direction::Upload],
            rpm: Some(1_489.2),
            foreign_rpm: Some(1_778.4),
            loaded_rpm: Some(1_200.0),
            idle_rpm: Some(2_992.8),
            tcp: Some(Span::from_ms(33)),
            tls: Some(Span::from_ms(34)),
            http: Some(Span::from_ms(35)),
            loaded_http: Some(Span::from_ms(50)),
            late: Some(Span::from_ms(1)),
            rate_confidence: ResponsivenessConfidence::High,
            confidence: ResponsivenessConfidence::High,
            probes: [83, 82],
            lost: 0,
            connections: 16,
            intervals: 8,
            interval: Span::from_secs(1),
            encrypted: true,
        }
    }

    #[test]
    fn a_stable_result_says_what_it_is_made_of() {
        assert_eq!(
            words(&report()),
            "1489 round trips per minute (RPM): good. Confidence high. Over new connections 1778 RPM (TCP 33 ms, \
             TLS 34 ms, one byte 35 ms). Over connections with load 1200 RPM (50 ms). Before the load 2993 \
             RPM. 83 + 82 probes; up to 16 connections, 8 intervals of 1 s."
        );
    }

    #[test]
    fn what_is_not_stable_or_not_known_says_so() {
        let low = ResponsivenessConfidence::Low;
        let said = words(&ResponsivenessReport { confidence: low, lost: 3, ..report() });
        assert!(said.contains("Confidence low: it was not stable yet; give it more time"), "{said}");
        assert!(said.contains("probes, 3 more without an answer;"), "{said}");
        let said = words(&ResponsivenessReport { confidence: low, rate_confidence: low, ..report() });
        assert!(said.contains("the rate was not stable yet"), "{said}");
        let said = words(&ResponsivenessReport { late: Some(Span::from_ms(9)), ..report() });
        assert!(said.contains("it sent its probes 9 ms too late"), "{said}");
        let nothing = ResponsivenessReport {
            rpm: None,
            foreign_rpm: None,
            loaded_rpm: None,
            idle_rpm: None,
            tcp: None,
            tls: None,
            http: None,
            loaded_http: None,
            probes: [0, 0],
            ..report()
        };
        let said = words(&nothing);
        assert!(said.starts_with("Not known: too few probes were answered. 0 + 0 probes;"), "{said}");
        let said = words(&ResponsivenessReport { rpm: None, loaded_rpm: None, ..report() });
        assert!(said.starts_with("Not known: a direction carried no load. Over new"), "{said}");
    }

    #[test]
    fn the_answer_names_the_direction_if_there_are_two() {
        let mut record = RunRecord { responsiveness: vec![report()], ..RunRecord::default() };
        assert_eq!(answers(&record), ["1489 RPM under load (good)"]);
        let one = |direction, rpm| ResponsivenessReport { loaded: vec![direction], rpm, ..report() };
        record.responsiveness =
            vec![one(Direction::Download, Some(200.0)), one(Direction::Upload, Some(7_000.0))];
        assert_eq!(answers(&record), ["200 RPM under download (poor)", "7000 RPM under upload (excellent)"]);
        record.responsiveness = vec![one(Direction::Upload, None)];
        assert!(answers(&record).is_empty());
        assert_eq!(lines(&record)[0].0, "upload");
    }
}
