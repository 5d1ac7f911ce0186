//! What a command line of netperf requests.

use std::net::IpAddr;

use linerate_units::Span;

use super::PORT;
use super::selectors::{Selector, SelectorNeeds};
use super::wire::{DataRoles, NetperfProtocol};

/// The text in the buffers of a client without a fill file; a zero follows each word.
const DEFAULT_FILL: &[u8] = b"netperf\0";

/// The family of an end's addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NetperfFamily {
    /// IPv4 or IPv6.
    #[default]
    Any,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl NetperfFamily {
    /// The constant of the system's headers, as netperf prints it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Any => "AF_UNSPEC",
            Self::V4 => "AF_INET",
            Self::V6 => "AF_INET6",
        }
    }

    /// The number of the constant on Linux.
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Any => 0,
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }

    /// The family of an address.
    pub(super) const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// This family, or another one if any is allowed.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Any { other } else { self }
    }

    /// The unspecified address, as netperf writes it.
    pub(super) const fn any_address(self) -> &'static str {
        if matches!(self, Self::V6) { "::0" } else { "0.0.0.0" }
    }
}

/// The ends of a connection, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NetperfEnds {
    /// The remote host; absent if it was not typed.
    pub(super) host: Option<String>,
    /// The version of IP.
    pub(super) family: NetperfFamily,
    /// The local address.
    pub(super) local: Option<IpAddr>,
    /// The version of IP of the local address, if it was typed.
    pub(super) local_family: NetperfFamily,
    /// The remote and the local port; 0 if they are left open.
    pub(super) port: u16,
    /// The local port.
    pub(super) local_port: u16,
}

/// A pair of values for this host and for the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pair<T> {
    /// Of this host.
    pub(super) local: T,
    /// Of the server.
    pub(super) remote: T,
}

/// The names of tests that exist apart from OMNI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NetperfTestName {
    /// TCP, this host sends.
    #[default]
    TcpStream,
    /// TCP, the server sends.
    TcpMaerts,
    /// Transactions over one TCP connection.
    TcpRr,
    /// Transactions over a TCP connection each.
    TcpCrr,
    /// UDP, this host sends.
    UdpStream,
    /// Transactions over UDP.
    UdpRr,
    /// Whatever the options say.
    Omni,
}

/// What ends a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// A time in seconds.
    Seconds(u32),
    /// A number of bytes or transactions.
    Units(u32),
    /// A signal.
    Endless,
}

/// The unit of a throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Bits, by their power of 10: 0, 3, 6 or 9.
    Bits(u8),
    /// Bytes, by their power of 1024: 0 to 3.
    Bytes(u8),
    /// Transactions.
    Transactions,
}

impl Unit {
    /// As netperf prints it, without the time.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bits(0) => "10^0bits",
            Self::Bits(3) => "10^3bits",
            Self::Bits(9) => "10^9bits",
            Self::Bits(_) => "10^6bits",
            Self::Bytes(0) => "Bytes",
            Self::Bytes(1) => "KBytes",
            Self::Bytes(2) => "MBytes",
            Self::Bytes(_) => "GBytes",
            Self::Transactions => "Trans",
        }
    }

    /// How many of these a number of bytes (or of transactions) in a second are.
    ///
    /// netperf divides by 1 for bits too (`-f b`), so its figure is in bytes there; ours is in bits.
    pub(super) fn per_second(self, units: f64, seconds: f64) -> f64 {
        let divisor = match self {
            Self::Bits(power) => 10_f64.powi(i32::from(power)) / 8.0,
            Self::Bytes(power) => 1024_f64.powi(i32::from(power)),
            Self::Transactions => 1.0,
        };
        units / divisor / seconds
    }
}

/// Iterations until the result is known well enough (`-i`, `-I`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Iterations {
    /// Fewest and most iterations.
    pub(super) least: u32,
    /// Most iterations.
    pub(super) most: u32,
    /// Level of confidence, percent: 95 or 99; 0 without iterations.
    pub(super) level: u32,
    /// Width of the interval as a share of the result.
    pub(super) width: f64,
    /// Whether the CPU time need not be known as well (`-r`).
    pub(super) result_only: bool,
}

