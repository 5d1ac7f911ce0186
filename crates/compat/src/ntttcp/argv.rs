//! The command line of NTttcp for Linux 1.4.3.

use std::ffi::OsString;

use lexopt::{Arg, Parser};
use linerate_units::Bitrate;

use super::options::{NtttcpOptions, NtttcpRole};

/// Most connections of one sender.
const MAX_STREAMS: u32 = 16_000;

/// Most data ports.
const MAX_PORTS: u16 = 512;

/// Most threads of a sender per port.
const MAX_THREADS: u16 = 25_600;

/// Most connections per thread.
const MAX_CONNECTIONS: u16 = 1000;

/// A command line that ends the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NtttcpEarlyExit {
    /// Text for standard output.
    pub output: String,
    /// Text for standard error.
    pub error: String,
    /// Exit code.
    pub code: i32,
}

const BAD: i32 = 255;
const HELP: i32 = 23;

const USAGE: &str = "\
Usage: ntttcp [-r[ADDRESS] | -s[ADDRESS]] [OPTIONS]

  -r [ADDRESS]               receive; listen on this address
  -s [ADDRESS]               send to this address [this host]
  -m N,CPU,ADDRESS           N ports with one thread each, on this CPU (* for any), to this address
  -P N                       number of data ports [16]
  -n N                       sender: threads per port [4]
  -l N                       sender: connections per thread [1]
  -p PORT                    first data port [5001]; the one below is for the sync connection
  -f [PORT]                  sender: source ports from this one on [25001]
  -a ADDRESS                 sender: source address
  -t SECONDS                 measured time [60]; 0 for no limit
  -W, -C SECONDS             warm-up before and cool-down after the measured time
  -b BYTES                   bytes of a read or write (K, M, G are binary)
  -B RATE                    sender: bit rate of all connections together (K, M, G are decimal)
  -u                         datagrams
  -6                         IPv6
  -N                         no sync connection, on both sides
  -M / -L                    receiver: wait for several senders / sender: this is the last one
  -H                         receiver: start again after each test
  -e                         receiver: use epoll (always used)
  -V, -Q                     more output, or none during the test
  -x, -j, -O [FILE]          save the result as XML or JSON, or the console output
                             [ntttcp-for-linux-log.xml, .json, .log]
      --no-delay, --fq-rate-limit RATE
      --show-tcp-retrans, --show-nic-packets INTERFACE, --show-dev-interrupts NAME
      --windows              as the first option: protocol and options of NTttcp for Windows
";

/// The long options of versions before 1.4, and the letters that they stand for.
const LONG_NAMES: [(&str, &str); 25] = [
    ("receiver", "r"),
    ("sender", "s"),
    ("daemon", "D"),
    ("multi-clients", "M"),
    ("last-client", "L"),
    ("epoll", "e"),
    ("hold", "H"),
    ("mapping", "m"),
    ("nports", "P"),
    ("nthread", "n"),
    ("nconnections", "l"),
    ("ipv6", "6"),
    ("udp", "u"),
    ("base-dst-port", "p"),
    ("base-src-port", "f"),
    ("buffer", "b"),
    ("warmup", "W"),
    ("duration", "t"),
    ("cooldown", "C"),
    ("no-synch", "N"),
    ("save-xml", "x"),
    ("verbose", "V"),
    ("help", "h"),
    ("show-retrans", "R"),
    ("show-tcp-retrans", "R"),
];

/// Parses the arguments after the program's name.
///
/// # Errors
/// The output and the exit code if the program does not start.
pub fn parse(arguments: &[OsString]) -> Result<NtttcpOptions, NtttcpEarlyExit> {
    if let Some((first, rest)) = arguments.split_first()
        && first == "--windows"
    {
        return super::windows::parse(rest);
    }
    let mut options = NtttcpOptions::default();
    let mut roles = Vec::new();
    let mut parser = Parser::from_args(arguments);
    loop {
        let argument = match parser.next() {
            Ok(None) => break,
            Ok(Some(argument)) => argument,
            Err(error) => return Err(wrong(&error.to_string())),
        };
        let name = match argument {
            Arg::Short(letter) => letter.to_string(),
            Arg::Long(name) => {
                let letter = LONG_NAMES.iter().find(|(long, _)| *long == name).map(|(_, letter)| *letter);
                letter.unwrap_or(name).to_owned()
            }
            Arg::Value(value) => {
                return Err(wrong(&format!("unexpected argument '{}'", value.to_string_lossy())));
            }
        };
        let role = match name.as_str() {
            "r" => Some(NtttcpRole::Receiver),
            "s" => Some(NtttcpRole::Sender),
            "h" => {
                return Err(NtttcpEarlyExit { output: USAGE.to_owned(), error: String::new(), code: HELP });
            }
            name if flag(name, &mut options) => continue,
            "f" => {
                let port = optional(&mut parser);
                options.source_port = Some(number(name.as_str(), port.as_deref().unwrap_or("25001"))?);
                continue;
            }
            "x" | "j" | "O" => {
                file(&name, optional(&mut parser), &mut options);
                continue;
            }
            _ => None,
        };
        if let Some(role) = role {
            roles.push(role);
            options.address = optional(&mut parser).or(options.address);
            continue;
        }
        let known = VALUED.contains(&name.as_str());
        let Some(value) = parser.value().ok().filter(|_| known) else {
            return Err(unknown(&name, known));
        };
        valued(&name, &value.to_string_lossy(), &mut options)?;
    }
    options.role = match roles.as_slice() {
        [] => {
            options.notes.push("no role specified. use receiver role".to_owned());
            NtttcpRole::Receiver
        }
        roles if roles.iter().any(|role| *role != roles[0]) => {
            return Err(wrong("both sender and receiver roles provided"));
        }
        roles => roles[0],
    };
    checked(options)
}

