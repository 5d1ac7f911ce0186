//! The request for a schedule of a fleet.

use linerate_fleet::{AlarmOptions, FleetError, PairRequest, ScheduleRequest};
use linerate_model::TestSpec;
use linerate_model::calendar::{AlarmLimits, QuietHours};
use linerate_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::{EXISTS, HttpProblem, INVALID_SETTING};
use crate::typed_value::{TypedValue, read};

/// Most characters of a name, an expression or a time.
const MAX_CHARS: usize = 300;
/// Quiet hours at most.
const MAX_QUIET: usize = 50;

/// A schedule to add: a test between two hosts of the fleet, and when to make it. It has one of `every`, `cron` and `at`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSchedule {
    /// Its name: small letters, digits and hyphens.
    #[schemars(length(min = 1, max = 300))]
    name: String,
    /// The host that is the client.
    #[schemars(length(min = 1, max = 300))]
    from: String,
    /// The host that is the server.
    #[schemars(length(min = 1, max = 300))]
    to: String,
    /// What to measure.
    #[serde(default)]
    pub(crate) test: TestSpec,
    /// Whether others may use the same hosts and links at the same time.
    #[serde(default)]
    shared: bool,
    /// Measure periodically, from 10s on, such as "15m".
    #[serde(default)]
    every: Option<TypedValue>,
    /// Mean of an exponentially distributed delay of each test, at most one period.
    #[serde(default)]
    jitter: Option<TypedValue>,
    /// Measure at the times of a crontab expression: minute, hour, day of month, month, day of week.
    #[serde(default)]
    #[schemars(length(max = 300))]
    cron: Option<String>,
    /// Measure once, at a time like "2026-12-24 03:00" or 2026-12-24T03:00:00Z.
    #[serde(default)]
    #[schemars(length(max = 300))]
    at: Option<String>,
    /// How much later than due a test may begin, at most 168h; absent for the period, or an hour.
    #[serde(default)]
    slip: Option<TypedValue>,
    /// Hours in which nothing is measured, such as "Mon-Fri 08:00-18:00".
    #[serde(default)]
    #[schemars(length(max = 50))]
    quiet: Vec<QuietHours>,
    /// Time zone of the times and the quiet hours, by its IANA name; absent for that of the fleet.
    #[serde(default)]
    #[schemars(length(max = 300))]
    zone: Option<String>,
    /// The last time at which it is due.
    #[serde(default)]
    #[schemars(length(max = 300))]
    last: Option<String>,
    /// Take the time of tests with a lower priority; 0 to 9.
    #[serde(default)]
    #[schemars(range(max = 9))]
    priority: u8,
    /// Limits of its results.
    #[serde(default)]
    alarm: AlarmLimits,
}

impl NewSchedule {
    /// The same request as a command line makes it.
    ///
    /// # Errors
    /// The field that is wrong.
    pub(crate) fn request(&self) -> Result<ScheduleRequest, HttpProblem> {
        let texts = [
            ("name", Some(&self.name)),
            ("from", Some(&self.from)),
            ("to", Some(&self.to)),
            ("cron", self.cron.as_ref()),
            ("at", self.at.as_ref()),
            ("zone", self.zone.as_ref()),
            ("last", self.last.as_ref()),
        ];
        let wrong = |text: String, field: &str| HttpProblem::new(INVALID_SETTING, text).at(field);
        for (field, text) in texts {
            if text.is_some_and(|text| text.chars().count() > MAX_CHARS) {
                return Err(wrong(format!("it has at most {MAX_CHARS} characters"), field));
            }
        }
        if self.quiet.len() > MAX_QUIET {
            return Err(wrong(format!("there are at most {MAX_QUIET} quiet hours"), "quiet"));
        }
        if self.priority > 9 {
            return Err(wrong("give a priority from 0 to 9".to_owned(), "priority"));
        }
        let span = |field, value: &Option<TypedValue>| read(field, value.as_ref(), str::parse::<Span>);
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let (every, jitter, slip) =
            (span("every", &self.every)?, span("jitter", &self.jitter)?, span("slip", &self.slip)?);
        let (cron, at) = (given(&self.cron), given(&self.at));
        if usize::from(every.is_some()) + usize::from(cron.is_some()) + usize::from(at.is_some()) != 1 {
            return Err(wrong("give one of every, cron and at".to_owned(), "every"));
        }
        if jitter.is_some() && every.is_none() {
            let text = "jitter is for a period; give every, or use H in the crontab expression";
            return Err(wrong(text.to_owned(), "jitter"));
        }
        Ok(ScheduleRequest {
            name: self.name.clone(),
            pair: PairRequest {
                from: self.from.clone(),
                to: self.to.clone(),
                shared: self.shared,
                spec: self.test.clone(),
            },
            every,
            jitter,
            cron,
            at,
            slip,
            quiet: self.quiet.clone(),
            zone: given(&self.zone),
            last: given(&self.last),
            priority: self.priority,
            alarm: AlarmOptions {
                alarm_below: self.alarm.below,
                alarm_latency: self.alarm.latency,
                alarm_loss: self.alarm.loss,
                alarm_change: self.alarm.change,
                alarm_failure: self.alarm.failure,
            },
        })
    }

    /// Why it is refused, with the field that is to blame.
    pub(crate) fn refused(&self, error: FleetError) -> HttpProblem {
        let at = |field: &str| HttpProblem::new(INVALID_SETTING, &error).at(field);
        match &error {
            FleetError::Exists(name) => {
                let text =
                    format!("there is a schedule '{name}' already; give another name, or remove it first");
                HttpProblem::new(EXISTS, text).at("name")
            }
            FleetError::Name(_) => at("name"),
            FleetError::NoHost { name, .. } => at(if *name == self.from { "from" } else { "to" }),
            FleetError::SameHost(host) => {
                let text = format!("from and to are both '{host}'; a host cannot measure to itself");
                HttpProblem::new(INVALID_SETTING, text).at("to")
            }
            FleetError::Time { option, text } => {
                let field = option.trim_start_matches('-');
                let text = format!(
                    "'{text}' is no time; write it like \"2026-12-24 03:00\" or 2026-12-24T03:00:00Z"
                );
                HttpProblem::new(INVALID_SETTING, text).at(field)
            }
            FleetError::Recurrence { why, .. } => {
                HttpProblem::new(INVALID_SETTING, format!("it cannot be added: {why}")).at(self.times())
            }
            FleetError::Spec(wrong) => HttpProblem::of_spec(&self.test, wrong),
            FleetError::NoLength => {
                let text = "how long this test takes depends on the network, so no time can be reserved for it; give a \
                            duration instead of an amount";
                HttpProblem::new(INVALID_SETTING, text).at("test.traffic.duration_ns")
            }
            FleetError::TooLong { .. } => at("every"),
            _ => HttpProblem::from(error),
        }
    }

    /// The field that says when it is due.
    fn times(&self) -> &'static str {
        match (&self.every, &self.cron) {
            (Some(_), _) => "every",
            (None, Some(_)) => "cron",
            (None, None) => "at",
        }
    }
}