impl Default for Iterations {
    fn default() -> Self {
        Self { least: 1, most: 1, level: 0, width: 0.0, result_only: false }
    }
}

/// The form of the output.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum OutputForm {
    /// The table of the test's name.
    #[default]
    Classic,
    /// Columns under headings (`-O`).
    Human(Selection),
    /// Comma-separated values (`-o`).
    Csv(Selection),
    /// A line for each value (`-k`).
    Keyval(Selection),
}

/// The selected values, in up to four blocks.
pub(super) type Selection = Vec<Vec<&'static Selector>>;

/// A paced sender: a number of messages at once, in each interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BurstPace {
    /// Messages.
    pub(super) burst: u32,
    /// Time between the starts of two bursts.
    pub(super) interval: Span,
}

/// The options of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct NetperfClientOptions {
    /// The whole command line.
    pub(crate) command_line: String,
    /// The ends of the control connection (`-H`, `-L`, `-p`, `-4`, `-6`).
    pub(super) control: NetperfEnds,
    /// The ends of the data connection (`-H`, `-L`, `-P`, `-4`, `-6` after `--`).
    pub(super) data: NetperfEnds,
    /// The address of the data connection's host, if it was typed and is not that of the control connection.
    pub(super) data_address: Option<IpAddr>,
    /// The test (`-t`).
    pub(super) test: NetperfTestName,
    /// The transport (`-T` after `--`).
    pub(super) protocol: NetperfProtocol,
    /// What this host does with data.
    pub(super) roles: DataRoles,
    /// Whether each transaction has its own connection.
    pub(super) connects_each_time: bool,
    /// What ends the test (`-l`).
    pub(super) length: Length,
    /// The interval of interim results (`-D`).
    pub(super) interim: Option<Span>,
    /// The unit of throughputs (`-f`).
    pub(super) unit: Unit,
    /// Whether headings are printed (`-P`).
    pub(super) headings: bool,
    /// How much is printed: 0, 1 or 2 (`-v`).
    pub(super) verbosity: u8,
    /// The form of the output (`-o`, `-O`, `-k` after `--`).
    pub(super) form: OutputForm,
    /// Whose CPU time is measured (`-c`, `-C`).
    pub(super) cpu: Pair<bool>,
    /// Figures for the CPU that the user gives.
    pub(super) cpu_rate: Pair<f32>,
    /// How often the test is repeated.
    pub(super) iterations: Iterations,
    /// Time between the agreement and the data (`-s`).
    pub(super) wait: Span,
    /// Whether connections are probed when they are idle (`-S`).
    pub(super) keep_alive: bool,
    /// Type of service (`-Y`).
    pub(super) tos: Pair<Option<u8>>,
    /// The brand of the result (`-B`).
    pub(super) brand: Option<String>,
    /// The passphrase that the server requires first (`-Z`).
    pub(super) passphrase: Option<String>,
    /// Bursts (`-b`, `-w`).
    pub(super) pace: Option<BurstPace>,
    /// Bytes of a write (`-m`).
    pub(super) send_size: Pair<Option<u32>>,
    /// Bytes of a read (`-M`).
    pub(super) receive_size: Pair<Option<u32>>,
    /// Send buffers (`-s`, `-S` after `--`).
    pub(super) send_buffer: Pair<Option<u32>>,
    /// Receive buffers.
    pub(super) receive_buffer: Pair<Option<u32>>,
    /// Bytes of a request and of a response (`-r`).
    pub(super) request_size: Option<u32>,
    /// Bytes of a response.
    pub(super) response_size: Option<u32>,
    /// Whether Nagle's algorithm is disabled (`-D` after `--`).
    pub(super) no_delay: bool,
    /// Segment size (`-G`).
    pub(super) mss: Option<u32>,
    /// Congestion control (`-K`); empty for the default.
    pub(super) congestion: Pair<String>,
    /// Requests that are under way besides the first one (`-b` after `--`).
    pub(super) burst: u32,
    /// How long a response may take before it counts as lost; UDP only (`-e`).
    pub(super) timeout: Option<Span>,
    /// Whether routers may forward the data (`-R`).
    pub(super) routed: bool,
    /// The identifier of the test (`-u`).
    pub(super) uuid: String,
    /// The name and the start of the file that fills the buffers (`-F`), and the name of the server's.
    pub(super) fill: Option<(String, Vec<u8>)>,
    /// The server's fill file.
    pub(super) remote_fill: String,
    /// Whether the times of single transactions are kept (`-j`, or a selector that needs them).
    pub(super) statistics: bool,
    /// Wall-clock time when the program started, from the Unix epoch.
    pub(super) wall: Span,
}

