// The single streams of a run while it is measured, as a heat map.

import type { Chart, Panel } from "../page";
import { type Frame, flowsOf, type Live } from "./live";

/** What the streams of a flow have moved since its start, at some moments. */
export interface Streams {
  flow: number;
  at_seconds: number[];
  bytes: number[][];
  /** Least time between two moments. */
  gap?: number;
}

interface Moment {
  flow: number;
  at_seconds: number;
  bytes: number[];
}

/** With this number of moments, the least time between two of them grows to twice the mean. */
const MOST_MOMENTS = 240;
/** Part of that time after which a moment is not early. */
const EARLY = 0.9;

/** Whether a run has flows whose streams are counted one by one. */
export const countsStreams = ({ flows }: Frame): boolean => flows.some((flow) => flow.counts_streams);

/** The streams after a message about them. */
export function withStreams(
  known: Streams[] | undefined,
  event: string,
  data: unknown,
): Streams[] | undefined {
  if (event === "snapshot") return (data as { flows: Streams[] }).flows;
  if (event !== "frame") return known;
  const all = [...(known ?? [])];
  for (const moment of (data as { flows: Moment[] }).flows) {
    const at = all.findIndex(({ flow }) => flow === moment.flow);
    const before = all[at] ?? { flow: moment.flow, at_seconds: [], bytes: [] };
    if (moment.at_seconds <= (before.at_seconds.at(-1) ?? Number.NEGATIVE_INFINITY)) continue;
    const grown = withMoment(before, moment);
    if (at < 0) all.push(grown);
    else all[at] = grown;
  }
  return all;
}

function withMoment(streams: Streams, { at_seconds, bytes }: Moment): Streams {
  const { at_seconds: times, gap = 0 } = streams;
  if (at_seconds < (times.at(-1) ?? Number.NEGATIVE_INFINITY) + EARLY * gap) return streams;
  if (times.length < MOST_MOMENTS)
    return { ...streams, at_seconds: [...times, at_seconds], bytes: [...streams.bytes, bytes] };
  const wider = ((at_seconds - (times[0] ?? 0)) * 2) / MOST_MOMENTS;
  let last = Number.NEGATIVE_INFINITY;
  const kept = times.map((at) => {
    const keep = at >= last + EARLY * wider;
    if (keep) last = at;
    return keep;
  });
  return {
    ...streams,
    at_seconds: [...times.filter((_, at) => kept[at]), at_seconds],
    bytes: [...streams.bytes.filter((_, at) => kept[at]), bytes],
    gap: wider,
  };
}

/** The heat maps of the flows with several streams, over the same time as the rates; undefined before two counts. */
export function streamsChartOf(live: Live, all: Streams[]): Chart | undefined {
  const panels = flowsOf(live.frame).flatMap((flow): Panel[] => {
    const streams = all.find((one) => one.flow === flow.flow);
    const columns = streams ? bitrates(streams) : [];
    if (!streams || columns.length === 0) return [];
    return [
      {
        y: { label: `${flow.name}, ${streams.bytes[0]?.length} streams`, unit: "1", log: false },
        lines: [],
        cells: {
          label: `${flow.name}: bit rate of each stream`,
          unit: "bit/s",
          hue: flow.direction,
          x: streams.at_seconds,
          columns,
        },
      },
    ];
  });
  if (panels.length === 0) return undefined;
  return { kind: "time", title: "", x: { label: "time", unit: "s", log: false, reach: live.reach }, panels };
}

/** The bit rate of each stream between each two moments. */
function bitrates({ at_seconds, bytes }: Streams): number[][] {
  return bytes.slice(1).map((after, at) => {
    const seconds = (at_seconds[at + 1] ?? 0) - (at_seconds[at] ?? 0);
    return after.map((count, stream) => (Math.max(0, count - (bytes[at]?.[stream] ?? 0)) * 8) / seconds);
  });
}
