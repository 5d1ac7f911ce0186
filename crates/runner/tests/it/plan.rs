//! Plans between two agents in this process.

use std::path::PathBuf;

use linerate_archive::{ArchiveError, Store};
use linerate_control::{Sink, SinkError, Token};
use linerate_model::{Body, Event, Outcome, PlanRecord, World};
use linerate_runner::plan::{
    PlanObserver, PlanRequest, PlanRunError, PlanWorld, Resume, TrialBegin, TrialResult, WorldError,
};
use linerate_runner::{
    ArchiveSink, CancelToken, CompareError, CompareRequest, Loopback, ReportSource, ReportSourceError,
    archive_at,
};
use tempfile::TempDir;

/// Two agents, and a plan of two points between them.
struct RunnerTestBed {
    folder: TempDir,
    token: Token,
    plan: String,
    _agents: [Loopback; 2],
}

impl RunnerTestBed {
    fn start() -> Self {
        let token = Token::new("known to the agents and to this test").unwrap();
        let agents = [(); 2].map(|()| Loopback::agent(token.clone()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("two-points.toml");
        let host = |agent: &Loopback| format!("{{ address = \"127.0.0.1\", port = {} }}", agent.port());
        let text = format!(
            "pause = \"0s\"\nhost.a = {}\nhost.b = {}\nflow.x = {{ from = \"a\", to = \"b\" }}\n\
             test.duration = \"200ms\"\naxis.streams = [1, 2]\n",
            host(&agents[0]),
            host(&agents[1])
        );
        std::fs::write(&path, text).unwrap();
        Self { plan: path.display().to_string(), folder, token, _agents: agents }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive.sqlite")
    }

    fn open(&self) -> Result<Box<dyn Store>, ArchiveError> {
        archive_at(self.archive().to_str()).map(|found| Box::new(found) as Box<dyn Store>)
    }

    fn world(&self) -> PlanWorld<'static> {
        PlanWorld::Hosts { token: self.token.clone(), tls: None }
    }
}

/// Counts trials, and cancels the plan after the first one if it has a token.
#[derive(Default)]
struct Follow {
    begun: usize,
    ended: usize,
    measured: usize,
    events: usize,
    cancel: Option<CancelToken>,
}

impl PlanObserver for Follow {
    fn trial_begins(&mut self, trial: &TrialBegin<'_>) {
        assert_eq!((trial.progress.done, trial.progress.of), (self.begun, 2));
        self.begun += 1;
    }

    fn run_event(&mut self, _: &linerate_control::RunEvent<'_>) {
        self.events += 1;
    }

    fn trial_ends(&mut self, trial: &TrialResult<'_>) {
        self.ended += 1;
        self.measured += trial.figures.iter().flatten().filter(|flow| flow.goodputs().count() == 2).count();
        assert_eq!(trial.record.trials.last().unwrap().point, trial.task.point.id.to_string());
        self.cancel.iter().for_each(CancelToken::cancel);
    }
}

#[derive(Default)]
struct CollectingSink(Vec<Event>);

impl Sink for CollectingSink {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.push(event.clone());
        Ok(())
    }
}

#[test]
fn every_trial_is_reported_and_every_event_of_the_plan_and_its_runs_goes_to_the_sink() {
    let bed = RunnerTestBed::start();
    let plan = PlanRequest { plan: Some(&bed.plan), ..PlanRequest::default() }.prepare().unwrap();
    assert_eq!(plan.world(), World::Hosts);
    let (mut whole, mut follow) = (CollectingSink::default(), Follow::default());
    let record = plan.run(bed.world(), &CancelToken::new(), vec![&mut whole], &mut follow).unwrap();
    assert_eq!(record.outcome, Some(Outcome::Completed), "{record:?}");
    assert_eq!((follow.begun, follow.ended, follow.measured), (2, 2, 2));
    assert!(follow.events > 0);
    let of = |run: &str| -> Vec<Event> { whole.0.iter().filter(|event| event.run == run).cloned().collect() };
    assert_eq!(PlanRecord::fold(&of(&record.run)), record);
    for run in record.trials.iter().flat_map(|trial| &trial.runs) {
        let last = of(&run.run).pop().unwrap();
        assert!(matches!(last.body, Body::RunEnded { outcome: Outcome::Completed, .. }), "{last:?}");
    }
}

