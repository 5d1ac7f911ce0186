// The envelope of a path: its form, and how its document becomes words and bars.

import { bitrate, bytes, ratio, span } from "../units";
import type { TypedField } from "./typed";
import { words } from "./words";

export interface Ceiling {
  limit: string;
  bitrate_bps: number;
  because: string;
}

interface Bounds {
  low: number;
  high: number;
  absent?: boolean;
}

/** What the page reads of a linerate.envelope/2 document. */
export interface Envelope {
  binding: Ceiling;
  after_remedy?: Ceiling;
  ceilings: Ceiling[];
  binding_limits?: string[];
  bounds?: Record<string, Bounds>;
  rates: Record<"wire_bps" | "frame_bps" | "packet_bps" | "payload_bps", number>;
  needs?: { window_bytes: number; rmem_bytes: number; wmem_bytes: number };
  startup?: { duration_s: number; length_for_one_percent_s?: number };
  loss?: { allowed?: number };
  transfer?: { bytes: number; expected_s?: number; ideal_s?: number };
  offered?: { bitrate_bps: number; carried_bps?: number; excess_ratio?: number };
  burst?: { bytes: number; queue_bytes?: number; delay_s?: number };
  need?: { bytes: number; within_s: number; required_bps: number; takes_s: number; fits: boolean };
  target?: {
    bitrate_bps: number;
    fits: boolean;
    needs?: { window_bytes: number };
    loss?: { allowed?: number };
  };
  lag?: { links: number; all_bps: number; expected_bps: number };
  distance?: { light_s: number; stretch?: number };
  acknowledgements?: { bitrate_bps: number; both_ways_bps?: number };
}

/** The fields in sight. */
export const MAIN: readonly TypedField[] = [
  { name: "link", label: "Slowest link", hint: "or a range: 1G..10G", example: "1G" },
  { name: "rtt", label: "Round-trip time", hint: "without queueing; or a range", example: "20ms" },
  { name: "loss", label: "Loss per packet", hint: "for example 0.01%", example: "none" },
  { name: "mtu", label: "MTU", hint: "bytes, below any tunnel", example: "1500" },
  { name: "streams", label: "Connections", hint: "in parallel", example: "1" },
  { name: "window", label: "Window", hint: "of each connection, for example 4M", example: "as needed" },
];

const TUNNELS = ["none", "gre4", "vxlan4", "vxlan6", "wireguard4", "wireguard6", "pppoe"];

/** Those that are folded. */
export const FOLDED: readonly TypedField[] = [
  { name: "udp", label: "UDP instead of TCP", flag: true },
  { name: "ipv6", label: "IPv6", flag: true },
  { name: "no_timestamps", label: "No TCP timestamps", flag: true },
  {
    name: "congestion",
    label: "Congestion control",
    options: [
      ["", "cubic"],
      ["reno", "reno"],
      ["bbr", "bbr"],
    ],
  },
  { name: "encap", label: "Tunnel", options: TUNNELS.map((name) => [name === "none" ? "" : name, name]) },
  { name: "vlan", label: "VLAN tags in each frame", example: "0" },
  { name: "lag", label: "Links of a LAG", hint: "a hash selects one per connection" },
  { name: "length", label: "Payload of a datagram", hint: "bytes, for UDP" },
  { name: "rmem", label: "Largest receive buffer", hint: "last value of tcp_rmem, for example 6M" },
  { name: "wmem", label: "Largest send buffer", hint: "last value of tcp_wmem, for example 4M" },
  { name: "distance", label: "Length of the path", hint: "kilometres" },
  { name: "cpu", label: "CPU of the slower host", hint: "Hz:cycles per packet:per byte, 3G:10000:2" },
  { name: "pcie", label: "PCI Express slot", hint: "transfers per second:lanes, 8G:4" },
  { name: "disk", label: "Rate of the slower disk", hint: "for example 500MB/s" },
  { name: "transfer", label: "Bytes to transfer", hint: "for example 100G" },
  { name: "need", label: "Needed transfer", hint: "time:bytes, for example 8h:2TB" },
  { name: "target", label: "Wanted rate", hint: "payload, for example 500M" },
  { name: "offered", label: "Offered rate", hint: "payload, for example 500M" },
  { name: "burst", label: "Bytes of a burst", hint: "whose queue at the link is computed" },
  { name: "burst_rate", label: "Rate of the burst", hint: "for example 10G" },
];

export const FIELDS = [...MAIN, ...FOLDED];

/** Paths to begin with. */
export const EXAMPLES: readonly (readonly [label: string, values: Record<string, string>])[] = [
  ["Gigabit across a country", { link: "1G", rtt: "20ms" }],
  ["10 Gb/s with a small window", { link: "10G", rtt: "20ms", window: "4M" }],
  ["Satellite with loss", { link: "100M", rtt: "600ms", loss: "0.01%" }],
];

