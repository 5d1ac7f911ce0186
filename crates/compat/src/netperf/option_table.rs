//! The options of netperf and netserver, 2.5 to 2.7.

use crate::option_table::ToolOption;

const RR: &[&str] = &["-t", "TCP_RR"];
const TEST: &[&str] = &["--"];
const RR_TEST: &[&str] = &["-t", "TCP_RR", "--"];
const UDP_RR_TEST: &[&str] = &["-t", "UDP_RR", "--"];
const OMNI_TEST: &[&str] = &["-t", "omni", "--"];
const OMNI_RR_TEST: &[&str] = &["-t", "omni", "--", "-d", "rr"];
const SERVER: &[&str] = &["netserver"];

/// The options of netperf before `--`.
pub(super) const CLIENT: &[ToolOption] = &[
    ToolOption::acts(&["-H HOST,FAMILY"], &["-H", "192.0.2.2"], "host of the server"),
    ToolOption::acts(
        &["-p PORT,LOCAL"],
        &["-p", "12866"],
        "port of the control connection, optionally with the local port",
    ),
    ToolOption::acts(&["-L ADDRESS,FAMILY"], &["-L", "192.0.2.1"], "local address of the control connection"),
    ToolOption::acts(&["-4"], &["-4"], "use only IPv4"),
    ToolOption::acts(&["-6"], &["-6"], "use only IPv6"),
    ToolOption::acts(&["-t TEST"], &["-t", "UDP_STREAM"], "test to run, such as TCP_STREAM or UDP_RR"),
    ToolOption::acts(&["-l N"], &["-l", "5"], "seconds to run; a negative number: bytes or transactions"),
    ToolOption::acts(
        &["-D N"],
        &["-D", "1"],
        "print interim results every N seconds; a second value is refused",
    ),
    ToolOption::acts(&["-f UNIT"], &["-f", "k"], "unit of printed rates"),
    ToolOption::acts(&["-v N"], &["-v", "2"], "verbosity"),
    ToolOption::acts(&["-P N"], &["-P", "0"], "print headings (1) or not (0)"),
    ToolOption::acts(&["-c[RATE]"], &["-c"], "measure the CPU usage of this host"),
    ToolOption::acts(&["-C[RATE]"], &["-C"], "measure the CPU usage of the server"),
    ToolOption::acts(
        &["-i MOST,LEAST"],
        &["-i", "10,3"],
        "maximum and minimum number of iterations to reach the confidence of -I",
    ),
    ToolOption::acts(
        &["-I LEVEL,WIDTH"],
        &["-I", "99,5"],
        "confidence level, and width of the confidence interval, percent",
    ),
    ToolOption::acts(&["-r"], &["-r"], "reach the confidence for the result only, not for CPU usage"),
    ToolOption::acts(&["-s N"], &["-s", "1"], "seconds to wait before the test starts"),
    ToolOption::acts(&["-S"], &["-S"], "enable keepalive on the data connections (SO_KEEPALIVE)"),
    ToolOption::acts(
        &["-Y LOCAL,REMOTE"],
        &["-Y", "af41"],
        "type of service of the data, by DSCP name or number",
    ),
    ToolOption::acts(&["-b N"], &["-b", "10"], "messages per burst"),
    ToolOption::acts(&["-w N"], &["-w", "10"], "time between two bursts"),
    ToolOption::acts(&["-F LOCAL,REMOTE"], &["-F", "file"], "fill the buffers from a file"),
    ToolOption::acts(&["-j"], &["-j"], "record transaction latencies").after(RR),
    ToolOption::acts(&["-B TEXT"], &["-B", "brand"], "text to include in the result"),
    ToolOption::acts(&["-Z TEXT"], &["-Z", "secret"], "passphrase of the server"),
    ToolOption::acts(&["-V"], &["-V"], "print the version"),
    ToolOption::acts(&["-h"], &["-h"], "print help"),
    ToolOption::refused(
        &["-A N"],
        &["-A", "8"],
        "alignment of the server's buffers, which cannot be set from here",
    ),
    ToolOption::refused(
        &["-a N"],
        &["-a", "8"],
        "alignment of this host's buffers, which are always page-aligned",
    ),
    ToolOption::refused(&["-d"], &["-d"], "debugging output, of which there is none"),
    ToolOption::refused(&["-k N"], &["-k", "1"], "dirty the buffers before they are used"),
    ToolOption::refused(&["-K N"], &["-K", "1"], "dirty the buffers before they are used"),
    ToolOption::refused(&["-n N"], &["-n", "2"], "number of CPUs, which is read from the system"),
    ToolOption::refused(&["-N"], &["-N"], "a test without a control connection"),
    ToolOption::refused(&["-O N"], &["-O", "8"], "offset of the server's buffers"),
    ToolOption::refused(
        &["-o N"],
        &["-o", "8"],
        "offset of this host's buffers; the output selectors come after --",
    ),
    ToolOption::refused(&["-T N"], &["-T", "0"], "CPU affinity of the processes"),
    ToolOption::refused(&["-W N"], &["-W", "2"], "number of send and receive buffers; there is one"),
    ToolOption::refused(&["-y N"], &["-y", "1"], "socket priority"),
];

