//! The options of iperf 2.0.5 to 2.2: the one source of the command line's reader, of its help, and of the reference
//! page.
//!
//! A spelling says what the reader accepts: `-l N` and `--len N` need a value, `--connect-only[=N]` may have one.
//!
//! # Source
//! The help and manual of 2.1.8, and those of the other versions; what the wire needs, from captures.

use crate::option_table::{OptionSupport, ToolOption};

const CLIENT: &[&str] = &["-c", "192.0.2.2"];
const SERVER: &[&str] = &["-s"];
const UDP: &[&str] = &["-c", "192.0.2.2", "-u"];
const PARALLEL: &[&str] = &["-c", "192.0.2.2", "-P", "2"];
const BOUND: &[&str] = &["-c", "192.0.2.2", "-B", "192.0.2.1:6000"];

/// Why the options of frames and bursts are refused.
const PACED: &str = "traffic in frames or bursts; use -b for a constant rate";
/// Why the options of bounce-back clients are refused.
const BOUNCE: &str = "the client side of a bounce-back test, which only the server supports here; `linerate test` measures latency";
/// Why histograms are refused.
const HISTOGRAM: &str =
    "histograms; -e prints the average, minimum, maximum and standard deviation of the delays";
/// Why the options of 2.2 are refused.
const LATER: &str = "newer than version 2.1.8, whose wire format is used here";
/// Why options of multicast are refused.
const MULTICAST: &str = "multicast; use the original iperf";

