//! iperf 2's command line.

mod values;

use std::net::IpAddr;

use linerate_units::Span;

use super::numbers::{bits_of_bits_or_bytes, quantity};
use super::option_table::{self, Iperf2Spelling, Iperf2Value};
use super::settings::{Iperf2Amount, Iperf2Input, Iperf2Mode, Iperf2Rate, Iperf2Settings, MAX_TIME};
use super::wire::BURST_BYTES;
use crate::option_table::OptionSupport;
use values::{epoch_time, format, interval, rate, seconds};

/// A command line that starts no test: what to print, where, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf2EarlyExit {
    /// The complete text.
    pub text: String,
    /// Whether it is printed on standard output.
    pub to_stdout: bool,
    /// The exit code.
    pub code: i32,
}

/// Number of connections with --connect-only.
const DEFAULT_CONNECTS: u32 = 10;

/// Most connections of a client.
const MAX_CONNECTIONS: u64 = 1000;

/// Most TCP connections with stamped buffers.
const MAX_STAMPED_CONNECTIONS: u32 = 128;

/// Options that a server does not use.
const CLIENT_ONLY: &[&str] = &[
    "num",
    "listenport",
    "fq-rate",
    "local-only",
    "txdelay-time",
    "txstart-time",
    "connect-only",
    "connect-retries",
    "incr-dstip",
    "incr-dstport",
    "incr-srcip",
    "fileinput",
    "stdin",
    "no-udp-fin",
    "peer-detect",
];

/// Parses the arguments after the program's name.
///
/// # Errors
/// What the tool prints instead of starting a test.
pub fn parse(arguments: &[String]) -> Result<Iperf2Settings, Iperf2EarlyExit> {
    let mut settings = Iperf2Settings::default();
    let mut used = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-v" | "--version" => return Err(version()),
            "-h" | "--help" => {
                return Err(Iperf2EarlyExit { text: option_table::help(), to_stdout: false, code: 1 });
            }
            _ => {}
        }
        if let Some(name) = argument.strip_prefix("--").filter(|name| !name.is_empty()) {
            let (name, attached) =
                name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            let found = option_table::long(&format!("--{name}")).ok_or_else(|| unknown(argument))?;
            let value = match (found.value, attached) {
                (Iperf2Value::Required, None) => {
                    Some(arguments.next().ok_or_else(|| missing_long(found.name))?.as_str())
                }
                (Iperf2Value::Required | Iperf2Value::Optional, value) => value,
                (Iperf2Value::Absent, _) => None,
            };
            used.push(key(found));
            carry_out(&mut settings, found, value)?;
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            short_options(&mut settings, letters, &mut arguments, &mut used)?;
        } else {
            settings.warnings.push_str(&format!("iperf: ignoring extra argument -- {argument}\n"));
        }
    }
    if settings.input.is_some() && !used.iter().any(|name| ["num", "time"].contains(name)) {
        // Until the end of the input.
        settings.amount = Iperf2Amount::Time(MAX_TIME);
    }
    if settings.server {
        for name in used.iter().filter(|name| CLIENT_ONLY.contains(name)) {
            settings.warnings.push_str(&format!("WARNING: option --{name} is not valid for server mode\n"));
        }
    }
    checked(settings)
}

/// The long name of an option, or its letter.
fn key(found: Iperf2Spelling) -> &'static str {
    let mut names = found.option.names();
    let first = names.next().unwrap_or(found.name);
    names.next().unwrap_or(first).trim_start_matches('-')
}

/// Applies an option, or refuses it by name.
fn carry_out(
    settings: &mut Iperf2Settings,
    found: Iperf2Spelling,
    value: Option<&str>,
) -> Result<(), Iperf2EarlyExit> {
    match (found.option.support, key(found)) {
        (OptionSupport::Refused, _) => {
            Err(usage_error(&format!("{} is not supported: {}", found.name, found.option.remark)))
        }
        (OptionSupport::NoEffect, _) => Ok(()),
        (OptionSupport::Acts, name) => apply(settings, name, value),
    }
}

fn short_options<'a>(
    settings: &mut Iperf2Settings,
    letters: &str,
    arguments: &mut impl Iterator<Item = &'a String>,
    used: &mut Vec<&'static str>,
) -> Result<(), Iperf2EarlyExit> {
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let found = option_table::short(letter).ok_or_else(|| unknown(&format!("-{letter}")))?;
        used.push(key(found));
        if found.value != Iperf2Value::Required {
            carry_out(settings, found, None)?;
            continue;
        }
        let attached = rest.as_str();
        let value =
            if attached.is_empty() { arguments.next().ok_or_else(|| missing(letter))? } else { attached };
        return carry_out(settings, found, Some(value));
    }
    Ok(())
}

