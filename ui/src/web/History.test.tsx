// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { type CurrentRuns, getRuns, type RunRow } from "./api";
import { HistoryPage } from "./History";
import { navigate } from "./router";
import type { RunPage } from "./runList";
import { listen } from "./stream";
import { address, closePage, field, openPage, press, settle, text, type } from "./testPage";

vi.mock("./api");
vi.mock("./stream");

const PAGE = 50;

/** The numbers of the archived runs. */
let archive: number[] = [];

const run = (number: number): RunRow => ({ id: `id-${number}`, state: "ended", target: `host-${number}.` });

/** The answer of the server, which knows no filters. */
function answer(query: URLSearchParams): RunPage {
  const after = Number(query.get("after") ?? Number.POSITIVE_INFINITY);
  const later = archive.filter((number) => number < after).reverse();
  const next = later.length > PAGE ? { next: String(later[PAGE - 1]) } : {};
  return { runs: later.slice(0, PAGE).map(run), ...next };
}

/** The message that some runs are current. */
async function tell(current: CurrentRuns): Promise<void> {
  for (const [, listener] of vi.mocked(listen).mock.calls) listener.message("runs", current);
  await settle();
}

async function openHistory(runs: number, at = "/history"): Promise<void> {
  archive = Array.from({ length: runs }, (_, at) => at + 1);
  vi.mocked(getRuns).mockImplementation(async (query) => answer(query));
  vi.mocked(listen).mockReturnValue(() => undefined);
  await openPage(at, <HistoryPage />);
}

afterEach(closePage);

const shown = (): number[] => [...text().matchAll(/host-(\d+)\./g)].map(([, number]) => Number(number));

test("every run stays in the list when one ends after more were shown", async () => {
  await openHistory(60);
  expect(shown()).toEqual([...archive].reverse().slice(0, PAGE));
  await press("More");
  expect(shown()).toEqual([...archive].reverse());
  archive.push(61);
  await tell({ waiting: [], latest: "id-61" });
  expect(shown()).toEqual([...archive].reverse());
});

test("more runs that come late are not added to those of another filter", async () => {
  await openHistory(60);
  let arrive = (_: RunPage): void => undefined;
  vi.mocked(getRuns).mockReturnValueOnce(
    new Promise((done) => {
      arrive = done;
    }),
  );
  await press("More");
  archive = [3];
  navigate("/history?tag=rack-4", true);
  await settle();
  expect(shown()).toEqual([3]);
  arrive({ runs: [run(2), run(1)] });
  await settle();
  expect(shown()).toEqual([3]);
});

test("that nothing was measured is not said of a filter without runs that was taken away", async () => {
  await openHistory(0, "/history?tag=rack-4");
  expect(text()).toContain("No run matches these filters.");
  vi.mocked(getRuns).mockReturnValue(new Promise(() => undefined));
  navigate("/history", true);
  await settle();
  expect(text()).not.toContain("Nothing was measured yet.");
});

const value = (id: string): string => field(id).value;

test("letters that were typed into a filter stay when something else is shown anew", async () => {
  await openHistory(60);
  await type("name", "lab");
  archive.push(61);
  await tell({ waiting: [], latest: "id-61" });
  expect([value("name"), address()]).toEqual(["lab", "/history"]);
  await type("name", "lab ");
  await vi.advanceTimersByTimeAsync(1000);
  expect([value("name"), address()]).toEqual(["lab ", "/history?name=lab"]);
});

test("two filters that are typed one after the other both take effect", async () => {
  await openHistory(60);
  await type("name", "lab");
  await type("tag", "rack-4");
  await vi.advanceTimersByTimeAsync(1000);
  expect([value("name"), value("tag")]).toEqual(["lab", "rack-4"]);
  expect(address()).toBe("/history?name=lab&tag=rack-4");
  // All runs again, by a link.
  navigate("/history");
  await settle();
  expect([value("name"), value("tag")]).toEqual(["", ""]);
});

test("a filter takes effect at once when its field is left", async () => {
  await openHistory(60);
  await type("name", "lab");
  field("name").dispatchEvent(new Event("change"));
  expect(address()).toBe("/history?name=lab");
});

test("the filters for days take whole days of the visitor, the last one included", async () => {
  await openHistory(60, "/history?since=2026-05-01&until=2026-05-02");
  const [query] = vi.mocked(getRuns).mock.lastCall ?? [];
  const at = (text: string) => new Date(text).toISOString();
  expect(query?.get("since")).toBe(at("2026-05-01T00:00:00"));
  expect(query?.get("until")).toBe(at("2026-05-03T00:00:00"));
  expect(value("until")).toBe("2026-05-02");
});

test("an impossible rate is not listed like a good one", async () => {
  await openHistory(0);
  const flows = [
    { name: "download", direction: "download", bitrate_bps: 12e9, cause: "impossible" },
    { name: "upload", direction: "upload", bitrate_bps: 941e6, cause: "link" },
  ] as const;
  vi.mocked(getRuns).mockResolvedValue({ runs: [{ ...run(1), flows: [...flows] }] });
  await tell({ waiting: [], latest: "id-1" });
  const cells = [...document.querySelectorAll("td.number")].map((cell) => cell.textContent);
  expect(cells).toEqual(["impossible", "941.0 Mb/s"]);
});
