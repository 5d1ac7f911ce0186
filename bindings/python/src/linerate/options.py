"""The options of the commands as keyword arguments, and the units of the metrics.

An option has the name of its flag, or of its field in docs/reference/spec.schema.json without the unit: `parallel` and
`streams` are the same. This file is written by generate.py.
"""

from __future__ import annotations

import datetime
import os
from typing import Literal, TypeAlias, TypedDict

from linerate.arguments import Option

Bitrate: TypeAlias = float | str
"""Bits per second, or a text such as "2.5G" (decimal)."""

Size: TypeAlias = int | str
"""Bytes, or a text such as "64K" (binary)."""

Duration: TypeAlias = float | datetime.timedelta | str
"""Seconds, a timedelta, or a text such as "200ms"."""

Share: TypeAlias = float | str
"""A ratio, or a text such as "1%"."""

Name: TypeAlias = str
"""A text."""

File: TypeAlias = str | os.PathLike[str]
"""The path of a file."""


class CheckOptions(TypedDict, total=False):
    """The options of `linerate check`."""

    tool: Literal["iperf3", "iperf2", "ttcp", "nuttcp", "ntttcp", "netpipe", "netperf", "linerate"]
    """The program that wrote the files, if it cannot be detected"""

    rate: Bitrate
    """A rate to check, payload per second, such as 966.5M"""

    pps: int
    """Packets per second"""

    bytes: Size
    """Payload bytes of the whole test"""

    duration: Duration
    """Duration of the whole test, such as 10s"""

    packets: int
    """Packets of the whole test"""

    lost: int
    """Lost packets"""

    retransmits: int
    """Retransmitted segments"""

    cwnd: Size
    """Congestion window"""

    calls: int
    """Number of read or write calls"""

    cpu: Share
    """Busy share of the CPUs, such as 23%"""

    counted_by: Literal["sender", "receiver"]
    """The end that counted the typed figures"""

    link: Bitrate
    """Rate of the slowest link, such as 1G"""

    mtu: Size
    """MTU of the link, below any tunnel"""

    mss: Size
    """Payload of a full segment (MSS), after options"""

    rtt: Duration
    """Round-trip time without queueing, such as 21ms"""

    distance: float
    """Distance between the ends in kilometres, one way"""

    loss: Share
    """Loss probability per packet, such as 0.0001 or 0.01%"""

    vlan: int
    """Number of VLAN tags in each frame"""

    encap: Literal["none", "vxlan4", "vxlan6", "wireguard4", "wireguard6", "gre4", "pppoe"]
    """Tunnel on the path"""

    streams: int
    """Number of parallel connections"""

    congestion: Literal["reno", "cubic", "bbr"]
    """Congestion control"""

    window: Size
    """Window of each connection"""

    length: Size
    """Bytes per call, or payload of a datagram"""

    acceptance: Literal["gigabit"]
    """Also judge acceptance; gigabit: one TCP connection, 10 s, no retransmits, at least 941 Mb/s"""

    ipv6: bool
    """IPv6 instead of IPv4"""

    no_timestamps: bool
    """TCP without timestamps"""

    udp: bool
    """UDP instead of TCP"""


CHECK: dict[str, Option] = {
    "tool": Option("--tool", "required"),
    "rate": Option("--rate", "required"),
    "pps": Option("--pps", "required"),
    "bytes": Option("--bytes", "required"),
    "duration": Option("--duration", "required"),
    "packets": Option("--packets", "required"),
    "lost": Option("--lost", "required"),
    "retransmits": Option("--retransmits", "required"),
    "cwnd": Option("--cwnd", "required"),
    "calls": Option("--calls", "required"),
    "cpu": Option("--cpu", "required"),
    "counted_by": Option("--counted-by", "required"),
    "link": Option("--link", "required"),
    "mtu": Option("--mtu", "required"),
    "mss": Option("--mss", "required"),
    "rtt": Option("--rtt", "required"),
    "distance": Option("--distance", "required"),
    "loss": Option("--loss", "required"),
    "vlan": Option("--vlan", "required"),
    "encap": Option("--encap", "required"),
    "streams": Option("--streams", "required"),
    "congestion": Option("--congestion", "required"),
    "window": Option("--window", "required"),
    "length": Option("--length", "required"),
    "acceptance": Option("--acceptance", "required"),
    "ipv6": Option("--ipv6", "none"),
    "no_timestamps": Option("--no-timestamps", "none"),
    "udp": Option("--udp", "none"),
}


