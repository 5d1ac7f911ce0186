//! netperf's command line: the options before `--`.

use linerate_units::Span;

use super::getopt::{Getopt, GetoptOption};
use super::test_options;
use super::values::{both, family, local, number, separate, size};
use crate::netperf::option_table as table;
use crate::netperf::options::{
    BurstPace, Iterations, Length, NetperfClientOptions, NetperfEnds, NetperfFamily, NetperfTestName, Pair,
    Unit,
};
use crate::netperf::wire::{DataRoles, NetperfProtocol};
use crate::netperf::{VERSION, selectors};
use crate::option_table::{self, ToolOption};
use crate::tos;

/// Most bytes of a fill file that are read: the longest write.
const MAX_FILL: usize = 8 << 20;

/// Most iterations, as in netperf.
const ITERATIONS: std::ops::RangeInclusive<u32> = 3..=30;

/// Longest interval and longest wait.
const LONGEST: f64 = 1e6;

/// Reads at most a given number of bytes of a file that the user named.
pub type ReadFile = dyn Fn(&str, usize) -> std::io::Result<Vec<u8>>;

/// What netperf knows of the host on which it runs.
pub struct NetperfSurroundings<'a> {
    /// Wall-clock time, from the Unix epoch.
    pub wall: Span,
    /// Random bits for the identifier of the test.
    pub seed: u128,
    /// Reads files.
    pub read: &'a ReadFile,
}

/// What a command line of netperf requests.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientCommand {
    /// Run a test.
    Test(Box<NetperfClientOptions>),
    /// Print a text on standard output and exit with this code.
    Print(String, i32),
    /// Print a text on standard error and exit with 1.
    Mistake(String),
}

pub(super) const USAGE: &str = "
Usage: netperf [options] -- [options of the test]

Options:
    -H host,family     measure to this host [localhost]
    -p port,local      its port [12865] and the local one of the control connection
    -L address,family  local address of the control connection, and of the data
    -4 -6              only IPv4, only IPv6
    -t test            TCP_STREAM, TCP_MAERTS, TCP_RR, TCP_CRR, UDP_STREAM, UDP_RR or omni
    -l length          seconds, or less than 0: bytes or transactions; 0: until interrupted [10]
    -D seconds         interim results; also negative
    -f unit            G M K B: bytes; g m k b: bits; x: transactions
    -v level           0, 1 or 2: how much is printed
    -P 0|1             without or with headings
    -c rate, -C rate   CPU time of this host, of the server; the rate is optional
    -i most,least      iterations until the result is known well enough
    -I level,width     its confidence, 95 or 99 percent, and the width of the interval in percent
    -r                 do not wait until the CPU time is known as well
    -s seconds         wait before the data
    -S                 probe idle data connections
    -Y local,remote    type of service
    -b messages, -w ms send in bursts, and the time between their starts (u, m, s)
    -F local,remote    files with which the buffers are filled
    -j                 keep the times of transactions
    -B text            a brand for the result
    -Z passphrase      what the server wants to hear
    -h -V              this text, the version

Options of the test:
    -m local,remote    bytes of a write
    -M remote,local    bytes of a read
    -s -S send,recv    socket buffers of this host, of the server
    -r ask,answer      bytes of a request and of a response
    -b requests        further requests that are under way
    -d direction       send, recv or rr (omni)
    -T protocol        tcp or udp (omni)
    -c                 a connection for each transaction (omni)
    -D                 no delay
    -K local,remote    congestion control
    -G bytes           segment size
    -e seconds         how long to wait for a response over UDP
    -R 0|1             whether routers may forward the data [UDP streams: 0, otherwise 1]
    -P local,remote    ports of the data
    -H -L -4 -6        as above, for the data
    -n                 a connected socket for UDP, which it is in any case
    -o -O -k selectors print these values: separated by commas, in columns, one a line
    -o ?               the names of all values
    -u text            identifier of the test
    -h                 this text

";

/// The letters of the options of netperf 2.7.0.
const LETTERS: &str = "A:a:b:B:CcdD:f:F:H:hi:I:jk:K:l:L:n:NO:o:P:p:rSs:t:T:v:VW:w:y:Y:Z:46";

/// An error of the command line.
pub(super) type Wrong = ClientCommand;

pub(super) fn wrong(text: &str) -> Wrong {
    ClientCommand::Mistake(format!("netperf: {text}\n"))
}

