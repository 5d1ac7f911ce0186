//! The options of the command line of the Linux tool.

use std::net::IpAddr;

use linerate_model::{SocketKnobs, TestSpec};
use linerate_units::{Bitrate, Bytes, Span};

use crate::stand_in::{LinkOptions, Transport};

/// Largest payload of a datagram over IPv4.
const MAX_DATAGRAM: u64 = 65_507;

/// The role of an end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NtttcpRole {
    /// Listens and receives.
    #[default]
    Receiver,
    /// Connects and sends.
    Sender,
}

/// The options of one end.
#[derive(Debug, Clone, PartialEq)]
pub struct NtttcpOptions {
    /// The role of the end.
    pub role: NtttcpRole,
    /// The receiver's address; at the receiver, the one to listen on.
    pub address: Option<String>,
    /// Number of data ports (`-P`).
    pub ports: u16,
    /// Threads of the sender per port (`-n`).
    pub threads: u16,
    /// Connections per thread (`-l`).
    pub connections: u16,
    /// First data port (`-p`); the sync port is the one below it.
    pub base: u16,
    /// Whether there is a sync connection (not with `-N`).
    pub sync: bool,
    /// Whether the receiver waits for several senders (`-M`).
    pub many: bool,
    /// Whether the sender is the last of several (`-L`).
    pub last: bool,
    /// Whether the receiver continues after each test (`-H`).
    pub again: bool,
    /// Whether the transport is UDP (`-u`).
    pub udp: bool,
    /// Length of a write or read, bytes (`-b`).
    pub length: Option<u64>,
    /// Rate of all connections together (`-B`).
    pub rate: Option<Bitrate>,
    /// Rate to which the kernel paces each connection (`--fq-rate-limit`).
    pub fq_rate: Option<Bitrate>,
    /// Measured time in seconds, 0 for no limit (`-t`).
    pub seconds: u32,
    /// Omitted seconds before it (`-W`).
    pub omit: u32,
    /// Seconds of cool-down after it (`-C`).
    pub cooldown: u32,
    /// Source port of the first connection (`-f`).
    pub source_port: Option<u16>,
    /// Source address (`-a`).
    pub source: Option<IpAddr>,
    /// Whether to use IPv6 (`-6`).
    pub ipv6: bool,
    /// Whether to disable Nagle's algorithm (`--no-delay`).
    pub no_delay: bool,
    /// CPU of the first field of `-m`.
    pub affinity: Option<u32>,
    /// Whether to print more lines (`-V`).
    pub verbose: bool,
    /// Whether to print no line during the test (`-Q`).
    pub quiet: bool,
    /// File for the result as XML (`-x`).
    pub xml: Option<String>,
    /// File for the result as JSON (`-j`).
    pub json: Option<String>,
    /// File for the console lines (`-O`).
    pub log: Option<String>,
    /// Show retransmissions by kind (`--show-tcp-retrans`).
    pub by_kind: bool,
    /// Show packets of this interface (`--show-nic-packets`).
    pub interface: Option<String>,
    /// Show interrupts of lines with this name (`--show-dev-interrupts`).
    pub interrupts: Option<String>,
    /// Whether the settings name epoll (`-e`).
    pub epoll: bool,
    /// Whether to run in the background (`-D`), which is refused.
    pub daemon: bool,
    /// Lines about the options, which the program prints first.
    pub notes: Vec<String>,
    /// The options of the Windows tool, and its dialogue; absent for the Linux tool.
    pub windows: Option<WindowsOptions>,
}

/// Options of the Windows tool only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WindowsOptions {
    /// Whether every thread waits for its peer before sending data (not with `-ns`).
    pub tokens: bool,
    /// Whether the receiver sends each thread its port (`-sp`).
    pub announces_ports: bool,
    /// Number of buffers that each thread sends instead of sending for a time (`-n`).
    pub buffers: Option<u64>,
    /// Send buffer of a data socket, bytes (`-sb`).
    pub send_buffer: Option<u64>,
    /// Receive buffer of a data socket, bytes (`-rb`).
    pub receive_buffer: Option<u64>,
    /// Whether the table of threads is not printed (`-hpt`).
    pub hides_threads: bool,
}

