// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { LivePlanView } from "./LivePlan";
import type { LivePlan } from "./livePlan";
import { listen } from "./stream";
import { closePage, openPage, settle, show, text } from "./testPage";

vi.mock("./stream");

const plan = (lab: string): LivePlan => ({
  frame: { done: 1, of: 6, left_seconds: 30, flows: [] },
  trials: [],
  remarks: [],
  lab,
});

afterEach(closePage);

test("the state of one network is not shown for the next one of a plan", async () => {
  vi.mocked(listen).mockReturnValue(() => undefined);
  await openPage("/runs/1", <LivePlanView plan={plan("pair")} />);
  const [details] = document.querySelectorAll("details");
  if (!details) throw new Error("the plan has no network");
  details.open = true;
  await settle();
  vi.mocked(listen).mock.lastCall?.[1].message("end", { reason: "pair was taken down" });
  await settle();
  expect(text()).toContain("pair was taken down");
  await show(<LivePlanView plan={plan("dumbbell")} />);
  expect(text()).not.toContain("pair was taken down");
  expect(vi.mocked(listen).mock.lastCall?.[0]).toContain("dumbbell");
});
