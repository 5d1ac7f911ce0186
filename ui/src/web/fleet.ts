// The calendar of a fleet, as the server describes it, and what its page says of it.

import { span } from "../units";
import { timeOf } from "./form";
import type { TypedField, Values } from "./typed";
import { IMPOSSIBLE, when, words } from "./words";

export interface Alarm {
  kind: string;
  state: "open" | "cleared";
  from: string;
  to: string;
  text: string;
  since: string;
  raised: string;
  cleared?: string;
}

export interface Fleet {
  name: string;
  coordinator?: { name: string; epoch: number; until: string };
  agents: {
    name: string;
    address: string;
    port: number;
    labels: string[];
    state: string;
    since?: string;
    reason?: string;
  }[];
  schedules: { all: number; paused: number };
  runs: Record<string, number>;
  alarms: Alarm[];
}

/** An agent that carries out the calendar by itself. */
export interface Agent {
  name: string;
  state: string;
  heard?: string;
  until?: string;
  waiting: number;
  program?: string;
  note?: string;
}

export interface CellResult {
  goodput_bps?: number;
  latency_ns?: number;
  loss?: number;
  cause?: string;
  verdict?: string;
}

export interface Cell {
  from: string;
  to: string;
  state?: string;
  ended?: string;
  reason?: string;
  run?: string;
  result?: CellResult;
  short?: string;
  measured?: string;
  next?: string;
  alarms: Alarm[];
}

export interface Mesh {
  mesh: string;
  hosts: string[];
  cells: Cell[];
  /** Pairs that are not among the cells. */
  left_out?: number;
}

export interface CalendarRun {
  run: string;
  schedule: string;
  from: string;
  to: string;
  confirms?: string;
  due: string;
  starts: string;
  ends: string;
  priority: number;
  state: string;
  reason?: string;
  ended?: string;
  result?: CellResult;
}

export interface Schedule {
  name: string;
  mesh?: string;
  from: string;
  to: string;
  when: { cron: string } | { every_ns: number; jitter_ns: number } | { at: string };
  zone: string;
  priority: number;
  paused: boolean;
  next_due?: string;
}

export interface Obstacle {
  kind:
    | "paused"
    | "not_due"
    | "quiet_hours"
    | "busy"
    | "no_coordinator"
    | "agent"
    | "after_loss"
    | "after_change"
    | "unsettled";
  reason?: string;
  due?: string;
  until?: string;
  last_run?: string;
  reservation?: {
    resource: string;
    run: string;
    schedule: string;
    priority: number;
    ends: string;
    state: string;
  };
}

export interface Why {
  at: string;
  schedule: Schedule;
  obstacles: Obstacle[];
  next_free?: string;
  active?: CalendarRun;
  next?: CalendarRun;
  last?: CalendarRun;
}

/** Whether more data arrived than possible. */
export const isImpossible = ({ result }: Cell): boolean => result?.cause === IMPOSSIBLE;

/** How a cell of the grid looks: its mark is also a word, so that colour is never the only sign. */
export function mark(cell: Cell): "alarm" | "stale" | "good" | "none" {
  if (cell.alarms.length > 0) return "alarm";
  if (isImpossible(cell)) return "alarm";
  if (cell.state !== undefined && cell.state !== "finished") return "stale";
  return cell.result ? "good" : "none";
}

/** What a screen reader says of a cell, and its tooltip. */
export function sentence(cell: Cell): string {
  const pair = `${cell.from} to ${cell.to}`;
  if (isImpossible(cell)) return `${pair}: the measured rate is impossible${whyOf(cell)}`;
  const rate = cell.short ? `${cell.short}b/s` : "no result yet";
  const measured = cell.measured ? `, measured ${when(cell.measured)}` : "";
  const cause = cell.result?.cause ? `, limited by ${words(cell.result.cause)}` : "";
  return `${pair}: ${rate}${measured}${cause}${whyOf(cell)}`;
}

/** What needs attention, as a further sentence. */
function whyOf(cell: Cell): string {
  const hasFailed = cell.state !== undefined && cell.state !== "finished";
  const trouble = cell.alarms[0]?.text ?? (hasFailed ? `${words(cell.state ?? "")}: ${cell.reason}` : "");
  return trouble ? `. ${trouble}` : "";
}

const LONG_UNITS = [
  ["d", 86_400e9],
  ["h", 3600e9],
  ["min", 60e9],
] as const;

