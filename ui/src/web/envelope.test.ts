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
