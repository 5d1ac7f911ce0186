//! The connections that carry load: one more in each direction after every interval.

use linerate_model::Direction;
use linerate_units::Timestamp;

use super::load::LoadConnection;
use super::stage::{LoadStage, index};
use super::urls::{TestUrl, TestUrls};
use super::{READ_INTERVAL, ResponsivenessTest, TestPhase};
use crate::stand_in::{Link, Output};

impl ResponsivenessTest {
    pub(super) fn begin_stage(&mut self, now: Timestamp, directions: Vec<Direction>) {
        let stage = LoadStage::new(now, directions.clone(), self.config.interval);
        self.phase = TestPhase::Loading(Box::new(stage));
        self.next_look = now + READ_INTERVAL;
        for direction in directions {
            self.totals[index(direction)].resume(now);
            self.add_load(now, direction, 0);
        }
    }

    /// Opens another connection that carries load.
    pub(super) fn add_load(&mut self, now: Timestamp, direction: Direction, short: u32) {
        let Some(url) = self.urls.as_ref().map(|urls| body_url(urls, direction)) else { return };
        match LoadConnection::new(now, direction, &url.uri, self.config.tls.as_ref(), short) {
            Ok(load) => {
                let link = self.connect(url.port);
                if let TestPhase::Loading(stage) = &mut self.phase {
                    stage.add(link, load);
                }
            }
            Err(trouble) => self.fail(now, trouble),
        }
    }

    /// Replaces a connection over which the server takes no further body.
    pub(super) fn replace(&mut self, now: Timestamp, link: Link) {
        let TestPhase::Loading(stage) = &mut self.phase else { return };
        let Some(load) = stage.replace(now, link) else { return };
        self.totals[index(load.direction)].add(load.reading());
        self.looking.remove(&link);
        self.out.push_back(Output::Close { link });
        self.add_load(now, load.direction, load.short);
    }
}

fn body_url(urls: &TestUrls, direction: Direction) -> TestUrl {
    match direction {
        Direction::Download => urls.large.clone(),
        Direction::Upload => urls.upload.clone(),
    }
}
