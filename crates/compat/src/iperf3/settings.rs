//! All settings of iperf3's command line in both roles, with the defaults of iperf3 3.21.

use std::path::PathBuf;

use linerate_units::Span;

use super::numbers::Iperf3Format;

/// Default port of iperf3.
pub const PORT: u16 = 5201;

/// The settings of a command line. [`Iperf3Settings::default`] is a server without options; a client has a
/// `host`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Iperf3Settings {
    /// `-c`: the server to connect to; absent for a server (`-s`).
    pub host: Option<String>,
    /// Options of both roles.
    pub common: Common,
    /// Options of a server.
    pub server: ServerSettings,
    /// Options of a client.
    pub client: ClientSettings,
}

/// Options of both roles.
#[derive(Debug, Clone, PartialEq)]
pub struct Common {
    /// `-p`: control port, and port of every stream.
    pub port: u16,
    /// `-f`: unit of printed rates; absent for an adaptive one.
    pub format: Option<Iperf3Format>,
    /// `-i`: time between periodic reports; zero for none.
    pub interval: Span,
    /// `-I`: file for the process id.
    pub pidfile: Option<PathBuf>,
    /// `-F`: file that a sender sends or a receiver writes.
    pub file: Option<Iperf3File>,
    /// `-A n`: CPU of this process.
    pub affinity: Option<u32>,
    /// `-B`: local address.
    pub bind: Option<String>,
    /// `--bind-dev`, or the part of a host after `%`: interface.
    pub bind_dev: Option<String>,
    /// `-V`: more detail.
    pub verbose: bool,
    /// `-J`: JSON instead of text.
    pub json: bool,
    /// `--json-stream`: one JSON object per line, printed as things happen; `json` is set too.
    pub json_stream: bool,
    /// `--json-stream-full-output`: the complete object after the lines.
    pub json_stream_full_output: bool,
    /// `--logfile`: file to which all output is appended.
    pub logfile: Option<PathBuf>,
    /// `--timestamps`: strftime(3) format of a prefix for each line.
    pub timestamps: Option<String>,
    /// `--rcv-timeout`: how long a receiver waits for data.
    pub rcv_timeout: Span,
    /// `--snd-timeout`: timeout for unacknowledged data; absent for the kernel's.
    pub snd_timeout: Option<Span>,
    /// `--cntl-ka`: keep-alive on the control connection.
    pub control_keep_alive: Option<ControlKeepAlive>,
    /// `-4`, `-6`: only this family.
    pub family: Option<Iperf3Family>,
    /// `-d`: level from 1 to 4.
    pub debug: Option<u8>,
    /// `--use-pkcs1-padding`: encrypt passwords like iperf3 before 3.17.
    pub pkcs1_padding: bool,
    /// Warnings, printed on standard error before anything else.
    pub warnings: Vec<String>,
}

/// A file of `-F`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Iperf3File {
    /// Its name as the user typed it.
    pub path: PathBuf,
    /// Its size before the test, bytes; 0 if it is no ordinary file, absent if it does not exist.
    pub bytes: Option<u64>,
    /// Whether it exists and is no ordinary file.
    pub special: bool,
    /// Why this end cannot send it: errno and text.
    pub unreadable: Option<(i32, String)>,
}

/// Options of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSettings {
    /// `-D`: run in the background.
    pub daemon: bool,
    /// `-1`: end after one client.
    pub one_off: bool,
    /// `--idle-timeout`: time after which an idle server listens again or, with `one_off`, exits.
    pub idle_timeout: Option<Span>,
    /// `--server-bitrate-limit R`: highest rate over all streams, bit/s.
    pub bitrate_limit: Option<u64>,
    /// `--server-bitrate-limit R/S`: time over which the rate is averaged; zero to check only the requested
    /// rate.
    pub bitrate_limit_interval: Span,
    /// `--server-max-duration`: longest test, including the omitted part.
    pub max_duration: Option<Span>,
    /// `--rsa-private-key-path`: PEM file of the key that decrypts logins.
    pub rsa_private_key: Option<PathBuf>,
    /// `--authorized-users-path`: file of users and digests.
    pub authorized_users: Option<PathBuf>,
    /// `--time-skew-threshold`: largest allowed difference between the clocks of both ends.
    pub time_skew_threshold: Span,
}

