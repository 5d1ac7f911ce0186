// Whether figures can be true: the form, and how the document becomes a judgement in words.

import { bitrate, ratio } from "../units";
import type { TypedField, Values } from "./typed";
import { plural, words } from "./words";

export type Verdict = "possible" | "at_ceiling" | "doubtful" | "impossible";
export type Accepted = "passed" | "missing" | "failed";

export interface Figure {
  quantity: string;
  printed: string;
  verdict: Verdict;
  ceiling?: { limit: string; bitrate_bps: number; because: string };
  share?: number;
  reasons: {
    verdict: Verdict;
    text: string;
    causes: { text: string; remedy: string }[];
  }[];
}

export interface Line {
  line?: number;
  quote: string;
  scope: "interval" | "total" | "size";
  figures: Figure[];
}

export interface Acceptance {
  verdict: Accepted;
  criteria: { name: string; verdict: Accepted; text: string }[];
}

export interface Test {
  target?: string;
  started_at?: string;
  error?: string;
  lines: Line[];
  acceptance?: Acceptance;
}

/** What the page reads of a linerate.check/1 document. */
export interface Check {
  verdict?: Verdict;
  counts: Record<Verdict, number>;
  inputs: {
    error?: string;
    readings: {
      tool?: string;
      version?: string;
      unread: { line: number; column?: number; why: string }[];
      tests: Test[];
    }[];
  }[];
}

/** The fields in sight, next to the pasted text. */
export const MAIN: readonly TypedField[] = [
  { name: "rate", label: "Rate", hint: "payload per second", example: "941M" },
  { name: "link", label: "Link", hint: "the slowest one on the path", example: "1G" },
  { name: "duration", label: "Duration", example: "10s" },
  { name: "retransmits", label: "Retransmits", hint: "of the whole test", example: "0" },
  { name: "streams", label: "Connections", hint: "in parallel", example: "1" },
  { name: "rtt", label: "Round-trip time", hint: "without queueing", example: "20ms" },
];

export const TOOLS = ["iperf3", "iperf2", "ttcp", "nuttcp", "ntttcp", "netpipe", "netperf", "linerate"];

/** Those that are folded. */
export const FOLDED: readonly TypedField[] = [
  { name: "mtu", label: "MTU", hint: "bytes, below any tunnel" },
  { name: "mss", label: "Segment size (MSS)", hint: "bytes, after options" },
  { name: "bytes", label: "Bytes", hint: "payload of the whole test, for example 1.10G" },
  { name: "pps", label: "Packets per second" },
  { name: "packets", label: "Packets" },
  { name: "lost", label: "Lost packets" },
  { name: "cwnd", label: "Congestion window", hint: "bytes" },
  { name: "calls", label: "Read or write calls" },
  { name: "length", label: "Bytes per call", hint: "or payload of a datagram" },
  { name: "cpu", label: "Busy share of the CPUs", hint: "for example 23%" },
  {
    name: "counted_by",
    label: "Counted by",
    options: [
      ["", "not known"],
      ["sender", "the sender"],
      ["receiver", "the receiver"],
    ],
  },
  { name: "window", label: "Window", hint: "of each connection, in bytes" },
  { name: "loss", label: "Loss per packet", hint: "for example 0.01%" },
  { name: "distance", label: "Distance of the ends", hint: "kilometres, one way" },
  {
    name: "congestion",
    label: "Congestion control",
    options: [
      ["", "not known"],
      ["reno", "reno"],
      ["cubic", "cubic"],
      ["bbr", "bbr"],
    ],
  },
  { name: "vlan", label: "VLAN tags in each frame", example: "0" },
  { name: "udp", label: "UDP instead of TCP", flag: true },
  { name: "ipv6", label: "IPv6", flag: true },
  { name: "no_timestamps", label: "No TCP timestamps", flag: true },
  {
    name: "tool",
    label: "Program that printed the text",
    options: [["", "as detected"], ...TOOLS.map((name) => [name, name] as const)],
  },
];

