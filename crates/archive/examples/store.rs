//! Stores a log of events in an archive: `store LOG ARCHIVE`. `cargo xtask bench --only report` calls it, with a log that
//! is longer than what `linerate import` takes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails has no result")]

use std::fs::File;
use std::io::{BufRead, BufReader};

use linerate_archive::{EventStore, open};
use linerate_model::Event;

/// Events of one transaction.
const EVENTS_AT_ONCE: usize = 10_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [log, archive] = &words[..] else { panic!("usage: store LOG ARCHIVE") };
    let mut archive = open(archive).unwrap();
    let mut lines = BufReader::new(File::open(log).unwrap()).lines();
    loop {
        let part = lines.by_ref().take(EVENTS_AT_ONCE);
        let events: Vec<Event> = part.map(|line| Event::read(&line.unwrap()).unwrap()).collect();
        if events.is_empty() {
            return;
        }
        archive.append(&events).unwrap();
    }
}