/// Applies one option.
fn apply(settings: &mut Iperf2Settings, name: &str, given: Option<&str>) -> Result<(), Iperf2EarlyExit> {
    let value = given.unwrap_or("");
    match name {
        "server" => settings.server = true,
        "client" => settings.host = Some(value.to_owned()),
        "udp" | "single_udp" => settings.udp = true,
        "compatibility" => settings.compatible = true,
        "dualtest" => one_direction(settings, Iperf2Mode::Dual)?,
        "tradeoff" => one_direction(settings, Iperf2Mode::Tradeoff)?,
        "reverse" => one_direction(settings, Iperf2Mode::Reverse)?,
        "full-duplex" => one_direction(settings, Iperf2Mode::FullDuplex)?,
        "enhanced" => settings.enhanced = true,
        "ipv6_domain" => settings.ipv6 = true,
        "4" => settings.ipv4 = true,
        "no-udp-fin" => settings.no_udp_fin = true,
        "nodelay" => settings.no_delay = true,
        "peer-detect" => settings.peer_detect = true,
        "print_mss" => settings.print_mss = true,
        "singleclient" => settings.single = true,
        "sum-only" => settings.sum_only = true,
        "hide-ips" => settings.hide_ips = true,
        "local-only" => settings.local_only = given != Some("0"),
        "incr-dstip" => settings.increments.to = true,
        "incr-dstport" => settings.increments.to_port = true,
        "incr-srcip" => settings.increments.from = true,
        "stdin" => settings.input = Some(Iperf2Input::Standard),
        "fileinput" => settings.input = Some(Iperf2Input::File(value.to_owned())),
        "realtime" => settings.realtime = true,
        "daemon" => settings.daemon = true,
        "trip-times" => settings.trip_times = true,
        "reportexclude" => settings.exclude = value.to_ascii_uppercase(),
        "reportstyle" => settings.csv = value.starts_with(['c', 'C']),
        "tcp-congestion" => settings.congestion = Some(value.to_owned()),
        "output" => settings.output = Some(value.to_owned()),
        "format" => settings.format = format(value)?,
        "bandwidth" => settings.rate = Some(rate(value)?),
        "bind" => bind(settings, value)?,
        "tos" => settings.tos = Some(tos(value)?),
        "connect-only" => {
            let count = given.map_or(Some(DEFAULT_CONNECTS), |count| count.parse().ok());
            settings.connect_only = Some(
                count.ok_or_else(|| usage_error(&format!("invalid value for --connect-only: {value}")))?,
            );
        }
        _ => return numeric(settings, name, value),
    }
    Ok(())
}

/// Sets a mode of two-way tests; only one is allowed.
fn one_direction(settings: &mut Iperf2Settings, mode: Iperf2Mode) -> Result<(), Iperf2EarlyExit> {
    if settings.mode != Iperf2Mode::Plain && settings.mode != mode {
        return Err(error("ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive"));
    }
    settings.mode = mode;
    Ok(())
}

/// Applies an option with a numeric value.
fn numeric(settings: &mut Iperf2Settings, name: &str, value: &str) -> Result<(), Iperf2EarlyExit> {
    let number = |range: std::ops::RangeInclusive<u64>| {
        quantity(value).filter(|number| range.contains(number)).ok_or_else(|| {
            usage_error(&format!(
                "invalid value for --{name}: {value}; give {} to {}",
                range.start(),
                range.end()
            ))
        })
    };
    match name {
        "port" if value.contains('-') => {
            return Err(usage_error(
                "a range of ports for -p is not supported; start a server for each port",
            ));
        }
        "port" => settings.port = number(1..=65_535)? as u16,
        "listenport" => settings.listen_port = Some(number(1..=65_535)? as u16),
        "len" => settings.length = Some(number(1..=64 << 20)? as u32),
        "window" => settings.window = Some(number(1..=1 << 30)?),
        "mss" => settings.mss = Some(number(88..=32_767)? as u32),
        "num" => {
            let bytes = number(1..=1 << 60)
                .map_err(|_| error(&format!("Invalid value for -n amount of '{value}'")))?;
            settings.amount = Iperf2Amount::Bytes(bytes);
        }
        "parallel" => settings.parallel = Some(number(1..=MAX_CONNECTIONS)? as u32),
        "ttl" => settings.ttl = Some(number(1..=255)? as u8),
        "connect-retries" => settings.connect_retries = number(0..=1_000_000)? as u32,
        "txdelay-time" => settings.start_delay = seconds(name, value)?.filter(|delay| *delay > Span::ZERO),
        "txstart-time" => {
            settings.start_at = Some(epoch_time(value).ok_or_else(|| {
                usage_error(&format!("invalid value for --txstart-time: {value}; give seconds since 1970"))
            })?);
        }
        "fq-rate" => {
            // The header has whole bytes per second.
            let rate = bits_of_bits_or_bytes(value).filter(|bits| *bits >= 8);
            settings.fq_rate = Some(rate.ok_or_else(|| {
                usage_error(&format!("invalid value for --fq-rate: {value}; give 8 bits per second or more"))
            })?);
        }
        "interval" => interval(settings, value)?,
        _ => {
            let time = seconds(name, value)?.filter(|time| *time > Span::ZERO);
            settings.listen_for = time;
            settings.amount = Iperf2Amount::Time(time.unwrap_or(MAX_TIME));
        }
    }
    Ok(())
}

