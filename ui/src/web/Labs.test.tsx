// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { getLabs } from "./api";
import { LabsPage } from "./Labs";
import { closePage, links, openPage, text } from "./testPage";

vi.mock("./api");

afterEach(closePage);

test("a list that takes longer than the pause between two of them is shown, and read again after a pause", async () => {
  const slow = (...names: string[]) =>
    new Promise<Awaited<ReturnType<typeof getLabs>>>((done) =>
      setTimeout(() => done({ labs: names.map((name) => ({ name })) }), 8000),
    );
  vi.mocked(getLabs).mockImplementation(() => slow("pair", "line"));
  await openPage("/labs", <LabsPage />);
  await vi.advanceTimersByTimeAsync(8100);
  expect(links()).toEqual(["pair", "line"]);
  vi.mocked(getLabs).mockImplementation(() => slow("pair", "line", "star"));
  await vi.advanceTimersByTimeAsync(14_000);
  expect(links()).toEqual(["pair", "line", "star"]);
  vi.mocked(getLabs).mockRejectedValueOnce(new TypeError());
  await vi.advanceTimersByTimeAsync(20_000);
  expect(links().length).toBe(3);
  expect(text()).not.toContain("does not answer");
});
