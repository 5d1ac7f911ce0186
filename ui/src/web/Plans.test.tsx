// @vitest-environment happy-dom

import { afterEach, expect, test, vi } from "vitest";
import { getPlan, getPlans, previewPlan } from "./api";
import { PlansPage } from "./Plans";
import { navigate } from "./router";
import { closePage, field, openPage, press, settle, type } from "./testPage";

vi.mock("./api");

async function openPlans(address: string): Promise<void> {
  sessionStorage.clear();
  vi.mocked(getPlans).mockResolvedValue({ plans: [] });
  vi.mocked(getPlan).mockImplementation(async (name) => ({ text: `name = "${name}"` }));
  vi.mocked(previewPlan).mockReturnValue(new Promise(() => undefined));
  await openPage(address, <PlansPage />);
}

afterEach(closePage);

test("the text of one plan is never under the name of another one", async () => {
  await openPlans("/plans?plan=mtu");
  expect(field("text").value).toBe('name = "mtu"');
  vi.mocked(getPlan).mockReturnValue(new Promise(() => undefined));
  // As by a step back.
  navigate("/plans?plan=buffers", true);
  await settle();
  expect([...document.querySelectorAll("textarea")].map(({ id }) => id)).toEqual(["settings"]);
});

test("a plan that was changed is kept under its name", async () => {
  await openPlans("/plans?plan=mtu");
  await type("text", 'name = "mine"');
  expect(Object.entries(sessionStorage)).toEqual([["linerate plan mtu", 'name = "mine"']]);
  navigate("/plans?plan=buffers", true);
  await settle();
  expect(field("text").value).toBe('name = "buffers"');
  navigate("/plans?plan=mtu", true);
  await settle();
  expect(field("text").value).toBe('name = "mine"');
  await press("Undo all changes");
  expect([field("text").value, sessionStorage.length]).toEqual(['name = "mtu"', 0]);
});
