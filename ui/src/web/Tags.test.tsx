import { useState } from "preact/hooks";
import { afterEach, expect, test, vi } from "vitest";
import { addTag, removeTag } from "./api";
import { type FakePage, openPage, settle } from "./fakePage";
import { Tags } from "./Tags";

vi.mock("./api");

let page: FakePage;

afterEach(() => {
  page.close();
  vi.resetAllMocks();
});

function Tagged() {
  const [tags, setTags] = useState(["a", "b", "c"]);
  return <Tags run="1" tags={tags} onChange={setTags} />;
}

test("two tags that are removed one soon after the other are both gone", async () => {
  const answers: (() => void)[] = [];
  vi.mocked(removeTag).mockImplementation(() => new Promise<void>((done) => answers.push(done)));
  page = await openPage("/runs/1", <Tagged />);
  const [first, second] = page.root.all("button");
  first?.dispatchEvent(new Event("click"));
  second?.dispatchEvent(new Event("click"));
  for (const answer of answers) answer();
  await settle();
  expect(page.root.all("a").map(({ text }) => text)).toEqual(["c"]);
});

test("a tag that is typed while another one is added stays in its field", async () => {
  let answer = () => {};
  vi.mocked(addTag).mockImplementation(
    () =>
      new Promise<void>((done) => {
        answer = done;
      }),
  );
  page = await openPage("/runs/1", <Tagged />);
  const [field] = page.root.all("input");
  const [form] = page.root.all("form");
  if (!field || !form) throw new Error("no form");
  await page.root.type(field.id, "rack-4");
  form.dispatchEvent(new Event("submit"));
  await page.root.type(field.id, "spare");
  answer();
  await settle();
  expect([page.root.all("a").length, field.value]).toEqual([4, "spare"]);
  form.dispatchEvent(new Event("submit"));
  answer();
  await settle();
  expect([page.root.all("a").length, field.value]).toEqual([5, ""]);
});
