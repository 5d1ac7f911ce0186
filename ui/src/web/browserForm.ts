// The form of a test from this browser to this host: from and to the address of the page, and to what is measured.

import type { Direction } from "./api";
import { choice, DIRECTIONS, type Directions } from "./form";

/** In a browser the directions are measured one after the other. */
export type BrowserDirections = Exclude<Directions, "both">;

export const BROWSER_DIRECTIONS = DIRECTIONS.filter(
  (one): one is Exclude<(typeof DIRECTIONS)[number], readonly ["both", string]> => one[0] !== "both",
);

/** What the user typed. */
export interface BrowserForm {
  connections: string;
  seconds: string;
  directions: BrowserDirections;
}

export type BrowserField = keyof BrowserForm;
export type BrowserErrors = Partial<Record<BrowserField, string>>;

export interface BrowserSettings {
  connections: number;
  seconds: number;
  /** In the order of measuring. */
  directions: Direction[];
}

export const EMPTY_BROWSER: BrowserForm = { connections: "4", seconds: "10", directions: "each" };

const MAX_CONNECTIONS = 16;
/** Browsers keep further requests to one server waiting; WebSockets, which uploads use, have a higher limit. */
const MAX_DOWNLOADS = 6;
const MAX_SECONDS = 60;

/** Whether the address asks for a test from this browser. */
export const isFromBrowser = (query: URLSearchParams) => query.get("from") === "browser";

/** The form as the address of the page has it. */
export function fromBrowserQuery(query: URLSearchParams): BrowserForm {
  const text = (field: "connections" | "seconds") => query.get(field) ?? EMPTY_BROWSER[field];
  return {
    connections: text("connections"),
    seconds: text("seconds"),
    directions: choice(BROWSER_DIRECTIONS, query.get("directions") ?? "", EMPTY_BROWSER.directions),
  };
}

/** The form for the address of a page: only what differs from an empty one. */
export function toBrowserQuery(form: BrowserForm): URLSearchParams {
  const query = new URLSearchParams({ from: "browser" });
  for (const field of Object.keys(EMPTY_BROWSER) as BrowserField[])
    if (form[field] !== EMPTY_BROWSER[field]) query.set(field, form[field]);
  return query;
}

/** What to measure, or what is wrong with the form. */
export function settingsOf(form: BrowserForm): { settings: BrowserSettings } | { errors: BrowserErrors } {
  const errors: BrowserErrors = {};
  const whole = (field: "connections" | "seconds", max: number): number => {
    const text = form[field].trim() || EMPTY_BROWSER[field];
    const value = /^\d+$/.test(text) ? Number(text) : 0;
    if (value < 1 || value > max) errors[field] = `Give a whole number from 1 to ${max}.`;
    return value;
  };
  const directions: Direction[] = form.directions === "each" ? ["download", "upload"] : [form.directions];
  const connections = whole("connections", MAX_CONNECTIONS);
  if (!errors.connections && connections > MAX_DOWNLOADS && directions.includes("download"))
    errors.connections = `For downloads, browsers open at most ${MAX_DOWNLOADS} connections to a host. Give 1 to ${MAX_DOWNLOADS}, or measure the upload only.`;
  const seconds = whole("seconds", MAX_SECONDS);
  if (Object.keys(errors).length > 0) return { errors };
  return { settings: { connections, seconds, directions } };
}

/** Opening connections, and the end of each direction. */
const AROUND_SECONDS = 1;

/** About how long the test takes, in seconds. */
export function aboutBrowser(form: BrowserForm): number | undefined {
  const made = settingsOf(form);
  if ("errors" in made) return undefined;
  return made.settings.directions.length * (made.settings.seconds + AROUND_SECONDS);
}
