// @vitest-environment happy-dom

import { useState } from "preact/hooks";
import { afterEach, expect, test, vi } from "vitest";
import { addTag, removeTag } from "./api";
import { Tags } from "./Tags";
import { closePage, links, openPage, press, settle, type } from "./testPage";

vi.mock("./api");

afterEach(closePage);

function Tagged() {
  const [tags, setTags] = useState(["a", "b", "c"]);
  return <Tags run="1" tags={tags} onChange={setTags} />;
}

test("two tags that are removed one soon after the other are both gone", async () => {
  const answers: (() => void)[] = [];
  vi.mocked(removeTag).mockImplementation(() => new Promise<void>((done) => answers.push(done)));
  await openPage("/runs/1", <Tagged />);
  const [first, second] = document.querySelectorAll("button");
  first?.click();
  second?.click();
  for (const answer of answers) answer();
  await settle();
  expect(links()).toEqual(["c"]);
});

test("a tag that is typed while another one is added stays in its field", async () => {
  let answer = () => {};
  vi.mocked(addTag).mockImplementation(
    () =>
      new Promise<void>((done) => {
        answer = done;
      }),
  );
  await openPage("/runs/1", <Tagged />);
  const field = document.querySelector("input");
  if (!field) throw new Error("no field");
  await type(field.id, "rack-4");
  await press("Add tag");
  await type(field.id, "spare");
  answer();
  await settle();
  expect([links().length, field.value]).toEqual([4, "spare"]);
  await press("Add tag");
  answer();
  await settle();
  expect([links().length, field.value]).toEqual([5, ""]);
});
