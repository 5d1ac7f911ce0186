//! All runs of a text, as event logs.

use std::collections::{BTreeMap, HashMap};

use linerate_model::import::{ForeignResult, Unread};
use linerate_model::{Body, Event, ForeignText};

use super::log::{Imported, bodies, name, run_name};
use super::prose::prose;
use super::{ReadError, read};

/// The name of our own program in readings.
const OWN_PROGRAM: &str = "linerate";

/// What was imported from a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedRuns {
    /// The runs, in the order of the text.
    pub runs: Vec<ImportedRun>,
    /// Parts that could not be read.
    pub unread: Vec<Unread>,
}

/// A run from a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedRun {
    /// The program that made the measurement.
    pub tool: ForeignText,
    /// Its version, if the text contains it.
    pub version: Option<ForeignText>,
    /// Id of the run: the same on every import.
    pub run: ForeignText,
    /// Its log.
    pub events: Vec<Event>,
}

/// Imports every run of a text. Event logs of linerate are imported unchanged, except for run ids that do not have
/// the form of ours.
///
/// ```
/// use linerate_compat::import::{Imported, runs};
///
/// let text = "ttcp-r: 5000 bytes in 1.00 real seconds = 4.88 KB/sec +++\n";
/// let from = Imported { file: "ttcp.txt".to_owned(), ..Imported::default() };
/// let found = runs(text, None, &from)?;
/// assert_eq!((found.runs.len(), found.runs[0].tool.as_str()), (1, "ttcp"));
/// # Ok::<(), linerate_compat::import::ReadError>(())
/// ```
///
/// # Errors
/// No parser recognizes anything in the text, or it is prose with results as examples and `tool` is not given.
pub fn runs(text: &str, tool: Option<&str>, from: &Imported) -> Result<ImportedRuns, ReadError> {
    if let Some(line) = prose(text).filter(|_| tool.is_none()) {
        let why = "this is prose that contains results as examples; copy a measured result into a separate file, \
                   or name the program with --tool";
        return Err(ReadError { line, why: why.to_owned() });
    }
    let readings = read(text, tool)?;
    let mut runs = Vec::new();
    let mut twins = BTreeMap::new();
    let mut has_logs = None;
    for reading in &readings {
        let ours = reading.tool == OWN_PROGRAM;
        if ours && has_logs.is_none() {
            let logs = own_logs(text);
            has_logs = Some(!logs.is_empty());
            runs.extend(logs);
        }
        // The tests of our own logs are already imported as logs.
        if !(ours && has_logs == Some(true)) {
            runs.extend(of_reading(reading, from, &mut twins));
        }
    }
    Ok(ImportedRuns { runs, unread: readings.into_iter().flat_map(|reading| reading.unread).collect() })
}

fn of_reading(
    reading: &ForeignResult,
    from: &Imported,
    twins: &mut BTreeMap<String, u32>,
) -> Vec<ImportedRun> {
    let runs = reading.tests.iter().map(|test| {
        let twin = twins.entry(name(reading, test, 0)).or_default();
        let run = ForeignText::from(name(reading, test, *twin));
        *twin += 1;
        let bodies = (0..).zip(bodies(reading, test, from));
        let event = |(seq, (at, body))| Event { run: run.clone(), host: 0, seq, at, body };
        let events = bodies.map(event).collect();
        ImportedRun { tool: reading.tool.clone(), version: reading.version.clone(), run, events }
    });
    runs.collect()
}

/// The runs of event logs.
fn own_logs(text: &str) -> Vec<ImportedRun> {
    let mut logs: Vec<ImportedRun> = Vec::new();
    let mut places: HashMap<ForeignText, usize> = HashMap::new();
    for event in text.lines().filter_map(|line| own_event(line.trim())) {
        match places.get(&event.run).and_then(|at| logs.get_mut(*at)) {
            Some(log) => log.events.push(event),
            None => {
                let run = event.run.clone();
                places.insert(run.clone(), logs.len());
                logs.push(ImportedRun { tool: OWN_PROGRAM.into(), version: None, run, events: vec![event] });
            }
        }
    }
    logs
}

