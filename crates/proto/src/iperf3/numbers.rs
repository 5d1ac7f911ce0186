//! Numbers as iperf3 reads and prints them.

/// Unit of rates (`-f`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bytes, with factors of 1024, instead of bits with factors of 1000.
    pub bytes: bool,
    /// How many factors: 1 for kilo, 4 for tera.
    pub power: u8,
}