/// Options of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientSettings {
    /// `-u`: UDP.
    pub udp: bool,
    /// `-m`: Multipath TCP.
    pub mptcp: bool,
    /// `--connect-timeout`: for the control connection; absent for the kernel's.
    pub connect_timeout: Option<Span>,
    /// `-b R`: rate of each stream, bit/s; 0 for no limit. The protocol's default is already set.
    pub bitrate: u64,
    /// `-b R/N`: number of blocks per burst.
    pub burst: Option<u32>,
    /// `--pacing-timer`: interval of the pacing timer, microseconds.
    pub pacing_timer_us: u64,
    /// `--fq-rate`: rate to which the kernel paces each stream, bit/s; 0 for none.
    pub fq_rate: u64,
    /// When the test ends.
    pub end: EndCondition,
    /// Whether the user has set that. Otherwise, a file ends it.
    pub end_given: bool,
    /// `-l`: length of a block or datagram, bytes. Absent: 128 KiB (TCP), or what fits into one segment of the
    /// control connection (UDP).
    pub length: Option<u64>,
    /// `--cport`: local port of the first stream.
    pub cport: Option<u16>,
    /// `-P`: streams in each direction.
    pub parallel: u32,
    /// `-R`: whether the server sends.
    pub reverse: bool,
    /// `--bidir`: whether both ends send.
    pub bidir: bool,
    /// `-w`: both socket buffers, bytes.
    pub window: Option<u64>,
    /// `-C`: congestion control algorithm, by its kernel name.
    pub congestion: Option<String>,
    /// `-M`: maximum segment size, bytes.
    pub mss: Option<u32>,
    /// `-N`: disable Nagle's algorithm.
    pub no_delay: bool,
    /// `-S` or `--dscp`: type-of-service byte.
    pub tos: u8,
    /// `-L`: IPv6 flow label.
    pub flow_label: Option<u32>,
    /// `-Z`: send from a file without copying (sendfile).
    pub zerocopy: bool,
    /// `--skip-rx-copy`: receivers discard data without copying them.
    pub skip_rx_copy: bool,
    /// `-O`: omitted seconds at the start.
    pub omit: u32,
    /// `-T`: prefix of each line.
    pub title: Option<String>,
    /// `--extra-data`: text that is copied to the JSON of both ends.
    pub extra_data: Option<String>,
    /// `--get-server-output`: print the server's own report too.
    pub get_server_output: bool,
    /// `--udp-counters-64bit`: datagram numbers of 8 bytes.
    pub udp_counters_64bit: bool,
    /// `--gsro`: use GSO and GRO for datagrams.
    pub gsro: bool,
    /// `--repeating-payload`: digits instead of random bytes.
    pub repeating_payload: bool,
    /// `--dont-fragment`: forbid fragmentation of IPv4 datagrams.
    pub dont_fragment: bool,
    /// `--username`: user name of the login.
    pub username: Option<String>,
    /// `--rsa-public-key-path`: PEM file of the server's key.
    pub rsa_public_key: Option<PathBuf>,
    /// `-A n,m`: CPU of the server (m).
    pub server_affinity: Option<u32>,
}

/// When a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCondition {
    /// `-t`: after this number of seconds, not counting the omitted ones; 0 for never.
    Time(u32),
    /// `-n`: after this number of bytes on all streams of one direction.
    Bytes(u64),
    /// `-k`: after this number of blocks or datagrams on all streams of one direction.
    Blocks(u64),
}

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iperf3Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Keep-alive of the control connection; absent values are the kernel's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlKeepAlive {
    /// Idle time before the first probe.
    pub idle: Option<Span>,
    /// Time between probes.
    pub interval: Option<Span>,
    /// Number of lost probes after which the connection counts as dead.
    pub count: Option<u32>,
}

impl Iperf3Settings {
    /// A client without options.
    #[must_use]
    pub fn client(host: &str) -> Self {
        Self { host: Some(host.to_owned()), ..Self::default() }
    }

    /// Adds what the system says of the file of `-F`: without another end condition, a client ends after as many
    /// bytes as the file has.
    pub fn set_file(&mut self, file: Iperf3File) {
        if let Some(bytes) =
            file.bytes.filter(|bytes| *bytes > 0 && self.is_client() && !self.client.end_given)
        {
            self.client.end = EndCondition::Bytes(bytes);
        }
        self.common.file = Some(file);
    }

    /// Whether this is a client that sends.
    #[must_use]
    pub fn is_sending_client(&self) -> bool {
        self.is_client() && (!self.client.reverse || self.client.bidir)
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
            end_given: false,
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