/// An option that NTttcp does not have, or one without its value.
fn unknown(name: &str, known: bool) -> NtttcpEarlyExit {
    let error = match (name.chars().count(), known) {
        (1, false) => format!("invalid option -- '{name}'"),
        (1, true) => format!("option requires an argument -- '{name}'"),
        (_, false) => format!("unrecognized option '--{name}'"),
        (_, true) => format!("option '--{name}' requires an argument"),
    };
    NtttcpEarlyExit { output: USAGE.to_owned(), error: format!("ntttcp: {error}\n"), code: HELP }
}

/// An optional value, in the same argument or the next.
fn optional(parser: &mut Parser) -> Option<String> {
    let glued = parser.optional_value();
    let value = glued.or_else(|| {
        let mut raw = parser.try_raw_args()?;
        let next = raw.peek()?.to_string_lossy().into_owned();
        if next.starts_with('-') || next.is_empty() { None } else { raw.next() }
    });
    value.map(|value| value.to_string_lossy().into_owned())
}

/// The file of `-x`, `-j` or `-O`.
fn file(name: &str, given: Option<String>, options: &mut NtttcpOptions) {
    let (kept, ending) = match name {
        "x" => (&mut options.xml, "xml"),
        "j" => (&mut options.json, "json"),
        _ => (&mut options.log, "log"),
    };
    *kept = Some(given.unwrap_or_else(|| format!("ntttcp-for-linux-log.{ending}")));
}

/// Handles options without a value; false if it is not one.
fn flag(name: &str, options: &mut NtttcpOptions) -> bool {
    match name {
        "N" => options.sync = false,
        "M" => options.many = true,
        "L" => options.last = true,
        "H" => options.again = true,
        "u" => options.udp = true,
        "6" => options.ipv6 = true,
        "V" => options.verbose = true,
        "Q" => options.quiet = true,
        "D" => options.daemon = true,
        // The engine always uses epoll.
        "e" => options.epoll = true,
        "no-delay" => options.no_delay = true,
        "R" => options.by_kind = true,
        _ => return false,
    }
    true
}

/// The options with a value.
const VALUED: [&str; 16] = [
    "m",
    "P",
    "n",
    "l",
    "p",
    "t",
    "W",
    "C",
    "b",
    "B",
    "a",
    "K",
    "I",
    "fq-rate-limit",
    "show-nic-packets",
    "show-dev-interrupts",
];

fn valued(name: &str, value: &str, options: &mut NtttcpOptions) -> Result<(), NtttcpEarlyExit> {
    let text = || Some(value.to_owned());
    match name {
        "m" => mapping(value, options)?,
        "P" => options.ports = count(name, value)?,
        "n" => options.threads = count(name, value)?,
        "l" => options.connections = count(name, value)?,
        "p" => options.base = number(name, value)?,
        "t" => options.seconds = number(name, value)?,
        "W" => options.omit = number(name, value)?,
        "C" => options.cooldown = number(name, value)?,
        "b" => options.length = Some(scaled(name, value, 1024.0)? as u64),
        "B" => options.rate = Bitrate::from_bps(scaled(name, value, 1000.0)?).filter(|rate| rate.bps() > 0.0),
        "fq-rate-limit" => options.fq_rate = Bitrate::from_bps(scaled(name, value, 1000.0)?),
        "a" => options.source = Some(number(name, value)?),
        "K" | "show-nic-packets" => options.interface = text(),
        "I" | "show-dev-interrupts" => options.interrupts = text(),
        _ => return Err(unknown(name, false)),
    }
    Ok(())
}

