// The form that starts a test: from and to the address of the page, to the request, and from the result of a run.

import type { Result, Settings, TestRequest } from "./api";

export const DIRECTIONS = [
  ["each", "download, then upload"],
  ["download", "download only"],
  ["upload", "upload only"],
  ["both", "both at the same time"],
] as const;

export const TRANSPORTS = [
  ["tcp", "TCP"],
  ["udp", "UDP"],
  ["mptcp", "Multipath TCP"],
] as const;

export type Directions = (typeof DIRECTIONS)[number][0];
export type Transport = (typeof TRANSPORTS)[number][0];

/** What the user typed. */
export interface Form {
  to: string;
  time: string;
  streams: string;
  transport: Transport;
  directions: Directions;
  rate: string;
  congestion: string;
  window: string;
  name: string;
  /** One a line, "key: value". */
  notes: string;
  /** Settings of an earlier run that the form has no field for, by their paths in the request. */
  others: Settings;
}

export type Field = Exclude<keyof Form, "others">;
export type Errors = Partial<Record<Field, string>>;

export const EMPTY: Form = {
  to: "",
  time: "10",
  streams: "1",
  transport: "tcp",
  directions: "each",
  rate: "",
  congestion: "",
  window: "",
  name: "",
  notes: "",
  others: {},
};

const FIELDS = Object.keys(EMPTY).filter((name) => name !== "others") as Field[];

/** Settings that have a field, by their paths. */
const FIELD_OF: Record<string, Field> = {
  to: "to",
  name: "name",
  notes: "notes",
  "test.traffic.duration_ns": "time",
  "test.traffic.streams": "streams",
  "test.traffic.udp": "transport",
  "test.traffic.mptcp": "transport",
  "test.traffic.upload": "directions",
  "test.traffic.download": "directions",
  "test.traffic.bidir": "directions",
  "test.traffic.rate_bps": "rate",
  "test.socket.congestion": "congestion",
  "test.socket.window_bytes": "window",
};

/** The field to which a problem with this setting belongs. */
export function fieldOf(path: string | undefined): Field | undefined {
  if (path === undefined) return undefined;
  const plain = path.replace(/^\$?\.?/, "");
  return FIELD_OF[plain] ?? (/^notes[.[]/.test(plain) ? "notes" : undefined);
}

/** The choice with this name, or another one if there is none. */
export const choice = <T extends string>(
  all: readonly (readonly [T, string])[],
  value: string,
  other: T,
): T => all.find(([name]) => name === value)?.[0] ?? other;

/** The form as the address of the page has it. */
export function fromQuery(query: URLSearchParams): Form {
  const form = { ...EMPTY, others: {} as Settings };
  for (const name of FIELDS) {
    const value = query.get(name);
    if (value === null) continue;
    if (name === "transport") form.transport = choice(TRANSPORTS, value, EMPTY.transport);
    else if (name === "directions") form.directions = choice(DIRECTIONS, value, EMPTY.directions);
    else form[name] = value;
  }
  for (const [name, value] of query) {
    if (!/^(traffic|socket)\.\w+$/.test(name) || `test.${name}` in FIELD_OF) continue;
    form.others[name] = plainValue(value);
  }
  return form;
}

function plainValue(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

/** The form for the address of a page: only what differs from an empty one. */
export function toQuery(form: Form): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of FIELDS) if (form[name] !== EMPTY[name]) query.set(name, form[name]);
  for (const [name, value] of Object.entries(form.others)) query.set(name, String(value));
  return query;
}

const DECIMAL: Record<string, number> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const BINARY: Record<string, number> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };
const SECONDS: Record<string, number> = { "": 1e9, s: 1e9, ms: 1e6, min: 60e9, m: 60e9 };

function scaled(text: string, shape: RegExp, sizes: Record<string, number>): number | undefined {
  const [, number, prefix = ""] = shape.exec(text.trim()) ?? [];
  const size = sizes[prefix.toLowerCase()];
  return number === undefined || size === undefined ? undefined : Math.round(Number(number) * size);
}

