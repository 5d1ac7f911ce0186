//! The options of NTttcp: for Linux up to 1.4.3, and for Windows 5.40.

use crate::option_table::ToolOption;

const RECEIVER: &[&str] = &["-r"];
const SENDER: &[&str] = &["-s", "192.0.2.2"];
const WINDOWS: &[&str] = &["--windows", "-s", "-m", "2,*,192.0.2.2"];

/// The options of the Linux tool. Long ones besides the last are those of versions before 1.4.
pub(super) const LINUX: &[ToolOption] = &[
    ToolOption::acts(
        &["-r[ADDRESS]", "--receiver"],
        &["-r"],
        "run as the receiver (the default), optionally listening on this address",
    ),
    ToolOption::acts(
        &["-s[ADDRESS]", "--sender"],
        &["-s", "192.0.2.2"],
        "run as the sender to this address, or to this host",
    ),
    ToolOption::refused(
        &["-D", "--daemon"],
        &["-D"],
        "run in the background; start it there, as by `setsid ntttcp ... &`",
    )
    .after(RECEIVER),
    ToolOption::acts(&["-M", "--multi-clients"], &["-M"], "receiver: wait for several senders")
        .after(RECEIVER),
    ToolOption::acts(&["-L", "--last-client"], &["-L"], "sender: this is the last of several senders")
        .after(SENDER),
    ToolOption::acts(&["-e", "--epoll"], &["-e"], "receiver: use epoll, which is always used; -V says so")
        .after(RECEIVER),
    ToolOption::acts(&["-H", "--hold"], &["-H"], "receiver: start again after each test").after(RECEIVER),
    ToolOption::acts(
        &["-m N,CPU,ADDRESS", "--mapping"],
        &["-m", "2,0,192.0.2.9"],
        "N ports with one thread each, their CPU (* for any), and the receiver's address",
    )
    .after(SENDER),
    ToolOption::acts(&["-P N", "--nports"], &["-P", "2"], "number of data ports").after(SENDER),
    ToolOption::acts(&["-n N", "--nthread"], &["-n", "2"], "sender: threads per port").after(SENDER),
    ToolOption::acts(&["-l N", "--nconnections"], &["-l", "2"], "sender: connections per thread")
        .after(SENDER),
    ToolOption::acts(&["-6", "--ipv6"], &["-6"], "use IPv6").after(SENDER),
    ToolOption::acts(&["-u", "--udp"], &["-u"], "use UDP instead of TCP").after(SENDER),
    ToolOption::acts(&["-p PORT", "--base-dst-port"], &["-p", "6001"], "first data port").after(SENDER),
    ToolOption::acts(&["-f[PORT]", "--base-src-port"], &["-f"], "sender: first source port").after(SENDER),
    ToolOption::acts(&["-a ADDRESS"], &["-a", "192.0.2.1"], "sender: source address").after(SENDER),
    ToolOption::acts(&["-b N", "--buffer"], &["-b", "1K"], "bytes per read or write").after(SENDER),
    ToolOption::acts(&["-B RATE"], &["-B", "1G"], "sender: rate limit for all connections together")
        .after(SENDER),
    ToolOption::acts(&["-W N", "--warmup"], &["-W", "1"], "warm-up before the test, seconds").after(SENDER),
    ToolOption::acts(&["-t N", "--duration"], &["-t", "2"], "measured time, seconds; 0 for no limit")
        .after(SENDER),
    ToolOption::acts(&["-C N", "--cooldown"], &["-C", "1"], "cool-down after the test, seconds")
        .after(SENDER),
    ToolOption::acts(&["-N", "--no-synch"], &["-N"], "no synchronization between sender and receiver")
        .after(SENDER),
    ToolOption::acts(&["-O[FILE]"], &["-O"], "save the console output to a file").after(SENDER),
    ToolOption::acts(&["-x[FILE]", "--save-xml"], &["-x"], "save the result as XML").after(SENDER),
    ToolOption::acts(&["-j[FILE]"], &["-j"], "save the result as JSON").after(SENDER),
    ToolOption::acts(&["-Q"], &["-Q"], "quiet: print nothing during the test").after(SENDER),
    ToolOption::acts(&["-V", "--verbose"], &["-V"], "print more detail").after(SENDER),
    ToolOption::acts(&["-h", "--help"], &["-h"], "print help"),
    ToolOption::acts(
        &["--show-tcp-retrans", "-R", "--show-retrans"],
        &["--show-tcp-retrans"],
        "print the host's TCP retransmissions by kind",
    )
    .after(SENDER),
    ToolOption::acts(
        &["--show-nic-packets NAME", "-K"],
        &["--show-nic-packets", "eth0"],
        "print the packets of this interface",
    )
    .after(SENDER),
    ToolOption::acts(
        &["--show-dev-interrupts NAME", "-I"],
        &["--show-dev-interrupts", "mlx4"],
        "print the interrupts of devices with this name",
    )
    .after(SENDER),
    ToolOption::acts(
        &["--fq-rate-limit RATE"],
        &["--fq-rate-limit", "1G"],
        "sender: pace each connection in the kernel at this rate (fq)",
    )
    .after(SENDER),
    ToolOption::acts(&["--no-delay"], &["--no-delay"], "disable Nagle's algorithm (TCP_NODELAY)")
        .after(SENDER),
    ToolOption::acts(
        &["--windows"],
        WINDOWS,
        "first option only: stand in for NTttcp for Windows, its protocol and options (an option of linerate)",
    ),
];