/// The options of a test, after `--`.
pub(super) const TESTS: &[ToolOption] = &[
    ToolOption::acts(&["-m LOCAL,REMOTE"], &["-m", "1000"], "bytes per send").after(TEST),
    ToolOption::acts(&["-M REMOTE,LOCAL"], &["-M", "1000"], "bytes per receive").after(TEST),
    ToolOption::acts(&["-s SEND,RECEIVE"], &["-s", "10000"], "socket buffers of this host").after(TEST),
    ToolOption::acts(&["-S SEND,RECEIVE"], &["-S", "10000"], "socket buffers of the server").after(TEST),
    ToolOption::acts(&["-r ASK,ANSWER"], &["-r", "100,200"], "bytes of a request and of a response")
        .after(RR_TEST),
    ToolOption::acts(&["-b N"], &["-b", "4"], "additional requests in flight").after(RR_TEST),
    ToolOption::acts(&["-d DIRECTION"], &["-d", "recv"], "omni: direction of the data").after(OMNI_TEST),
    ToolOption::acts(&["-T PROTOCOL"], &["-T", "udp"], "omni: protocol, tcp or udp").after(OMNI_TEST),
    ToolOption::acts(&["-c"], &["-c"], "omni: open a connection for each transaction").after(OMNI_RR_TEST),
    ToolOption::acts(&["-D"], &["-D"], "disable Nagle's algorithm (TCP_NODELAY)").after(TEST),
    ToolOption::acts(&["-K LOCAL,REMOTE"], &["-K", "cubic"], "TCP congestion control algorithm").after(TEST),
    ToolOption::acts(&["-G N"], &["-G", "1000"], "TCP maximum segment size, bytes").after(TEST),
    ToolOption::acts(&["-e N"], &["-e", "2"], "UDP: seconds to wait for a response").after(UDP_RR_TEST),
    ToolOption::acts(
        &["-R N"],
        &["-R", "0"],
        "allow routing (1), or reach only directly connected hosts (0, SO_DONTROUTE)",
    )
    .after(TEST),
    ToolOption::acts(&["-P LOCAL,REMOTE"], &["-P", "5001,5002"], "ports of the data connection").after(TEST),
    ToolOption::acts(&["-H HOST,FAMILY"], &["-H", "192.0.2.3"], "remote host of the data connection")
        .after(TEST),
    ToolOption::acts(&["-L ADDRESS,FAMILY"], &["-L", "192.0.2.1"], "local address of the data connection")
        .after(TEST),
    ToolOption::acts(&["-4"], &["-4"], "data connection over IPv4").after(TEST),
    ToolOption::acts(&["-6"], &["-6"], "data connection over IPv6").after(TEST),
    ToolOption::no_effect(&["-n"], &["-n"], "use connected UDP sockets, which is always done").after(TEST),
    ToolOption::acts(
        &["-o SELECTORS"],
        &["-o", "THROUGHPUT"],
        "print these values as comma-separated columns",
    )
    .after(TEST),
    ToolOption::acts(&["-O SELECTORS"], &["-O", "THROUGHPUT"], "print these values as a table").after(TEST),
    ToolOption::acts(&["-k SELECTORS"], &["-k", "THROUGHPUT"], "print these values as key=value pairs")
        .after(TEST),
    ToolOption::acts(&["-u TEXT"], &["-u", "id"], "identifier of the test").after(TEST),
    ToolOption::acts(&["-h"], &["-h"], "print help").after(TEST),
    ToolOption::refused(&["-a"], &["-a"], "deferred accept").after(TEST),
    ToolOption::refused(&["-B"], &["-B"], "explicit source address for datagrams; the system chooses it")
        .after(TEST),
    ToolOption::refused(&["-C"], &["-C"], "TCP_CORK").after(TEST),
    ToolOption::refused(&["-F"], &["-F"], "TCP Fast Open").after(TEST),
    ToolOption::refused(&["-g"], &["-g"], "tracing of the sockets").after(TEST),
    ToolOption::refused(&["-i N"], &["-i", "1"], "removed from netperf").after(TEST),
    ToolOption::refused(&["-I"], &["-I"], "another call to send with").after(TEST),
    ToolOption::refused(&["-j N"], &["-j", "1"], "has no effect in netperf").after(TEST),
    ToolOption::refused(&["-l N"], &["-l", "1"], "multicast").after(TEST),
    ToolOption::refused(&["-N"], &["-N"], "has no effect in netperf").after(TEST),
    ToolOption::refused(&["-p LEAST,MOST"], &["-p", "1,2"], "port range; -P sets single ports").after(TEST),
    ToolOption::refused(&["-t TYPE"], &["-t", "1"], "socket type, which follows from the protocol")
        .after(TEST),
    ToolOption::refused(&["-U"], &["-U"], "ignoring refused connections, which are errors here").after(TEST),
    ToolOption::refused(&["-V"], &["-V"], "copy avoidance").after(TEST),
    ToolOption::refused(
        &["-w N"],
        &["-w", "1"],
        "has no effect in netperf; the time between bursts is set before --",
    )
    .after(TEST),
    ToolOption::refused(&["-W N"], &["-W", "1"], "number of buffers; there is one").after(TEST),
];

