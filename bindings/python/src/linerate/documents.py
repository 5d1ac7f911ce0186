"""The dataclasses of results, events and checks, as docs/reference describes them.

Names end in their unit: `_ns` nanoseconds, `_bps` bits per second, `_bytes` bytes. What was not measured is None,
never 0. This file is written by generate.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

AccountingPoint: TypeAlias = Literal[
    "sender_socket",
    "sender_qdisc",
    "sender_interface",
    "port",
    "receiver_interface",
    "receiver_socket",
    "return_sent",
    "return_received",
]
"""Where on the way the bytes were counted."""


Bitrate: TypeAlias = float
"""bits per second, finite and not negative"""


Bytes: TypeAlias = int
"""bytes"""


Cause: TypeAlias = Literal[
    "link",
    "shaper",
    "policer",
    "congestion",
    "shallow_buffer",
    "random_loss",
    "reordering",
    "timeouts",
    "sender_window",
    "receiver_window",
    "application",
    "pacing",
    "cpu_sender",
    "cpu_receiver",
    "local_drops",
    "slow_start",
    "too_short",
    "mtu",
    "duplex",
    "lag",
    "ecn",
    "return_path",
    "browser",
    "host_busy",
    "impossible",
    "invalid",
    "unknown",
]
"""What limited the flow. These names are part of the public result format."""


CaveatKind: TypeAlias = Literal[
    "snd_buf_clamped",
    "rcv_buf_clamped",
    "cpu_saturated",
    "sender_limited",
    "clock_stepped",
    "offset_uncertain",
    "pacing_missed",
    "events_dropped",
    "concurrent_run",
    "udp_blocked",
    "multicast_blocked",
    "setting_ineffective",
    "timer_late",
    "partial",
    "drain_cut",
    "receiver_drops",
    "rx_copy_skipped",
    "mptcp_fallback",
    "file_written_late",
    "not_archived",
    "link_inferred",
    "lab_late",
    "lab_packet_limit",
    "lab_gone",
    "foreign_peer",
    "encrypted",
    "host_limited",
    "ceiling_disproved",
    "until_missed",
    "bytes_unaccounted",
    "calibration_stale",
    "host_busy",
    "follow_up",
    "imported",
]
"""The possible weaknesses of a result."""


Confidence: TypeAlias = Literal["confirmed", "probable", "unexplained"]
"""How strongly the evidence supports the cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyRate:
    """The rate of memory copies of one size."""

    bitrate_bps: Bitrate
    """Bits copied per second."""

    block_bytes: Bytes
    """Size of the block."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DelayBucket:
    """
    A bucket of a log-linear histogram (HdrHistogram with two significant digits): it is as wide as at most
    1/128 of its values, and at least 1 ns.
    """

    count: int
    """Number of values in it."""

    up_to_ns: int
    """Largest value of the bucket."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """Quantiles of a delay, by the empirical distribution (RFC 2330 §11.1)."""

    count: int
    """Number of values."""

    max_ns: int
    """Largest."""

    mean_ns: int
    """Mean."""

    min_ns: int
    """Smallest."""

    p50_ns: int
    """Median."""

    p95_ns: int
    """95th percentile."""

    p99_ns: int
    """99th percentile."""


Direction: TypeAlias = Literal["upload", "download"]
"""Direction of the data as seen from the client."""


Dscp: TypeAlias = int
"""Differentiated services code point (RFC 2474)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextSetting:
    """A setting as requested and as it took effect."""

    asked: str | None
    """As requested; absent if left to the kernel."""

    effective: str | None = None
    """As it took effect; absent if it cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IntSetting:
    """A setting as requested and as it took effect."""

    asked: int | None
    """As requested; absent if left to the kernel."""

    effective: int | None = None
    """As it took effect; absent if it cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateSetting:
    """A setting as requested and as it took effect."""

    asked: Bitrate | None
    """As requested; absent if left to the kernel."""

    effective: Bitrate | None = None
    """As it took effect; absent if it cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BoolSetting:
    """A setting as requested and as it took effect."""

    asked: bool | None
    """As requested; absent if left to the kernel."""

    effective: bool | None = None
    """As it took effect; absent if it cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeSetting:
    """A setting as requested and as it took effect."""

    asked: Bytes | None
    """As requested; absent if left to the kernel."""

    effective: Bytes | None = None
    """As it took effect; absent if it cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUp:
    """One question about a flow, and the answer from further runs."""

    answer: str
    """The answer, for the user, with the relevant numbers."""

    because: str
    """Why it was asked, for the user."""

    evidence: dict[str, float]
    """The numbers; each name carries its unit (`_bps`, `_bytes`, `_ns`) or is a plain ratio."""

    question: str
    """The question: `policing`, `pacing`, `ports`, `sizes` or `reads`."""

    runs: list[str]
    """The runs made for it, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostKnobs:
    """Settings of the hosts."""

    affinity: int | None = None
    """Pin this host's data threads to this CPU"""

    link_bps: Bitrate | None = None
    """Line rate of the slowest link on the path, if the local interface does not show it, for example 1G"""

    no_sampling: bool | None = None
    """Only measure rates: no samples, latency or verdict during the load; shows the cost of measuring"""

    server_affinity: int | None = None
    """Pin the server's data threads to this CPU"""


Limit: TypeAlias = Literal[
    "link",
    "qdisc",
    "link_inferred",
    "receiver_window",
    "send_buffer",
    "loss",
    "cpu_sender",
    "cpu_receiver",
    "cpu",
    "pacing",
    "application",
    "host_memory",
    "lag",
    "bus",
    "disk",
]


LinkKind: TypeAlias = Literal["loopback", "veth", "tun", "bridge", "virtual", "paravirtual", "physical"]
"""What kind of device an interface is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LossBursts:
    """Datagrams that were lost in a row, up to the last one that arrived."""

    count: int
    """Number of bursts; a single lost datagram is one too."""

    longest: int
    """Datagrams lost in the longest."""

    lost: int
    """Datagrams lost in all of them."""

    lengths: list[int] = field(default_factory=list)
    """Their lengths: how many bursts had 1, 2, 3 to 4, 5 to 8 datagrams, and so on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MssSetting:
    """Segment size."""

    asked: int | None
    """Requested bytes."""

    effective_bytes: int | None = None
    """Payload of a full segment of the sender."""


Outcome: TypeAlias = Literal["completed", "interrupted", "failed"]
"""How a run ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PacingSetting:
    """Kernel pacing (SO_MAX_PACING_RATE)."""

    asked_bps: Bitrate | None
    """Requested rate."""

    effective_bps: Bitrate | None = None
    """Effective rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanPlace:
    """The place of a run in the execution of a plan."""

    flow: str
    """The flow of the plan."""

    point: str
    """The point."""

    repeat: int
    """The repeat, from 0."""

    run: str
    """The plan's own run in the archive."""


ProbeTransport: TypeAlias = Literal["udp", "tcp"]
"""What carried the probes."""


Ratio: TypeAlias = float
"""a ratio, finite and not negative; 1 is the whole"""


Readings: TypeAlias = dict[str, float]
"""values by metric name; the metric reference has names, units and definitions"""


ResponsivenessConfidence: TypeAlias = Literal["low", "medium", "high"]
"""
How far a result can be relied on.

Source: draft-ietf-ippm-responsiveness-09, "Confidence of Test-Results".
"""


Rule: TypeAlias = Literal[
    "V00",
    "V01",
    "V02",
    "V03",
    "V04",
    "V05",
    "V06",
    "V07",
    "V08",
    "V09",
    "V10",
    "V11",
    "V12",
    "V13",
    "V14",
    "V15",
    "V16",
    "V17",
    "V18",
    "V19",
    "V20",
    "V21",
    "V22",
    "V23",
    "V24",
    "V25",
    "V26",
    "V27",
    "V28",
    "V29",
    "V99",
]


SendMethod: TypeAlias = Literal["auto", "copy", "splice", "sendfile", "zerocopy"]
"""A way to pass bytes to the kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SenderSection:
    """The sender's counts of bytes written to the socket."""

    bytes: Bytes
    """Application bytes inside the window."""

    seconds: float
    """Time during which it wrote."""

    bitrate_bps: Bitrate | None = None
    """Rate at which it wrote; absent if no time passed."""

    packets: int | None = None
    """Datagrams sent."""

    queued_bytes: Bytes | None = None
    """Bytes still in its send queue at the end."""

    retransmits: int | None = None
    """Retransmitted segments."""


Side: TypeAlias = Literal["sender", "receiver"]
"""An end of a flow."""


SizeList: TypeAlias = list[Bytes]
"""Sizes as entered, with ranges expanded."""


