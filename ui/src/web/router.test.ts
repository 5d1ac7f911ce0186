import { expect, test } from "vitest";
import { comparePath, isOurs, labPath, route, runPath } from "./router";

test("every page has its path, and the id of a run survives its address", () => {
  expect(route("/")).toEqual({ page: "start" });
  expect(route("/history")).toEqual({ page: "history" });
  expect(route("/compare/")).toEqual({ page: "compare" });
  expect(route("/kiosk")).toEqual({ page: "kiosk" });
  expect([route("/envelope"), route("/check")]).toEqual([{ page: "envelope" }, { page: "check" }]);
  expect([route("/fleet"), route("/plans")]).toEqual([{ page: "fleet" }, { page: "plans" }]);
  expect([route("/labs"), route(labPath("pair"))]).toEqual([{ page: "labs" }, { page: "lab", id: "pair" }]);
  expect(route(runPath("a/b %?"))).toEqual({ page: "run", id: "a/b %?" });
});

test("a shared link has the run and its secret", () => {
  expect(route("/shared/ab12/x-_9")).toEqual({ page: "shared", id: "ab12", secret: "x-_9" });
  for (const path of ["/shared", "/shared/ab12", "/shared/ab12/x/y", "/shared/ab12/%E0%A4%A"])
    expect(route(path)).toEqual({ page: "missing" });
});

test("other paths are no page", () => {
  for (const path of ["/runs", "/runs/1/2", "/history/x", "/nothing", "/runs/%E0%A4%A", "/labs/%E0%A4%A"])
    expect(route(path)).toEqual({ page: "missing" });
});

test("a comparison keeps both groups in its address, also names with special characters", () => {
  const path = comparePath(["a b", "c&d"], ["e"]);
  const query = new URL(path, "http://x").searchParams;
  expect([query.getAll("before"), query.getAll("after")]).toEqual([["a b", "c&d"], ["e"]]);
});

test("only plain clicks on links to pages are ours", () => {
  Object.assign(globalThis, { location: new URL("http://host/history?target=a") });
  const link = (href: string, more: object = {}) => {
    const { pathname, search, hash, origin } = new URL(href, "http://host/");
    return { pathname, search, hash, origin, target: "", hasAttribute: () => false, ...more } as never;
  };
  const click = (more: object = {}) => ({ defaultPrevented: false, button: 0, ...more }) as never;
  expect(isOurs(link("/runs/1"), click())).toBe(true);
  expect(isOurs(link("/history?target=b"), click())).toBe(true);
  expect(isOurs(link("/runs/1"), click({ ctrlKey: true }))).toBe(false);
  expect(isOurs(link("/runs/1"), click({ button: 1 }))).toBe(false);
  expect(isOurs(link("/history?target=a#main"), click())).toBe(false);
  expect(isOurs(link("http://elsewhere/"), click())).toBe(false);
  expect(isOurs(link("/api/v1/runs/1/export/csv"), click())).toBe(false);
  expect(isOurs(link("/runs/1", { hasAttribute: () => true }), click())).toBe(false);
});
