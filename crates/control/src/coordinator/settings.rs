//! Settings of the hosts of a test bed: checked before the first packet, applied for a point, then restored.
//!
//! While settings are in force on any host, the coordinator holds its place at every host, so nobody else is
//! measured under them. All coordinators request all places in the same order, so no two of them wait for each
//! other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::ForeignText;
use linerate_proto::agent::{
    AgentInput, AgentOutput, SettingInForce, SettingsAnswer, SettingsOrder, SettingsRequest,
};
use linerate_sock::clock;
use linerate_units::Span;

use super::Coordinator;
use super::check::name;
use super::group::POLL_INTERVAL;
use super::host::{CoordinatorHost, CoordinatorHostEvent, listen};
use super::test_bed::{HostError, TestBed};
use crate::CANCELLED;

/// The key for the interface to which the other settings of a host apply.
const INTERFACE: &str = "interface";

/// Expected duration shown to waiting clients: about one point, because the number of further points is
/// unknown.
const EXPECTED: Span = Span::from_secs(60);

/// The settings in force on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSettings {
    /// Index of the host in the test bed.
    pub host: usize,
    /// Its settings as reported by its agent: original and current values.
    pub in_force: Vec<SettingInForce>,
}

/// Requested settings of one host: index, and names and values as in plans. `interface` selects the interface.
type RequestedSettings = (usize, BTreeMap<String, String>);

impl Coordinator {
    /// Checks requested settings on all hosts at once without changing anything; returns all errors. Each host
    /// is given by its index in the test bed, with names and values as in plans. `interface` names the
    /// interface to which they apply; by default it is the one on the route to the other hosts.
    #[must_use]
    pub fn check_settings(&mut self, wanted: &[RequestedSettings], stop: &AtomicBool) -> Vec<HostError> {
        let mut troubles = self.reach_all(stop);
        troubles.extend(self.cannot(wanted));
        if !troubles.is_empty() {
            return troubles;
        }
        let ask = |(at, values): &RequestedSettings| {
            (*at, SettingsRequest::Check(Box::new(self.order(*at, values))))
        };
        let requests: Vec<_> = wanted.iter().filter(|(_, values)| !values.is_empty()).map(ask).collect();
        self.ask_hosts(requests).1
    }

    /// Applies exactly these settings: earlier settings that are not among them are restored. First waits for a
    /// place at every host of the test bed, and keeps it until [`Coordinator::restore_settings`].
    ///
    /// # Errors
    /// All errors of all hosts. No setting is in force then.
    pub fn apply_settings(
        &mut self,
        wanted: &[RequestedSettings],
        stop: &AtomicBool,
    ) -> Result<Vec<HostSettings>, Vec<HostError>> {
        let (in_force, mut troubles) = self.apply_where_possible(wanted, stop)?;
        if troubles.is_empty() {
            return Ok(in_force);
        }
        troubles.extend(self.restore_settings());
        Err(troubles)
    }

    /// Like [`Coordinator::apply_settings`], but a host that is lost or refuses is only reported, next to the
    /// settings of the others. Runs that need it fail with that reason until settings are applied or restored
    /// again.
    ///
    /// # Errors
    /// The settings do not fit this test bed, or the stop flag was set. No setting is in force then.
    pub fn apply_where_possible(
        &mut self,
        wanted: &[RequestedSettings],
        stop: &AtomicBool,
    ) -> Result<(Vec<HostSettings>, Vec<HostError>), Vec<HostError>> {
        self.abandon();
        self.unfit.clear();
        if wanted.iter().all(|(_, values)| values.is_empty()) {
            return Ok((Vec::new(), self.restore_settings()));
        }
        let mut troubles = self.reach_all(stop);
        let mut senseless = self.cannot(wanted);
        if stop.load(Ordering::Relaxed) {
            senseless.push(HostError { host: String::new(), what: CANCELLED.to_owned() });
        }
        if !senseless.is_empty() {
            troubles.extend(senseless);
            troubles.extend(self.restore_settings());
            return Err(troubles);
        }
        self.unfit.extend(self.index(&troubles));
        let lacks = |host: &CoordinatorHost| host.connected() && host.ticket().is_none();
        if !self.settings_hold || self.hosts.iter().any(lacks) {
            let lost = std::mem::take(&mut self.unfit);
            troubles.extend(self.restore_settings());
            self.unfit = lost;
            let refused = self.reserve_everywhere(stop);
            if stop.load(Ordering::Relaxed) {
                troubles.extend(refused);
                troubles.extend(self.restore_settings());
                return Err(troubles);
            }
            self.unfit.extend(self.index(&refused));
            troubles.extend(refused);
            self.settings_hold = true;
        }
        let fit = (0..self.hosts.len()).filter(|at| !self.unfit.contains_key(at));
        let requests: Vec<_> = fit.filter_map(|at| Some((at, self.change(at, wanted)?))).collect();
        let (mut answers, refused) = self.ask_hosts(requests);
        self.unfit.extend(self.index(&refused));
        troubles.extend(refused);
        answers.sort_by_key(|(host, _)| *host);
        let settings =
            answers.into_iter().map(|(host, answer)| HostSettings { host, in_force: answer.in_force });
        Ok((settings.filter(|host| !host.in_force.is_empty()).collect(), troubles))
    }

