//! Everything that iperf3's command line can set, in both roles, with the defaults of iperf3 3.21.

use std::path::PathBuf;

use linerate_units::Span;

use super::numbers::Format;

/// Port of iperf3 unless another is given.
pub const PORT: u16 = 5201;

/// What the command line asked for. [`Settings::default`] is a server without options; a client has a `host`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// `-c`: the server to connect to; absent for a server (`-s`).
    pub host: Option<String>,
    /// What both roles know.
    pub common: Common,
    /// What only a server knows.
    pub server: ServerSettings,
    /// What only a client knows.
    pub client: ClientSettings,
}

/// Options of both roles.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// `-p`: control port, and port of every stream.
    pub port: u16,
    /// `-f`: unit of rates for people; absent for one that suits the value.
    pub format: Option<Format>,
    /// `-i`: time between periodic reports; zero for none.
    pub interval: Span,
    /// `-I`: file that shall hold the process number.
    pub pidfile: Option<PathBuf>,
    /// `-F`: file that a client sends or a server writes.
    pub file: Option<PathBuf>,
    /// `-A n`: CPU of this process.
    pub affinity: Option<u32>,
    /// `-B`: local address.
    pub bind: Option<String>,
    /// `--bind-dev`, or what stood after `%` in a host: interface.
    pub bind_dev: Option<String>,
    /// `-V`: more detail.
    pub verbose: bool,
    /// `-J`: JSON instead of text.
    pub json: bool,
    /// `--json-stream`: one JSON object a line, as things happen; `json` is set too.
    pub json_stream: bool,
    /// `--json-stream-full-output`: the whole object after the lines.
    pub json_stream_full_output: bool,
    /// `--logfile`: file to which everything is appended that would be printed.
    pub logfile: Option<PathBuf>,
    /// `--forceflush`: flush after each report.
    pub forceflush: bool,
    /// `--timestamps`: strftime(3) format that stands before each line.
    pub timestamps: Option<String>,
    /// `--rcv-timeout`: a receiver gives up after so long without data.
    pub rcv_timeout: Span,
    /// `--snd-timeout`: unacknowledged bytes break a connection after so long; absent leaves it to the system.
    pub snd_timeout: Option<Span>,
    /// `--cntl-ka`: keep-alive on the control connection.
    pub control_keep_alive: Option<KeepAlive>,
    /// `-4`, `-6`: only this family.
    pub family: Option<Family>,
    /// `-d`: level from 1 to 4.
    pub debug: Option<u8>,
    /// `--use-pkcs1-padding`: passwords are encrypted as iperf3 before 3.17 does.
    pub pkcs1_padding: bool,
    /// Lines for standard error before anything else.
    pub warnings: Vec<String>,
}

/// Options of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSettings {
    /// `-D`: run in the background.
    pub daemon: bool,
    /// `-1`: end after one client.
    pub one_off: bool,
    /// `--idle-timeout`: an idle server listens anew (or, with `one_off`, ends) after so long.
    pub idle_timeout: Option<Span>,
    /// `--server-bitrate-limit R`: highest rate over all streams, bit/s.
    pub bitrate_limit: Option<u64>,
    /// `--server-bitrate-limit R/S`: time over which the rate is averaged; zero to check only the request.
    pub bitrate_limit_interval: Span,
    /// `--server-max-duration`: longest test, warm-up included.
    pub max_duration: Option<Span>,
    /// `--rsa-private-key-path`: PEM file of the key that opens passwords.
    pub rsa_private_key: Option<PathBuf>,
    /// `--authorized-users-path`: file of users and digests.
    pub authorized_users: Option<PathBuf>,
    /// `--time-skew-threshold`: most that the clocks of both ends may differ.
    pub time_skew_threshold: Span,
}

