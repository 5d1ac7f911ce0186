// An emulated network: messages of its stream folded into what the page shows, and where its parts are drawn.

import type { Chart } from "../page";

export interface LabPort {
  wire_bps: number;
  pps: number;
  busy: number;
  queue_bytes: number;
  /** Of a LAG, what waits at each of its members. */
  members_queue_bytes?: number[];
  queue_max_bytes: number;
  dropped: number;
  dropped_queue: number;
  marked: number;
}

export interface LabFrame {
  up_ns?: number;
  /** Of each link, the port at its first end, then the one at its second end; none in a network of the kernel. */
  ports: LabPort[];
  switch?: { cpu: number; frames: number; late: number; late_bound_ns: number; overrun: number };
}

export interface LabDirection {
  rate_bps?: number;
  /** The rate of the line, or of a slower shaper. */
  drain_bps?: number;
  buffer_bytes: number;
  delay_ns: number;
}

export interface LabLink {
  name: string;
  ends: [string, string];
  members: number;
  directions: [LabDirection, LabDirection];
}

export interface LabSnapshot {
  name: string;
  topology: string;
  seed: number;
  backend: "switch" | "kernel";
  hosts: { name: string; address: string; address6: string }[];
  switches: string[];
  links: LabLink[];
  notes: string[];
  frame: LabFrame;
  history: { at_ns: number[]; queue_max_bytes: number[][] };
}

/** What is known of a network that is watched. */
export interface Lab extends LabSnapshot {
  /** What each port has dropped since the last message. */
  drops: Drops[];
}

/** Packets that a port has dropped. */
export interface Drops {
  all: number;
  /** Those that its queue had no place for. */
  queue: number;
}

const NONE: Drops = { all: 0, queue: 0 };
/** Messages are half a second apart. After a longer pause, it is not known when something was dropped. */
const MAX_PAUSE_NS = 2e9;

/** Values of the history that are kept: one minute. */
const MAX_HISTORY = 120;
/** The most lines of a chart whose colours differ. */
const MAX_LINES = 6;

/** The same after a message of the stream. */
export function withLabMessage(lab: Lab | undefined, event: string, data: unknown): Lab | undefined {
  if (event === "snapshot") {
    const snapshot = data as LabSnapshot;
    const before = lab?.name === snapshot.name ? lab.frame : undefined;
    return { ...snapshot, drops: dropsSince(before, snapshot.frame) };
  }
  if (event !== "frame" || !lab) return lab;
  const frame = data as LabFrame;
  const { history } = lab;
  // A frame that the snapshot already had.
  const isNew = frame.up_ns !== undefined && frame.up_ns > (history.at_ns.at(-1) ?? -1);
  const append = <T>(values: T[], value: T) => [...values, value].slice(-MAX_HISTORY);
  return {
    ...lab,
    frame,
    drops: dropsSince(lab.frame, frame),
    history: isNew
      ? {
          at_ns: append(history.at_ns, frame.up_ns as number),
          queue_max_bytes: frame.ports.map((port, at) =>
            append(history.queue_max_bytes[at] ?? [], port.queue_max_bytes),
          ),
        }
      : history,
  };
}

function dropsSince(before: LabFrame | undefined, now: LabFrame): Drops[] {
  const passed = (now.up_ns ?? 0) - (before?.up_ns ?? 0);
  if (!before || passed < 0 || passed > MAX_PAUSE_NS) return now.ports.map(() => NONE);
  const since = (port: LabPort, last: LabPort | undefined, key: "dropped" | "dropped_queue") =>
    Math.max(0, port[key] - (last?.[key] ?? port[key]));
  return now.ports.map((port, at) => {
    const last = before.ports[at];
    return { all: since(port, last, "dropped"), queue: since(port, last, "dropped_queue") };
  });
}

/** One direction of a link with its port, for a row of the table and an end in the drawing. */
export interface Port {
  from: string;
  to: string;
  link: LabLink;
  direction: LabDirection;
  /** Absent in a network of the kernel. */
  now: LabPort | undefined;
  /** Since the last message. */
  drops: Drops;
}

