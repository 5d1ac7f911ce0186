//! Options of both roles.

use linerate_units::Span;

use super::table::{Iperf3Option, ParsedSettings};
use super::values::{affinity, keep_alive, local_and_device, milliseconds, no_sctp, port, seconds};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::numbers::{Iperf3Format, leading_int};
use crate::iperf3::settings::{Iperf3Family, Iperf3File};
use crate::option_table::ToolOption;

/// Has no effect: the parser stops at the option, or there is nothing to do.
fn nothing(_: &mut ParsedSettings, _: &str) -> Result<(), Iperf3Error> {
    Ok(())
}

pub(super) const OPTIONS: &[Iperf3Option] = &[
    Iperf3Option::both(
        ToolOption::acts(
            &["-p PORT", "--port PORT"],
            &["-p", "5202"],
            "server port of the control connection and the data streams",
        ),
        |d, v| {
            d.settings.common.port = port(v)?;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-f LETTER", "--format LETTER"],
            &["-f", "m"],
            "unit of printed rates: k, m, g or t for bits, K, M, G or T for bytes",
        ),
        |d, v| {
            let format = v.chars().next().and_then(Iperf3Format::from_letter);
            d.settings.common.format = Some(format.ok_or(Iperf3Error::new(Iperf3ErrorNumber::BAD_FORMAT))?);
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-i SECONDS", "--interval SECONDS"],
            &["-i", "2"],
            "seconds between reports, 0 for none (default 1)",
        ),
        |d, v| {
            d.settings.common.interval = seconds(v, Iperf3ErrorNumber::INTERVAL)?;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-I FILE", "--pidfile FILE"],
            &["-I", "iperf3.pid"],
            "write the process ID to a file and remove the file at exit",
        ),
        |d, v| {
            d.settings.common.pidfile = Some(v.into());
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-F FILE", "--file FILE"],
            &["-F", "data"],
            "send this file, or write the received data to it (TCP)",
        ),
        |d, v| {
            d.settings.common.file = Some(Iperf3File { path: v.into(), ..Iperf3File::default() });
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-A N[,M]", "--affinity N[,M]"],
            &["-A", "1"],
            "pin this process to CPU N (client: and the server to CPU M)",
        ),
        |d, v| {
            let (ours, theirs) = affinity(v)?;
            d.settings.common.affinity = Some(ours);
            d.settings.client.server_affinity = theirs;
            d.client_only |= theirs.is_some();
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-B HOST[%DEVICE]", "--bind HOST[%DEVICE]"],
            &["-B", "192.0.2.1"],
            "local address to bind to, optionally with an interface",
        ),
        |d, v| {
            let (host, device) = local_and_device(v);
            d.settings.common.bind = Some(host);
            d.settings.common.bind_dev = device.or(d.settings.common.bind_dev.take());
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(&["--bind-dev DEVICE"], &["--bind-dev", "eth0"], "bind to this interface"),
        |d, v| {
            d.settings.common.bind_dev = Some(v.to_owned());
            Ok(())
        },
    ),
    Iperf3Option::both(ToolOption::acts(&["-V", "--verbose"], &["-V"], "print more detail"), |d, _| {
        d.settings.common.verbose = true;
        Ok(())
    }),
    Iperf3Option::both(
        ToolOption::acts(&["-J", "--json"], &["-J"], "print one JSON object instead of text"),
        |d, _| {
            d.settings.common.json = true;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--json-stream"],
            &["--json-stream"],
            "print one JSON object per line while the test runs",
        ),
        |d, _| {
            d.settings.common.json = true;
            d.settings.common.json_stream = true;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--json-stream-full-output"],
            &["--json-stream-full-output"],
            "like --json-stream, followed by the complete JSON object",
        ),
        |d, _| {
            d.settings.common.json = true;
            d.settings.common.json_stream = true;
            d.settings.common.json_stream_full_output = true;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(&["--logfile FILE"], &["--logfile", "log"], "append all output to a file"),
        |d, v| {
            d.settings.common.logfile = Some(v.into());
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::no_effect(
            &["--forceflush"],
            &["--forceflush"],
            "flush output after each report, which is always done",
        ),
        nothing,
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--timestamps[=FORMAT]"],
            &["--timestamps"],
            "print a timestamp before each line (strftime format)",
        ),
        |d, v| {
            d.settings.common.timestamps = Some(if v.is_empty() { "%c ".to_owned() } else { v.to_owned() });
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--rcv-timeout MS"],
            &["--rcv-timeout", "500"],
            "give up after this many milliseconds without data (default 120000)",
        )
        .after(&["-s"]),
        |d, v| {
            d.settings.common.rcv_timeout = milliseconds(v, 100, Iperf3ErrorNumber::RCV_TIMEOUT)?;
            d.rcv_timeout = true;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--snd-timeout MS"],
            &["--snd-timeout", "500"],
            "give up if data stays unacknowledged for this many milliseconds",
        ),
        |d, v| {
            let timeout = milliseconds(v, 0, Iperf3ErrorNumber::SND_TIMEOUT)?;
            d.settings.common.snd_timeout = Some(timeout).filter(|timeout| *timeout > Span::default());
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--cntl-ka[=IDLE/INTERVAL/COUNT]"],
            &["--cntl-ka=10/2/3"],
            "TCP keepalive of the control connection: idle time and interval in seconds, number of probes",
        ),
        |d, v| {
            d.settings.common.control_keep_alive = Some(keep_alive(v)?);
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(&["-m", "--mptcp"], &["-m"], "use Multipath TCP (a server always accepts it)"),
        |d, _| {
            d.settings.client.mptcp = true;
            Ok(())
        },
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["-d", "--debug[=LEVEL]"],
            &["-d"],
            "print the control messages and, from level 3, the state changes",
        ),
        |d, v| {
            let level = u8::try_from(leading_int(v)).ok().filter(|level| (1..=4).contains(level));
            d.settings.common.debug = Some(level.unwrap_or(4));
            Ok(())
        },
    ),
    Iperf3Option::role(
        ToolOption::acts(&["-v", "--version"], &["-v"], "print the version and the system"),
        nothing,
    ),
    Iperf3Option::role(ToolOption::acts(&["-h", "--help"], &["-h"], "print this help"), nothing),
    Iperf3Option::both(ToolOption::acts(&["-4", "--version4"], &["-4"], "use only IPv4"), |d, _| {
        d.settings.common.family = Some(Iperf3Family::V4);
        Ok(())
    }),
    Iperf3Option::both(ToolOption::acts(&["-6", "--version6"], &["-6"], "use only IPv6"), |d, _| {
        d.settings.common.family = Some(Iperf3Family::V6);
        Ok(())
    }),
    Iperf3Option::both(
        ToolOption::refused(&["-X NAME", "--xbind NAME"], &["-X", "host"], "SCTP, which is not supported"),
        |_, _| Err(no_sctp("-X, --xbind")),
    ),
    Iperf3Option::both(
        ToolOption::acts(
            &["--use-pkcs1-padding"],
            &["--use-pkcs1-padding"],
            "encrypt passwords with PKCS #1 padding, as iperf3 did before 3.17",
        ),
        |d, _| {
            d.settings.common.pkcs1_padding = true;
            Ok(())
        },
    ),
];
