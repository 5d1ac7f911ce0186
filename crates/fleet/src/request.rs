//! New schedules, as users give them.

use linerate_config::check_name;
use linerate_model::TestSpec;
use linerate_model::calendar::{AlarmLimits, QuietHours, Recurrence, Schedule, UnixTime};
use linerate_units::{Bitrate, Ratio, Span};

use crate::coordinator::run_length;
use crate::error::FleetError;
use crate::inventory::Inventory;
use crate::recurrence::{DueTimes, MAX_SLIP, parse_time, zone};

/// How much later than due a test may begin, if its schedule has no period.
const DEFAULT_SLIP: Span = Span::from_secs(3600);

/// A test between two hosts, as a user asks for it.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct PairRequest {
    /// Host that is the client
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST"))]
    pub from: String,
    /// Host that is the server
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST"))]
    pub to: String,
    /// Let other shared tests use the same hosts and links at the same time
    #[cfg_attr(feature = "clap", arg(long))]
    pub shared: bool,
    /// What to measure.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub spec: TestSpec,
}

/// A new schedule.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ScheduleRequest {
    /// Name of the schedule: small letters, digits and hyphens
    pub name: String,
    /// The hosts and the test.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub pair: PairRequest,
    /// Measure periodically, from 10s on
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", help_heading = "Times"))]
    pub every: Option<Span>,
    /// Mean of an exponentially distributed delay of each test, at most one period
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", requires = "every", help_heading = "Times"))]
    pub jitter: Option<Span>,
    /// Measure at the times of a crontab expression: minute, hour, day of month, month, day of week
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "EXPRESSION", conflicts_with = "every", help_heading = "Times")
    )]
    pub cron: Option<String>,
    /// Measure once, at a time like "2026-12-24 03:00" or 2026-12-24T03:00:00Z
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", conflicts_with_all = ["every", "cron"], help_heading = "Times"))]
    pub at: Option<String>,
    /// How much later than due a test may begin, at most 168h [default: the period, or 1h]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", help_heading = "Times"))]
    pub slip: Option<Span>,
    /// Hours in which nothing is measured, such as "Mon-Fri 08:00-18:00"; may be given more than once
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOURS", help_heading = "Times"))]
    pub quiet: Vec<QuietHours>,
    /// Time zone of the times and the quiet hours, by its IANA name [default: that of the fleet]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ZONE", help_heading = "Times"))]
    pub zone: Option<String>,
    /// Last time at which it is due
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", help_heading = "Times"))]
    pub last: Option<String>,
    /// Take the time of tests with a lower priority; 0 to 9
    #[cfg_attr(feature = "clap", arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=9), help_heading = "Times"))]
    pub priority: u8,
    /// Limits of the results.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub alarm: AlarmOptions,
}

/// Limits whose crossing raises an alarm, after a second test.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AlarmOptions {
    /// Alarm when the goodput is below this rate
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", help_heading = "Alarms"))]
    pub alarm_below: Option<Bitrate>,
    /// Alarm when the median latency under load is above this time
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", help_heading = "Alarms"))]
    pub alarm_latency: Option<Span>,
    /// Alarm when more datagrams than this share are lost
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", help_heading = "Alarms"))]
    pub alarm_loss: Option<Ratio>,
    /// Alarm when the goodput has changed by at least this share and stays so
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", help_heading = "Alarms"))]
    pub alarm_change: Option<Ratio>,
    /// Alarm when a test fails, or nobody makes it: no coordinator is there, or its agent is away or full
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Alarms"))]
    pub alarm_failure: bool,
}

impl PairRequest {
    /// Checks the hosts and the test. Without a direction, the test is one from the client to the server.
    pub(crate) fn checked_spec(&self, inventory: &Inventory) -> Result<TestSpec, FleetError> {
        inventory.host(&self.from)?;
        inventory.host(&self.to)?;
        if self.from == self.to {
            return Err(FleetError::SameHost(self.from.clone()));
        }
        let mut spec = self.spec.clone();
        spec.prepare_sweep();
        spec.check()?;
        spec.agree()?;
        let traffic = &mut spec.traffic;
        if !(traffic.upload || traffic.download || traffic.bidir) {
            traffic.upload = true;
        }
        if spec.expected_time().is_none() {
            return Err(FleetError::NoLength);
        }
        Ok(spec)
    }
}

