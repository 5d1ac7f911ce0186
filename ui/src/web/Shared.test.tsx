// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { getSharedRun } from "./api";
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
