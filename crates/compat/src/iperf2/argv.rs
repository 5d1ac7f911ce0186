//! iperf 2's command line.

use std::net::IpAddr;

use linerate_units::Span;

use super::numbers::quantity;
use super::settings::{Iperf2Amount, Iperf2Format, Iperf2Mode, Iperf2Rate, Iperf2Settings};
use super::wire::BURST_BYTES;

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

/// Most connections of a client.
const MAX_CONNECTIONS: u64 = 1000;

/// Most TCP connections with stamped buffers.
const MAX_STAMPED_CONNECTIONS: u32 = 128;

/// Short and long names, and whether the option has a value.
const OPTIONS: &[(char, &str, bool)] = &[
    ('b', "bandwidth", true),
    ('B', "bind", true),
    ('c', "client", true),
    ('C', "compatibility", false),
    ('D', "daemon", false),
    ('d', "dualtest", false),
    ('e', "enhanced", false),
    ('f', "format", true),
    (' ', "fq-rate", true),
    (' ', "full-duplex", false),
    ('h', "help", false),
    ('i', "interval", true),
    ('V', "ipv6_domain", false),
    ('l', "len", true),
    ('L', "listenport", true),
    ('M', "mss", true),
    (' ', "no-udp-fin", false),
    ('N', "nodelay", false),
    ('n', "num", true),
    ('o', "output", true),
    ('P', "parallel", true),
    ('X', "peer-detect", false),
    ('p', "port", true),
    ('m', "print_mss", false),
    ('x', "reportexclude", true),
    ('y', "reportstyle", true),
    ('R', "reverse", false),
    ('s', "server", false),
    ('1', "singleclient", false),
    ('U', "single_udp", false),
    (' ', "sum-only", false),
    ('Z', "tcp-congestion", true),
    ('t', "time", true),
    ('S', "tos", true),
    ('r', "tradeoff", false),
    (' ', "trip-times", false),
    ('T', "ttl", true),
    ('u', "udp", false),
    ('v', "version", false),
    ('w', "window", true),
    ('z', "realtime", false),
];

/// Parses the arguments after the program's name.
///
/// # Errors
/// What the tool prints instead of starting a test.
pub fn parse(arguments: &[String]) -> Result<Iperf2Settings, Iperf2EarlyExit> {
    let mut settings = Iperf2Settings::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let (name, takes) = long_option(name).ok_or_else(|| unknown(argument))?;
            let value = match (takes, value) {
                (true, None) => Some(arguments.next().ok_or_else(|| missing_long(name))?.as_str()),
                (true, value) => value,
                (false, _) => None,
            };
            apply(&mut settings, name, value.unwrap_or(""))?;
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            short_options(&mut settings, letters, &mut arguments)?;
        } else {
            settings.warnings.push_str(&format!("iperf: ignoring extra argument -- {argument}\n"));
        }
    }
    checked(settings)
}

/// Finds a long option by its full name or an unambiguous prefix.
fn long_option(name: &str) -> Option<(&'static str, bool)> {
    let exact = OPTIONS.iter().find(|(_, long, _)| *long == name);
    let mut begun = OPTIONS.iter().filter(|(_, long, _)| long.starts_with(name));
    let found = exact.or_else(|| begun.next().filter(|_| begun.next().is_none()))?;
    Some((found.1, found.2))
}

fn short_options<'a>(
    settings: &mut Iperf2Settings,
    letters: &str,
    arguments: &mut impl Iterator<Item = &'a String>,
) -> Result<(), Iperf2EarlyExit> {
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let found = OPTIONS.iter().find(|(short, ..)| *short == letter && letter != ' ');
        let Some((_, name, takes)) = found else { return Err(unknown(&format!("-{letter}"))) };
        if !takes {
            apply(settings, name, "")?;
            continue;
        }
        let attached = rest.as_str();
        let value =
            if attached.is_empty() { arguments.next().ok_or_else(|| missing(letter))? } else { attached };
        return apply(settings, name, value);
    }
    Ok(())
}

