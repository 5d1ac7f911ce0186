import { expect, test } from "vitest";
import {
  type Cell,
  mark,
  newSchedule,
  obstacle,
  recurrence,
  type Schedule,
  scheduleFields,
  sentence,
} from "./fleet";

const cell: Cell = {
  from: "rome",
  to: "berlin",
  state: "finished",
  result: { goodput_bps: 941e6, cause: "random_loss" },
  short: "941M",
  alarms: [],
};
const alarm = {
  kind: "goodput",
  state: "open" as const,
  from: "rome",
  to: "berlin",
  text: "too slow",
  since: "",
  raised: "",
};

test("an alarm comes before a failure, and a failure before a result", () => {
  expect(mark(cell)).toBe("good");
  expect(mark({ ...cell, state: "failed" })).toBe("stale");
  expect(mark({ ...cell, state: "failed", alarms: [alarm] })).toBe("alarm");
  const { result: _result, state: _state, ...fresh } = cell;
  expect(mark(fresh)).toBe("none");
});

test("a cell is a sentence with its rate, its cause and its trouble", () => {
  expect(sentence(cell)).toBe("rome to berlin: 941Mb/s, limited by random loss");
  expect(sentence({ ...cell, alarms: [alarm] })).toContain(". too slow");
  expect(sentence({ ...cell, state: "not_booked", reason: "busy" })).toContain("not booked: busy");
});

test("schedules say when they are due", () => {
  const schedule: Schedule = {
    name: "s",
    from: "a",
    to: "b",
    when: { cron: "30 2 * * *" },
    zone: "Europe/Berlin",
    priority: 0,
    paused: false,
  };
  expect(recurrence(schedule)).toBe("30 2 * * * (Europe/Berlin)");
  expect(recurrence({ ...schedule, zone: "UTC" })).toBe("30 2 * * *");
  const every = (every_ns: number, jitter_ns = 0) =>
    recurrence({ ...schedule, when: { every_ns, jitter_ns } });
  expect(every(600e9)).toBe("every 10 min");
  expect(every(150e9)).toBe("every 150 s");
  expect(every(5400e9, 60e9)).toBe("every 90 min, jitter 1 min");
  expect(every(86_400e9)).toBe("every 1 d");
});

test("every obstacle has words", () => {
  const kinds = [
    "paused",
    "not_due",
    "quiet_hours",
    "busy",
    "no_coordinator",
    "agent",
    "after_loss",
    "after_change",
    "unsettled",
  ] as const;
  const words = kinds.map((kind) => obstacle({ kind }));
  for (const one of words) expect(one.length).toBeGreaterThan(8);
  expect(new Set(words).size).toBe(kinds.length);
});

test("a new schedule is sent as it was typed", () => {
  const values = { name: " nightly ", from: "a", to: "b", cron: "0 3 * * *", time: "500 ms", streams: "4" };
  const request = {
    name: "nightly",
    from: "a",
    to: "b",
    cron: "0 3 * * *",
    test: { traffic: { duration_ns: 5e8, streams: 4 } },
  };
  expect(newSchedule(values)).toEqual({ request });
  const wrong = newSchedule({ ...values, time: "soon", streams: "-1" });
  expect(Object.keys("errors" in wrong ? wrong.errors : {})).toEqual(["time", "streams"]);
  // Everything else is the server's to refuse.
  expect(newSchedule({})).toEqual({ request: { name: "", from: "", to: "", test: { traffic: {} } } });
});

test("every field of the form has its place in the request", () => {
  const fields = scheduleFields(["a", "b"]);
  expect(new Set(fields.map(({ at }) => at)).size).toBe(fields.length);
});
