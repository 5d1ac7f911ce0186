import { expect, test } from "vitest";
import type { Line, Panel } from "../page";
import { extent, heading, nearest, table, zoomOf } from "./data";

const line = (more: Partial<Line>): Line => ({
  label: "a",
  style: "line",
  x: [1, 2, 3],
  y: [10, null, 30],
  ...more,
});
const panel = (lines: Line[], more: Partial<Panel> = {}): Panel => ({
  y: { label: "rate", unit: "bit/s", log: false },
  lines,
  ...more,
});
const axis = { label: "time", unit: "s", log: false };

test("lines with different times share one axis, a gap stays a gap, and the panel reaches over the whole figure", () => {
  const { columns, data } = table(
    panel([line({}), line({ label: "b", x: [2.5], y: [7] })]),
    [0, 9],
    new Map(),
  );
  expect(columns.map((column) => column.label)).toEqual(["a", "b"]);
  expect(data[0]).toEqual([0, 1, 2, 2.5, 3, 9]);
  // Null ends a line, undefined only means that the other line has a value there.
  expect(data[1]).toEqual([undefined, 10, null, undefined, 30, undefined]);
  expect(data[2]).toEqual([undefined, undefined, undefined, 7, undefined, undefined]);
});

test("a ceiling far above the values is said, a near one is drawn", () => {
  const levels = [
    { label: "near", value: 40 },
    { label: "far", value: 1e9 },
  ];
  const far = panel([line({})], { levels });
  const { columns, data, above } = table(far, [0, 4], new Map());
  expect(columns.map(({ label, role }) => [label, role])).toEqual([
    ["a", "value"],
    ["near", "level"],
  ]);
  expect([data[2]?.[0], data[2]?.at(-1)]).toEqual([40, 40]);
  expect(heading(far, above)).toBe("rate (b/s); far 1.000 Gb/s is above the diagram");
});

test("a quantity that never came says so, since there is nothing to see", () => {
  expect(heading(panel([line({ y: [0, null, 0] })]), [])).toBe("rate (b/s); 0 throughout");
});

test("intervals are columns next to their line, and a logarithmic axis has no place for zero", () => {
  const points = line({ style: "points", y: [0, 2, 3], low: [0, 1, 2], high: [1, 3, 4] });
  const { columns, data } = table(
    panel([points], { y: { label: "t", unit: "ns", log: true } }),
    [1, 3],
    new Map(),
  );
  expect(columns.map((column) => column.role)).toEqual(["value", "high", "low"]);
  expect([data[1], data[3]]).toEqual([
    [null, 2, 3],
    [null, 1, 2],
  ]);
});

test("the words of the catalogue come along", () => {
  const entry = {
    name: "x.y",
    doc: " Definition.\n",
    unit: "1",
    kind: "gauge",
    better: "higher",
    source: "",
  };
  const { columns } = table(panel([line({ metric: "x.y" })]), [1, 3], new Map([["x.y", entry]]));
  expect(columns[0]?.help).toBe("Definition.");
});

test("the axis reaches over lines and bands; a logarithmic one ends at round numbers", () => {
  expect(extent([panel([line({})])], [{ to: 5, text: "", caveat: false }], axis)).toEqual([1, 5]);
  expect(extent([panel([line({ x: [4], y: [1] })])], [], axis)).toEqual([3.5, 4.5]);
  expect(extent([], [], axis)).toEqual([0, 1]);
  const log = { label: "", unit: "ns", log: true };
  expect(extent([panel([line({ x: [0, 7830, 1_170_000], y: [1, 1, 1] })])], [], log)).toEqual([
    7000, 2_000_000,
  ]);
  expect(extent([panel([line({ x: [7830, 1_170_000], y: [1, 1] })])], [], log)).toEqual([7000, 2_000_000]);
  expect(extent([panel([line({ x: [3, 5], y: [1, 1] })])], [], { ...log, unit: "bytes" })).toEqual([2, 8]);
});

test("the cursor reads the nearest value of every line, also where only another line has one", () => {
  const x = [0, 1, 2, 2.5, 3, 9];
  const y = [undefined, 10, null, undefined, 30, undefined];
  expect(nearest(x, y, 2, 2)).toBe(1);
  expect(nearest(x, y, 3, 2.4)).toBe(4);
  expect(nearest(x, y, 0, 0)).toBe(1);
  expect(nearest(x, y, 5, 9)).toBe(4);
  expect(nearest(x, [null, undefined], 0, 0)).toBe(null);
});

test("a part of an axis is a zoom, and the whole axis with its margins is none", () => {
  const places = [0.5, 1, 1.5, 2];
  expect(zoomOf({ min: 0, max: 2 }, places)).toBeUndefined();
  expect(zoomOf({ min: 0.5, max: 10 }, places)).toBeUndefined();
  expect(zoomOf({ min: 0.7, max: 2 }, places)).toEqual({ min: 0.7, max: 2 });
  expect(zoomOf({ min: 0, max: 1.9 }, places)).toEqual({ min: 0, max: 1.9 });
  expect(zoomOf({ min: 0.1, max: 0.4 }, places)).toBeUndefined();
  for (const scale of [undefined, {}, { min: null, max: null }])
    expect(zoomOf(scale, places)).toBeUndefined();
  expect(zoomOf({ min: 0, max: 1 }, [])).toBeUndefined();
});