/// Applies one option.
fn apply(settings: &mut Iperf2Settings, name: &str, value: &str) -> Result<(), Iperf2EarlyExit> {
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
        "no-udp-fin" => settings.no_udp_fin = true,
        "nodelay" => settings.no_delay = true,
        "peer-detect" => settings.peer_detect = true,
        "print_mss" => settings.print_mss = true,
        "singleclient" => settings.single = true,
        "sum-only" => settings.sum_only = true,
        "trip-times" => settings.trip_times = true,
        "reportexclude" => settings.exclude = value.to_ascii_uppercase(),
        "reportstyle" => settings.csv = value.starts_with(['c', 'C']),
        "tcp-congestion" => settings.congestion = Some(value.to_owned()),
        "output" => settings.output = Some(value.to_owned()),
        "format" => settings.format = format(value)?,
        "bandwidth" => settings.rate = Some(rate(value)?),
        "bind" => bind(settings, value)?,
        "tos" => settings.tos = Some(tos(value)?),
        "version" => return Err(version()),
        "help" => return Err(Iperf2EarlyExit { text: help(), to_stdout: false, code: 1 }),
        // The process stays in the foreground; shells and service managers can run it in the background.
        "daemon" | "realtime" | "ttl" => {}
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
        "port" => settings.port = number(1..=65_535)? as u16,
        "listenport" => settings.listen_port = Some(number(1..=65_535)? as u16),
        "len" => settings.length = Some(number(1..=64 << 20)? as u32),
        "window" => settings.window = Some(number(1..=1 << 30)?),
        "mss" => settings.mss = Some(number(88..=65_495)? as u32),
        "num" => {
            let bytes = number(1..=1 << 60)
                .map_err(|_| error(&format!("Invalid value for -n amount of '{value}'")))?;
            settings.amount = Iperf2Amount::Bytes(bytes);
        }
        "parallel" => settings.parallel = Some(number(1..=MAX_CONNECTIONS)? as u32),
        "fq-rate" => settings.fq_rate = Some(number(8..=1 << 55)?),
        "interval" => settings.interval = seconds(name, value)?.filter(|span| *span > Span::ZERO),
        _ => {
            let time = seconds(name, value)?.filter(|time| *time > Span::ZERO);
            settings.listen_for = time;
            settings.amount = Iperf2Amount::Time(time.unwrap_or(Span::from_secs(86_400)));
        }
    }
    Ok(())
}

/// Parses seconds with a fraction, up to one day.
fn seconds(name: &str, value: &str) -> Result<Option<Span>, Iperf2EarlyExit> {
    let span = value.parse::<f64>().ok().filter(|seconds| *seconds <= 86_400.0).and_then(Span::from_secs_f64);
    let short = span.is_some_and(|span| span > Span::ZERO && span < Span::from_ms(5));
    if value.parse::<f64>().is_err() {
        return Err(error(&match name {
            "interval" => format!("Invalid value of '{value}' for -i interval"),
            _ => format!("ERROR: -t value of '{value}' not recognized"),
        }));
    }
    match span {
        Some(span) if !short => Ok(Some(span)),
        _ => Err(usage_error(&format!("invalid value for --{name}: {value}; give 0.005 to 86400 seconds"))),
    }
}

fn format(value: &str) -> Result<Iperf2Format, Iperf2EarlyExit> {
    Ok(match value {
        "a" => Iperf2Format::AdaptiveBits,
        "A" => Iperf2Format::AdaptiveBytes,
        "b" => Iperf2Format::Bits(0),
        "k" => Iperf2Format::Bits(1),
        "m" => Iperf2Format::Bits(2),
        "g" => Iperf2Format::Bits(3),
        "B" => Iperf2Format::Bytes(0),
        "K" => Iperf2Format::Bytes(1),
        "M" => Iperf2Format::Bytes(2),
        "G" => Iperf2Format::Bytes(3),
        _ => return Err(usage_error(&format!("invalid format {value}; give k, m, g, a, K, M, G or A"))),
    })
}

fn rate(value: &str) -> Result<Iperf2Rate, Iperf2EarlyExit> {
    let wrong = || usage_error(&format!("invalid rate {value}; give bits per second as 10m, or 500pps"));
    // A standard deviation after a comma is for variable rates, which this client does not support.
    let value = value.split(',').next().unwrap_or(value);
    let rate = match value.strip_suffix("pps") {
        Some(packets) => Iperf2Rate::Packets(quantity(packets).ok_or_else(wrong)?),
        None => Iperf2Rate::Bits(quantity(value).ok_or_else(wrong)?),
    };
    match rate {
        Iperf2Rate::Bits(0) | Iperf2Rate::Packets(0) => Err(wrong()),
        rate => Ok(rate),
    }
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
    let length = settings.length_for(settings.udp);
    if settings.udp && !settings.server && !(18..=65_507).contains(&length) {
        return Err(usage_error("a datagram needs 18 to 65507 bytes: change -l"));
    }
    checked_ways(&mut settings)?;
    if settings.server {
        return Ok(settings);
    }
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
    let text = format!("iperf: option `--{name}' requires an argument\n{}", usage());
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

/// The help text, with one option per line.
fn help() -> String {
    let mut text =
        "Usage: iperf [-s|-c host] [options]\n       iperf [-h|--help] [-v|--version]\n\n".to_owned();
    for (short, long, takes) in OPTIONS {
        let short = if *short == ' ' { "    ".to_owned() } else { format!("-{short}, ") };
        let value = if *takes { " VALUE" } else { "" };
        text.push_str(&format!("  {short}--{long}{value}\n"));
    }
    text.push_str("\nk, m, g are decimal, K, M, G binary; the manual of iperf 2.1.8 applies.\n");
    text
}
