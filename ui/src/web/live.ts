// A run while it is measured: messages of its stream folded into what the page shows. Live and finished runs are
// drawn by the same charts.

import type { Chart, Line, Ticks } from "../page";
import type { Direction } from "./api";

export interface LiveFlow {
  flow: number;
  name: string;
  direction: Direction;
  transport?: string;
  streams?: number;
  state: "planned" | "running" | "ended";
  elapsed_seconds?: number;
  of_seconds?: number;
  bitrate_bps?: number;
  /** The mean of a flow that has ended. */
  mean_bps?: number;
  srtt_ns?: number;
  retransmits?: number;
  /** Whether the server counts its streams one by one. */
  counts_streams?: boolean;
}

export interface Frame {
  state: "connecting" | "queued" | "idle_latency" | "measuring" | "ended";
  position?: number;
  left_seconds?: number;
  at_most?: boolean;
  at_seconds: number;
  idle_rtt_ns?: number;
  /** A series over message sizes. */
  by_size?: boolean;
  flows: LiveFlow[];
}

/** A message size that was measured. */
export interface Size {
  message_bytes: number;
  one_way_ns: number;
  bitrate_bps?: number;
}

type Values = (number | null)[];

export interface Series {
  flow: number;
  at_seconds: number[];
  bitrate_bps: Values;
  srtt_ns: Values;
  retransmits: Values;
  /** Least time between two points, in seconds, once there were too many of them; the newest point may be nearer. */
  gap?: number;
}

export interface Live {
  frame: Frame;
  series: Series[];
  /** The smallest first. */
  sizes: Size[];
  /** End of the time axis, in seconds: it never shrinks, so that the picture does not jump. */
  reach: number;
}

export interface Snapshot {
  frame: Frame;
  series: Series[];
  sizes?: Size[];
}

/** Points after which every second one is dropped, as the server does: a test of a day stays small. */
export const MAX_POINTS = 4096;
/** Part of the least time between two points after which a point is not early: frames come a little too soon or late. */
const EARLY = 0.9;

/** The whole of a run so far, at the beginning of a stream: replaces what was known. */
export function fromSnapshot(snapshot: Snapshot, before?: Live): Live {
  const { frame, sizes = [] } = snapshot;
  const series = snapshot.series.map(asSpaced);
  const last = Math.max(0, ...series.map(({ at_seconds }) => at_seconds.at(-1) ?? 0));
  return { frame, series, sizes, reach: Math.max(before?.reach ?? 0, last, expected(frame)) };
}

/** The next frame: a point for each flow that runs. One that has ended keeps its last rate, which is no news. */
export function withFrame(live: Live, frame: Frame): Live {
  const series = [...live.series];
  for (const flow of frame.flows) {
    if (flow.state !== "running" || flow.bitrate_bps === undefined || flow.bitrate_bps === null) continue;
    const at = series.findIndex((one) => one.flow === flow.flow);
    const old = series[at] ?? {
      flow: flow.flow,
      at_seconds: [],
      bitrate_bps: [],
      srtt_ns: [],
      retransmits: [],
    };
    // The time of an axis ascends.
    if (frame.at_seconds <= (old.at_seconds.at(-1) ?? Number.NEGATIVE_INFINITY)) continue;
    const grown = withPoint(old, frame.at_seconds, flow);
    if (at < 0) series.push(grown);
    else series[at] = grown;
  }
  return { ...live, frame, series, reach: Math.max(live.reach, frame.at_seconds, expected(frame)) };
}

/** One more point. One that follows its predecessor early is only shown until the next one comes. */
function withPoint(series: Series, at_seconds: number, flow: LiveFlow): Series {
  const { at_seconds: times, gap } = series;
  const [last, before] = [times.at(-1), times.at(-2)];
  const isEarly =
    gap !== undefined && last !== undefined && before !== undefined && last - before < EARLY * gap;
  const kept = !isEarly && times.length >= MAX_POINTS ? halved(series) : series;
  const append = <T>(values: T[], value: T): T[] => {
    const grown = values.slice(0, isEarly ? -1 : undefined);
    grown.push(value);
    return grown;
  };
  return {
    ...kept,
    at_seconds: append(kept.at_seconds, at_seconds),
    bitrate_bps: append(kept.bitrate_bps, flow.bitrate_bps ?? null),
    srtt_ns: append(kept.srtt_ns, flow.srtt_ns ?? null),
    retransmits: append(kept.retransmits, flow.retransmits ?? null),
  };
}

/** Every second point of a series, the last one among them; further points are as far apart as those that remain. */
function halved(series: Series): Series {
  const odd = series.at_seconds.length % 2;
  const half = <T>(values: T[]): T[] => values.filter((_, at) => at % 2 !== odd);
  return spaced({
    ...series,
    at_seconds: half(series.at_seconds),
    bitrate_bps: half(series.bitrate_bps),
    srtt_ns: half(series.srtt_ns),
    retransmits: half(series.retransmits),
  });
}

/** A series of a snapshot. The server may have dropped points of a long one: what follows is as far apart. */
const asSpaced = (series: Series): Series =>
  series.at_seconds.length > MAX_POINTS / 2 ? spaced(series) : series;

/** A series whose further points are as far apart as its present ones in the mean. */
function spaced(series: Series): Series {
  const { at_seconds: times } = series;
  return { ...series, gap: ((times.at(-1) ?? 0) - (times[0] ?? 0)) / (times.length - 1) };
}

