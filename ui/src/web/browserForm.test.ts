import { expect, test } from "vitest";
import {
  aboutBrowser,
  BROWSER_DIRECTIONS,
  type BrowserForm,
  EMPTY_BROWSER,
  fromBrowserQuery,
  isFromBrowser,
  settingsOf,
  toBrowserQuery,
} from "./browserForm";

const form = (more: Partial<BrowserForm> = {}): BrowserForm => ({ ...EMPTY_BROWSER, ...more });
const errorsOf = (more: Partial<BrowserForm>) => {
  const made = settingsOf(form(more));
  return "errors" in made ? Object.keys(made.errors) : [];
};

test("an untouched form measures both directions over 4 connections for 10 s each", () => {
  const settings = { connections: 4, seconds: 10, directions: ["download", "upload"] };
  expect(settingsOf(form())).toEqual({ settings });
  expect(settingsOf(form({ connections: " ", seconds: "" }))).toEqual({ settings });
  expect(settingsOf(form({ directions: "upload" }))).toMatchObject({ settings: { directions: ["upload"] } });
});

test("numbers outside of their limits are mistakes of their fields", () => {
  for (const connections of ["0", "17", "1.5", "-1", "many", "1e1"])
    expect(errorsOf({ connections, directions: "upload" })).toEqual(["connections"]);
  for (const seconds of ["0", "61", "2.5", "long"]) expect(errorsOf({ seconds })).toEqual(["seconds"]);
  expect(errorsOf({ connections: "x", seconds: "x" })).toEqual(["connections", "seconds"]);
  expect(errorsOf({ connections: "16", seconds: "60", directions: "upload" })).toEqual([]);
});

test("a download has no more connections than browsers open to one server", () => {
  expect(errorsOf({ connections: "6" })).toEqual([]);
  expect(errorsOf({ connections: "7" })).toEqual(["connections"]);
  expect(errorsOf({ connections: "7", directions: "download" })).toEqual(["connections"]);
  expect(errorsOf({ connections: "7", directions: "upload" })).toEqual([]);
});

test("the directions are measured one after the other, never at the same time", () => {
  expect(BROWSER_DIRECTIONS.map(([name]) => name)).toEqual(["each", "download", "upload"]);
  expect(fromBrowserQuery(new URLSearchParams("directions=both"))).toEqual(EMPTY_BROWSER);
});

test("the form survives the address of the page", () => {
  const typed = form({ connections: "8", directions: "upload" });
  const query = toBrowserQuery(typed);
  expect(query.toString()).toBe("from=browser&connections=8&directions=upload");
  expect(fromBrowserQuery(new URLSearchParams(query.toString()))).toEqual(typed);
  expect([isFromBrowser(query), isFromBrowser(new URLSearchParams("to=x"))]).toEqual([true, false]);
  expect(toBrowserQuery(EMPTY_BROWSER).toString()).toBe("from=browser");
});

test("how long it takes is said only of a form without mistakes", () => {
  expect([
    aboutBrowser(form()),
    aboutBrowser(form({ directions: "upload" })),
    aboutBrowser(form({ seconds: "?" })),
  ]).toEqual([22, 11, undefined]);
});
