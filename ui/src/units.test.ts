import { expect, test } from "vitest";
import vectors from "../../fixtures/units.json";
import { ABSENT, inUnit, longTime, tick } from "./units";

// The program is tested against the same file: crates/report/src/quantity.rs.
test.each(vectors.vectors)("$value $unit is $text", ({ unit, value, text }) => {
  expect(inUnit(unit, value)).toBe(text);
});

test("what was not measured is absent, not zero", () => {
  expect([null, undefined, Number.NaN].map((value) => inUnit("bit/s", value))).toEqual([
    ABSENT,
    ABSENT,
    ABSENT,
  ]);
});

test("ticks have no digits that say nothing", () => {
  const ticks = [
    tick("bit/s", 5e8),
    tick("bytes", 1.5 * 2 ** 20),
    tick("ns", 2.5e6),
    tick("ratio", 0.5),
    tick("s", 0.30000000000000004),
  ];
  expect(ticks).toEqual(["500 Mb/s", "1.5 MiB", "2.5 ms", "50 %", "0.3"]);
});

test("sizes of packets are in bytes, without prefixes", () => {
  expect([tick("octets", 1448), tick("octets", 9000), inUnit("octets", 8948)]).toEqual([
    "1448 B",
    "9000 B",
    "8948 B",
  ]);
});

test("times of plans are rounded up to minutes, as the program prints them", () => {
  expect([45, 2410, 7200, 9001].map(longTime)).toEqual(["45 s", "41 min", "2 h 0 min", "2 h 31 min"]);
});