export function portsOf({ links, frame, drops }: Lab): Port[] {
  return links.flatMap((link, number) =>
    ([0, 1] as const).map((end) => ({
      from: link.ends[end],
      to: link.ends[1 - end] as string,
      link,
      direction: link.directions[end],
      now: frame.ports[2 * number + end],
      drops: drops[2 * number + end] ?? NONE,
    })),
  );
}

/** A queue, as a share of its buffer and as the time until it is sent. */
export interface Queue {
  /** At most 1. */
  fill: number;
  /** Nanoseconds; undefined if the line is infinitely fast. */
  wait: number | undefined;
}

/** The queue of a port when `bytes` wait at it, all members of a LAG together. */
export function queueOf(bytes: number, { direction, link }: Port): Queue {
  return memberQueue(bytes / link.members, direction, link.members);
}

/** The longest queue of a port now: that of the fullest member of a LAG. */
export function fullestQueue({ direction, link, now }: Port): Queue {
  const { members_queue_bytes, queue_bytes = 0 } = now ?? {};
  const bytes = members_queue_bytes ? Math.max(...members_queue_bytes) : queue_bytes / link.members;
  return memberQueue(bytes, direction, link.members);
}

function memberQueue(bytes: number, { buffer_bytes, drain_bps }: LabDirection, members: number): Queue {
  return {
    fill: buffer_bytes > 0 ? Math.min(1, (bytes * members) / buffer_bytes) : 0,
    wait: drain_bps === undefined || drain_bps <= 0 ? undefined : (bytes * members * 8e9) / drain_bps,
  };
}

/** The longest queues of the last minute; undefined if nothing waited anywhere. */
export function queueChartOf(lab: Lab): Chart | undefined {
  const { at_ns, queue_max_bytes } = lab.history;
  const now = at_ns.at(-1) ?? 0;
  const x = at_ns.map((at) => (at - now) / 1e9);
  const lines = portsOf(lab)
    .map(({ from, to }, at) => ({ label: `${from} → ${to}`, y: queue_max_bytes[at] ?? [], at }))
    .map((line) => ({ ...line, most: Math.max(0, ...line.y) }))
    .filter(({ most }) => most > 0)
    .sort((a, b) => b.most - a.most || a.at - b.at)
    .slice(0, MAX_LINES)
    .sort((a, b) => a.at - b.at);
  if (lines.length === 0 || x.length < 2) return undefined;
  return {
    kind: "time",
    title: "",
    x: { label: "time until now", unit: "s", log: false, fitted: true },
    panels: [
      {
        y: { label: "waiting, the most in a second", unit: "bytes", log: false },
        lines: lines.map(({ label, y }) => ({ label, style: "line", x, y })),
      },
    ],
  };
}

/** Where a host or a switch is drawn: column and row, from 0. */
export interface Place {
  name: string;
  isHost: boolean;
  column: number;
  row: number;
}

export interface Drawing {
  places: Place[];
  columns: number;
  rows: number;
}

/**
 * Where hosts and switches are drawn: switches one after the other along the path through them, with hosts on the
 * outside. Hosts of a switch in the middle are above and below it, or, if they are many, after it.
 */
