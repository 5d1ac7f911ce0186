//! The options of nuttcp, 5.5 to 8.2.2.

use crate::option_table::ToolOption;

const HOST: &[&str] = &["192.0.2.2"];
const UDP: &[&str] = &["-u", "192.0.2.2"];
const SERVER: &[&str] = &["-S"];
const IPV6_SERVER: &[&str] = &["-S", "-6"];

/// Every option.
pub(super) const OPTIONS: &[ToolOption] = &[
    ToolOption::acts(&["-t"], &["-t", "192.0.2.2"], "transmit to the server (the default)"),
    ToolOption::acts(&["-r"], &["-r"], "receive from the server").after(HOST),
    ToolOption::acts(&["-S[fP]"], &["-S"], "run as a server, always in the foreground; f and P (third-party tests) change nothing"),
    ToolOption::acts(&["-1"], &["-1"], "run as a server for one client"),
    ToolOption::acts(&["-4"], &["-4"], "use only IPv4").after(HOST),
    ToolOption::acts(&["-6"], &["-6"], "use only IPv6").after(HOST),
    ToolOption::acts(&["-c N"], &["-c8"], "DSCP, or the IP precedence with suffix p, or the whole TOS byte with suffix t").after(HOST),
    ToolOption::acts(&["-l N"], &["-l8k"], "bytes per block or datagram").after(HOST),
    ToolOption::acts(&["-n N"], &["-n1m"], "number of blocks to send, or bytes with suffix b, k, m, g, t or p").after(HOST),
    ToolOption::refused(&["-nb"], &["-nb10"], "replaced in nuttcp by the suffixes of -n"),
    ToolOption::acts(&["-T N"], &["-T3"], "seconds to transmit, or minutes, hours or days with suffix m, h or d").after(HOST),
    ToolOption::acts(&["-w N"], &["-w64"], "socket buffer of this end, KB, or bytes, MB or GB with suffix b, m or g")
        .after(HOST),
    ToolOption::acts(&["-ws N"], &["-ws64"], "socket buffer of the server, as -w").after(HOST),
    ToolOption::acts(&["-wb[N]"], &["-wb"], "set both the send and the receive buffer of each end").after(HOST),
    ToolOption::acts(&["-s"], &["-s"], "send standard input, or write to standard output; one TCP stream only").after(HOST),
    ToolOption::refused(
        &["-sd"],
        &["-sd"],
        "direct I/O; data pass through standard input and output",
    ),
    ToolOption::refused(&["-sz"], &["-sz"], "zero-copy from files; data pass through standard input"),
    ToolOption::acts(&["-p PORT", "-p SOURCE:PORT"], &["-p5200:5201"], "port of the first data stream, optionally with the source port")
        .after(HOST),
    ToolOption::acts(&["-P PORT", "-P SOURCE:PORT"], &["-P4999:5001"], "port of the control connection, optionally with the source port")
        .after(HOST),
    ToolOption::refused(&["-P PORT/PORT"], &["-P5000/5001"], "control port of a third party"),
    ToolOption::acts(&["-u"], &["-u"], "use UDP instead of TCP").after(HOST),
    ToolOption::acts(&["-uu"], &["-uu"], "use UDP without a rate limit").after(HOST),
    ToolOption::refused(&["-m N", "-ma N", "-ms N"], &["-m4"], "multicast"),
    ToolOption::refused(&["-g ADDRESS"], &["-g232.0.0.1"], "multicast group address"),
    ToolOption::acts(&["-M N"], &["-M1000"], "TCP maximum segment size, bytes").after(HOST),
    ToolOption::acts(&["-N N"], &["-N4"], "number of parallel streams").after(HOST),
    ToolOption::refused(&["-N Nm"], &["-N4m"], "streams over several addresses of the host"),
    ToolOption::acts(&["-R N", "-Ra N"], &["-R10m"], "average rate limit, kbit/s, or Mbit/s, Gbit/s or packets per second with suffix m, g or p")
        .after(HOST),
    ToolOption::acts(&["-Ri N[/N]"], &["-Ri10m/5"], "instantaneous rate limit, without catching up; /N sends in bursts of N").after(HOST),
    ToolOption::acts(&["-Ru"], &["-Ru"], "no rate limit").after(UDP),
    ToolOption::refused(
        &["-Ris N"],
        &["-Ris10m"],
        "smoothed slow start, which needs the congestion window before every write",
    ),
    ToolOption::acts(
        &["--packet-burst N"],
        &["--packet-burst", "5"],
        "datagrams or blocks per burst with -Ri",
    )
    .after(HOST),
    ToolOption::acts(&["-j[maxo]"], &["-jmaxo"], "measure UDP jitter, with an instantaneous rate; m, a, x: minimum, average, maximum; o: in-order packets only").after(HOST),
    ToolOption::acts(&["-o[max]"], &["-omax"], "measure one-way delay; m, a, x: minimum, average, maximum").after(HOST),
    ToolOption::acts(&["-i N"], &["-i2"], "seconds between interval reports, or minutes or hours with suffix m or h")
        .after(HOST),
    ToolOption::acts(&["-I TEXT"], &["-Iwest"], "identifier to print at the start of each line").after(HOST),
    ToolOption::acts(&["-F"], &["-F"], "flip: open the data connections in the other direction (TCP)").after(HOST),
    ToolOption::acts(&["-a"], &["-a"], "retry a refused control connection").after(HOST),
    ToolOption::refused(&["-xt"], &["-xt"], "traceroute; a server never runs commands for a client"),
    ToolOption::refused(&["-xP N"], &["-xP5"], "process priority; start it with nice(1) or chrt(1)"),
    ToolOption::acts(&["-xc N[/N]"], &["-xc0/1"], "pin the data threads to CPU N here, and at the server after the slash")
        .after(HOST),
    ToolOption::acts(&["-xcs N"], &["-xcs1"], "pin the server's data threads to CPU N").after(HOST),
    ToolOption::no_effect(&["-d"], &["-d"], "socket debugging (SO_DEBUG), which does nothing in current kernels").after(HOST),
    ToolOption::no_effect(&["-B"], &["-B"], "receive only full blocks, which is always done").after(HOST),
    ToolOption::acts(&["-D"], &["-D"], "disable Nagle's algorithm (TCP_NODELAY)").after(HOST),
    ToolOption::acts(&["-v"], &["-v"], "verbose: print the reports of both ends").after(HOST),
    ToolOption::acts(&["-vv"], &["-vv"], "very verbose: also print the CPU time").after(HOST),
    ToolOption::acts(&["-b[N]"], &["-b"], "brief: print one line; N adds up 2 for -br and 4 for -bc")
        .after(&["-v", "192.0.2.2"]),
    ToolOption::acts(&["-br"], &["-br"], "brief, with the retransmissions of each stream").after(HOST),
    ToolOption::acts(&["-bc"], &["-bc"], "brief, with the congestion window of each stream").after(HOST),
    ToolOption::acts(&["-fxmitstats"], &["-fxmitstats"], "also print what the UDP transmitter sent").after(HOST),
    ToolOption::acts(&["-frunningtotal"], &["-frunningtotal"], "also print the running total in interval reports")
        .after(HOST),
    ToolOption::acts(&["-f-drops"], &["-f-drops"], "do not print lost datagrams").after(HOST),
    ToolOption::acts(&["-f-percentloss"], &["-f-percentloss"], "do not print the loss percentage").after(HOST),
    ToolOption::acts(&["-f-retrans"], &["-f-retrans"], "do not print retransmissions and congestion window")
        .after(HOST),
    ToolOption::acts(&["-f-cwnd"], &["-f-cwnd"], "do not print the congestion window").after(HOST),
    ToolOption::acts(&["-f-rtt"], &["-f-rtt"], "do not print the round-trip time").after(HOST),
    ToolOption::acts(&["-frtt"], &["-frtt"], "print the round-trip time (the default)")
        .after(&["-f-rtt", "192.0.2.2"]),
    ToolOption::acts(&["-f-beta"], &["-f-beta"], "do not print notes about beta versions")
        .after(HOST),
    ToolOption::acts(&["-fparse"], &["-fparse"], "print key=value pairs").after(HOST),
    ToolOption::refused(
        &["-fdebuginterval", "-fdebugretrans", "-fdebugpoll", "-fdebugmtu", "-fdebugjitter", "-fdebugirate"],
        &["-fdebugretrans"],
        "debugging output",
    ),
    ToolOption::refused(&["-3"], &["-3"], "third-party tests"),
    ToolOption::acts(
        &["--idle-data-timeout S[/S/S]"],
        &["--idle-data-timeout", "20"],
        "idle timeout of a receiver, seconds: minimum, default, maximum",
    )
    .after(SERVER),
    ToolOption::no_effect(&["--no3rdparty"], &["--no3rdparty"], "refuse third-party tests, which are never served")
        .after(SERVER),
    ToolOption::no_effect(&["--nofork"], &["--nofork"], "stay in the foreground, as a server always does").after(SERVER),
    ToolOption::acts(&["--single-threaded"], &["--single-threaded"], "serve one client at a time")
        .after(SERVER),
    ToolOption::acts(&["--enable-v4-mapped"], &["--enable-v4-mapped"], "with -6: also accept IPv4")
        .after(IPV6_SERVER),
    ToolOption::no_effect(&["--disable-v4-mapped"], &["--disable-v4-mapped"], "with -6: do not accept IPv4 (the default)")
        .after(IPV6_SERVER),
    ToolOption::acts(&["-V"], &["-V"], "print the version"),
    ToolOption::acts(&["-h"], &["-h"], "print help"),
];
