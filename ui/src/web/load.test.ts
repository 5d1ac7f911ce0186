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
  browser_test: { port: 5201, tls: false },
};

test("a page over https, also one behind a proxy, needs a port with TLS for a test of its browser", () => {
  expect(browserPort(session, "http:")).toEqual({ port: 5201, encrypted: false });
  expect(browserPort(session, "https:")).toBeUndefined();
  const both = { ...session, browser_test: { port: 5201, tls: true } };
  expect(browserPort(both, "http:")).toEqual({ port: 5201, encrypted: false });
  expect(browserPort(both, "https:")).toEqual({ port: 5201, encrypted: true });
  const { browser_test: _, ...without } = session;
  expect(browserPort(without, "http:")).toBeUndefined();
});