export function drawingOf({
  hosts,
  switches,
  links,
}: Pick<LabSnapshot, "hosts" | "switches" | "links">): Drawing {
  const names = hosts.map((host) => host.name);
  const neighbours = (name: string) =>
    links.flatMap(({ ends }) => (ends[0] === name ? [ends[1]] : ends[1] === name ? [ends[0]] : []));
  // Without a switch, hosts are joined directly.
  const inner = switches.length > 0 ? switches : names;
  const distances = (from: string | undefined) => {
    const found = new Map(from === undefined ? [] : [[from, 0]]);
    for (const name of found.keys())
      for (const next of neighbours(name))
        if (inner.includes(next) && !found.has(next)) found.set(next, (found.get(name) ?? 0) + 1);
    return found;
  };
  // The ends of the longest path, that of the first host at its begin.
  const first =
    switches.length > 0 ? neighbours(names[0] ?? "").find((name) => inner.includes(name)) : names[0];
  const fromFirst = distances(first ?? inner[0]);
  const byDistance = (found: Map<string, number>) =>
    [...found].sort((a, b) => b[1] - a[1] || (fromFirst.get(a[0]) ?? 0) - (fromFirst.get(b[0]) ?? 0));
  const end = byDistance(fromFirst)[0]?.[0];
  const ranks = distances(byDistance(distances(end))[0]?.[0]);
  const last = Math.max(0, ...ranks.values());
  const columns = new Map<string, number>();
  for (const name of inner) columns.set(name, 2 * (ranks.get(name) ?? 0) + 1);
  if (switches.length > 0) {
    const ofSwitch = new Map<string, string[]>();
    for (const name of names) {
      const at = neighbours(name).find((next) => inner.includes(next)) ?? inner[0] ?? "";
      ofSwitch.set(at, [...(ofSwitch.get(at) ?? []), name]);
    }
    for (const [at, attached] of ofSwitch) {
      const rank = ranks.get(at) ?? 0;
      const isAlone = inner.filter((name) => (ranks.get(name) ?? 0) === rank).length === 1;
      const inside = attached.length <= 2 && isAlone ? 2 * rank + 1 : 2 * rank + 2;
      const half = last === 0 ? Math.ceil(attached.length / 2) : attached.length;
      for (const [number, name] of attached.entries())
        columns.set(name, rank === 0 && number < half ? 0 : rank === last ? 2 * last + 2 : inside);
    }
  }
  const isHost = (name: string) => names.includes(name);
  const all = [...inner, ...names.filter((name) => !inner.includes(name))];
  return inColumns(all, columns, neighbours, isHost);
}

/** Columns without gaps; in each, the rows of what is joined to the column before come in its order. */
function inColumns(
  all: string[],
  columns: Map<string, number>,
  neighbours: (name: string) => string[],
  isHost: (name: string) => boolean,
): Drawing {
  const used = [...new Set(columns.values())].sort((a, b) => a - b);
  const groups = used.map((column) => all.filter((name) => columns.get(name) === column));
  const places = new Map<string, Place>();
  const drawn = groups.map((group, column) => {
    const before = (name: string) => {
      const found = neighbours(name).flatMap((next) => places.get(next)?.row ?? []);
      return found.length > 0 ? found.reduce((sum, row) => sum + row, 0) / found.length : 0;
    };
    const sorted = group.map((name) => [name, before(name)] as const).sort((a, b) => a[1] - b[1]);
    const names = sorted.map(([name]) => name);
    const isInside = column > 0 && column < groups.length - 1;
    const slots = isInside ? aroundTheMiddle(names, isHost) : names;
    // Each column is around row 0.
    for (const [number, name] of slots.entries())
      if (name !== undefined)
        places.set(name, { name, isHost: isHost(name), column, row: number - (slots.length - 1) / 2 });
    return slots.length;
  });
  const rows = Math.max(1, ...drawn);
  const moved = [...places.values()].map((place) => ({ ...place, row: place.row + (rows - 1) / 2 }));
  return { places: moved, columns: used.length, rows };
}

/** What is in a column between others, in its order; hosts leave the middle to a switch, or to the link that passes. */
function aroundTheMiddle(names: string[], isHost: (name: string) => boolean): (string | undefined)[] {
  const hosts = names.filter(isHost);
  if (hosts.length === 0) return names;
  const inner = names.filter((name) => !isHost(name));
  const half = Math.ceil(hosts.length / 2);
  const [above, below] = [hosts.slice(0, half), hosts.slice(half)];
  return [
    ...above,
    ...(inner.length > 0 ? inner : [undefined]),
    ...below,
    ...(below.length < half ? [undefined] : []),
  ];
}
