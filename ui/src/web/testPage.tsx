// A page for tests of components, in the document of happy-dom.

import { type ComponentChild, options, render } from "preact";
import { vi } from "vitest";
import { type Visitor, VisitorContext } from "./load";

/** Everybody may do everything. */
const VISITOR: Visitor = {
  session: {
    needs_token: false,
    signed_in: false,
    abilities: ["view", "run", "admin"],
    host: "ams-1",
    linerate: "0.1.0",
    archive: "ok",
    plan_worlds: [],
  },
  can: () => true,
  askForToken: () => undefined,
};

/** Shows a component at an address, with the timers of Vitest. */
export function openPage(at: string, content: ComponentChild): Promise<void> {
  vi.useFakeTimers();
  // Effects do not wait for a picture.
  options.requestAnimationFrame = (effects) => setTimeout(effects);
  history.replaceState(null, "", at);
  return show(content);
}

/** Shows something else, or the same with other values. */
export function show(content: ComponentChild): Promise<void> {
  render(<VisitorContext.Provider value={VISITOR}>{content}</VisitorContext.Provider>, document.body);
  return settle();
}

/** Leaves the page. The next one has none of its answers. */
export function closePage(): void {
  render(null, document.body);
  vi.useRealTimers();
  vi.resetAllMocks();
}

/** Lets answers arrive and components show them; no pause of a page ends meanwhile. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await vi.advanceTimersByTimeAsync(1);
}

export const address = (): string => location.pathname + location.search;
export const text = (): string => document.body.textContent;
export const links = (): string[] => [...document.querySelectorAll("a")].map((link) => link.textContent);

/** The field with this id. */
export function field(id: string): HTMLInputElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element has the id ${id}`);
  return found as HTMLInputElement;
}

/** Types into the field with this id. */
export function type(id: string, text: string): Promise<void> {
  field(id).value = text;
  field(id).dispatchEvent(new Event("input", { bubbles: true }));
  return settle();
}

/** Presses the button that has this text. */
export function press(text: string): Promise<void> {
  const button = [...document.querySelectorAll("button")].find((one) => one.textContent === text);
  if (!button || button.disabled) throw new Error(`no button ${text} can be pressed`);
  button.click();
  return settle();
}