    /// Errors by the index of their host.
    fn index(&self, troubles: &[HostError]) -> BTreeMap<usize, String> {
        let place =
            |trouble: &HostError| self.test_bed.hosts.iter().position(|host| host.name == trouble.host);
        troubles.iter().filter_map(|trouble| Some((place(trouble)?, trouble.what.clone()))).collect()
    }

    /// Restores the settings on all hosts and releases the places. Returns what was not restored, and why. A
    /// host whose connection is lost restores its settings itself.
    pub fn restore_settings(&mut self) -> Vec<HostError> {
        self.abandon();
        self.unfit.clear();
        self.settings_hold = false;
        let in_force =
            (0..self.hosts.len()).filter(|at| self.hosts[*at].in_force && self.hosts[*at].connected());
        let requests: Vec<_> = in_force.map(|at| (at, SettingsRequest::Restore)).collect();
        let (_, troubles) = self.ask_hosts(requests);
        // A host that cannot be reached restores everything when its connection ends.
        self.hosts.iter_mut().for_each(|host| host.in_force = false);
        self.release_places();
        troubles
    }

    /// Waits between two groups. Agents keep settings in force only while the connection is in use.
    pub fn wait(&mut self, span: Span, stop: &AtomicBool) {
        let until = clock::now() + span.as_duration();
        while !until.has_passed() && !stop.load(Ordering::Relaxed) {
            let look = clock::now() + POLL_INTERVAL.as_duration();
            // A lost host is noticed when it is needed.
            let _ = listen(&mut self.hosts, look.min(until));
        }
    }

    /// Marks hosts whose connection was lost, and with it their settings or their place.
    pub(super) fn note_lost_settings(&mut self) {
        if !self.settings_hold {
            return;
        }
        let what = "its connection was lost, so its settings were restored";
        let gone = self.hosts.iter().enumerate().filter(|(_, host)| host.ticket().is_none());
        for (at, _) in gone {
            self.unfit.entry(at).or_insert_with(|| what.to_owned());
        }
    }

    fn reach_all(&mut self, stop: &AtomicBool) -> Vec<HostError> {
        let gone: Vec<usize> = (0..self.hosts.len()).filter(|at| !self.is_there(*at)).collect();
        self.reach(&gone, stop)
    }

    /// The errors that can be found without asking any host.
    fn cannot(&self, wanted: &[RequestedSettings]) -> Vec<HostError> {
        let mut troubles = Vec::new();
        for (at, values) in wanted.iter().filter(|(_, values)| !values.is_empty()) {
            let Some(host) = self.hosts.get(*at) else {
                let what = format!("host number {at} is not in the test bed of {}", self.hosts.len());
                troubles.push(HostError { host: String::new(), what });
                continue;
            };
            let can = host.about().map(|about| about.settings.as_slice()).unwrap_or_default();
            let unknown =
                values.keys().filter(|name| *name != INTERFACE && !can.iter().any(|known| *known == **name));
            let unknown: Vec<&str> = unknown.map(String::as_str).collect();
            if !unknown.is_empty() {
                let remedy = "start an agent of this version there, without --no-settings";
                let what = format!("its agent cannot set {}; {remedy}", unknown.join(", "));
                troubles.push(HostError { host: name(&self.test_bed, *at), what });
            }
        }
        troubles
    }

    /// The request that brings a host to the wanted settings; absent if it has none and needs none. Each request extends
    /// the place that is held there, so a host that limits it gets one in any case: it keeps its place as long as the
    /// settings of the others are changed from point to point.
    fn change(&self, at: usize, wanted: &[RequestedSettings]) -> Option<SettingsRequest> {
        let values = wanted.iter().find(|(host, values)| *host == at && !values.is_empty());
        match values {
            Some((_, values)) => Some(SettingsRequest::Apply(Box::new(self.order(at, values)))),
            None => {
                let host = &self.hosts[at];
                let is_limited = host.about().is_some_and(|about| about.longest_ns.is_some());
                let extends = is_limited && host.ticket().is_some();
                (host.in_force || extends).then_some(SettingsRequest::Restore)
            }
        }
    }

