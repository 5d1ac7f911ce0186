//! What a case consists of. A new rule is one entry of a table in `cases/`.

use std::time::Duration;

/// A cause, the network in which it is planted, and the same network without it.
pub(super) struct Case {
    /// The row of the decision table that names the cause, as `V04`; the same row may have several cases.
    pub(super) rule: &'static str,
    /// What is planted, in a few words.
    pub(super) name: &'static str,
    /// A bundled topology.
    pub(super) topology: &'static str,
    /// The host that serves; the client is on host `a`, and uploads.
    pub(super) to: &'static str,
    /// `--set` of the network, with and without the cause.
    pub(super) set: &'static [&'static str],
    /// Options of `linerate test`, with and without the cause.
    pub(super) args: &'static [&'static str],
    /// With the cause.
    pub(super) planted: Plant,
    /// Without it.
    pub(super) control: Plant,
    /// Whether chance decides something (loss, jitter, marks, ports, the machine's own load): then there are several seeds.
    pub(super) random: bool,
    /// Whether it keeps a small machine busy, so that nothing else may be measured beside it.
    pub(super) alone: bool,
    /// Where the name is looked for.
    pub(super) look: Look,
}

/// One of the two halves of a case.
pub(super) struct Plant {
    /// Further `--set`.
    pub(super) set: &'static [&'static str],
    /// Further options of `linerate test`.
    pub(super) args: &'static [&'static str],
    /// What else is done.
    pub(super) deeds: &'static [Deed],
    /// Rules that are right here. `V99` (unknown) is never wrong, and right only where it is listed.
    pub(super) right: &'static [&'static str],
}

/// Where a verdict has the name that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The verdict itself; what is said of a disturbed measurement stands before it and is passed over.
    Verdict,
    /// Also beside the verdict, for rules that only add to one.
    Beside,
}

/// Something that is done on purpose.
pub(super) enum Deed {
    /// A program on a host, to its end, before the test.
    Before(&'static str, &'static [&'static str]),
    /// `lab set` of a link, so long after the client was started.
    Set { after: Duration, link: &'static str, changes: &'static [&'static str] },
    /// The client is stopped so long after its start, and goes on later.
    Pause { after: Duration, length: Duration },
    /// Another upload between two hosts, during all of the test.
    Beside { from: &'static str, to: &'static str, args: &'static [&'static str] },
    /// The server is started by means of another program.
    Serve(&'static [&'static str]),
    /// So many loops that only use this processor, during all of the test, and go before everybody of usual priority.
    Spin { cpu: u32, loops: usize },
}

/// Nothing is added.
pub(super) const PLAIN: Plant = Plant { set: &[], args: &[], deeds: &[], right: &[] };

/// One upload for three seconds with the congestion control for which thresholds are known best, on `pair`.
pub(super) const PAIR: Case = Case {
    rule: "",
    name: "",
    topology: "pair",
    to: "b",
    set: &[],
    args: &["-t", "3", "-C", "cubic"],
    planted: PLAIN,
    control: PLAIN,
    random: false,
    alone: false,
    look: Look::Verdict,
};

impl Plant {
    /// Right when one of these rules is named.
    pub(super) const fn right(mut self, rules: &'static [&'static str]) -> Self {
        self.right = rules;
        self
    }

    /// With these settings of the network.
    pub(super) const fn set(mut self, set: &'static [&'static str]) -> Self {
        self.set = set;
        self
    }

    /// With these options of the test.
    pub(super) const fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    /// With these deeds.
    pub(super) const fn actions(mut self, deeds: &'static [Deed]) -> Self {
        self.deeds = deeds;
        self
    }
}
