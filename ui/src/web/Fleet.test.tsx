// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { getAgents, getCell, getFleet, getMeshes, getSchedules, getWhy, pauseSchedule } from "./api";
import { FleetPage } from "./Fleet";
import type { CalendarRun, Fleet, Mesh, Schedule, Why } from "./fleet";
import { Problem } from "./problem";
import { navigate } from "./router";
import { closePage, openPage, press, settle, text } from "./testPage";

vi.mock("./api");

const fleet: Fleet = {
  name: "test",
  agents: [],
  schedules: { all: 2, paused: 0 },
  runs: {},
  alarms: [],
};
const schedule = (name: string): Schedule => ({
  name,
  from: "one",
  to: "two",
  when: { every_ns: 1e9, jitter_ns: 0 },
  zone: "UTC",
  priority: 0,
  paused: false,
});

async function openFleet(address: string, meshes: Mesh[] = [], page: { next?: string } = {}): Promise<void> {
  vi.mocked(getFleet).mockResolvedValue(fleet);
  vi.mocked(getMeshes).mockResolvedValue({ meshes });
  vi.mocked(getAgents).mockResolvedValue({ agents: [] });
  const schedules = [schedule("often"), schedule("seldom")];
  vi.mocked(getSchedules).mockResolvedValue({ schedules, runs: [], ...page });
  vi.mocked(pauseSchedule).mockResolvedValue(undefined);
  await openPage(address, <FleetPage />);
}

afterEach(closePage);

const why = (...obstacles: Why["obstacles"]): Why => ({ obstacles }) as Why;

test("why a schedule does not measure is asked again once it was paused", async () => {
  vi.mocked(getWhy).mockResolvedValue(why());
  await openFleet("/fleet?schedule=often");
  expect(text()).toContain("Nothing keeps it from measuring.");
  vi.mocked(getWhy).mockResolvedValue(why({ kind: "paused" }));
  await press("Pause");
  expect(text()).toContain("it is paused");
});

test("the answer about one schedule is not shown for another one", async () => {
  vi.mocked(getWhy).mockResolvedValue(why({ kind: "paused" }));
  await openFleet("/fleet?schedule=often");
  expect(text()).toContain("it is paused");
  vi.mocked(getWhy).mockReturnValue(new Promise(() => undefined));
  navigate("/fleet?schedule=seldom");
  await settle();
  expect(text()).not.toContain("it is paused");
  expect(text()).toContain("Asking…");
});

test("the runs of one pair are not shown for another one", async () => {
  vi.mocked(getCell).mockResolvedValue({ runs: [] });
  await openFleet("/fleet?mesh=all&from=one&to=two");
  expect(text()).toContain("No runs yet.");
  vi.mocked(getCell).mockReturnValue(new Promise(() => undefined));
  navigate("/fleet?mesh=all&from=two&to=one");
  await settle();
  expect(text()).not.toContain("No runs yet.");
});

test("a page that nobody answers any more says so, and how old it is", async () => {
  await openFleet("/fleet");
  vi.setSystemTime(new Date("2026-11-30T12:00:00"));
  await vi.advanceTimersByTimeAsync(15_000);
  expect(text()).toContain("No alarms.");
  vi.mocked(getFleet).mockRejectedValue(new Problem(0, { detail: "The server does not answer." }));
  await vi.advanceTimersByTimeAsync(25_000);
  expect(text()).toContain("No alarms.");
  expect(text()).toMatch(/The server does not answer\. What is shown is of 12:00:[01]\d\./);
  vi.mocked(getFleet).mockResolvedValue(fleet);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(text()).not.toContain("does not answer");
});

test("an impossible rate is marked in the grid", async () => {
  const cell = { from: "one", to: "two", state: "finished", result: { cause: "impossible" }, alarms: [] };
  await openFleet("/fleet", [{ mesh: "all", hosts: ["one", "two"], cells: [cell] }]);
  const link = document.querySelector("table.mesh a");
  expect(link?.textContent).toBe("⚠ impossible");
  expect(link?.getAttribute("aria-label")).toBe("one to two: the measured rate is impossible");
});

test("further schedules are on further pages, which stay when something is opened", async () => {
  vi.mocked(getCell).mockResolvedValue({ runs: [] });
  await openFleet("/fleet?mesh=all&from=one&to=two");
  expect(text()).not.toContain("More schedules");
  closePage();
  await openFleet("/fleet", [], { next: "seldom" });
  const more = document.querySelector<HTMLAnchorElement>("a[href*=schedules_after]");
  expect(more?.textContent).toBe("More schedules");
  navigate(more?.getAttribute("href") ?? "");
  await settle();
  expect(getSchedules).toHaveBeenLastCalledWith("seldom");
  vi.mocked(getWhy).mockResolvedValue(why());
  await press("Why?");
  expect(location.search).toBe("?schedules_after=seldom&schedule=often");
  const first = [...document.querySelectorAll("a")].find((one) => one.textContent === "First schedules");
  navigate(first?.getAttribute("href") ?? "");
  await settle();
  expect(getSchedules).toHaveBeenLastCalledWith(null);
});

test("meshes after one that was removed are not there, but the fleet is", async () => {
  await openFleet("/fleet");
  closePage();
  vi.mocked(getMeshes).mockRejectedValue(new Problem(404, { detail: "there is no mesh old" }));
  vi.mocked(getFleet).mockResolvedValue(fleet);
  vi.mocked(getAgents).mockResolvedValue({ agents: [] });
  vi.mocked(getSchedules).mockResolvedValue({ schedules: [], runs: [] });
  await openPage("/fleet?meshes_after=old", <FleetPage />);
  expect(text()).toContain("there is no mesh old");
  expect(text()).not.toContain("There is no fleet");
  expect(document.querySelector<HTMLAnchorElement>("main a, a")?.getAttribute("href")).toBe("/fleet");
});

test("running tests are told apart, and the next one is not the one that runs", async () => {
  await openFleet("/fleet");
  closePage();
  const run = (name: string, state: string, starts: string): CalendarRun => ({
    run: `${name} ${state}`,
    schedule: name,
    from: "one",
    to: "two",
    due: starts,
    starts,
    ends: starts,
    priority: 0,
    state,
  });
  const day = new Date().toDateString();
  const at = (time: string) => new Date(`${day} ${time}`).toISOString();
  vi.mocked(getFleet).mockResolvedValue(fleet);
  vi.mocked(getMeshes).mockResolvedValue({ meshes: [] });
  vi.mocked(getAgents).mockResolvedValue({ agents: [] });
  vi.mocked(getSchedules).mockResolvedValue({
    schedules: [schedule("often")],
    runs: [run("often", "running", at("10:00")), run("often", "booked", at("10:15"))],
  });
  await openPage("/fleet", <FleetPage />);
  const buttons = [...document.querySelectorAll("button")].map((one) => one.getAttribute("aria-label"));
  expect(buttons).toContain("Cancel the run of often");
  const rows = [...document.querySelectorAll("tr")].map((row) => row.textContent);
  expect(rows.filter((row) => row.includes("often: one → two") && row.includes("10:00"))).toHaveLength(1);
  expect(rows.filter((row) => row.startsWith("often") && row.includes("10:15"))).toHaveLength(1);
});