class SweepOptions(TypedDict, total=False):
    """The options of `linerate sweep`."""

    port: int
    """Port of the server [default: 5201]"""

    sizes: Name
    """Exactly these sizes, for example 1,64,1K..16M; a range contains successive doublings"""

    from_: Size
    """Smallest size"""

    to: Size
    """Largest size"""

    points_per_octave: int
    """Number of sizes per doubling, evenly spaced [default: NetPIPE's own sizes, about two]"""

    perturb: Size
    """Also measure at this distance below and above each size; 0 to disable"""

    trials: int
    """Trials of each size; below six the median has no interval"""

    time: Duration
    """Time for all sizes together; slow large messages may double it [default: 30s]"""

    order: Literal["ascending", "interleaved"]
    """Order of the trials"""

    until: Share
    """No more trials of a size whose median is known this well (95 % interval), for example 2%"""

    window: Size
    """Fix the socket buffers at both ends to this size, which disables the kernel's own tuning"""

    set_mss: Size
    """Request this maximum segment size in bytes (TCP); the effective value is reported"""

    mss: Size
    """Request this maximum segment size in bytes (TCP); the effective value is reported"""

    congestion: Name
    """Congestion control at the sender, for example cubic or bbr (TCP)"""

    tos: int | str
    """Type-of-service byte of every packet: decimal, 0x hexadecimal or 0 octal"""

    dscp: int | str
    """DSCP of every packet: 0 to 63 or a name such as ef, cs1, af41"""

    notsent_lowat: Size
    """Keep at most this much in the socket that was not sent yet (TCP_NOTSENT_LOWAT)"""

    busy_poll: Duration
    """Let waiting calls poll the network device for this time, for example 50us (SO_BUSY_POLL)"""

    bind: Name
    """Bind to this local address"""

    bind_address: Name
    """Bind to this local address"""

    bind_dev: Name
    """Bind to this network device (SO_BINDTODEVICE)"""

    bind_device: Name
    """Bind to this network device (SO_BINDTODEVICE)"""

    cport: int
    """Local port of the first data stream; the others use the ports after it"""

    source_port: int
    """Local port of the first data stream; the others use the ports after it"""

    io: Literal["auto", "copy", "splice", "sendfile", "zerocopy"]
    """How the sender passes bytes to the kernel (TCP): copy (the default), splice, sendfile, zerocopy (MSG_ZEROCOPY), or auto for the fastest on that host"""

    affinity: int
    """Pin this host's data threads to this CPU"""

    server_affinity: int
    """Pin the server's data threads to this CPU"""

    link: Bitrate
    """Line rate of the slowest link on the path, if the local interface does not show it, for example 1G"""

    tls_fingerprint: Name
    """As --tls, with the server whose certificate has this SHA-256 fingerprint, as it prints it"""

    tls_ca: File
    """As --tls, with a server whose certificate was issued by an authority in this PEM file"""

    svg: File
    """Also draw the curves into this file, as an SVG picture"""

    report: File
    """Also write a report to this file; its extension selects the format: .html, .json, .csv, .md, .txt or .svg"""

    name: Name
    """Name of this run, by which history, show and compare find it; repeats of one configuration may share it"""

    note: Name
    """Store this note with the result"""

    set: Name | list[Name]
    """Store a note under this key with the result, such as notes.switch=SG350"""

    archive: File
    """Keep runs in this SQLite file, or in a PostgreSQL database, postgres://HOST/DATABASE [default: linerate/archive.sqlite in the user's data directory]"""

    stream: bool
    """Send in one direction only, from here to the server, whose clock measures [default: ping-pong]"""

    bidir: bool
    """Both ends send a message at the same time and wait for the other's before the next"""

    no_delay: bool
    """Send small segments at once (TCP_NODELAY)"""

    quick_ack: bool
    """Acknowledge what arrives at once instead of waiting for more (TCP_QUICKACK)"""

    fast_open: bool
    """Open data connections with TCP Fast Open; both hosts need net.ipv4.tcp_fastopen=3"""

    version4: bool
    """Use IPv4 only"""

    ipv4: bool
    """Use IPv4 only"""

    version6: bool
    """Use IPv6 only"""

    ipv6: bool
    """Use IPv6 only"""

    zerocopy: bool
    """Send without copying, by the fastest method of the sender's host (TCP)"""

    skip_rx_copy: bool
    """Let the receiving kernel discard the bytes instead of copying them to the program; the result says so"""

    no_sampling: bool
    """Only measure rates: no samples, latency or verdict during the load; shows the cost of measuring"""

    tls: bool
    """Encrypt the control connection with TLS 1.3, for a server with --tls; the data that is measured is not encrypted. The certificate of a new server is remembered, and another one of the same server is refused"""