/** A time in the largest unit of which it is a whole number, never rounded to one. */
function whole(ns: number): string {
  const unit = LONG_UNITS.find(([, size]) => ns >= size && ns % size === 0);
  return unit ? `${ns / unit[1]} ${unit[0]}` : span(ns);
}

/** When a schedule is due. */
export function recurrence(schedule: Schedule): string {
  const at = schedule.when;
  if ("cron" in at) return schedule.zone === "UTC" ? at.cron : `${at.cron} (${schedule.zone})`;
  if ("at" in at) return `once, ${when(at.at)}`;
  const every = `every ${whole(at.every_ns)}`;
  return at.jitter_ns > 0 ? `${every}, jitter ${whole(at.jitter_ns)}` : every;
}

/** An obstacle in words. */
export function obstacle(one: Obstacle): string {
  switch (one.kind) {
    case "paused":
      return "it is paused";
    case "not_due":
      return one.due ? `it is not due before ${when(one.due)}` : "it is never due again";
    case "quiet_hours":
      return `it would measure in its quiet hours, which last until ${when(one.until ?? "")}`;
    case "busy": {
      const held = one.reservation;
      if (!held) return "something that it uses is in use";
      if (!["booked", "running"].includes(held.state))
        return `${held.resource} is held for a run of ${held.schedule} that ended before, because an agent may still have it in its calendar, until ${when(held.ends)}`;
      return `${held.resource} is in use by a run of ${held.schedule} (priority ${held.priority}) until ${when(held.ends)}`;
    }
    case "agent":
      return one.reason ?? "its agent takes no runs";
    case "after_loss":
      return `nothing is booked until all agents have confirmed new calendars, because the database lost what was written last; it goes on by ${when(one.until ?? "")} at the latest`;
    case "after_change":
      return `nothing is booked until agents have given back what was booked before the fleet was changed; it goes on by ${when(one.until ?? "")} at the latest`;
    case "unsettled":
      return `nothing is booked before ${when(one.until ?? "")}, because a test of before a loss or a change of the fleet may still be on the wire`;
    case "no_coordinator":
      return "no coordinator carries out the calendar";
  }
}

/** A field of the form for a new schedule, and where the request has it. */
export interface ScheduleField extends TypedField {
  at: string;
}

/** The fields of the form for a new schedule between these hosts. */
export function scheduleFields(hosts: string[]): ScheduleField[] {
  const options = hosts.map((host) => [host, host] as const);
  return [
    {
      name: "name",
      at: "name",
      label: "Name",
      hint: "Small letters, digits and hyphens",
      example: "nightly",
    },
    { name: "from", at: "from", label: "From", options },
    { name: "to", at: "to", label: "To", options },
    { name: "every", at: "every", label: "Every", hint: "A period from 10s on, or:", example: "15m" },
    {
      name: "cron",
      at: "cron",
      label: "At times of a crontab",
      hint: "Minute, hour, day of month, month, day of week",
      example: "0 3 * * *",
    },
    { name: "time", at: "test.traffic.duration_ns", label: "Duration", example: "10 s" },
    { name: "streams", at: "test.traffic.streams", label: "Streams", example: "1" },
  ];
}

export interface NewScheduleRequest {
  name: string;
  from: string;
  to: string;
  every?: string;
  cron?: string;
  test: { traffic: Record<string, number> };
}

/** The request for the values of the form, or what is wrong with them that the server cannot say. */
export function newSchedule(
  values: Values,
): { request: NewScheduleRequest } | { errors: Record<string, string> } {
  const text = (name: string) => values[name]?.trim() ?? "";
  const errors: Record<string, string> = {};
  const traffic: Record<string, number> = {};
  if (text("time")) {
    const time = timeOf(text("time"));
    if (time === undefined) errors.time = "Give a time, for example 10 or 500 ms.";
    else traffic.duration_ns = time;
  }
  if (text("streams")) {
    if (/^\d{1,9}$/.test(text("streams"))) traffic.streams = Number(text("streams"));
    else errors.streams = "Give a whole number, for example 4.";
  }
  if (Object.keys(errors).length > 0) return { errors };
  const request: NewScheduleRequest = {
    name: text("name"),
    from: text("from"),
    to: text("to"),
    test: { traffic },
  };
  if (text("every")) request.every = text("every");
  if (text("cron")) request.cron = text("cron");
  return { request };
}
