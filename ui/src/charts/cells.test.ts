import { expect, test } from "vitest";
import type { Cells } from "../page";
import { cellAt, mapHeight, rowsOf, scaleWords } from "./cells";

const cells: Cells = {
  label: "bit rate of each stream",
  unit: "bit/s",
  hue: "upload",
  x: [1, 2, 4],
  columns: [
    [0, 8e6],
    [2e6, 4e6],
  ],
};

test("a place in a heat map is that of a stream and an interval", () => {
  expect(cellAt(cells, 1.5, 2.2)).toEqual({ row: 2, end: 2, value: 8e6 });
  expect(cellAt(cells, 3.9, 0.6)).toEqual({ row: 1, end: 4, value: 2e6 });
  for (const [x, y] of [
    [0.5, 1],
    [4, 1],
    [3, 0.2],
    [3, 2.7],
  ])
    expect(cellAt(cells, x as number, y as number)).toBeUndefined();
});

test("the scale of a heat map is said in words", () => {
  expect(scaleWords(cells)).toBe("bit rate of each stream, grey 0 to full colour 8.000 Mb/s");
  expect(scaleWords({ ...cells, columns: [[0, 0]] })).toBe("bit rate of each stream; 0 throughout");
});

test("128 streams have a row each within the height of a screen", () => {
  const many = { ...cells, columns: [new Array(128).fill(1)] };
  expect(rowsOf(many)).toBe(128);
  expect(mapHeight(many)).toBeGreaterThanOrEqual(256);
  expect(mapHeight(many)).toBeLessThan(400);
  expect(mapHeight({ ...cells, columns: [] })).toBeGreaterThan(0);
});
