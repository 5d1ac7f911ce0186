//! Theoretical values, computed independently: the product's own formulas cannot verify its own lab.

/// Payload of TCP at a link rate, bits per second: IPv4 and TCP with timestamps take 52 bytes of the packet;
/// Ethernet adds 14 of header, 4 of check sequence, 20 of preamble and gap, and 4 for each tag (IEEE 802.3, RFC
/// 7323).
pub(super) fn tcp_goodput(rate_bps: f64, mtu: f64, tags: f64) -> f64 {
    rate_bps * (mtu - 52.0) / (mtu + 38.0 + 4.0 * tags)
}

/// Payload that a link leaves to TCP next to UDP with this payload rate and datagram length, bits per second.
///
/// A datagram has 8 bytes of UDP, 20 of IPv4 and 38 of Ethernet in addition.
pub(super) fn tcp_goodput_with_udp(rate_bps: f64, mtu: f64, udp_bps: f64, datagram: f64) -> f64 {
    tcp_goodput(rate_bps - udp_bps * (datagram + 66.0) / datagram, mtu, 0.0)
}

/// Goodput of Reno at a loss ratio (Mathis, Semke, Mahdavi, Ott 1997), with one acknowledgement per segment.
///
/// Linux counts the segments that an acknowledgement covers, so delayed acknowledgements do not slow its
/// growth.
pub(super) fn reno(mss: f64, rtt_s: f64, loss: f64) -> f64 {
    rate(mss, rtt_s, (1.5 / loss).sqrt())
}

/// Goodput of CUBIC at a loss ratio (RFC 9438 §5.1); the larger of its own window and Reno's counts (§4.3).
pub(super) fn cubic(mss: f64, rtt_s: f64, loss: f64) -> f64 {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;
    let own = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * (rtt_s / loss).powf(0.75);
    rate(mss, rtt_s, own.max((1.5 / loss).sqrt()))
}

fn rate(mss: f64, rtt_s: f64, segments: f64) -> f64 {
    8.0 * mss * segments / rtt_s
}

/// Goodput with a window in bytes, bits per second.
pub(super) fn windowed(window: f64, rtt_s: f64) -> f64 {
    8.0 * window / rtt_s
}

/// Congestion window, bytes, at which a queue of `buffer` bytes before a link is full for the first time: the
/// bytes that fill the path at the flow's rate, and its share of the queue.
pub(super) fn first_drop_window(goodput_bps: f64, rtt_s: f64, buffer: f64, rate_bps: f64) -> f64 {
    goodput_bps * (rtt_s + 8.0 * buffer / rate_bps) / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-4, "{found}, expected {expected}");
    }

    #[test]
    fn gigabit_carries_what_everybody_measures_on_it() {
        close(tcp_goodput(1e9, 1500.0, 0.0), 941.4824e6);
        close(tcp_goodput(1e9, 1500.0, 1.0), 939.0402e6);
        close(tcp_goodput(1e9, 9000.0, 0.0), 990.0420e6);
    }

    #[test]
    fn one_packet_in_ten_thousand_lost_leaves_a_fourteenth_of_gigabit() {
        // 122.47 segments of 1448 bytes in 21 ms; CUBIC's own term would be 58.13.
        close(reno(1448.0, 0.021, 1e-4), 67.559e6);
        close(cubic(1448.0, 0.021, 1e-4), 67.559e6);
    }

    #[test]
    fn cubic_is_itself_on_long_paths_with_little_loss() {
        // RFC 8312 §5.1, table for 100 ms: 33325 segments at a loss ratio of 1e-7 (its constant is 1.054).
        close(cubic(1000.0, 0.1, 1e-7), rate(1000.0, 0.1, 33325.0));
    }

    #[test]
    fn a_small_window_limits_a_long_path() {
        close(windowed(65536.0, 0.021), 24.9661e6);
    }

    #[test]
    fn a_buffer_of_36_mb_is_full_at_77_9_mb_in_flight() {
        let goodput = tcp_goodput_with_udp(1e10, 9000.0, 2e9, 8192.0);
        close(goodput, 7.90438e9);
        // 7.904 Gb/s for 50 ms and 28.8 ms in the queue.
        close(first_drop_window(goodput, 0.05, 36e6, 1e10), 77.8582e6);
    }
}
