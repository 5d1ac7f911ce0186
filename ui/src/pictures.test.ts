import { expect, test } from "vitest";
import { legendRows } from "./pictures";
import { fileName } from "./save";

test("a legend has as many rows as it needs", () => {
  expect(legendRows([], 100)).toEqual([]);
  expect(legendRows([40, 40, 40], 100)).toEqual([2, 1]);
  expect(legendRows([120, 40, 40], 100)).toEqual([1, 2]);
  expect(legendRows([30, 30, 30], 90)).toEqual([3]);
});

test("a file is named after what it shows", () => {
  expect(fileName("download over time", "png")).toBe("linerate-download-over-time.png");
  expect(fileName("a → b: Mb/s", "csv")).toBe("linerate-a-b-mb-s.csv");
  expect(fileName("→", "csv")).toBe("linerate-page.csv");
  expect(fileName("x".repeat(100), "csv")).toHaveLength("linerate-".length + 60 + ".csv".length);
});
