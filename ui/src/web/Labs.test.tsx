import { afterEach, expect, test, vi } from "vitest";
import { getLabs } from "./api";
import { type FakePage, openPage } from "./fakePage";
import { LabsPage } from "./Labs";

vi.mock("./api");

let page: FakePage;

afterEach(() => {
  page.close();
  vi.resetAllMocks();
});

test("a list that takes longer than the pause between two of them is shown, and read again after a pause", async () => {
  const slow = (...names: string[]) =>
    new Promise<Awaited<ReturnType<typeof getLabs>>>((done) =>
      setTimeout(() => done({ labs: names.map((name) => ({ name })) }), 8000),
    );
  vi.mocked(getLabs).mockImplementation(() => slow("pair", "line"));
  page = await openPage("/labs", <LabsPage />);
  await vi.advanceTimersByTimeAsync(8100);
  expect(page.root.all("a").map(({ text }) => text)).toEqual(["pair", "line"]);
  vi.mocked(getLabs).mockImplementation(() => slow("pair", "line", "star"));
  await vi.advanceTimersByTimeAsync(14_000);
  expect(page.root.all("a").map(({ text }) => text)).toEqual(["pair", "line", "star"]);
  vi.mocked(getLabs).mockRejectedValueOnce(new TypeError());
  await vi.advanceTimersByTimeAsync(20_000);
  expect(page.root.all("a").length).toBe(3);
  expect(page.root.text).not.toContain("does not answer");
});
