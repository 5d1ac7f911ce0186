//! Errors of a fleet: which schedule, host or file, and the remedy.

use linerate_archive::CalendarError;
use linerate_model::SpecError;

use crate::recurrence::RecurrenceError;

/// Why something about a fleet cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The calendar cannot be read or written.
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    /// The calendar knows no hosts.
    #[error(
        "the archive {0} has no fleet; name the one of your fleet with --archive, or describe the fleet in a file and \
         start `linerate fleet run FILE`"
    )]
    NoFleet(String),
    /// There is no host with this name.
    #[error("the fleet has no host '{name}'{hint}; `linerate fleet status` lists them")]
    NoHost {
        /// The name.
        name: String,
        /// The most similar name, if there is one.
        hint: String,
    },
    /// There is no mesh with this name.
    #[error("the fleet has no mesh '{name}'{hint}; meshes are in the file of the fleet")]
    NoMesh {
        /// The name.
        name: String,
        /// The most similar name, if there is one.
        hint: String,
    },
    /// There is no schedule with this name.
    #[error("there is no schedule '{name}'{hint}; `linerate schedule list` shows them")]
    NoSchedule {
        /// The name.
        name: String,
        /// The most similar name, if there is one.
        hint: String,
    },
    /// There is a schedule with this name.
    #[error(
        "there is a schedule '{0}' already; give another name, or remove it first (`linerate schedule remove {0}`)"
    )]
    Exists(String),
    /// The schedule belongs to a mesh.
    #[error(
        "'{schedule}' belongs to the mesh '{mesh}'; change the mesh in the file of the fleet, or pause it"
    )]
    OfMesh {
        /// The schedule.
        schedule: String,
        /// Its mesh.
        mesh: String,
    },
    /// The name cannot be one.
    #[error(transparent)]
    Name(#[from] linerate_config::NameError),
    /// A host cannot measure to itself.
    #[error("--from and --to are both '{0}'; a host cannot measure to itself")]
    SameHost(String),
    /// A schedule has no times, or several kinds of them.
    #[error("give one of --cron, --every and --at")]
    Times,
    /// An option needs another one.
    #[error("--jitter is for --every; give a period, or use H in the crontab expression")]
    JitterWithoutPeriod,
    /// The time cannot be read.
    #[error("{option}: '{text}' is no time; write it like \"2026-12-24 03:00\" or 2026-12-24T03:00:00Z")]
    Time {
        /// The option.
        option: &'static str,
        /// What was typed.
        text: String,
    },
    /// A schedule can never be due.
    #[error("the schedule '{name}' cannot be added: {why}")]
    Recurrence {
        /// Its name.
        name: String,
        /// Why.
        why: RecurrenceError,
    },
    /// A setting of the test is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Nobody knows how long the test takes.
    #[error(
        "how long this test takes depends on the network, so no time can be reserved for it; give --time instead of an \
         amount"
    )]
    NoLength,
    /// The test takes longer than its period.
    #[error(
        "with set-up and settling the test takes {length}, longer than its period of {period}; measure less often"
    )]
    TooLong {
        /// How long its reservations are.
        length: linerate_units::Span,
        /// Its period.
        period: linerate_units::Span,
    },
    /// There is no run with this name.
    #[error("the calendar has no run '{0}'; `linerate schedule list` shows the coming ones")]
    NoRun(String),
    /// Several runs have this beginning.
    #[error("several runs begin with '{0}'; give more of the name")]
    Ambiguous(String),
    /// The run is over.
    #[error("the run {run} has ended already ({state})")]
    Ended {
        /// Its name.
        run: String,
        /// How.
        state: &'static str,
    },
    /// The file of the fleet has mistakes.
    #[error(transparent)]
    File(#[from] crate::fleet_file::FleetFileError),
    /// How servers are to be recognised cannot be used.
    #[error(transparent)]
    Trust(#[from] linerate_runner::TrustError),
    /// A key or an enrolment cannot be used.
    #[error(transparent)]
    Enrollment(#[from] crate::enrollment::EnrollmentError),
    /// The broker can never be reached like this.
    #[error(transparent)]
    Broker(#[from] linerate_broker::BrokerError),
    /// The file with the users of the broker cannot be made.
    #[error(transparent)]
    Users(#[from] linerate_broker::UsersError),
    /// Whom the agent should believe is not known.
    #[error(
        "give --fleet-key-file with the secret key of the coordinators; `linerate agent enroll HOST FILE` makes it if \
         the file is missing"
    )]
    NoFleetKey,
    /// The host has an agent with another key.
    #[error(
        "{0} has an agent, whose key would not be valid any more; give --replace if a new agent is to take its place"
    )]
    HasAgent(String),
    /// The fleet has another name than its agents know.
    #[error(
        "the fleet is '{new}' now, but its agents know it as '{old}' and would not be reached; keep the name, or end \
         the coordinator and enrol the agents anew"
    )]
    Renamed {
        /// The name before.
        old: String,
        /// The new one.
        new: String,
    },
    /// There is no such agent.
    #[error("{0} has no agent; `linerate agent list` shows them")]
    NoAgent(String),
    /// An agent cannot be revoked twice.
    #[error("the agent of {0} was revoked before; `linerate agent enroll` gives its host another one")]
    RevokedBefore(String),
    /// An agent that may measure is not removed.
    #[error("the agent of {0} is not revoked; end it with `linerate agent revoke {0}` before it is removed")]
    NotRevoked(String),
    /// An agent that was revoked may not know.
    #[error(
        "the agent of {host} may have a calendar that is in force until {}; remove it then, so that nobody else measures \
         at its times",
        crate::recurrence::rfc3339(*until)
    )]
    StillInForce {
        /// Its host.
        host: String,
        /// Until when.
        until: linerate_model::calendar::UnixTime,
    },
    /// The calendar of a fleet for trying out can only be used while the fleet is up.
    #[error("no fleet is up in {folder}; start one with: linerate fleet up --dir {folder}", folder = .0.display())]
    TryOutDown(std::path::PathBuf),
    /// This system has no random numbers.
    #[error(transparent)]
    Runner(#[from] linerate_runner::RunnerError),
    /// The operating system refuses a thread.
    #[error(transparent)]
    Sock(#[from] linerate_sock::SockError),
}

impl FleetError {
    /// Whether the user has to change the command or a file, instead of the environment.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        !matches!(
            self,
            Self::Calendar(_) | Self::Runner(_) | Self::Sock(_) | Self::Ended { .. } | Self::TryOutDown(_)
        )
    }
}

impl From<linerate_archive::ArchiveError> for FleetError {
    fn from(error: linerate_archive::ArchiveError) -> Self {
        Self::Calendar(error.into())
    }
}