/// Parses address, address:port or [address]:port, each with an optional %device, or %device alone.
fn bind(settings: &mut Iperf2Settings, value: &str) -> Result<(), Iperf2EarlyExit> {
    let (value, device) = match value.split_once('%') {
        Some((address, device)) => (address, Some(device.to_owned())),
        None => (value, None),
    };
    settings.device = device;
    if value.is_empty() {
        return Ok(());
    }
    if let Ok(address) = value.parse::<IpAddr>() {
        settings.bind = Some(address);
    } else if let Ok(address) = value.parse::<std::net::SocketAddr>() {
        settings.bind = Some(address.ip());
        settings.bind_port = Some(address.port());
    } else {
        return Err(usage_error(&format!("invalid address {value} to bind to; give an IP address")));
    }
    Ok(())
}

/// Parses a decimal, octal or hexadecimal number, or a name.
fn tos(value: &str) -> Result<u8, Iperf2EarlyExit> {
    crate::tos::byte(value)
        .ok_or_else(|| usage_error(&format!("invalid --tos {value}; give 0 to 255 or a name as af41")))
}

/// Checks the combination of the options.
fn checked(mut settings: Iperf2Settings) -> Result<Iperf2Settings, Iperf2EarlyExit> {
    if settings.server == settings.host.is_some() {
        return Err(Iperf2EarlyExit { text: usage().to_owned(), to_stdout: false, code: 0 });
    }
    if settings.ipv4 && settings.ipv6 {
        // 2.1.8 then takes the first address of the host.
        settings.warnings.push_str("WARN: both ipv4 and ipv6 set\n");
        (settings.ipv4, settings.ipv6) = (false, false);
    }
    let length = settings.length_for(settings.udp);
    if settings.udp && !settings.server && !(18..=65_507).contains(&length) {
        return Err(usage_error("a datagram needs 18 to 65507 bytes: change -l"));
    }
    checked_ways(&mut settings)?;
    if settings.server {
        if settings.rate.is_some() {
            return Err(usage_error("-b at a server, a limit of its reads, is not supported"));
        }
        return Ok(settings);
    }
    checked_client(&mut settings)?;
    if let Some(Iperf2Rate::Bits(bits)) = settings.rate.filter(|_| !settings.udp) {
        let most = bits / 8;
        if most < u64::from(length) {
            return Err(error(&format!(
                "ERROR: option -b and -l of {length} are incompatible, consider setting -l to {most} or lower"
            )));
        }
    }
    if settings.trip_times && !settings.udp {
        // 2.1.8 accepts less, and its server then waits forever.
        if length < BURST_BYTES as u32 {
            return Err(usage_error("--trip-times over TCP needs -l 92 or more"));
        }
        if settings.parallel.is_some_and(|flows| flows > MAX_STAMPED_CONNECTIONS) {
            return Err(usage_error("--trip-times over TCP takes -P 128 at most"));
        }
    }
    Ok(settings)
}

