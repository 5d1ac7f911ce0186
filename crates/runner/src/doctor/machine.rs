//! CPUs, clock, memory and open files.

use std::time::Duration;

use linerate_model::{CheckSection, CheckStatus, HostCheck};
use linerate_units::{Bytes, Ratio, Span};

use super::facts::MachineFacts;

/// Stolen share of the time above which results suffer.
const MAX_STEAL_SHARE: f64 = 0.01;
/// Load per CPU above which a test has to share the CPU.
const MAX_LOAD_PER_CPU: f64 = 0.25;
/// Enough open files for a thousand streams and everything else.
const MIN_OPEN_FILES: u64 = 2048;
/// Enough memory for the buffers of a few fast flows.
const MIN_FREE_MEMORY: Bytes = Bytes::new(256 << 20);

/// All checks of the machine.
pub(super) fn section(machine: &MachineFacts) -> CheckSection {
    let checks = [
        Some(cores(machine)),
        quota(machine),
        load(machine),
        governor(machine),
        hypervisor(machine),
        clock_source(machine),
        resolution(machine),
        slack(machine),
        memory(machine),
        files(machine),
    ];
    CheckSection { title: "Machine".to_owned(), checks: checks.into_iter().flatten().collect() }
}

fn cores(machine: &MachineFacts) -> HostCheck {
    let check = HostCheck::good(
        "cpu.cores",
        machine.cores.to_string(),
        "data threads and interrupts need not \
                                                                     share a CPU",
    );
    if let Some(usable) = machine.usable_cores.filter(|usable| *usable < machine.cores) {
        let value = format!("{usable} of {}", machine.cores);
        let text = "this process may use only some of the CPUs (taskset, cgroup or container)";
        return HostCheck { value, ..check.judged(CheckStatus::Note, text) };
    }
    if machine.cores == 1 {
        return check.judged(CheckStatus::Note, "sending, receiving and interrupts share one CPU");
    }
    check
}

fn quota(machine: &MachineFacts) -> Option<HostCheck> {
    let cpus = machine.quota_cpus?;
    let value = format!("{cpus:.2} of {} CPUs", machine.cores);
    let check = HostCheck::good("cpu.quota", value, "the CPU quota allows as much as the host has");
    if cpus < machine.cores as f64 {
        let text = "a test that needs more is stopped for the rest of each period, which may limit its rate \
                    and delays its packets: raise the CPU limit of the container or service (cpu.max of its cgroup)";
        return Some(check.judged(CheckStatus::Note, text));
    }
    Some(check)
}

fn load(machine: &MachineFacts) -> Option<HostCheck> {
    let load = machine.load?;
    let value = format!("{load:.2} on {} CPUs", machine.cores);
    let check = HostCheck::good("cpu.load", value, "other programs leave the CPUs to the test");
    if load > MAX_LOAD_PER_CPU * machine.cores as f64 {
        let text = "other programs use the CPUs, which may limit results: stop them, or wait";
        return Some(check.judged(CheckStatus::Note, text).with_remedy("ps aux --sort=-%cpu | head"));
    }
    Some(check)
}

fn governor(machine: &MachineFacts) -> Option<HostCheck> {
    let names: Vec<&str> = machine.governors.iter().map(String::as_str).collect();
    let check = HostCheck::good("cpu.governor", names.join(", "), "the CPU clock follows the load");
    if names.is_empty() {
        return None;
    }
    if names.iter().all(|name| matches!(*name, "performance" | "schedutil")) {
        return Some(check);
    }
    let text = "the CPU clock may stay low or rise late, which makes short tests slower than long ones";
    Some(check.judged(CheckStatus::Note, text).with_remedy("cpupower frequency-set -g performance"))
}

fn hypervisor(machine: &MachineFacts) -> Option<HostCheck> {
    let taken = machine.steal_share.and_then(Ratio::new);
    if !machine.is_virtual? {
        return Some(HostCheck::good("cpu.hypervisor", "none", "no other virtual machine takes CPU time"));
    }
    let value = taken.map_or_else(|| "yes".to_owned(), |taken| format!("yes, steal time {taken}"));
    let check = HostCheck::good("cpu.hypervisor", value, "share of CPU time stolen since boot is small");
    if taken.is_some_and(|taken| taken.get() > MAX_STEAL_SHARE) {
        let text = "other virtual machines take CPU time, so results vary with their load";
        return Some(check.judged(CheckStatus::Note, text));
    }
    Some(check)
}

fn clock_source(machine: &MachineFacts) -> Option<HostCheck> {
    let source = machine.clock_source.as_deref()?;
    let check = HostCheck::good("clock.source", source, "reading the clock costs about ten nanoseconds");
    if matches!(source, "hpet" | "acpi_pm" | "pit" | "jiffies" | "refined-jiffies") {
        let text = "reading the clock costs a microsecond or more, for every timestamped packet";
        let command = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
        return Some(check.judged(CheckStatus::Bad, text).with_remedy(command));
    }
    if source == "xen" {
        let text = "reading the clock is a system call";
        let command = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
        return Some(check.judged(CheckStatus::Note, text).with_remedy(command));
    }
    Some(check)
}