/** A bit rate such as "100M" or "1.5 Gb/s", in bit/s. */
export const rateOf = (text: string) =>
  scaled(text, /^(\d+(?:\.\d+)?) ?([kmgt]?)(?:b(?:it)?\/s|bps)?$/i, DECIMAL);

/** A size such as "4M" or "4 MiB", in bytes. As on the command line, "4 MB" has the prefix of the SI. */
export const sizeOf = (text: string) =>
  scaled(text, /^(\d+(?:\.\d+)?) ?([kmg])b$/i, DECIMAL) ??
  scaled(text, /^(\d+(?:\.\d+)?) ?([kmg]?)(?:i?b|i)?$/i, BINARY);

/** A time such as "10", "500 ms" or "2 min", in nanoseconds. */
export const timeOf = (text: string) => scaled(text, /^(\d+(?:\.\d+)?) ?(ms|min|m|s|)$/i, SECONDS);

/** The request for this form, or what is wrong with it. */
export function requestOf(form: Form): { request: TestRequest } | { errors: Errors } {
  const errors: Errors = {};
  const traffic: Settings = {};
  const socket: Settings = {};
  const typed = <T>(field: Field, read: (text: string) => T | undefined, hint: string): T | undefined => {
    const text = form[field].trim();
    if (text === "") return undefined;
    const value = read(text);
    if (value === undefined) errors[field] = hint;
    return value;
  };
  const set = (into: Settings, name: string, value: string | number | boolean | undefined) => {
    if (value !== undefined) into[name] = value;
  };
  const to = form.to.trim();
  if (to === "") errors.to = "Give the name or the address of the other host.";
  set(traffic, "duration_ns", typed("time", timeOf, "Give a time, for example 10 or 500 ms."));
  const whole = (text: string) => (/^\d+$/.test(text) ? Number(text) : undefined);
  set(traffic, "streams", typed("streams", whole, "Give a whole number, for example 4."));
  set(traffic, "rate_bps", typed("rate", rateOf, "Give a bit rate, for example 100M."));
  set(socket, "window_bytes", typed("window", sizeOf, "Give a size, for example 4M."));
  set(socket, "congestion", form.congestion.trim() || undefined);
  if (form.transport !== "tcp") traffic[form.transport] = true;
  if (form.directions === "both") traffic.bidir = true;
  else if (form.directions !== "each") traffic[form.directions] = true;
  const notes = notesOf(form.notes);
  if (notes === undefined) errors.notes = "Give one note a line, for example cable: blue.";
  for (const [path, value] of Object.entries(form.others)) {
    const [group, name] = path.split(".");
    if (name) (group === "socket" ? socket : traffic)[name] = value;
  }
  if (Object.keys(errors).length > 0) return { errors };
  const name = form.name.trim();
  return {
    request: {
      to,
      ...(name ? { name } : {}),
      ...(notes && Object.keys(notes).length > 0 ? { notes } : {}),
      test: { traffic, socket },
    },
  };
}

function notesOf(text: string): Record<string, string> | undefined {
  const notes: Record<string, string> = {};
  for (const line of text.split("\n").filter((line) => line.trim() !== "")) {
    const [, key, value] = /^\s*([^:=]+?)\s*[:=]\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined || value === undefined) return undefined;
    notes[key] = value;
  }
  return notes;
}

/** What to type for the server of a run: a test over loopback has a server of its own, which is gone. */
export const hostOf = (target: string | null | undefined): string =>
  target === "127.0.0.1" ? "this host" : (target ?? "");

/** Settings as the specification of a run has them if nobody asked for anything else. */
const USUAL: Settings = { interval_ns: 1e9, streams: 1 };

/** Whether somebody asked for anything else than these settings. */
export const isUnusual = (settings: Settings | undefined, usual: Settings = {}): boolean =>
  Object.entries(settings ?? {}).some(([name, value]) => (value || name in usual) && value !== usual[name]);

