//! Prepares the next group while the previous one is judged and logged.

use linerate_proto::agent::{AgentInput, AgentOutput};

use super::group::{PREPARE_LEAD, RunningGroup};
use super::test_bed::{FlowJob, RunGroup};

/// Runs that agents are already preparing.
#[derive(Debug)]
pub(super) struct Ahead {
    flows: Vec<FlowJob>,
    /// Host and job number of each run; absent if its host is lost.
    jobs: Vec<Option<(usize, u32)>>,
    /// What agents have already sent about these runs.
    early: Vec<(usize, AgentOutput)>,
}

impl Ahead {
    /// Whether these are the runs of `group`.
    pub(super) fn is_of(&self, group: &RunGroup) -> bool {
        self.flows == group.flows
    }

    /// The hosts that prepare a run.
    pub(super) fn hosts(&self) -> impl Iterator<Item = usize> {
        self.jobs.iter().flatten().map(|(host, _)| *host)
    }

    /// Removes a lost host and what was prepared there.
    pub(super) fn remove(&mut self, host: usize) {
        self.jobs.iter_mut().for_each(|job| *job = job.filter(|(at, _)| *at != host));
        self.early.retain(|(at, _)| *at != host);
    }

    /// Keeps a message about one of these runs; returns any other message.
    pub(super) fn take_prepared(&mut self, host: usize, word: AgentOutput) -> Option<AgentOutput> {
        let job = match &word {
            AgentOutput::Accepted { job, .. } | AgentOutput::Ready { job } => *job,
            AgentOutput::Event(event) => event.job,
            AgentOutput::Ended(end) => end.job,
            _ => return Some(word),
        };
        if !self.jobs.contains(&Some((host, job))) {
            return Some(word);
        }
        self.early.push((host, word));
        None
    }
}

impl RunningGroup<'_, '_> {
    /// Adopts what was prepared for this group.
    pub(super) fn adopt(&mut self) {
        let Some(prepared) = self.prepared.take() else { return };
        for (flow, job) in self.flows.iter_mut().zip(prepared.jobs) {
            if let Some((_, job)) = job {
                flow.prepare(job);
            }
        }
        for (at, word) in prepared.early {
            self.handle(at, word);
        }
    }

    /// Prepares the next group after the last byte of this one has arrived. Before that, its messages would
    /// share the queues of the path with this group's data.
    pub(super) fn prepare_next(&mut self) {
        let next = self.next.filter(|next| {
            self.prepared.is_none()
                && !self.is_stopping()
                && self.has_moved()
                && next.flows.iter().all(|job| self.can_wait(job))
        });
        let Some(next) = next else { return };
        let (mut jobs, mut asked) = (Vec::new(), Vec::new());
        for plan in &next.flows {
            let job = self.new_job(plan);
            jobs.push(Some((plan.from, job.job)));
            asked.push((plan.from, job));
        }
        *self.prepared = Some(Ahead { flows: next.flows.clone(), jobs, early: Vec::new() });
        for (from, job) in asked {
            self.ask(from, AgentInput::Prepare(job));
        }
    }

    /// Whether no data of this group is on the network any more.
    fn has_moved(&self) -> bool {
        let moved = |at: usize| {
            let phases = self.job(at).spec.phases().len();
            let flows = &self.logs[at].record().flows;
            let all_reported = flows.iter().all(|flow| flow.sender.is_some() && flow.receiver.is_some());
            self.flows[at].is_over() || (phases == 1 && !flows.is_empty() && all_reported)
        };
        (0..self.flows.len()).all(moved)
    }

    /// Whether a run can be prepared now and then wait: it measures nothing before its start, and the places at
    /// its hosts are held.
    fn can_wait(&self, job: &FlowJob) -> bool {
        let held = |at: usize| self.hosts.get(at).is_some_and(|host| host.ticket().is_some());
        let quiet = !job.spec.probes_latency() && job.after.is_none() && job.start_after <= PREPARE_LEAD;
        quiet && held(job.from) && job.to.host().is_some_and(held)
    }
}
