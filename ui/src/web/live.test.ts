import { expect, test } from "vitest";
import { extent } from "../charts/data";
import {
  chartOf,
  type Frame,
  fromSnapshot,
  type Live,
  type LiveFlow,
  latest,
  MAX_POINTS,
  progress,
  type Series,
  stage,
  withFrame,
} from "./live";

const flow = (more: Partial<LiveFlow> = {}): LiveFlow => ({
  flow: 0,
  name: "download",
  direction: "download",
  state: "running",
  ...more,
});
const frame = (more: Partial<Frame> = {}): Frame => ({
  state: "measuring",
  at_seconds: 1,
  flows: [flow()],
  ...more,
});
const empty = fromSnapshot({ frame: frame({ at_seconds: 0 }), series: [] });

test("a frame appends a point to each flow with a rate, and to no other", () => {
  const live = withFrame(
    empty,
    frame({
      flows: [
        flow({ bitrate_bps: 9e8, srtt_ns: 1000, retransmits: 0 }),
        flow({ flow: 1, name: "upload", direction: "upload", state: "planned" }),
      ],
    }),
  );
  expect(live.series).toEqual([
    { flow: 0, at_seconds: [1], bitrate_bps: [9e8], srtt_ns: [1000], retransmits: [0] },
  ]);
});

test("a flow that has ended keeps its last rate and gets no further point", () => {
  const running = withFrame(empty, frame({ flows: [flow({ bitrate_bps: 9e8 })] }));
  const ended = flow({ bitrate_bps: 9e8, state: "ended" });
  expect(withFrame(running, frame({ at_seconds: 2, flows: [ended] })).series).toEqual(running.series);
});

test("what is not known stays a gap and does not become zero", () => {
  const live = withFrame(empty, frame({ flows: [flow({ bitrate_bps: 0 })] }));
  expect(live.series[0]).toMatchObject({ bitrate_bps: [0], srtt_ns: [null], retransmits: [null] });
});

test("a snapshot after a lost connection replaces what was known, without doubling a point", () => {
  const before = withFrame(empty, frame({ flows: [flow({ bitrate_bps: 1 })] }));
  const series = [
    {
      flow: 0,
      at_seconds: [1, 1.5, 2],
      bitrate_bps: [1, 2, 3],
      srtt_ns: [null, 5, 6],
      retransmits: [0, 0, 0],
    },
  ];
  const now = fromSnapshot({ frame: frame({ at_seconds: 2 }), series }, before);
  expect(now.series).toEqual(series);
  // The frame of the snapshot again, and a late one.
  const same = withFrame(now, frame({ at_seconds: 2, flows: [flow({ bitrate_bps: 3 })] }));
  expect(withFrame(same, frame({ at_seconds: 1.5, flows: [flow({ bitrate_bps: 2 })] })).series).toEqual(
    series,
  );
});

test("folding does not change what was folded before", () => {
  const one = withFrame(empty, frame({ flows: [flow({ bitrate_bps: 1 })] }));
  withFrame(one, frame({ at_seconds: 2, flows: [flow({ bitrate_bps: 2 })] }));
  expect(one.series[0]?.at_seconds).toEqual([1]);
});

/** A test that goes on from one second to another, with frames of which each has its time as its values. */
function measured(live: Live, from: number, to: number): Live {
  let now = live;
  for (let at_seconds = from; at_seconds <= to; at_seconds += 1) {
    const values = { bitrate_bps: at_seconds, srtt_ns: at_seconds, retransmits: at_seconds };
    now = withFrame(now, frame({ at_seconds, flows: [flow(values)] }));
    const points = now.series[0]?.at_seconds.length ?? 0;
    if (points > MAX_POINTS) throw new Error(`${points} points at ${at_seconds} s`);
    if (now.series[0]?.at_seconds.at(-1) !== at_seconds) throw new Error(`not up to ${at_seconds} s`);
  }
  return now;
}

/** For tests of many frames on a busy machine. */
const LONG_MS = 30_000;

/** The times between the points of a series, without that before the newest one, which is there until the next. */
function gaps({ at_seconds: times }: Series): number[] {
  return times.slice(1, -1).map((at, before) => at - (times[before] ?? 0));
}

test(
  "a long test keeps its history in few points, the newest of them with each frame",
  () => {
    const [series] = measured(empty, 1, 40_000).series;
    if (!series) throw new Error("no series");
    const times = series.at_seconds;
    expect(times.length).toBeGreaterThan(MAX_POINTS / 4);
    expect(times[0]).toBeLessThan(40);
    expect(Math.min(...gaps(series))).toBeGreaterThan(0);
    expect(Math.max(...gaps(series))).toBeLessThan(40);
    // Each value stays with its time.
    expect([series.bitrate_bps, series.srtt_ns, series.retransmits]).toEqual([times, times, times]);
  },
  LONG_MS,
);