/// An option that netperf has and we do not.
pub(super) fn refused(option: char, table: &'static [ToolOption], place: &str) -> Option<Wrong> {
    let entry = option_table::refused(table, &format!("-{option}"))?;
    Some(wrong(&format!("-{option}{place} is not supported: {}", entry.remark)))
}

/// A value, or an error that says what the option takes.
pub(super) fn of<T>(option: &GetoptOption, what: &str, value: Option<T>) -> Result<T, Wrong> {
    value.ok_or_else(|| wrong(&format!("-{} takes {what}, not '{}'", option.letter, option.value)))
}

/// The host, the family and the address of an option `-H` or `-L`.
pub(super) fn remote(ends: &mut NetperfEnds, option: &GetoptOption) -> Result<(), Wrong> {
    let [host, version] = separate(&option.value);
    if let Some(host) = host {
        ends.host = Some(host.to_owned());
    }
    if let Some(version) = version {
        ends.family = of(option, "inet, inet6 or unspec as family", family(version))?;
    }
    Ok(())
}

pub(super) fn source(ends: &mut NetperfEnds, option: &GetoptOption) -> Result<(), Wrong> {
    let [address, version] = separate(&option.value);
    if let Some(address) = address {
        ends.local = of(option, "an IP address", local(address))?;
    }
    if let Some(version) = version {
        ends.local_family = of(option, "inet, inet6 or unspec as family", family(version))?;
    }
    Ok(())
}

impl ClientCommand {
    /// Parses the arguments after the program's name.
    #[must_use]
    pub fn parse(arguments: &[String], surroundings: &NetperfSurroundings<'_>) -> Self {
        parse(arguments, surroundings).unwrap_or_else(|command| command)
    }
}

fn parse(arguments: &[String], surroundings: &NetperfSurroundings<'_>) -> Result<ClientCommand, Wrong> {
    let mut all = vec!["netperf"];
    all.extend(arguments.iter().map(String::as_str));
    let mut options = NetperfClientOptions {
        command_line: all.join(" "),
        wall: surroundings.wall,
        uuid: uuid(surroundings.seed),
        ..NetperfClientOptions::default()
    };
    let mut reader = Getopt::new(LETTERS, arguments);
    let mut unit = None;
    while let Some(option) = next(&mut reader)? {
        match option.letter {
            'c' | 'C' => measure_cpu(&mut options, &option, &mut reader),
            'f' => unit = Some(of(&option, "one of G M K B g m k b x", unit_of(&option.value))?),
            'F' => fill(&mut options, &option, surroundings)?,
            _ => global(&mut options, &option)?,
        }
    }
    let mut reader = reader.continued(test_options::LETTERS);
    test_options::defaults(&mut options);
    let mut reading = test_options::UndecidedOptions::new(&options);
    while let Some(option) = next(&mut reader)? {
        reading.take(&mut options, &option, &mut reader, surroundings)?;
    }
    if let Some(rest) = reader.rest() {
        return Err(wrong(&format!("unexpected argument '{rest}'")));
    }
    reading.finish(&mut options, unit)?;
    Ok(ClientCommand::Test(Box::new(options)))
}

fn next(reader: &mut Getopt<'_>) -> Result<Option<GetoptOption>, Wrong> {
    reader.next().map_err(|error| ClientCommand::Mistake(format!("netperf: {error}\n{USAGE}")))
}

