//! Options of both roles.

use linerate_units::Span;

use super::table::{Iperf3Option, ParsedSettings};
use super::values::{affinity, host_and_device, keep_alive, milliseconds, port, seconds};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::numbers::{Iperf3Format, leading_int};
use crate::iperf3::settings::Iperf3Family;

/// Never called: the parser stops at these options.
fn nothing(_: &mut ParsedSettings, _: &str) -> Result<(), Iperf3Error> {
    Ok(())
}

pub(super) const OPTIONS: &[Iperf3Option] = &[
    Iperf3Option::both("port", "server port for control and data", |d, v| {
        d.settings.common.port = port(v)?;
        Ok(())
    })
    .short('p')
    .value("PORT"),
    Iperf3Option::both("format", "unit of rates: kmgt for bits, KMGT for bytes", |d, v| {
        let format = v.chars().next().and_then(Iperf3Format::from_letter);
        d.settings.common.format = Some(format.ok_or(Iperf3Error::new(Iperf3ErrorNumber::BAD_FORMAT))?);
        Ok(())
    })
    .short('f')
    .value("LETTER"),
    Iperf3Option::both("interval", "seconds between reports, 0 for none (default 1)", |d, v| {
        d.settings.common.interval = seconds(v, Iperf3ErrorNumber::INTERVAL)?;
        Ok(())
    })
    .short('i')
    .value("SECONDS"),
    Iperf3Option::both("pidfile", "write the process ID to a file", |d, v| {
        d.settings.common.pidfile = Some(v.into());
        Ok(())
    })
    .short('I')
    .value("FILE"),
    Iperf3Option::both("file", "send from a file, or receive into one", |d, v| {
        d.settings.common.file = Some(v.into());
        Ok(())
    })
    .short('F')
    .value("FILE"),
    Iperf3Option::both("affinity", "keep this process on CPU N (a client: the server on M)", |d, v| {
        let (ours, theirs) = affinity(v)?;
        d.settings.common.affinity = Some(ours);
        d.settings.client.server_affinity = theirs;
        d.client_only |= theirs.is_some();
        Ok(())
    })
    .short('A')
    .value("N[,M]"),
    Iperf3Option::both("bind", "local address, optionally with an interface", |d, v| {
        let (host, device) = host_and_device(v);
        d.settings.common.bind = Some(host);
        d.settings.common.bind_dev = device.or(d.settings.common.bind_dev.take());
        Ok(())
    })
    .short('B')
    .value("HOST[%DEVICE]"),
    Iperf3Option::both("bind-dev", "use only this interface", |d, v| {
        d.settings.common.bind_dev = Some(v.to_owned());
        Ok(())
    })
    .value("DEVICE"),
    Iperf3Option::both("verbose", "more detail", |d, _| {
        d.settings.common.verbose = true;
        Ok(())
    })
    .short('V'),
    Iperf3Option::both("json", "one JSON object instead of text", |d, _| {
        d.settings.common.json = true;
        Ok(())
    })
    .short('J'),
    Iperf3Option::both("json-stream", "one JSON object per line, as events happen", |d, _| {
        d.settings.common.json = true;
        d.settings.common.json_stream = true;
        Ok(())
    }),
    Iperf3Option::both(
        "json-stream-full-output",
        "like --json-stream, plus the whole object at the end",
        |d, _| {
            d.settings.common.json = true;
            d.settings.common.json_stream = true;
            d.settings.common.json_stream_full_output = true;
            Ok(())
        },
    ),
    Iperf3Option::both("logfile", "append all output to a file", |d, v| {
        d.settings.common.logfile = Some(v.into());
        Ok(())
    })
    .value("FILE"),
    Iperf3Option::both("forceflush", "flush after each report", |d, _| {
        d.settings.common.forceflush = true;
        Ok(())
    }),
    Iperf3Option::both("timestamps", "put the time before each line (strftime)", |d, v| {
        d.settings.common.timestamps = Some(if v.is_empty() { "%c ".to_owned() } else { v.to_owned() });
        Ok(())
    })
    .perhaps("FORMAT"),
    Iperf3Option::both(
        "rcv-timeout",
        "receive timeout: give up after N ms without data (default 120000)",
        |d, v| {
            d.settings.common.rcv_timeout = milliseconds(v, 100, Iperf3ErrorNumber::RCV_TIMEOUT)?;
            d.rcv_timeout = true;
            Ok(())
        },
    )
    .value("MS"),
    Iperf3Option::both("snd-timeout", "send timeout: give up if data is unacknowledged for N ms", |d, v| {
        let timeout = milliseconds(v, 0, Iperf3ErrorNumber::SND_TIMEOUT)?;
        d.settings.common.snd_timeout = Some(timeout).filter(|timeout| *timeout > Span::default());
        Ok(())
    })
    .value("MS"),
    Iperf3Option::both("cntl-ka", "keep-alive of the control connection, s/s/count", |d, v| {
        d.settings.common.control_keep_alive = Some(keep_alive(v)?);
        Ok(())
    })
    .perhaps("IDLE/INTERVAL/COUNT"),
    Iperf3Option::both("mptcp", "Multipath TCP (a server always accepts it)", |d, _| {
        d.settings.client.mptcp = true;
        Ok(())
    })
    .short('m'),
    Iperf3Option::both("debug", "messages for developers, level 1 to 4", |d, v| {
        let level = u8::try_from(leading_int(v)).ok().filter(|level| (1..=4).contains(level));
        d.settings.common.debug = Some(level.unwrap_or(4));
        Ok(())
    })
    .short('d')
    .perhaps("LEVEL"),
    Iperf3Option::both("version", "print version and system", nothing).short('v'),
    Iperf3Option::both("help", "print this", nothing).short('h'),
    Iperf3Option::both("version4", "only IPv4", |d, _| {
        d.settings.common.family = Some(Iperf3Family::V4);
        Ok(())
    })
    .short('4'),
    Iperf3Option::both("version6", "only IPv6", |d, _| {
        d.settings.common.family = Some(Iperf3Family::V6);
        Ok(())
    })
    .short('6'),
    Iperf3Option::both("xbind", "SCTP only, not supported by this program", |_, _| {
        Err(Iperf3Error::new(Iperf3ErrorNumber::NO_SCTP))
    })
    .short('X')
    .value("NAME"),
    Iperf3Option::both("use-pkcs1-padding", "encrypt passwords like iperf3 before 3.17", |d, _| {
        d.settings.common.pkcs1_padding = true;
        Ok(())
    }),
];
