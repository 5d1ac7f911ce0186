//! Arguments that several commands share.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use linerate_control::Quotas;
use linerate_lab::{LabResourceError, StateDir, run_dir};
use linerate_report::{FORMATS, Format};
use linerate_runner::Retention;
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::Congestion;
use linerate_units::{Bytes, Span, above_zero};

/// A report format by its name.
pub(crate) fn format_name() -> impl TypedValueParser<Value = Format> {
    let names = FORMATS.iter().map(|row| PossibleValue::new(row.name).help(row.help));
    PossibleValuesParser::new(names).map(|name| Format::named(&name).unwrap_or_default())
}

/// A tunnel by its name.
pub(crate) fn tunnel() -> impl TypedValueParser<Value = Encapsulation> {
    PossibleValuesParser::new(Encapsulation::ALL.map(Encapsulation::name))
        .try_map(|name| Encapsulation::from_name(&name).ok_or("unknown tunnel"))
}

/// A congestion control by its name.
pub(crate) fn congestion() -> impl TypedValueParser<Value = Congestion> {
    PossibleValuesParser::new([Congestion::Reno, Congestion::Cubic, Congestion::Bbr].map(Congestion::name))
        .try_map(|name| Congestion::from_name(&name).ok_or("unknown congestion control"))
}

/// Limits on the archived runs of clients of other programs. The oldest ones are deleted; one's own runs never
/// are.
#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveLimits {
    /// Keep at most this number of runs of clients of other programs
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit_archive_runs: u32,
    /// Keep at most this number of bytes of their logs
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = above_zero::<Bytes>)]
    limit_archive_bytes: Bytes,
    /// Delete them after this number of days
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    limit_archive_days: u32,
    /// Store them without the addresses of the clients
    #[arg(long)]
    pub(crate) no_store_addresses: bool,
}

impl ArchiveLimits {
    pub(crate) fn quota(&self) -> Retention {
        Retention {
            runs: Some(self.limit_archive_runs),
            bytes: Some(self.limit_archive_bytes),
            days: Some(self.limit_archive_days),
        }
    }
}

/// Limits on what clients may measure here in 24 hours.
#[derive(Debug, Clone, Args)]
pub(crate) struct QuotaArgs {
    /// Refuse tests of a network (/24, /56) that has made this number in 24 hours; 0 for no limit [default: 40 with
    /// --public, else no limit]
    #[arg(long, value_name = "TESTS")]
    limit_daily_tests: Option<u32>,
    /// Refuse tests of a network that would measure longer than this in 24 hours; 0 for no limit [default: 20m with
    /// --public, else no limit]
    #[arg(long, value_name = "SECONDS")]
    limit_daily_time: Option<Span>,
    /// Refuse tests of a network that has moved this number of bytes in 24 hours (K, M, G are binary)
    #[arg(long, value_name = "BYTES")]
    limit_daily_bytes: Option<Bytes>,
    /// Refuse tests when all networks together have moved this number of bytes in 24 hours
    #[arg(long, value_name = "BYTES")]
    limit_daily_total: Option<Bytes>,
}

impl QuotaArgs {
    pub(crate) fn quotas(&self, public: bool) -> Quotas {
        let given = Quotas {
            tests: self.limit_daily_tests,
            time: self.limit_daily_time,
            bytes: self.limit_daily_bytes,
            total_bytes: self.limit_daily_total,
        };
        given.or(if public { Quotas::OF_A_PUBLIC_HOST } else { Quotas::default() })
    }
}

/// The location of an archive. With an empty name, SQLite would create a temporary database.
pub(crate) fn archive_location(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("name a file, or unset LINERATE_ARCHIVE for the default archive"),
        location => Ok(location.to_owned()),
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveArgs {
    /// Keep runs in this SQLite file, or in a PostgreSQL database, postgres://HOST/DATABASE [default:
    /// linerate/archive.sqlite in the user's data directory]
    // A URL may have a password.
    #[arg(
        long, value_name = "FILE|URL", env = "LINERATE_ARCHIVE", hide_env_values = true,
        value_parser = archive_location, global = true, help_heading = "Archive"
    )]
    pub(crate) archive: Option<String>,
}

/// The folder of this user's labs and undo journals.
#[derive(Debug, Args)]
pub(crate) struct RunFolder {
    /// Folder for the state of labs and for undo journals [default: /run/linerate, or linerate in the user's runtime
    /// directory]
    #[arg(long, value_name = "FOLDER", env = "LINERATE_RUN", hide = true)]
    run_dir: Option<PathBuf>,
}

impl RunFolder {
    /// The folder of the journals of host settings; absent if this user has none that is protected from others.
    pub(crate) fn settings(&self) -> Option<PathBuf> {
        let folder = self.run_dir.clone().or_else(|| run_dir().ok())?;
        Some(folder.join("settings"))
    }

    /// The state of the labs.
    pub(crate) fn open(&self) -> Result<StateDir, LabResourceError> {
        StateDir::open(self.run_dir.as_deref())
    }
}
