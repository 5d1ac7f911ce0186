import { expect, test } from "vitest";
import { csv, order, sortKey } from "./tables";

test("a cell is sorted by its first number in its unit", () => {
  const keys: [string, number | string | null][] = [
    ["941.4 Mb/s", 941.4e6],
    ["1.034 Gb/s (0.940 to 1.100)", 1.034e9],
    ["210 us", 210e3],
    ["1 MiB", 2 ** 20],
    ["1500 B", 1500],
    ["97.1 %", 0.971],
    ["at least 80.0 Mb/s", 80e6],
    ["-4.2 %", -0.042],
    ["1.20e-3 %", 1.2e-5],
    ["17", 17],
    ["link", "link"],
    ["default", "default"],
    ["-", null],
    ["—", null],
    ["", null],
  ];
  for (const [text, key] of keys) {
    const found = sortKey(text);
    if (typeof key === "number") expect(found, text).toBeCloseTo(key, 9);
    else expect(found, text).toBe(key);
  }
});

test("numbers come before words, and nothing comes last in both directions", () => {
  const cells = ["1.0 Gb/s", "-", "900 Mb/s", "default", "64 kb/s", "900 Mb/s"];
  const sorted = (descending: boolean) => order(cells, descending);
  expect(sorted(false)).toEqual([4, 2, 5, 0, 3, 1]);
  expect(sorted(true)).toEqual([3, 0, 2, 5, 4, 1]);
});

test("words with numbers are sorted by these", () => {
  expect(order(["run 10", "run 9", "run 1"], false)).toEqual([2, 1, 0]);
});

test("a table as CSV has quoted fields, and no formulas", () => {
  const rows = [
    ["run", "rate, Mb/s"],
    ['say "x"', "-4.2"],
    ["=cmd()", "@x"],
    ["-", "+1 %"],
  ];
  expect(csv(rows)).toBe('run,"rate, Mb/s"\r\n"say ""x""",-4.2\r\n\'=cmd(),\'@x\r\n-,+1 %\r\n');
});

test("values as they are typed are sorted by their size", () => {
  expect(order(["64K", "256K", "1M"], false)).toEqual([0, 1, 2]);
  expect(order(["2min", "10s", "500ms", "1h"], false)).toEqual([2, 1, 0, 3]);
  expect(order(["1G", "100M", "1.5M", "64k"], false)).toEqual([3, 2, 1, 0]);
});
