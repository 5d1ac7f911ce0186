//! The settings of a command line of ttcp.

use linerate_units::Span;

/// The variant that is imitated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TtcpVariant {
    /// The program of the Ballistic Research Laboratory, 1987.
    Brl,
    /// Silicon Graphics' revision 1.12 and its descendants: the usual one on Unix systems.
    #[default]
    Sgi,
    /// The variant of Ohio University, with progress on the terminal.
    Ohio,
    /// PCATTCP 2 for Windows.
    Pcattcp,
}

/// The unit of printed rates. All of them are binary, in contrast to their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateUnit {
    /// 2^10 bytes.
    #[default]
    Kilobytes,
    /// 2^20 bytes.
    Megabytes,
    /// 2^30 bytes.
    Gigabytes,
    /// 2^10 bits.
    Kilobits,
    /// 2^20 bits.
    Megabits,
    /// 2^30 bits.
    Gigabits,
}

/// The settings of a command line of ttcp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TtcpSettings {
    /// The variant that determines defaults and output.
    pub line: TtcpVariant,
    /// Whether this end transmits.
    pub transmit: bool,
    /// The peer, if this end connects.
    pub host: Option<String>,
    /// Bytes passed to the kernel in one call, or payload of one datagram (-l).
    pub length: u32,
    /// Buffers to send (-n).
    pub count: u64,
    /// Port (-p).
    pub port: u16,
    /// UDP instead of TCP (-u).
    pub udp: bool,
    /// Transfer standard input to standard output instead of a discarded pattern.
    pub stdio: bool,
    /// Unit of printed rates (-f).
    pub unit: RateUnit,
    /// Socket buffer, bytes: send buffer of a transmitter, receive buffer of a receiver (-b).
    pub buffer: Option<u64>,
    /// TCP_NODELAY at the transmitter (-D).
    pub no_delay: bool,
    /// Write standard output in whole blocks of `length` (-B).
    pub whole_blocks: bool,
    /// Print more (-v).
    pub verbose: bool,
    /// Printed alignment of the buffer; has no effect here (-A).
    pub align: u32,
    /// Printed offset of the buffer; has no effect here (-O).
    pub offset: u32,
    /// The receiver connects and the transmitter listens (-S and -C).
    pub reversed: bool,
    /// Progress bar at the transmitter (Ohio -P).
    pub progress: bool,
    /// Running rate (Ohio -S).
    pub running_rate: bool,
    /// Send forever, or accept again after each connection (PCATTCP -c).
    pub forever: bool,
    /// One receiver for TCP and UDP with any number of concurrent tests (PCATTCP -R, and our embedded server).
    pub both: bool,
    /// Pause before each write except the first (PCATTCP -w).
    pub write_gap: Option<Span>,
    /// Most bytes per second (PCATTCP -L).
    pub byte_rate: Option<u64>,
    /// Use only IPv4.
    pub ipv4: bool,
    /// Use only IPv6.
    pub ipv6: bool,
}

impl TtcpSettings {
    /// The defaults of a variant, as a receiver in its mode without -s.
    #[must_use]
    pub fn of(line: TtcpVariant) -> Self {
        let brl = line == TtcpVariant::Brl;
        Self {
            line,
            transmit: false,
            host: None,
            length: if brl { 1024 } else { 8192 },
            count: if brl { 1024 } else { 2048 },
            port: if brl { 2000 } else { 5001 },
            udp: false,
            stdio: line != TtcpVariant::Pcattcp,
            unit: if line == TtcpVariant::Ohio { RateUnit::Megabits } else { RateUnit::Kilobytes },
            buffer: None,
            no_delay: false,
            whole_blocks: false,
            verbose: false,
            align: 16_384,
            offset: 0,
            reversed: false,
            progress: false,
            running_rate: false,
            forever: false,
            both: false,
            write_gap: None,
            byte_rate: None,
            ipv4: false,
            ipv6: false,
        }
    }

    /// A receiver that serves any number of transmitters over TCP and UDP, forever.
    #[must_use]
    pub fn server(port: u16) -> Self {
        Self { port, stdio: false, forever: true, both: true, ..Self::of(TtcpVariant::Sgi) }
    }

    /// Whether this end connects.
    #[must_use]
    pub const fn connects(&self) -> bool {
        self.transmit != self.reversed
    }
}