    fn order(&self, at: usize, values: &BTreeMap<String, String>) -> SettingsOrder {
        let mut values: BTreeMap<ForeignText, ForeignText> =
            values.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
        let interface = values.remove(INTERFACE);
        let others = self.test_bed.hosts.iter().enumerate().filter(|(other, _)| *other != at);
        let towards = others
            .map(|(_, host)| host.test_address.clone().unwrap_or_else(|| host.address.clone()).into())
            .collect();
        SettingsOrder { interface, towards, values }
    }

    /// Reserves a place at every host, one after another in the order that all coordinators use.
    fn reserve_everywhere(&mut self, stop: &AtomicBool) -> Vec<HostError> {
        let mut order: Vec<usize> = (0..self.hosts.len()).filter(|at| self.hosts[*at].connected()).collect();
        order.sort_by_key(|at| self.hosts[*at].about().map(|about| about.identity.clone()));
        let mut troubles = Vec::new();
        for at in order {
            let asked = self.hosts[at].ask(AgentInput::Hold { expected: EXPECTED });
            let mut refused = asked.err().map(|error| error.to_string());
            while refused.is_none() && self.hosts[at].ticket().is_none() {
                for (from, event) in self.receive() {
                    match event {
                        CoordinatorHostEvent::Message(AgentOutput::Held(ticket)) => {
                            self.hosts[from].keep_ticket(Some(ticket))
                        }
                        CoordinatorHostEvent::Message(AgentOutput::NotHeld(why)) if from == at => {
                            refused = Some(format!("it refuses a place in its queue: {why}"));
                        }
                        CoordinatorHostEvent::Gone(why) if from == at => refused = Some(why),
                        _ => {}
                    }
                }
                if stop.load(Ordering::Relaxed) {
                    refused = Some("stopped while waiting for a place in its queue".to_owned());
                }
            }
            troubles.extend(refused.map(|what| HostError { host: name(&self.test_bed, at), what }));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        troubles
    }

    /// Sends requests to several hosts at once and waits for all answers; returns the answers and the errors.
    fn ask_hosts(
        &mut self,
        requests: Vec<(usize, SettingsRequest)>,
    ) -> (Vec<(usize, SettingsAnswer)>, Vec<HostError>) {
        let (mut answers, mut troubles) = (Vec::new(), Vec::new());
        let mut awaited: Vec<usize> = Vec::new();
        let trouble =
            |test_bed: &TestBed, at: usize, what: String| HostError { host: name(test_bed, at), what };
        for (at, request) in requests {
            // Until the host answers, its settings may already be changed.
            self.hosts[at].in_force |= matches!(request, SettingsRequest::Apply(_));
            self.hosts[at].held_since = clock::now();
            match self.hosts[at].ask(AgentInput::Settings(request)) {
                Ok(()) => awaited.push(at),
                Err(error) => troubles.push(trouble(&self.test_bed, at, error.to_string())),
            }
        }
        while !awaited.is_empty() {
            // The stop flag takes effect after all hosts have answered, so that everything can be restored in
            // the normal way.
            for (at, event) in self.receive() {
                let asked = awaited.contains(&at);
                match event {
                    CoordinatorHostEvent::Message(AgentOutput::SettingsDone(answer)) if asked => {
                        awaited.retain(|other| *other != at);
                        self.hosts[at].in_force = !answer.in_force.is_empty();
                        let messages = answer.troubles.iter().cloned();
                        troubles.extend(messages.map(|what| trouble(&self.test_bed, at, what.into())));
                        answers.push((at, *answer));
                    }
                    CoordinatorHostEvent::Gone(why) if asked => {
                        awaited.retain(|other| *other != at);
                        troubles.push(trouble(&self.test_bed, at, why));
                    }
                    _ => {}
                }
            }
        }
        (answers, troubles)
    }

    /// Polls all hosts once, so that no message of another host is missed while waiting for one.
    fn receive(&mut self) -> Vec<(usize, CoordinatorHostEvent)> {
        listen(&mut self.hosts, clock::now() + POLL_INTERVAL.as_duration())
    }
}

impl CoordinatorHost {
    /// The place that is held while settings are in force; absent if the connection was lost.
    pub(super) fn ticket(&self) -> Option<linerate_proto::Ticket> {
        self.kept.filter(|_| self.connected())
    }

    pub(super) fn keep_ticket(&mut self, ticket: Option<linerate_proto::Ticket>) {
        (self.kept, self.held_since) = (ticket, clock::now());
    }
}