test("a test of ordinary length keeps every point", () => {
  expect(measured(empty, 1, MAX_POINTS).series[0]?.at_seconds.length).toBe(MAX_POINTS);
});

test(
  "what follows the snapshot of a long test is as far apart as the points of the snapshot",
  () => {
    const times = Array.from({ length: 4000 }, (_, at) => 20 * (at + 1));
    const series = [{ flow: 0, at_seconds: times, bitrate_bps: times, srtt_ns: times, retransmits: times }];
    const long = fromSnapshot({ frame: frame({ at_seconds: 80_000 }), series });
    const soon = measured(long, 80_001, 80_400).series[0];
    expect(soon?.at_seconds.length).toBeLessThan(4030);
    expect(Math.max(...(soon?.at_seconds.slice(4000) ?? []))).toBe(80_400);
    const later = measured(long, 80_001, 90_000).series[0];
    expect(later && Math.max(...gaps(later))).toBeLessThanOrEqual(40);
    // And a snapshot after a lost connection.
    const again = fromSnapshot(
      { frame: frame({ at_seconds: 80_000 }), series },
      measured(long, 80_001, 80_400),
    );
    expect(again.series[0]?.at_seconds).toEqual(times);
  },
  LONG_MS,
);

test("the time axis reaches to the expected end from the start and never shrinks", () => {
  const first = fromSnapshot({ frame: frame({ at_seconds: 0.4, left_seconds: 20 }), series: [] });
  expect(first.reach).toBe(21);
  const chart = chartOf(first);
  expect(extent(chart.panels, [], chart.x)).toEqual([0, 21]);
  const earlier = withFrame(first, frame({ at_seconds: 5, left_seconds: 3 }));
  expect(earlier.reach).toBe(21);
  expect(fromSnapshot({ frame: frame(), series: [] }, earlier).reach).toBe(21);
  expect(withFrame(first, frame({ at_seconds: 30 })).reach).toBe(30);
});

test("both panels are there before there are values, and each direction keeps its hue", () => {
  const flows = [flow(), flow({ flow: 1, name: "upload", direction: "upload", state: "planned" })];
  const { panels } = chartOf(fromSnapshot({ frame: frame({ flows }), series: [] }));
  // Nor does anything move once the server has said which flows there are.
  const unknown = chartOf(fromSnapshot({ frame: frame({ state: "connecting", flows: [] }), series: [] }));
  expect(unknown.panels).toEqual(panels);
  expect(panels.map((panel) => panel.lines.map((line) => [line.label, line.hue, line.y.length]))).toEqual([
    [
      ["download", "download", 0],
      ["upload", "upload", 0],
    ],
    [
      ["download", "latency", 0],
      ["upload", "latency", 0],
    ],
  ]);
});

test("UDP has no panel for a round-trip time that never comes", () => {
  const flows = [flow({ transport: "udp" })];
  expect(chartOf(fromSnapshot({ frame: frame({ flows }), series: [] })).panels.length).toBe(1);
});

test("a retransmission is a tick when the count grows, and nothing where it was not counted", () => {
  const series = [
    {
      flow: 0,
      at_seconds: [1, 2, 3, 4, 5],
      bitrate_bps: [1, 1, 1, 1, 1],
      srtt_ns: [1, 1, 1, 1, 1],
      retransmits: [0, 3, 3, null, 4],
    },
  ];
  const { panels } = chartOf(fromSnapshot({ frame: frame(), series }));
  expect(panels[0]?.ticks?.[0]?.at).toEqual([2, 5]);
});

test("figures are those of now, or the last ones once a flow has ended", () => {
  const live = withFrame(empty, frame({ flows: [flow({ bitrate_bps: 7, srtt_ns: 8 })] }));
  const ended = withFrame(live, frame({ at_seconds: 2, flows: [flow({ state: "ended", retransmits: 4 })] }));
  expect(latest(ended, flow({ state: "ended", retransmits: 4 }))).toEqual({
    bitrate: 7,
    srtt: 8,
    retransmits: 4,
  });
  expect(latest(empty, flow())).toEqual({});
});

test("the stage is said without figures that change with each frame", () => {
  expect(stage(frame({ state: "queued", position: 2 }))).toBe("Waiting at the server, number 2 in its queue");
  expect(stage(frame({ state: "idle_latency" }))).toBe("Measuring idle latency");
  const flows = [flow({ elapsed_seconds: 7.9, of_seconds: 10 }), flow({ name: "upload", state: "running" })];
  expect(stage(frame({ flows }))).toBe("Measuring download and upload");
  expect(stage(frame({ flows: [flow({ state: "ended" }), flow({ state: "planned" })] }))).toBe("Measuring");
  expect(stage(frame({ flows: [flow({ state: "ended" })] }))).toBe("Finishing");
  expect(progress(frame({ flows }))).toBe("7 of 10 s");
  expect(progress(frame({ flows: [flow({ elapsed_seconds: 3.2 })] }))).toBe("3 s");
  expect(progress(frame())).toBeUndefined();
});
