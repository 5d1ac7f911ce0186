import { expect, test } from "vitest";
import type { Frame, Live } from "./live";
import { countsStreams, streamsChartOf, withStreams } from "./liveStreams";

const frame = (streams: number): Frame => ({
  state: "measuring",
  at_seconds: 3,
  flows: [{ flow: 1, name: "upload", direction: "upload", transport: "tcp", streams, state: "running" }],
});
const live = (streams: number): Live => ({ frame: frame(streams), series: [], sizes: [], reach: 10 });
const message = (at_seconds: number, bytes: number[]) => ({ flows: [{ flow: 1, at_seconds, bytes }] });

test("streams can be opened once the server has counted them", () => {
  const planned = frame(2);
  expect(countsStreams(planned)).toBe(false);
  const counted = planned.flows.map((flow) => ({ ...flow, counts_streams: true }));
  expect(countsStreams({ ...planned, flows: counted })).toBe(true);
});

test("each two counts are a column with the rates of all streams", () => {
  let streams = withStreams(undefined, "snapshot", {
    flows: [{ flow: 1, at_seconds: [1], bytes: [[1000, 0]] }],
  });
  expect(streamsChartOf(live(2), streams ?? [])).toBeUndefined();
  streams = withStreams(streams, "frame", message(1.5, [2000, 0]));
  // One that came twice, and one that is older, add nothing.
  streams = withStreams(streams, "frame", message(1.5, [9000, 0]));
  streams = withStreams(streams, "frame", message(3.5, [2000, 500]));
  streams = withStreams(streams, "end", {});
  const cells = streamsChartOf(live(2), streams ?? [])?.panels[0]?.cells;
  expect(cells?.x).toEqual([1, 1.5, 3.5]);
  expect(cells?.columns).toEqual([
    [16_000, 0],
    [0, 2000],
  ]);
});

test("a day of counts stays small and keeps its beginning", () => {
  let streams = withStreams(undefined, "snapshot", { flows: [] });
  for (let at = 1; at <= 5000; at += 1) streams = withStreams(streams, "frame", message(at, [at * 10, 0]));
  const kept = streams?.[0];
  const times = kept?.at_seconds ?? [];
  expect(times.length).toBeGreaterThan(100);
  expect(times.length).toBeLessThanOrEqual(240);
  expect(times[0]).toBe(1);
  expect(times.at(-1)).toBeGreaterThan(4900);
  const widths = times.slice(1).map((at, before) => at - (times[before] ?? 0));
  expect(Math.max(...widths) / Math.min(...widths)).toBeLessThan(3);
});