/// Options of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientSettings {
    /// `-u`: UDP.
    pub udp: bool,
    /// `-m`: Multipath TCP.
    pub mptcp: bool,
    /// `--connect-timeout`: for the control connection; absent leaves it to the system.
    pub connect_timeout: Option<Span>,
    /// `-b R`: rate of each stream, bit/s; 0 for no limit. The default of the protocol is filled in.
    pub bitrate: u64,
    /// `-b R/N`: blocks that leave together.
    pub burst: Option<u32>,
    /// `--pacing-timer`: tick of the pacing, microseconds.
    pub pacing_timer_us: u64,
    /// `--fq-rate`: rate to which the kernel paces each stream, bit/s; 0 for none.
    pub fq_rate: u64,
    /// When the test ends.
    pub end: EndCondition,
    /// `-l`: bytes of a block or datagram. Absent: 128 KiB (TCP); what fits one segment of the control
    /// connection (UDP).
    pub length: Option<u64>,
    /// `--cport`: local port of the first stream.
    pub cport: Option<u16>,
    /// `-P`: streams in each direction.
    pub parallel: u32,
    /// `-R`: the server sends.
    pub reverse: bool,
    /// `--bidir`: both send.
    pub bidir: bool,
    /// `-w`: both socket buffers, bytes.
    pub window: Option<u64>,
    /// `-C`: congestion control by its kernel name.
    pub congestion: Option<String>,
    /// `-M`: largest segment, bytes.
    pub mss: Option<u32>,
    /// `-N`: send small segments at once.
    pub no_delay: bool,
    /// `-S` or `--dscp`: type-of-service byte.
    pub tos: u8,
    /// `-L`: flow label of IPv6.
    pub flow_label: Option<u32>,
    /// `-Z`: give the kernel a file instead of a buffer.
    pub zerocopy: bool,
    /// `--skip-rx-copy`: receivers do not copy what arrives.
    pub skip_rx_copy: bool,
    /// `-O`: seconds left out of the result at the start.
    pub omit: u32,
    /// `-T`: stands before each line.
    pub title: Option<String>,
    /// `--extra-data`: goes into the JSON of both ends.
    pub extra_data: Option<String>,
    /// `--get-server-output`: print the server's own report too.
    pub get_server_output: bool,
    /// `--udp-counters-64bit`: datagram numbers of 8 bytes.
    pub udp_counters_64bit: bool,
    /// `--gsro`: datagrams are handed to and taken from the kernel in bundles.
    pub gsro: bool,
    /// `--repeating-payload`: digits instead of random bytes.
    pub repeating_payload: bool,
    /// `--dont-fragment`: forbid fragmentation of IPv4 datagrams.
    pub dont_fragment: bool,
    /// `--username`: who logs in.
    pub username: Option<String>,
    /// `--rsa-public-key-path`: PEM file of the server's key.
    pub rsa_public_key: Option<PathBuf>,
    /// `-A n,m`: CPU of the server, m.
    pub server_affinity: Option<u32>,
}

/// When a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCondition {
    /// `-t`: after so many seconds beyond the omitted ones; 0 for never.
    Time(u32),
    /// `-n`: after so many bytes over all streams of one direction.
    Bytes(u64),
    /// `-k`: after so many blocks or datagrams over all streams of one direction.
    Blocks(u64),
}

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Keep-alive of the control connection; what is absent the system decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Option<Span>,
    /// Time between probes.
    pub interval: Option<Span>,
    /// Probes before the connection counts as dead.
    pub count: Option<u32>,
}

impl Settings {
    /// A client without options.
    #[must_use]
    pub fn client(host: &str) -> Self {
        Self { host: Some(host.to_owned()), ..Self::default() }
    }

    /// Whether this is a client.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.host.is_some()
    }
}

impl Default for Common {
    fn default() -> Self {
        Self {
            port: PORT,
            format: None,
            interval: Span::from_secs(1),
            pidfile: None,
            file: None,
            affinity: None,
            bind: None,
            bind_dev: None,
            verbose: false,
            json: false,
            json_stream: false,
            json_stream_full_output: false,
            logfile: None,
            forceflush: false,
            timestamps: None,
            rcv_timeout: Span::from_secs(120),
            snd_timeout: None,
            control_keep_alive: None,
            family: None,
            debug: None,
            pkcs1_padding: false,
            warnings: Vec::new(),
        }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            daemon: false,
            one_off: false,
            idle_timeout: None,
            bitrate_limit: None,
            bitrate_limit_interval: Span::from_secs(5),
            max_duration: None,
            rsa_private_key: None,
            authorized_users: None,
            time_skew_threshold: Span::from_secs(10),
        }
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            udp: false,
            mptcp: false,
            connect_timeout: None,
            bitrate: 0,
            burst: None,
            pacing_timer_us: 1000,
            fq_rate: 0,
            end: EndCondition::Time(10),
            length: None,
            cport: None,
            parallel: 1,
            reverse: false,
            bidir: false,
            window: None,
            congestion: None,
            mss: None,
            no_delay: false,
            tos: 0,
            flow_label: None,
            zerocopy: false,
            skip_rx_copy: false,
            omit: 0,
            title: None,
            extra_data: None,
            get_server_output: false,
            udp_counters_64bit: false,
            gsro: false,
            repeating_payload: false,
            dont_fragment: false,
            username: None,
            rsa_public_key: None,
            server_affinity: None,
        }
    }
}