/// The options of netserver.
pub(super) const OF_SERVER: &[ToolOption] = &[
    ToolOption::acts(&["-p PORT"], &["-p", "12866"], "port to listen on").after(SERVER),
    ToolOption::acts(&["-L ADDRESS,FAMILY"], &["-L", "192.0.2.2"], "local address to listen on")
        .after(SERVER),
    ToolOption::acts(&["-4"], &["-4"], "use only IPv4").after(SERVER),
    ToolOption::acts(&["-6"], &["-6"], "use only IPv6").after(SERVER),
    ToolOption::acts(&["-Z TEXT"], &["-Z", "secret"], "passphrase that clients have to send").after(SERVER),
    ToolOption::acts(&["-V"], &["-V"], "print the version").after(SERVER),
    ToolOption::acts(&["-h"], &["-h"], "print help").after(SERVER),
    ToolOption::no_effect(&["-D"], &["-D"], "stay in the foreground, which is always done").after(SERVER),
    ToolOption::no_effect(
        &["-f"],
        &["-f"],
        "do not fork, which is never done; clients are served at the same time",
    )
    .after(SERVER),
    ToolOption::no_effect(&["-d"], &["-d"], "debugging output, of which there is none").after(SERVER),
    ToolOption::no_effect(&["-N"], &["-N"], "debugging output, of which there is none").after(SERVER),
    ToolOption::no_effect(&["-v N"], &["-v", "2"], "verbosity; there is nothing more to print").after(SERVER),
    ToolOption::no_effect(&["-n N"], &["-n", "2"], "number of CPUs, which is read from the system")
        .after(SERVER),
];
