import { expect, test } from "vitest";
import { withMessage } from "./watched";

const frame = { done: 1, of: 4, left_seconds: 9, trial: "window=64K", flows: [] };

test("a stream is one of a plan or of a test from its first message on", () => {
  const plan = withMessage(undefined, "snapshot", { frame, trials: [], remarks: [] });
  expect(plan?.plan?.frame.of).toBe(4);
  expect(withMessage(plan, "frame", { ...frame, done: 2 })?.plan?.frame.done).toBe(2);
  const first = { state: "measuring", at_seconds: 1, flows: [] };
  const live = withMessage(undefined, "snapshot", { frame: first, series: [] });
  expect(withMessage(live, "frame", { ...first, at_seconds: 2 })?.live?.frame.at_seconds).toBe(2);
});

test("nothing is known before the first snapshot, and the end changes nothing", () => {
  expect(withMessage(undefined, "frame", frame)).toBeUndefined();
  const plan = withMessage(undefined, "snapshot", { frame, trials: [], remarks: [] });
  expect(withMessage(plan, "end", { outcome: "completed" })).toBe(plan);
});
