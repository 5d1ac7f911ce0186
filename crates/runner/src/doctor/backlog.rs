//! The receive backlog of the CPUs.

use linerate_model::{CheckSection, CheckStatus, HostCheck};
use linerate_sock::iface::InterfaceKind;

use super::facts::{Facts, InterfaceFacts};

/// The backlog of each CPU, and the budget of one softirq run.
pub(super) fn section(facts: &Facts) -> CheckSection {
    let dropped: u64 = facts.softnet.iter().map(|row| row.dropped).sum();
    let limit = |name: &'static str| facts.sysctls.get(name).and_then(|value| value.parse::<u64>().ok());
    let mut checks = Vec::new();
    if let Some(packets) = limit("net.core.netdev_max_backlog") {
        let text = "packets that can wait for a CPU; none was dropped since boot";
        let mut check = HostCheck::good("net.core.netdev_max_backlog", format!("{packets} packets"), text);
        if dropped > 0 {
            let text =
                format!("{dropped} packets were dropped since boot because the queue of a CPU was full");
            let command =
                format!("sysctl -w net.core.netdev_max_backlog={}", packets.max(1000).saturating_mul(4));
            check = check.judged(CheckStatus::Note, text).with_remedy(command);
        }
        checks.push(check);
    }
    checks.extend(limit("net.core.netdev_budget").map(|packets| budget(facts, packets)));
    CheckSection { title: "Receive backlog".to_owned(), checks }
}

fn budget(facts: &Facts, packets: u64) -> HostCheck {
    const ID: &str = "net.core.netdev_budget";
    let squeezed: u64 = facts.softnet.iter().map(|row| row.time_squeeze).sum();
    let value = format!("{packets} packets");
    if squeezed == 0 {
        return HostCheck::good(ID, value, "packets per processing round; always enough since boot");
    }
    let text = format!("packets per processing round; it was exhausted {squeezed} times since boot");
    let check = HostCheck::good(ID, value, text);
    // The budget is used up occasionally under any load; more than once in a thousand packets is a problem.
    if received(facts).is_none_or(|received| squeezed <= received / 1000) {
        return check;
    }
    let text = format!(
        "it was exhausted {squeezed} times since boot, more than once in a thousand packets: the CPU is too slow"
    );
    let command = format!("sysctl -w {ID}={}", packets.saturating_mul(2));
    check.judged(CheckStatus::Note, text).with_remedy(command)
}

/// Packets that the CPUs have received, according to the interfaces; absent if they have received others too.
///
/// The CPUs' own counts have 32 bits, so a busy CPU starts again at 0 within hours or days, and a sum of them says
/// nothing about the whole. Those of interfaces have 64 bits, but are only of this network namespace: if the CPUs
/// count more, they have also worked for others.
fn received(facts: &Facts) -> Option<u64> {
    let of_interface = |interface: &InterfaceFacts| {
        let counters = interface.counters?;
        // The other end of a virtual cable, which receives these, may be in another namespace.
        let elsewhere = if interface.link.kind == InterfaceKind::Veth { counters.sent.packets } else { 0 };
        Some(counters.received.packets.saturating_add(elsewhere))
    };
    let received = facts.interfaces.iter().filter_map(of_interface).fold(0, u64::saturating_add);
    let processed: u64 = facts.softnet.iter().map(|row| row.processed).sum();
    (processed <= received).then_some(received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::iface;
    use linerate_sock::proc::net::{parse_devices, parse_softnet};
    use linerate_sock::proc::nic::Nic;

    fn interface(kind: InterfaceKind, received: u64, sent: u64) -> InterfaceFacts {
        let mut link = iface::link("lo").unwrap();
        link.kind = kind;
        let line = format!("eth7: 1 {received} 0 0 0 0 0 0 1 {sent} 0 0 0 0 0 0");
        let counters = parse_devices(&format!("head\nhead\n{line}\n")).get("eth7").copied();
        assert!(counters.is_some());
        InterfaceFacts { link, counters, card: Nic::default() }
    }

    /// The checks of a host whose CPUs have counted `rows`. Columns: processed, dropped, squeezed, hexadecimal.
    fn judge(rows: &str, interfaces: Vec<InterfaceFacts>) -> [HostCheck; 2] {
        let settings = [("net.core.netdev_max_backlog", "1000"), ("net.core.netdev_budget", "300")];
        let facts = Facts {
            softnet: parse_softnet(rows),
            sysctls: settings.map(|(name, value)| (name, value.to_owned())).into(),
            interfaces,
            ..Facts::default()
        };
        section(&facts).checks.try_into().unwrap()
    }

    #[test]
    fn drops_and_squeezes_since_boot_are_seen() {
        let status = |row: &str| {
            let nic = interface(InterfaceKind::Physical, 1_000_000, 0);
            judge(row, vec![nic]).map(|check| check.status)
        };
        assert_eq!(status("000f4240 00000000 000003e8"), [CheckStatus::Good, CheckStatus::Good]);
        assert_eq!(status("000f4240 00000001 000003e9"), [CheckStatus::Note, CheckStatus::Note]);
    }

    /// Regression: a busy server whose count of packets had just started again at 0 was said to have a slow CPU, and the
    /// small count was shown as that since boot.
    #[test]
    fn a_count_that_has_started_again_at_zero_is_no_sign_of_a_slow_cpu() {
        // 2^32 + 5 packets, 1000 times squeezed.
        let rows = "00000005 00000000 000003e8";
        let nic = |received| vec![interface(InterfaceKind::Physical, received, 0)];
        let [backlog, budget] = judge(rows, nic((1 << 32) + 5));
        assert_eq!((backlog.status, budget.status), (CheckStatus::Good, CheckStatus::Good));
        assert!(!backlog.text.contains('5'), "{}", backlog.text);
        assert!(budget.text.contains("1000 times"), "{}", budget.text);
        assert!(budget.remedy.is_none());
        // 4,294,967 squeezes are one in a thousand of the whole: the next one is too many.
        let status = |rows| judge(rows, nic((1 << 32) + 5))[1].status;
        assert_eq!(status("00000005 00000000 00418937"), CheckStatus::Good);
        assert_eq!(status("00000005 00000000 00418938"), CheckStatus::Note);
    }

    #[test]
    fn cpus_that_work_for_other_namespaces_are_not_judged_by_the_packets_of_this_one() {
        let status = |interfaces| judge("000f4240 00000000 000003e9", interfaces)[1].status;
        assert_eq!(status(vec![interface(InterfaceKind::Physical, 1_000_000, 0)]), CheckStatus::Note);
        assert_eq!(status(vec![interface(InterfaceKind::Physical, 999_999, 9)]), CheckStatus::Good);
        assert_eq!(status(Vec::new()), CheckStatus::Good);
        // What a veth sends is received in another namespace.
        assert_eq!(status(vec![interface(InterfaceKind::Veth, 500_000, 500_000)]), CheckStatus::Note);
        // Interfaces count together.
        let half = || interface(InterfaceKind::Physical, 500_000, 0);
        assert_eq!(status(vec![half(), half()]), CheckStatus::Note);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_left_out() {
        assert!(section(&Facts::default()).checks.is_empty());
    }
}
