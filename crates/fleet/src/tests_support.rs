//! What tests of several modules need.

use linerate_model::TestSpec;
use linerate_model::calendar::{AlarmLimits, Recurrence, Schedule, UnixTime};
use linerate_plan::Source;
use linerate_units::Span;

use crate::fleet_file;
use crate::inventory::Inventory;

pub(crate) fn source(text: &str) -> Source {
    Source { name: "campus.toml".to_owned(), text: text.to_owned() }
}

/// The fleet that a text describes.
pub(crate) fn inventory(text: &str) -> Inventory {
    fleet_file::read(&source(text), &|_| Ok(Vec::new())).unwrap_or_else(|error| panic!("{error}"))
}

/// An hourly schedule.
pub(crate) fn schedule(name: &str, from: &str, to: &str) -> Schedule {
    Schedule {
        name: name.into(),
        mesh: None,
        from: from.into(),
        to: to.into(),
        spec: TestSpec::default(),
        recurrence: Recurrence::Every {
            period: Span::from_secs(3600),
            jitter: Span::ZERO,
            anchor: UnixTime::from_ms(0),
        },
        zone: "UTC".into(),
        slip: Span::from_secs(3600),
        quiet: Vec::new(),
        priority: 0,
        shared: false,
        until: None,
        alarm: AlarmLimits::default(),
    }
}