/// `threads,cpu,address`.
fn mapping(value: &str, options: &mut NtttcpOptions) -> Result<(), NtttcpEarlyExit> {
    let mut fields = value.split(',');
    let (Some(threads), Some(cpu), Some(address), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(wrong(&format!("-m takes threads,cpu,address, not '{value}'")));
    };
    options.ports = count("m", threads)?;
    options.threads = 1;
    options.affinity = if cpu == "*" { None } else { Some(number("m", cpu)?) };
    options.address = Some(address.to_owned());
    Ok(())
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, NtttcpEarlyExit> {
    value.parse().map_err(|_| wrong(&format!("'{value}' is not a value for -{name}")))
}

/// Parses a number of ports, threads or connections. One that is out of range stays out of range, and is limited
/// later.
fn count(name: &str, value: &str) -> Result<u16, NtttcpEarlyExit> {
    let count: i64 = number(name, value)?;
    Ok(count.clamp(0, i64::from(u16::MAX)) as u16)
}

/// Parses a number with an optional K, M or G of this base.
fn scaled(name: &str, value: &str, base: f64) -> Result<f64, NtttcpEarlyExit> {
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = value.get(digits.len()..).unwrap_or_default().to_ascii_uppercase();
    let power = match unit.as_str() {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        _ => return Err(wrong(&format!("'{value}' is not a value for -{name}: units are K, M and G"))),
    };
    let count: f64 = number(name, digits)?;
    if !count.is_finite() || count < 0.0 {
        return Err(wrong(&format!("'{value}' is not a value for -{name}")));
    }
    Ok(count * base.powi(power))
}

/// Checks what belongs to one role only.
fn check_role(options: &mut NtttcpOptions) -> Result<(), NtttcpEarlyExit> {
    let sends = options.role == NtttcpRole::Sender;
    if options.daemon {
        return Err(wrong("-D is not supported: start it in the background, as by `setsid ntttcp ... &`"));
    }
    if sends && options.many {
        return Err(wrong("multi-clients mode ('-M') is only for receiver role"));
    }
    if !sends && options.last {
        return Err(wrong("last-client ('-L') is only for sender role"));
    }
    if !sends && options.source.is_some() {
        return Err(wrong("source interface address ('-a') is only for sender or client"));
    }
    if options.udp && options.no_delay {
        return Err(wrong("--no-delay option is not applicable for UDP"));
    }
    limit_counts(options);
    // What the tool ignores as well.
    if sends {
        (options.again, options.epoll) = (false, false);
        for (name, rate) in [("-B", options.rate), ("--fq-rate-limit", options.fq_rate)] {
            let text = format!("Warning! '{name}' is specified and the network bandwidth may be limited");
            options.notes.extend(rate.map(|_| text));
        }
        if options.rate.is_some() && options.fq_rate.take().is_some() {
            options.notes.push("ignore '--fq-rate-limit' as '-B' is specified".to_owned());
        }
    } else {
        (options.rate, options.fq_rate, options.source_port) = (None, None, None);
    }
    if options.seconds == 0 {
        let text = "running test in continuous mode. please monitor throughput by other tools";
        options.notes.push(text.to_owned());
    }
    Ok(())
}

/// Replaces numbers out of range by the nearest one in range, with the tool's notes. A receiver ignores threads and
/// connections.
fn limit_counts(options: &mut NtttcpOptions) {
    let sends = options.role == NtttcpRole::Sender;
    let mut counts = [
        (&mut options.ports, MAX_PORTS, "number-of-server-ports", true),
        (&mut options.threads, MAX_THREADS, "threads-per-server-port", sends),
        (&mut options.connections, MAX_CONNECTIONS, "connections-per-thread", sends),
    ];
    for (count, most, name, used) in &mut counts {
        if *used && **count > *most {
            options.notes.push(format!("too many {name}. use the max value"));
            **count = *most;
        }
    }
    for (count, _, name, used) in &mut counts {
        if *used && **count < 1 {
            options.notes.push(format!("invalid {name} provided. use 1"));
            **count = 1;
        }
    }
}

fn checked(mut options: NtttcpOptions) -> Result<NtttcpOptions, NtttcpEarlyExit> {
    check_role(&mut options)?;
    let streams = u64::from(options.ports) * u64::from(options.threads) * u64::from(options.connections);
    if options.role == NtttcpRole::Sender && streams > u64::from(MAX_STREAMS) {
        return Err(wrong(&format!("{streams} connections are more than {MAX_STREAMS}")));
    }
    if options.base < 2 || options.base.checked_add(options.ports - 1).is_none() {
        return Err(wrong(&format!("the {} ports from {} on exceed 65535", options.ports, options.base)));
    }
    if options.role == NtttcpRole::Sender {
        // A connection to the unspecified address reaches this host.
        let any = if options.ipv6 { "::" } else { "0.0.0.0" };
        options.address.get_or_insert_with(|| any.to_owned());
    }
    let longest = [options.seconds, options.omit, options.cooldown].into_iter().max();
    if longest.is_some_and(|seconds| seconds > 1 << 28) {
        return Err(wrong("the test time is limited to eight years"));
    }
    Ok(options)
}

pub(super) fn wrong(text: &str) -> NtttcpEarlyExit {
    NtttcpEarlyExit { output: String::new(), error: format!("ntttcp: {text}\n"), code: BAD }
}
