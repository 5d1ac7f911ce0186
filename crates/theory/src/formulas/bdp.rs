//! Windows: what a path needs and what a host grants.

use crate::domain::{finite, not_negative, positive};

/// Largest window that a TCP header carries without scaling, bytes. Source: RFC 9293 §3.1.
pub const UNSCALED_WINDOW_BYTES: f64 = 65535.0;
/// Largest window shift. Source: RFC 7323 §2.3.
pub const MAX_WINDOW_SHIFT: i32 = 14;

/// Bandwidth-delay product: bytes that a path holds. Pass the goodput to get a window, or the link rate to get
/// bytes on the wire.
///
/// Units: bytes. Domain: rate, RTT ≥ 0; RTT is the base (unloaded) one. Source: RFC 6349 §3.3.1.
#[must_use]
pub fn bdp_bytes(rate_bps: f64, rtt_s: f64) -> Option<f64> {
    finite(bdp_bits(rate_bps, rtt_s)? / 8.0)
}

/// Bandwidth-delay product in bits, as in the tables of RFC 6349.
///
/// Units: bit. Domain: rate, RTT ≥ 0. Source: RFC 6349 §3.3.1.
#[must_use]
pub fn bdp_bits(rate_bps: f64, rtt_s: f64) -> Option<f64> {
    finite(not_negative(rate_bps)? * not_negative(rtt_s)?)
}

/// The window in segments that keeps a path full.
///
/// Units: segments, fractional. Domain: rate, RTT ≥ 0, MSS > 0. Source: RFC 6349 §3.3.1.
#[must_use]
pub fn window_segments(goodput_bps: f64, rtt_s: f64, mss_bytes: f64) -> Option<f64> {
    finite(bdp_bytes(goodput_bps, rtt_s)? / positive(mss_bytes)?)
}

/// Rate that a window allows: one window per round trip.
///
/// Units: bit/s. Domain: window ≥ 0, RTT > 0 (the smallest one: a queue makes the formula circular). Source:
/// RFC 6349 §3.3.1.
#[must_use]
pub fn window_rate_bps(window_bytes: f64, rtt_s: f64) -> Option<f64> {
    finite(8.0 * not_negative(window_bytes)? / positive(rtt_s)?)
}

/// Goodput of a window on a path: limited by the window or by the ceiling.
///
/// Units: bit/s. Domain: window ≥ 0, RTT > 0, ceiling > 0. Source: RFC 6349 §3.3.1.
#[must_use]
pub fn windowed_goodput_bps(window_bytes: f64, rtt_s: f64, ceiling_bps: f64) -> Option<f64> {
    Some(window_rate_bps(window_bytes, rtt_s)?.min(positive(ceiling_bps)?))
}

/// The RTT at which a window just fills a rate. At a longer RTT the window is the limit.
///
/// Units: s. Domain: window ≥ 0, rate > 0. Source: RFC 6349 §3.3.1.
#[must_use]
pub fn rtt_for_window_s(window_bytes: f64, rate_bps: f64) -> Option<f64> {
    finite(8.0 * not_negative(window_bytes)? / positive(rate_bps)?)
}

/// The power of two by which 65535 must be multiplied to reach a window: negative for much smaller windows,
/// above 14 if TCP cannot express it.
///
/// Units: exponent. Domain: window > 0. Source: RFC 7323 §2.
#[must_use]
pub fn window_scale_exponent(window_bytes: f64) -> Option<f64> {
    finite((positive(window_bytes)? / UNSCALED_WINDOW_BYTES).log2().ceil())
}

/// The window shift that a window needs, or `None` when it exceeds what TCP can express.
///
/// Units: shift, 0 to 14. Domain: window > 0. Source: RFC 7323 §2.3.
#[must_use]
pub fn window_shift(window_bytes: f64) -> Option<u8> {
    let exponent = window_scale_exponent(window_bytes)?.max(0.0);
    (exponent <= f64::from(MAX_WINDOW_SHIFT)).then_some(exponent as u8)
}

/// A Linux socket buffer that the kernel tunes, up to the last number of `tcp_rmem` or `tcp_wmem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinuxBuffer {
    /// The receiver's.
    Receive,
    /// The sender's.
    Send,
}

impl LinuxBuffer {
    /// Recommended ratio of buffer to window. A receiver then announces the full window. A sender stays busy
    /// even if it writes little at a time (a third of its buffer is then overhead), or wakes only when a third
    /// of its buffer is free.
    pub const BUFFER_PER_WINDOW: f64 = 2.0;

    /// Largest window that a buffer gives: half of a receive buffer, all of a send buffer.
    ///
    /// Units: bytes. Domain: buffer ≥ 0. A receiver announces half, since the kernel charges the memory of a
    /// packet, whose payload may be small. A sender is charged for packets that it built itself: with large
    /// writes, 96 % to 99 % of the buffer was payload in flight; with writes of one segment, 60 %. One write of
    /// 64 KiB may overfill a smaller buffer. Source: Linux `tcp_win_from_space`, `sk_stream_memory_free`;
    /// measured on 6.18 with 128 and 512 KiB at 50 ms.
    #[must_use]
    pub fn window_bytes(self, buffer_bytes: f64) -> Option<f64> {
        let buffer = not_negative(buffer_bytes)?;
        Some(match self {
            Self::Receive => buffer / 2.0,
            Self::Send => buffer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_over_21_ms_holds_2_625_000_bytes() {
        assert!((bdp_bytes(1e9, 0.021).unwrap() - 2_625_000.0).abs() < 1e-6);
        assert_eq!(window_shift(2_625_000.0), Some(6));
    }

    #[test]
    fn the_largest_window_is_a_gibibyte_less_its_granularity() {
        assert_eq!(window_shift(1_073_725_440.0), Some(14));
        assert_eq!(window_shift(1_073_725_441.0), None);
        assert_eq!(window_shift(1.0), Some(0));
    }

    #[test]
    fn a_window_limits_only_below_the_ceiling() {
        assert_eq!(windowed_goodput_bps(1e9, 0.021, 941e6), Some(941e6));
        assert_eq!(windowed_goodput_bps(1e9, 0.0, 941e6), None);
        let rtt = rtt_for_window_s(65536.0, 941e6).unwrap();
        assert!((window_rate_bps(65536.0, rtt).unwrap() - 941e6).abs() < 1e-3);
    }

    #[test]
    fn a_send_buffer_counts_whole_and_a_receive_buffer_half() {
        // 512 KiB at 50 ms allow at most 83.9 Mbit/s; 78.5 were measured at a mean RTT of 51.4 ms.
        let rate = |buffer: LinuxBuffer| window_rate_bps(buffer.window_bytes(524_288.0)?, 0.05);
        assert!((rate(LinuxBuffer::Send).unwrap() - 83.886_08e6).abs() < 1.0);
        assert!((rate(LinuxBuffer::Receive).unwrap() - 41.943_04e6).abs() < 1.0);
        assert_eq!(LinuxBuffer::Send.window_bytes(-1.0), None);
        assert_eq!(LinuxBuffer::Receive.window_bytes(f64::NAN), None);
    }

    #[test]
    fn what_is_advised_suffices_at_either_end() {
        for buffer in [LinuxBuffer::Receive, LinuxBuffer::Send] {
            assert!(buffer.window_bytes(LinuxBuffer::BUFFER_PER_WINDOW * 1e6).unwrap() >= 1e6, "{buffer:?}");
        }
    }
}
