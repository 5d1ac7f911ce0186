//! Sysctls: TCP windows compared with the path, and TCP options.

use std::collections::BTreeMap;

use linerate_model::{CheckSection, CheckStatus, HostCheck};
use linerate_theory::bdp::{self, LinuxBuffer};
use linerate_units::{Bitrate, Bytes, Span};

use super::facts::Facts;

/// All sysctls that are checked.
pub(super) const NAMES: [&str; 15] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
];

/// The path that one flow of this host should fill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TargetPath {
    /// Rate wanted.
    pub(super) rate: Bitrate,
    /// Round trip.
    pub(super) rtt: Span,
}

impl TargetPath {
    /// Bandwidth-delay product of the path; absent on overflow.
    pub(super) fn bdp(self) -> Option<Bytes> {
        let bytes = bdp::bdp_bytes(self.rate.bps(), self.rtt.as_secs_f64())?;
        (bytes < u64::MAX as f64).then(|| Bytes::new(bytes.ceil() as u64))
    }

    /// Rate of one flow with this window at the round-trip time.
    fn rate_with(self, window: Bytes) -> Option<Bitrate> {
        Bitrate::from_bps(bdp::window_rate_bps(window.get() as f64, self.rtt.as_secs_f64())?)
    }
}

/// The largest buffers that the kernel grants, compared with the path.
pub(super) fn windows(facts: &Facts, target: TargetPath) -> CheckSection {
    let autotuned = [
        ("net.ipv4.tcp_rmem", LinuxBuffer::Receive, "window of a receiving flow"),
        ("net.ipv4.tcp_wmem", LinuxBuffer::Send, "window of a sending flow"),
    ];
    let asked = [
        ("net.core.rmem_max", "largest receive buffer that a program can request (-w, and UDP)"),
        ("net.core.wmem_max", "largest send buffer that a program can request (-w, and UDP)"),
    ];
    let mut checks: Vec<HostCheck> = Vec::new();
    checks.extend(autotuned.into_iter().filter_map(|buffer| autotuned_buffer(facts, target, buffer)));
    checks.extend(asked.iter().filter_map(|(name, what)| askable_buffer(facts, target, name, what)));
    CheckSection { title: "TCP windows".to_owned(), checks }
}

/// Largest value that the kernel takes: it stores these settings in signed integers.
const MAX_SETTING: u64 = i32::MAX as u64;
/// Largest buffer that a program gets by request: the kernel doubles the request, in a signed integer. Source:
/// Linux `__sock_set_rcvbuf`.
const MAX_REQUEST: u64 = MAX_SETTING / 2;
/// Largest window of TCP, bytes.
const MAX_WINDOW: u64 = (bdp::UNSCALED_WINDOW_BYTES as u64) << bdp::MAX_WINDOW_SHIFT;