SWEEP: dict[str, Option] = {
    "port": Option("--port", "required"),
    "sizes": Option("--sizes", "required"),
    "from_": Option("--from", "required"),
    "to": Option("--to", "required"),
    "points_per_octave": Option("--points-per-octave", "required"),
    "perturb": Option("--perturb", "required"),
    "trials": Option("--trials", "required"),
    "time": Option("--time", "required"),
    "order": Option("--order", "required"),
    "until": Option("--until", "required"),
    "window": Option("--window", "required"),
    "set_mss": Option("--set-mss", "required"),
    "mss": Option("--set-mss", "required"),
    "congestion": Option("--congestion", "required"),
    "tos": Option("--tos", "required"),
    "dscp": Option("--dscp", "required"),
    "notsent_lowat": Option("--notsent-lowat", "required"),
    "busy_poll": Option("--busy-poll", "required"),
    "bind": Option("--bind", "required"),
    "bind_address": Option("--bind", "required"),
    "bind_dev": Option("--bind-dev", "required"),
    "bind_device": Option("--bind-dev", "required"),
    "cport": Option("--cport", "required"),
    "source_port": Option("--cport", "required"),
    "io": Option("--io", "required"),
    "affinity": Option("--affinity", "required"),
    "server_affinity": Option("--server-affinity", "required"),
    "link": Option("--link", "required"),
    "tls_fingerprint": Option("--tls-fingerprint", "required"),
    "tls_ca": Option("--tls-ca", "required"),
    "svg": Option("--svg", "required"),
    "report": Option("--report", "required"),
    "name": Option("--name", "required"),
    "note": Option("--note", "required"),
    "set": Option("--set", "required", repeatable=True),
    "archive": Option("--archive", "required"),
    "stream": Option("--stream", "none"),
    "bidir": Option("--bidir", "none"),
    "no_delay": Option("--no-delay", "none"),
    "quick_ack": Option("--quick-ack", "none"),
    "fast_open": Option("--fast-open", "none"),
    "version4": Option("--version4", "none"),
    "ipv4": Option("--version4", "none"),
    "version6": Option("--version6", "none"),
    "ipv6": Option("--version6", "none"),
    "zerocopy": Option("--zerocopy", "none"),
    "skip_rx_copy": Option("--skip-rx-copy", "none"),
    "no_sampling": Option("--no-sampling", "none"),
    "tls": Option("--tls", "none"),
}


