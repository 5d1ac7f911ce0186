import { expect, test } from "vitest";
import type { Session } from "./api";
import { browserPort } from "./load";

const session: Session = {
  needs_token: false,
  signed_in: false,
  abilities: ["view"],
  host: "ams-1",
  linerate: "0.1.0",
  archive: "ok",
  plan_worlds: [],
  browser_test: { port: 5201 },
};

test("a page over https, also one behind a proxy, offers no test of its browser", () => {
  expect(browserPort(session, "http:")).toBe(5201);
  expect(browserPort(session, "https:")).toBeUndefined();
  const { browser_test: _, ...encrypted } = session;
  expect(browserPort(encrypted, "http:")).toBeUndefined();
});
