// The form for a series over message sizes: to the request, and from the result of a run.

import type { Result, Settings, TestRequest } from "./api";
import { hostOf, isOfTool, isUnusual, sizeOf, timeOf } from "./form";
import type { TypedField, Values } from "./typed";

export const MAIN: readonly TypedField[] = [
  {
    name: "to",
    label: "Other host",
    example: "a name, an address, or this host",
  },
];

const MODES = [
  ["", "there and back (ping-pong)"],
  ["stream", "to the other host only"],
  ["bidir", "both ways at the same time"],
] as const;

export const MORE: readonly TypedField[] = [
  { name: "mode", label: "Messages go", options: MODES },
  { name: "from", label: "Smallest message", example: "1", hint: "bytes" },
  { name: "largest", label: "Largest message", example: "8M", hint: "bytes, at most 64M" },
  { name: "time", label: "Time for all sizes", example: "30", hint: "seconds, or 2 min", unit: "s" },
  { name: "trials", label: "Trials of each size", example: "7", hint: "from 6 on, a median has an interval" },
  { name: "name", label: "Name of the run", hint: "runs with one name are repeats" },
];

export const FIELDS = [...MAIN, ...MORE];

/** The field to which a problem with this setting belongs. */
const FIELD_OF: Record<string, string> = {
  to: "to",
  name: "name",
  "test.sweep.from_bytes": "from",
  "test.sweep.to_bytes": "largest",
  "test.sweep.time_ns": "time",
  "test.sweep.trials": "trials",
  // A host's limit of the time of a test.
  "test.traffic.duration_ns": "time",
};

export const fieldOf = (path: string | undefined): string | undefined =>
  path === undefined ? undefined : FIELD_OF[path];

export interface SizesRequest extends Omit<TestRequest, "test"> {
  test: { sweep: Settings };
}

/** The request for this form, or what is wrong with it. */
export function requestOf(values: Values): { request: SizesRequest } | { errors: Record<string, string> } {
  const errors: Record<string, string> = {};
  const sweep: Settings = {};
  const set = (field: string, key: string, read: (text: string) => number | undefined, hint: string) => {
    const text = values[field]?.trim();
    if (!text) return;
    const value = read(text);
    if (value === undefined) errors[field] = hint;
    else sweep[key] = value;
  };
  const to = values.to?.trim() ?? "";
  if (to === "") errors.to = "Give the name or the address of the other host.";
  if (values.mode) sweep[values.mode] = true;
  set("from", "from_bytes", sizeOf, "Give a size, for example 64.");
  set("largest", "to_bytes", sizeOf, "Give a size, for example 1M.");
  set("time", "time_ns", timeOf, "Give a time, for example 30 or 2 min.");
  const whole = (text: string) => (/^\d+$/.test(text) ? Number(text) : undefined);
  set("trials", "trials", whole, "Give a whole number, for example 7.");
  if (Object.keys(errors).length > 0) return { errors };
  const name = values.name?.trim();
  return {
    request: {
      to,
      ...(name ? { name } : {}),
      test: { sweep },
    },
  };
}

/** Settings as the specification of a series has them: probes would be in its way. */
const USUAL_TRAFFIC: Settings = { interval_ns: 1e9, streams: 1, no_latency: true };
/** Settings of a series that have no field, as the program chooses them. */
const FIXED = { perturb_bytes: 3, order: "ascending", sizes: null, points_per_octave: null, until: null };

/** The values that start the same series again; undefined if the run was none that the form can start. */
export function fromResult(result: Result): Values | undefined {
  const { spec, target, name } = result.run;
  const sweep = spec?.sweep;
  if (!sweep || isOfTool(target)) return undefined;
  // The form has no field for these. Another series must not get the name of this one.
  if (isUnusual(spec?.traffic, USUAL_TRAFFIC) || isUnusual(spec?.socket, { no_delay: true }))
    return undefined;
  if (isUnusual(spec?.host) || isUnusual(sweep, { ...sweep, ...FIXED })) return undefined;
  const values: Values = { to: hostOf(target) };
  if (name) values.name = name;
  if (sweep.stream) values.mode = "stream";
  if (sweep.bidir) values.mode = "bidir";
  for (const [field, key] of [
    ["from", "from_bytes"],
    ["largest", "to_bytes"],
    ["trials", "trials"],
  ] as const)
    if (typeof sweep[key] === "number") values[field] = String(sweep[key]);
  if (typeof sweep.time_ns === "number") values.time = String(sweep.time_ns / 1e9);
  return values;
}