class TestOptions(TypedDict, total=False):
    """The options of `linerate test`."""

    port: int
    """Port of the server [default: 5201]"""

    from_: Name
    """Measure from this agent instead of from here: a name or an address, with or without :PORT"""

    agent_token_file: File
    """File with the token of the agent"""

    investigate: bool | Literal["open", "reads"]
    """When the verdict leaves a question open, make further short runs to answer it: UDP above and below the rate, a paced run, many connections, packets of different sizes, reads of different sizes; =reads makes only the last of them, whatever the verdict"""

    file: File
    """Send this file (with --upload), or write what arrives to a new one (with --download); the disk is measured first"""

    time: Duration
    """How long each direction is measured [default: 10s]"""

    duration: Duration
    """How long each direction is measured [default: 10s]"""

    bytes: Size
    """Send this many bytes in each direction instead of for a time (K, M, G are binary)"""

    blockcount: int
    """Send this many blocks of the length given by -l in each direction instead of for a time"""

    blocks: int
    """Send this many blocks of the length given by -l in each direction instead of for a time"""

    parallel: int
    """Number of parallel streams, 1 to 10000"""

    streams: int
    """Number of parallel streams, 1 to 10000"""

    bitrate: Bitrate
    """Offer at most this bit rate in each stream (k, M, G are decimal); 0 saturates [default: 0, for UDP 1M]"""

    rate: Bitrate
    """Offer at most this bit rate in each stream (k, M, G are decimal); 0 saturates [default: 0, for UDP 1M]"""

    burst_period: Duration
    """With -b, send what is due within this time at once at its start, for example 100ms"""

    fq_rate: Bitrate
    """Let the kernel pace each stream to this bit rate (SO_MAX_PACING_RATE), independent of -b"""

    length: Size
    """Bytes per write; for UDP the payload of one datagram [default: by stream count, for UDP by the path]"""

    omit: Duration
    """Exclude this time at the start from the result; the log still contains it"""

    interval: Duration
    """Interval of the printed rows and of the samples in results"""

    read_rate: Bitrate
    """Let the receiver read at most this bit rate in each stream, to simulate a slow reader"""

    until: Share
    """Stop once the mean is known this well (95 % interval), for example 1%, or after -t [default of -t: 60s]"""

    multicast: Name
    """Send the datagrams to this multicast group, of which the server becomes a receiver; needs -u"""

    ttl: int
    """Routers that datagrams to a multicast group may pass, plus one [default: 1, which stays in the network]"""

    window: Size
    """Fix the socket buffers at both ends to this size, which disables the kernel's own tuning"""

    set_mss: Size
    """Request this maximum segment size in bytes (TCP); the effective value is reported"""

    mss: Size
    """Request this maximum segment size in bytes (TCP); the effective value is reported"""

    congestion: Name
    """Congestion control at the sender, for example cubic or bbr (TCP)"""

    tos: int | str
    """Type-of-service byte of every packet: decimal, 0x hexadecimal or 0 octal"""

    dscp: int | str
    """DSCP of every packet: 0 to 63 or a name such as ef, cs1, af41"""

    notsent_lowat: Size
    """Keep at most this much in the socket that was not sent yet (TCP_NOTSENT_LOWAT)"""

    busy_poll: Duration
    """Let waiting calls poll the network device for this time, for example 50us (SO_BUSY_POLL)"""

    bind: Name
    """Bind to this local address"""

    bind_address: Name
    """Bind to this local address"""

    bind_dev: Name
    """Bind to this network device (SO_BINDTODEVICE)"""

    bind_device: Name
    """Bind to this network device (SO_BINDTODEVICE)"""

    cport: int
    """Local port of the first data stream; the others use the ports after it"""

    source_port: int
    """Local port of the first data stream; the others use the ports after it"""

    io: Literal["auto", "copy", "splice", "sendfile", "zerocopy"]
    """How the sender passes bytes to the kernel (TCP): copy (the default), splice, sendfile, zerocopy (MSG_ZEROCOPY), or auto for the fastest on that host"""

    affinity: int
    """Pin this host's data threads to this CPU"""

    server_affinity: int
    """Pin the server's data threads to this CPU"""

    link: Bitrate
    """Line rate of the slowest link on the path, if the local interface does not show it, for example 1G"""

    workload: Literal["stream", "rr", "crr"]
    """What the connections carry; rr and crr measure transactions per second and their latency"""

    request_size: Size
    """Bytes of a request (rr, crr); over UDP at least 32, which a header of linerate takes [default: 1, for UDP 32]"""

    response_size: Size
    """Bytes of a response (rr, crr); over UDP at least 32 [default: 1, for UDP 32]"""

    pipeline: int
    """Requests that each connection has under way at once (rr)"""

    request_rate: int
    """Send this many requests per second over all connections, whether or not the responses keep up; latency then counts from the time at which a request was due [default: the next request follows a response]"""

    requests: int
    """Make this many requests over all connections instead of measuring for a time"""

    tls_fingerprint: Name
    """As --tls, with the server whose certificate has this SHA-256 fingerprint, as it prints it"""

    tls_ca: File
    """As --tls, with a server whose certificate was issued by an authority in this PEM file"""

    report: File
    """Also write a report to this file; its extension selects the format: .html, .json, .csv, .md, .txt, .svg or .parquet (every sample)"""

    name: Name
    """Name of this run, by which history, show and compare find it; repeats of one configuration may share it"""

    note: Name
    """Store this note with the result"""

    set: Name | list[Name]
    """Store a note under this key with the result, such as notes.switch=SG350"""

    archive: File
    """Keep runs in this SQLite file, or in a PostgreSQL database, postgres://HOST/DATABASE [default: linerate/archive.sqlite in the user's data directory]"""

    udp: bool
    """Measure with UDP instead of TCP"""

    mptcp: bool
    """Measure with MPTCP; if a kernel lacks it, plain TCP is used and reported"""

    upload: bool
    """Measure only from here to the server"""

    download: bool
    """Measure only from the server to here"""

    reverse: bool
    """Measure only from the server to here"""

    bidir: bool
    """Measure both directions at the same time"""

    txtime: bool
    """Give each datagram its time of departure, which the queueing discipline fq or etf keeps (SO_TXTIME); needs -u"""

    no_latency: bool
    """Do not measure latency, neither idle nor under load"""

    no_delay: bool
    """Send small segments at once (TCP_NODELAY)"""

    quick_ack: bool
    """Acknowledge what arrives at once instead of waiting for more (TCP_QUICKACK)"""

    fast_open: bool
    """Open data connections with TCP Fast Open; both hosts need net.ipv4.tcp_fastopen=3"""

    version4: bool
    """Use IPv4 only"""

    ipv4: bool
    """Use IPv4 only"""

    version6: bool
    """Use IPv6 only"""

    ipv6: bool
    """Use IPv6 only"""

    zerocopy: bool
    """Send without copying, by the fastest method of the sender's host (TCP)"""

    skip_rx_copy: bool
    """Let the receiving kernel discard the bytes instead of copying them to the program; the result says so"""

    no_sampling: bool
    """Only measure rates: no samples, latency or verdict during the load; shows the cost of measuring"""

    spin: bool
    """Let both ends ask for the next message without waiting in the kernel: shorter latency, at the price of a core per connection (rr)"""

    tls: bool
    """Encrypt the control connection with TLS 1.3, for a server with --tls; the data that is measured is not encrypted. The certificate of a new server is remembered, and another one of the same server is refused"""


