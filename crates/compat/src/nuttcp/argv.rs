//! nuttcp's command line: a value follows its option with or without a blank (`-T3`).

use linerate_units::Span;

use super::options::{NuttcpClientOptions, NuttcpServerOptions, RateLimit, Verbosity};
use super::wire::{NuttcpFormat, NuttcpVersion};
use super::{CONTROL_PORT, DATA_PORT, MAX_STREAMS};

/// The action that a command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum NuttcpInvocation {
    /// Only print a text on standard output (help, version, an error), and exit with this code.
    Print {
        /// The text.
        text: String,
        /// The exit code.
        code: i32,
    },
    /// An error: a text for standard error; the exit code is 1.
    Mistake(String),
    /// A client.
    Client(Box<NuttcpClientOptions>),
    /// A server.
    Server(NuttcpServerOptions),
}

const USAGE: &str = "\
Usage: nuttcp [-t] [options] host      send to a server
       nuttcp -r [options] host        receive from a server
       nuttcp -S | -1 [options]        be a server, for ever or for one client
Options (values follow without a blank):
  -4 -6            only IPv4, only IPv6
  -l## -n##        bytes of a block or datagram; blocks to send (k, m, g: bytes)
  -T##             seconds to send (m: minutes, h: hours) [10]
  -u               UDP instead of TCP
  -R##             limit of the rate in kbit/s (m, g; p: packets); -Ri## no catching up; -R##/n bursts; -uu none
  -N##             streams [1]
  -w## -ws## -wb   socket buffer here and at the server in KB (m, g); at the server; both buffers
  -p## -P##        port of the first data stream [5101]; of the control connection [5000]
  -M## -c## -D     segment size; DSCP (t: whole TOS byte); no delay
  -i##             interval of lines in seconds (m: minutes)
  -s               standard input or output instead of a pattern
  -F -a            open data connections the other way round; try a refused connection again
  -j -o            jitter; one-way delay (measured by a receiving nuttcp)
  -I<text> -b -v -vv   what lines begin with; how much is printed
  -fparse -frunningtotal -fxmitstats -f-drops -f-percentloss -f-retrans -f-cwnd -f-rtt -f-beta
  --idle-data-timeout <seconds or shortest/default/longest>   (server)
  -h -V            this text; the version
";

/// Parses the arguments after the program's name. The first list has warnings for standard error.
#[must_use]
pub fn invocation(arguments: &[String]) -> (Vec<String>, NuttcpInvocation) {
    let mut read = NuttcpArgvReader::default();
    let result = read.all(arguments);
    (read.warnings, result.unwrap_or_else(|end| end))
}

/// Whether an option without an attached value takes the next argument as its value, like nuttcp 6.1.2. `-i`
/// has an optional value, so a host may follow it.
fn takes(option: &str, next: &str) -> bool {
    match option {
        "i" => next.parse::<f64>().is_ok(),
        "I" | "p" | "P" | "N" | "l" | "n" | "T" | "R" | "w" | "M" | "c" => !next.starts_with('-'),
        _ => false,
    }
}

struct NuttcpArgvReader {
    warnings: Vec<String>,
    client: NuttcpClientOptions,
    server: NuttcpServerOptions,
    serves: bool,
    said_transmit: bool,
    port_given: u64,
    control_port: u64,
    streams: u64,
    hosts: Vec<String>,
}

impl Default for NuttcpArgvReader {
    fn default() -> Self {
        Self {
            warnings: Vec::new(),
            client: NuttcpClientOptions::to(""),
            server: NuttcpServerOptions::default(),
            serves: false,
            said_transmit: false,
            port_given: u64::from(DATA_PORT),
            control_port: u64::from(CONTROL_PORT),
            streams: 1,
            hosts: Vec::new(),
        }
    }
}

fn usage() -> NuttcpInvocation {
    NuttcpInvocation::Print { text: USAGE.to_owned(), code: 1 }
}

