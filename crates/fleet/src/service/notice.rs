//! What users of the service should know.

use std::fmt;

use linerate_broker::NotSent;
use linerate_model::ForeignText;
use linerate_model::calendar::{Alarm, CalendarRun};
use linerate_runner::ArchiveWarning;

use crate::coordinator::{AgentNotice, ClockCheck, RunEnd};
use crate::notify::NotifyError;
use crate::tryout::TryOutWarning;

/// Something that a user of the service should know.
#[derive(Debug)]
#[non_exhaustive]
pub enum FleetNotice {
    /// This coordinator leads, with this epoch.
    Leads(u64),
    /// Another coordinator leads; this one waits.
    Follows,
    /// The calendar has the description of the fleet of this coordinator now, instead of another one.
    Described,
    /// A run has started.
    Started(Box<CalendarRun>),
    /// A run has ended.
    Ended(Box<CalendarRun>, RunEnd),
    /// An alarm was raised or cleared.
    Alarm(Alarm),
    /// The calendar cannot be used at present; it is tried again.
    CalendarAway(String),
    /// The calendar can be used again.
    CalendarBack,
    /// The clock of this host has become wrong or right.
    Clock(ClockCheck),
    /// Somebody could not be told about an alarm.
    NotifyFailed(NotifyError),
    /// The archive does not have everything of a run.
    Archive(ArchiveWarning),
    /// Something about an agent.
    Agent(AgentNotice),
    /// An agent is not answered, because it is unknown or its messages are not signed with its key.
    AgentUnknown(ForeignText),
    /// The calendar of an agent is too large for the broker.
    TooLarge {
        /// The agent.
        agent: String,
        /// Why.
        why: NotSent,
    },
    /// This number of agents are enrolled, and there is no broker.
    AgentsWithoutBroker(usize),
    /// The broker is connected.
    BrokerConnected(ForeignText),
    /// The broker is not connected, or refuses the coordinator.
    BrokerAway(ForeignText),
    /// Something is wrong with a fleet for trying out.
    TryOut(TryOutWarning),
}

impl FleetNotice {
    /// Whether somebody should look at it.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Alarm(_) | Self::CalendarAway(_) | Self::NotifyFailed(_) | Self::Archive(_) => true,
            Self::Clock(check) => check.off > check.most,
            Self::Agent(notice) => !matches!(notice, AgentNotice::Up { .. }),
            Self::BrokerAway(_)
            | Self::AgentUnknown(_)
            | Self::TooLarge { .. }
            | Self::AgentsWithoutBroker(_)
            | Self::TryOut(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for FleetNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leads(epoch) => write!(f, "this coordinator leads (epoch {epoch})"),
            Self::Follows => f.write_str("another coordinator leads; this one waits"),
            Self::Described => f.write_str("the calendar has the fleet of this file now; it had another one"),
            Self::Started(run) => {
                write!(f, "{} started: {} to {} ({})", run.id, run.from, run.to, run.schedule)
            }
            Self::Ended(run, end) => {
                write!(f, "{} {}: {} to {} ({})", run.id, end.state.name(), run.from, run.to, run.schedule)?;
                if let Some(rate) = end.result.as_ref().and_then(|result| result.goodput) {
                    write!(f, ", {rate}")?;
                }
                if end.reason.is_empty() { Ok(()) } else { write!(f, ": {}", end.reason) }
            }
            Self::Alarm(alarm) => {
                let what = if alarm.cleared.is_some() { "alarm cleared" } else { "alarm" };
                write!(f, "{what}: {} to {}: {}", alarm.from, alarm.to, alarm.text)
            }
            Self::CalendarAway(why) => {
                write!(f, "the calendar cannot be used, nothing is started until then: {why}")
            }
            Self::CalendarBack => f.write_str("the calendar can be used again"),
            Self::Clock(ClockCheck { off, most }) if off <= most => {
                f.write_str("the clock of this host is right again")
            }
            Self::Clock(ClockCheck { off, most }) => write!(
                f,
                "the clock of this host is {off} off that of the database, more than {most}: this coordinator does not \
                 lead; synchronise both (NTP)"
            ),
            Self::NotifyFailed(error) => write!(f, "{error}"),
            Self::Agent(notice) => write!(f, "{notice}"),
            Self::AgentUnknown(agent) => write!(
                f,
                "an agent {agent} is not answered: it is not enrolled in this calendar, or its messages are not signed \
                 with the key that was enrolled; `linerate agent list` shows those that are"
            ),
            Self::TooLarge { agent, why } => write!(
                f,
                "the calendar of {agent} does not reach its agent: {why}; raise max_payload of nats-server, or make \
                 `ahead` in the file of the fleet shorter"
            ),
            Self::AgentsWithoutBroker(count) => write!(
                f,
                "{count} enrolled agents are not reached, and their hosts are not measured from, because this \
                 coordinator has no --broker; give it, or revoke them"
            ),
            Self::BrokerConnected(server) => write!(f, "connected to the broker {server}"),
            Self::BrokerAway(why) => {
                write!(f, "agents are not reached ({why}); they carry out the calendars that they have")
            }
            Self::Archive(warning) => write!(f, "{warning}"),
            Self::TryOut(warning) => write!(f, "{warning}"),
        }
    }
}