fn resolution(machine: &MachineFacts) -> Option<HostCheck> {
    let found = machine.clock_resolution?;
    let check = HostCheck::good(
        "clock.resolution",
        Span::from(found).to_string(),
        "resolution of measured \
                                                                                delays",
    );
    if found > Duration::from_micros(1) {
        let text = "delays below this cannot be distinguished; the kernel lacks CONFIG_HIGH_RES_TIMERS";
        return Some(check.judged(CheckStatus::Bad, text));
    }
    Some(check)
}

fn slack(machine: &MachineFacts) -> Option<HostCheck> {
    let found = machine.timer_slack?;
    let check =
        HostCheck::good("clock.timer_slack", Span::from(found).to_string(), "sleeping threads wake in time");
    if found > Duration::from_micros(100) {
        let text = "the kernel may wake sleeping threads late by this time, which disturbs paced sending; \
                    linerate's own pacing threads set a smaller slack";
        return Some(check.judged(CheckStatus::Note, text));
    }
    Some(check)
}

fn memory(machine: &MachineFacts) -> Option<HostCheck> {
    let total = Bytes::new(machine.memory_bytes?);
    let available = Bytes::new(machine.memory_available_bytes?);
    let value = format!("{available} free of {total}");
    let check = HostCheck::good("memory", value, "room for socket buffers");
    if available < MIN_FREE_MEMORY {
        return Some(
            check.judged(CheckStatus::Note, "socket buffers of fast flows may not fit: stop other programs"),
        );
    }
    Some(check)
}

fn files(machine: &MachineFacts) -> Option<HostCheck> {
    let limit = machine.open_files?;
    let check = HostCheck::good(
        "limits.open_files",
        format!("{} now", limit.hard),
        "raised automatically to what a \
                                                                         test needs",
    );
    let check = HostCheck { value: format!("{}, at most {}", limit.soft, limit.hard), ..check };
    if limit.hard < MIN_OPEN_FILES {
        let text = "each stream needs one; tests with many streams are refused";
        return Some(check.judged(CheckStatus::Note, text).with_remedy("ulimit -Hn 1048576"));
    }
    Some(check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_sock::limits::OpenFiles;

    /// Eight CPUs under a hypervisor that steals no time.
    fn good() -> MachineFacts {
        MachineFacts {
            clock_source: Some("tsc".to_owned()),
            clock_resolution: Some(Duration::from_nanos(1)),
            timer_slack: Some(Duration::from_micros(50)),
            governors: ["performance".to_owned()].into(),
            is_virtual: Some(true),
            steal_share: Some(0.0),
            cores: 8,
            load: Some(0.2),
            usable_cores: Some(8),
            quota_cpus: Some(8.0),
            open_files: Some(OpenFiles { soft: 1024, hard: 1 << 20 }),
            memory_bytes: Some(16 << 30),
            memory_available_bytes: Some(8 << 30),
        }
    }

    fn complaints(machine: &MachineFacts) -> Vec<String> {
        let section = section(machine);
        let wrong = section.checks.iter().filter(|check| check.status != CheckStatus::Good);
        wrong.map(|check| format!("{} {}", check.id, check.status.name())).collect()
    }

    #[test]
    fn a_good_machine_has_no_complaints() {
        assert_eq!(complaints(&good()), [""; 0]);
        assert_eq!(section(&good()).checks.len(), 10);
    }

    type Damage = fn(&mut MachineFacts);

    #[test]
    fn each_fault_is_found_alone() {
        let faults: [(Damage, &str); 11] = [
            (|host| host.clock_source = Some("hpet".to_owned()), "clock.source bad"),
            (|host| host.clock_source = Some("xen".to_owned()), "clock.source note"),
            (|host| host.clock_resolution = Some(Duration::from_millis(4)), "clock.resolution bad"),
            (|host| host.timer_slack = Some(Duration::from_millis(1)), "clock.timer_slack note"),
            (|host| host.governors = ["powersave".to_owned()].into(), "cpu.governor note"),
            (|host| host.steal_share = Some(0.02), "cpu.hypervisor note"),
            (|host| host.load = Some(2.5), "cpu.load note"),
            (|host| host.usable_cores = Some(2), "cpu.cores note"),
            (|host| host.quota_cpus = Some(7.5), "cpu.quota note"),
            (|host| host.open_files = Some(OpenFiles { soft: 256, hard: 256 }), "limits.open_files note"),
            (|host| host.memory_available_bytes = Some(1 << 20), "memory note"),
        ];
        for (damage, complaint) in faults {
            let mut machine = good();
            damage(&mut machine);
            assert_eq!(complaints(&machine), [complaint]);
        }
    }

    #[test]
    fn what_the_host_does_not_say_is_left_out() {
        let section = section(&MachineFacts { cores: 2, ..MachineFacts::default() });
        let names: Vec<&str> = section.checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!(names, ["cpu.cores"]);
    }
}