Span: TypeAlias = int
"""nanoseconds"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Steady:
    """The steady part of a flow, after its ramp-up."""

    bitrate_bps: Bitrate
    """Goodput after the ramp-up."""

    ramp_ns: Span
    """Duration of the ramp-up at the start of the measured part."""

    half_width: Ratio | None = None
    """
    Relative half-width of the 95 % interval of that mean, by batch means; absent if there are too few
    batches.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class TestFile:
    """A file that one end sent, or to which it wrote what it received."""

    name: str
    """Its name, without folders."""

    alone_bps: Bitrate | None = None
    """Rate at which the disk alone read or wrote it before the test; absent if that was not measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeInterval:
    """A distribution-free interval of a time, from ranks only."""

    coverage: Ratio
    """Probability that such an interval contains the true median."""

    high_ns: Span
    """Its upper end."""

    low_ns: Span
    """Its lower end."""


Timestamp: TypeAlias = int
"""nanoseconds since the start of the run"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """What to send, how much and how fast."""

    bidir: bool
    """Measure both directions at the same time"""

    download: bool
    """Measure only from the server to here"""

    interval_ns: Span
    """Interval of the printed rows and of the samples in results"""

    mptcp: bool
    """Measure with MPTCP; if a kernel lacks it, plain TCP is used and reported"""

    no_latency: bool
    """Do not measure latency, neither idle nor under load"""

    streams: int
    """Number of parallel streams, 1 to 10000"""

    udp: bool
    """Measure with UDP instead of TCP"""

    upload: bool
    """Measure only from here to the server"""

    blocks: int | None = None
    """Send this many blocks of the length given by -l in each direction instead of for a time"""

    burst_period_ns: Span | None = None
    """With -b, send what is due within this time at once at its start, for example 100ms"""

    bytes: Bytes | None = None
    """Send this many bytes in each direction instead of for a time (K, M, G are binary)"""

    duration_ns: Span | None = None
    """How long each direction is measured [default: 10s]"""

    fq_rate_bps: Bitrate | None = None
    """Let the kernel pace each stream to this bit rate (SO_MAX_PACING_RATE), independent of -b"""

    length_bytes: Bytes | None = None
    """Bytes per write; for UDP the payload of one datagram [default: by stream count, for UDP by the path]"""

    multicast: str | None = None
    """Send the datagrams to this multicast group, of which the server becomes a receiver; needs -u"""

    omit_ns: Span | None = None
    """Exclude this time at the start from the result; the log still contains it"""

    rate_bps: Bitrate | None = None
    """Offer at most this bit rate in each stream (k, M, G are decimal); 0 saturates [default: 0, for UDP 1M]"""

    read_rate_bps: Bitrate | None = None
    """Let the receiver read at most this bit rate in each stream, to simulate a slow reader"""

    ttl: int | None = None
    """Routers that datagrams to a multicast group may pass, plus one [default: 1, which stays in the network]"""

    txtime: bool | None = None
    """Give each datagram its time of departure, which the queueing discipline fq or etf keeps (SO_TXTIME); needs -u"""

    until: Ratio | None = None
    """Stop once the mean is known this well (95 % interval), for example 1%, or after -t [default of -t: 60s]"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionTimes:
    """
    How long transactions took, from the request to the last byte of its response.

    The time starts before the request is passed to the kernel; with a request rate, when the request was due; with a
    connection for each transaction, before the connection is opened. Except for the smallest, the largest and the mean,
    times are the largest of their bucket in the histogram, up to 1/128 too long.
    """

    max_ns: int
    """Largest."""

    mean_ns: int
    """Mean."""

    min_ns: int
    """Smallest."""

    p50_ns: int
    """Median."""

    p90_ns: int
    """90th percentile."""

    p95_ns: int
    """95th percentile."""

    p9999_ns: int
    """99.99th percentile."""

    p999_ns: int
    """99.9th percentile."""

    p99_ns: int
    """99th percentile."""


Transport: TypeAlias = Literal["tcp", "udp", "mptcp"]
"""The transport that carries the data."""


TrialSequence: TypeAlias = Literal["ascending", "interleaved"]
"""The order of the trials."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UdpSection:
    """Datagrams, as the receiver counted them."""

    lost: int
    """Datagrams that were sent and never read."""

    packets: int
    """Datagrams that were read at least once or lost."""

    duplicates: int | None = None
    """Datagrams that arrived more than once."""

    jitter_ns: Span | None = None
    """Interarrival jitter (RFC 3550 §6.4.1)."""

    late_by: int | None = None
    """Datagrams by which a late one was behind the latest, at most; absent if none was late."""

    loss_bursts: LossBursts | None = None
    """Losses in a row, up to the last datagram that arrived; absent without any."""

    loss_ratio: Ratio | None = None
    """`lost / packets` (RFC 7680)."""

    out_of_order: int | None = None
    """Datagrams that arrived after a later one."""

    send_errors: int | None = None
    """Datagrams that the sending kernel rejected."""

    send_gaps: Digest | None = None
    """
    Times between the moments at which datagrams of a stream with a rate leave, one or several together; absent
    without a rate.
    """

    socket_drops: int | None = None
    """Lost datagrams that the receiving kernel dropped at the socket."""


UncertaintySource: TypeAlias = Literal["variation", "ramp_up", "edges", "wake_up", "clock", "unaccounted", "overhead"]
"""Sources of uncertainty of a rate. These names are part of the public result format."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WakeUp:
    """Wake-up latency of a thread with a timed wait on an idle host."""

    count: int
    """Number of timed waits."""

    max_ns: Span
    """Largest."""

    p50_ns: Span
    """Median."""

    p99_ns: Span
    """99th percentile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowSetting:
    """Socket buffers."""

    asked: Bytes | None
    """Requested bytes at both ends."""

    granted_rcv_bytes: Bytes | None = None
    """Receive buffer of the receiver as granted."""

    granted_snd_bytes: Bytes | None = None
    """Send buffer of the sender as granted."""


Workload: TypeAlias = Literal["stream", "rr", "crr"]
"""What the connections of a test carry."""


World: TypeAlias = Literal["hosts", "lab", "twin"]
"""Where a run takes place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserNote:
    """What a page said about its browser's part in a phase of a test."""

    hidden: bool | None = None
    """Whether the page was hidden for a while, in which browsers slow it down."""

    longest_lag_ns: Span | None = None
    """Longest delay of a timer of the page."""

    name: str | None = None
    """Name and version."""

    starved_share: Ratio | None = None
    """Share of the time in which the page had nothing ready to send, although it may always send."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ByteAccounting:
    """Application bytes written, and where they went."""

    delivered_bytes: Bytes
    """Bytes that the receiving application read."""

    never_sent_bytes: Bytes
    """Bytes that were still in the sender's queue when the flow was closed."""

    unaccounted_bytes: Bytes
    """Bytes that no count explains: written, but neither delivered nor queued at the end."""

    written_bytes: Bytes
    """Bytes that the sending application passed to its kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleCounts:
    """Traffic at an interface before the load: the run's own probes, and cross traffic."""

    duration_ns: Span | None = None
    """Duration of the observation."""

    received_bytes: Bytes | None = None
    """Bytes received."""

    sent_bytes: Bytes | None = None
    """Bytes sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyInterval:
    """
    The probes that were sent in one interval and answered.

    Their round-trip times start when the sending host's driver took the probe, if its kernel reports this: the
    host's own queue is not included.
    """

    count: int
    """Number of probes."""

    end_ns: Timestamp
    """Its end."""

    high_ns: int
    """
    Third largest round-trip time, or the smallest if there are fewer: this excludes one or two late
    wake-ups.
    """

    max_ns: int
    """Largest round-trip time."""

    min_ns: int
    """Smallest round-trip time."""

    start_ns: Timestamp
    """Its start, from the start of the run."""

    p50_ns: int | None = None
    """Median; absent in logs of earlier versions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodCell:
    """A table cell. It was not measured if it has neither text nor value."""

    at_least: bool | None = None
    """True if the value is only known to be at least this."""

    high: float | None = None
    """Upper end of its interval."""

    low: float | None = None
    """Lower end of its interval."""

    text: str | None = None
    """Text."""

    value: float | None = None
    """A number in the unit of the column."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodColumn:
    """A column of a table."""

    name: str
    """The method's name for it."""

    unit: str | None = None
    """Unit of its numbers: `bit/s`, `bytes`, `ns`, `frames/s`, `bit m/s`, `%` or `1`; absent for text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodRow:
    """A row of a table."""

    cells: list[MethodCell]
    """The contents of the columns."""

    point: str | None = None
    """The point it refers to, if any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassedCounts:
    """One direction of an interface."""

    bytes: Bytes | None = None
    """
    Bytes with the link-layer header, as the driver counts them: the headers of a GSO super-packet count
    once.
    """

    dropped: int | None = None
    """Packets dropped."""

    packets: int | None = None
    """Packets; a GSO super-packet is one if software carries it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFile:
    """A file of a plan."""

    name: str
    """Its name as it was opened."""

    text: str
    """Its whole text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFlow:
    """A flow of a plan."""

    cross_traffic: bool
    """Whether it only loads the network, and ends when the others have ended."""

    from_: str
    """The host that is its client."""

    name: str
    """Its name."""

    to: str
    """The host that is its server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanHost:
    """A host of a plan."""

    name: str
    """Its name."""

    address: str | None = None
    """Its address; absent for a host of the emulated network."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanPoint:
    """A point of a plan."""

    id: str
    """Its name: sixteen hexadecimal digits."""

    values: list[int]
    """For each axis the index of its value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanValue:
    """A value of an axis."""

    label: str
    """How it is displayed."""

    number: float | None = None
    """In the unit of the axis; absent for a value that is not a number, such as `default`."""


ProbePhase: TypeAlias = Literal["idle", "loaded"]
"""When probes ran."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QdiscCounts:
    """The counts of the queueing discipline at the root of an interface."""

    burst_bytes: Bytes | None = None
    """
    Bytes that may leave it beyond that rate over any period: the content of its token bucket, and bytes
    that did not pass the class of `htb` with this rate. Absent in logs of versions that did not read it.
    """

    bytes: Bytes | None = None
    """
    Bytes that left it, counting headers for every segment of a GSO super-packet (linux/net/core/dev.c,
    qdisc_pkt_len_init).
    """

    dropped: int | None = None
    """Packets that it dropped."""

    kind: str | None = None
    """Its kind."""

    packets: int | None = None
    """Packets that left it, counting every segment of a GSO super-packet."""

    rate_bps: int | None = None
    """Its configured rate, for `tbf` and `htb`; absent for kinds without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchStep:
    """A step of a search."""

    confirms: bool
    """Whether this was the longer trial that confirms a value."""

    label: str
    """The tested value, as displayed."""

    number: float
    """The same as a number: bit/s, bytes, nanoseconds, or without a unit."""

    passed: bool
    """Whether the condition held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SocketCounts:
    """TCP's counts on some connections: payload without headers, and segments as on the wire."""

    acked_bytes: Bytes | None = None
    """Payload acknowledged by the other end (tcpi_bytes_acked)."""

    data_segments_in: int | None = None
    """Segments with payload received (tcpi_data_segs_in)."""

    data_segments_out: int | None = None
    """Segments with payload sent (tcpi_data_segs_out)."""

    received_bytes: Bytes | None = None
    """Payload received in order (tcpi_bytes_received)."""

    retransmitted_bytes: Bytes | None = None
    """Payload retransmitted (tcpi_bytes_retrans)."""

    segments_in: int | None = None
    """Segments received, acknowledgements included (tcpi_segs_in)."""

    segments_out: int | None = None
    """Segments sent, acknowledgements included (tcpi_segs_out)."""

    sent_bytes: Bytes | None = None
    """Payload sent, including retransmissions (tcpi_bytes_sent)."""


