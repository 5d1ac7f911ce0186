// Words for people.

import { bitrate, span } from "../units";

/** A dash is "not measured"; zero is zero. */
export const NOTHING = "—";

export const rate = (bps: number | null | undefined) =>
  bps === null || bps === undefined ? NOTHING : bitrate(bps);

/** The cause of a verdict on a figure that cannot be true. */
export const IMPOSSIBLE = "impossible";

/** The rate of a flow, as far as it can be true: one that is not possible must not look like one that is. */
export const flowRate = ({
  bitrate_bps,
  cause,
}: {
  bitrate_bps?: number | undefined;
  cause?: string | undefined;
}) => (cause === IMPOSSIBLE ? IMPOSSIBLE : rate(bitrate_bps));

export const time = (ns: number | null | undefined) =>
  ns === null || ns === undefined ? NOTHING : span(Math.round(ns));

/** Number and unit, so that they can have different sizes. */
export function parts(quantity: string): [string, string] {
  const at = quantity.lastIndexOf(" ");
  return at < 0 ? [quantity, ""] : [quantity.slice(0, at), quantity.slice(at + 1)];
}

/** "1 test", "2 tests". */
export const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`;

const two = (value: number) => String(value).padStart(2, "0");

/** The time of day here, with seconds. */
export const clock = (at: Date) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

/** When something was: the time of day if it was today, and the day too if not. */
export function when(at: string, now = new Date()): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const hours = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.toDateString() === now.toDateString() ? hours : `${day} ${hours}`;
}

/**
 * The moment at which a day, as fields for days have it, begins here, or a day some days later; another text as it is.
 */
export function beginning(day: string, later = 0): string {
  const [, year, month, date] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day) ?? [];
  if (date === undefined) return day;
  return new Date(Number(year), Number(month) - 1, Number(date) + later).toISOString();
}

/** A name of the program as words: "sender_window" is "sender window". */
export const words = (name: string) => name.replaceAll("_", " ");

export const ARROWS = { download: "↓", upload: "↑" } as const;

/** Causes of a verdict, for the filter of the history. */
export const CAUSES = [
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
  "browser",
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
  "host_busy",
  IMPOSSIBLE,
  "invalid",
  "unknown",
];

/** Where a run may have been measured. */
export const WORLDS: [string, string][] = [
  ["hosts", "real hosts"],
  ["lab", "an emulated network"],
  ["twin", "virtual time"],
];