/** The acceptance rule, which has a switch of its own. */
export const ACCEPTANCE: TypedField = { name: "acceptance", label: "Acceptance rule" };
export const RULE = "gigabit";

export const FIELDS = [...MAIN, ...FOLDED, ACCEPTANCE];

/** The values with the rule, or without it. The rule is about a gigabit link, so that is filled in. */
export function withRule(values: Values, on: boolean): Values {
  if (!on) return { ...values, acceptance: "" };
  return { ...values, acceptance: RULE, link: values.link || "1G" };
}

/** Whether there is something to check: a text or any figure. The path and the rule alone say nothing. */
export function isAsked(values: Values, text: string): boolean {
  const path = ["link", "rtt", "streams", "mtu", "mss", "window", "loss", "distance", "congestion", "vlan"];
  const others = ["udp", "ipv6", "no_timestamps", "tool", "acceptance", "counted_by"];
  const given = Object.keys(values).filter((name) => values[name]?.trim());
  return text.trim() !== "" || given.some((name) => ![...path, ...others].includes(name));
}

const HEADLINES: Record<Verdict, string> = {
  possible: "This is possible.",
  at_ceiling: "This is possible.",
  doubtful: "This is doubtful.",
  impossible: "This is impossible.",
};

/** The judgement in a sentence. */
export const headline = ({ verdict }: Check) => (verdict ? HEADLINES[verdict] : "Nothing could be read.");

/** What makes it so: the text of the first reason with the verdict of the whole. */
export function because(check: Check): string {
  const figures = check.inputs.flatMap(({ readings }) =>
    readings.flatMap(({ tests }) => tests.flatMap(({ lines }) => lines.flatMap(({ figures }) => figures))),
  );
  for (const { reasons } of figures) {
    const found = reasons.find(({ verdict }) => verdict === check.verdict);
    if (found) return found.text;
  }
  const failure = check.inputs.find(({ error }) => error)?.error;
  if (!check.verdict) return failure ? sentence(failure) : "";
  const rate = figures.find(({ ceiling, share }) => ceiling && share !== undefined);
  if (rate?.ceiling && rate.share !== undefined)
    return `${rate.printed} is ${ratio(rate.share)} of the ${bitrate(rate.ceiling.bitrate_bps)} that the ${words(rate.ceiling.limit)} allows.`;
  return "Nothing that is stated about the path contradicts it. The rate of the link would make the check sharper.";
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** "2 figures impossible, 13 possible". */
export function counted({ counts }: Check): string {
  const order: Verdict[] = ["impossible", "doubtful", "at_ceiling", "possible"];
  const parts = order.filter((name) => counts[name] > 0).map((name) => `${counts[name]} ${VERDICTS[name]}`);
  const all = order.reduce((sum, name) => sum + counts[name], 0);
  return `${plural(all, "figure")}: ${parts.join(", ")}.`;
}

export const VERDICTS: Record<Verdict, string> = {
  possible: "possible",
  at_ceiling: "at a ceiling",
  doubtful: "doubtful",
  impossible: "impossible",
};

/** The lines that say something, and how many others there are: intervals whose every figure is possible. */
export function told(lines: Line[]): { shown: Line[]; others: number } {
  const shown = lines.filter(
    ({ scope, figures }) => scope !== "interval" || figures.some(({ verdict }) => verdict !== "possible"),
  );
  return { shown: shown.slice(0, MAX_LINES), others: lines.length - Math.min(shown.length, MAX_LINES) };
}

/** A day's log has thousands of lines; a page shows the first ones. */
const MAX_LINES = 40;

const OUTCOMES: Record<Accepted, string> = {
  passed: "Accepted.",
  missing: "Not shown yet: something is missing.",
  failed: "Not accepted.",
};

/** Whether the rule is kept, in words. */
export const outcome = ({ verdict }: Acceptance) => OUTCOMES[verdict];

export const SIGNS: Record<Accepted, string> = { passed: "✓", missing: "?", failed: "✗" };
