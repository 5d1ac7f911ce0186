import { useState } from "preact/hooks";
import { afterEach, expect, test, vi } from "vitest";
import { removeTag } from "./api";
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