/// Every option.
pub(super) const OPTIONS: &[ToolOption] = &[
    ToolOption::acts(&["-c HOST", "--client HOST"], &["-c", "192.0.2.2"], "run as a client and connect to HOST"),
    ToolOption::acts(&["-s", "--server"], &["-s"], "run as a server"),
    ToolOption::acts(&["-u", "--udp"], &["-u"], "use UDP instead of TCP").after(SERVER),
    ToolOption::acts(&["-t N", "--time N"], &["-t", "3"], "seconds to send (client) or to listen (server)").after(CLIENT),
    ToolOption::acts(&["-n N", "--num N"], &["-n", "1M"], "bytes to send, instead of sending for a time").after(CLIENT),
    ToolOption::acts(
        &["-b N", "--bandwidth N"],
        &["-b", "10m"],
        "target rate of each connection, bit/s, or datagrams per second with the suffix pps; refused on a server, \
         where it would limit the read rate",
    )
    .after(CLIENT),
    ToolOption::refused(
        &["-b MEAN,DEVIATION"],
        &["-b", "10m,1m"],
        "a varying rate; give only the mean",
    )
    .after(CLIENT),
    ToolOption::acts(&["-i N", "--interval N"], &["-i", "1"], "seconds between reports, at least 0.005").after(CLIENT),
    ToolOption::refused(&["-i f"], &["-i", "f"], "one report per frame; give an interval in seconds").after(CLIENT),
    ToolOption::acts(&["-l N", "--len N"], &["-l", "1000"], "bytes per write or datagram").after(CLIENT),
    ToolOption::acts(&["-w N", "--window N"], &["-w", "128K"], "socket buffer size, bytes").after(CLIENT),
    ToolOption::acts(&["-p N", "--port N"], &["-p", "5002"], "port to connect to or to listen on").after(SERVER),
    ToolOption::refused(
        &["-p M-N"],
        &["-p", "5001-5003"],
        "a range of ports; start one server per port",
    )
    .after(SERVER),
    ToolOption::acts(&["-P N", "--parallel N"], &["-P", "2"], "parallel connections; a server exits after N connections")
        .after(CLIENT),
    ToolOption::acts(&["-R", "--reverse"], &["-R"], "reverse: the server sends, on the client's connection").after(CLIENT),
    ToolOption::acts(&["--full-duplex"], &["--full-duplex"], "both ends send, on the client's connection").after(CLIENT),
    ToolOption::acts(&["-d", "--dualtest"], &["-d"], "both ends send at the same time, the server on a connection of its own").after(CLIENT),
    ToolOption::acts(&["-r", "--tradeoff"], &["-r"], "the server sends after the client, on a connection of its own")
        .after(CLIENT),
    ToolOption::acts(&["-L N", "--listenport N"], &["-L", "5055"], "port for the server's connection with -d and -r").after(CLIENT),
    ToolOption::acts(&["-e", "--enhanced"], &["-e"], "enhanced reports with more columns").after(CLIENT),
    ToolOption::acts(&["-f X", "--format X"], &["-f", "m"], "unit of printed rates: k, m, g, a, b, K, M, G, A or B; only the first letter counts").after(CLIENT),
    ToolOption::acts(&["-m", "--print_mss"], &["-m"], "print the TCP maximum segment size").after(CLIENT),
    ToolOption::acts(&["-M N", "--mss N"], &["-M", "1000"], "TCP maximum segment size, bytes").after(CLIENT),
    ToolOption::acts(&["-N", "--nodelay"], &["-N"], "disable Nagle's algorithm (TCP_NODELAY)").after(CLIENT),
    ToolOption::acts(&["-S N", "--tos N"], &["-S", "af41"], "type-of-service byte, or a DSCP name such as af41").after(CLIENT),
    ToolOption::acts(&["-T N", "--ttl N"], &["-T", "5"], "time to live of the packets (IPv6: hop limit)").after(CLIENT),
    ToolOption::acts(
        &["-Z NAME", "--tcp-congestion NAME", "--linux-congestion NAME"],
        &["-Z", "cubic"],
        "TCP congestion control algorithm",
    )
    .after(CLIENT),
    ToolOption::acts(
        &["-B ADDR", "--bind ADDR"],
        &["-B", "192.0.2.1"],
        "local address or address:port to bind to, optionally with %device",
    )
    .after(CLIENT),
    ToolOption::acts(&["-V", "--ipv6_domain", "-6"], &["-V"], "use IPv6").after(CLIENT),
    ToolOption::acts(&["-4"], &["-4"], "use IPv4").after(CLIENT),
    ToolOption::acts(&["-C", "--compatibility"], &["-C"], "compatibility with old versions: send no test header").after(CLIENT),
    ToolOption::acts(&["-X", "--peer-detect", "--peerdetect"], &["-X"], "wait for the server to report its version")
        .after(CLIENT),
    ToolOption::acts(&["-x X", "--reportexclude X"], &["-x", "C"], "exclude reports: C, D, M, S or V").after(CLIENT),
    ToolOption::acts(&["-y C", "--reportstyle C"], &["-y", "C"], "report comma-separated values").after(CLIENT),
    ToolOption::acts(&["-o FILE", "--output FILE"], &["-o", "log"], "append the output to a file").after(CLIENT),
    ToolOption::acts(&["--sum-only"], &["--sum-only"], "print only the sums of all connections").after(CLIENT),
    ToolOption::acts(&["--hide-ips"], &["--hide-ips"], "hide all but the last part of IPv4 addresses").after(CLIENT),
    ToolOption::acts(&["--trip-times"], &["--trip-times"], "measure one-way delays, which needs synchronized clocks").after(CLIENT),
    ToolOption::acts(&["--no-udp-fin"], &["--no-udp-fin"], "UDP: do not wait for the server's report").after(UDP),
    ToolOption::acts(&["--fq-rate N"], &["--fq-rate", "10m"], "pace in the kernel at this rate (fq): bit/s with k, m, g, or bytes/s with K, M, G, all decimal").after(CLIENT),
    ToolOption::acts(
        &["--local-only[=1|0]"],
        &["--local-only"],
        "reach only directly connected hosts (SO_DONTROUTE)",
    )
    .after(CLIENT),
    ToolOption::acts(&["--txdelay-time N"], &["--txdelay-time", "0.5"], "wait N seconds between connecting and sending")
        .after(CLIENT),
    ToolOption::acts(
        &["--txstart-time N"],
        &["--txstart-time", "1800000000.5"],
        "start sending at N seconds since 1970; over UDP the server is not told the time",
    )
    .after(CLIENT),
    ToolOption::acts(
        &["--connect-only[=N]"],
        &["--connect-only=3"],
        "only open N connections (default 10), one every -i seconds, for at most -t seconds",
    )
    .after(CLIENT),
    ToolOption::acts(&["--connect-retries N"], &["--connect-retries", "2"], "retry a failed connection N times, 200 ms apart")
        .after(CLIENT),
    ToolOption::acts(&["--incr-dstip"], &["--incr-dstip"], "increment the destination address for each connection")
        .after(PARALLEL),
    ToolOption::acts(&["--incr-dstport"], &["--incr-dstport"], "increment the destination port for each connection")
        .after(PARALLEL),
    ToolOption::acts(&["--incr-srcip"], &["--incr-srcip"], "increment the source address for each connection; needs -B")
        .after(BOUND),
    ToolOption::no_effect(
        &["--incr-srcport"],
        &["--incr-srcport"],
        "with a port in -B, the source port is always incremented, as in 2.1.8",
    )
    .after(BOUND),
    ToolOption::acts(
        &["-F FILE", "--fileinput FILE", "--file_input FILE"],
        &["-F", "data"],
        "send a file over one TCP connection",
    )
    .after(CLIENT),
    ToolOption::acts(
        &["-I", "--stdin", "--stdin_input"],
        &["-I"],
        "send standard input over one TCP connection",
    )
    .after(CLIENT),
    ToolOption::acts(&["-z", "--realtime"], &["-z"], "run with real-time priority, which needs root").after(CLIENT),
    ToolOption::acts(&["-1", "--singleclient"], &["-1"], "serve one client at a time").after(SERVER),
    ToolOption::acts(&["-U", "--single_udp"], &["-U"], "use UDP, with one thread per test as without this option")
        .after(SERVER),
    ToolOption::acts(&["-D", "--daemon"], &["-D"], "run in the background, detached from the terminal").after(SERVER),
    ToolOption::no_effect(
        &["--udp-counters-64bit"],
        &["--udp-counters-64bit"],
        "datagram numbers have been 64 bits wide since 2.0.14",
    )
    .after(CLIENT),
    ToolOption::no_effect(
        &["--NUM_REPORT_STRUCTS N"],
        &["--NUM_REPORT_STRUCTS", "5000"],
        "size of a queue between threads that does not exist here",
    )
    .after(CLIENT),
    ToolOption::refused(&["-W", "--suggest_win_size"], &["-W"], "suggested window sizes, which no version implemented").after(CLIENT),
    ToolOption::refused(&["-H ADDR", "--ssm-host ADDR"], &["-H", "192.0.2.9"], MULTICAST).after(CLIENT),
    ToolOption::refused(&["--permit-key[=KEY]"], &["--permit-key=abcd1234"], "authentication by a key; restrict clients \
         with a packet filter, or use `linerate serve`").after(CLIENT),
    ToolOption::refused(&["--permit-key-timeout N"], &["--permit-key-timeout", "20"], "authentication by a key, see --permit-key")
        .after(SERVER),
    ToolOption::refused(&["--no-connect-sync"], &["--no-connect-sync"], "unsynchronized starts; all connections start together here")
        .after(CLIENT),
    ToolOption::refused(&["--near-congestion[=N]"], &["--near-congestion"], PACED).after(CLIENT),
    ToolOption::refused(&["--isochronous[=F:M,S]"], &["--isochronous"], PACED).after(CLIENT),
    ToolOption::refused(&["--ipg N"], &["--ipg", "1"], PACED).after(CLIENT),
    ToolOption::refused(&["--burst-period N"], &["--burst-period", "1"], PACED).after(CLIENT),
    ToolOption::refused(&["--burst-size N"], &["--burst-size", "1M"], PACED).after(CLIENT),
    ToolOption::refused(&["--vary-load N"], &["--vary-load", "1m"], "a varying rate; use -b for a constant rate").after(CLIENT),
    ToolOption::refused(&["--bounceback[=N]"], &["--bounceback"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-congest[=X]"], &["--bounceback-congest"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-hold N"], &["--bounceback-hold", "1"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-period[=N]"], &["--bounceback-period=1"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-no-quickack"], &["--bounceback-no-quickack"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-txdelay N"], &["--bounceback-txdelay", "1"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-request N"], &["--bounceback-request", "100"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--bounceback-reply N"], &["--bounceback-reply", "100"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--working-load[=X]"], &["--working-load"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--working-load-cca NAME"], &["--working-load-cca", "cubic"], BOUNCE).after(CLIENT),
    ToolOption::refused(&["--histograms[=X]"], &["--histograms"], HISTOGRAM).after(SERVER),
    ToolOption::refused(&["--udp-histogram X"], &["--udp-histogram", "1,1000"], HISTOGRAM).after(SERVER),
    ToolOption::refused(&["--jitter-histograms[=X]"], &["--jitter-histograms"], HISTOGRAM).after(SERVER),
    ToolOption::refused(
        &["--tcp-quickack"],
        &["--tcp-quickack"],
        "immediate acknowledgements; Linux resets TCP_QUICKACK after a few segments",
    )
    .after(CLIENT),
    ToolOption::refused(
        &["--tcp-write-prefetch N"],
        &["--tcp-write-prefetch", "16K"],
        "a limit on unsent bytes in the socket; a smaller -w has a similar effect",
    )
    .after(CLIENT),
    ToolOption::refused(
        &["--tcp-write-times"],
        &["--tcp-write-times"],
        "timing of write calls; -e prints their number",
    )
    .after(CLIENT),
    ToolOption::refused(&["--tcp-drain"], &["--tcp-drain"], LATER).after(CLIENT),
    ToolOption::refused(
        &["--tcp-rx-window-clamp N"],
        &["--tcp-rx-window-clamp", "16K"],
        "a limit on the receive window; use -w",
    )
    .after(SERVER),
    ToolOption::refused(
        &["--tos-override N"],
        &["--tos-override", "0x10"],
        "another type of service for reverse traffic, which has the client's here",
    )
    .after(SERVER),
    ToolOption::refused(&["--sum-dstip"], &["--sum-dstip"], "sums per destination; sums are per client here")
        .after(SERVER),
    ToolOption::refused(&["--tap-dev NAME"], &["--tap-dev", "tap0"], "receiving from a TAP device").after(SERVER),
    ToolOption::refused(&["--l2checks"], &["--l2checks"], "checks of the frame length against the IP length")
        .after(CLIENT),
    ToolOption::refused(&["--utc"], &["--utc"], LATER).after(CLIENT),
    ToolOption::refused(&["--sync-transfer-id"], &["--sync-transfer-id"], LATER).after(CLIENT),
    ToolOption::refused(&["--dscp N"], &["--dscp", "46"], LATER).after(CLIENT),
    ToolOption::refused(&["--tcp-cca NAME"], &["--tcp-cca", "cubic"], LATER).after(CLIENT),
    ToolOption::refused(&["--fq-rate-step N"], &["--fq-rate-step", "1m"], LATER).after(CLIENT),
    ToolOption::refused(&["--fq-rate-step-interval N"], &["--fq-rate-step-interval", "1"], LATER).after(CLIENT),
    ToolOption::refused(&["--udp-l4s"], &["--udp-l4s"], LATER).after(CLIENT),
    ToolOption::refused(&["--udp-l4s-video"], &["--udp-l4s-video"], LATER).after(CLIENT),
    ToolOption::refused(&["--omit N"], &["--omit", "1"], LATER).after(CLIENT),
    ToolOption::refused(&["--ignore-shutdown"], &["--ignore-shutdown"], LATER).after(CLIENT),
    ToolOption::refused(&["--skip-rx-copy"], &["--skip-rx-copy"], LATER).after(SERVER),
    ToolOption::refused(&["--test-exchange-timeout N"], &["--test-exchange-timeout", "60"], LATER).after(SERVER),
    ToolOption::refused(&["--tcp-tx-delay N"], &["--tcp-tx-delay", "10"], LATER).after(CLIENT),
];

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iperf2Value {
    /// It has none.
    Absent,
    /// The next argument, or after `=`.
    Required,
    /// Only after `=`.
    Optional,
}

/// An option with one of its spellings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iperf2Spelling {
    pub(super) option: &'static ToolOption,
    /// With its dashes.
    pub(super) name: &'static str,
    pub(super) value: Iperf2Value,
}

fn spellings() -> impl Iterator<Item = Iperf2Spelling> {
    let of = |option: &'static ToolOption| {
        option.spellings.iter().zip(option.names()).map(move |(spelling, name)| Iperf2Spelling {
            option,
            name,
            value: match spelling.get(name.len()..name.len() + 1) {
                None => Iperf2Value::Absent,
                Some("[") => Iperf2Value::Optional,
                Some(_) => Iperf2Value::Required,
            },
        })
    };
    OPTIONS.iter().flat_map(of)
}