TEST: dict[str, Option] = {
    "port": Option("--port", "required"),
    "from_": Option("--from", "required"),
    "agent_token_file": Option("--agent-token-file", "required"),
    "investigate": Option("--investigate", "optional"),
    "file": Option("--file", "required"),
    "time": Option("--time", "required"),
    "duration": Option("--time", "required"),
    "bytes": Option("--bytes", "required"),
    "blockcount": Option("--blockcount", "required"),
    "blocks": Option("--blockcount", "required"),
    "parallel": Option("--parallel", "required"),
    "streams": Option("--parallel", "required"),
    "bitrate": Option("--bitrate", "required"),
    "rate": Option("--bitrate", "required"),
    "burst_period": Option("--burst-period", "required"),
    "fq_rate": Option("--fq-rate", "required"),
    "length": Option("--length", "required"),
    "omit": Option("--omit", "required"),
    "interval": Option("--interval", "required"),
    "read_rate": Option("--read-rate", "required"),
    "until": Option("--until", "required"),
    "multicast": Option("--multicast", "required"),
    "ttl": Option("--ttl", "required"),
    "window": Option("--window", "required"),
    "set_mss": Option("--set-mss", "required"),
    "mss": Option("--set-mss", "required"),
    "congestion": Option("--congestion", "required"),
    "tos": Option("--tos", "required"),
    "dscp": Option("--dscp", "required"),
    "notsent_lowat": Option("--notsent-lowat", "required"),
    "busy_poll": Option("--busy-poll", "required"),
    "bind": Option("--bind", "required"),
    "bind_address": Option("--bind", "required"),
    "bind_dev": Option("--bind-dev", "required"),
    "bind_device": Option("--bind-dev", "required"),
    "cport": Option("--cport", "required"),
    "source_port": Option("--cport", "required"),
    "io": Option("--io", "required"),
    "affinity": Option("--affinity", "required"),
    "server_affinity": Option("--server-affinity", "required"),
    "link": Option("--link", "required"),
    "workload": Option("--workload", "required"),
    "request_size": Option("--request-size", "required"),
    "response_size": Option("--response-size", "required"),
    "pipeline": Option("--pipeline", "required"),
    "request_rate": Option("--request-rate", "required"),
    "requests": Option("--requests", "required"),
    "tls_fingerprint": Option("--tls-fingerprint", "required"),
    "tls_ca": Option("--tls-ca", "required"),
    "report": Option("--report", "required"),
    "name": Option("--name", "required"),
    "note": Option("--note", "required"),
    "set": Option("--set", "required", repeatable=True),
    "archive": Option("--archive", "required"),
    "udp": Option("--udp", "none"),
    "mptcp": Option("--mptcp", "none"),
    "upload": Option("--upload", "none"),
    "download": Option("--download", "none"),
    "reverse": Option("--download", "none"),
    "bidir": Option("--bidir", "none"),
    "txtime": Option("--txtime", "none"),
    "no_latency": Option("--no-latency", "none"),
    "no_delay": Option("--no-delay", "none"),
    "quick_ack": Option("--quick-ack", "none"),
    "fast_open": Option("--fast-open", "none"),
    "version4": Option("--version4", "none"),
    "ipv4": Option("--version4", "none"),
    "version6": Option("--version6", "none"),
    "ipv6": Option("--version6", "none"),
    "zerocopy": Option("--zerocopy", "none"),
    "skip_rx_copy": Option("--skip-rx-copy", "none"),
    "no_sampling": Option("--no-sampling", "none"),
    "spin": Option("--spin", "none"),
    "tls": Option("--tls", "none"),
}

