//! Counters of the network stack: protocols, interfaces and the per-CPU backlog.

use std::collections::BTreeMap;
use std::fs;

/// Reads from the network namespace of the calling thread (`/proc/net` is that of the main thread).
fn read(name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok()
}

/// One CPU's line of `/proc/net/softnet_stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Softnet {
    /// CPU number; absent before Linux 5.10, which also omits offline CPUs.
    pub cpu: Option<u32>,
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the backlog (`net.core.netdev_max_backlog`) was full.
    pub dropped: u64,
    /// Times that the softirq used up its budget with packets left.
    pub time_squeeze: u64,
}

/// Parses `/proc/net/softnet_stat`: hexadecimal columns, one line for each CPU.
#[must_use]
pub fn parse_softnet(text: &str) -> Vec<Softnet> {
    const CPU_COLUMN: usize = 12;
    text.lines()
        .filter_map(|line| {
            let columns: Vec<u64> =
                line.split_ascii_whitespace().map_while(|word| u64::from_str_radix(word, 16).ok()).collect();
            Some(Softnet {
                cpu: columns.get(CPU_COLUMN).and_then(|&cpu| u32::try_from(cpu).ok()),
                processed: *columns.first()?,
                dropped: *columns.get(1)?,
                time_squeeze: *columns.get(2)?,
            })
        })
        .collect()
}

/// Reads the per-CPU backlog counters. They are the same in every namespace.
#[must_use]
pub fn softnet() -> Option<Vec<Softnet>> {
    read("softnet_stat").map(|text| parse_softnet(&text))
}

/// Parses `/proc/net/snmp` and `/proc/net/netstat`: pairs of a line with names and a line with values, each
/// starting with the protocol. Keys are `Tcp.RetransSegs`, `TcpExt.TCPTimeouts`. Negative values, which only
/// constants have, are left out.
#[must_use]
pub fn parse_counters(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((protocol, names)), Some((same, values))) = (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if protocol != same {
            continue;
        }
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let Ok(value) = value.parse() {
                counters.insert(format!("{protocol}.{name}"), value);
            }
        }
    }
    counters
}

/// Parses `/proc/net/snmp6`: lines with a name and a value. Keys are `Ip6.InDiscards`, `Udp6.InErrors`.
#[must_use]
pub fn parse_counters6(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (protocol, name) = words.next()?.split_once('6')?;
            Some((format!("{protocol}6.{name}"), words.next()?.parse().ok()?))
        })
        .collect()
}

/// Reads all protocol counters: `snmp`, `netstat` and, if IPv6 is enabled, `snmp6`.
#[must_use]
pub fn counters() -> Option<BTreeMap<String, u64>> {
    let mut counters = parse_counters(&read("snmp")?);
    counters.extend(read("netstat").map(|text| parse_counters(&text)).unwrap_or_default());
    counters.extend(read("snmp6").map(|text| parse_counters6(&text)).unwrap_or_default());
    Some(counters)
}

/// Counters of one direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceTraffic {
    /// Bytes including the link-layer header, without preamble, frame check sequence and gap.
    pub bytes: u64,
    /// Packets as the stack counts them: a GSO or GRO packet counts once.
    pub packets: u64,
    /// Packets with errors.
    pub errors: u64,
    /// Packets dropped for lack of buffers.
    pub dropped: u64,
    /// Overruns of the NIC's FIFO.
    pub fifo: u64,
    /// Framing errors on receive, collisions on send.
    pub frame_or_collisions: u64,
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Received.
    pub received: InterfaceTraffic,
    /// Sent.
    pub sent: InterfaceTraffic,
}

/// Parses `/proc/net/dev`: counters by interface name.
#[must_use]
pub fn parse_devices(text: &str) -> BTreeMap<String, Device> {
    text.lines()
        .filter_map(|line| {
            let (name, columns) = line.rsplit_once(':')?;
            let columns: Vec<u64> =
                columns.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
            let traffic = |first: usize| {
                let column = |number: usize| columns.get(first + number).copied();
                Some(InterfaceTraffic {
                    bytes: column(0)?,
                    packets: column(1)?,
                    errors: column(2)?,
                    dropped: column(3)?,
                    fifo: column(4)?,
                    frame_or_collisions: column(5)?,
                })
            };
            Some((name.trim().to_owned(), Device { received: traffic(0)?, sent: traffic(8)? }))
        })
        .collect()
}

/// Reads the counters of every interface.
#[must_use]
pub fn devices() -> Option<BTreeMap<String, Device>> {
    read("dev").map(|text| parse_devices(&text))
}

/// Reads the counters of one interface.
#[must_use]
pub fn device(name: &str) -> Option<Device> {
    devices()?.remove(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn softnet_columns_are_hexadecimal() {
        let text = "00000f6f 00000002 0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000\n\
                    000000ff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n";
        let lines = parse_softnet(text);
        assert_eq!(lines[0], Softnet { cpu: Some(1), processed: 3951, dropped: 2, time_squeeze: 10 });
        assert_eq!(lines[1], Softnet { cpu: None, processed: 255, dropped: 0, time_squeeze: 0 });
    }

    #[test]
    fn counters_are_named_by_protocol_and_name() {
        let text = "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens RetransSegs\n\
                    Tcp: 1 200 120000 -1 4 17\n\
                    Udp: InDatagrams NoPorts InErrors\n\
                    Udp: 9 8 7\n";
        let counters = parse_counters(text);
        assert_eq!(counters["Tcp.RetransSegs"], 17);
        assert_eq!(counters["Udp.InErrors"], 7);
        assert!(!counters.contains_key("Tcp.MaxConn"), "-1 is no count");
        let six =
            parse_counters6("Ip6InReceives                   \t12\nUdp6RcvbufErrors 3\nIcmp6OutType133 5\n");
        assert_eq!((six["Ip6.InReceives"], six["Udp6.RcvbufErrors"]), (12, 3));
    }

    #[test]
    fn device_lines_have_eight_columns_for_each_direction() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
            eth0: 77027185    3938    1    2    3     4          5         6   332939    3365    7    8    9       10       11          12\n";
        let device = parse_devices(text)["eth0"];
        assert_eq!(device.received.bytes, 77_027_185);
        assert_eq!((device.received.errors, device.received.dropped, device.received.fifo), (1, 2, 3));
        assert_eq!(device.received.frame_or_collisions, 4);
        assert_eq!((device.sent.bytes, device.sent.packets, device.sent.errors), (332_939, 3365, 7));
        assert_eq!(device.sent.frame_or_collisions, 10);
    }

    #[test]
    fn this_host_is_readable() {
        assert!(counters().unwrap().contains_key("TcpExt.TCPTimeouts"));
        assert!(devices().unwrap().contains_key("lo"));
        assert!(!softnet().unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(noise in "([A-Za-z0-9:|-]{0,9}[ \n\t]){0,40}") {
            let _ = (parse_softnet(&noise), parse_counters(&noise), parse_counters6(&noise), parse_devices(&noise));
        }
    }
}
