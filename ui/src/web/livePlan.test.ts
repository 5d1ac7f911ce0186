import { expect, test } from "vitest";
import {
  barOf,
  type EndedTrial,
  flowStage,
  fromPlanSnapshot,
  type LivePlan,
  MAX_TRIALS,
  type PlanFrame,
  planStage,
  unseen,
  withPlanFrame,
} from "./livePlan";

const frame = (more: Partial<PlanFrame> = {}): PlanFrame => ({
  done: 0,
  of: 6,
  left_seconds: 30,
  flows: [],
  ...more,
});
const trial = (number: number, ...rates: number[]): EndedTrial => ({
  number,
  position: number,
  of: 6,
  trial: `window=${number}`,
  result: "done",
  measured: true,
  goodputs: rates.map((bitrate_bps) => ({ flow: "bulk", direction: "upload", bitrate_bps })),
});

test("the newest trial is first, and those that were seen before stay", () => {
  const first = fromPlanSnapshot({ frame: frame(), trials: [trial(1), trial(2)], remarks: [] });
  const next = fromPlanSnapshot({ frame: frame(), trials: [trial(2), trial(3)], remarks: ["late"] }, first);
  expect(next.trials.map(({ number }) => number)).toEqual([3, 2, 1]);
  expect(next.remarks).toEqual(["late"]);
  expect(unseen(next)).toBe(0);
  expect(withPlanFrame(next, frame({ done: 3 })).trials).toBe(next.trials);
});

test("a plan of very many trials keeps the newest ones, and those before are counted", () => {
  let plan: LivePlan | undefined;
  for (let number = 1; number <= MAX_TRIALS + 300; number += 100) {
    const trials = Array.from({ length: 100 }, (_, at) => trial(number + at));
    plan = fromPlanSnapshot({ frame: frame(), trials, remarks: [] }, plan);
  }
  expect(plan?.trials.length).toBe(MAX_TRIALS);
  expect(plan?.trials[0]?.number).toBe(MAX_TRIALS + 300);
  expect(plan && unseen(plan)).toBe(300);
});

test("trials that ended while the connection was lost are counted with those before them", () => {
  const first = fromPlanSnapshot({ frame: frame(), trials: [trial(1), trial(2)], remarks: [] });
  const next = fromPlanSnapshot({ frame: frame(), trials: [trial(5), trial(6)], remarks: [] }, first);
  expect(next.trials.map(({ number }) => number)).toEqual([6, 5]);
  expect(unseen(next)).toBe(4);
});

test("whoever comes late is told how many trials are not in the list", () => {
  expect(unseen(fromPlanSnapshot({ frame: frame(), trials: [trial(41), trial(42)], remarks: [] }))).toBe(40);
  expect(unseen(fromPlanSnapshot({ frame: frame(), trials: [], remarks: [] }))).toBe(0);
});

test("the stage is the trial that runs, and the last one stays the last", () => {
  expect(planStage(frame())).toBe("Preparing");
  expect(planStage(frame({ done: 2 }))).toBe("2 of 6 trials done");
  expect(planStage(frame({ trial: "window=64K", done: 2 }))).toBe("Trial 3 of 6");
  expect(planStage(frame({ trial: "window=64K", done: 6 }))).toBe("Trial 6 of 6");
});

test("a flow that waits for a busy host says so", () => {
  expect(flowStage({ name: "bulk", position: 2 })).toBe("waits at a busy host, number 2 in its queue");
  expect(flowStage({ name: "bulk", bitrate_bps: 1e6 })).toBe("now");
  expect(flowStage({ name: "bulk" })).toBe("does not run now");
});

test("bars have the fastest trial as their measure", () => {
  const bar = barOf([trial(1, 5e6), trial(2, 2e7, 1e7)]);
  expect([bar(2e7), bar(5e6)]).toEqual([1, 0.25]);
  expect(barOf([trial(1)])(1e6)).toBe(0);
});
