import { expect, test } from "vitest";
import { because, type Check, counted, FIELDS, headline, isAsked, type Line, told, withRule } from "./check";

const figure = (verdict: "possible" | "impossible", text?: string) => ({
  quantity: "bitrate",
  printed: "941M",
  verdict,
  reasons: text ? [{ verdict, text, causes: [] }] : [],
});

const line = (scope: Line["scope"], figures: Line["figures"]): Line => ({ quote: "…", scope, figures });

const of = (verdict: Check["verdict"], lines: Line[], error?: string): Check => ({
  ...(verdict ? { verdict } : {}),
  counts: { possible: 13, at_ceiling: 0, doubtful: 0, impossible: verdict === "impossible" ? 2 : 0 },
  inputs: [{ ...(error ? { error } : {}), readings: [{ unread: [], tests: [{ lines }] }] }],
});

test("the judgement is a sentence, and its reason is that of the worst figure", () => {
  const check = of("impossible", [
    line("total", [figure("possible", "fine"), figure("impossible", "Too much.")]),
  ]);
  expect([headline(check), because(check)]).toEqual(["This is impossible.", "Too much."]);
  expect(counted(check)).toBe("15 figures: 2 impossible, 13 possible.");
});

test("a rate below its ceiling says how much of it it is", () => {
  const ceiling = { limit: "link", bitrate_bps: 941.5e6, because: "MTU 1500" };
  const check = of("possible", [line("total", [{ ...figure("possible"), ceiling, share: 0.5 }])]);
  expect(because(check)).toBe("941M is 50.0 % of the 941.5 Mb/s that the link allows.");
});

test("a text that nobody can read is not called possible", () => {
  const check = of(undefined, [], "line 1: not a result");
  expect([headline(check), because(check)]).toEqual(["Nothing could be read.", "Line 1: not a result."]);
});

test("intervals without a finding are counted, and the page has an end", () => {
  const dull = line("interval", [figure("possible")]);
  const bad = line("interval", [figure("impossible")]);
  expect(told([dull, bad, dull, line("total", [figure("possible")])])).toMatchObject({ others: 2 });
  const { shown, others } = told(Array.from({ length: 5000 }, () => bad));
  expect(shown.length + others).toBe(5000);
  expect(shown.length).toBeLessThan(100);
});

test("the path and the rule alone ask nothing", () => {
  expect(isAsked({}, "")).toBe(false);
  expect(isAsked({ link: "1G", rtt: "1ms", acceptance: "gigabit", udp: "yes", rate: " " }, " \n")).toBe(
    false,
  );
  expect([isAsked({ rate: "941M" }, ""), isAsked({}, "text"), isAsked({ retransmits: "0" }, "")]).toEqual([
    true,
    true,
    true,
  ]);
  // Of a new field, somebody has to say which of both it is.
  expect(FIELDS.length).toBe(27);
});

test("the rule fills in its link, and leaves one that was typed", () => {
  expect(withRule({}, true)).toEqual({ acceptance: "gigabit", link: "1G" });
  expect(withRule({ link: "10G" }, true).link).toBe("10G");
  expect(withRule({ acceptance: "gigabit", link: "1G" }, false)).toEqual({ acceptance: "", link: "1G" });
});
