//! The requests that measure round trips: before the load, and while there is load.

use linerate_units::Timestamp;
use rand::Rng;

use super::connection::Fetch;
use super::load::MAX_SMALL_BYTES;
use super::stage::MAX_FOREIGN;
use super::{ANSWER_TIMEOUT, IDLE_PROBES, ResponsivenessTest, TestPhase};
use crate::stand_in::Link;

impl ResponsivenessTest {
    /// Sends the probes that are due.
    pub(super) fn probe(&mut self, now: Timestamp) {
        let TestPhase::Loading(stage) = &mut self.phase else { return };
        let Some(url) = self.urls.as_ref().map(|urls| urls.small.clone()) else { return };
        if stage.next_loaded <= now {
            stage.next_loaded = Timestamp::from_ns(u64::MAX);
            let taking: Vec<Link> =
                stage.loads.iter().filter(|(_, load)| load.takes_probes()).map(|(link, _)| *link).collect();
            if !taking.is_empty() {
                let link = taking[self.rng.random_range(0..taking.len())];
                if let Some(load) = stage.loads.get_mut(&link) {
                    load.probe(now, &url.uri);
                }
                self.work(now, link);
            }
        }
        let TestPhase::Loading(stage) = &mut self.phase else { return };
        if stage.next_foreign <= now {
            stage.plan_probes(now);
            if stage.fetches.len() >= MAX_FOREIGN {
                return;
            }
            match Fetch::new(now, &url.uri, self.config.tls.as_ref(), MAX_SMALL_BYTES) {
                Ok(fetch) => {
                    let link = self.connect(url.port);
                    if let TestPhase::Loading(stage) = &mut self.phase {
                        stage.fetches.insert(link, fetch);
                    }
                }
                Err(trouble) => self.fail(now, trouble),
            }
        }
    }

    /// Gives up the probes over new connections that were not answered in time, so that further ones can be sent.
    pub(super) fn give_up_probes(&mut self, now: Timestamp) {
        let TestPhase::Loading(stage) = &self.phase else { return };
        let before = Timestamp::from_ns(now.as_ns().saturating_sub(ANSWER_TIMEOUT.as_ns()));
        for link in stage.overdue(before) {
            self.broken(now, link, "a request was not answered".to_owned());
        }
    }

    pub(super) fn probe_idle(&mut self, now: Timestamp) {
        if self.idle.len() + self.idle_failed.len() >= IDLE_PROBES {
            return match self.stages.pop_front() {
                Some(directions) => self.begin_stage(now, directions),
                None => self.finish(None, 0),
            };
        }
        let Some(url) = self.urls.as_ref().map(|urls| urls.small.clone()) else { return };
        match Fetch::new(now, &url.uri, self.config.tls.as_ref(), MAX_SMALL_BYTES) {
            Ok(fetch) => {
                let link = self.connect(url.port);
                self.phase = TestPhase::Idle(Some((link, Box::new(fetch))), now);
            }
            Err(trouble) => self.fail(now, trouble),
        }
    }
}