/// A random UUID (RFC 9562 §5.4).
fn uuid(seed: u128) -> String {
    let bits = seed & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn unit_of(text: &str) -> Option<Unit> {
    Some(match text {
        "B" => Unit::Bytes(0),
        "K" => Unit::Bytes(1),
        "M" => Unit::Bytes(2),
        "G" => Unit::Bytes(3),
        "b" => Unit::Bits(0),
        "k" => Unit::Bits(3),
        "m" => Unit::Bits(6),
        "g" => Unit::Bits(9),
        "x" => Unit::Transactions,
        _ => return None,
    })
}

fn measure_cpu(options: &mut NetperfClientOptions, option: &GetoptOption, reader: &mut Getopt<'_>) {
    let rate = reader.optional(|next| next.starts_with(|first: char| first.is_ascii_digit()));
    let rate = rate.and_then(|rate| rate.parse().ok()).unwrap_or(0.0);
    if option.letter == 'c' {
        (options.cpu.local, options.cpu_rate.local) = (true, rate);
    } else {
        (options.cpu.remote, options.cpu_rate.remote) = (true, rate);
    }
}

/// Reads the start of a fill file.
fn fill(
    options: &mut NetperfClientOptions,
    option: &GetoptOption,
    surroundings: &NetperfSurroundings<'_>,
) -> Result<(), Wrong> {
    let [here, there] = separate(&option.value);
    if let Some(name) = here {
        let bytes =
            (surroundings.read)(name, MAX_FILL).map_err(|error| wrong(&format!("-F {name}: {error}")))?;
        if bytes.is_empty() {
            return Err(wrong(&format!("-F {name}: the file is empty")));
        }
        options.fill = Some((name.to_owned(), bytes));
    }
    if let Some(name) = there {
        // The protocol has 32 bytes for the name and the zero at its end.
        of(option, "the name of a file on the server of at most 31 bytes", (name.len() <= 31).then_some(()))?;
        name.clone_into(&mut options.remote_fill);
    }
    Ok(())
}

fn seconds(text: &str) -> Option<Span> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.abs() <= LONGEST)?;
    Span::from_secs_f64(seconds.abs()).filter(|span| *span > Span::ZERO)
}

fn global(options: &mut NetperfClientOptions, option: &GetoptOption) -> Result<(), Wrong> {
    let value = option.value.as_str();
    match option.letter {
        'h' => return Err(ClientCommand::Mistake(USAGE.to_owned())),
        'V' => return Err(ClientCommand::Print(format!("Netperf version {VERSION}\n"), 0)),
        'B' => options.brand = Some(value.to_owned()),
        'b' | 'w' => pace(options, option)?,
        'D' => {
            let [interval, units] = separate(value);
            if units.is_some() {
                return Err(wrong("-D takes no units: interim results come on time without a guess"));
            }
            // Negative intervals tell netperf to read the clock after each call.
            options.interim =
                Some(of(option, "seconds", interval.map_or(Some(Span::from_secs(1)), seconds))?);
        }
        'H' => remote(&mut options.control, option)?,
        'L' => source(&mut options.control, option)?,
        'i' | 'I' => iterations(&mut options.iterations, option)?,
        'j' => options.statistics = true,
        'l' => {
            options.length = of(option, "seconds, or less than 0 for bytes or transactions", length(value))?
        }
        'P' => options.headings = of(option, "0 or 1", number(value))? != 0,
        'p' => {
            let port = |text: Option<&str>| of(option, "a port", text.map(str::parse).transpose().ok());
            let [remote, local] = separate(value);
            options.control.port = port(remote)?.unwrap_or(options.control.port);
            options.control.local_port = port(local)?.unwrap_or(0);
        }
        'r' => options.iterations.result_only = true,
        'S' => options.keep_alive = true,
        's' => options.wait = Span::from_secs(u64::from(of(option, "seconds", size(value))?)),
        't' => options.test = of(option, TESTS, test(value))?,
        'v' => {
            let level = number(value).and_then(|level| u8::try_from(level).ok()).filter(|level| *level <= 2);
            options.verbosity = of(option, "0, 1 or 2", level)?;
        }
        'Y' => {
            let [here, there] = both(value).map(|text| text.map(tos::byte));
            let byte = |value: Option<Option<u8>>| match value {
                Some(byte) => of(option, "0 to 255 or a name as af41", byte).map(Some),
                None => Ok(None),
            };
            options.tos = Pair { local: byte(here)?, remote: byte(there)? };
        }
        'Z' => options.passphrase = Some(value.to_owned()),
        '4' | '6' => {
            let family = if option.letter == '4' { NetperfFamily::V4 } else { NetperfFamily::V6 };
            (options.control.family, options.control.local_family) = (family, family);
        }
        other => {
            return Err(
                refused(other, table::CLIENT, "").unwrap_or_else(|| ClientCommand::Mistake(USAGE.to_owned()))
            );
        }
    }
    Ok(())
}

/// What `-t` takes.
const TESTS: &str = "TCP_STREAM, TCP_MAERTS, TCP_RR, TCP_CRR, UDP_STREAM, UDP_RR or omni";