/// The options of the Windows tool, after `--windows`.
pub(super) const OF_WINDOWS: &[ToolOption] = &[
    ToolOption::acts(&["-s"], &["-s"], "run as the sender").after(&[
        "--windows",
        "-r",
        "-m",
        "2,*,192.0.2.2",
    ]),
    ToolOption::acts(&["-r"], &["-r"], "run as the receiver").after(WINDOWS),
    ToolOption::acts(
        &["-m N,CPU,ADDRESS ..."],
        &["-m", "1,0,192.0.2.2", "2,1,192.0.2.2"],
        "N threads, their CPU, and the receiver's address, which has to be the same for all",
    )
    .after(WINDOWS),
    ToolOption::acts(&["-l N"], &["-l", "1M"], "bytes per buffer").after(WINDOWS),
    ToolOption::acts(&["-n N"], &["-n", "100"], "buffers to send per thread, instead of -t").after(WINDOWS),
    ToolOption::acts(&["-p PORT"], &["-p", "6001"], "first port").after(WINDOWS),
    ToolOption::acts(&["-sp"], &["-sp"], "let the receiver tell each thread its port").after(WINDOWS),
    ToolOption::acts(&["-ns"], &["-ns"], "no synchronization between sender and receiver").after(WINDOWS),
    ToolOption::acts(&["-t N"], &["-t", "5"], "measured time, seconds").after(WINDOWS),
    ToolOption::acts(&["-wu N"], &["-wu", "1"], "warm-up before the test, seconds").after(WINDOWS),
    ToolOption::acts(&["-cd N"], &["-cd", "1"], "cool-down after the test, seconds").after(WINDOWS),
    ToolOption::acts(&["-u"], &["-u"], "use UDP instead of TCP").after(WINDOWS),
    ToolOption::acts(&["-6"], &["-6"], "use IPv6").after(WINDOWS),
    ToolOption::acts(&["-v"], &["-v"], "print more detail").after(WINDOWS),
    ToolOption::acts(&["-hpt"], &["-hpt"], "do not print the table of threads").after(WINDOWS),
    ToolOption::acts(&["-nic ADDRESS"], &["-nic", "192.0.2.1"], "source address").after(WINDOWS),
    ToolOption::acts(&["-xml[FILE]"], &["-xml"], "save the result as XML").after(WINDOWS),
    ToolOption::acts(&["-ndl"], &["-ndl"], "disable Nagle's algorithm (TCP_NODELAY)").after(WINDOWS),
    ToolOption::acts(&["-sb N"], &["-sb", "64K"], "send buffer of the sockets").after(WINDOWS),
    ToolOption::acts(&["-rb N"], &["-rb", "64K"], "receive buffer of the sockets").after(WINDOWS),
    ToolOption::acts(&["-thr N"], &["-thr", "1000"], "rate limit per thread, KB/s").after(WINDOWS),
    ToolOption::no_effect(
        &["-a[N]"],
        &["-a", "4"],
        "number of outstanding overlapped calls, which Linux does not have",
    )
    .after(WINDOWS),
    ToolOption::no_effect(&["-w"], &["-w"], "use WSASend and WSARecv, which are calls of Windows")
        .after(WINDOWS),
    ToolOption::no_effect(
        &["-wa"],
        &["-wa"],
        "receive only full buffers (MSG_WAITALL); the counts are the same",
    )
    .after(WINDOWS),
    ToolOption::no_effect(&["-icp N"], &["-icp", "0"], "use I/O completion ports, which Linux does not have")
        .after(WINDOWS),
    ToolOption::no_effect(&["-cfi"], &["-cfi"], "CPU usage from idle cycles; it is read from /proc/stat")
        .after(WINDOWS),
    ToolOption::no_effect(&["-nsb"], &["-nsb"], "unbuffered output, which it always is").after(WINDOWS),
    ToolOption::refused(&["-to N"], &["-to", "1000"], "timeouts; those of the dialogue are fixed")
        .after(WINDOWS),
    ToolOption::refused(&["-rt"], &["-rt"], "round-trip tests; the receiver sends no data back")
        .after(WINDOWS),
    ToolOption::refused(&["-d"], &["-d"], "data verification; received data are not compared").after(WINDOWS),
    ToolOption::refused(&["-na N"], &["-na", "0"], "NUMA node; -m pins threads to a CPU").after(WINDOWS),
    ToolOption::refused(&["-uso N"], &["-uso", "1400"], "UDP segmentation offload").after(WINDOWS),
    ToolOption::refused(&["-uro"], &["-uro"], "UDP receive coalescing, which is up to the kernel here")
        .after(WINDOWS),
    ToolOption::refused(&["-uc"], &["-uc"], "unconnected UDP sockets; sockets are connected here")
        .after(WINDOWS),
    ToolOption::refused(
        &["-x[N]"],
        &["-x", "2"],
        "TransmitPackets, which is a call of Windows; -xml saves the result",
    )
    .after(WINDOWS),
    ToolOption::refused(&["-hv"], &["-hv"], "Hyper-V sockets").after(WINDOWS),
    ToolOption::refused(&["-brn N"], &["-brn", "1"], "extra CPU load").after(WINDOWS),
    ToolOption::refused(&["-lm"], &["-lm"], "latency of calls, which are not timed here").after(WINDOWS),
    ToolOption::refused(&["-es"], &["-es"], "EStats, which are TCP statistics of Windows").after(WINDOWS),
    ToolOption::refused(&["-sam N"], &["-sam", "1"], "sampling interval; progress is printed twice a second")
        .after(WINDOWS),
    ToolOption::refused(&["-qos N"], &["-qos", "1"], "traffic classes of Windows").after(WINDOWS),
    ToolOption::refused(&["-jm[FILE]"], &["-jm", "file"], "a file of arrival times").after(WINDOWS),
    ToolOption::refused(&["-ps N"], &["-ps", "10"], "a pause between buffers; use -thr to limit the rate")
        .after(WINDOWS),
];