# The units of the metrics.
UNITS = {
    "flow.bytes": "bytes",
    "flow.bitrate": "bit/s",
    "flow.calls": "1",
    "flow.transactions": "1",
    "flow.transaction_p50": "ns",
    "flow.transaction_p99": "ns",
    "flow.last_data": "ns",
    "tcp.srtt": "ns",
    "tcp.min_rtt": "ns",
    "tcp.rttvar": "ns",
    "tcp.cwnd": "bytes",
    "tcp.ssthresh": "bytes",
    "tcp.snd_mss": "bytes",
    "tcp.pmtu": "bytes",
    "tcp.retransmits": "1",
    "tcp.segments": "1",
    "tcp.bytes_acked": "bytes",
    "tcp.bytes_sent": "bytes",
    "tcp.bytes_retrans": "bytes",
    "tcp.busy": "ns",
    "tcp.rwnd_limited": "ns",
    "tcp.sndbuf_limited": "ns",
    "tcp.delivery_rate": "bit/s",
    "tcp.app_limited": "ratio",
    "tcp.pacing_rate": "bit/s",
    "tcp.notsent": "bytes",
    "tcp.unacked": "bytes",
    "tcp.snd_wnd": "bytes",
    "tcp.rcv_wnd": "bytes",
    "tcp.rcv_space": "bytes",
    "tcp.timeouts": "1",
    "tcp.timeout_time": "ns",
    "tcp.dsack_dups": "1",
    "tcp.reordered": "1",
    "tcp.delivered_ce": "1",
    "tcp.delivered": "1",
    "tcp.out_of_order": "1",
    "tcp.snd_buf": "bytes",
    "tcp.rcv_buf": "bytes",
    "queue.snd": "bytes",
    "queue.rcv": "bytes",
    "queue.rcv_share": "ratio",
    "queue.rcv_held": "bytes",
    "udp.packets": "1",
    "udp.lost": "1",
    "udp.loss_ratio": "ratio",
    "udp.out_of_order": "1",
    "udp.duplicates": "1",
    "udp.jitter": "ns",
    "udp.socket_drops": "1",
    "udp.send_errors": "1",
    "cpu.thread": "ratio",
    "cpu.thread_wait": "ratio",
    "cpu.process": "ns",
    "host.busy": "ratio",
    "host.core_busy": "ratio",
    "host.softirq": "ratio",
    "host.interrupts": "1",
    "host.steal": "ratio",
    "host.quota_throttled": "ratio",
    "host.softnet_dropped": "1",
    "host.softnet_squeezed": "1",
    "host.interface_drops": "1",
    "host.interface_errors": "1",
    "host.collisions": "1",
    "host.local_retransmits": "1",
    "host.zero_windows": "1",
    "host.rcv_pruned": "1",
    "host.hystart_exits": "1",
    "host.hystart_segments": "1",
    "host.mtu_probes": "1",
    "host.window_undone": "1",
    "host.udp_rcvbuf_errors": "1",
    "host.tick_lateness": "ns",
    "port.packets": "1",
    "port.bytes": "bytes",
    "port.rate": "bit/s",
    "port.dropped": "1",
    "port.marked": "1",
    "port.queue": "bytes",
    "port.queue_max": "bytes",
    "port.busy": "ratio",
}
