//! Options of both roles.

use linerate_units::Span;

use super::table::{Opt, ParsedSettings};
use super::values::{affinity, host_and_device, keep_alive, milliseconds, port, seconds};
use crate::iperf3::errors::{Iperf3Error, Number};
use crate::iperf3::numbers::{Format, leading_int};
use crate::iperf3::settings::Family;

/// Never called: the parser stops at these options.
fn nothing(_: &mut ParsedSettings, _: &str) -> Result<(), Iperf3Error> {
    Ok(())
}

pub(super) const OPTIONS: &[Opt] = &[
    Opt::both("port", "server port for control and data", |d, v| {
        d.settings.common.port = port(v)?;
        Ok(())
    })
    .short('p')
    .value("PORT"),
    Opt::both("format", "unit of rates: kmgt for bits, KMGT for bytes", |d, v| {
        let format = v.chars().next().and_then(Format::from_letter);
        d.settings.common.format = Some(format.ok_or(Iperf3Error::new(Number::BAD_FORMAT))?);
        Ok(())
    })
    .short('f')
    .value("LETTER"),
    Opt::both("interval", "seconds between reports, 0 for none (default 1)", |d, v| {
        d.settings.common.interval = seconds(v, Number::INTERVAL)?;
        Ok(())
    })
    .short('i')
    .value("SECONDS"),
    Opt::both("pidfile", "write the process ID to a file", |d, v| {
        d.settings.common.pidfile = Some(v.into());
        Ok(())
    })
    .short('I')
    .value("FILE"),
    Opt::both("file", "send from a file, or receive into one", |d, v| {
        d.settings.common.file = Some(v.into());
        Ok(())
    })
    .short('F')
    .value("FILE"),
    Opt::both("affinity", "keep this process on CPU N (a client: the server on M)", |d, v| {
        let (ours, theirs) = affinity(v)?;
        d.settings.common.affinity = Some(ours);
        d.settings.client.server_affinity = theirs;
        d.client_only |= theirs.is_some();
        Ok(())
    })
    .short('A')
    .value("N[,M]"),
    Opt::both("bind", "local address, optionally with an interface", |d, v| {
        let (host, device) = host_and_device(v);
        d.settings.common.bind = Some(host);
        d.settings.common.bind_dev = device.or(d.settings.common.bind_dev.take());
        Ok(())
    })
    .short('B')
    .value("HOST[%DEVICE]"),
    Opt::both("bind-dev", "use only this interface", |d, v| {
        d.settings.common.bind_dev = Some(v.to_owned());
        Ok(())
    })
    .value("DEVICE"),
    Opt::both("verbose", "more detail", |d, _| {
        d.settings.common.verbose = true;
        Ok(())
    })
    .short('V'),
    Opt::both("json", "one JSON object instead of text", |d, _| {
        d.settings.common.json = true;
        Ok(())
    })
    .short('J'),
    Opt::both("json-stream", "one JSON object per line, as events happen", |d, _| {
        d.settings.common.json = true;
        d.settings.common.json_stream = true;
        Ok(())
    }),
    Opt::both("json-stream-full-output", "like --json-stream, plus the whole object at the end", |d, _| {
        d.settings.common.json = true;
        d.settings.common.json_stream = true;
        d.settings.common.json_stream_full_output = true;
        Ok(())
    }),
    Opt::both("logfile", "append all output to a file", |d, v| {
        d.settings.common.logfile = Some(v.into());
        Ok(())
    })
    .value("FILE"),
    Opt::both("forceflush", "flush after each report", |d, _| {
        d.settings.common.forceflush = true;
        Ok(())
    }),
    Opt::both("timestamps", "put the time before each line (strftime)", |d, v| {
        d.settings.common.timestamps = Some(if v.is_empty() { "%c ".to_owned() } else { v.to_owned() });
        Ok(())
    })
    .perhaps("FORMAT"),
    Opt::both("rcv-timeout", "receive timeout: give up after N ms without data (default 120000)", |d, v| {
        d.settings.common.rcv_timeout = milliseconds(v, 100, Number::RCV_TIMEOUT)?;
        d.rcv_timeout = true;
        Ok(())
    })
    .value("MS"),
    Opt::both("snd-timeout", "send timeout: give up if data is unacknowledged for N ms", |d, v| {
        let timeout = milliseconds(v, 0, Number::SND_TIMEOUT)?;
        d.settings.common.snd_timeout = Some(timeout).filter(|timeout| *timeout > Span::default());
        Ok(())
    })
    .value("MS"),
    Opt::both("cntl-ka", "keep-alive of the control connection, s/s/count", |d, v| {
        d.settings.common.control_keep_alive = Some(keep_alive(v)?);
        Ok(())
    })
    .perhaps("IDLE/INTERVAL/COUNT"),
    Opt::both("mptcp", "Multipath TCP (a server always accepts it)", |d, _| {
        d.settings.client.mptcp = true;
        Ok(())
    })
    .short('m'),
    Opt::both("debug", "messages for developers, level 1 to 4", |d, v| {
        let level = u8::try_from(leading_int(v)).ok().filter(|level| (1..=4).contains(level));
        d.settings.common.debug = Some(level.unwrap_or(4));
        Ok(())
    })
    .short('d')
    .perhaps("LEVEL"),
    Opt::both("version", "print version and system", nothing).short('v'),
    Opt::both("help", "print this", nothing).short('h'),
    Opt::both("version4", "only IPv4", |d, _| {
        d.settings.common.family = Some(Family::V4);
        Ok(())
    })
    .short('4'),
    Opt::both("version6", "only IPv6", |d, _| {
        d.settings.common.family = Some(Family::V6);
        Ok(())
    })
    .short('6'),
    Opt::both("xbind", "SCTP only, not supported by this program", |_, _| {
        Err(Iperf3Error::new(Number::NO_SCTP))
    })
    .short('X')
    .value("NAME"),
    Opt::both("use-pkcs1-padding", "encrypt passwords like iperf3 before 3.17", |d, _| {
        d.settings.common.pkcs1_padding = true;
        Ok(())
    }),
];
