//! Description of this host: name, kernel, CPU and memory.

use std::fs;
use std::time::Duration;

use super::{cgroup, text};

pub use crate::system::kernel::kernel;

/// The result of uname(2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel {
    /// "Linux".
    pub system: String,
    /// Host name.
    pub host: String,
    /// "6.18.0-generic".
    pub release: String,
    /// Build number and date.
    pub version: String,
    /// "x86_64".
    pub machine: String,
}

/// CPU model in `/proc/cpuinfo`: `model name` on x86, `Model` or `Hardware` on some others.
#[must_use]
pub fn parse_cpu_model(text: &str) -> Option<String> {
    ["model name", "Model", "cpu model", "Hardware"].into_iter().find_map(|key| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    })
}

/// Reads the CPU model.
#[must_use]
pub fn cpu_model() -> Option<String> {
    parse_cpu_model(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// Clock rate of the first CPU in `/proc/cpuinfo`, MHz; `None` on CPUs that do not report it.
#[must_use]
pub fn parse_cpu_mhz(text: &str) -> Option<f64> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(name, _)| name.trim() == "cpu MHz").find_map(|(_, value)| value.trim().parse().ok())
}

/// Reads the clock rate of the first CPU, MHz.
#[must_use]
pub fn cpu_mhz() -> Option<f64> {
    parse_cpu_mhz(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// Frequency scaling of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuFrequency {
    /// "performance", "powersave", …; `None` if the hypervisor or firmware decides.
    pub governor: Option<String>,
    /// Current frequency, Hz.
    pub current_hz: Option<u64>,
    /// Maximum frequency, Hz.
    pub max_hz: Option<u64>,
}

/// Reads the governor and frequencies of one CPU.
#[must_use]
pub fn cpu_frequency(cpu: usize) -> CpuFrequency {
    let file = |name: &str| text(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"));
    let hz = |name: &str| file(name)?.parse::<u64>().ok()?.checked_mul(1000);
    CpuFrequency {
        governor: file("scaling_governor"),
        current_hz: hz("scaling_cur_freq"),
        max_hz: hz("cpuinfo_max_freq"),
    }
}

/// The kernel's clock source: "tsc", "hpet", "kvm-clock", …
#[must_use]
pub fn clock_source() -> Option<String> {
    text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Parses nanoseconds as the kernel prints them.
#[must_use]
pub fn parse_nanoseconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_nanos)
}

/// Timer slack of this thread: how late the kernel may wake it to merge timers.
#[must_use]
pub fn timer_slack() -> Option<Duration> {
    parse_nanoseconds(&text("/proc/self/timerslack_ns")?)
}

/// Value in bytes of a `Name:   1234 kB` line.
#[must_use]
pub fn parse_kib(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let mut words = value.split_ascii_whitespace();
        let number: u64 = (key == name).then(|| words.next())??.parse().ok()?;
        (words.next() == Some("kB")).then(|| number.checked_mul(1024))?
    })
}

/// Total memory of this host, bytes.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    parse_kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// Memory available to this process at most, bytes: that of the host, or the lower limit of its control group.
#[must_use]
pub fn memory_allowed_bytes() -> Option<u64> {
    memory_bytes().into_iter().chain(cgroup::memory_limit_bytes()).min()
}

/// Memory that this process takes now, bytes.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    parse_kib(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS")
}

/// Memory of this host that is available to programs, bytes.
#[must_use]
pub fn memory_available_bytes() -> Option<u64> {
    parse_kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// One-minute load average.
#[must_use]
pub fn load_average() -> Option<f64> {
    parse_load(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn parse_load(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0)
}

/// Whether the CPU reports that this host runs on a hypervisor.
#[must_use]
pub fn is_virtual_machine() -> Option<bool> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = text.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        assert_eq!(parse_load("2.15 1.90 1.02 3/412 20145\n"), Some(2.15));
        assert_eq!(parse_load("nan 1 1"), None);
        assert_eq!(parse_load(""), None);
    }

    #[test]
    fn the_clock_is_that_of_the_first_cpu() {
        let text = "processor\t: 0\ncpu MHz\t\t: 2394.375\n\nprocessor\t: 1\ncpu MHz\t\t: 800.0\n";
        assert_eq!(parse_cpu_mhz(text), Some(2394.375));
        assert_eq!(parse_cpu_mhz("processor\t: 0\n"), None);
    }

    #[test]
    fn slack_is_a_number_of_nanoseconds_and_nothing_else() {
        assert_eq!(parse_nanoseconds("50000\n"), Some(Duration::from_micros(50)));
        assert_eq!(parse_nanoseconds("-1"), None);
        assert_eq!(parse_nanoseconds("50 us"), None);
        assert!(timer_slack().is_some());
    }

    #[test]
    fn finds_the_processor_on_x86_and_arm() {
        let x86 = "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.00GHz\n";
        assert_eq!(parse_cpu_model(x86).unwrap(), "Intel(R) Xeon(R) Processor @ 2.00GHz");
        assert_eq!(parse_cpu_model("processor\t: 0\nModel\t\t: Raspberry Pi 4\n").unwrap(), "Raspberry Pi 4");
        assert_eq!(parse_cpu_model("processor\t: 0\nBogoMIPS\t: 50\n"), None);
    }

    #[test]
    fn kilobytes_of_proc_are_kibibytes() {
        let text = "Name:\tx\nVmHWM:\t  99 kB\nVmRSS:\t  2048 kB\nThreads:\t3\n";
        assert_eq!(parse_kib(text, "VmRSS"), Some(2_097_152));
        assert_eq!(parse_kib(text, "Threads"), None, "no unit, no size");
        assert_eq!(parse_kib(text, "VmSwap"), None);
    }

    #[test]
    fn this_host_is_readable() {
        assert_eq!(kernel().system, "Linux");
        assert!(kernel().release.contains('.'));
        assert!(memory_bytes().unwrap() > 0);
        assert!(memory_available_bytes().unwrap() <= memory_bytes().unwrap());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(noise in "([A-Za-z0-9: ]{0,12}[ \n\t]){0,30}") {
            let _ = (parse_cpu_model(&noise), parse_kib(&noise, "a"));
        }
    }
}