#[test]
fn a_cancelled_plan_is_resumed_from_the_archive_and_measures_only_what_is_missing() {
    let bed = RunnerTestBed::start();
    let cancel = CancelToken::new();
    let mut follow = Follow { cancel: Some(cancel.clone()), ..Follow::default() };
    let mut archive = ArchiveSink::open(bed.archive().to_str(), |warning| panic!("{warning}")).unwrap();
    let plan = PlanRequest { plan: Some(&bed.plan), ..PlanRequest::default() }.prepare().unwrap();
    let first = plan.run(bed.world(), &cancel, vec![&mut archive], &mut follow).unwrap();
    assert_eq!((first.outcome, first.trials.len()), (Some(Outcome::Interrupted), 1));
    // No signal came: the token was cancelled.
    assert_eq!(first.reason.as_deref(), Some("cancelled"));
    assert!(archive.close().unwrap());

    // The plan is in the log, so its file is not needed any more.
    std::fs::remove_file(&bed.plan).unwrap();
    let open = || bed.open();
    let resume = Some(Resume::Run(&first.run));
    let plan = PlanRequest { resume, archive: Some(&open), ..PlanRequest::default() }.prepare().unwrap();
    let mut follow = Follow { begun: 1, ..Follow::default() };
    let second = plan.run(bed.world(), &CancelToken::new(), vec![&mut archive], &mut follow).unwrap();
    assert_eq!((second.outcome, second.trials.len()), (Some(Outcome::Completed), 2));
    assert_eq!((second.run, second.resumed, follow.ended), (first.run, 1, 1));
}

#[test]
fn a_plan_does_not_begin_in_another_world_than_it_was_prepared_for_or_without_its_hosts() {
    let bed = RunnerTestBed::start();
    let plan = PlanRequest { plan: Some(&bed.plan), ..PlanRequest::default() };
    let refused = PlanRequest { world: Some(World::Lab), ..plan }.prepare().unwrap_err();
    assert!(matches!(refused, PlanRunError::World(WorldError::NoLab)), "{refused}");
    let stranger = Token::new("not known to the agents of this test").unwrap();
    let ran = plan.prepare().unwrap().run(
        PlanWorld::Hosts { token: stranger, tls: None },
        &CancelToken::new(),
        Vec::new(),
        &mut (),
    );
    let refused = ran.unwrap_err();
    assert!(matches!(&refused, PlanRunError::Hosts(hosts) if hosts.len() == 2), "{refused}");
    assert!(refused.needs_correction());
}

#[test]
fn a_plan_is_a_page_with_its_runs_and_configurations_to_compare() {
    let bed = RunnerTestBed::start();
    let mut sink = ArchiveSink::open(bed.archive().to_str(), |warning| panic!("{warning}")).unwrap();
    let plan = PlanRequest { plan: Some(&bed.plan), ..PlanRequest::default() }.prepare().unwrap();
    let record = plan.run(bed.world(), &CancelToken::new(), vec![&mut sink], &mut ()).unwrap();
    assert!(sink.close().unwrap());
    let runs: Vec<String> =
        record.trials.iter().flat_map(|trial| &trial.runs).map(|run| run.run.to_string()).collect();
    let plan = record.run.to_string();

    let open = || bed.open();
    let compare = |runs: &[String], axis| {
        CompareRequest { runs, axis, quantities: &[], archive: &open, read_file: None }.compare()
    };
    let compared = compare(std::slice::from_ref(&plan), Some("streams")).unwrap();
    let mut names = vec![compared.base.name];
    names.extend(compared.others.into_iter().map(|other| other.name));
    names.sort();
    assert_eq!(names, ["streams=1", "streams=2"]);
    assert_eq!(compare(&runs, None).unwrap().base.name, runs[0]);
    let mixed = format!("mixed={plan},{}", runs[0]);
    assert!(matches!(compare(&[mixed, plan.clone()], None), Err(CompareError::PlanAmongRepeats(_))));

    let mut archive = bed.open().unwrap();
    let names = |page: &ReportSource| -> Vec<String> {
        page.runs.iter().map(|(record, _)| record.run.to_string()).collect()
    };
    let page = ReportSource::load(&*archive, std::slice::from_ref(&plan)).unwrap();
    assert_eq!((names(&page), page.left_out.len()), (runs.clone(), 0));
    assert_eq!(page.plan.as_ref().map(|(found, _)| found), Some(&record));
    archive.delete(&runs[0]).unwrap();
    let page = ReportSource::load(&*archive, std::slice::from_ref(&plan)).unwrap();
    assert_eq!((names(&page), page.left_out.len()), (vec![runs[1].clone()], 1));
    assert_eq!(page.left_out[0], *runs[0]);
    let page = ReportSource::load(&*archive, &runs[1..]).unwrap();
    assert_eq!((names(&page), page.plan.is_none()), (vec![runs[1].clone()], true));
    let mixed = ReportSource::load(&*archive, &[plan, runs[1].clone()]);
    assert!(matches!(mixed, Err(ReportSourceError::PlanAmongRuns)));
}
