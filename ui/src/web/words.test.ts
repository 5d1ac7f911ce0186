import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { beginning, CAUSES, flowRate, parts, when, words } from "./words";

test("the filter has every cause that a verdict may have, and no other", () => {
  const file = new URL("../../../docs/reference/result.schema.json", import.meta.url);
  const { $defs } = JSON.parse(readFileSync(file, "utf8"));
  const named = $defs.Cause.oneOf as { const?: string; enum?: string[] }[];
  const causes = named.flatMap((one) => one.enum ?? [one.const]);
  expect([...CAUSES].sort()).toEqual(causes.sort());
});

test("a quantity is a figure and its unit", () => {
  expect(parts("941.5 Mb/s")).toEqual(["941.5", "Mb/s"]);
  expect(parts("—")).toEqual(["—", ""]);
});

test("a name of the program is shown as words", () => {
  expect(words("sender_window")).toBe("sender window");
});

test("a time of today is without its day", () => {
  const now = new Date("2026-11-25T22:00:00");
  expect(when("2026-11-25T21:05:00", now)).toBe("21:05");
  expect(when("2026-11-24T21:05:00", now)).toBe("2026-11-24 21:05");
  expect(when("not a time", now)).toBe("not a time");
});

test("a rate that cannot be true is not shown as one", () => {
  expect(flowRate({ bitrate_bps: 941e6, cause: "link" })).toBe("941.0 Mb/s");
  expect(flowRate({ bitrate_bps: 941e6, cause: "impossible" })).toBe("impossible");
  expect(flowRate({})).toBe("—");
});

test("a day begins at midnight where the visitor is", () => {
  const at = (text: string) => new Date(text).toISOString();
  expect(beginning("2026-05-31")).toBe(at("2026-05-31T00:00:00"));
  expect(beginning("2026-05-31", 1)).toBe(at("2026-06-01T00:00:00"));
  expect(beginning("2026-05-31T12:00:00+02:00", 1)).toBe("2026-05-31T12:00:00+02:00");
});
