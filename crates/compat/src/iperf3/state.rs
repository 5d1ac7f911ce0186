//! State bytes, which control the dialogue on the control connection.

/// A state of the dialogue, one signed byte on the wire.
///
/// # Source
/// iperf3 3.1 to 3.21; the numbers have never changed. 3 and 5 to 8 are reserved and unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iperf3State {
    /// Server: start the timers.
    TestStart,
    /// Server: data may be sent.
    TestRunning,
    /// Client: the test is over.
    TestEnd,
    /// Server: requests the parameters.
    ParamExchange,
    /// Server: requests the streams.
    CreateStreams,
    /// Server: was interrupted.
    ServerTerminate,
    /// Client: was interrupted.
    ClientTerminate,
    /// Server: requests the results.
    ExchangeResults,
    /// Server: the results are exchanged.
    DisplayResults,
    /// Client: the dialogue is over.
    IperfDone,
    /// Server: busy with another test.
    AccessDenied,
    /// Server: has failed; two numbers follow.
    ServerError,
}

impl Iperf3State {
    /// The byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::TestStart => 1,
            Self::TestRunning => 2,
            Self::TestEnd => 4,
            Self::ParamExchange => 9,
            Self::CreateStreams => 10,
            Self::ServerTerminate => 11,
            Self::ClientTerminate => 12,
            Self::ExchangeResults => 13,
            Self::DisplayResults => 14,
            Self::IperfDone => 16,
            Self::AccessDenied => 0xff,
            Self::ServerError => 0xfe,
        }
    }

    /// The state for a byte; absent for an unused one.
    #[must_use]
    pub const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::TestStart,
            2 => Self::TestRunning,
            4 => Self::TestEnd,
            9 => Self::ParamExchange,
            10 => Self::CreateStreams,
            11 => Self::ServerTerminate,
            12 => Self::ClientTerminate,
            13 => Self::ExchangeResults,
            14 => Self::DisplayResults,
            16 => Self::IperfDone,
            0xff => Self::AccessDenied,
            0xfe => Self::ServerError,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_means_what_it_is_written_as() {
        let known: Vec<u8> = (0..=255).filter(|byte| Iperf3State::of(*byte).is_some()).collect();
        assert_eq!(known, [1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 0xfe, 0xff]);
        for byte in known {
            assert_eq!(Iperf3State::of(byte).map(Iperf3State::byte), Some(byte));
        }
    }
}
