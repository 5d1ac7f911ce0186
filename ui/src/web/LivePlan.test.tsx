import { afterEach, expect, test, vi } from "vitest";
import { type FakePage, openPage, settle } from "./fakePage";
import { LivePlanView } from "./LivePlan";
import type { LivePlan } from "./livePlan";
import { listen } from "./stream";

vi.mock("./stream");

const plan = (lab: string): LivePlan => ({
  frame: { done: 1, of: 6, left_seconds: 30, flows: [] },
  trials: [],
  remarks: [],
  lab,
});

let page: FakePage;

afterEach(() => {
  page.close();
  vi.resetAllMocks();
});

test("the state of one network is not shown for the next one of a plan", async () => {
  vi.mocked(listen).mockReturnValue(() => undefined);
  page = await openPage("/runs/1", <LivePlanView plan={plan("pair")} />);
  const [details] = page.root.all("details");
  if (!details) throw new Error("the plan has no network");
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  await settle();
  vi.mocked(listen).mock.lastCall?.[1].message("end", { reason: "pair was taken down" });
  await settle();
  expect(page.root.text).toContain("pair was taken down");
  await page.show(<LivePlanView plan={plan("dumbbell")} />);
  expect(page.root.text).not.toContain("pair was taken down");
  expect(vi.mocked(listen).mock.lastCall?.[0]).toContain("dumbbell");
});
