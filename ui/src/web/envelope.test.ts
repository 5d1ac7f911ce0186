import { expect, test } from "vitest";
import { bindingLimits, carried, ceilingBars, type Envelope, facts, reason, seconds } from "./envelope";

const ceiling = (limit: string, bitrate_bps: number) => ({ limit, bitrate_bps, because: `of the ${limit}` });
const rates = { wire_bps: 1e9, frame_bps: 987e6, packet_bps: 975e6, payload_bps: 941.5e6 };

const windowed: Envelope = {
  binding: ceiling("receiver_window", 26e6),
  after_remedy: ceiling("link", 941.5e6),
  ceilings: [ceiling("receiver_window", 26e6), ceiling("link", 941.5e6)],
  rates,
};

const ranged: Envelope = {
  ...windowed,
  binding: ceiling("link", 941.5e6),
  ceilings: [ceiling("link", 941.5e6)],
  binding_limits: ["link", "loss"],
  bounds: {
    "/binding/bitrate_bps": { low: 70.9e6, high: 941.5e6 },
    "/ceilings/loss/bitrate_bps": { low: 70.9e6, high: 70.9e6, absent: true },
  },
};

test("the answer is a rate and what holds it, with what would be next", () => {
  expect(carried(windowed)).toBe("26.00 Mb/s");
  expect(reason(windowed)).toBe(
    "The limit is the receiver window: of the receiver_window. Without it, 941.5 Mb/s: then the link (of the link) is the limit.",
  );
});

test("with a range, the answer is a range, and every limit that may bind is named", () => {
  expect(carried(ranged)).toBe("70.90 Mb/s to 941.5 Mb/s");
  expect(bindingLimits(ranged)).toEqual(["link", "loss"]);
  expect(reason(ranged)).toContain("the link or the loss");
});

test("bars are on one logarithmic axis from a decade below the lowest to one above the highest", () => {
  const { bars, ticks } = ceilingBars(windowed);
  expect(bars.map(({ limit, binds }) => [limit, binds])).toEqual([
    ["receiver_window", true],
    ["link", false],
  ]);
  // 10 Mb/s to 1 Gb/s.
  expect(bars[0]?.low).toBeCloseTo(Math.log10(2.6) / 2, 6);
  expect(bars[1]?.low).toBeCloseTo(Math.log10(94.15) / 2, 6);
  expect(ticks).toEqual([
    { at: 0, label: "10 Mb/s" },
    { at: 0.5, label: "100 Mb/s" },
    { at: 1, label: "1 Gb/s" },
  ]);
});

test("a bar at a decade has a length too, and all bars end on the axis", () => {
  for (const bps of [1, 9.99e5, 1e6, 1e9, 1e15]) {
    const { bars } = ceilingBars({ ...windowed, ceilings: [ceiling("link", bps)] });
    expect(bars[0]?.low).toBeGreaterThan(0);
    expect(bars[0]?.high).toBeLessThanOrEqual(1);
  }
});

test("a ceiling at one end of a range only has a bar, in its place", () => {
  const { bars } = ceilingBars(ranged);
  expect(bars.map(({ limit, rate }) => [limit, rate])).toEqual([
    ["loss", "70.90 Mb/s or more"],
    ["link", "941.5 Mb/s"],
  ]);
});

test("long times are in hours and minutes", () => {
  expect([0.08, 119, 120, 3600, 35663].map(seconds)).toEqual([
    "80 ms",
    "119 s",
    "2 min",
    "1 h",
    "9 h 54 min",
  ]);
});

test("only what was computed is listed", () => {
  const names = (document: Envelope) => facts(document).map(([name]) => name);
  expect(names(windowed)).toEqual(["Link, wire", "Link, frames", "Link, packets", "Link, payload"]);
  const need = { bytes: 2e12, within_s: 28800, required_bps: 555e6, takes_s: 40000, fits: false };
  expect(facts({ ...windowed, need })[0]?.slice(0, 2)).toEqual(["Needed transfer", "does not fit"]);
});

test("a judgement that holds at one end of a range only is not that of all of it", () => {
  const about = (document: Partial<Envelope>) => {
    const all = { bounds: {}, ...document };
    return facts({ ...windowed, ...all })[0]?.slice(1);
  };
  const need = { bytes: 400e9, within_s: 3600, required_bps: 889e6, takes_s: 3399, fits: true };
  const takes = (low: number, high: number) =>
    about({ need, bounds: { "/need/takes_s": { low, high } } })?.[0];
  expect([takes(3399, 19074), takes(3399, 3600), takes(3601, 19074)]).toEqual([
    "only in a part of the given ranges",
    "fits",
    "does not fit",
  ]);
  const target = { bitrate_bps: 500e6, fits: true };
  const limit = { low: 168e6, high: 941.5e6 };
  const wanted = about({ target, bounds: { "/binding/bitrate_bps": limit } });
  expect(wanted?.[0]).toBe("only in a part of the given ranges");
  const offered = { bitrate_bps: 500e6 };
  const excess = (bounds: Envelope["bounds"]) => about({ offered, bounds: bounds ?? {} })?.[1];
  expect(excess({})).toBe("all of it fits");
  expect(excess({ "/offered/excess_ratio": { low: 0.664, high: 0.664, absent: true } })).toBe(
    "up to 66.4 % of it does not fit",
  );
  expect(excess({ "/offered/excess_ratio": { low: 0.2, high: 0.5 } })).toBe(
    "20.0 % to 50.0 % of it does not fit",
  );
});

test("what is said of one end of a range only is not said of all of it", () => {
  const bounds = {
    "/binding/bitrate_bps": { low: 26e6, high: 260e6 },
    "/ceilings/receiver_window/bitrate_bps": { low: 26e6, high: 260e6 },
    "/distance/stretch": { low: 0.5, high: 5 },
  };
  const document = { ...windowed, bounds, distance: { light_s: 0.02, stretch: 0.5 } };
  expect(reason(document)).toBe("In all of the given ranges the limit is the receiver window.");
  expect(ceilingBars(document).bars.map(({ because }) => because)).toEqual([
    "depends on the given ranges",
    "of the link",
  ]);
  expect(facts(document)[0]?.[2]).toBe(
    "in fibre of that length; the given one is 0.500 to 5.00 times that; less than 1 is impossible",
  );
});
