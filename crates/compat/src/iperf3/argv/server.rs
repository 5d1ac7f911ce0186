//! Options of a server.

use linerate_units::Span;

use super::table::Iperf3Option;
use super::values::{seconds, split_rate, within};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};

pub(super) const OPTIONS: &[Iperf3Option] = &[
    Iperf3Option::both("server", "be a server", |d, _| {
        d.server = true;
        if d.settings.is_client() { Err(Iperf3Error::new(Iperf3ErrorNumber::BOTH_ROLES)) } else { Ok(()) }
    })
    .short('s'),
    Iperf3Option::server("daemon", "run in the background", |d, _| {
        d.settings.server.daemon = true;
        Ok(())
    })
    .short('D'),
    Iperf3Option::server("one-off", "end after one client", |d, _| {
        d.settings.server.one_off = true;
        Ok(())
    })
    .short('1'),
    Iperf3Option::server(
        "idle-timeout",
        "listen again (with -1: end) after N seconds without a client",
        |d, v| {
            let seconds = within(v, 1, 86_400, Iperf3ErrorNumber::SERVER_IDLE)?;
            d.settings.server.idle_timeout = Some(Span::from_secs(seconds.into()));
            Ok(())
        },
    )
    .value("SECONDS"),
    Iperf3Option::server(
        "server-bitrate-limit",
        "highest rate of a test, averaged over a time (default 5 s)",
        |d, v| {
            let (limit, interval) = split_rate(v)?;
            d.settings.server.bitrate_limit = Some(limit).filter(|limit| *limit > 0);
            if let Some(interval) = interval {
                d.settings.server.bitrate_limit_interval =
                    seconds(interval, Iperf3ErrorNumber::RATE_INTERVAL)?;
            }
            Ok(())
        },
    )
    .value("RATE[/SECONDS]"),
    Iperf3Option::server("server-max-duration", "longest test", |d, v| {
        let seconds = within(v, 0, 86_400, Iperf3ErrorNumber::DURATION)?;
        d.settings.server.max_duration = Some(Span::from_secs(seconds.into())).filter(|_| seconds > 0);
        Ok(())
    })
    .value("SECONDS"),
    Iperf3Option::server("rsa-private-key-path", "private key that decrypts passwords (PEM)", |d, v| {
        d.settings.server.rsa_private_key = Some(v.into());
        Ok(())
    })
    .value("FILE"),
    Iperf3Option::server("authorized-users-path", "file of users and their password hashes", |d, v| {
        d.settings.server.authorized_users = Some(v.into());
        Ok(())
    })
    .value("FILE"),
    Iperf3Option::server(
        "time-skew-threshold",
        "largest clock difference in seconds (default 10)",
        |d, v| {
            let seconds = within(v, 1, u32::MAX, Iperf3ErrorNumber::SKEW_THRESHOLD)?;
            d.settings.server.time_skew_threshold = Span::from_secs(seconds.into());
            Ok(())
        },
    )
    .value("SECONDS"),
];