/** The time at which the run ends, as far as it is known, rounded up to whole seconds so that it seldom changes. */
function expected(frame: Frame): number {
  if (frame.left_seconds === undefined || frame.left_seconds === null) return 0;
  return Math.ceil(frame.at_seconds + frame.left_seconds);
}

/** The shortest time axis: a run that has just begun. */
const SHORTEST_SECONDS = 2;

/** What is shown before the server has said what it will measure: the room for it. */
const UNKNOWN: LiveFlow[] = [
  { flow: 0, name: "download", direction: "download", state: "planned" },
  { flow: 1, name: "upload", direction: "upload", state: "planned" },
];

/** The flows of a run, or the room for them. */
export const flowsOf = ({ flows }: Frame): LiveFlow[] => (flows.length > 0 ? flows : UNKNOWN);

/** The charts of a run so far. Both panels are there from the start, so that nothing moves. */
export function chartOf(live: Live): Chart {
  const flows = flowsOf(live.frame);
  const seriesOf = (flow: LiveFlow) => live.series.find((one) => one.flow === flow.flow);
  const lines = (value: "bitrate_bps" | "srtt_ns"): Line[] =>
    flows.map((flow) => ({
      label: flow.name,
      style: "line",
      hue: value === "srtt_ns" ? "latency" : flow.direction,
      x: seriesOf(flow)?.at_seconds ?? [],
      y: seriesOf(flow)?.[value] ?? [],
    }));
  const ticks: Ticks[] = flows.map((flow) => ({
    label: flow.name,
    hue: flow.direction,
    at: increases(seriesOf(flow)),
  }));
  return {
    kind: "time",
    title: "",
    x: { label: "time", unit: "s", log: false, reach: Math.max(SHORTEST_SECONDS, live.reach) },
    panels: [
      { y: { label: "rate", unit: "bit/s", log: false }, lines: lines("bitrate_bps"), ticks },
      // Only TCP knows a round-trip time while it sends.
      ...(flows.some((flow) => flow.transport !== "udp")
        ? [{ y: { label: "round-trip time", unit: "ns", log: false }, lines: lines("srtt_ns") }]
        : []),
    ],
  };
}

/** The curves of a series over message sizes so far; undefined before there are two. */
export function sizesChartOf({ sizes }: Live): Chart | undefined {
  if (sizes.length < 2) return undefined;
  const x = sizes.map((size) => size.message_bytes);
  // A logarithmic axis has no 0.
  const above0 = (value: number | undefined) => (value ? value : null);
  const line = (value: (size: Size) => number | undefined): Line => ({
    label: "so far",
    style: "points",
    x,
    y: sizes.map((size) => above0(value(size))),
  });
  return {
    kind: "sweep",
    title: "",
    x: { label: "message size", unit: "bytes", log: true },
    panels: [
      {
        y: { label: "bit rate of payload", unit: "bit/s", log: true },
        lines: [line((size) => size.bitrate_bps)],
      },
      {
        y: { label: "time of a message", unit: "ns", log: true },
        lines: [line((size) => size.one_way_ns)],
      },
    ],
  };
}

/** The times at which a count that only grows has grown. */
function increases(series: Series | undefined): number[] {
  let last = 0;
  return (series?.at_seconds ?? []).filter((_, at) => {
    const count = series?.retransmits[at] ?? last;
    const grown = count > last;
    last = count;
    return grown;
  });
}

/** The values of a flow to show in figures: those of now, or the last ones once it has ended. */
export function latest(
  live: Live,
  flow: LiveFlow,
): { bitrate?: number; srtt?: number; retransmits?: number } {
  const series = live.series.find((one) => one.flow === flow.flow);
  const last = (values: Values | undefined) => values?.filter((value) => value !== null).at(-1);
  const pick = (now: number | null | undefined, then: number | undefined) => now ?? then;
  const bitrate = pick(flow.bitrate_bps, last(series?.bitrate_bps));
  const srtt = pick(flow.srtt_ns, last(series?.srtt_ns));
  const retransmits = pick(flow.retransmits, last(series?.retransmits));
  return {
    ...(bitrate === undefined ? {} : { bitrate }),
    ...(srtt === undefined ? {} : { srtt }),
    ...(retransmits === undefined ? {} : { retransmits }),
  };
}

/** What the run is doing, without figures that change all the time: for the heading and for screen readers. */
export function stage(frame: Frame): string {
  switch (frame.state) {
    case "connecting":
      return "Connecting";
    case "queued":
      return frame.position
        ? `Waiting at the server, number ${frame.position} in its queue`
        : "Waiting at the server";
    case "idle_latency":
      return "Measuring idle latency";
    case "ended":
      return "Ended";
    default: {
      if (frame.by_size) return "Measuring one message size after the other";
      const running = frame.flows.filter((flow) => flow.state === "running").map((flow) => flow.name);
      if (running.length > 0) return `Measuring ${running.join(" and ")}`;
      // The hosts exchange their results.
      return frame.flows.every((flow) => flow.state === "ended") ? "Finishing" : "Measuring";
    }
  }
}

/** How far the running flows are: "7 of 10 s". */
export function progress(frame: Frame): string | undefined {
  const flow = frame.flows.find((one) => one.state === "running");
  if (flow?.elapsed_seconds === undefined) return undefined;
  const elapsed = Math.floor(flow.elapsed_seconds);
  return flow.of_seconds === undefined || flow.of_seconds === null
    ? `${elapsed} s`
    : `${elapsed} of ${Math.round(flow.of_seconds * 10) / 10} s`;
}
