import { expect, test } from "vitest";
import { type Drafts, taken, textOf, withText } from "./drafts";

const NONE: Drafts = {};
const query = (text = "") => new URLSearchParams(text);

test("what was typed stays in its field before the address has it", () => {
  const drafts = withText(NONE, query(), "name", "lab");
  expect(textOf(drafts, query(), "name")).toBe("lab");
  // Also if it is less than the address has.
  expect(textOf(withText(NONE, query("name=lab"), "name", ""), query("name=lab"), "name")).toBe("");
});

test("the address takes what was typed into all fields, and keeps the rest", () => {
  const address = query("target=ams-1&select=x&select=y");
  let drafts = withText(NONE, address, "name", "lab");
  drafts = withText(drafts, address, "tag", "rack-4");
  drafts = withText(drafts, address, "target", "");
  expect(taken(drafts, address).query.toString()).toBe("select=x&select=y&name=lab&tag=rack-4");
});

test("a space at the end is still there once the address has the text without it", () => {
  const after = taken(withText(NONE, query(), "name", "lab "), query());
  expect(after.query.toString()).toBe("name=lab");
  expect(textOf(after.drafts, after.query, "name")).toBe("lab ");
  expect(taken(after.drafts, after.query).query.toString()).toBe("name=lab");
});

test("a value that the address has got from elsewhere is shown, and what was typed before is not applied", () => {
  const after = taken(withText(NONE, query(), "name", "lab"), query());
  expect(textOf(after.drafts, query(), "name")).toBe("");
  expect(textOf(after.drafts, query("name=field"), "name")).toBe("field");
  expect(taken(after.drafts, query("tag=x")).query.toString()).toBe("tag=x");
});
