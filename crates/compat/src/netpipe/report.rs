//! The output of the transmitter and the content of its file. Its "Mega" is 1024 x 1024.

use super::argv::NetpipeMode;

const MEGA: f64 = 1024.0 * 1024.0;

/// The result of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetpipeSizeResult {
    pub(super) size: u64,
    pub(super) repeats: u32,
    /// Time of one message, one way, in seconds.
    pub(super) seconds: f64,
}

/// The line of the socket buffers that were read back.
pub(super) fn buffers(send: u64, receive: u64) -> String {
    format!(
        "Send and receive buffers are {send} and {receive} bytes\n(A bug in Linux doubles the requested buffer sizes)\n"
    )
}

/// The part of a size's line that is printed before its trials.
pub(super) fn begins(point: u32, size: u64, repeats: u32) -> String {
    format!("{point:3}: {size:7} bytes {repeats:6} times --> ")
}

impl NetpipeSizeResult {
    /// Payload bits that were transferred in the time of one message.
    pub(super) fn bits(&self, mode: NetpipeMode) -> f64 {
        self.bytes(mode) as f64 * 8.0
    }

    fn bytes(&self, mode: NetpipeMode) -> u64 {
        if mode == NetpipeMode::Both { self.size.saturating_mul(2) } else { self.size }
    }

    fn megabits(&self, mode: NetpipeMode) -> f64 {
        self.bits(mode) / self.seconds / MEGA
    }

    /// The rest of the line of a size.
    pub(super) fn line(&self, mode: NetpipeMode) -> String {
        format!(" {:8.2} Mbps in {:10.2} usec\n", self.megabits(mode), self.seconds * 1e6)
    }

    /// The line of the file.
    pub(super) fn row(&self, mode: NetpipeMode) -> String {
        format!("{:8} {:.6} {:12.8}\n", self.bytes(mode), self.megabits(mode), self.seconds)
    }

    /// The line of the file of an integrity check.
    pub(super) fn integrity_row(&self) -> String {
        format!("{:8} {}\n", self.size, self.repeats)
    }
}
