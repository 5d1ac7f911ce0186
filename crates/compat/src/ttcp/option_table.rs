//! The options of all variants of ttcp.

use crate::option_table::ToolOption;

const TRANSMITTER: &[&str] = &["-t", "192.0.2.2"];
const SGI: &[&str] = &["--like=sgi", "-t", "192.0.2.2"];
const OHIO: &[&str] = &["--like=ohio", "-t", "192.0.2.2"];
const PCATTCP: &[&str] = &["--like=pcattcp", "-t", "192.0.2.2"];

/// Every option.
pub(super) const OPTIONS: &[ToolOption] = &[
    ToolOption::acts(&["-t"], &["-t", "192.0.2.2"], "transmit to this host"),
    ToolOption::acts(&["-r"], &["-r"], "receive"),
    ToolOption::acts(&["-l N"], &["-l", "1000"], "bytes per write or datagram").after(TRANSMITTER),
    ToolOption::acts(&["-n N"], &["-n", "10"], "number of buffers to send").after(TRANSMITTER),
    ToolOption::acts(&["-p N"], &["-p", "2000"], "port number").after(TRANSMITTER),
    ToolOption::acts(&["-u"], &["-u"], "use UDP instead of TCP").after(TRANSMITTER),
    ToolOption::acts(&["-s"], &["-s"], "source a pattern and discard what arrives, or use standard input and output, depending on the variant")
        .after(TRANSMITTER),
    ToolOption::acts(&["-b N"], &["-b", "65536"], "socket buffer size, bytes").after(TRANSMITTER),
    ToolOption::acts(&["-D"], &["-D"], "disable Nagle's algorithm (TCP_NODELAY)").after(TRANSMITTER),
    ToolOption::acts(&["-B"], &["-B"], "write only full blocks").after(TRANSMITTER),
    ToolOption::acts(&["-f X"], &["-f", "m"], "unit of printed rates").after(TRANSMITTER),
    ToolOption::acts(&["-v"], &["-v"], "print more detail").after(TRANSMITTER),
    ToolOption::acts(
        &["-A N"],
        &["-A", "4096"],
        "buffer alignment: only printed, because buffers are always page-aligned",
    )
    .after(TRANSMITTER),
    ToolOption::acts(&["-O N"], &["-O", "8"], "buffer offset: only printed").after(TRANSMITTER),
    ToolOption::no_effect(&["-d"], &["-d"], "socket debugging (SO_DEBUG), which does nothing in current kernels").after(TRANSMITTER),
    ToolOption::no_effect(&["-T"], &["-T"], "touch every received byte; the copy from the kernel always does")
        .after(TRANSMITTER),
    ToolOption::acts(&["-S", "-C"], &["-S"], "sgi: the transmitter listens and the receiver connects")
        .after(SGI),
    ToolOption::acts(&["-4"], &["-4"], "sgi: use only IPv4").after(SGI),
    ToolOption::acts(&["-6"], &["-6"], "sgi: use only IPv6").after(SGI),
    ToolOption::acts(&["-P"], &["-P"], "ohio: show progress").after(OHIO),
    ToolOption::acts(&["-c"], &["-c"], "pcattcp: send forever, or receive repeatedly").after(PCATTCP),
    ToolOption::acts(&["-R"], &["-R"], "pcattcp: receive any number of TCP and UDP tests at once").after(PCATTCP),
    ToolOption::acts(&["-w MS"], &["-w", "5"], "pcattcp: pause before each write, milliseconds")
        .after(PCATTCP),
    ToolOption::acts(&["-L RATE"], &["-L", "100000"], "pcattcp: rate limit, bytes per second").after(PCATTCP),
    ToolOption::acts(
        &["--like NAME"],
        &["--like", "brl", "-t"],
        "variant to stand in for: brl, sgi, ohio or pcattcp (an option of linerate)",
    )
    .after(TRANSMITTER),
];
