//! Structure of a case. A new rule is one entry of a table in `cases/`.

use std::time::Duration;

use linerate_model::Rule;

/// A cause, the network in which it is planted, and the same network without it.
pub(super) struct PlantedCase {
    /// The rule of the decision table for the cause, such as `V04`; a rule may have several cases.
    pub(super) rule: Rule,
    /// Short description of the cause.
    pub(super) name: &'static str,
    /// A bundled topology.
    pub(super) topology: &'static str,
    /// The host of the server; the client is on host `a`, and uploads.
    pub(super) to: &'static str,
    /// `--set` of the network, with and without the cause.
    pub(super) set: &'static [&'static str],
    /// Options of `linerate test`, with and without the cause.
    pub(super) args: &'static [&'static str],
    /// With the cause.
    pub(super) planted: Plant,
    /// Without it.
    pub(super) control: Plant,
    /// Whether it depends on chance (loss, jitter, marks, ports, the machine's load) and needs several seeds.
    pub(super) random: bool,
    /// Whether it keeps a small machine busy, so that nothing else can be measured in parallel.
    pub(super) alone: bool,
    /// Where to look for the name.
    pub(super) look: FindingPlace,
}

/// One of the two halves of a case.
pub(super) struct Plant {
    /// Additional `--set`.
    pub(super) set: &'static [&'static str],
    /// Additional options of `linerate test`.
    pub(super) args: &'static [&'static str],
    /// Additional actions.
    pub(super) actions: &'static [PlantedAction],
    /// Correct rules. `V99` (unknown) is never wrong, and correct only if listed.
    pub(super) right: &'static [Rule],
}

/// Where a result contains the name to evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingPlace {
    /// The verdict itself, skipping findings about a disturbed measurement before it.
    Verdict,
    /// Also the findings after the verdict, for rules that only add to it.
    Also,
}

/// An action that plants a cause.
pub(super) enum PlantedAction {
    /// Runs a program on a host before the test.
    Before(&'static str, &'static [&'static str]),
    /// `lab set` of a link at this time after the client's start.
    Set { after: Duration, link: &'static str, changes: &'static [&'static str] },
    /// Stops the client at this time after its start, for `length`.
    Pause { after: Duration, length: Duration },
    /// Another upload between two hosts during the whole test.
    Concurrent { from: &'static str, to: &'static str, args: &'static [&'static str] },
    /// Starts the server through another program.
    Serve(&'static [&'static str]),
    /// Busy loops on this CPU during the whole test, with a higher than normal priority.
    Spin { cpu: u32, loops: usize },
}

/// No additions.
pub(super) const PLAIN: Plant = Plant { set: &[], args: &[], actions: &[], right: &[] };

/// One upload of three seconds on `pair`, with the congestion control whose thresholds are best known.
pub(super) const PAIR: PlantedCase = PlantedCase {
    rule: Rule::Unexplained,
    name: "",
    topology: "pair",
    to: "b",
    set: &[],
    args: &["-t", "3", "-C", "cubic"],
    planted: PLAIN,
    control: PLAIN,
    random: false,
    alone: false,
    look: FindingPlace::Verdict,
};

impl Plant {
    /// Sets the correct rules.
    pub(super) const fn right(mut self, rules: &'static [Rule]) -> Self {
        self.right = rules;
        self
    }

    /// Sets settings of the network.
    pub(super) const fn set(mut self, set: &'static [&'static str]) -> Self {
        self.set = set;
        self
    }

    /// Sets options of the test.
    pub(super) const fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    /// Sets actions.
    pub(super) const fn actions(mut self, actions: &'static [PlantedAction]) -> Self {
        self.actions = actions;
        self
    }
}
