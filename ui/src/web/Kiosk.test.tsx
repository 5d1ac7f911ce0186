// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { type CurrentRuns, getRun, getRuns, type RunRow } from "./api";
import { Kiosk } from "./Kiosk";
import { listen } from "./stream";
import { closePage, openPage, settle, text } from "./testPage";

vi.mock("./api");
vi.mock("./stream");

const NOTHING = "Nothing was measured yet.";

/** The message that some runs are current. */
async function tell(current: CurrentRuns): Promise<void> {
  for (const [, listener] of vi.mocked(listen).mock.calls) listener.message("runs", current);
  await settle();
}

async function openKiosk(runs: RunRow[]): Promise<void> {
  vi.mocked(getRuns).mockResolvedValue({ runs });
  vi.mocked(getRun).mockImplementation(async (id) => ({
    id,
    kind: "test",
    state: "ended",
    target: `host of ${id}`,
    result: { run: { reason: `result of ${id}` }, flows: [] },
  }));
  vi.mocked(listen).mockReturnValue(() => undefined);
  await openPage("/kiosk", <Kiosk />);
}

afterEach(closePage);

test("a server that has measured nothing since its start shows the newest result of its archive", async () => {
  await openKiosk([
    { id: "cut", state: "unfinished" },
    { id: "new", state: "ended" },
    { id: "old", state: "ended" },
  ]);
  expect(text()).not.toContain(NOTHING);
  await tell({ waiting: [] });
  expect(text()).toContain("result of new");
  expect(text()).not.toContain(NOTHING);
});

test("the last result stays when the server is started again, and no other sentence is with it", async () => {
  await openKiosk([{ id: "new", state: "ended" }]);
  await tell({ waiting: [], latest: "new" });
  expect(text()).toContain("result of new");
  vi.mocked(getRuns).mockReturnValueOnce(new Promise(() => undefined));
  await tell({ waiting: [] });
  expect(text()).toContain("result of new");
  expect(text()).not.toContain(NOTHING);
  await tell({ waiting: [] });
  expect(text()).toContain("result of new");
  expect(text()).not.toContain(NOTHING);
});

test("an empty archive is said to be one, and an older result is not shown with it", async () => {
  await openKiosk([{ id: "only", state: "waiting" }]);
  await tell({ waiting: ["only"] });
  expect(text()).toContain(NOTHING);
  await tell({ waiting: [], latest: "only" });
  expect(text()).toContain("result of only");
  expect(text()).not.toContain(NOTHING);
  vi.mocked(getRuns).mockResolvedValue({ runs: [] });
  await tell({ waiting: [] });
  expect(text()).toContain(NOTHING);
  expect(text()).not.toContain("of only");
});

test("the title names the host that has measured, not the one of the page", async () => {
  await openKiosk([{ id: "new", state: "ended" }]);
  vi.mocked(getRun).mockResolvedValue({
    id: "new",
    kind: "test",
    state: "ended",
    target: "oslo",
    result: { run: { target: "oslo" }, hosts: [{ name: "lund-2" }, { name: "oslo" }], flows: [] },
  });
  await tell({ waiting: [] });
  expect(document.querySelector("h1")?.textContent).toBe("lund-2 → oslo");
});

test("a result that cannot be had for a moment is asked for again", async () => {
  await openKiosk([]);
  vi.mocked(getRun).mockRejectedValueOnce(new TypeError("no server"));
  await tell({ waiting: [], latest: "new" });
  expect(text()).not.toContain("result of new");
  await vi.advanceTimersByTimeAsync(11_000);
  expect(text()).toContain("result of new");
  vi.mocked(getRun).mockResolvedValueOnce({ id: "next", kind: "test", state: "ended" });
  await tell({ waiting: [], latest: "next" });
  expect(text()).toContain("Its result cannot be read from the archive.");
  await vi.advanceTimersByTimeAsync(11_000);
  expect(text()).toContain("result of next");
  expect(text()).not.toContain("cannot be read");
});

test("the result of yesterday has its day", async () => {
  await openKiosk([]);
  vi.setSystemTime(new Date("2026-11-30T23:50:00"));
  const run = { reason: "stable", started_at: new Date("2026-11-30T23:40:00").toISOString() };
  vi.mocked(getRun).mockResolvedValue({ id: "a", kind: "test", state: "ended", result: { run, flows: [] } });
  await tell({ waiting: [], latest: "a" });
  expect(text()).toContain("23:40");
  expect(text()).not.toContain("2026-11-30");
  await vi.advanceTimersByTimeAsync(20 * 60_000);
  expect(text()).toContain("2026-11-30 23:40");
});