/// Finds `-b`.
pub(super) fn short(letter: char) -> Option<Iperf2Spelling> {
    spellings().find(|spelling| spelling.name.strip_prefix('-').is_some_and(|name| name.chars().eq([letter])))
}

/// Finds a long option by its full name or an unambiguous prefix, with its dashes. Spellings of the same option
/// are not ambiguous.
pub(super) fn long(name: &str) -> Option<Iperf2Spelling> {
    let mut begun = spellings().filter(|spelling| spelling.name.starts_with(name) && name.len() > 2);
    let exact = spellings().find(|spelling| spelling.name == name);
    exact.or_else(|| {
        let first = begun.next()?;
        begun.all(|other| std::ptr::eq(other.option, first.option)).then_some(first)
    })
}

/// The help text: one option a line, then those that are refused.
pub(super) fn help() -> String {
    let mut text =
        "Usage: iperf [-s|-c host] [options]\n       iperf [-h|--help] [-v|--version]\n\n".to_owned();
    let line = |option: &ToolOption| format!("  {:<34} {}\n", option.spellings.join(", "), option.remark);
    let of = |support| OPTIONS.iter().filter(move |option| option.support == support);
    of(OptionSupport::Acts).for_each(|option| text += &line(option));
    text += "\nAccepted, without an effect:\n";
    of(OptionSupport::NoEffect).for_each(|option| text += &line(option));
    text += "\nRefused:\n";
    of(OptionSupport::Refused).for_each(|option| text += &line(option));
    text += "\nk, m, g are decimal, K, M, G binary; the manual of iperf 2.1.8 applies.\n";
    text
}
