import { afterEach, expect, test, vi } from "vitest";
import { getSharedRun } from "./api";
import { type FakePage, openPage } from "./fakePage";
import { Problem } from "./problem";
import { SharedPage } from "./Shared";

vi.mock("./api");

let page: FakePage;

afterEach(() => {
  page.close();
  vi.resetAllMocks();
});

test("what was wrong with one link is not said of another one for the same run", async () => {
  vi.mocked(getSharedRun).mockRejectedValueOnce(new Problem(404, { detail: "This link is not valid." }));
  page = await openPage("/shared/1/old", <SharedPage link={{ id: "1", secret: "old" }} />);
  expect(page.root.text).toContain("This link is not valid.");
  vi.mocked(getSharedRun).mockResolvedValue({ id: "1", kind: "test", state: "running" });
  await page.show(<SharedPage link={{ id: "1", secret: "new" }} />);
  expect(page.root.text).toContain("This run has not ended yet.");
  expect(page.root.text).not.toContain("This link is not valid.");
});
