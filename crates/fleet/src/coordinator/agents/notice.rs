//! What users should know about agents.

use std::fmt;

use linerate_model::ForeignText;

/// Something that users should know about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentNotice {
    /// It is heard for the first time, or by another process than before.
    Up {
        /// Its name.
        agent: String,
        /// Its version of the program.
        program: ForeignText,
    },
    /// It is refused.
    Refused {
        /// Its name.
        agent: String,
        /// Why.
        why: String,
    },
    /// It takes no further runs.
    Full {
        /// Its name.
        agent: String,
        /// Why.
        why: ForeignText,
    },
    /// The database may have lost something that this number of agents have: nothing is booked until they have new calendars.
    Loss(u64),
}

impl fmt::Display for AgentNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { agent, program } => write!(f, "the agent of {agent} is there (linerate {program})"),
            Self::Refused { agent, why } => write!(f, "the agent of {agent} is refused: {why}"),
            Self::Full { agent, why } => write!(f, "the agent of {agent} takes no further runs: {why}"),
            Self::Loss(agents) => write!(
                f,
                "the database may have lost what it wrote last; nothing is booked until every agent has a new calendar \
                 ({agents} have not), or for 24 hours"
            ),
        }
    }
}
