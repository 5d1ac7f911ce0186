import { afterEach, expect, test, vi } from "vitest";
import { getPlan, getPlans, previewPlan } from "./api";
import { type FakePage, openPage, settle } from "./fakePage";
import { PlansPage } from "./Plans";
import { navigate } from "./router";

vi.mock("./api");

let page: FakePage;
let store: Map<string, string>;

async function openPlans(address: string): Promise<void> {
  store = new Map();
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => store.get(key) ?? null,
    setItem: (key: string, value: string) => store.set(key, value),
    removeItem: (key: string) => store.delete(key),
  });
  vi.mocked(getPlans).mockResolvedValue({ plans: [] });
  vi.mocked(getPlan).mockImplementation(async (name) => ({ text: `name = "${name}"` }));
  vi.mocked(previewPlan).mockReturnValue(new Promise(() => undefined));
  page = await openPage(address, <PlansPage />);
}

afterEach(() => {
  page.close();
  vi.resetAllMocks();
});

test("the text of one plan is never under the name of another one", async () => {
  await openPlans("/plans?plan=mtu");
  expect(page.root.withId("text").value).toBe('name = "mtu"');
  vi.mocked(getPlan).mockReturnValue(new Promise(() => undefined));
  // As by a step back.
  navigate("/plans?plan=buffers", true);
  await settle();
  expect(page.root.all("textarea").map(({ id }) => id)).toEqual(["settings"]);
});

test("a plan that was changed is kept under its name", async () => {
  await openPlans("/plans?plan=mtu");
  await page.root.type("text", 'name = "mine"');
  expect([...store]).toEqual([["linerate plan mtu", 'name = "mine"']]);
  navigate("/plans?plan=buffers", true);
  await settle();
  expect(page.root.withId("text").value).toBe('name = "buffers"');
  navigate("/plans?plan=mtu", true);
  await settle();
  expect(page.root.withId("text").value).toBe('name = "mine"');
  await page.root.press("Undo all changes");
  expect([page.root.withId("text").value, store.size]).toEqual(['name = "mtu"', 0]);
});
