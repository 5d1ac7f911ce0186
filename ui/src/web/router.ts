// Which page an address shows, over the History API. What a page shows is in its address.

import { useEffect, useState } from "preact/hooks";

export type Route =
  | { page: "start" | (typeof PLAIN)[number] | "missing" }
  | { page: "run"; id: string }
  | { page: "lab"; id: string }
  | { page: "shared"; id: string; secret: string };

/** Pages whose path is their name. */
const PLAIN = [
  "history",
  "compare",
  "envelope",
  "check",
  "sizes",
  "plans",
  "kiosk",
  "fleet",
  "labs",
] as const;

/** The page of a path. */
export function route(path: string): Route {
  const parts = path.split("/").filter(Boolean);
  const [first, second, third] = parts;
  if (parts.length === 0) return { page: "start" };
  const plain = PLAIN.find((page) => page === first);
  if (parts.length === 1 && plain) return { page: plain };
  try {
    if (parts.length === 2 && first === "runs" && second)
      return { page: "run", id: decodeURIComponent(second) };
    if (parts.length === 2 && first === "labs" && second)
      return { page: "lab", id: decodeURIComponent(second) };
    if (parts.length === 3 && first === "shared" && second && third)
      return { page: "shared", id: decodeURIComponent(second), secret: decodeURIComponent(third) };
  } catch {
    return { page: "missing" };
  }
  return { page: "missing" };
}

export const runPath = (id: string) => `/runs/${encodeURIComponent(id)}`;

export const labPath = (name: string) => `/labs/${encodeURIComponent(name)}`;

/** The address of a comparison. */
export function comparePath(before: string[], after: string[]): string {
  const query = new URLSearchParams();
  for (const id of before) query.append("before", id);
  for (const id of after) query.append("after", id);
  return `/compare?${query}`;
}

const watchers = new Set<() => void>();

/** Pause after which an address that the browser has refused is given to it again. */
const RETRY_MS = 1000;
/** The address that the browser has refused: it limits how often a page may change it, which a held key exceeds. */
let refused: { address: string; timer: ReturnType<typeof setTimeout> } | undefined;

/** The address of the page, also while the browser has an older one. */
export const here = (): URL => new URL(refused?.address ?? location.href);

/** Puts an address in place of the present one. */
export function replaceAddress(address: string): void {
  const wanted = new URL(address, here()).href;
  forget();
  try {
    history.replaceState(null, "", wanted);
  } catch {
    // Others refuse it without an error.
  }
  if (location.href !== wanted)
    refused = { address: wanted, timer: setTimeout(() => replaceAddress(wanted), RETRY_MS) };
}

function forget(): void {
  clearTimeout(refused?.timer);
  refused = undefined;
}

/** Shows another page, or the same one with other values: `replace` if it is no step to go back to. */
export function navigate(address: string, replace = false): void {
  if (replace) replaceAddress(address);
  else {
    forget();
    history.pushState(null, "", address);
  }
  for (const watcher of watchers) watcher();
  if (!replace) scrollTo(0, 0);
}

/** The address as it is now. */
export function useAddress(): URL {
  const [address, setAddress] = useState(here().href);
  useEffect(() => {
    const changed = () => setAddress(here().href);
    const stepped = () => {
      forget();
      changed();
    };
    watchers.add(changed);
    addEventListener("popstate", stepped);
    changed();
    return () => {
      watchers.delete(changed);
      removeEventListener("popstate", stepped);
    };
  }, []);
  return new URL(address);
}

/** Whether a click on this link is ours, and not the browser's: another window, a file, a part of this page. */
export function isOurs(link: HTMLAnchorElement, event: MouseEvent): boolean {
  if (event.defaultPrevented || event.button !== 0) return false;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return false;
  if (link.target !== "" || link.hasAttribute("download") || link.origin !== location.origin) return false;
  if (link.hash !== "" && link.pathname === location.pathname && link.search === location.search)
    return false;
  return route(link.pathname).page !== "missing";
}

/** Follows links between pages without loading them. */
export function followLinks(): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.<HTMLAnchorElement>("a[href]");
    if (!link || !isOurs(link, event)) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}