fn test(name: &str) -> Option<NetperfTestName> {
    Some(match name.to_ascii_uppercase().as_str() {
        "TCP_STREAM" => NetperfTestName::TcpStream,
        "TCP_MAERTS" => NetperfTestName::TcpMaerts,
        "TCP_RR" => NetperfTestName::TcpRr,
        "TCP_CRR" => NetperfTestName::TcpCrr,
        "UDP_STREAM" => NetperfTestName::UdpStream,
        "UDP_RR" => NetperfTestName::UdpRr,
        "OMNI" => NetperfTestName::Omni,
        _ => return None,
    })
}

fn length(text: &str) -> Option<Length> {
    let length = i32::try_from(number(text)?).ok().filter(|length| *length != i32::MIN)?;
    Some(match length {
        0 => Length::Endless,
        seconds if seconds > 0 => Length::Seconds(seconds.unsigned_abs()),
        units => Length::Units(units.unsigned_abs()),
    })
}

/// Bursts of messages and the time between them; one without the other gets a default.
fn pace(options: &mut NetperfClientOptions, option: &GetoptOption) -> Result<(), Wrong> {
    let [here, there] = separate(&option.value);
    if there.is_some() {
        return Err(wrong(&format!("-{} paces only this host", option.letter)));
    }
    let mut pace = options.pace.unwrap_or(BurstPace { burst: 1, interval: Span::from_ms(1) });
    let text = here.unwrap_or_default();
    if option.letter == 'b' {
        pace.burst = of(option, "a number of messages", size(text).filter(|burst| *burst > 0))?;
    } else {
        let digits = text.trim_end_matches(['m', 'u', 's']);
        let unit = match &text[digits.len()..] {
            "" | "m" => Some(1_000),
            "u" => Some(1),
            "s" => Some(1_000_000),
            _ => None,
        };
        let microseconds = unit.zip(size(digits)).map(|(unit, count)| unit * u64::from(count));
        let interval = of(option, "a time as 10, 10m, 10u or 10s", microseconds.filter(|time| *time > 0))?;
        pace.interval = Span::from_ns(1000 * interval);
    }
    options.pace = Some(pace);
    Ok(())
}

fn iterations(iterations: &mut Iterations, option: &GetoptOption) -> Result<(), Wrong> {
    let [first, second] = both(&option.value);
    if option.letter == 'i' {
        let count =
            |text: Option<&str>| of(option, "numbers of iterations", text.map(size).unwrap_or(Some(0)));
        let (most, least) = (count(first)?, count(second)?);
        let most = if first.is_some() { most } else { iterations.most };
        let least = if second.is_some() { least } else { iterations.least };
        iterations.most = most.max(least).clamp(*ITERATIONS.start(), *ITERATIONS.end());
        iterations.least = least.clamp(*ITERATIONS.start(), *ITERATIONS.end());
        if iterations.level == 0 {
            iterations.level = 99;
        }
    } else {
        let level =
            first.map(size).unwrap_or(Some(iterations.level)).filter(|level| matches!(level, 95 | 99));
        iterations.level = of(option, "a level of 95 or 99", level)?;
        // A level alone is, to netperf, also the width of the interval.
        let width = second.map(|text| text.parse::<f64>().ok().filter(|width| *width > 0.0));
        if let Some(width) = width {
            iterations.width = of(option, "a width in percent", width)? / 100.0;
        }
        if iterations.least == 1 {
            iterations.least = *ITERATIONS.start();
        }
        if iterations.most == 1 {
            iterations.most = 10;
        }
    }
    if iterations.width == 0.0 {
        iterations.width = 0.05;
    }
    Ok(())
}

/// The roles and the transport of a test by its name.
pub(super) fn of_test(test: NetperfTestName) -> (NetperfProtocol, DataRoles) {
    let roles = |sends, receives| DataRoles { sends, receives };
    match test {
        NetperfTestName::TcpStream => (NetperfProtocol::Tcp, roles(true, false)),
        NetperfTestName::TcpMaerts => (NetperfProtocol::Tcp, roles(false, true)),
        NetperfTestName::TcpRr | NetperfTestName::TcpCrr => (NetperfProtocol::Tcp, roles(true, true)),
        NetperfTestName::UdpStream => (NetperfProtocol::Udp, roles(true, false)),
        NetperfTestName::UdpRr => (NetperfProtocol::Udp, roles(true, true)),
        NetperfTestName::Omni => (NetperfProtocol::Tcp, roles(false, false)),
    }
}

/// The names of all selectors, which netperf prints and exits with 1.
pub(super) fn list_of_selectors(separator: char) -> Wrong {
    ClientCommand::Print(selectors::names(separator), 1)
}
