//! nuttcp's command line: a value follows its option with or without a blank (`-T3`).

mod limits;
mod values;

use linerate_units::Span;

use super::options::{
    MEAN, MOST, NEIGHBOURS, NuttcpClientOptions, NuttcpServerOptions, RateLimit, Verbosity,
};
use super::wire::{NuttcpFormat, NuttcpVersion};
use super::{CONTROL_PORT, DATA_PORT};
use values::{
    binary, checked_port, cpu, idle_limits, ports, seconds, service_class, statistics, takes, whole,
};

/// The action that a command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum NuttcpInvocation {
    /// Only print a text on standard output (help, version), and exit with this code.
    Print {
        /// The text.
        text: String,
        /// The exit code.
        code: i32,
    },
    /// The command line has not the form that nuttcp expects: its usage, for standard output; the exit code is 1.
    Usage(&'static str),
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
Options (values follow with or without a blank):
  -4 -6            only IPv4, only IPv6
  -l## -n##        bytes of a block or datagram; blocks to send (k, m, g, t, p, b: bytes)
  -T##             seconds to send (m: minutes, h: hours, d: days) [10]
  -u               UDP instead of TCP
  -R##             limit of the rate in kbit/s (m, g; p: packets); -Ri## no catching up; -Ri##/n bursts;
                   -Ra## on average; -Ru -uu none
  -N##             streams [1]
  -w## -ws## -wb   socket buffer here and at the server in KB (b, m, g); at the server; both buffers
  -p## -P##        port of the first data stream [5101]; of the control connection [5000]
  -p##:## -P##:##  the port that connects, and the one it connects to
  -M## -c## -D     segment size; DSCP (p: precedence, t: whole TOS byte); no delay
  -i##             interval of lines in seconds (m: minutes, h: hours)
  -s               standard input or output instead of a pattern
  -F -a            open data connections the other way round; try a refused connection again
  -j -jmaxo        jitter over UDP (m, a, x: least, mean, most; o: only of neighbours in sequence)
  -o -omax         one-way delay (m, a, x: least, mean, most)
  -xc## -xcs##     CPU of the data threads here, at the server; -xc##/## both
  -I<text> -b -v -vv   what lines begin with; how much is printed
  -br -bc          retransmissions and congestion window of each stream in the last line
  -fparse -frunningtotal -fxmitstats -f-drops -f-percentloss -f-retrans -f-cwnd -f-rtt -f-beta
  --packet-burst <datagrams>
  --idle-data-timeout <seconds or shortest/default/longest>
  --single-threaded    (server) one client after the other
  --enable-v4-mapped   (server with -6) also IPv4
  -h -V            this text; the version
";

/// Parses the arguments after the program's name. The first list has warnings for standard error.
#[must_use]
pub fn invocation(arguments: &[String]) -> (Vec<String>, NuttcpInvocation) {
    let mut read = NuttcpArgvReader::default();
    let result = read.all(arguments);
    (read.warnings, result.unwrap_or_else(|end| end))
}

struct NuttcpArgvReader {
    warnings: Vec<String>,
    client: NuttcpClientOptions,
    server: NuttcpServerOptions,
    serves: bool,
    transmit_given: bool,
    port_given: u64,
    control_port: u64,
    /// The source ports of `-p` and `-P`.
    sources: [Option<u64>; 2],
    streams: u64,
    /// Whether the rate is instantaneous; absent if the command line does not say.
    instantaneous: Option<bool>,
    v4_mapped: bool,
    hosts: Vec<String>,
}

impl Default for NuttcpArgvReader {
    fn default() -> Self {
        Self {
            warnings: Vec::new(),
            client: NuttcpClientOptions::to(""),
            server: NuttcpServerOptions::default(),
            serves: false,
            transmit_given: false,
            port_given: u64::from(DATA_PORT),
            control_port: u64::from(CONTROL_PORT),
            sources: [None; 2],
            streams: 1,
            instantaneous: None,
            v4_mapped: false,
            hosts: Vec::new(),
        }
    }
}

/// An error on standard error.
fn mistake<T>(text: impl Into<String>) -> Result<T, NuttcpInvocation> {
    Err(NuttcpInvocation::Mistake(text.into() + "\n"))
}

/// An option that nuttcp has and we do not.
fn refused<T>(option: &str, why: &str) -> Result<T, NuttcpInvocation> {
    mistake(format!("nuttcp: -{option} is not supported: {why}"))
}

const USED_WRONGLY: NuttcpInvocation = NuttcpInvocation::Usage(USAGE);

impl NuttcpArgvReader {
    fn all(&mut self, arguments: &[String]) -> Result<NuttcpInvocation, NuttcpInvocation> {
        if arguments.is_empty() {
            return Err(USED_WRONGLY);
        }
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            at += 1;
            let next = arguments.get(at);
            if let Some(name) = argument.strip_prefix("--") {
                at += usize::from(self.long(name, next)?);
            } else if let Some(option) = argument.strip_prefix('-').filter(|option| !option.is_empty()) {
                let after = arguments.get(at + 1).map(String::as_str);
                match next.filter(|next| takes(option, next, after)) {
                    Some(value) => {
                        at += 1;
                        self.option(&format!("{option}{value}"))?;
                    }
                    None => self.option(option)?,
                }
            } else {
                self.hosts.push(argument.clone());
            }
        }
        self.finish()
    }

    /// Handles long options. Returns whether the next argument was its value.
    fn long(&mut self, name: &str, next: Option<&String>) -> Result<bool, NuttcpInvocation> {
        match name {
            "idle-data-timeout" => {
                let limits = next.and_then(|text| idle_limits(text)).ok_or(USED_WRONGLY)?;
                (self.server.idle, self.client.idle) = (limits, limits);
                return Ok(true);
            }
            "packet-burst" => {
                self.burst(next.map_or("", String::as_str))?;
                return Ok(true);
            }
            "single-threaded" => self.server.single = true,
            "enable-v4-mapped" => self.v4_mapped = true,
            "disable-v4-mapped" => self.v4_mapped = false,
            // We stay in the foreground, and never run a test with a third host.
            "nofork" | "no3rdparty" => {}
            _ => return Err(USED_WRONGLY),
        }
        Ok(false)
    }

    fn burst(&mut self, text: &str) -> Result<(), NuttcpInvocation> {
        match whole(text) {
            0 => mistake(format!("invalid maxburst = {text}")),
            burst => {
                self.client.burst = burst.min(1000);
                Ok(())
            }
        }
    }

    fn option(&mut self, option: &str) -> Result<(), NuttcpInvocation> {
        let mut letters = option.chars();
        let letter = letters.next().unwrap_or_default();
        let value = letters.as_str();
        let client = &mut self.client;
        match letter {
            'h' => return Err(NuttcpInvocation::Print { text: USAGE.to_owned(), code: 1 }),
            'V' => {
                let text = format!("nuttcp-{}\n", NuttcpVersion::REPORTED);
                return Err(NuttcpInvocation::Print { text, code: 0 });
            }
            // Its letters force it into the background, and are for third parties.
            'S' if value.chars().all(|letter| "fP".contains(letter)) => {
                (self.serves, self.transmit_given) = (true, false);
            }
            '1' => (self.serves, self.server.one_shot, self.transmit_given) = (true, true, false),
            't' => (client.transmit, self.transmit_given) = (true, true),
            'r' => client.transmit = false,
            'u' => {
                client.udp = true;
                if value == "u" {
                    client.rate = Some(RateLimit::Unlimited);
                }
            }
            's' if value.contains('d') => {
                return refused("sd", "data pass through standard input and output");
            }
            's' if value.contains('z') => return refused("sz", "data pass through standard input"),
            's' => client.stdio = true,
            'F' => client.flip = true,
            'a' => client.again = true,
            'D' => client.no_delay = true,
            '4' => client.ipv4 = true,
            '6' => client.ipv6 = true,
            'b' => self.brief(value)?,
            'v' if value == "v" => client.verbosity = Verbosity::VeryVerbose,
            'v' => client.verbosity = client.verbosity.max(Verbosity::Verbose),
            // Blocks are always read whole, and SO_DEBUG has no effect in current kernels.
            'B' | 'd' => {}
            'x' => self.extra(value)?,
            'm' | 'g' => return refused(&letter.to_string(), "there is no multicast"),
            '3' => return refused("3", "there is no third party"),
            'j' => {
                client.udp = true;
                let neighbours = if value.contains('o') { NEIGHBOURS } else { 0 };
                client.jitter = statistics(value, MOST) | neighbours;
            }
            'o' => client.one_way_delay = statistics(value, MEAN),
            'I' => client.identifier = Some(value.chars().take(40).collect()),
            'p' => (self.sources[0], self.port_given) = ports(value),
            'P' if value.contains('/') => return refused("P", "a port after / is one of a third party"),
            'P' => (self.sources[1], self.control_port) = ports(value),
            'f' => self.format(value)?,
            _ => return self.quantity(letter, value),
        }
        Ok(())
    }

    /// `-b`, with letters or a number of bits: what the last line contains.
    fn brief(&mut self, value: &str) -> Result<(), NuttcpInvocation> {
        let client = &mut self.client;
        let bits = match value.parse::<i64>() {
            Ok(bits @ 0..=7) => bits,
            Ok(_) => return mistake(format!("nuttcp: -b{value} is not supported: give 0 to 7")),
            Err(_) => 1,
        };
        // A second report after the brief line is the only other thing that a number can ask for.
        client.verbosity = if bits == 0 { Verbosity::Verbose } else { Verbosity::Brief };
        client.stream_retrans |= bits & 2 != 0 || value.contains('r');
        client.stream_cwnd |= bits & 4 != 0 || value.contains('c');
        Ok(())
    }

    /// Handles `-x`: priority, CPU, traceroute.
    fn extra(&mut self, value: &str) -> Result<(), NuttcpInvocation> {
        if let Some(cpus) = value.strip_prefix('c') {
            return self.cpus(cpus);
        }
        match value.chars().next() {
            Some('t') => refused("xt", "there are no traceroute requests; use traceroute(8)"),
            Some('P') => refused("xP", "start it with nice(1) or chrt(1)"),
            Some(_) => mistake(format!("invalid x option \"{value}\"")),
            None => mistake("invalid null x option"),
        }
    }

    /// `CPU`, `sCPU` or `CPU/CPU`: of this end, of the server, of both.
    fn cpus(&mut self, value: &str) -> Result<(), NuttcpInvocation> {
        if let Some(server) = value.strip_prefix('s') {
            self.client.server_affinity = cpu("srvr_affinity", server)?;
            return Ok(());
        }
        let (here, there) = value.split_once('/').map_or((value, None), |(here, there)| (here, Some(there)));
        self.client.affinity = cpu("affinity", here)?;
        if let Some(there) = there {
            self.client.server_affinity = cpu("srvr_affinity", there)?;
        }
        Ok(())
    }

    /// Handles options with a quantity.
    fn quantity(&mut self, letter: char, value: &str) -> Result<(), NuttcpInvocation> {
        let client = &mut self.client;
        if value.starts_with('-') {
            let number: f64 = value.parse().unwrap_or_default();
            match letter {
                'N' => return mistake(format!("invalid nstream = {number}")),
                'l' => return mistake(format!("invalid buflen = {number}")),
                'M' => return mistake(format!("invalid datamss = {number}")),
                'w' => return mistake(format!("invalid sendwin = {value}")),
                'T' => return mistake(format!("invalid timeout = {number:.6}")),
                'i' => return mistake(format!("invalid interval = {number:.6}")),
                _ => {}
            }
        }
        match letter {
            'N' if value.ends_with('m') => return refused("N##m", "there is one path to a host"),
            'N' => self.streams = whole(value),
            'l' => client.length = Some(binary(value, 1)),
            'n' if value.starts_with('b') => {
                return mistake("option \"-nb\" no longer supported, use \"-n###[k|m|g|t|p]\" instead");
            }
            'n' if value.ends_with(|last: char| "bkmgtp".contains(last.to_ascii_lowercase())) => {
                client.bytes = Some(binary(value, 1)).filter(|bytes| *bytes > 0);
            }
            'n' => client.blocks = Some(whole(value)).filter(|count| *count > 0),
            'T' => client.time = seconds("timeout", value)?,
            'i' => {
                let second = Span::from_secs(1);
                client.interval = seconds("interval", value)?.unwrap_or(second);
            }
            'R' => return self.rate(value),
            'w' => match value.as_bytes().first() {
                Some(b's') => client.server_window = Some(binary(&value[1..], 1024)),
                Some(b'b') => {
                    client.both_windows = true;
                    if value.len() > 1 {
                        client.window = Some(binary(&value[1..], 1024));
                    }
                }
                _ => client.window = Some(binary(value, 1024)),
            },
            'M' => client.mss = u32::try_from(whole(value)).ok(),
            'c' => client.tos = service_class(value)?,
            _ => return Err(USED_WRONGLY),
        }
        Ok(())
    }

    fn rate(&mut self, value: &str) -> Result<(), NuttcpInvocation> {
        let value = match value.chars().next() {
            Some('i') if value[1..].starts_with('s') => {
                return refused(
                    "Ris",
                    "a smoothed slow start reads the congestion window before every write",
                );
            }
            Some(mode @ ('i' | 'a' | 'u')) => {
                self.instantaneous = Some(mode == 'i');
                &value[1..]
            }
            _ => value,
        };
        let (rate, burst) = value.split_once('/').map_or((value, None), |(rate, burst)| (rate, Some(burst)));
        if let Some(burst) = burst {
            self.burst(burst)?;
        }
        self.client.rate = Some(values::rate(rate));
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
            // Without retransmissions there is no congestion window either.
            "-retrans" => *format |= NuttcpFormat::NO_RETRANS | NuttcpFormat::NO_CWND,
            "-beta" => *format |= NuttcpFormat::NO_BETA,
            "rtt" => *format |= NuttcpFormat::WANT_RTT,
            "-rtt" => *format &= !NuttcpFormat::WANT_RTT,
            "-cwnd" => *format |= NuttcpFormat::NO_CWND,
            "debuginterval" | "debugretrans" | "debugpoll" | "debugmtu" | "debugjitter" | "debugirate" => {
                return refused(&format!("f{name}"), "there is no debugging output");
            }
            "" => {
                return mistake("invalid null format option\nperhaps the \"-F\" flip option was intended");
            }
            _ => return mistake(format!("invalid format option \"{name}\"")),
        }
        Ok(())
    }

    /// Checks what depends on several options.
    fn finish(&mut self) -> Result<NuttcpInvocation, NuttcpInvocation> {
        let control_port = checked_port(self.control_port, "ctlport")?;
        if !self.serves && self.hosts.is_empty() && !self.client.transmit {
            self.warnings.push("nuttcp: Warning: Using obsolete \"classic\" mode:".to_owned());
            self.warnings.push(
                "                 Automatically switching to oneshot server mode (\"nuttcp -1\")".to_owned(),
            );
            (self.serves, self.server.one_shot) = (true, true);
        }
        if self.serves {
            return self.finish_server(control_port);
        }
        let [host] = self.hosts.as_slice() else {
            if let [_, third] = self.hosts.as_slice() {
                return mistake(format!("nuttcp: a test with a third party ({third}) is not supported"));
            }
            return Err(USED_WRONGLY);
        };
        if let Some(sign) = host.find(['+', '=']) {
            let address = &host[sign..];
            return mistake(format!(
                "nuttcp: several addresses of a host ({address}) are not supported; give one"
            ));
        }
        let (host, data) =
            host.split_once('/').map_or((host.as_str(), None), |(host, data)| (host, Some(data)));
        host.clone_into(&mut self.client.host);
        if let Some(data) = data {
            let Ok(address) = data.parse() else {
                return mistake(format!(
                    "nuttcp: the data host {data} is not an IP address; give one address instead of names"
                ));
            };
            self.client.data_host = Some(address);
        }
        self.client.control_port = control_port;
        self.client_limits(control_port)?;
        Ok(NuttcpInvocation::Client(Box::new(self.client.clone())))
    }

    fn finish_server(&mut self, control_port: u16) -> Result<NuttcpInvocation, NuttcpInvocation> {
        let (client, server) = (&self.client, &mut self.server);
        if self.transmit_given || !self.hosts.is_empty() {
            return Err(USED_WRONGLY);
        }
        if self.sources[1].is_some() {
            return mistake("can't specify source control port in server mode");
        }
        if client.stdio && !server.one_shot {
            return mistake(
                "option \"-s\" invalid with \"-S\" server mode\n\
                 option \"-s\" can be used with \"-1\" oneshot server mode",
            );
        }
        (server.control_port, server.stdio) = (control_port, client.stdio);
        (server.ipv4, server.ipv6) = (client.ipv4, client.ipv6 && !self.v4_mapped);
        server.affinity = client.affinity;
        Ok(NuttcpInvocation::Server(server.clone()))
    }
}