impl NuttcpArgvReader {
    fn all(&mut self, arguments: &[String]) -> Result<NuttcpInvocation, NuttcpInvocation> {
        if arguments.is_empty() {
            return Err(usage());
        }
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            if argument == "--idle-data-timeout" {
                let limits = rest.next().and_then(|text| idle_limits(text)).ok_or_else(usage)?;
                self.server.idle = limits;
            } else if let Some(name) = argument.strip_prefix("--") {
                self.long(name)?;
            } else if let Some(option) = argument.strip_prefix('-').filter(|option| !option.is_empty()) {
                match rest.next_if(|next| takes(option, next)) {
                    Some(value) => self.option(&format!("{option}{value}"))?,
                    None => self.option(option)?,
                }
            } else {
                self.hosts.push(argument.clone());
            }
        }
        self.finish()
    }

    /// Handles long options, of which several are accepted without effect.
    fn long(&mut self, name: &str) -> Result<(), NuttcpInvocation> {
        let known = [
            "no3rdparty",
            "nofork",
            "single-threaded",
            "disable-v4-mapped",
            "enable-v4-mapped",
            "packet-burst",
        ];
        if known.contains(&name) { Ok(()) } else { Err(usage()) }
    }

    fn option(&mut self, option: &str) -> Result<(), NuttcpInvocation> {
        let mut letters = option.chars();
        let letter = letters.next().unwrap_or_default();
        let value = letters.as_str();
        let client = &mut self.client;
        match letter {
            'h' => return Err(usage()),
            'V' => {
                let text = format!("nuttcp-{}\n", NuttcpVersion::REPORTED);
                return Err(NuttcpInvocation::Print { text, code: 0 });
            }
            'S' => self.serves = true,
            '1' => (self.serves, self.server.one_shot) = (true, true),
            't' => (client.transmit, self.said_transmit) = (true, true),
            'r' => client.transmit = false,
            'u' => {
                client.udp = true;
                if value == "u" {
                    client.rate = Some(RateLimit::Unlimited);
                }
            }
            's' => client.stdio = true,
            'F' => client.flip = true,
            'a' => client.again = true,
            'D' => client.no_delay = true,
            '4' => client.ipv4 = true,
            '6' => client.ipv6 = true,
            'b' => client.verbosity = Verbosity::Brief,
            'v' if value == "v" => client.verbosity = Verbosity::VeryVerbose,
            'v' => {
                let very = client.verbosity != Verbosity::Brief;
                client.verbosity = if very { Verbosity::VeryVerbose } else { Verbosity::Verbose };
            }
            // Full blocks, kernel debugging, buffer alignment, priority: no effect here.
            'B' | 'd' | 'A' => {}
            'x' if value.starts_with('P') => {}
            'x' => {
                let text = "nuttcp: traceroute requests are not supported; use traceroute(8)\n".to_owned();
                return Err(NuttcpInvocation::Mistake(text));
            }
            'm' => {
                let text = "nuttcp: multicast is not supported; remove -m\n".to_owned();
                return Err(NuttcpInvocation::Mistake(text));
            }
            'j' => client.jitter = 4,
            'o' => client.one_way_delay = 2,
            'I' => client.identifier = Some(value.chars().take(40).collect()),
            'p' => self.port_given = whole(value),
            'P' => self.control_port = whole(value),
            'N' if value.starts_with('-') => {
                return Err(NuttcpInvocation::Mistake(format!("invalid nstream = {value}\n")));
            }
            'N' => self.streams = whole(value),
            'f' => self.format(value)?,
            _ => return self.quantity(letter, value),
        }
        Ok(())
    }

    /// Handles options with a quantity.
    fn quantity(&mut self, letter: char, value: &str) -> Result<(), NuttcpInvocation> {
        let client = &mut self.client;
        let limit = [('l', "buflen"), ('T', "timeout")].into_iter().find(|(option, _)| *option == letter);
        if let Some((_, name)) = limit.filter(|_| value.starts_with('-')) {
            return Err(NuttcpInvocation::Mistake(format!("invalid {name} = {value}\n")));
        }
        match letter {
            'l' => client.length = Some(binary(value, 1)),
            'n' if value.ends_with(|last: char| last.is_ascii_alphabetic()) => {
                client.bytes = Some(binary(value, 1));
            }
            'n' => client.blocks = Some(whole(value)).filter(|count| *count > 0),
            'T' => client.time = seconds(value).filter(|time| *time > Span::ZERO),
            'i' => {
                let second = Span::from_secs(1);
                client.interval = seconds(value).filter(|time| *time > Span::ZERO).unwrap_or(second);
            }
            'R' => {
                let (value, instantaneous) =
                    value.strip_prefix('i').map_or((value, false), |rest| (rest, true));
                let (rate, burst) = value.split_once('/').unwrap_or((value, "1"));
                client.instantaneous = instantaneous;
                client.burst = whole(burst).clamp(1, 1000);
                client.rate = Some(rate_of(rate));
            }
            'w' => match value.as_bytes().first() {
                Some(b's') => client.server_window = Some(binary(&value[1..], 1024)),
                Some(b'b') => client.both_windows = true,
                _ => client.window = Some(binary(value, 1024)),
            },
            'M' => client.mss = u32::try_from(whole(value)).ok(),
            'c' => {
                let (digits, whole_byte) = match value.strip_suffix(['t', 'T']) {
                    Some(digits) => (digits, true),
                    None => (value, false),
                };
                let number = digits
                    .strip_prefix("0x")
                    .map_or_else(|| digits.parse::<u8>().ok(), |hex| u8::from_str_radix(hex, 16).ok());
                let class = number.filter(|number| whole_byte || *number < 64);
                let Some(class) = class else {
                    let name = if whole_byte { "tos" } else { "dscp" };
                    return Err(NuttcpInvocation::Mistake(format!("invalid {name} = {digits}\n")));
                };
                client.tos = if whole_byte { class } else { class << 2 };
            }
            _ => return Err(usage()),
        }
        Ok(())
    }

    fn format(&mut self, name: &str) -> Result<(), NuttcpInvocation> {
        let format = &mut self.client.format.0;
        match name {
            "xmitstats" => *format |= NuttcpFormat::XMIT_STATS,
            "runningtotal" => *format |= NuttcpFormat::RUNNING_TOTAL,
            "-drops" => *format |= NuttcpFormat::NO_DROPS,
            "-percentloss" => *format |= NuttcpFormat::NO_PERCENT_LOSS,
            "parse" => *format |= NuttcpFormat::PARSE,
            "-retrans" => *format |= NuttcpFormat::NO_RETRANS,
            "debugretrans" => *format |= NuttcpFormat::DEBUG_RETRANS,
            "-beta" => *format |= NuttcpFormat::NO_BETA,
            "rtt" => *format |= NuttcpFormat::WANT_RTT,
            "-rtt" => *format &= !NuttcpFormat::WANT_RTT,
            "-cwnd" => *format |= NuttcpFormat::NO_CWND,
            _ => return Err(NuttcpInvocation::Mistake(format!("invalid format option \"{name}\"\n"))),
        }
        Ok(())
    }

    /// Checks what depends on several options.
    fn finish(&mut self) -> Result<NuttcpInvocation, NuttcpInvocation> {
        let mistake = |text: String| Err(NuttcpInvocation::Mistake(text + "\n"));
        let Some(control_port) = u16::try_from(self.control_port).ok().filter(|port| *port > 0) else {
            return mistake(format!("invalid ctlport = {}", self.control_port));
        };
        if !self.serves && self.hosts.is_empty() && !self.said_transmit && !self.client.transmit {
            self.warnings.push("nuttcp: Warning: Using obsolete \"classic\" mode:".to_owned());
            self.warnings.push(
                "                 Automatically switching to oneshot server mode (\"nuttcp -1\")".to_owned(),
            );
            (self.serves, self.server.one_shot) = (true, true);
        }
        if self.serves {
            let (client, server) = (&self.client, &mut self.server);
            (server.control_port, server.stdio) = (control_port, client.stdio && server.one_shot);
            (server.ipv4, server.ipv6) = (client.ipv4, client.ipv6);
            return Ok(NuttcpInvocation::Server(server.clone()));
        }
        let [host] = self.hosts.as_slice() else {
            if let [_, third] = self.hosts.as_slice() {
                return mistake(format!("nuttcp: a test with a third party ({third}) is not supported"));
            }
            return Err(usage());
        };
        let (host, data) =
            host.split_once('/').map_or((host.as_str(), None), |(host, data)| (host, Some(data)));
        host.clone_into(&mut self.client.host);
        if let Some(data) = data {
            let Ok(address) = data.parse() else {
                return mistake(format!(
                    "nuttcp: the data host {data} is not an IP address; give an address \
                                        instead of a name"
                ));
            };
            self.client.data_host = Some(address);
        }
        self.client.control_port = control_port;
        self.client_limits(control_port)?;
        Ok(NuttcpInvocation::Client(Box::new(self.client.clone())))
    }

    fn client_limits(&mut self, control_port: u16) -> Result<(), NuttcpInvocation> {
        let mistake = |text: String| Err(NuttcpInvocation::Mistake(text + "\n"));
        let client = &mut self.client;
        if self.streams == 0 {
            return mistake("invalid nstream = 0".to_owned());
        }
        if self.streams > u64::from(MAX_STREAMS) {
            let text = format!("nstream = {} > MAXSTREAM, set to {MAX_STREAMS}", self.streams);
            self.warnings.push(text);
        }
        let streams = self.streams.min(u64::from(MAX_STREAMS));
        client.streams = streams as u16;
        let port = u16::try_from(self.port_given).ok().filter(|port| *port >= 1024);
        let Some(port) = port.filter(|port| u64::from(*port) + streams <= 65_536) else {
            return mistake(format!("invalid port = {}", self.port_given));
        };
        client.data_port = port;
        if (u64::from(port)..u64::from(port) + streams).contains(&u64::from(control_port)) {
            return mistake(format!("ctlport = {control_port} overlaps port/nstream = {port}/{streams}"));
        }
        let longest = if client.udp { 65_507 } else { 64 << 20 };
        match client.length {
            Some(0) => return mistake("invalid buflen = 0".to_owned()),
            Some(length @ 1..=4) if client.udp => {
                self.warnings.push(format!("UDP buflen = {length} < 5, set to 5"));
                client.length = Some(5);
            }
            Some(length) if length > longest => {
                let name = if client.udp { "UDP buflen" } else { "buflen" };
                let limit = if client.udp { "MAXUDPBUFLEN" } else { "the limit" };
                self.warnings.push(format!("{name} = {length} > {limit}, set to {longest}"));
                client.length = Some(longest);
            }
            _ => {}
        }
        if client.stdio && (client.udp || streams > 1) {
            return mistake("nuttcp: -s works only with one TCP stream; remove -u and -N".to_owned());
        }
        let time = client.request(None).timeout;
        if time > Span::ZERO && client.interval >= time {
            self.warnings.push(format!(
                "ignoring interval={:.6} which is greater than or equal timeout={:.6}",
                client.interval.as_secs_f64(),
                time.as_secs_f64()
            ));
            client.interval = Span::ZERO;
        }
        Ok(())
    }
}