StreamCounting: TypeAlias = Literal["received", "acknowledged", "sent"]
"""Which bytes of a stream are counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamTally:
    """What one stream counted."""

    bytes: Bytes | None = None
    """All application bytes of the stream."""

    retransmits: int | None = None
    """Segments retransmitted (TCP sender)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryInterval:
    """An interval and its coverage probability."""

    coverage: float
    """From 0 to 1."""

    high: float
    """Upper end."""

    low: float
    """Lower end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionTally:
    """Requests and responses in the measured part of one side."""

    completed: int | None = None
    """Transactions that were completed."""

    failed: int | None = None
    """Requests that were never answered: datagrams that were lost, or connections that could not be opened or broke."""

    histogram: list[DelayBucket] = field(default_factory=list)
    """The distribution of these times: the buckets that are not empty, ascending, at most 3,840."""

    per_second: float | None = None
    """The same per second of the measured part."""

    times: TransactionTimes | None = None
    """How long the transactions took; absent at the side that responds, and if none was completed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialRun:
    """A run of a trial."""

    flow: str
    """The flow of the plan."""

    outcome: Outcome
    """How it ended."""

    run: str
    """The run's name in the archive."""

    began_ns: Timestamp | None = None
    """
    Start of its own time on the plan's clock, which puts the events of all runs on one time axis. Absent if
    it never began.
    """

    clock_error_ns: Span | None = None
    """Largest error of its clock relative to the coordinator's."""

    reason: str | None = None
    """The reason, unless it was completed."""

    start_error_ns: Span | None = None
    """
    Delay of the start of the measurement against the planned time; absent if it did not start, or the delay
    is unknown.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class UdpTally:
    """Datagram counts of one side."""

    duplicates: int | None = None
    """Datagrams that arrived more than once."""

    jitter_ns: Span | None = None
    """Interarrival jitter (RFC 3550 §6.4.1)."""

    late_by: int | None = None
    """Datagrams by which a late one was behind the latest, at most; absent if none was late."""

    loss_bursts: LossBursts | None = None
    """Losses in a row, over all streams; absent at the sender, and without a loss below the last datagram."""

    lost: int | None = None
    """Datagrams that the sender sent and the receiver never read."""

    out_of_order: int | None = None
    """Datagrams that arrived after a later one."""

    packets: int | None = None
    """Datagrams sent (sender) or received (receiver)."""

    send_errors: int | None = None
    """Datagrams that the sending kernel refused."""

    send_gaps: Digest | None = None
    """
    Times between the moments at which datagrams of a stream with a rate leave, one or several together; absent without
    a rate.
    """

    socket_drops: int | None = None
    """Number of the lost datagrams dropped by the receiving kernel at the socket (SO_RXQ_OVFL)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CauseOf:
    """A possible cause of a figure."""

    evidence: dict[str, float]
    """The numbers of the text; names end with the unit."""

    kind: str
    """`sender_timing`, `binary_prefix`, `bits_for_bytes`, `larger_mtu` and others."""

    remedy: str
    """What to do about it."""

    text: str
    """The calculation by which the cause explains the figure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CountsOf:
    at_ceiling: int
    doubtful: int
    impossible: int
    possible: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CriterionOf:
    """What a rule asks for, and what the result says about it."""

    name: str
    """`link`, `connections`, `duration`, `retransmits`, `rate` or `possible`."""

    text: str
    """The same as a sentence, with the remedy."""

    verdict: str
    """`passed`, `missing` or `failed`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PathOf:
    """Properties of the path; absent ones were not stated."""

    distance_m: float | None = None
    link_bps: float | None = None
    loss_ratio: float | None = None
    mss_bytes: float | None = None
    mtu_bytes: float | None = None
    rtt_ns: int | None = None
    streams: int | None = None
    window_bytes: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasonOf:
    """Result of one comparison."""

    causes: list[CauseOf]
    """Possible causes of the figure, the likeliest first."""

    check: str
    """The comparison: `link`, `window`, `bytes_over_time` and others."""

    evidence: dict[str, float]
    """The compared numbers; names end with the unit."""

    text: str
    """The result as a sentence."""

    verdict: str
    """Verdict of this comparison alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadOf:
    """A part that could not be read."""

    line: int
    """Line, from 1."""

    why: str
    """The reason."""

    column: int | None = None
    """Column, from 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuedBody:
    """The server is busy: the client waits in its queue."""

    kind: Literal["queued"]
    position: int
    """Place in the queue; 1 is next."""

    wait_ns: Span
    """Longest expected wait."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowPlannedBody:
    """A flow will be measured."""

    kind: Literal["flow_planned"]
    direction: Direction
    """Direction as seen from the client."""

    flow: int
    """Number of the flow in its run."""

    from_: str
    """The sending host."""

    name: str
    """Name for display: the direction."""

    streams: int
    """Number of streams."""

    to: str
    """The receiving host."""

    transport: Transport
    """What carries the data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressBody:
    """The receiver's count while the flow runs."""

    bytes: Bytes
    """Bytes read since the start of the flow."""

    elapsed_ns: Span
    """Time since the receiver's first read."""

    flow: int
    """The flow."""

    kind: Literal["progress"]
    retransmits: int | None = None
    """Segments that the sender has retransmitted so far."""

    srtt_ns: Span | None = None
    """The sender's smoothed round-trip time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamsBody:
    """What each stream of a flow has moved so far; only of flows with 2 to 128 streams, from the client's end."""

    bytes: list[Bytes]
    """Bytes of each stream since the start of the flow, in the order of the streams."""

    counted: StreamCounting
    """Which bytes are counted."""

    flow: int
    """The flow."""

    kind: Literal["streams"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponsivenessBody:
    """The responsiveness under load was measured."""

    kind: Literal["responsiveness"]
    confidence: ResponsivenessConfidence
    """How far the responsiveness can be relied on."""

    connections: int
    """Most connections that carried load at once, of all directions together."""

    encrypted: bool
    """Whether the connections were encrypted."""

    interval_ns: Span
    """Length of an interval."""

    intervals: int
    """Number of intervals in which the path carried load."""

    loaded: list[Direction]
    """The directions that carried load at the same time."""

    lost: int
    """Probes that failed, or were not answered in time."""

    probes: list[int]
    """Probes over new connections whose results count, and over loaded connections."""

    rate_confidence: ResponsivenessConfidence
    """How far the rate can be relied on as the most that the path carries."""

    foreign_rpm: float | None = None
    """Those over new connections."""

    http_ns: Span | None = None
    """Trimmed mean of the requests of one byte over new connections."""

    idle_rpm: float | None = None
    """Those over new connections, before the load."""

    late_ns: Span | None = None
    """
    Trimmed mean of the time by which this program sent probes too late, because it had no CPU or was busy with the load.
    Answers wait as long.
    """

    loaded_http_ns: Span | None = None
    """Trimmed mean of the requests of one byte over connections that carried load."""

    loaded_rpm: float | None = None
    """Those over connections that carried load."""

    rpm: float | None = None
    """Round trips per minute (RPM); absent if too few probes were answered."""

    tcp_ns: Span | None = None
    """Trimmed mean of the TCP handshakes."""

    tls_ns: Span | None = None
    """Trimmed mean of the TLS handshakes, each of one round trip; absent without TLS."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserBody:
    """One end was a browser."""

    flow: int
    """The flow."""

    kind: Literal["browser"]
    note: BrowserNote
    """What its page said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BytesAccountedBody:
    """Both sides' counts are compared."""

    byte_accounting: ByteAccounting
    """Where the bytes went."""

    flow: int
    """The flow."""

    kind: Literal["bytes_accounted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SteadyBody:
    """The steady part was found."""

    flow: int
    """The flow."""

    kind: Literal["steady"]
    steady: Steady
    """The steady part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUpBody:
    """A follow-up answered a question about a flow."""

    flow: int
    """The flow."""

    follow_up: FollowUp
    """The question and the answer."""

    kind: Literal["follow_up"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledBody:
    """The name and notes that the user gave the run. A later event replaces an earlier one."""

    kind: Literal["labelled"]
    name: str | None = None
    """Name, which repeats of one configuration may share."""

    notes: dict[str, str] = field(default_factory=dict)
    """Notes by their keys, such as the tester's name or the device."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupedBody:
    """The run is one of several that a coordinator starts together."""

    kind: Literal["grouped"]
    cross_traffic: bool
    """Whether it only loads the network, and ends when the others have ended."""

    group: str
    """Name of the group, the same in all of its runs."""

    start_after_ns: Span
    """Requested delay from the start of the group to the start of this run."""

    plan: PlanPlace | None = None
    """Its place in the execution of a plan."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StartedBody:
    """A run of a group began to measure."""

    kind: Literal["started"]
    planned_ns: Timestamp
    """Planned time, from the start of the run."""

    start_error_ns: Span
    """Delay until the client's data threads ran and the start message was sent to the server, by the client's clock."""

    clock_error_ns: Span | None = None
    """
    Largest error of the client's clock relative to the coordinator's. The difference between the start
    times of two runs of a group is at most the difference of their delays plus the sum of these errors.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanResumedBody:
    """An interrupted plan was resumed."""

    kind: Literal["plan_resumed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialEndedBody:
    """A trial of a plan is over."""

    kind: Literal["trial_ended"]
    content: str
    """
    A digest of everything measured and set, sixteen hexadecimal digits. A different digest means a
    different measurement.
    """

    point: str
    """The point."""

    repeat: int
    """The repeat, from 0."""

    runs: list[TrialRun]
    """Its runs, one per flow, in the order of the flows."""

    step: SearchStep | None = None
    """The step of a search."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchEndedBody:
    """A search of a plan is over at a point."""

    kind: Literal["search_ended"]
    point: str
    """The point."""

    repeat: int
    """The repeat, from 0."""

    found: str | None = None
    """The largest value that passed, as displayed; absent if none did."""

    number: float | None = None
    """The same as a number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PointSummedBody:
    """The summary of a point's trials."""

    kind: Literal["point_summed"]
    direction: Direction
    """Direction as seen from the flow's client."""

    flow: str
    """The flow of the plan."""

    point: str
    """The point."""

    quantity: str
    """The quantity, by its name in assertions."""

    interval: SummaryInterval | None = None
    """The distribution-free interval of the median; absent below six trials."""

    median: float | None = None
    """Their median."""

    repeats: list[int] = field(default_factory=list)
    """The repeat of each value, from 0; absent in what earlier versions wrote."""

    unit: str | None = None
    """Unit of its numbers: `bit/s`, `bytes`, `ns` or `1`; absent for text values."""

    values: list[float] = field(default_factory=list)
    """The values of the trials that have one, in the order of the repeats."""

    words: list[str] = field(default_factory=list)
    """The text value of each trial, for a quantity such as the verdict's cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodTableBody:
    """A table of the plan's results in the terms of its method."""

    kind: Literal["method_table"]
    about: str
    """How it was made, and the section or paper that it follows."""

    columns: list[MethodColumn]
    """The columns."""

    rows: list[MethodRow]
    """Its rows, each with a cell for every column."""

    title: str
    """What it shows, as a heading."""

    notes: list[str] = field(default_factory=list)
    """Notes for the reader: conditions that did not hold, what was omitted and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedBody:
    """An assertion of a plan was judged."""

    kind: Literal["judged"]
    assertion: str
    """The assertion's name."""

    direction: Direction
    """Direction as seen from the flow's client."""

    flow: str
    """The flow of the plan."""

    holds: bool
    """Whether it holds. If something was not measured, it does not hold."""

    point: str
    """The point."""

    found: str | None = None
    """Both sides as found, or what was not measured; absent if it holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEndedBody:
    """The run ended."""

    kind: Literal["run_ended"]
    outcome: Outcome
    """How."""

    reason: str | None = None
    """Why, unless it was completed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownBody:
    """An event of a kind that only a newer version knows."""

    kind: str
    """Its kind."""

    fields: dict[str, Any]
    """All its fields."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountingStep:
    """The count at one point, compared with what the counts above it and the headers explain."""

    because: str
    """The terms of the expected value, for the user."""

    counted_bytes: Bytes
    """The bytes counted."""

    counter: str
    """The counter: `socket`, an interface, a queueing discipline, a port."""

    host: str
    """The host; for a port of the emulated network the host that it connects."""

    max_bytes: Bytes
    """The maximum that they explain, including cross traffic as measured before the load."""

    min_bytes: Bytes
    """The minimum that the flows of the phase explain."""

    point: AccountingPoint
    """The point."""

    residual_bytes: int
    """The difference from that range: positive if more was counted, negative if less."""

    unaccounted: bool
    """Whether the difference is more than 0.1 % of the flow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ByteAccountingSection:
    """Byte accounting between the programs, and along the path between them."""

    delivered_bytes: Bytes | None = None
    """Bytes that the receiving application read."""

    never_sent_bytes: Bytes | None = None
    """Bytes that were still in the sender's queue when the flow was closed."""

    steps: list[AccountingStep] = field(default_factory=list)
    """
    Counts on the path to the wire and back, with the range that explains them; absent if no counter was
    read there.
    """

    unaccounted_bytes: Bytes | None = None
    """Bytes that no count explains: written, but neither delivered nor queued at the end."""

    written_bytes: Bytes | None = None
    """Bytes that the sending application passed to its kernel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Caveat:
    """One weakness of a result, with advice."""

    kind: CaveatKind
    """Which weakness."""

    text: str
    """What happened and what to do, for the user, with the relevant numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceiling:
    """
    A ceiling: the rate that one limit alone would allow.

    # Units
    bits per second of application payload (goodput).
    """

    because: str
    """The origin of the figure, for the user."""

    bitrate_bps: float
    """The rate it allows, application payload per second."""

    limit: Limit
    """The limit."""

    slack_bps: float | None = None
    """
    Rate allowed in addition over the duration of this test, from a token bucket that was full at the start
    and data already on the way. Absent if there is none.
    """


CeilingShare: TypeAlias = Ratio
"""
A rate as a share of its ceiling, at most 1.

A rate above its ceiling has no share: either the rate is impossible, or the ceiling is wrong.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contribution:
    """One contribution to an uncertainty."""

    because: str
    """The relevant numbers, for the user."""

    source: UncertaintySource
    """The source of uncertainty."""

    standard_bps: Bitrate
    """Its effect on the rate, as a standard deviation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CpuSection:
    """CPU time of the hosts."""

    receiver_host_busy: Ratio | None = None
    """Busy share of the receiving host, all cores."""

    receiver_seconds: float | None = None
    """CPU time of the receiving process inside the window."""

    sender_host_busy: Ratio | None = None
    """Busy share of the sending host, all cores."""

    sender_seconds: float | None = None
    """CPU time of the sending process inside the window."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSetting:
    """A setting as requested and as it took effect."""

    asked: Span | None
    """As requested; absent if left to the kernel."""

    effective: Span | None = None
    """As it took effect; absent if it cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One conclusion about one flow."""

    cause: Cause
    """What limited the flow."""

    confidence: Confidence
    """How strongly the evidence supports it."""

    evidence: dict[str, float]
    """
    The numbers the rule evaluated; each name carries its unit (`_bps`, `_bytes`, `_ns`) or is a plain
    ratio.
    """

    rule: Rule
    """The row of the decision table, such as `V02`."""

    text: str
    """One or two sentences for the user, with the relevant numbers."""

    remedy: str | None = None
    """What to change; absent when there is nothing to change."""

    share_of_time: float | None = None
    """
    The share of the measured time in which the cause was active, 0 to 1; absent if the evidence has no time
    axis.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPlace:
    """The place of a run among those a coordinator starts together."""

    cross_traffic: bool
    """Whether it only loads the network, and ends when the others have ended."""

    group: str
    """Name of the group, the same in all of its runs."""

    start_after_ns: Span
    """Requested delay from the start of the group to the start of this run."""

    plan: PlanPlace | None = None
    """Its place in the execution of a plan."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupStart:
    """When a run of a group began to measure: its first phase, at its client."""

    planned_ns: Timestamp
    """Planned time, from the start of the run."""

    start_error_ns: Span
    """Delay until the client's data threads ran and the start message was sent to the server, by the client's clock."""

    clock_error_ns: Span | None = None
    """
    Largest error of the client's clock relative to the coordinator's. The difference between the start
    times of two runs of a group is at most the difference of their delays plus the sum of these errors.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkInfo:
    """The interface that carries a run."""

    kind: LinkKind
    """Its kind."""

    mtu_bytes: int
    """Largest IP packet."""

    name: str
    """Interface name."""

    driver: str | None = None
    """Driver."""

    full_duplex: bool | None = None
    """Full duplex; absent if the device does not report it."""

    gro_max_bytes: int | None = None
    """Largest GRO packet if it is larger than usual (BIG TCP)."""

    gso_max_bytes: int | None = None
    """Largest GSO packet if it is larger than usual (BIG TCP)."""

    offloads: list[str] = field(default_factory=list)
    """Offloads that are enabled, by their ethtool names."""

    speed_bps: Bitrate | None = None
    """Line rate; absent if the device has none (loopback, veth) or does not report it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopbackRate:
    """Loopback throughput of a host in one mode."""

    bitrate_bps: Bitrate
    """Goodput at the receiver."""

    length_bytes: Bytes
    """Bytes per write, or payload of one datagram."""

    streams: int
    """Number of streams."""

    transport: Transport
    """What carries the data."""

    method: str | None = None
    """Requested zero-copy method of sending; absent for the usual copying."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PacingError:
    """Deviation of a paced flow from its requested rate."""

    asked_bps: Bitrate
    """The requested rate."""

    error: Ratio
    """The difference as a share of the requested rate."""

    offered_bps: Bitrate
    """The offered rate, by the sender's count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PortSample:
    """The counts of one port in one interval."""

    end_ns: Timestamp
    """End of the interval."""

    readings: Readings
    """The counts."""

    start_ns: Timestamp
    """Start of the interval, from the start of the run."""

    outside: bool | None = None
    """Whether the interval is not completely inside the measured part of the load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PortSection:
    """
    Counts of one port of an emulated network during one phase.

    Counts cover the whole phase; `rate_bps` and `busy` cover its measured part.
    """

    flows: list[int]
    """Numbers of the flows that ran in the phase."""

    port: str
    """Its name: the node that it belongs to and the node that it sends to."""

    samples: list[PortSample]
    """Its intervals, merged to the requested interval; time counts from the start of the run."""

    seconds: float
    """Length of the measured part."""

    busy: Ratio | None = None
    """Share of the time in which the line was sending."""

    bytes: Bytes | None = None
    """Bytes of the frames sent, without preamble and gap."""

    dropped: int | None = None
    """Packets dropped."""

    marked: int | None = None
    """Packets with a congestion mark (ECN CE)."""

    packets: int | None = None
    """Packets sent."""

    queue_max_bytes: Bytes | None = None
    """Largest number of bytes queued at any moment."""

    rate_bps: Bitrate | None = None
    """Mean rate on the wire, with preamble and gap between frames."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSection:
    """Round-trip times of one phase; the quantiles are absent without replies."""

    kernel_timestamps: bool
    """Whether the kernels timestamped the arrivals."""

    lost: int
    """Probes without a reply."""

    sent: int
    """Probes sent."""

    transport: ProbeTransport
    """Transport of the probes."""

    count: int | None = None
    """Number of values."""

    download: Digest | None = None
    """One-way delay from the server to the client."""

    max_ns: int | None = None
    """Largest."""

    mean_ns: int | None = None
    """Mean."""

    min_ns: int | None = None
    """Smallest."""

    offset_error_ns: int | None = None
    """Largest error of that estimate, and therefore of the one-way delays."""

    offset_ns: int | None = None
    """Server clock minus client clock, estimated."""

    p50_ns: int | None = None
    """Median."""

    p95_ns: int | None = None
    """95th percentile."""

    p99_ns: int | None = None
    """99th percentile."""

    upload: Digest | None = None
    """One-way delay from the client to the server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiverSection:
    """The receiver's counts: `bitrate_bps = (bytes - first_read_bytes) * 8 / seconds`."""

    bytes: Bytes
    """Application bytes inside the measured window."""

    seconds: float
    """Time from the first to the last read inside the window."""

    bitrate_bps: Bitrate | None = None
    """Goodput; absent if no time passed between the first and the last read."""

    first_read_bytes: Bytes | None = None
    """Bytes of the first read, which defines the time origin and is not in the rate."""

    first_read_ns: Timestamp | None = None
    """
    Time of that read since the start of the run; if a server reports it, late by a one-way delay. The
    samples of the receiver count from it.
    """

    impossible: bool | None = None
    """
    True if the rate exceeds the link's by more than clock errors explain, or contradicts the sender's
    count.
    """

    omitted_bytes: Bytes | None = None
    """Bytes of the omitted part."""

    tail_bytes: Bytes | None = None
    """Bytes after the window."""

    total_bytes: Bytes | None = None
    """All bytes of the flow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponsivenessReport:
    """
    The responsiveness of a path while it carries load in one direction, or in both.

    Source: draft-ietf-ippm-responsiveness-09.
    """

    confidence: ResponsivenessConfidence
    """How far the responsiveness can be relied on."""

    connections: int
    """Most connections that carried load at once, of all directions together."""

    encrypted: bool
    """Whether the connections were encrypted."""

    interval_ns: Span
    """Length of an interval."""

    intervals: int
    """Number of intervals in which the path carried load."""

    loaded: list[Direction]
    """The directions that carried load at the same time."""

    lost: int
    """Probes that failed, or were not answered in time."""

    probes: list[int]
    """Probes over new connections whose results count, and over loaded connections."""

    rate_confidence: ResponsivenessConfidence
    """How far the rate can be relied on as the most that the path carries."""

    foreign_rpm: float | None = None
    """Those over new connections."""

    http_ns: Span | None = None
    """Trimmed mean of the requests of one byte over new connections."""

    idle_rpm: float | None = None
    """Those over new connections, before the load."""

    late_ns: Span | None = None
    """
    Trimmed mean of the time by which this program sent probes too late, because it had no CPU or was busy with the load.
    Answers wait as long.
    """

    loaded_http_ns: Span | None = None
    """Trimmed mean of the requests of one byte over connections that carried load."""

    loaded_rpm: float | None = None
    """Those over connections that carried load."""

    rpm: float | None = None
    """Round trips per minute (RPM); absent if too few probes were answered."""

    tcp_ns: Span | None = None
    """Trimmed mean of the TCP handshakes."""

    tls_ns: Span | None = None
    """Trimmed mean of the TLS handshakes, each of one round trip; absent without TLS."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """
    What one side of a flow counted in one interval.

    Intervals end at absolute ticks counted from the side's first byte.
    """

    end_ns: Timestamp
    """End of the interval."""

    readings: Readings
    """What was read."""

    side: Side
    """Which end."""

    start_ns: Timestamp
    """Start of the interval, from the side's first byte."""

    outside: bool | None = None
    """Whether the interval is outside the measured part: omitted at the start, or tail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SideSettings:
    """The settings of the first stream's socket on one side, read back from the kernel."""

    congestion: TextSetting
    """Congestion control."""

    io: TextSetting
    """How the sender passes bytes to the kernel; at the receiver, whether they are copied to the program."""

    length_bytes: Bytes
    """Bytes per write, or payload of one datagram."""

    local: str
    """Local address and port of the first stream."""

    mss: IntSetting
    """Segment size in bytes of payload."""

    pacing_bps: RateSetting
    """Kernel pacing rate (SO_MAX_PACING_RATE)."""

    remote: str
    """Remote address and port of the first stream."""

    tcp_options: list[str]
    """TCP options in effect: `timestamps`, `sack`, `wscale`, `ecn`."""

    tos: IntSetting
    """Type-of-service byte."""

    window_bytes: Bytes | None
    """Socket buffers as requested."""

    affinity: int | None = None
    """CPU the data threads are pinned to."""

    busy_poll_ns: TimeSetting | None = None
    """How long a waiting call polls the network device (SO_BUSY_POLL)."""

    datagrams_per_call: int | None = None
    """Datagrams per send call (UDP segmentation offload); 1 means one packet, one call."""

    fast_open: BoolSetting | None = None
    """Whether the first bytes travelled with the SYN (TCP Fast Open)."""

    file: TestFile | None = None
    """The file that was sent or written instead of generated payload; absent if there was none."""

    mptcp: bool | None = None
    """Whether MPTCP is in effect."""

    notsent_lowat_bytes: SizeSetting | None = None
    """Most bytes in the socket that were not sent yet (TCP_NOTSENT_LOWAT)."""

    other: dict[str, str] = field(default_factory=dict)
    """Settings of a peer that are unknown to this version."""

    pmtu_bytes: int | None = None
    """Path MTU known to the kernel."""

    rcv_buf_bytes: Bytes | None = None
    """Receive buffer as granted at the start (SO_RCVBUF as read back)."""

    receive_merging: bool | None = None
    """Whether the kernel may merge datagrams on receive (UDP_GRO)."""

    snd_buf_bytes: Bytes | None = None
    """Send buffer as granted at the start (SO_SNDBUF as read back)."""

    txtime: BoolSetting | None = None
    """Whether a queueing discipline keeps the departure times of datagrams (SO_TXTIME)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeFit:
    """A line through the times of a sweep, fitted to relative errors (Hockney's model)."""

    asymptotic_bps: Bitrate
    """Rate of a message without the start-up time (r infinity)."""

    half_performance_bytes: Bytes
    """Size that reaches half of that rate (n one-half)."""

    largest_error: Ratio
    """Largest distance of a point from the line, as a share of the point's time."""

    startup_ns: Span
    """Time of an empty message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizePoint:
    """
    The measurement of one message size.

    A time is that of one message in one direction: half a round trip for ping-pong, the time between two
    messages at the receiver for one-way streams, the time of one message each way if both ends send at once.
    """

    best_one_way_ns: Span
    """Time of one message in the best trial."""

    message_bytes: Bytes
    """Bytes of a message."""

    bitrate_bps: Bitrate | None = None
    """
    Payload divided by the median time, or by the best time if only that is known. Sum of both directions if
    both ends send at once.

    With ping-pong the two directions can differ: in that case this is the arrival rate in the slower one.
    """

    buffered: bool | None = None
    """
    Whether the rate is above what the path sustains, and so is the rate of a buffer or cache on the way.
    This is only known at the end of the sweep: the points in the log do not have it.
    """

    interval: TimeInterval | None = None
    """Interval of the median; absent below six trials, which have no interval at 95 %."""

    median_one_way_ns: Span | None = None
    """Median of the trials' times; absent if only the best is known."""

    repeats: int | None = None
    """
    Messages in each trial. If messages took longer than expected and later trials had fewer, the number in
    the last trial. Absent as above.
    """

    trials: int | None = None
    """Evaluated trials; absent if a foreign program does not report them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SocketKnobs:
    """Settings of the sockets."""

    ipv4: bool
    """Use IPv4 only"""

    ipv6: bool
    """Use IPv6 only"""

    no_delay: bool
    """Send small segments at once (TCP_NODELAY)"""

    skip_rx_copy: bool
    """Let the receiving kernel discard the bytes instead of copying them to the program; the result says so"""

    bind_address: str | None = None
    """Bind to this local address"""

    bind_device: str | None = None
    """Bind to this network device (SO_BINDTODEVICE)"""

    busy_poll_ns: Span | None = None
    """Let waiting calls poll the network device for this time, for example 50us (SO_BUSY_POLL)"""

    congestion: str | None = None
    """Congestion control at the sender, for example cubic or bbr (TCP)"""

    dscp: Dscp | None = None
    """DSCP of every packet: 0 to 63 or a name such as ef, cs1, af41"""

    fast_open: bool | None = None
    """Open data connections with TCP Fast Open; both hosts need net.ipv4.tcp_fastopen=3"""

    io: SendMethod | None = None
    """
    How the sender passes bytes to the kernel (TCP): copy (the default), splice, sendfile, zerocopy (MSG_ZEROCOPY),
    or auto for the fastest on that host
    """

    mss_bytes: int | None = None
    """Request this maximum segment size in bytes (TCP); the effective value is reported"""

    notsent_lowat_bytes: Bytes | None = None
    """Keep at most this much in the socket that was not sent yet (TCP_NOTSENT_LOWAT)"""

    quick_ack: bool | None = None
    """Acknowledge what arrives at once instead of waiting for more (TCP_QUICKACK)"""

    source_port: int | None = None
    """Local port of the first data stream; the others use the ports after it"""

    tos: int | None = None
    """Type-of-service byte of every packet: decimal, 0x hexadecimal or 0 octal"""

    window_bytes: Bytes | None = None
    """Fix the socket buffers at both ends to this size, which disables the kernel's own tuning"""

    zerocopy: bool | None = None
    """Send without copying, by the fastest method of the sender's host (TCP)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """A sweep over message sizes: which sizes, in which direction, and how often."""

    bidir: bool
    """Both ends send a message at the same time and wait for the other's before the next"""

    from_bytes: Bytes
    """Smallest size"""

    order: TrialSequence
    """Order of the trials"""

    perturb_bytes: int
    """Also measure at this distance below and above each size; 0 to disable"""

    stream: bool
    """Send in one direction only, from here to the server, whose clock measures [default: ping-pong]"""

    to_bytes: Bytes
    """Largest size"""

    trials: int
    """Trials of each size; below six the median has no interval"""

    points_per_octave: int | None = None
    """Number of sizes per doubling, evenly spaced [default: NetPIPE's own sizes, about two]"""

    sizes: SizeList | None = None
    """Exactly these sizes, for example 1,64,1K..16M; a range contains successive doublings"""

    time_ns: Span | None = None
    """Time for all sizes together; slow large messages may double it [default: 30s]"""

    until: Ratio | None = None
    """No more trials of a size whose median is known this well (95 % interval), for example 2%"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionSection:
    """Requests and responses in the measured part, as the end that made the requests counted them."""

    completed: int
    """Transactions that were completed."""

    failed: int
    """Requests that were never answered."""

    per_second: float
    """The same per second."""

    histogram: list[DelayBucket] = field(default_factory=list)
    """The distribution of these times: the buckets that are not empty, ascending."""

    times: TransactionTimes | None = None
    """How long the transactions took; absent if none was completed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transactions:
    """Requests and responses instead of a stream of data."""

    pipeline: int
    """Requests that each connection has under way at once (rr)"""

    spin: bool
    """
    Let both ends ask for the next message without waiting in the kernel: shorter latency, at the price of a core
    per connection (rr)
    """

    workload: Workload
    """What the connections carry; rr and crr measure transactions per second and their latency"""

    request_size_bytes: Bytes | None = None
    """Bytes of a request (rr, crr); over UDP at least 32, which a header of linerate takes [default: 1, for UDP 32]"""

    requests: int | None = None
    """Make this many requests over all connections instead of measuring for a time"""

    requests_per_second: int | None = None
    """
    Send this many requests per second over all connections, whether or not the responses keep up; latency then
    counts from the time at which a request was due [default: the next request follows a response]
    """

    response_size_bytes: Bytes | None = None
    """Bytes of a response (rr, crr); over UDP at least 32 [default: 1, for UDP 32]"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Uncertainty:
    """
    The uncertainty of a flow's rate and its contributions.

    # Source
    JCGM 100:2008 (GUM): standard uncertainties are combined as the root of the sum of squares and multiplied by
    a coverage factor.
    """

    contributions: list[Contribution]
    """All contributions, largest first."""

    coverage: Ratio
    """Coverage probability of the interval."""

    coverage_factor: float
    """The factor between the combined standard uncertainty and the expanded uncertainty."""

    expanded_bps: Bitrate
    """Half-width around the receiver's rate of the interval that contains the rate the path sustains."""

    main: UncertaintySource
    """The largest contribution."""

    overhead_bps: Bitrate | None = None
    """
    Upward extension of the interval: the rate at which latency probes and the control connection used the
    path, headers included. Without them the flow might have reached this much more. It is counted, so it is
    not part of the uncertainty.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class InterfaceCounts:
    """The counts of an interface and the queue above it."""

    duration_ns: Span | None = None
    """Time between the two readings."""

    idle: IdleCounts | None = None
    """The same interface before the load; absent if there was no time to read it."""

    name: str | None = None
    """Interface name."""

    qdisc: QdiscCounts | None = None
    """The queueing discipline at its root; absent if there is none with counters."""

    received: PassedCounts | None = None
    """Traffic received."""

    sent: PassedCounts | None = None
    """Traffic sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelCounts:
    """What one host's kernel counted while a flow was open, from before its first byte to after its last."""

    control: SocketCounts | None = None
    """The control connection in the same time."""

    interface: InterfaceCounts | None = None
    """The interface that carries the run; absent for a flow with a foreign program."""

    socket: SocketCounts | None = None
    """
    The flow's connections; absent for datagrams, whose sockets count nothing, and if the kernel does not
    report them.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyReport:
    """The result of the latency probes of one phase."""

    kernel_timestamps: bool
    """Whether the kernels timestamped the arrivals; otherwise the programs did."""

    lost: int
    """Probes that were never answered."""

    phase: ProbePhase
    """Idle or loaded."""

    rtt: Digest
    """Round-trip time, without the processing time of the reflecting program: (T4-T1)-(T3-T2)."""

    sent: int
    """Probes sent."""

    transport: ProbeTransport
    """What carried the probes."""

    download: Digest | None = None
    """One-way delay from the server to the client; its error is `offset_error_ns`."""

    histogram: list[DelayBucket] = field(default_factory=list)
    """
    The distribution of `rtt`: its buckets that are not empty, ascending. At most 3,840 of them, since their
    width grows with the time. Absent in logs of earlier versions.
    """

    intervals: list[LatencyInterval] = field(default_factory=list)
    """
    The round-trip times interval by interval. Intervals without an answer are absent; logs of earlier
    versions have none before the load.
    """

    offset_error_ns: int | None = None
    """Largest error of that estimate: half the smallest round-trip time."""

    offset_ns: int | None = None
    """Server clock minus client clock, estimated from the probes with the smallest round-trip time."""

    upload: Digest | None = None
    """One-way delay from the client to the server; its error is `offset_error_ns`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanAxis:
    """An axis of a plan."""

    name: str
    """Its name."""

    values: list[PlanValue]
    """Its values, in the order of the plan."""

    unit: str | None = None
    """Unit of its numbers: `bit/s`, `bytes`, `ns` or `1`; absent if the values are not numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """
    What one side counted over a whole flow.

    At the receiver the measured part begins with the first read (or at the end of the omitted part) and has the
    requested length; data read later is the tail. The bytes of the first read mark the time origin and are not
    included in the rate: `bitrate = (bytes - first_read) * 8 / elapsed`. At the sender the measured part is the
    time in which it wrote.
    """

    arrival_times: bool | None = None
    """Whether all times of reads are when the kernel received the bytes, instead of when the program read them."""

    bitrate_bps: Bitrate | None = None
    """Goodput in the measured part."""

    bytes: Bytes | None = None
    """Application bytes in the measured part."""

    complete: bool | None = None
    """Whether every stream ended regularly; otherwise the counts are partial."""

    cpu_seconds: float | None = None
    """CPU time of this process during the measured part."""

    elapsed_ns: Span | None = None
    """
    From the first to the last read (or write) in the measured part. Of a sender at a rate that ends after a time, to
    the end of the slot of its last write, at most to the end of the test.
    """

    error: str | None = None
    """The reason if it is incomplete."""

    first_read_bytes: Bytes | None = None
    """Bytes of the first read of the flow, the time origin; 0 if a part was omitted."""

    host_busy: Ratio | None = None
    """Busy share of this host's CPU time, all cores together."""

    kernel: KernelCounts | None = None
    """What this host's kernel counted below the program; absent if it was not read."""

    omitted_bytes: Bytes | None = None
    """Bytes of the omitted part."""

    queued_bytes: Bytes | None = None
    """Bytes still in the send queue, unacknowledged or never sent, when the flow was closed."""

    readings: Readings | None = None
    """Readings over the whole measured part (counters as differences, gauges at the end)."""

    retransmits: int | None = None
    """Segments retransmitted (TCP sender)."""

    streams: list[StreamTally] = field(default_factory=list)
    """The streams, if there are at most 128."""

    tail_bytes: Bytes | None = None
    """Bytes after the measured part."""

    total_bytes: Bytes | None = None
    """All application bytes of the flow: omitted, measured and tail."""

    transactions: TransactionTally | None = None
    """Counts of requests and responses, in a test that makes transactions."""

    udp: UdpTally | None = None
    """Datagram counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptanceOf:
    """A test measured against an acceptance rule."""

    criteria: list[CriterionOf]
    """Every criterion of the rule."""

    verdict: str
    """`passed`; `failed` if one criterion fails; `missing` if none fails and the result says nothing about one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureOf:
    """One figure, judged."""

    printed: str
    """As printed."""

    quantity: str
    """Quantity: `bitrate`, `bytes`, `seconds`, `packet_rate`, `cwnd` and others."""

    reasons: list[ReasonOf]
    """The reasons, the worst first."""

    unit: str
    """The unit of value and step."""

    verdict: str
    """`possible`, `at_ceiling`, `doubtful` or `impossible`."""

    ceiling: Ceiling | None = None
    """For a rate: the lowest ceiling that it does not exceed, otherwise the highest ceiling."""

    share: CeilingShare | None = None
    """The figure divided by that ceiling, at most 1; absent if it exceeds the ceiling."""

    step: float | None = None
    """Value of one unit in the last printed digit; 0 if all digits are printed."""

    value: float | None = None
    """Value; absent if it is not a finite number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineOf:
    """One line with its figures."""

    figures: list[FigureOf]
    """The figures."""

    quote: str
    """The line itself, or the path of the JSON value."""

    scope: str
    """`interval`, `total` or `size`."""

    direction: str | None = None
    """`upload` or `download`."""

    end_ns: int | None = None
    """End, relative to the start of the test."""

    line: int | None = None
    """Line of the file, from 1; absent for typed figures."""

    side: str | None = None
    """The end that counted: `sender` or `receiver`."""

    start_ns: int | None = None
    """Start, relative to the start of the test."""

    stream: int | None = None
    """Number of the stream in the file; absent for the sum of all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TestOf:
    """One test."""

    lines: list[LineOf]
    """Its lines."""

    acceptance: AcceptanceOf | None = None
    """Whether it is what the given acceptance rule asks for; absent without one."""

    error: str | None = None
    """The error with which it ended."""

    started_at: str | None = None
    """Start time, RFC 3339."""

    target: str | None = None
    """The other end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowOpenedBody:
    """The sockets of one side are open."""

    flow: int
    """The flow."""

    kind: Literal["flow_opened"]
    settings: SideSettings
    """The settings as the kernel applied them."""

    side: Side
    """Which end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleBody:
    """One interval of one side."""

    flow: int
    """The flow."""

    kind: Literal["sample"]
    sample: Sample
    """What was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PortBody:
    """One interval of one port of an emulated network."""

    flows: list[int]
    """The flows that ran at that time."""

    kind: Literal["port"]
    port: str
    """The port: its own node and the node it sends to, as `a>s`."""

    sample: PortSample
    """What was counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeBody:
    """One size of a sweep over message sizes is measured."""

    flow: int
    """The flow."""

    kind: Literal["size"]
    point: SizePoint
    """What was measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyBody:
    """Latency probes of one phase are evaluated."""

    kind: Literal["latency"]
    report: LatencyReport
    """Their results."""

    flow: int | None = None
    """The flow during which they ran; absent for idle latency."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowEndedBody:
    """One side has closed its sockets."""

    flow: int
    """The flow."""

    kind: Literal["flow_ended"]
    side: Side
    """Which end."""

    tally: Tally
    """What it counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReconciledBody:
    """Counts on the way to the wire and back are compared; a later event replaces an earlier one."""

    flow: int
    """The flow."""

    kind: Literal["reconciled"]
    steps: list[AccountingStep]
    """From the sender's socket to the receiver's, then the way back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UncertaintyBody:
    """How well the rate is known."""

    flow: int
    """The flow."""

    kind: Literal["uncertainty"]
    uncertainty: Uncertainty
    """The uncertainty and its contributions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CeilingsBody:
    """All ceilings, smallest first."""

    ceilings: list[Ceiling]
    """Every known limit."""

    flow: int
    """The flow."""

    kind: Literal["ceilings"]
    ceiling: Ceiling | None = None
    """The limit to compare the result with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictBody:
    """What limited the flow. A later event replaces an earlier one."""

    also: list[Finding]
    """The others."""

    flow: int
    """The flow."""

    kind: Literal["verdict"]
    verdict: Finding
    """The first rule whose conditions all hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanStartedBody:
    """A plan began. The log is the plan's own; the runs of its trials have their own logs."""

    kind: Literal["plan_started"]
    about: str
    """Its purpose, one line."""

    axes: list[PlanAxis]
    """The swept axes; the last axis varies fastest."""

    estimate_ns: Span
    """Estimated duration."""

    files: list[PlanFile]
    """The files it was read from, the plan itself first."""

    flows: list[PlanFlow]
    """Its flows; each trial has one run per flow."""

    hosts: list[PlanHost]
    """Its hosts."""

    linerate: str
    """Version of linerate."""

    name: str
    """Name of the plan."""

    order: str
    """The order, by its name in plans."""

    points: list[PlanPoint]
    """The points, in the order of the plan."""

    repeats: int
    """Number of measurements of each point."""

    schema: str
    """Version of the event format."""

    seed: int
    """The seed of a shuffled order."""

    started_at: str
    """Wall-clock time, RFC 3339."""

    world: World
    """Where its runs take place."""

    method: str | None = None
    """The method it follows, by its name in plans; absent if it follows none."""

    notes: dict[str, str] = field(default_factory=dict)
    """Other notes in its file, such as the tester's name or the device."""

    search: str | None = None
    """The search made at every point, as the condition that must hold; absent if there is none."""

    set: list[str] = field(default_factory=list)
    """What was set on the command line, as entered."""

    topology: str | None = None
    """The topology of the emulated network; absent on real hosts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaveatBody:
    """A caveat for a result."""

    caveat: Caveat
    """The caveat."""

    kind: Literal["caveat"]
    flow: int | None = None
    """The flow; absent when it concerns the whole run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """
    The limits of one host, measured on the host itself, and the configuration they apply to.

    They apply to the kernel, the processor and the number of cores they were measured with. Limits that could
    not be measured are absent.
    """

    cores: int
    """Processors online."""

    cpu: str
    """Processor model."""

    kernel: str
    """Kernel name and release."""

    linerate: str
    """Version of linerate."""

    loopback: list[LoopbackRate]
    """Loopback throughput by mode, with both ends using the host's processors."""

    measured_at: str
    """Wall-clock time, RFC 3339."""

    memory_copy: list[CopyRate]
    """Rates at which one core copies memory, by block size."""

    schema: str
    """Version of this format."""

    clock_read_ns: Span | None = None
    """Time to read the clock used for measuring."""

    clock_resolution_ns: Span | None = None
    """Resolution of that clock."""

    pacing: PacingError | None = None
    """Deviation of a paced flow from its requested rate."""

    syscall_ns: Span | None = None
    """Time of an empty system call."""

    wake_up: WakeUp | None = None
    """Wake-up latency of a thread with a timed wait."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CeilingSection:
    """The ceiling that the result is compared with."""

    because: str
    """Explanation of the ceiling."""

    bitrate_bps: float
    """Goodput that it allows, bit/s."""

    limit: Limit
    """Name of the limit."""

    share: CeilingShare | None = None
    """The result as a share of it, at most 1; absent without a result, and above the ceiling."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostInfo:
    """One host of a run."""

    cores: int
    """Processors online."""

    cpu: str
    """Processor model."""

    kernel: str
    """Kernel name and release."""

    linerate: str
    """Version of linerate."""

    name: str
    """Host name."""

    address: str | None = None
    """The address used in this run."""

    calibration: Calibration | None = None
    """The host's own calibration by `linerate doctor --calibrate`; absent if it was never made."""

    link: LinkInfo | None = None
    """The interface that carries the run."""

    memory_copy_bps: Bitrate | None = None
    """
    Rate at which this host copies memory in blocks of the test's length: the ceiling if both ends are on it. Only
    for the loopback.
    """

    sysctls: dict[str, str] = field(default_factory=dict)
    """Kernel settings that can explain results, by their sysctl names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencySection:
    """Latency measured by the probes."""

    idle: ProbeSection | None = None
    """Before the load."""

    loaded: ProbeSection | None = None
    """Under the load of this flow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsSection:
    """
    Settings. A requested value is `null` if it was left to the kernel; a value that cannot be read back is
    absent.
    """

    congestion: TextSetting
    """Congestion control of the sender."""

    io: TextSetting
    """
    How the sender passed bytes to the kernel: `copy`, `splice`, `sendfile` or `zerocopy`; requested may also be
    `auto` or `copy-free`.
    """

    length_bytes: Bytes
    """Bytes per write, or payload of one datagram."""

    mss: MssSetting
    """Segment size."""

    pacing: PacingSetting
    """Kernel pacing of the sender."""

    tos: IntSetting
    """Type-of-service byte of the sender."""

    window: WindowSetting
    """Socket buffers."""

    no_delay: bool | None = None
    """Whether small segments were sent immediately (TCP_NODELAY); absent if the specification is missing."""

    receiver: SideSettings | None = None
    """All values read back at the receiver."""

    sender: SideSettings | None = None
    """All values read back at the sender."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeCurve:
    """Summary of the points of a sweep."""

    peak_bps: Bitrate
    """That rate."""

    peak_bytes: Bytes
    """The size with the highest rate that the path sustains."""

    smallest_bytes: Bytes
    """The smallest size."""

    smallest_one_way_ns: Span
    """Time of one message of the smallest size: the latency."""

    fit: SizeFit | None = None
    """The line `time = start-up + size / asymptotic rate`; absent if no such line fits the points."""

    saturation_bytes: Bytes | None = None
    """
    The smallest size from which on every size reaches nine tenths of the highest rate; absent if the
    largest size does not.
    """

    sustained_bps: Bitrate | None = None
    """
    The maximum that the path sustains: the capacity of the link, or slightly more than the rate of the
    largest messages, whichever is less. A higher rate is that of a buffer. Absent in logs of versions that
    did not determine it.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class TestSpec:
    """One test: what to send, over which sockets, by which hosts."""

    host: HostKnobs
    """Settings of the hosts."""

    socket: SocketKnobs
    """Settings of the sockets."""

    traffic: Traffic
    """What to send, how much and how fast."""

    sweep: Sweep | None = None
    """A sweep over message sizes instead of timed flows; absent in a plain test."""

    transactions: Transactions | None = None
    """Requests and responses instead of a stream of data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingOf:
    """The result of one program."""

    tests: list[TestOf]
    """Its tests."""

    unread: list[UnreadOf]
    """Parts that could not be read."""

    tool: str | None = None
    """The program; absent for typed figures."""

    version: str | None = None
    """Version of the program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStartedBody:
    """The run began."""

    kind: Literal["run_started"]
    linerate: str
    """Version of linerate."""

    schema: str
    """Version of the event format."""

    spec: TestSpec
    """What to measure."""

    started_at: str
    """Wall-clock time, RFC 3339."""

    target: str
    """The server, as entered."""

    world: World
    """Where it runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostBody:
    """A host is known; `host` of the event is its number."""

    info: HostInfo
    """The host."""

    kind: Literal["host"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CurveBody:
    """The sweep over message sizes is over."""

    curve: SizeCurve
    """The summary of its points."""

    flow: int
    """The flow."""

    kind: Literal["curve"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowSection:
    """One group of streams from host to host."""

    also: list[Finding]
    """Findings of other rules whose conditions hold."""

    caveats: list[Caveat]
    """Caveats of the result."""

    ceilings: list[Ceiling]
    """Every known ceiling, lowest first."""

    direction: Direction
    """Direction, seen from the client."""

    flow: int
    """Its number in the run."""

    from_: str
    """The sending host."""

    name: str
    """Its name for users."""

    samples: list[Sample]
    """Intervals of both sides, merged to the requested interval."""

    streams: int
    """Number of streams."""

    to: str
    """The receiving host."""

    transport: Transport
    """Transport protocol."""

    byte_accounting: ByteAccountingSection | None = None
    """Byte accounting."""

    ceiling: CeilingSection | None = None
    """The ceiling that the result is compared with."""

    cpu: CpuSection | None = None
    """CPU time of the hosts."""

    curve: SizeCurve | None = None
    """Summary of the series."""

    follow_ups: list[FollowUp] = field(default_factory=list)
    """Questions that follow-up runs answered. The verdict takes the answers into account."""

    latency: LatencySection | None = None
    """Latency measured by the probes."""

    receiver: ReceiverSection | None = None
    """The result."""

    sender: SenderSection | None = None
    """The sender's counts, for diagnosis."""

    settings: SettingsSection | None = None
    """Settings as requested, granted and effective."""

    sizes: list[SizePoint] = field(default_factory=list)
    """The sizes of a series over message sizes, smallest first; absent in a plain test."""

    steady: Steady | None = None
    """The steady part."""

    transactions: TransactionSection | None = None
    """Requests and responses, in a test that makes transactions."""

    udp: UdpSection | None = None
    """Counts of datagrams, for UDP."""

    uncertainty: Uncertainty | None = None
    """Uncertainty of the receiver's rate with its contributions; absent if it cannot be estimated."""

    verdict: Finding | None = None
    """The limit of the flow."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSection:
    """The run."""

    id: str
    """Name of the run."""

    group: GroupPlace | None = None
    """Its place among runs that were started together."""

    group_start: GroupStart | None = None
    """Time at which it started to measure as one of them."""

    linerate: str | None = None
    """Version of linerate."""

    name: str | None = None
    """Name that the user gave it."""

    notes: dict[str, str] = field(default_factory=dict)
    """Notes of the user, by their keys."""

    outcome: Outcome | None = None
    """How the run ended; absent if it was killed."""

    reason: str | None = None
    """Reason, unless it was completed."""

    spec: TestSpec | None = None
    """The specification."""

    started_at: str | None = None
    """Wall-clock time of its start, RFC 3339; absent if the start of the log is missing."""

    target: str | None = None
    """The server as typed."""

    world: World | None = None
    """Where it ran."""


Body: TypeAlias = (
    RunStartedBody
    | HostBody
    | QueuedBody
    | FlowPlannedBody
    | FlowOpenedBody
    | ProgressBody
    | StreamsBody
    | SampleBody
    | PortBody
    | SizeBody
    | CurveBody
    | LatencyBody
    | ResponsivenessBody
    | FlowEndedBody
    | BrowserBody
    | BytesAccountedBody
    | ReconciledBody
    | SteadyBody
    | UncertaintyBody
    | CeilingsBody
    | FollowUpBody
    | VerdictBody
    | LabelledBody
    | GroupedBody
    | StartedBody
    | PlanStartedBody
    | PlanResumedBody
    | TrialEndedBody
    | SearchEndedBody
    | PointSummedBody
    | MethodTableBody
    | JudgedBody
    | CaveatBody
    | RunEndedBody
    | UnknownBody
)
"""What happened."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One thing that happened in a run."""

    at_ns: Timestamp
    """The time, on the client's clock."""

    body: Body
    """The event itself."""

    host: int
    """The host that reports it: 0 is the client, 1 the server."""

    run: str
    """The run."""

    seq: int
    """Number of the event in its run, from 0 without gaps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputOf:
    """A file, or the command line."""

    name: str
    """The file as typed, `standard input` or `command line`."""

    readings: list[ReadingOf]
    """The results in order."""

    error: str | None = None
    """Why nothing could be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckDocument:
    """Whether published figures are physically possible."""

    counts: CountsOf
    """Number of figures per verdict."""

    inputs: list[InputOf]
    """The typed figures, then each file."""

    linerate: str
    """Version of linerate."""

    path: PathOf
    """What was stated about the path on the command line."""

    schema: str
    """`linerate.check/1`."""

    verdict: str | None = None
    """The worst verdict of all figures: `possible`, `at_ceiling`, `doubtful` or `impossible`; absent without figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultDocument:
    """A run as a JSON document."""

    caveats: list[Caveat]
    """Caveats of the whole run."""

    flows: list[FlowSection]
    """The flows, in the order in which they were planned."""

    hosts: list[HostInfo]
    """The hosts, client first."""

    run: RunSection
    """The run."""

    schema: str
    """Version of this format."""

    ports: list[PortSection] = field(default_factory=list)
    """The ports of an emulated network, one entry for each phase and port; absent on real hosts."""

    responsiveness: list[ResponsivenessReport] = field(default_factory=list)
    """Responsiveness under load, in each combination of directions that was loaded; absent in other tests."""
