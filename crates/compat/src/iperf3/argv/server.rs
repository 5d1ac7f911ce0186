//! Options of a server.

use linerate_units::Span;

use super::table::Iperf3Option;
use super::values::{seconds, split_rate, within};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::option_table::ToolOption;

pub(super) const OPTIONS: &[Iperf3Option] = &[
    Iperf3Option::role(ToolOption::acts(&["-s", "--server"], &["-s"], "run as a server"), |d, _| {
        d.server = true;
        if d.settings.is_client() { Err(Iperf3Error::new(Iperf3ErrorNumber::BOTH_ROLES)) } else { Ok(()) }
    }),
    Iperf3Option::server(ToolOption::acts(&["-D", "--daemon"], &["-D"], "run in the background"), |d, _| {
        d.settings.server.daemon = true;
        Ok(())
    }),
    Iperf3Option::server(
        ToolOption::acts(&["-1", "--one-off"], &["-1"], "serve one client, then exit"),
        |d, _| {
            d.settings.server.one_off = true;
            Ok(())
        },
    ),
    Iperf3Option::server(
        ToolOption::acts(
            &["--idle-timeout SECONDS"],
            &["--idle-timeout", "5"],
            "listen again (with -1: exit) after this many seconds without a client",
        ),
        |d, v| {
            let seconds = within(v, 1, 86_400, Iperf3ErrorNumber::SERVER_IDLE)?;
            d.settings.server.idle_timeout = Some(Span::from_secs(seconds.into()));
            Ok(())
        },
    ),
    Iperf3Option::server(
        ToolOption::acts(
            &["--server-bitrate-limit RATE[/SECONDS]"],
            &["--server-bitrate-limit", "1M/2"],
            "highest allowed rate of a test, averaged over SECONDS (default 5)",
        ),
        |d, v| {
            let (limit, interval) = split_rate(v)?;
            d.settings.server.bitrate_limit = Some(limit).filter(|limit| *limit > 0);
            if let Some(interval) = interval {
                d.settings.server.bitrate_limit_interval =
                    seconds(interval, Iperf3ErrorNumber::RATE_INTERVAL)?;
            }
            Ok(())
        },
    ),
    Iperf3Option::server(
        ToolOption::acts(
            &["--server-max-duration SECONDS"],
            &["--server-max-duration", "60"],
            "longest allowed test",
        ),
        |d, v| {
            let seconds = within(v, 0, 86_400, Iperf3ErrorNumber::DURATION)?;
            d.settings.server.max_duration = Some(Span::from_secs(seconds.into())).filter(|_| seconds > 0);
            Ok(())
        },
    ),
    Iperf3Option::server(
        ToolOption::acts(
            &["--rsa-private-key-path FILE"],
            &["--rsa-private-key-path", "key.pem", "--authorized-users-path", "users"],
            "RSA private key to decrypt passwords with (PEM)",
        ),
        |d, v| {
            d.settings.server.rsa_private_key = Some(v.into());
            Ok(())
        },
    ),
    Iperf3Option::server(
        ToolOption::acts(
            &["--authorized-users-path FILE"],
            &["--authorized-users-path", "users", "--rsa-private-key-path", "key.pem"],
            "file with the user names and password hashes",
        ),
        |d, v| {
            d.settings.server.authorized_users = Some(v.into());
            Ok(())
        },
    ),
    Iperf3Option::server(
        ToolOption::acts(
            &["--time-skew-threshold SECONDS"],
            &["--time-skew-threshold", "5"],
            "largest allowed clock difference to a client, seconds (default 10)",
        ),
        |d, v| {
            let seconds = within(v, 1, u32::MAX, Iperf3ErrorNumber::SKEW_THRESHOLD)?;
            d.settings.server.time_skew_threshold = Span::from_secs(seconds.into());
            Ok(())
        },
    ),
];
