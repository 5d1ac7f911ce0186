//! Data from the kernel: structures, control messages and the text of its files.

use linerate_sock::cmsg::Ancillary;
use linerate_sock::proc::cpu::{CpuStat, ThreadTimes};
use linerate_sock::proc::{host, net};
use linerate_sock::{TcpInfo, errqueue as queue};

/// `TCP_INFO` of any length: missing fields are absent.
pub fn tcp_info(bytes: &[u8]) {
    let info = TcpInfo::decode(bytes);
    assert_eq!(info.length, bytes.len());
    let _ = (info.options(), info.snd_wscale(), info.rcv_wscale());
    let _ = (info.delivery_rate_app_limited(), info.ssthresh());
    let _ = (info.min_rtt_us(), info.paced_bytes_per_second(), info.cwnd_bytes());
    if bytes.is_empty() {
        assert!(info.options().is_none() && info.cwnd_bytes().is_none(), "nothing was reported");
    }
}

/// The control messages of a datagram.
pub fn cmsg(bytes: &[u8]) {
    let found = Ancillary::parse(bytes);
    if bytes.is_empty() {
        assert_eq!(found, Ancillary::default());
    }
}

/// The control messages of an error queue entry.
pub fn errqueue(bytes: &[u8]) {
    if let Some(queue::Notice::Timestamp { at_ns, .. }) = queue::decode(bytes) {
        assert!(at_ns > 0, "a stamp of zero is absent");
    }
}

/// Text like that of `/proc`, into each of its parsers.
pub fn proc(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let stat = CpuStat::parse(&text);
    let since = stat.since(&CpuStat::default());
    let share = since.all.busy_share();
    assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    let _ = (since.all.softirq_share(), since.all.steal_share(), since.all.total());
    let _ = ThreadTimes::parse(&text).map(|thread| thread.cpu_time());
    let _ = (host::parse_cpu_model(&text), host::parse_kib(&text, "VmRSS"));
    let _ = (net::parse_softnet(&text), net::parse_devices(&text));
    let _ = (net::parse_counters(&text), net::parse_counters6(&text));
}