/** Whether a run was started by another tool: its target ends with the name of the tool. */
export const isOfTool = (target: string | null | undefined): boolean => / \([a-z0-9]+\)$/.test(target ?? "");

/** The form that starts the same test again; undefined if the form cannot start it. */
export function fromResult(result: Result): Form | undefined {
  const { spec, target, name, notes } = result.run;
  if (!spec || spec.sweep || isOfTool(target)) return undefined;
  // The form asks for streams of data, and for no settings of hosts. Another test must not get the name of this one.
  if (spec.transactions || isUnusual(spec.host)) return undefined;
  const { traffic = {}, socket = {} } = spec;
  const form: Form = { ...EMPTY, to: hostOf(target), name: name ?? "", others: {} };
  form.notes = Object.entries(notes ?? {})
    .map(([key, value]) => `${key}: ${value}`)
    .join("\n");
  // A test that ends after some bytes has no time, and one without an end has the program's own.
  form.time = typeof traffic.duration_ns === "number" ? timeText(traffic.duration_ns) : "";
  if (typeof traffic.streams === "number") form.streams = String(traffic.streams);
  if (typeof traffic.rate_bps === "number") form.rate = short(traffic.rate_bps, DECIMAL);
  if (typeof socket.window_bytes === "number") form.window = short(socket.window_bytes, BINARY);
  if (typeof socket.congestion === "string") form.congestion = socket.congestion;
  form.transport = traffic.udp ? "udp" : traffic.mptcp ? "mptcp" : "tcp";
  form.directions = traffic.bidir
    ? "both"
    : traffic.upload === traffic.download
      ? "each"
      : traffic.upload
        ? "upload"
        : "download";
  for (const [group, settings] of [
    ["traffic", traffic],
    ["socket", socket],
  ] as const) {
    for (const [name, value] of Object.entries(settings)) {
      if (`test.${group}.${name}` in FIELD_OF || !value || USUAL[name] === value) continue;
      if (typeof value !== "object") form.others[`${group}.${name}`] = value;
    }
  }
  return form;
}

/** A time as it is typed. */
const timeText = (ns: number) => (ns % 1e9 === 0 ? String(ns / 1e9) : `${ns / 1e6} ms`);

/** A value with the largest prefix that leaves it a short number, as it is typed. */
function short(value: number, sizes: Record<string, number>): string {
  for (const [prefix, size] of Object.entries(sizes).reverse()) {
    if (value >= size && Number.isInteger((value / size) * 1000))
      return `${value / size}${prefix === "k" ? prefix : prefix.toUpperCase()}`;
  }
  return String(value);
}

/** Settings that end a test before the program's own time, or let it take longer. */
const ENDS = ["traffic.bytes", "traffic.blocks", "traffic.until"];

/** How long each direction is measured, as it is typed; empty if something else ends the test. */
const timeIn = ({ time, others }: Form): string =>
  time.trim() || (ENDS.some((path) => others[path] !== undefined) ? "" : EMPTY.time);

/** The settings in a few words. */
export function summary(form: Form): string {
  const streams = form.streams.trim() || EMPTY.streams;
  const time = timeIn(form);
  return [
    /^[\d.]+$/.test(time) ? `${time} s` : time,
    streams === "1" ? "1 stream" : `${streams} streams`,
    TRANSPORTS.find(([name]) => name === form.transport)?.[1],
    DIRECTIONS.find(([name]) => name === form.directions)?.[1],
    form.rate.trim() && `at ${form.rate.trim()}`,
    form.congestion.trim(),
    form.window.trim() && `window ${form.window.trim()}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

/** About how long the test takes, in seconds: its parts one after the other, and what is around them. */
export function about(form: Form): number | undefined {
  const ns = timeOf(timeIn(form));
  if (ns === undefined) return undefined;
  return Math.ceil(((form.directions === "each" ? 2 : 1) * ns) / 1e9) + AROUND_SECONDS;
}

/** Connecting, idle latency before the load, and the exchange of results after it. */
const AROUND_SECONDS = 2;
