//! Interrupts handled by the CPUs.

use std::fs;

/// Sum of the interrupts in the lines of `/proc/interrupts` that contain `name`, over all CPUs; `None` if no
/// line matches.
#[must_use]
pub fn parse_interrupts(text: &str, name: &str) -> Option<u64> {
    // The header has one column for each CPU. The other lines have the counts, then the device.
    let processors = text.lines().next()?.split_ascii_whitespace().count();
    let of = |line: &str| {
        let counts = line.split_once(':')?.1.split_ascii_whitespace().take(processors);
        Some(counts.map_while(|count| count.parse::<u64>().ok()).fold(0, u64::saturating_add))
    };
    let lines = text.lines().skip(1).filter(|line| line.contains(name)).filter_map(of);
    lines.reduce(u64::saturating_add)
}

/// Reads the sum of the interrupts in the lines that contain `name`.
#[must_use]
pub fn interrupts(name: &str) -> Option<u64> {
    parse_interrupts(&fs::read_to_string("/proc/interrupts").ok()?, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU1
  1:          0          9   IO-APIC   1-edge      i8042
 24:        100         20   PCI-MSI 65536-edge      eth0-rx-0
 25:          3          4   PCI-MSI 65537-edge      eth0-tx-0
NMI:          5          6   Non-maskable interrupts
ERR:          7
";

    #[test]
    fn the_lines_of_a_device_are_summed_over_processors() {
        assert_eq!(parse_interrupts(TEXT, "eth0"), Some(127));
        assert_eq!(parse_interrupts(TEXT, "i8042"), Some(9));
        assert_eq!(parse_interrupts(TEXT, "ERR"), Some(7));
        assert_eq!(parse_interrupts(TEXT, "eth1"), None);
        assert_eq!(parse_interrupts("", "eth0"), None);
    }
}