/// An event of a log that was written elsewhere. A run id that does not have our format is replaced, as it
/// becomes a part of file names, pages and tables.
fn own_event(line: &str) -> Option<Event> {
    let mut event = Event::read(line).ok()?;
    event.run = run_name(&event.run).into();
    match &mut event.body {
        Body::Grouped(place) => {
            if let Some(plan) = &mut place.plan {
                plan.run = run_name(&plan.run).into();
            }
        }
        Body::Labelled(labels) => *labels = std::mem::take(labels).checked(),
        Body::TrialEnded(trial) => trial.runs.iter_mut().for_each(|run| run.run = run_name(&run.run).into()),
        Body::FollowUp { follow_up, .. } => {
            follow_up.runs.iter_mut().for_each(|run| *run = run_name(run).into())
        }
        _ => {}
    }
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTCP: &str = "ttcp-r: 5000 bytes in 1.00 real seconds = 4.88 KB/sec +++\n";

    fn fixture(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/results/");
        std::fs::read_to_string(format!("{folder}{name}")).unwrap()
    }

    fn imported(text: &str) -> ImportedRuns {
        runs(text, None, &Imported { file: "results.txt".to_owned(), ..Imported::default() }).unwrap()
    }

    #[test]
    fn the_same_result_twice_in_a_text_is_two_runs_with_the_same_names_every_time() {
        let result = fixture("iperf3/v321-udp-loss.json");
        let found = imported(&result.repeat(2));
        let names: Vec<&str> = found.runs.iter().map(|run| run.run.as_str()).collect();
        assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
        assert_eq!(imported(&result.repeat(2)), found);
        assert_eq!(imported(&result).runs[0].run, names[0]);
        for run in &found.runs {
            assert!(run.events.iter().all(|event| event.run == run.run));
            assert!(run.events.iter().map(|event| event.seq).eq(0..run.events.len() as u64));
        }
    }

    #[test]
    fn a_log_of_ours_is_imported_as_it_is_and_only_once() {
        let log = fixture("linerate/loopback.jsonl");
        let found = imported(&log);
        assert_eq!(found.runs.len(), 1);
        let events: Vec<Event> = log.lines().map(|line| Event::read(line).unwrap()).collect();
        assert_eq!((&found.runs[0].events, &found.runs[0].run), (&events, &events[0].run));
    }

    #[test]
    fn a_result_of_ours_after_one_of_another_program_is_not_lost() {
        let ours = fixture("linerate/loopback.json");
        let (alone, other) = (imported(&ours).runs.len(), fixture("iperf3/v321-udp-loss.json"));
        let found = imported(&format!("{ours}\n{other}\n{ours}\n"));
        let tools: Vec<&str> = found.runs.iter().map(|run| run.tool.as_str()).collect();
        assert_eq!((alone, tools), (1, vec!["linerate", "iperf3", "linerate"]));
    }

    #[test]
    fn a_run_id_of_another_form_is_replaced_by_one_of_ours() {
        let log = fixture("linerate/loopback.jsonl");
        let id = Event::read(log.lines().next().unwrap()).unwrap().run.to_string();
        let hostile = log.replace(&id, "../../etc/passwd");
        let (first, second) = (imported(&hostile), imported(&hostile));
        let run = first.runs[0].run.as_str();
        assert!(run.len() == 16 && run.bytes().all(|byte| byte.is_ascii_hexdigit()), "{run}");
        assert_eq!(first, second);
        assert!(first.runs[0].events.iter().all(|event| event.run == run));
    }

    #[test]
    fn prose_is_refused_unless_the_program_is_named() {
        // A page with the output of iperf3 in it.
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/lab.md");
        let page = std::fs::read_to_string(page).unwrap();
        let error = runs(&page, None, &Imported::default()).unwrap_err();
        assert!(error.to_string().contains("this is prose") && error.line > 0, "{error}");
        assert!(runs(&page, Some("iperf3"), &Imported::default()).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_listed_next_to_the_runs() {
        let found = imported(&format!("Throughput 5 Gbits/sec\n{TTCP}"));
        assert_eq!((found.runs.len(), found.unread.len(), found.unread[0].line), (1, 1, 1));
    }
}