impl Default for NtttcpOptions {
    fn default() -> Self {
        Self {
            role: NtttcpRole::Receiver,
            address: None,
            ports: 16,
            threads: 4,
            connections: 1,
            base: 5001,
            sync: true,
            many: false,
            last: false,
            again: false,
            udp: false,
            length: None,
            rate: None,
            fq_rate: None,
            seconds: 60,
            omit: 0,
            cooldown: 0,
            source_port: None,
            source: None,
            ipv6: false,
            no_delay: false,
            affinity: None,
            verbose: false,
            quiet: false,
            xml: None,
            json: None,
            log: None,
            by_kind: false,
            interface: None,
            interrupts: None,
            epoll: false,
            daemon: false,
            notes: Vec::new(),
            windows: None,
        }
    }
}

impl NtttcpOptions {
    /// Length of a write or read, bytes.
    #[must_use]
    pub fn block(&self) -> u64 {
        let usual = match (&self.windows, self.role) {
            (Some(_), _) if self.udp => 128,
            (None, NtttcpRole::Sender) => 128 << 10,
            _ => 64 << 10,
        };
        let block = self.length.unwrap_or(usual).max(1);
        if self.udp { block.min(MAX_DATAGRAM) } else { block }
    }

    /// Number of connections of a sender, over all threads.
    #[must_use]
    pub fn streams(&self) -> u32 {
        self.sender_threads() * u32::from(self.connections)
    }

    /// Number of threads of a sender.
    pub(super) fn sender_threads(&self) -> u32 {
        u32::from(self.ports) * u32::from(self.threads)
    }

    /// Number of buffers per thread, if these end the test instead of the time.
    pub(super) fn buffers(&self) -> Option<u64> {
        self.windows.as_ref()?.buffers
    }

    pub(super) fn transport(&self) -> Transport {
        if self.udp { Transport::Udp } else { Transport::Tcp }
    }

    pub(super) fn sync_link(&self) -> LinkOptions {
        LinkOptions { ipv4: !self.ipv6, ipv6: self.ipv6, ..self.local() }
    }

    pub(super) fn data_link(&self) -> LinkOptions {
        LinkOptions {
            transport: self.transport(),
            no_delay: self.no_delay,
            snd_buf: self.windows.as_ref().and_then(|windows| windows.send_buffer),
            rcv_buf: self.windows.as_ref().and_then(|windows| windows.receive_buffer),
            ..self.sync_link()
        }
    }

    fn local(&self) -> LinkOptions {
        match self.role {
            NtttcpRole::Sender => LinkOptions { local: self.source, ..LinkOptions::default() },
            NtttcpRole::Receiver => LinkOptions::default().at(self.address.as_deref()),
        }
    }

    /// The specification of the test.
    pub(super) fn spec(&self, measured: Option<Span>, streams: u32) -> TestSpec {
        let mut spec = TestSpec::default();
        spec.traffic.upload = true;
        spec.traffic.udp = self.udp;
        spec.traffic.duration = measured;
        spec.traffic.omit = (self.omit > 0).then(|| Span::from_secs(u64::from(self.omit)));
        spec.traffic.streams = streams;
        spec.traffic.length = Some(Bytes::new(self.block()));
        spec.traffic.rate = self.each(self.rate);
        spec.traffic.fq_rate = self.fq_rate;
        spec.socket = self.knobs();
        spec
    }

    pub(super) fn knobs(&self) -> SocketKnobs {
        SocketKnobs { no_delay: self.no_delay, ..SocketKnobs::default() }
    }

    /// The share of one connection in a rate for all connections.
    pub(super) fn each(&self, rate: Option<Bitrate>) -> Option<Bitrate> {
        Bitrate::from_bps(rate?.bps() / f64::from(self.streams().max(1)))
    }
}