/// Autotuning grows buffers up to the last of three numbers.
fn autotuned_buffer(
    facts: &Facts,
    target: TargetPath,
    (name, buffer, what): (&'static str, LinuxBuffer, &str),
) -> Option<HostCheck> {
    let setting = facts.sysctls.get(name)?;
    let [least, first, most] = numbers(setting)?;
    let window = Bytes::new((buffer.window_bytes(most as f64)? as u64).min(MAX_WINDOW));
    let (rate, bdp) = (target.rate_with(window)?, target.bdp()?);
    let value = format!("{} at most", Bytes::new(most));
    let text = format!("{what} up to {window}: {rate} over {}", target.rtt);
    let check = HostCheck::good(name, value, text);
    if window >= bdp {
        return Some(check);
    }
    // One flow cannot fill a longer path, whatever the setting.
    let largest = Bytes::new(MAX_WINDOW);
    let at_most = target.rate_with(largest)?;
    let advice = "use several streams (-P), or state the round trip of the path (--rtt)";
    if window >= largest {
        let text = format!(
            "{what} up to {window}, the largest of TCP: one flow gets at most {rate} over {}; {advice}",
            target.rtt
        );
        return Some(check.judged(CheckStatus::Note, text));
    }
    let wanted = (LinuxBuffer::BUFFER_PER_WINDOW * bdp.min(largest).get() as f64) as u64;
    let needed = wanted.checked_next_power_of_two()?.min(MAX_SETTING);
    let mut text = format!(
        "{what} is limited to less than {window}, so one flow gets at most {rate} over {}",
        target.rtt
    );
    if bdp > largest {
        text.push_str(&format!("; the largest window of TCP allows {at_most}: {advice}"));
    }
    let command = format!("sysctl -w {name}='{least} {first} {needed}'");
    Some(check.judged(CheckStatus::Bad, text).with_remedy(command))
}

fn askable_buffer(facts: &Facts, target: TargetPath, name: &'static str, what: &str) -> Option<HostCheck> {
    let limit = Bytes::new(facts.sysctls.get(name)?.parse().ok()?);
    let bdp = target.bdp()?;
    let check = HostCheck::good(name, limit.to_string(), what);
    // A higher limit would give no larger buffer.
    let needed = bdp.get().min(MAX_REQUEST);
    if limit.get() >= needed {
        return Some(check);
    }
    let text = format!("{what}; it is smaller than the BDP of the path, {bdp}");
    let command = format!("sysctl -w {name}={}", needed.checked_next_power_of_two()?);
    Some(check.judged(CheckStatus::Note, text).with_remedy(command))
}

fn numbers(setting: &str) -> Option<[u64; 3]> {
    let found: Vec<u64> = setting.split_whitespace().map_while(|word| word.parse().ok()).collect();
    found.try_into().ok()
}

/// A boolean sysctl.
struct BooleanSysctl {
    name: &'static str,
    /// Good values.
    wanted: &'static [&'static str],
    good: &'static str,
    /// Judgement of any other value.
    otherwise: CheckStatus,
    wrong: &'static str,
}

const BOOLEAN_SYSCTLS: [BooleanSysctl; 6] = [
    BooleanSysctl {
        name: "net.ipv4.tcp_window_scaling",
        wanted: &["1"],
        good: "windows may exceed 64 KiB",
        otherwise: CheckStatus::Bad,
        wrong: "windows cannot exceed 64 KiB if this is off on either side: 25 Mb/s over 21 ms",
    },
    BooleanSysctl {
        name: "net.ipv4.tcp_timestamps",
        wanted: &["1", "2"],
        good: "round trips are measured on every segment; costs 12 bytes per segment",
        otherwise: CheckStatus::Note,
        wrong: "round trips are measured only once per window, and at high rates old segments cannot be \
                distinguished from new ones",
    },
    BooleanSysctl {
        name: "net.ipv4.tcp_sack",
        wanted: &["1"],
        good: "several losses in one window are repaired in one round trip",
        otherwise: CheckStatus::Bad,
        wrong: "each loss in a window costs a separate round trip, or a timeout",
    },
    BooleanSysctl {
        name: "net.ipv4.tcp_moderate_rcvbuf",
        wanted: &["1"],
        good: "receive windows grow with the path",
        otherwise: CheckStatus::Bad,
        wrong: "receive windows stay at the middle value of tcp_rmem, whatever its last value allows",
    },
    BooleanSysctl {
        name: "net.ipv4.tcp_mtu_probing",
        wanted: &["1", "2"],
        good: "MTU black holes on the path are detected",
        otherwise: CheckStatus::Note,
        wrong: "on a path with a smaller MTU whose ICMP messages are filtered, connections open and then hang",
    },
    BooleanSysctl {
        name: "net.ipv4.tcp_no_metrics_save",
        wanted: &["1"],
        good: "tests are independent of earlier ones",
        otherwise: CheckStatus::Note,
        wrong: "a new connection starts with metrics of earlier ones to the same host, so repeated tests \
                are not independent",
    },
];

/// Boolean sysctls, congestion control and queueing.
pub(super) fn tcp(facts: &Facts) -> CheckSection {
    let mut checks: Vec<HostCheck> =
        BOOLEAN_SYSCTLS.iter().filter_map(|switch| switched(&facts.sysctls, switch)).collect();
    checks.extend(congestion(&facts.sysctls));
    checks.extend(discipline(&facts.sysctls));
    CheckSection { title: "TCP".to_owned(), checks }
}

fn switched(sysctls: &BTreeMap<&str, String>, switch: &BooleanSysctl) -> Option<HostCheck> {
    let value = sysctls.get(switch.name)?;
    let check = HostCheck::good(switch.name, value, switch.good);
    if switch.wanted.contains(&value.as_str()) {
        return Some(check);
    }
    Some(check.judged(switch.otherwise, switch.wrong).with_remedy(format!("sysctl -w {}=1", switch.name)))
}

