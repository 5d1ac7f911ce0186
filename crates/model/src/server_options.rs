//! The limits of a server, as options of its command line and keys of its configuration file.

#[cfg(feature = "clap")]
use linerate_units::above_zero;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use linerate_units::{Bytes, Span};

/// When clients are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Policy {
    /// One run at a time; the others wait in a queue and see their position
    #[default]
    Exclusive,
    /// All at once; each result mentions the runs at the same time
    Shared,
}

/// Where a server listens, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ListenOptions {
    /// Port for TCP and UDP; 0 lets the system choose
    #[cfg_attr(feature = "clap", arg(short, long, default_value_t = 5201))]
    pub port: u16,
    /// Listen only on this address; may be given more than once [default: all]
    #[cfg_attr(feature = "clap", arg(short = 'B', long = "bind", value_name = "ADDRESS"))]
    pub bind: Vec<IpAddr>,
    /// When clients are measured
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub policy: Policy,
    /// Stop after one run
    #[cfg_attr(feature = "clap", arg(short = '1', long))]
    pub one_off: bool,
    /// Also answer older tools at their own ports
    #[cfg_attr(feature = "clap", arg(long))]
    pub classic: bool,
}

impl ListenOptions {
    /// The addresses to listen on, with the port.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        let addresses = if self.bind.is_empty() { any.as_slice() } else { &self.bind };
        addresses.iter().map(|address| SocketAddr::new(*address, self.port)).collect()
    }
}

/// Limits on what clients may measure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ServerLimitOptions {
    /// Refuse runs that take longer
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", value_parser = above_zero::<Span>))]
    pub limit_time: Option<Span>,
    /// Refuse further clients when this number is running or waiting
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "CLIENTS", value_parser = clap::value_parser!(u32).range(1..))
    )]
    pub limit_clients: Option<u32>,
    /// Refuse runs that need more memory in total (K, M, G are binary) [default: a quarter of this host's, at
    /// least 128M]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", value_parser = above_zero::<Bytes>))]
    pub limit_memory: Option<Bytes>,
    /// Refuse tests of a network (/24, /56) that has made this number in 24 hours; 0 for no limit [default: 40 with
    /// --public, else no limit]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TESTS"))]
    pub limit_daily_tests: Option<u32>,
    /// Refuse tests of a network that would measure longer than this in 24 hours; 0 for no limit [default: 20m with
    /// --public, else no limit]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS"))]
    pub limit_daily_time: Option<Span>,
    /// Refuse tests of a network that has moved this number of bytes in 24 hours (K, M, G are binary)
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES"))]
    pub limit_daily_bytes: Option<Bytes>,
    /// Refuse tests when all networks together have moved this number of bytes in 24 hours
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES"))]
    pub limit_daily_total: Option<Bytes>,
}

/// Limits on the archived runs of clients of other programs. The oldest ones are deleted; one's own runs never are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ArchiveLimitOptions {
    /// Keep at most this number of runs of clients of other programs
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))
    )]
    pub limit_archive_runs: u32,
    /// Keep at most this number of bytes of their logs
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "BYTES", default_value = "256M", value_parser = above_zero::<Bytes>)
    )]
    pub limit_archive_bytes: Bytes,
    /// Delete them after this number of days
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))
    )]
    pub limit_archive_days: u32,
    /// Store them without the addresses of the clients
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_store_addresses: bool,
}

/// Where runs are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ArchiveOptions {
    /// Keep runs in this SQLite file, or in a PostgreSQL database, postgres://HOST/DATABASE [default:
    /// linerate/archive.sqlite in the user's data directory]
    // A URL may have a password.
    #[cfg_attr(
        feature = "clap",
        arg(
            long, value_name = "FILE|URL", env = "LINERATE_ARCHIVE", hide_env_values = true,
            value_parser = Self::parse_location, global = true, help_heading = "Archive"
        )
    )]
    pub archive: Option<String>,
}

impl ArchiveOptions {
    /// The location of an archive. With an empty name, SQLite would create a temporary database.
    ///
    /// # Errors
    /// The name is empty.
    pub fn parse_location(text: &str) -> Result<String, &'static str> {
        match text {
            "" => Err("name a file, or unset LINERATE_ARCHIVE for the default archive"),
            location => Ok(location.to_owned()),
        }
    }
}
