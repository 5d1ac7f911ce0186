// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { formatsOf, getRun, getView, type Result } from "./api";
import { RunPage } from "./Run";
import { closePage, links, openPage } from "./testPage";

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