impl ScheduleRequest {
    /// The schedule, checked against the fleet: it can run at least once.
    ///
    /// # Errors
    /// What is wrong with it, or why it would never run.
    pub fn schedule(&self, inventory: &Inventory, now: UnixTime) -> Result<Schedule, FleetError> {
        check_name(&self.name)?;
        let spec = self.pair.checked_spec(inventory)?;
        let zone_name = self.zone.clone().unwrap_or_else(|| inventory.zone.clone());
        let refused = |why| FleetError::Recurrence { name: self.name.clone(), why };
        let zone = zone(&zone_name).map_err(refused)?;
        let time = |option: &'static str, text: &String| {
            parse_time(text, &zone).ok_or_else(|| FleetError::Time { option, text: text.clone() })
        };
        let recurrence = match (&self.every, &self.cron, &self.at) {
            (Some(period), None, None) => {
                Recurrence::Every { period: *period, jitter: self.jitter.unwrap_or_default(), anchor: now }
            }
            (None, Some(expression), None) => Recurrence::Cron(expression.as_str().into()),
            (None, None, Some(text)) => Recurrence::Once(time("--at", text)?),
            _ => return Err(FleetError::Times),
        };
        if self.jitter.is_some() && self.every.is_none() {
            return Err(FleetError::JitterWithoutPeriod);
        }
        let schedule = Schedule {
            name: self.name.as_str().into(),
            mesh: None,
            from: self.pair.from.as_str().into(),
            to: self.pair.to.as_str().into(),
            spec,
            recurrence,
            zone: zone_name.into(),
            slip: self.slip.or(self.every.map(|every| every.min(MAX_SLIP))).unwrap_or(DEFAULT_SLIP),
            quiet: self.quiet.clone(),
            priority: self.priority,
            shared: self.pair.shared,
            until: self.last.as_ref().map(|text| time("--last", text)).transpose()?,
            alarm: AlarmLimits {
                below: self.alarm.alarm_below,
                latency: self.alarm.alarm_latency,
                loss: self.alarm.alarm_loss,
                change: self.alarm.alarm_change,
                failure: self.alarm.alarm_failure,
            },
        };
        let due = DueTimes::of(&schedule).map_err(refused)?;
        due.check(now, check_length(&schedule, inventory)?).map_err(refused)?;
        Ok(schedule)
    }
}

/// How long the reservations of a test are, which is over before the next one is due.
pub(crate) fn check_length(schedule: &Schedule, inventory: &Inventory) -> Result<Span, FleetError> {
    let length = run_length(schedule, inventory).ok_or(FleetError::NoLength)?;
    match schedule.recurrence {
        Recurrence::Every { period, .. } if length > period => Err(FleetError::TooLong { length, period }),
        _ => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::inventory;

    fn request() -> ScheduleRequest {
        ScheduleRequest {
            name: "nightly".to_owned(),
            pair: PairRequest { from: "a".to_owned(), to: "b".to_owned(), ..PairRequest::default() },
            every: Some(Span::from_secs(3600)),
            ..ScheduleRequest::default()
        }
    }

    fn refused(request: &ScheduleRequest) -> String {
        let fleet = inventory("host.a.address = \"a\"\nhost.b.address = \"b\"\n");
        request.schedule(&fleet, UnixTime::from_ms(1_800_000_000_000)).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_reason_and_the_remedy() {
        let base = request();
        let with = |change: &dyn Fn(&mut ScheduleRequest)| {
            let mut changed = base.clone();
            change(&mut changed);
            refused(&changed)
        };
        assert!(with(&|one| one.pair.to = "c".to_owned()).contains("no host 'c'"));
        assert!(with(&|one| one.pair.to = "a".to_owned()).contains("cannot measure to itself"));
        assert!(with(&|one| one.name = "A b".to_owned()).contains("cannot be a name"));
        assert!(with(&|one| one.every = None).contains("--cron, --every and --at"));
        assert!(with(&|one| one.every = Some(Span::from_secs(12))).contains("measure less often"));
        assert!(
            with(&|one| one.last = Some("tomorrow".to_owned())).contains("--last: 'tomorrow' is no time")
        );
        assert!(
            with(&|one| one.pair.spec.traffic.bytes = Some(linerate_units::Bytes::new(1)))
                .contains("give --time")
        );
        let past = with(&|one| (one.every, one.at) = (None, Some("2001-01-01 00:00".to_owned())));
        assert!(past.contains("its time is in the past"), "{past}");
        let quiet = with(&|one| {
            one.every = None;
            one.cron = Some("0 3 * * *".to_owned());
            one.quiet = vec!["00:00-06:00".parse().unwrap()];
        });
        assert!(quiet.contains("in its quiet hours (00:00-06:00)"), "{quiet}");
    }

    #[test]
    fn without_a_direction_the_client_sends() {
        let fleet = inventory("zone = \"Europe/Berlin\"\nhost.a.address = \"a\"\nhost.b.address = \"b\"\n");
        let once = ScheduleRequest { every: None, at: Some("2030-07-01 02:00".to_owned()), ..request() };
        let schedule = once.schedule(&fleet, UnixTime::from_ms(0)).unwrap();
        assert!(schedule.spec.traffic.upload);
        assert_eq!(schedule.slip, Span::from_secs(3600));
        let Recurrence::Once(at) = schedule.recurrence else { panic!("{schedule:?}") };
        assert_eq!(crate::recurrence::rfc3339(at), "2030-07-01T00:00:00Z");
    }
}