/** A time in seconds, in hours and minutes from two minutes on. */
export function seconds(value: number): string {
  if (value < 120) return span(Math.round(value * 1e9));
  const minutes = Math.round(value / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return [hours > 0 && `${hours} h`, rest > 0 && `${rest} min`].filter(Boolean).join(" ");
}

/** A number with its range, if the form has one. */
function between(document: Envelope, path: string, value: number, format: (value: number) => string) {
  const found = document.bounds?.[path];
  if (!found) return format(value);
  const [low, high] = [format(found.low), format(found.high)];
  if (found.absent) return `${low} or more`;
  return low === high ? low : `${low} to ${high}`;
}

/** The ends of a number over the ranges of the form. */
const endsOf = (document: Envelope, path: string, value: number) =>
  document.bounds?.[path] ?? { low: value, high: value };

/** A judgement in words. The document has that of one end of the ranges; a number with a range may have both. */
function judged(
  fits: boolean,
  ends: { low: number; high: number } | undefined,
  at: (value: number) => boolean,
  [yes, no]: [string, string],
): string {
  if (!ends) return fits ? yes : no;
  if (at(ends.low) !== at(ends.high)) return "only in a part of the given ranges";
  return at(ends.low) ? yes : no;
}

/** The rate that the path carries. */
export const carried = (document: Envelope) =>
  between(document, "/binding/bitrate_bps", document.binding.bitrate_bps, bitrate);

/** Which ceilings bind: several if a range decides. */
export const bindingLimits = ({ binding, binding_limits }: Envelope) => binding_limits ?? [binding.limit];

/** What holds the rate, in words. */
export function reason(document: Envelope): string {
  const limits = bindingLimits(document).map(words);
  if (limits.length > 1)
    return `Within the given ranges the limit is the ${limits.join(" or the ")}, as shown below.`;
  const { binding, after_remedy } = document;
  if (document.bounds?.["/binding/bitrate_bps"])
    return `In all of the given ranges the limit is the ${words(binding.limit)}.`;
  const limit = `The limit is the ${words(binding.limit)}: ${binding.because}.`;
  if (!after_remedy || document.bounds) return limit;
  const next = `the ${words(after_remedy.limit)} (${after_remedy.because})`;
  return `${limit} Without it, ${bitrate(after_remedy.bitrate_bps)}: then ${next} is the limit.`;
}

/** One bar of the ceilingBars: where it ends on an axis from 0 to 1. */
export interface Bar extends Ceiling {
  rate: string;
  binds: boolean;
  /** End of the solid part, and of the part that depends on the range. */
  low: number;
  high: number;
}

export interface CeilingBars {
  bars: Bar[];
  /** Decades of the axis, with their places. */
  ticks: { at: number; label: string }[];
}

/** The ceilings as bars on one logarithmic axis, lowest first. */
export function ceilingBars(document: Envelope): CeilingBars {
  const rows = document.ceilings.map((ceiling) => {
    const found = document.bounds?.[`/ceilings/${ceiling.limit}/bitrate_bps`];
    const { low, high } = found ?? { low: ceiling.bitrate_bps, high: ceiling.bitrate_bps };
    return { ceiling, low, high };
  });
  // A loss of 0 to 0.01 % is a limit at one end only.
  for (const [path, { low, high }] of Object.entries(document.bounds ?? {})) {
    const [, limit] = /^\/ceilings\/(\w+)\/bitrate_bps$/.exec(path) ?? [];
    if (!limit || rows.some(({ ceiling }) => ceiling.limit === limit)) continue;
    rows.push({ ceiling: { limit, bitrate_bps: low, because: "in a part of the given ranges" }, low, high });
  }
  rows.sort((one, other) => one.low - other.low);
  // The lowest bar has some length, so the axis begins at the decade before it.
  const first = Math.ceil(Math.log10(Math.min(...rows.map(({ low }) => low)))) - 1;
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...rows.map(({ high }) => high)))));
  const place = (bps: number) => (Math.log10(bps) - first) / (last - first);
  const limits = bindingLimits(document);
  const bars = rows.map(({ ceiling, low, high }) => ({
    ...ceiling,
    // The reason names the numbers of one end.
    because: document.bounds?.[`/ceilings/${ceiling.limit}/bitrate_bps`]?.absent
      ? "in a part of the given ranges"
      : low === high
        ? ceiling.because
        : "depends on the given ranges",
    rate: between(document, `/ceilings/${ceiling.limit}/bitrate_bps`, ceiling.bitrate_bps, bitrate),
    binds: limits.includes(ceiling.limit),
    low: place(low),
    high: place(high),
  }));
  const decades = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const every = Math.ceil(decades.length / 5);
  const ticks = decades
    .filter((_, index) => index % every === 0)
    .map((decade) => ({ at: place(10 ** decade), label: bitrate(10 ** decade).replace(/\.0+(?= )/, "") }));
  return { bars, ticks };
}

