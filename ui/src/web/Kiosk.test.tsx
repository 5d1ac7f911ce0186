import { afterEach, expect, test, vi } from "vitest";
import { type CurrentRuns, getRun, getRuns, type RunRow } from "./api";
import { type FakePage, openPage, settle } from "./fakePage";
import { Kiosk } from "./Kiosk";
import { listen } from "./stream";

vi.mock("./api");
vi.mock("./stream");

const NOTHING = "Nothing was measured yet.";

let page: FakePage;

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
  page = await openPage("/kiosk", <Kiosk />);
}

afterEach(() => {
  page.close();
  vi.resetAllMocks();
});

test("a server that has measured nothing since its start shows the newest result of its archive", async () => {
  await openKiosk([
    { id: "cut", state: "unfinished" },
    { id: "new", state: "ended" },
    { id: "old", state: "ended" },
  ]);
  expect(page.root.text).not.toContain(NOTHING);
  await tell({ waiting: [] });
  expect(page.root.text).toContain("result of new");
  expect(page.root.text).not.toContain(NOTHING);
});

test("the last result stays when the server is started again, and no other sentence is with it", async () => {
  await openKiosk([{ id: "new", state: "ended" }]);
  await tell({ waiting: [], latest: "new" });
  expect(page.root.text).toContain("result of new");
  vi.mocked(getRuns).mockReturnValueOnce(new Promise(() => undefined));
  await tell({ waiting: [] });
  expect(page.root.text).toContain("result of new");
  expect(page.root.text).not.toContain(NOTHING);
  await tell({ waiting: [] });
  expect(page.root.text).toContain("result of new");
  expect(page.root.text).not.toContain(NOTHING);
});

test("an empty archive is said to be one, and an older result is not shown with it", async () => {
  await openKiosk([{ id: "only", state: "waiting" }]);
  await tell({ waiting: ["only"] });
  expect(page.root.text).toContain(NOTHING);
  await tell({ waiting: [], latest: "only" });
  expect(page.root.text).toContain("result of only");
  expect(page.root.text).not.toContain(NOTHING);
  vi.mocked(getRuns).mockResolvedValue({ runs: [] });
  await tell({ waiting: [] });
  expect(page.root.text).toContain(NOTHING);
  expect(page.root.text).not.toContain("of only");
});
