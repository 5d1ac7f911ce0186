//! The receive backlog of the CPUs.

use linerate_model::{CheckSection, CheckStatus, HostCheck};

use super::facts::Facts;

/// The backlog of each CPU, and the budget of one softirq run.
pub(super) fn section(facts: &Facts) -> CheckSection {
    let processed: u64 = facts.softnet.iter().map(|row| row.processed).sum();
    let dropped: u64 = facts.softnet.iter().map(|row| row.dropped).sum();
    let squeezed: u64 = facts.softnet.iter().map(|row| row.time_squeeze).sum();
    let limit = |name: &'static str| facts.sysctls.get(name).and_then(|value| value.parse::<u64>().ok());
    let mut checks = Vec::new();
    if let Some(packets) = limit("net.core.netdev_max_backlog") {
        let text = format!("packets that can wait for a CPU; none of {processed} was dropped since boot");
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
    if let Some(packets) = limit("net.core.netdev_budget") {
        let text = "packets per processing round; always enough since boot";
        let mut check = HostCheck::good("net.core.netdev_budget", format!("{packets} packets"), text);
        // The budget is used up occasionally under any load; more than once in a thousand packets is a problem.
        if squeezed > processed / 1000 {
            let text = format!("it was exhausted {squeezed} times since boot: the CPU is too slow");
            let command = format!("sysctl -w net.core.netdev_budget={}", packets.saturating_mul(2));
            check = check.judged(CheckStatus::Note, text).with_remedy(command);
        }
        checks.push(check);
    }
    CheckSection { title: "Receive backlog".to_owned(), checks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::proc::net::parse_softnet;

    #[test]
    fn drops_and_squeezes_since_boot_are_seen() {
        let settings = [("net.core.netdev_max_backlog", "1000"), ("net.core.netdev_budget", "300")];
        let judge = |row: &str| {
            let facts = Facts {
                softnet: parse_softnet(row),
                sysctls: settings.map(|(name, value)| (name, value.to_owned())).into(),
                ..Facts::default()
            };
            section(&facts).checks.iter().map(|check| check.status).collect::<Vec<_>>()
        };
        // Columns: processed, dropped, squeezed, hexadecimal.
        assert_eq!(judge("000f4240 00000000 000003e8"), [CheckStatus::Good, CheckStatus::Good]);
        assert_eq!(judge("000f4240 00000001 000003e9"), [CheckStatus::Note, CheckStatus::Note]);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_left_out() {
        assert!(section(&Facts::default()).checks.is_empty());
    }
}
