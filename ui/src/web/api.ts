// The client of the server's interface. Texts in its answers may come from other hosts: they are shown as text only.

import type { Charts } from "../page";
import type { Check } from "./check";
import type { Envelope } from "./envelope";
import type { Agent, CalendarRun, Fleet, Mesh, NewScheduleRequest, Schedule, Why } from "./fleet";
import type { KnownPlan, PlanRequest, PlanWorld, Preview } from "./plans";
import { asProblem, Problem, parsed, problemOf } from "./problem";
import type { SizesRequest } from "./sizes";

export type Ability = "view" | "run" | "admin";

export interface Session {
  /** Whether a token gives more abilities than none. */
  needs_token: boolean;
  /** Whether this visitor has given one. */
  signed_in: boolean;
  abilities: Ability[];
  host: string;
  linerate: string;
  /** "ok", or what is wrong. */
  archive: string;
  /** The port for tests from a browser; absent if the pages may not connect to it. */
  browser_test?: { port: number; tls: boolean };
  /** Where plans from the pages can be carried out. */
  plan_worlds: PlanWorld[];
}

export interface Hosts {
  this_host: string;
  known: { target: string; last_run?: string; last_at?: string }[];
  /** Tests of pages and of clients. `running` is the one of a page, which is measured or being set up. */
  queue: { waiting: number; measured: number; running?: string };
}

export type Direction = "download" | "upload";
export type RunState = "waiting" | "running" | "ended" | "unfinished";

/** Settings of a test: keys and values of TestSpec. */
export type Settings = Record<string, string | number | boolean | null>;

export interface TestRequest {
  to: string;
  name?: string;
  notes?: Record<string, string>;
  test: { traffic: Settings; socket: Settings };
}

export interface RunRow {
  id: string;
  state: RunState;
  started_at?: string;
  target?: string;
  world?: string;
  outcome?: string;
  name?: string;
  kind?: "test" | "plan";
  part_of?: string;
  tags?: string[];
  flows?: { name: string; direction: Direction; transport?: string; bitrate_bps?: number; cause?: string }[];
}

/** What the pages read of a linerate.result/2 document. */
export interface Result {
  run: {
    world?: string | null;
    name?: string | null;
    notes?: Record<string, string>;
    target?: string | null;
    started_at?: string | null;
    outcome?: string | null;
    reason?: string | null;
    spec?: {
      traffic?: Settings;
      socket?: Settings;
      host?: Settings;
      /** Absent for a stream of data. */
      transactions?: Settings;
      sweep?: Settings | null;
    } | null;
    /** Its place among runs that were started together. */
    group?: object;
  };
  /** The hosts, client first; empty if nothing was connected, and in an imported result. */
  hosts?: { name: string }[];
  /** Of the whole run. */
  caveats?: { kind: string }[];
  flows: {
    name: string;
    direction: Direction;
    transport: string;
    streams: number;
    receiver?: { bitrate_bps?: number | null; impossible?: boolean } | null;
    sender?: { retransmits?: number | null } | null;
    settings?: {
      window?: { asked?: number | null; granted_snd_bytes?: number | null } | null;
      mss?: { effective_bytes?: number | null } | null;
      length_bytes?: number | null;
    } | null;
    ceiling?: { bitrate_bps: number; share?: number | null; because: string } | null;
    verdict?: { text: string; cause: string; confidence: string } | null;
    caveats?: { kind: string }[];
  }[];
}

export interface Run {
  id: string;
  kind: "test" | "plan";
  state: RunState;
  place?: number;
  wait_seconds?: number;
  target?: string;
  name?: string;
  tags?: string[];
  problem?: string;
  result?: Result;
}

export interface View {
  title: string;
  html: string;
  charts: Charts;
}

export interface CurrentRuns {
  running?: string;
  waiting: string[];
  latest?: string;
}

/** The formats of a run's export, with their descriptions. */
export const formatsOf = (kind: Run["kind"]): [string, string][] =>
  kind === "plan"
    ? [...FORMATS, ["junit", "Assertions for continuous integration (JUnit)"]]
    : [["html", "One page with everything (HTML)"], ...FORMATS];

const FORMATS: [string, string][] = [
  ["jsonl", "Event log (JSON lines)"],
  ["json", "Result (JSON)"],
  ["csv", "Samples (CSV)"],
  ["summary-csv", "One row per flow (CSV)"],
  ["markdown", "Report for a ticket (Markdown)"],
  ["text", "As on the terminal (text)"],
  ["svg", "Charts (SVG)"],
  ["parquet", "Every sample (Parquet)"],
];

const BASE = "/api/v1";

/** How long an answer to a reading request may take, milliseconds. */
const ANSWER_TIMEOUT_MS = 60_000;

async function call<T>(path: string, init: RequestInit = {}): Promise<T> {
  const reads = init.method === undefined || init.method === "GET";
  const headers = { Accept: "application/json", ...(init.headers as Record<string, string> | undefined) };
  const answer = await fetch(BASE + path, {
    credentials: "same-origin",
    cache: "no-store",
    // A connection that died without a word is not waited for: what polls asks again after this.
    ...(reads ? { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) } : {}),
    ...init,
    headers,
  }).catch((error) => {
    throw asProblem(error);
  });
  if (!answer.ok) throw await problemOf(answer);
  const text = await answer.text();
  return (text === "" ? undefined : parsed(text)) as T;
}

function write<T>(method: "POST" | "PUT" | "DELETE", path: string, body: unknown, headers = {}): Promise<T> {
  return call<T>(path, {
    method,
    // The server refuses writing requests without these two: a form of another site cannot send them.
    headers: { "Content-Type": "application/json", "X-Linerate": "1", ...headers },
    body: JSON.stringify(body ?? {}),
  });
}