/** How much longer than in fibre the given round trip is. */
function stretched(document: Envelope, stretch: number): string {
  const { low, high } = endsOf(document, "/distance/stretch", stretch);
  if (high < 1) return "in fibre of that length: the given one is impossible";
  const times = between(document, "/distance/stretch", stretch, (value) => value.toPrecision(3));
  const part = low < 1 ? "; less than 1 is impossible" : "";
  return `in fibre of that length; the given one is ${times} times that${part}`;
}

/** What an offered rate loses. Where all of it fits it has no excess. */
function excess(document: Envelope, value: number | undefined): string {
  const { low, high, absent } = document.bounds?.["/offered/excess_ratio"] ?? {
    low: value ?? 0,
    high: value ?? 0,
    absent: undefined,
  };
  if (high === 0) return "all of it fits";
  const [least, most] = [ratio(low), ratio(high)];
  if (absent || low === 0) return `up to ${most} of it does not fit`;
  return `${least === most ? least : `${least} to ${most}`} of it does not fit`;
}

/** Further answers: what is asked, the number, and what it is about. */
export function facts(document: Envelope): [string, string, string][] {
  const rows: [string, string, string][] = [];
  const range = (path: string, value: number | undefined, format: (value: number) => string) =>
    value === undefined ? undefined : between(document, path, value, format);
  const add = (name: string, value: string | undefined, about: string) => {
    if (value !== undefined) rows.push([name, value, about]);
  };
  const { needs, need, transfer, target, lag, distance, burst, offered, startup } = document;
  const size = (value: number) => bytes(Math.round(value));
  if (need)
    add(
      "Needed transfer",
      judged(need.fits, document.bounds?.["/need/takes_s"], (takes) => takes <= need.within_s, [
        "fits",
        "does not fit",
      ]),
      `${bytes(need.bytes)} take ${range("/need/takes_s", need.takes_s, seconds)} of ${seconds(need.within_s)}, which needs ${bitrate(need.required_bps)}`,
    );
  if (transfer)
    add(
      "Transfer time",
      range("/transfer/expected_s", transfer.expected_s, seconds) ??
        range("/transfer/ideal_s", transfer.ideal_s, seconds),
      `for ${bytes(transfer.bytes)}${transfer.expected_s === undefined ? ", on a full link" : ", with slow start"}`,
    );
  if (target) {
    const window = range("/target/needs/window_bytes", target.needs?.window_bytes, size);
    add(
      "Wanted rate",
      judged(target.fits, document.bounds?.["/binding/bitrate_bps"], (bps) => target.bitrate_bps <= bps, [
        "possible",
        "more than the limit",
      ]),
      `${bitrate(target.bitrate_bps)}${window ? `, with a window of ${window}` : ""}`,
    );
  }
  if (offered) add("Offered rate", bitrate(offered.bitrate_bps), excess(document, offered.excess_ratio));
  if (burst)
    add(
      "Queue of the burst",
      range("/burst/queue_bytes", burst.queue_bytes, size),
      burst.delay_s === undefined ? "" : `at most ${seconds(burst.delay_s)} of delay`,
    );
  if (lag)
    add(
      "LAG",
      range("/lag/expected_bps", lag.expected_bps, bitrate),
      `on average, of ${bitrate(lag.all_bps)} together`,
    );
  if (distance)
    add(
      "Shortest round trip",
      seconds(distance.light_s),
      distance.stretch === undefined ? "in fibre of that length" : stretched(document, distance.stretch),
    );
  if (needs) {
    const at = (name: string) => `/needs/${name}`;
    add(
      "Window",
      range(at("window_bytes"), needs.window_bytes, size),
      "of each connection, to fill the link",
    );
    add("Receive buffer", range(at("rmem_bytes"), needs.rmem_bytes, size), "last value of net.ipv4.tcp_rmem");
    add("Send buffer", range(at("wmem_bytes"), needs.wmem_bytes, size), "last value of net.ipv4.tcp_wmem");
  }
  add("Loss allowed", range("/loss/allowed", document.loss?.allowed, ratio), "of packets, for a full link");
  add("Slow start", range("/startup/duration_s", startup?.duration_s, seconds), "until the limit is reached");
  add(
    "Length of a test",
    range("/startup/length_for_one_percent_s", startup?.length_for_one_percent_s, seconds),
    "in which slow start costs 1 %",
  );
  const { rates, acknowledgements } = document;
  add("Link, wire", range("/rates/wire_bps", rates.wire_bps, bitrate), "with preamble and gap (L1)");
  add("Link, frames", range("/rates/frame_bps", rates.frame_bps, bitrate), "with FCS (L2)");
  add("Link, packets", range("/rates/packet_bps", rates.packet_bps, bitrate), "IP (L3)");
  add(
    "Link, payload",
    range("/rates/payload_bps", rates.payload_bps, bitrate),
    "what an application sees (L4)",
  );
  add(
    "Both ways",
    range("/acknowledgements/both_ways_bps", acknowledgements?.both_ways_bps, bitrate),
    "payload in each direction, when both are full",
  );
  return rows;
}
