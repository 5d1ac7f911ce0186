//! The server's counts after a test.

use linerate_model::ForeignText;

use super::{CONGESTION_BYTES, NetperfMessage, kind};

/// Offset of the congestion control algorithm, bytes.
const CONGESTION_AT: usize = 27 * 4 + 160;

/// The CPU time of a host during a test, percent of all its cores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostCpu {
    /// Everything that is not idle.
    pub busy: f32,
    /// User mode.
    pub user: f32,
    /// Kernel.
    pub system: f32,
    /// Waiting for I/O.
    pub iowait: f32,
    /// Interrupts.
    pub irq: f32,
    /// Software interrupts.
    pub softirq: f32,
}

/// How a host measures its CPU time; 8 means /proc/stat.
const PROC_STAT: u32 = 8;

/// The server's counts after a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetperfResults {
    /// Bytes received.
    pub received: u64,
    /// Number of reads, or of datagrams received.
    pub receive_calls: u32,
    /// Receive buffer at the end, bytes.
    pub receive_buffer: u32,
    /// Bytes sent.
    pub sent: u64,
    /// Number of writes.
    pub send_calls: u32,
    /// Send buffer at the end, bytes.
    pub send_buffer: u32,
    /// Number of transactions.
    pub transactions: u32,
    /// Duration, seconds.
    pub elapsed: f32,
    /// CPU time; absent if it was not measured.
    pub cpu: Option<HostCpu>,
    /// Number of cores; 0 if CPU time was not measured.
    pub cores: u32,
    /// Number and busy share in percent of the busiest core; 0 and 0 if the server does not know it.
    pub peak: (u32, f32),
    /// Segments that the server has retransmitted; absent if it does not know.
    pub retransmits: Option<u32>,
    /// Congestion control algorithm; empty if it was not requested.
    pub congestion: ForeignText,
}

impl NetperfResults {
    /// Decodes a message.
    #[must_use]
    pub fn decode(message: &NetperfMessage) -> Self {
        let cpu = HostCpu {
            busy: message.float(11),
            user: message.float(12),
            system: message.float(13),
            iowait: message.float(14),
            irq: message.float(15),
            softirq: message.float(16),
        };
        Self {
            received: message.wide(0),
            receive_calls: message.word(2),
            receive_buffer: message.word(3),
            sent: message.wide(4),
            send_calls: message.word(6),
            send_buffer: message.word(7),
            transactions: message.word(9),
            elapsed: message.float(10),
            cpu: (message.word(19) > 0).then_some(cpu),
            cores: message.word(19),
            peak: (message.word(20), message.float(21)),
            retransmits: message.asked(26),
            congestion: message.text(CONGESTION_AT, CONGESTION_BYTES),
        }
    }

    /// Encodes the counts.
    #[must_use]
    pub fn encode(&self) -> NetperfMessage {
        let mut message = NetperfMessage::new(kind::TEST_RESULTS);
        message.set_wide(0, self.received);
        message.set(2, self.receive_calls);
        message.set(3, self.receive_buffer);
        message.set_wide(4, self.sent);
        message.set(6, self.send_calls);
        message.set(7, self.send_buffer);
        message.set(9, self.transactions);
        message.set(10, self.elapsed.to_bits());
        if let Some(HostCpu { busy, user, system, iowait, irq, softirq }) = self.cpu {
            for (index, share) in (11..).zip([busy, user, system, iowait, irq, softirq]) {
                message.set(index, share.to_bits());
            }
            message.set(18, PROC_STAT);
            message.set(19, self.cores);
        }
        message.set(20, self.peak.0);
        message.set(21, self.peak.1.to_bits());
        message.set_asked(26, self.retransmits);
        message.set_text(CONGESTION_AT, CONGESTION_BYTES, &self.congestion);
        message
    }
}
