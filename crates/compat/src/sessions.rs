//! The clients of a server that serves several at once: a number for each, and what concerns whom.

use std::collections::{BTreeMap, VecDeque};

use linerate_units::Timestamp;

use crate::stand_in::{Input, Output};

/// One client of a server.
pub(crate) trait ToolSession {
    /// Handles an input that may concern this session; true if it concerns no other.
    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool;

    /// The next action.
    fn output(&mut self) -> Option<Output>;

    /// When it needs an [`Input::Tick`] if nothing else happens.
    fn deadline(&self) -> Option<Timestamp>;

    /// Whether the client has left and nothing of it remains.
    fn is_over(&self) -> bool;
}

/// The clients of a server, by a number from which their links, flows and runs follow.
#[derive(Debug)]
pub(crate) struct Sessions<S> {
    table: BTreeMap<u16, S>,
}

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self { table: BTreeMap::new() }
    }
}

impl<S: ToolSession> Sessions<S> {
    /// The lowest free number below `most`.
    pub(crate) fn free_number(&self, most: u16) -> Option<u16> {
        (0..most).find(|number| !self.table.contains_key(number))
    }

    /// Whether there is a client with this number.
    pub(crate) fn has(&self, number: u16) -> bool {
        self.table.contains_key(&number)
    }

    /// The client with this number.
    pub(crate) fn get_mut(&mut self, number: u16) -> Option<&mut S> {
        self.table.get_mut(&number)
    }

    /// The first client of this kind.
    pub(crate) fn find(&mut self, mut is: impl FnMut(&S) -> bool) -> Option<&mut S> {
        self.table.values_mut().find(|session| is(session))
    }

    /// Adds a client under a free number.
    pub(crate) fn insert(&mut self, number: u16, session: S) {
        self.table.insert(number, session);
    }

    /// Passes an input to the session that it concerns. Time and counts concern all of them: the counts that one
    /// has requested also serve the others.
    pub(crate) fn input(&mut self, now: Timestamp, input: &Input<'_>) {
        let for_all = matches!(input, Input::Tick | Input::Counts { .. });
        for session in self.table.values_mut() {
            if session.input(now, input) && !for_all {
                break;
            }
        }
    }

    /// Calls a function with every session.
    pub(crate) fn for_each(&mut self, call: impl FnMut(&mut S)) {
        self.table.values_mut().for_each(call);
    }

    /// Moves the outputs of all sessions to those of the server, and returns the sessions that are over.
    pub(crate) fn collect(&mut self, out: &mut VecDeque<Output>) -> Vec<S> {
        for session in self.table.values_mut() {
            out.extend(std::iter::from_fn(|| session.output()));
        }
        let over = self.table.iter().filter(|(_, session)| session.is_over()).map(|(number, _)| *number);
        let over: Vec<u16> = over.collect();
        over.iter().filter_map(|number| self.table.remove(number)).collect()
    }

    /// When the first of them needs a tick.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.table.values().filter_map(ToolSession::deadline).min()
    }
}