/// Parses the integer at the start of a text like atoi(3): 0 if there is none.
fn whole(text: &str) -> u64 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).map_or(text, |end| &text[..end]);
    digits.parse().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX })
}

/// Parses a number with a binary k, m or g; `unit` is the unit of a bare number.
fn binary(text: &str, unit: u64) -> u64 {
    let scale = match text.chars().last() {
        Some('k' | 'K') => 1 << 10,
        Some('m' | 'M') => 1 << 20,
        Some('g' | 'G') => 1 << 30,
        _ => unit,
    };
    whole(text).saturating_mul(scale)
}

/// Parses a rate: kbit/s, decimal m and g, or packets.
fn rate_of(text: &str) -> RateLimit {
    let number = leading_number(text);
    let scaled = |scale: f64| RateLimit::Kbps((number * scale).round() as u64);
    let rate = match text.chars().last() {
        Some('p' | 'P') => RateLimit::Pps(number as u64),
        Some('m' | 'M') => scaled(1e3),
        Some('g' | 'G') => scaled(1e6),
        _ => scaled(1.0),
    };
    if matches!(rate, RateLimit::Kbps(0) | RateLimit::Pps(0)) { RateLimit::Unlimited } else { rate }
}

/// Parses a time in seconds, or in minutes or hours with a letter.
fn seconds(text: &str) -> Option<Span> {
    let scale = match text.chars().last() {
        Some('m' | 'M') => 60.0,
        Some('h' | 'H') => 3600.0,
        _ => 1.0,
    };
    Span::from_secs_f64((leading_number(text) * scale).min(86_400.0))
}

fn leading_number(text: &str) -> f64 {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

/// `30`, or `5/30/60`.
fn idle_limits(text: &str) -> Option<[Span; 3]> {
    let mut given = Vec::new();
    for part in text.split('/') {
        given.push(Span::from_secs(part.parse().ok().filter(|seconds| (1..=86_400).contains(seconds))?));
    }
    match given.as_slice() {
        [only] => Some([*only; 3]),
        [shortest, default, longest] if shortest <= default && default <= longest => {
            Some([*shortest, *default, *longest])
        }
        _ => None,
    }
}
