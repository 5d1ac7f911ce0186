//! Connects like the Windows tool: a few at a time, with retries for ten seconds.

use std::collections::{BTreeMap, VecDeque};

use linerate_units::{Span, Timestamp};

use crate::stand_in::Link;

/// Most concurrent connects.
const MAX_CONCURRENT_CONNECTS: usize = 10;

/// Number of attempts per connection, and the time between them.
const MAX_ATTEMPTS: u32 = 100;
const RETRY_DELAY: Span = Span::from_ms(100);

/// The connections to open.
#[derive(Debug, Default)]
pub(super) struct Dialer {
    waiting: VecDeque<(Link, u16)>,
    under_way: BTreeMap<Link, u16>,
    failed: BTreeMap<Link, u32>,
    again_at: Option<Timestamp>,
}

impl Dialer {
    pub(super) fn add(&mut self, link: Link, port: u16) {
        self.waiting.push_back((link, port));
    }

    /// The connections to open now.
    pub(super) fn next(&mut self, now: Timestamp) -> Vec<(Link, u16)> {
        if self.again_at.is_some_and(|at| now < at) {
            return Vec::new();
        }
        self.again_at = None;
        let room = MAX_CONCURRENT_CONNECTS.saturating_sub(self.under_way.len()).min(self.waiting.len());
        let next: Vec<(Link, u16)> = self.waiting.drain(..room).collect();
        self.under_way.extend(next.iter().copied());
        next
    }

    pub(super) fn opened(&mut self, link: Link) {
        self.under_way.remove(&link);
    }

    /// Whether the connection will be retried.
    pub(super) fn not_opened(&mut self, now: Timestamp, link: Link) -> bool {
        let Some(port) = self.under_way.remove(&link) else {
            return true;
        };
        let failed = self.failed.entry(link).or_insert(0);
        *failed += 1;
        if *failed >= MAX_ATTEMPTS {
            return false;
        }
        self.waiting.push_back((link, port));
        self.again_at = Some(self.again_at.unwrap_or(now + RETRY_DELAY));
        true
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.again_at
    }
}
