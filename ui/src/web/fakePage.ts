// A page for tests of components: as much of a browser's document, address and history as Preact and the pages use.

import { type ComponentChild, h, options, render } from "preact";
import { vi } from "vitest";
import type { Session } from "./api";
import { type Visitor, VisitorContext } from "./load";

class FakeNode extends EventTarget {
  parentNode: FakeNode | null = null;
  childNodes: FakeNode[] = [];

  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null;
  }

  get nextSibling(): FakeNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }

  insertBefore(node: FakeNode, before: FakeNode | null): FakeNode {
    node.remove();
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    this.childNodes.splice(at, 0, node);
    node.parentNode = this;
    return node;
  }

  appendChild(node: FakeNode): FakeNode {
    return this.insertBefore(node, null);
  }

  removeChild(node: FakeNode): FakeNode {
    node.remove();
    return node;
  }

  remove(): void {
    const siblings = this.parentNode?.childNodes;
    siblings?.splice(siblings.indexOf(this), 1);
    this.parentNode = null;
  }

  get text(): string {
    return this.childNodes.map((node) => node.text).join("");
  }
}

class FakeText extends FakeNode {
  readonly nodeType = 3;
  data: string;

  constructor(data: string) {
    super();
    this.data = data;
  }

  override get text(): string {
    return this.data;
  }
}

export class FakeElement extends FakeNode {
  readonly nodeType = 1;
  readonly localName: string;
  readonly style: Record<string, string> = {};
  readonly attributes = new Map<string, string>();
  id = "";
  value = "";
  checked = false;
  disabled = false;
  open = false;

  constructor(localName: string) {
    super();
    this.localName = localName;
  }

  setAttribute(name: string, value: unknown): void {
    this.attributes.set(name, String(value));
  }

  removeAttribute(name: string): void {
    this.attributes.delete(name);
  }

  /** The elements in it with this name, in their order. */
  all(name: string): FakeElement[] {
    return this.childNodes.flatMap((node) => {
      if (!(node instanceof FakeElement)) return [];
      return [...(node.localName === name ? [node] : []), ...node.all(name)];
    });
  }

  /** The element in it with this id. */
  withId(id: string): FakeElement {
    const found = this.elements().find((one) => one.id === id);
    if (!found) throw new Error(`no element has the id ${id}`);
    return found;
  }

  /** Types into the field in it with this id. */
  type(id: string, text: string): Promise<void> {
    const field = this.withId(id);
    field.value = text;
    field.dispatchEvent(new Event("input"));
    return settle();
  }

  /** Presses the button in it that has this text. */
  press(text: string): Promise<void> {
    const button = this.all("button").find((one) => one.text === text);
    if (!button || button.disabled) throw new Error(`no button ${text} can be pressed`);
    button.dispatchEvent(new Event("click"));
    return settle();
  }

  private elements(): FakeElement[] {
    return this.childNodes.flatMap((node) => (node instanceof FakeElement ? [node, ...node.elements()] : []));
  }
}

/** Everybody may do everything. */
const SESSION: Session = {
  needs_token: false,
  signed_in: false,
  abilities: ["view", "run", "admin"],
  host: "ams-1",
  linerate: "0.1.0",
  archive: "ok",
  plan_worlds: [],
};
const VISITOR: Visitor = { session: SESSION, can: () => true, askForToken: () => undefined };

/** What is known of the page that is open. */
export interface FakePage {
  root: FakeElement;
  address(): string;
  /** Shows something else, or the same with other values. */
  show(content: ComponentChild): Promise<void>;
  /** What is done instead of replacing the address. */
  refuse(instead: (() => void) | undefined): void;
  /** Leaves the page. */
  close(): void;
}

/** Shows a component at an address, with the timers of Vitest. */
export async function openPage(address: string, content: ComponentChild): Promise<FakePage> {
  vi.useFakeTimers();
  // Effects do not wait for a picture.
  options.requestAnimationFrame = (effects) => setTimeout(effects);
  let here = new URL(address, "http://ams-1/");
  const go = (_: unknown, __: string, to: string) => {
    here = new URL(to, here);
  };
  let refuse: (() => void) | undefined;
  const root = new FakeElement("body");
  vi.stubGlobal("document", {
    title: "",
    hidden: false,
    documentElement: { classList: { add() {}, remove() {} } },
    createElementNS: (_: string, name: string) => new FakeElement(name),
    createTextNode: (text: string) => new FakeText(text),
  });
  vi.stubGlobal("location", {
    get href() {
      return here.href;
    },
    get search() {
      return here.search;
    },
    protocol: "http:",
  });
  vi.stubGlobal("history", {
    replaceState: (...state: Parameters<typeof go>) => (refuse ? refuse() : go(...state)),
    pushState: go,
  });
  vi.stubGlobal("innerWidth", 1280);
  for (const name of ["addEventListener", "removeEventListener", "scrollTo"])
    vi.stubGlobal(name, () => undefined);
  const show = (content: ComponentChild) => {
    render(h(VisitorContext.Provider, { value: VISITOR }, content), root as unknown as Element);
    return settle();
  };
  await show(content);
  return {
    root,
    address: () => here.pathname + here.search,
    show,
    refuse: (instead) => {
      refuse = instead;
    },
    close: () => {
      render(null, root as unknown as Element);
      vi.useRealTimers();
      vi.unstubAllGlobals();
    },
  };
}

/** Lets answers arrive and components show them; no pause of a page ends meanwhile. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await vi.advanceTimersByTimeAsync(1);
}