/// Checks the options of a client that do not go together.
fn checked_client(settings: &mut Iperf2Settings) -> Result<(), Iperf2EarlyExit> {
    if settings.daemon {
        let text = "Iperf client cannot be run as a daemon\n".to_owned();
        return Err(Iperf2EarlyExit { text, to_stdout: false, code: 0 });
    }
    if settings.single {
        settings.warnings.push_str("WARNING: option -1 is not valid for client mode\n");
    }
    if !settings.udp && matches!(settings.rate, Some(Iperf2Rate::Packets(_))) {
        return Err(error("ERROR: units of pps not supported with TCP"));
    }
    if settings.congestion.is_some() && settings.mode == Iperf2Mode::Reverse {
        return Err(error("ERROR: tcp congestion control -Z and --reverse cannot be applied together"));
    }
    let delayed = settings.start_at.is_some() || settings.start_delay.is_some();
    if delayed && settings.mode != Iperf2Mode::Plain {
        return Err(usage_error(
            "--txstart-time and --txdelay-time are not supported with -d, -r, -R and --full-duplex",
        ));
    }
    // The tool shows more columns then.
    settings.enhanced |= settings.start_at.is_some();
    if settings.increments.to && settings.host.as_ref().is_none_or(|host| host.parse::<IpAddr>().is_err()) {
        return Err(usage_error("--incr-dstip needs the IP address of the host after -c"));
    }
    if settings.increments.from && settings.bind.is_none() {
        return Err(usage_error("--incr-srcip needs -B with the first address"));
    }
    if settings.connect_only.is_some() && settings.udp {
        return Err(usage_error("--connect-only is about TCP: leave out -u"));
    }
    let plain = !settings.udp && settings.mode == Iperf2Mode::Plain && settings.parallel.unwrap_or(1) == 1;
    if settings.input.is_some() && (!plain || settings.trip_times || settings.rate.is_some()) {
        return Err(usage_error(
            "-F and -I send over one TCP connection: leave out -u, -P, -b, -d, -r, -R and --trip-times",
        ));
    }
    Ok(())
}

/// Checks the modes of two-way tests, and applies their consequences.
fn checked_ways(settings: &mut Iperf2Settings) -> Result<(), Iperf2EarlyExit> {
    let two_way = matches!(settings.mode, Iperf2Mode::Reverse | Iperf2Mode::FullDuplex);
    if settings.compatible && (two_way || settings.peer_detect || settings.trip_times) {
        return Err(error("ERROR: compatibility mode not supported with the requested with options"));
    }
    if settings.server {
        let warning = match settings.mode {
            Iperf2Mode::Plain => "",
            Iperf2Mode::Dual => "WARNING: option -d is not valid for server mode\n",
            Iperf2Mode::Tradeoff => "WARNING: option -r is not valid for server mode\n",
            Iperf2Mode::Reverse => "WARN: option of --reverse is not supported on the server\n",
            Iperf2Mode::FullDuplex => "WARN: option of --full-duplex is not supported on the server\n",
        };
        settings.warnings.push_str(warning);
        settings.mode = Iperf2Mode::Plain;
    } else if settings.trip_times && two_way {
        // The receiver prints delays.
        settings.enhanced = true;
    }
    Ok(())
}

fn unknown(option: &str) -> Iperf2EarlyExit {
    let what = if option.starts_with("--") {
        format!("unrecognized option `{option}'")
    } else {
        format!("invalid option -- {}", option.trim_start_matches('-'))
    };
    Iperf2EarlyExit { text: format!("iperf: {what}\n{}", usage()), to_stdout: false, code: 0 }
}

fn missing(letter: char) -> Iperf2EarlyExit {
    let text = format!("iperf: option requires an argument -- {letter}\n{}", usage());
    Iperf2EarlyExit { text, to_stdout: false, code: 0 }
}

fn missing_long(name: &str) -> Iperf2EarlyExit {
    let text = format!("iperf: option `{name}' requires an argument\n{}", usage());
    Iperf2EarlyExit { text, to_stdout: false, code: 0 }
}

/// A refusal with the text of 2.1.8.
fn error(text: &str) -> Iperf2EarlyExit {
    Iperf2EarlyExit { text: format!("{text}\n"), to_stdout: false, code: 1 }
}

fn usage_error(what: &str) -> Iperf2EarlyExit {
    Iperf2EarlyExit { text: format!("iperf: {what}\n"), to_stdout: false, code: 1 }
}

fn version() -> Iperf2EarlyExit {
    let text = format!("iperf version 2.1.8 (linerate {})\n", env!("CARGO_PKG_VERSION"));
    Iperf2EarlyExit { text, to_stdout: false, code: 1 }
}

const fn usage() -> &'static str {
    "Usage: iperf [-s|-c host] [options]\nTry `iperf --help' for more information.\n"
}