/** With it, this browser may start one test to the host within a minute. */
export const getTicket = async () => (await write<{ ticket: string }>("POST", "/tickets", null)).ticket;

/** What a described path can carry. */
export const getEnvelope = (path: Record<string, string | boolean>) =>
  write<Envelope>("POST", "/envelope", path);
/** Whether figures can be true. */
export const getCheck = (figures: Record<string, string | boolean>) =>
  write<Check>("POST", "/check", figures);

/** The bundled plans. */
export const getPlans = () => call<{ plans: KnownPlan[] }>("/plans");
export const getPlan = (name: string) => call<{ text: string }>(`/plans/${encodeURIComponent(name)}`);
/** What a plan would do, or what is wrong with it. */
export const previewPlan = (plan: { text: string; set: string[] }) =>
  write<Preview>("POST", "/plans/preview", plan);

const run = (id: string) => `/runs/${encodeURIComponent(id)}`;

export const getSession = () => call<Session>("/session");
export const signIn = (token: string) => write<void>("POST", "/session", { token });
export const signOut = () => write<void>("DELETE", "/session", null);
export const getHosts = () => call<Hosts>("/hosts");
export const getRun = (id: string) => call<Run>(run(id));
export const getView = (id: string) => call<View>(`${run(id)}/view`);
export const cancelRun = (id: string) => write<void>("POST", `${run(id)}/cancel`, null);
const tagged = (id: string, tag: string) => `${run(id)}/tags/${encodeURIComponent(tag)}`;
export const addTag = (id: string, tag: string) => write<void>("PUT", tagged(id, tag), null);
export const removeTag = (id: string, tag: string) => write<void>("DELETE", tagged(id, tag), null);
export const deleteRun = (id: string) => write<void>("DELETE", run(id), null);
/** The path of a page that shows the run to everybody who has the path, for some days or until links are made void. */
export const shareRun = (id: string, days?: number) =>
  write<{ path: string; valid_until?: string }>(
    "POST",
    `${run(id)}/share${days === undefined ? "" : `?days=${days}`}`,
    null,
  );

/** A run whose link somebody has shared. */
export interface SharedLink {
  id: string;
  secret: string;
}

const shared = ({ id, secret }: SharedLink) =>
  `/shared/${encodeURIComponent(id)}/${encodeURIComponent(secret)}`;
export const getSharedRun = (link: SharedLink) => call<Run>(shared(link));
export const getSharedView = (link: SharedLink) => call<View>(`${shared(link)}/view`);
export const sharedExportUrl = (link: SharedLink, format: string) =>
  `${BASE}${shared(link)}/export/${format}`;
export const exportUrl = (id: string, format: string) => `${BASE}${run(id)}/export/${format}`;
export const liveUrl = (id: string) => `${BASE}${run(id)}/live`;
export const streamsUrl = (id: string) => `${liveUrl(id)}/streams`;
export const CURRENT_RUNS_URL = `${BASE}/live`;

export const getLabs = () => call<{ labs: { name: string }[] }>("/labs");
export const labLiveUrl = (name: string) => `${BASE}/labs/${encodeURIComponent(name)}/live`;

export const getFleet = () => call<Fleet>("/fleet");
export const getAgents = () => call<{ agents: Agent[] }>("/agents");
/** The page of a list that follows on what has this name; the first one without it. */
const pageAfter = (after?: string | null) => (after ? `?${new URLSearchParams({ after })}` : "");
export const getMeshes = (after?: string | null) =>
  call<{ meshes: Mesh[]; next?: string }>(`/meshes${pageAfter(after)}`);
export const getCell = (mesh: string, from: string, to: string) =>
  call<{ runs: CalendarRun[] }>(`/meshes/${[mesh, from, to].map(encodeURIComponent).join("/")}`);
export const getSchedules = (after?: string | null) =>
  call<{ schedules: Schedule[]; runs: CalendarRun[]; next?: string }>(`/schedules${pageAfter(after)}`);
const schedule = (name: string) => `/schedules/${encodeURIComponent(name)}`;
export const getWhy = (name: string) => call<Why>(`${schedule(name)}/why`);
export const addSchedule = (request: NewScheduleRequest) => write<unknown>("POST", "/schedules", request);
export const removeSchedule = (name: string) => write<unknown>("DELETE", schedule(name), null);
export const pauseSchedule = (name: string, paused: boolean) =>
  write<unknown>("POST", `${schedule(name)}/${paused ? "pause" : "resume"}`, null);
export const cancelCalendarRun = (id: string) =>
  write<unknown>("POST", `/calendar/runs/${encodeURIComponent(id)}/cancel`, null);

export function getRuns(query: URLSearchParams): Promise<{ runs: RunRow[]; next?: string }> {
  return call(`/runs?${query}`);
}

export function getComparison(before: string[], after: string[]): Promise<View> {
  const query = new URLSearchParams();
  for (const id of before) query.append("before", id);
  for (const id of after) query.append("after", id);
  return call(`/compare/view?${query}`);
}

/** Starts a test. */
export const startRun = (request: TestRequest | SizesRequest) => startOnce("/runs", request);
/** Carries out a plan. */
export const runPlan = (request: PlanRequest) => startOnce("/plans/runs", request);

/** Starts a run. One press of the button is one run, also if the first answer was lost and it is sent again. */
async function startOnce(path: string, request: unknown): Promise<{ id: string; place: number }> {
  const headers = { "Idempotency-Key": uuid() };
  const send = () => write<{ id: string; place: number }>("POST", path, request, headers);
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 0) throw error;
    await new Promise((done) => setTimeout(done, 1000));
    return await send();
  }
}

/** A random UUID. `crypto.randomUUID` exists only in pages over HTTPS, and many test hosts have none. */
export function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