fn congestion(sysctls: &BTreeMap<&str, String>) -> Option<HostCheck> {
    const NAME: &str = "net.ipv4.tcp_congestion_control";
    let chosen = sysctls.get(NAME)?;
    let available = sysctls.get("net.ipv4.tcp_available_congestion_control").map_or("", String::as_str);
    let check = HostCheck::good(NAME, chosen, format!("available: {available}"));
    if chosen != "reno" {
        return Some(check);
    }
    let text = "after a loss it grows by one segment per round trip, which takes minutes on a fast long path";
    Some(check.judged(CheckStatus::Note, text).with_remedy(format!("sysctl -w {NAME}=cubic")))
}

fn discipline(sysctls: &BTreeMap<&str, String>) -> Option<HostCheck> {
    const NAME: &str = "net.core.default_qdisc";
    let chosen = sysctls.get(NAME)?;
    let check = HostCheck::good(NAME, chosen, "on new interfaces, flows share the line fairly");
    match chosen.as_str() {
        "fq" | "fq_codel" | "cake" => Some(check),
        _ => {
            let text = "all flows share one queue, and the kernel does not pace UDP sockets";
            Some(check.judged(CheckStatus::Note, text).with_remedy(format!("sysctl -w {NAME}=fq")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(settings: &[(&'static str, &str)]) -> Facts {
        let sysctls = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Facts { sysctls, ..Facts::default() }
    }

    fn gigabit() -> TargetPath {
        TargetPath { rate: "1G".parse().unwrap(), rtt: Span::from_ms(100) }
    }

    #[test]
    fn the_usual_receive_buffer_is_too_small_for_a_gigabit_over_100_ms() {
        let found = windows(&facts(&[("net.ipv4.tcp_rmem", "4096 131072 6291456")]), gigabit());
        let check = &found.checks[0];
        assert_eq!(check.status, CheckStatus::Bad);
        // Half of 6 MiB every 100 ms: 3145728 * 8 / 0.1 s.
        assert!(check.text.contains("251.7 Mb/s"), "{}", check.text);
        // The path holds 12.5 MB; twice that is 25 MB, and the next power of two is 2^25.
        let remedy = check.remedy.as_deref();
        assert_eq!(remedy, Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"));
    }

    #[test]
    fn a_window_of_the_path_is_good_and_one_byte_less_is_not() {
        let status = |name, most: u64| {
            let text = format!("4096 131072 {most}");
            windows(&facts(&[(name, &text)]), gigabit()).checks[0].status
        };
        // 12.5 MB is half of a receive buffer, or all of a send buffer.
        assert_eq!(status("net.ipv4.tcp_rmem", 25_000_000), CheckStatus::Good);
        assert_eq!(status("net.ipv4.tcp_rmem", 24_999_998), CheckStatus::Bad);
        assert_eq!(status("net.ipv4.tcp_wmem", 12_500_000), CheckStatus::Good);
        assert_eq!(status("net.ipv4.tcp_wmem", 12_499_999), CheckStatus::Bad);
    }

    /// Regression: at 50 and 100 Gb/s over 100 ms the remedies were 2 and 4 GiB, which the kernel refuses, and the
    /// check of the receive buffer stayed bad with the largest value that it accepts.
    #[test]
    fn every_remedy_is_a_value_that_the_kernel_accepts_and_that_needs_no_other() {
        let defaults = [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            ("net.core.rmem_max", "212992"),
            ("net.core.wmem_max", "212992"),
        ];
        for gigabits in [1, 10, 25, 40, 50, 85, 86, 100, 200, 400, 800] {
            for rtt_ms in [1, 21, 100, 300, 10_000] {
                let rate = Bitrate::from_bps(f64::from(gigabits) * 1e9).unwrap();
                let target = TargetPath { rate, rtt: Span::from_ms(rtt_ms) };
                let mut followed = facts(&defaults);
                for check in windows(&followed.clone(), target).checks {
                    let Some(remedy) = check.remedy else { continue };
                    let (name, value) = remedy.strip_prefix("sysctl -w ").unwrap().split_once('=').unwrap();
                    let value = value.trim_matches('\'');
                    let sizes: Vec<i32> = value.split(' ').map(|size| size.parse().unwrap()).collect();
                    assert!(sizes.is_sorted(), "{remedy}");
                    *followed.sysctls.get_mut(name).unwrap() = value.to_owned();
                }
                for check in windows(&followed, target).checks {
                    let shown = format!("{gigabits}G over {rtt_ms} ms: {check:?}");
                    assert!(check.status != CheckStatus::Bad && check.remedy.is_none(), "{shown}");
                }
            }
        }
    }

    #[test]
    fn a_path_longer_than_the_largest_window_is_noted_for_one_flow() {
        let judge = |rate: &str, most: u64| {
            let target = TargetPath { rate: rate.parse().unwrap(), rtt: Span::from_ms(100) };
            let text = format!("4096 131072 {most}");
            windows(&facts(&[("net.ipv4.tcp_rmem", &text)]), target).checks.remove(0)
        };
        // The largest window is 65535 * 2^14 bytes; over 100 ms it carries 85.898 Gb/s.
        assert_eq!(judge("85.89G", 2_147_483_647).status, CheckStatus::Good);
        let full = judge("85.9G", 2_147_483_647);
        assert_eq!((full.status, full.remedy.as_deref()), (CheckStatus::Note, None));
        assert!(full.text.contains("at most 85.90 Gb/s") && full.text.contains("-P"), "{}", full.text);
        let small = judge("100G", 6_291_456);
        assert_eq!(small.status, CheckStatus::Bad);
        let remedy = small.remedy.as_deref();
        assert_eq!(remedy, Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 2147483647'"));
        assert!(small.text.contains("at most 251.7 Mb/s"), "{}", small.text);
        assert!(small.text.contains("allows 85.90 Gb/s: use several streams"), "{}", small.text);
    }

    #[test]
    fn the_limit_for_programs_is_only_a_note() {
        let found = windows(&facts(&[("net.core.rmem_max", "212992")]), gigabit());
        assert_eq!(found.checks[0].status, CheckStatus::Note);
        assert_eq!(found.checks[0].remedy.as_deref(), Some("sysctl -w net.core.rmem_max=16777216"));
        assert!(found.checks[0].text.starts_with("largest receive buffer that"), "{:?}", found.checks);
        let most = windows(
            &facts(&[("net.core.rmem_max", "1073741823")]),
            TargetPath { rtt: Span::from_ms(100_000), ..gigabit() },
        );
        // 12.5 GB; the kernel would double a larger request to more than a signed integer holds.
        assert_eq!(most.checks[0].status, CheckStatus::Good);
    }

    #[test]
    fn every_switch_has_a_good_and_another_value() {
        for switch in &BOOLEAN_SYSCTLS {
            let good = tcp(&facts(&[(switch.name, switch.wanted[0])]));
            assert_eq!(
                (good.checks[0].status, &good.checks[0].remedy),
                (CheckStatus::Good, &None),
                "{}",
                switch.name
            );
            let other = tcp(&facts(&[(switch.name, "0")]));
            assert_eq!(other.checks[0].status, switch.otherwise, "{}", switch.name);
            assert_eq!(other.checks[0].remedy, Some(format!("sysctl -w {}=1", switch.name)));
        }
    }

    #[test]
    fn reno_and_a_single_queue_are_notes() {
        let status = |name, value| tcp(&facts(&[(name, value)])).checks[0].status;
        assert_eq!(status("net.ipv4.tcp_congestion_control", "cubic"), CheckStatus::Good);
        assert_eq!(status("net.ipv4.tcp_congestion_control", "reno"), CheckStatus::Note);
        assert_eq!(status("net.core.default_qdisc", "fq"), CheckStatus::Good);
        assert_eq!(status("net.core.default_qdisc", "pfifo_fast"), CheckStatus::Note);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_left_out() {
        let nothing = facts(&[]);
        assert!(windows(&nothing, gigabit()).checks.is_empty());
        assert!(tcp(&nothing).checks.is_empty());
        let garbled = facts(&[("net.ipv4.tcp_rmem", "4096 many"), ("net.core.rmem_max", "-1")]);
        assert!(windows(&garbled, gigabit()).checks.is_empty());
    }
}
