//! What a command line of ttcp asks for.

use linerate_units::Span;

/// The program that is imitated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Line {
    /// The program of the Ballistic Research Laboratory, 1987.
    Brl,
    /// Silicon Graphics' revision 1.12 and its descendants: what Unix systems mostly have.
    #[default]
    Sgi,
    /// Ohio University's, with progress on the terminal.
    Ohio,
    /// PCATTCP 2 for Windows.
    Pcattcp,
}

/// The unit of printed rates: all of them are binary, whatever their names say.
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

/// What a command line of ttcp asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whose defaults and output.
    pub line: Line,
    /// Whether this end transmits.
    pub transmit: bool,
    /// The peer, where this end connects.
    pub host: Option<String>,
    /// Bytes handed to the kernel at once, or payload of one datagram (-l).
    pub length: u32,
    /// Buffers to send (-n).
    pub count: u64,
    /// Port (-p).
    pub port: u16,
    /// UDP instead of TCP (-u).
    pub udp: bool,
    /// Carry standard input to standard output instead of a pattern to nowhere.
    pub stdio: bool,
    /// Unit of printed rates (-f).
    pub unit: RateUnit,
    /// Socket buffer, bytes: to send at the transmitter, to receive at the receiver (-b).
    pub buffer: Option<u64>,
    /// Send small segments at once; the transmitter's (-D).
    pub no_delay: bool,
    /// Write standard output in whole blocks of the length (-B).
    pub whole_blocks: bool,
    /// Print more (-v).
    pub verbose: bool,
    /// Alignment of the buffer as printed; it changes nothing here (-A).
    pub align: u32,
    /// Offset of the buffer as printed; it changes nothing here (-O).
    pub offset: u32,
    /// The receiver connects and the transmitter listens (-S and -C).
    pub reversed: bool,
    /// Progress bar at the transmitter (Ohio -P).
    pub progress: bool,
    /// Running rate (Ohio -S).
    pub running_rate: bool,
    /// Send for ever, or accept again after each connection (PCATTCP -c).
    pub forever: bool,
    /// One receiver for TCP and UDP, any number at once (PCATTCP -R, and our server).
    pub both: bool,
    /// Pause before each write but the first (PCATTCP -w).
    pub write_gap: Option<Span>,
    /// Most bytes per second (PCATTCP -L).
    pub byte_rate: Option<u64>,
    /// Use only IPv4.
    pub ipv4: bool,
    /// Use only IPv6.
    pub ipv6: bool,
}

impl Settings {
    /// The defaults of a line, as a receiver in the mode that it has without -s.
    #[must_use]
    pub fn of(line: Line) -> Self {
        let brl = line == Line::Brl;
        Self {
            line,
            transmit: false,
            host: None,
            length: if brl { 1024 } else { 8192 },
            count: if brl { 1024 } else { 2048 },
            port: if brl { 2000 } else { 5001 },
            udp: false,
            stdio: line != Line::Pcattcp,
            unit: if line == Line::Ohio { RateUnit::Megabits } else { RateUnit::Kilobytes },
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

    /// A receiver that serves any number of transmitters over TCP and UDP, for ever.
    #[must_use]
    pub fn server(port: u16) -> Self {
        Self { port, stdio: false, forever: true, both: true, ..Self::of(Line::Sgi) }
    }

    /// Whether this end connects.
    #[must_use]
    pub const fn connects(&self) -> bool {
        self.transmit != self.reversed
    }
}