impl Default for NetperfClientOptions {
    fn default() -> Self {
        Self {
            command_line: "netperf".to_owned(),
            control: NetperfEnds { port: PORT, ..NetperfEnds::default() },
            data: NetperfEnds::default(),
            data_address: None,
            test: NetperfTestName::default(),
            protocol: NetperfProtocol::Tcp,
            roles: DataRoles { sends: true, receives: false },
            connects_each_time: false,
            length: Length::Seconds(10),
            interim: None,
            unit: Unit::Bits(6),
            headings: true,
            verbosity: 1,
            form: OutputForm::Classic,
            cpu: Pair::default(),
            cpu_rate: Pair::default(),
            iterations: Iterations::default(),
            wait: Span::ZERO,
            keep_alive: false,
            tos: Pair::default(),
            brand: None,
            passphrase: None,
            pace: None,
            send_size: Pair::default(),
            receive_size: Pair::default(),
            send_buffer: Pair::default(),
            receive_buffer: Pair::default(),
            request_size: None,
            response_size: None,
            no_delay: false,
            mss: None,
            congestion: Pair::default(),
            burst: 0,
            timeout: None,
            routed: true,
            uuid: String::new(),
            fill: None,
            remote_fill: String::new(),
            statistics: false,
            wall: Span::ZERO,
        }
    }
}

impl NetperfClientOptions {
    /// The host of the control connection.
    #[must_use]
    pub fn host(&self) -> &str {
        let family = self.control.family.or(self.control.local_family);
        let own = if family == NetperfFamily::V6 { "::1" } else { "localhost" };
        self.control.host.as_deref().unwrap_or(own)
    }

    /// The host of the data connection, if it is typed and another one.
    #[must_use]
    pub fn other_data_host(&self) -> Option<&str> {
        self.data.host.as_deref().filter(|host| *host != self.host())
    }

    /// Sets the address of that host.
    pub fn set_data_address(&mut self, address: IpAddr) {
        self.data_address = Some(address);
    }

    /// Whether requests are answered, or connections opened.
    pub(super) fn transactions(&self) -> bool {
        self.roles.transactions()
    }

    pub(super) fn udp(&self) -> bool {
        self.protocol == NetperfProtocol::Udp
    }

    /// Whether the output is the table of the test's name.
    pub(super) fn is_classic(&self) -> bool {
        self.form == OutputForm::Classic
    }

    /// Whether a selected value has this need.
    pub(super) fn needs(&self, need: SelectorNeeds) -> bool {
        let (OutputForm::Human(selection) | OutputForm::Csv(selection) | OutputForm::Keyval(selection)) =
            &self.form
        else {
            return false;
        };
        selection.iter().flatten().any(|selector| selector.needs == need)
    }

    /// What netperf calls the direction.
    pub(super) const fn direction_name(&self) -> &'static str {
        match (self.roles.sends, self.roles.receives) {
            (false, true) => "Receive",
            (true, false) => "Send",
            _ if self.connects_each_time => "Connect|Send|Recv",
            _ => "Send|Recv",
        }
    }

    /// The first `length` bytes of what is sent.
    pub(super) fn payload(&self, length: u32) -> Vec<u8> {
        let fill = self.fill.as_ref().map(|(_, bytes)| &bytes[..]).filter(|bytes| !bytes.is_empty());
        fill.unwrap_or(DEFAULT_FILL).iter().copied().cycle().take(length as usize).collect()
    }
}
