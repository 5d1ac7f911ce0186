// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { formatsOf, getRun, getView, type Result, type Run } from "./api";
import { Problem } from "./problem";
import { RunPage } from "./Run";
import { listen } from "./stream";
import { closePage, links, openPage, settle, text } from "./testPage";

vi.mock("./api");
vi.mock("./stream");

/** Shows an archived run. The host of the page is ams-1. */
async function openRun(target: string, hosts: string[], run: Partial<Result["run"]> = {}): Promise<void> {
  vi.mocked(formatsOf).mockReturnValue([]);
  vi.mocked(getView).mockResolvedValue({
    title: "A run",
    html: "",
    charts: { schema: "linerate.charts/1", catalogue: [], charts: [] },
  });
  vi.mocked(getRun).mockResolvedValue({
    id: "1",
    kind: "test",
    state: "ended",
    target,
    result: { run: { target, spec: {}, ...run }, hosts: hosts.map((name) => ({ name })), flows: [] },
  });
  await openPage("/runs/1", <RunPage id="1" />);
}

/** Where "Run again" leads; undefined if it is not offered. */
const again = (): string | undefined =>
  [...document.querySelectorAll("a")].find((link) => link.textContent.trim() === "Run again")?.search;

afterEach(closePage);

test("a run of this host is offered to be made again", async () => {
  await openRun("oslo", ["ams-1", "oslo"]);
  expect(again()).toContain("to=oslo");
});

test("a run of another host, or in an emulated network, is not made again from this one", async () => {
  await openRun("oslo", ["lund-2", "oslo"]);
  expect(links()).toContain("Compare with…");
  expect(again()).toBeUndefined();
  closePage();
  await openRun("10.0.0.2", ["ams-1", "ams-1"], { world: "lab" });
  expect(links()).toContain("Compare with…");
  expect(again()).toBeUndefined();
});

test("a test of a browser is made again with the host that it has measured", async () => {
  await openRun("192.0.2.9 (browser)", ["192.0.2.9", "ams-1"]);
  expect(again()).toBe("?from=browser");
  closePage();
  await openRun("192.0.2.9 (browser)", ["192.0.2.9", "lund-2"]);
  expect(again()).toBeUndefined();
});

test("a run that cannot be had for a moment is asked for again", async () => {
  vi.mocked(getRun).mockRejectedValueOnce(
    new Problem(503, { detail: "The archive is away.", retry_after: 1 }),
  );
  await openRun("oslo", ["ams-1", "oslo"]);
  expect(text()).toContain("The archive is away.");
  await vi.advanceTimersByTimeAsync(1_100);
  await settle();
  expect(text()).not.toContain("The archive is away.");
  expect(again()).toContain("to=oslo");
});

test("a run whose result was not archived is not said to have measured nothing", async () => {
  const trial = {
    number: 1,
    position: 1,
    of: 1,
    trial: "rate 1G",
    result: "1 Gb/s",
    measured: true,
    goodputs: [],
  };
  for (const [trials, sentence] of [
    [[trial], "was not archived"],
    [[], "before anything was measured"],
  ] as const) {
    const run = (state: Run["state"]): Run => ({ id: "1", kind: "plan", state, target: "sweep" });
    vi.mocked(listen).mockReturnValue(() => undefined);
    vi.mocked(getRun).mockResolvedValueOnce(run("running")).mockResolvedValue(run("ended"));
    vi.mocked(getView).mockRejectedValue(new Problem(404, { detail: "no such run" }));
    await openPage("/runs/1", <RunPage id="1" />);
    const listener = vi.mocked(listen).mock.calls[0]?.[1];
    listener?.message("snapshot", { frame: { done: 1, of: 1, flows: [] }, trials, remarks: [] });
    listener?.message("end", {});
    await vi.advanceTimersByTimeAsync(10_000);
    expect(text()).toContain(sentence);
    closePage();
  }
});
