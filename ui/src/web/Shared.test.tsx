// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { formatsOf, getSharedRun, getSharedView } from "./api";
import { Problem } from "./problem";
import { SharedPage } from "./Shared";
import { closePage, openPage, show, text } from "./testPage";

vi.mock("./api");

afterEach(closePage);

test("what was wrong with one link is not said of another one for the same run", async () => {
  vi.mocked(getSharedRun).mockRejectedValueOnce(new Problem(404, { detail: "This link is not valid." }));
  await openPage("/shared/1/old", <SharedPage link={{ id: "1", secret: "old" }} />);
  expect(text()).toContain("This link is not valid.");
  vi.mocked(getSharedRun).mockResolvedValue({ id: "1", kind: "test", state: "running" });
  await show(<SharedPage link={{ id: "1", secret: "new" }} />);
  expect(text()).toContain("This run has not ended yet.");
  expect(text()).not.toContain("This link is not valid.");
});

test("a run that has not ended is asked for until its result can be shown", async () => {
  vi.mocked(formatsOf).mockReturnValue([]);
  vi.mocked(getSharedRun).mockResolvedValue({ id: "1", kind: "test", state: "running" });
  await openPage("/shared/1/s", <SharedPage link={{ id: "1", secret: "s" }} />);
  expect(text()).toContain("This run has not ended yet.");
  vi.mocked(getSharedRun).mockResolvedValue({ id: "1", kind: "test", state: "ended" });
  // Its result is archived a moment later.
  vi.mocked(getSharedView).mockRejectedValueOnce(new Problem(404, { detail: "There is no such run." }));
  vi.mocked(getSharedView).mockResolvedValue({
    title: "t",
    html: "<h1>The result</h1>",
    charts: { schema: "linerate.charts/1", catalogue: [], charts: [] },
  });
  await vi.advanceTimersByTimeAsync(12_000);
  expect(text()).toContain("The result");
  expect(text()).not.toContain("no such run");
  const asked = vi.mocked(getSharedRun).mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(getSharedRun).toHaveBeenCalledTimes(asked);
});
